//! A peer that breaks rules: frames written by hand on a bare socket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use vorrang_amqp::performative::{
    Attach, Begin, Close, Error, Open, Role, SaslInit, Source, Target, TargetNode,
};
use vorrang_amqp::protocol_header::Protocol;
use vorrang_amqp::sasl_plain::PlainCredentials;
use vorrang_amqp::{Frame, FrameBody, SaslFrame, Symbol, Text};

/// Longer than anything takes that is not broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection.
pub(crate) struct Raw {
    pub(crate) socket: TcpStream,
    input: Vec<u8>,
}

/// One frame's bytes.
pub(crate) fn frame(body: FrameBody) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame { channel: 0, body }.encode(&mut bytes);
    bytes
}

/// The bytes of a login up to the client's `sasl-init`.
pub(crate) fn login(key: &str) -> Vec<u8> {
    let credentials = PlainCredentials {
        authorization_identity: "".into(),
        user: "RootManageSharedAccessKey".into(),
        password: key.into(),
    };
    let mut bytes = Protocol::Sasl.header().to_vec();
    let init = SaslInit {
        mechanism: Symbol::from("PLAIN"),
        initial_response: Some(credentials.to_response()),
        hostname: None,
    };
    SaslFrame::Init(init).encode(&mut bytes);
    bytes
}

/// An attach to a queue.
pub(crate) fn attach(handle: u32, name: &str, queue: &str, role: Role) -> FrameBody {
    FrameBody::Attach(Box::new(Attach {
        source: Some(Source::at(queue)),
        target: Some(TargetNode::Node(Target::at(queue))),
        initial_delivery_count: Some(0),
        ..Attach::new(Text::from(name), handle, role)
    }))
}

impl Raw {
    pub(crate) fn connect(address: &str) -> Raw {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Raw { socket, input: Vec::new() }
    }

    /// Logs in and begins a session, writing everything ahead.
    pub(crate) fn logged_in(address: &str) -> Raw {
        let mut raw = Raw::connect(address);
        let mut ahead = login("SAS_KEY_VALUE");
        ahead.extend(Protocol::Amqp.header());
        let open = Open { container_id: Text::from("hostile"), ..Open::default() };
        ahead.extend(frame(FrameBody::Open(Box::new(open))));
        let begin = Begin { incoming_window: 100_000, outgoing_window: 100_000, ..Begin::default() };
        ahead.extend(frame(FrameBody::Begin(Box::new(begin))));
        raw.write(&ahead).unwrap();
        // Header, mechanisms and outcome, header: told apart by their first bytes.
        while !raw.next().is_some_and(|frame| matches!(frame.body, FrameBody::Begin(_))) {}
        raw
    }

    /// The same connection, for another thread to read from.
    pub(crate) fn reader(&self) -> Raw {
        Raw { socket: self.socket.try_clone().unwrap(), input: Vec::new() }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// The next AMQP frame; none at the end. What is of the layers before is passed over.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some(head) = self.input.first_chunk::<8>() {
                if head.starts_with(b"AMQP") {
                    self.input.drain(..8);
                    continue;
                }
                let size = usize::try_from(u32::from_be_bytes([head[0], head[1], head[2], head[3]])).unwrap();
                let kind = head[5];
                if self.input.len() < size {
                    break;
                }
                let bytes: Vec<u8> = self.input.drain(..size).collect();
                if kind == 0 {
                    return Some(Frame::decode(Bytes::from(bytes)).unwrap());
                }
            }
            let mut buffer = [0; 16 * 1024];
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(read) => self.input.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("the broker neither speaks nor closes: {error}"),
            }
        }
    }

    /// Goes away though others hold the same connection.
    pub(crate) fn leave(self) {
        // The broker may have closed it first.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Reads to the end; returns the reason given for it, if there was one.
    pub(crate) fn until_closed(&mut self) -> Option<Error> {
        let mut reason = None;
        while let Some(next) = self.next() {
            if let FrameBody::Close(close) = next.body {
                reason = close.error.map(|error| *error);
                // Agreed; otherwise the broker waits for it a while. It may be gone already.
                let _ = self.write(&frame(FrameBody::Close(Close { error: None })));
            }
        }
        reason
    }
}
