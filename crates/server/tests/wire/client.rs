//! A client of bare frames: it sends what it is told, in any order, legal or not, and shows what comes.
//!
//! Frames that a test does not wait for stay where they came, so that the order can be looked at later.
//! The server's handles are translated into the client's, which are what tests speak of.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use vorrang_amqp::performative::{Attach, Begin, Open, Role, SaslCode, SaslInit, SaslMechanisms};
use vorrang_amqp::protocol_header::Protocol;
use vorrang_amqp::sasl_plain::PlainCredentials;
use vorrang_amqp::{Frame, FrameBody, SaslFrame, Symbol, Text};

use crate::server::{ROOT, ROOT_KEY, Server};

/// Longer than anything here takes; reached only when a test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Anything that carries bytes both ways.
pub(crate) trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

/// What the client knows of one of its sessions.
#[derive(Default)]
pub(crate) struct Session {
    /// The id of the server's next transfer frame.
    pub(crate) next_incoming: u32,
    /// The id of the client's next transfer frame, which is also its next delivery's.
    pub(crate) next_outgoing: u32,
    /// The client's handle for each of the server's.
    pub(crate) handles: BTreeMap<u32, u32>,
    /// Links asked for, by name and the client's role.
    pub(crate) names: BTreeMap<(String, bool), u32>,
    /// Deliveries received on each of the client's handles.
    pub(crate) received: BTreeMap<u32, u32>,
}

/// One connection.
pub(crate) struct Client {
    pub(crate) wire: Box<dyn Wire>,
    input: BytesMut,
    pub(crate) pending: VecDeque<Frame>,
    pub(crate) sessions: BTreeMap<u16, Session>,
    /// The client's channel for each of the server's.
    channels: BTreeMap<u16, u16>,
    /// Frames as they came, for those who look at the encoding.
    pub(crate) raw: Vec<Bytes>,
    /// Pairs of handles of nodes that answer requests.
    pub(crate) nodes: BTreeMap<String, (u32, u32)>,
    pub(crate) next_handle: u32,
    pub(crate) next_request: u64,
}

impl Client {
    /// Connects to the plain port and says nothing.
    pub(crate) fn connect(server: &Server) -> Client {
        let socket = TcpStream::connect(server.ready.amqp).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Client::over(Box::new(socket))
    }

    /// Speaks over this.
    pub(crate) fn over(wire: Box<dyn Wire>) -> Client {
        Client {
            wire,
            input: BytesMut::new(),
            pending: VecDeque::new(),
            sessions: BTreeMap::new(),
            channels: BTreeMap::new(),
            raw: Vec::new(),
            nodes: BTreeMap::new(),
            next_handle: 1_000,
            next_request: 0,
        }
    }

    /// A client with all rights and session 0.
    pub(crate) fn root(server: &Server) -> Client {
        Client::plain(server, ROOT, ROOT_KEY)
    }

    /// A client that logs in with a key, with session 0.
    pub(crate) fn plain(server: &Server, name: &str, key: &str) -> Client {
        let mut client = Client::connect(server);
        assert_eq!(client.log_in_plain(name, key), SaslCode::Ok);
        client.open(&Client::opening());
        client.begin(0);
        client
    }

    /// A client without rights, with session 0.
    pub(crate) fn anonymous(server: &Server) -> Client {
        let mut client = Client::connect(server);
        client.anonymous_here();
        client
    }

    /// Logs in without rights and begins session 0.
    pub(crate) fn anonymous_here(&mut self) {
        assert_eq!(self.log_in("ANONYMOUS", None), SaslCode::Ok);
        self.open(&Client::opening());
        self.begin(0);
    }

    // Bytes.

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.wire.write_all(bytes).unwrap();
    }

    /// Reads exactly so many bytes.
    pub(crate) fn read_bytes(&mut self, count: usize) -> Bytes {
        while self.input.len() < count {
            assert!(self.fill(), "closed after {:?}, before {count} bytes", self.input);
        }
        self.input.split_to(count).freeze()
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        let read = match self.wire.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("nothing came ({error}); waiting were {:?}", self.pending),
        };
        self.input.extend_from_slice(&buffer[..read]);
        read > 0
    }

    /// One frame's bytes, or none at the end.
    pub(crate) fn read_frame(&mut self) -> Option<Bytes> {
        while self.input.len() < 4 {
            if !self.fill() {
                assert!(self.input.is_empty(), "closed inside of a frame");
                return None;
            }
        }
        let size = u32::from_be_bytes(self.input[..4].try_into().unwrap());
        let frame = self.read_bytes(usize::try_from(size).unwrap());
        self.raw.push(frame.clone());
        Some(frame)
    }

    /// Expects the connection to be closed, whatever is said before.
    pub(crate) fn expect_end(&mut self) {
        while let Some(frame) = self.read_frame() {
            self.pending.extend(Frame::decode(frame));
        }
    }

    // The layers before frames.

    /// The protocol header both ways.
    pub(crate) fn header(&mut self, protocol: Protocol) {
        self.write(&protocol.header());
        assert_eq!(&self.read_bytes(8)[..], &protocol.header());
    }

    pub(crate) fn read_sasl(&mut self) -> SaslFrame {
        let frame = self.read_frame().expect("a frame of the SASL layer");
        SaslFrame::decode(frame).unwrap()
    }

    pub(crate) fn write_sasl(&mut self, frame: &SaslFrame) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.write(&bytes);
    }

    /// Passes the SASL layer up to its outcome.
    pub(crate) fn log_in(&mut self, mechanism: &str, response: Option<Bytes>) -> SaslCode {
        self.header(Protocol::Sasl);
        let SaslFrame::Mechanisms(SaslMechanisms { sasl_server_mechanisms }) = self.read_sasl() else {
            panic!("the server offers mechanisms first");
        };
        assert!(sasl_server_mechanisms.contains(mechanism));
        self.write_sasl(&SaslFrame::Init(SaslInit {
            mechanism: Symbol::from(mechanism),
            initial_response: response,
            hostname: None,
        }));
        match self.read_sasl() {
            SaslFrame::Outcome(outcome) => outcome.code,
            other => panic!("an outcome was due, not {other:?}"),
        }
    }

    pub(crate) fn log_in_plain(&mut self, name: &str, key: &str) -> SaslCode {
        let credentials =
            PlainCredentials { authorization_identity: "".into(), user: name.into(), password: key.into() };
        self.log_in("PLAIN", Some(credentials.to_response()))
    }

    /// What the client says about itself.
    pub(crate) fn opening() -> Open {
        Open { container_id: Text::from("wire"), max_frame_size: Some(65_536), ..Open::default() }
    }

    /// The AMQP header and both opens.
    pub(crate) fn open(&mut self, open: &Open) -> Open {
        self.header(Protocol::Amqp);
        self.send(0, FrameBody::Open(Box::new(open.clone())));
        self.wait("open", |frame| match &frame.body {
            FrameBody::Open(open) => Some((**open).clone()),
            _ => None,
        })
    }

    /// What the client says about a session.
    pub(crate) fn beginning() -> Begin {
        Begin {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window: 100_000,
            outgoing_window: 100_000,
            handle_max: None,
            offered_capabilities: None,
            desired_capabilities: None,
            properties: None,
        }
    }

    /// Begins a session on this channel.
    pub(crate) fn begin(&mut self, channel: u16) -> Begin {
        self.begin_with(channel, Client::beginning())
    }

    pub(crate) fn begin_with(&mut self, channel: u16, begin: Begin) -> Begin {
        self.send(channel, FrameBody::Begin(Box::new(begin)));
        self.wait("begin", |frame| match &frame.body {
            FrameBody::Begin(begin) if frame.channel == channel => Some((**begin).clone()),
            _ => None,
        })
    }

    // Frames.

    /// Writes one frame.
    pub(crate) fn send(&mut self, channel: u16, body: FrameBody) {
        let bytes = self.encode(channel, body);
        self.write(&bytes);
    }

    /// One frame's bytes, to be written later; the session's books are kept.
    pub(crate) fn encode(&mut self, channel: u16, body: FrameBody) -> Vec<u8> {
        match &body {
            FrameBody::Begin(begin) => {
                let session = Session { next_outgoing: begin.next_outgoing_id, ..Session::default() };
                self.sessions.insert(channel, session);
            }
            FrameBody::Attach(attach) => {
                let key = (attach.name.as_str().to_owned(), attach.role == Role::Sender);
                let session = self.sessions.entry(channel).or_default();
                session.names.insert(key, attach.handle);
                session.received.insert(attach.handle, 0);
            }
            _ => {}
        }
        let mut bytes = Vec::new();
        Frame { channel, body }.encode(&mut bytes);
        bytes
    }

    /// The next frame that is no heartbeat, in the client's channels and handles.
    pub(crate) fn read(&mut self) -> Option<Frame> {
        loop {
            let mut frame = Frame::decode(self.read_frame()?).unwrap();
            if frame.body == FrameBody::Heartbeat {
                continue;
            }
            self.translate(&mut frame);
            return Some(frame);
        }
    }

    fn translate(&mut self, frame: &mut Frame) {
        if let FrameBody::Begin(begin) = &frame.body {
            let own = begin.remote_channel.expect("the server answers begins, it begins none");
            self.channels.insert(frame.channel, own);
            self.sessions.entry(own).or_default().next_incoming = begin.next_outgoing_id;
        }
        let Some(channel) = self.channels.get(&frame.channel).copied() else { return };
        frame.channel = channel;
        let session = self.sessions.entry(channel).or_default();
        let own = |session: &Session, handle: u32| {
            *session.handles.get(&handle).unwrap_or_else(|| panic!("handle {handle} was never attached"))
        };
        match &mut frame.body {
            FrameBody::Attach(attach) => {
                let Attach { name, handle, role, .. } = &mut **attach;
                let key = (name.as_str().to_owned(), *role == Role::Receiver);
                let asked = *session.names.get(&key).expect("the server answers attaches, it attaches none");
                session.handles.insert(*handle, asked);
                *handle = asked;
            }
            FrameBody::Flow(flow) => {
                if let Some(link) = &mut flow.link {
                    link.handle = own(session, link.handle);
                }
            }
            FrameBody::Transfer(transfer, _) => {
                transfer.handle = own(session, transfer.handle);
                session.next_incoming = session.next_incoming.wrapping_add(1);
                if !transfer.more {
                    *session.received.entry(transfer.handle).or_default() += 1;
                }
            }
            FrameBody::Detach(detach) => detach.handle = own(session, detach.handle),
            _ => {}
        }
    }

    /// The next frame, of those that were passed over or from the wire.
    pub(crate) fn next(&mut self) -> Frame {
        if let Some(frame) = self.pending.pop_front() {
            return frame;
        }
        self.read().expect("a frame, not the end")
    }

    /// The first frame that is picked; others stay in their order.
    pub(crate) fn wait<T>(&mut self, what: &str, mut pick: impl FnMut(&Frame) -> Option<T>) -> T {
        for place in 0..self.pending.len() {
            if let Some(picked) = pick(&self.pending[place]) {
                self.pending.remove(place);
                return picked;
            }
        }
        loop {
            let Some(frame) = self.read() else {
                panic!("closed while waiting for {what}; waiting were {:?}", self.pending)
            };
            if let Some(picked) = pick(&frame) {
                return picked;
            }
            self.pending.push_back(frame);
        }
    }

    /// Frames that came and that nobody waited for.
    pub(crate) fn left(&self, is: impl Fn(&FrameBody) -> bool) -> usize {
        self.pending.iter().filter(|frame| is(&frame.body)).count()
    }
}
