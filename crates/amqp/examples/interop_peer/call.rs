//! The connecting role: a fixed conversation with a server that keeps messages per address.
//!
//! Each step prints one line when the server has confirmed it, so a test reads what happened and the last line
//! before a failure says how far it came.

use std::net::TcpStream;

use bytes::Bytes;
use vorrang_amqp::connection::{
    ClientConfig, Closed, Connection, Delivery, Event, LinkEnding, LinkId, Login, Millis, Outgoing,
    OwnAttach, SendError, SessionId,
};
use vorrang_amqp::message::{Message, put_data};
use vorrang_amqp::performative::{
    DeliveryState, Error, Modified, Outcome, ReceiverSettleMode, Role, SenderSettleMode, Source, Target,
    TargetNode,
};
use vorrang_amqp::sasl_plain::PlainCredentials;
use vorrang_amqp::value::MapBuilder;
use vorrang_amqp::{Symbol, Text, Value};

use crate::shell::Shell;
use crate::{Result, limits};

const ADDRESS: &str = "echo";
/// Beyond the frame limit of both sides many times over.
const LARGE_BYTES: usize = 100_000;

/// Talks to the server at `port` on this machine, as `login` if given.
pub(crate) fn run(port: &str, login: Option<(&str, &str)>) -> Result<()> {
    let socket = TcpStream::connect(("127.0.0.1", port.parse()?))?;
    socket.set_nodelay(true)?;
    let mut config = ClientConfig::new("interop-peer");
    config.hostname = Some(Text::from("localhost"));
    if let Some((user, password)) = login {
        let (user, password) = (Text::from(user), Text::from(password));
        config.login =
            Login::Plain(PlainCredentials { authorization_identity: Text::from(""), user, password });
    }
    let mut caller = Caller { shell: Shell::new(Connection::client(config, limits(), Millis(0)), socket) };
    let session = caller.open()?;
    caller.send_all(session)?;
    caller.receive_all(session)?;
    caller.be_refused(session)?;
    caller.close(session)
}

struct Caller {
    shell: Shell,
}

impl Caller {
    fn open(&mut self) -> Result<SessionId> {
        let opened = self.expect("an open", |event| match event {
            Event::Opened(open) => Some(open.container_id.as_str().to_owned()),
            _ => None,
        })?;
        println!("opened by {opened}");
        Ok(self.shell.connection.begin()?)
    }

    /// Sends four messages of growing size, the last one settled.
    fn send_all(&mut self, session: SessionId) -> Result<()> {
        let mut attach = OwnAttach::new("interop-sender", Role::Sender);
        attach.source = Some(Source::at("interop-peer"));
        attach.target = Some(TargetNode::Node(Target::at(ADDRESS)));
        let link = self.attach(session, attach)?;
        println!("attached sender");
        for (tag, (name, length, settled)) in (1..).zip(messages()) {
            self.send(link, tag, &payload(name, length), settled)?;
            if settled {
                println!("sent {name} settled");
                continue;
            }
            let outcome = self.expect("an outcome", |event| match event {
                Event::Settlement(settlement) if settlement.link == link => Some(settlement.state),
                _ => None,
            })?;
            println!("sent {name}: {}", name_of(outcome.as_deref()));
        }
        self.detach(link)?;
        println!("detached sender");
        Ok(())
    }

    fn send(&mut self, link: LinkId, tag: u64, payload: &Bytes, settled: bool) -> Result<()> {
        loop {
            let outgoing = Outgoing {
                tag: tag.into(),
                message_format: 0,
                settled,
                state: None,
                head: &[],
                tail: payload,
                key: 0,
            };
            match self.shell.connection.send(link, &outgoing) {
                Ok(_) => return Ok(()),
                Err(SendError::NoCredit | SendError::WindowClosed) => {
                    self.expect("credit or a window", |event| match event {
                        Event::Credit { credit: 1.., .. } | Event::WindowOpened { .. } => Some(()),
                        _ => None,
                    })?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives the messages again, gives each another outcome, and drains.
    fn receive_all(&mut self, session: SessionId) -> Result<()> {
        let mut filter = MapBuilder::default();
        filter.push_symbol(
            "selector",
            &Value::described(
                Symbol::from("apache.org:selector-filter:string"),
                Value::from("color = 'red'"),
            ),
        );
        let mut attach = OwnAttach::new("interop-receiver", Role::Receiver);
        attach.source = Some(Source { filter: Some(filter.finish()), ..Source::at(ADDRESS) });
        attach.target = Some(TargetNode::Node(Target::at("interop-peer")));
        attach.snd_settle_mode = Some(SenderSettleMode::Unsettled);
        attach.rcv_settle_mode = Some(ReceiverSettleMode::First);
        let link = self.attach(session, attach)?;
        println!("attached receiver");

        let outcomes = [
            Outcome::Accepted,
            Outcome::Released,
            Outcome::Modified(Modified { delivery_failed: Some(true), ..Modified::default() }),
            Outcome::rejected(Error::new("amqp:precondition-failed", "for the sake of it")),
        ];
        for ((name, length, _), outcome) in messages().into_iter().zip(outcomes) {
            self.shell.connection.grant(link, 1)?;
            let delivery = self.delivery(link)?;
            check(&delivery, name, length)?;
            println!("received {name}: {}", name_of(Some(&outcome.clone().into())));
            self.shell.connection.settle(link, delivery.delivery, outcome.into())?;
        }
        self.shell.connection.grant(link, 10)?;
        self.shell.connection.drain(link)?;
        self.expect("the end of the drain", |event| match event {
            Event::Drained { link: drained } if drained == link => Some(()),
            _ => None,
        })?;
        println!("drained");
        self.detach(link)?;
        println!("detached receiver");
        Ok(())
    }

    /// Asks for a link that the server does not want.
    fn be_refused(&mut self, session: SessionId) -> Result<()> {
        let mut attach = OwnAttach::new("interop-refused", Role::Receiver);
        attach.source = Some(Source::at("refused"));
        attach.target = Some(TargetNode::Node(Target::at("interop-peer")));
        let link = self.shell.connection.attach(session, attach)?;
        let condition = self.expect("a refusal", |event| match event {
            Event::LinkEnded { link: ended, ending: LinkEnding::Peer { error, .. } } if ended == link => {
                Some(error.map(|error| error.condition.as_str().to_owned()))
            }
            _ => None,
        })?;
        println!("refused: {}", condition.unwrap_or_default());
        Ok(())
    }

    fn close(&mut self, session: SessionId) -> Result<()> {
        self.shell.connection.end(session, None)?;
        self.expect("the end of the session", |event| match event {
            Event::SessionEnded { .. } => Some(()),
            _ => None,
        })?;
        println!("ended");
        self.shell.connection.close(None)?;
        self.expect("the end of the connection", |event| match event {
            Event::Closed(Closed::Own) => Some(()),
            _ => None,
        })?;
        println!("closed");
        Ok(())
    }

    fn attach(&mut self, session: SessionId, attach: OwnAttach) -> Result<LinkId> {
        let link = self.shell.connection.attach(session, attach)?;
        self.expect("an attach", |event| match event {
            Event::Attached { link: attached, .. } if attached == link => Some(()),
            _ => None,
        })?;
        Ok(link)
    }

    fn detach(&mut self, link: LinkId) -> Result<()> {
        self.shell.connection.detach(link, true, None)?;
        self.expect("a detach", |event| match event {
            Event::LinkEnded { link: ended, ending: LinkEnding::Own } if ended == link => Some(()),
            _ => None,
        })
    }

    fn delivery(&mut self, link: LinkId) -> Result<Delivery> {
        self.expect("a delivery", |event| match event {
            Event::Delivery(delivery) if delivery.link == link => Some(delivery),
            _ => None,
        })
    }

    /// Waits for the event that `choose` wants. The end of the connection or of a link is what it is not.
    fn expect<T>(&mut self, what: &str, mut choose: impl FnMut(Event) -> Option<T>) -> Result<T> {
        while let Some(event) = self.shell.next_event()? {
            let unexpected = match &event {
                Event::Closed(closed) => Some(format!("{closed:?}")),
                Event::LinkEnded { ending, .. } => Some(format!("{ending:?}")),
                _ => None,
            };
            if let Some(found) = choose(event) {
                return Ok(found);
            }
            if let Some(unexpected) = unexpected {
                return Err(format!("expected {what}, got {unexpected}").into());
            }
        }
        Err(format!("expected {what}, got the end of the connection").into())
    }
}

/// Name, length and whether it is sent settled.
fn messages() -> [(&'static str, usize, bool); 4] {
    [("empty", 0, false), ("small", 10, false), ("large", LARGE_BYTES, false), ("last", 20, true)]
}

/// A message whose data tells it from the others.
fn payload(name: &str, length: usize) -> Bytes {
    let mut encoded = Vec::new();
    put_data(&mut encoded, &body(name, length));
    encoded.into()
}

fn body(name: &str, length: usize) -> Vec<u8> {
    name.bytes().cycle().take(length).collect()
}

fn check(delivery: &Delivery, name: &str, length: usize) -> Result<()> {
    let message = Message::parse(delivery.payload.clone())?;
    let data: Vec<u8> = message.data().flatten().collect();
    if data == body(name, length) {
        return Ok(());
    }
    Err(format!("expected {length} bytes of '{name}', got {} others", data.len()).into())
}

fn name_of(state: Option<&DeliveryState>) -> &'static str {
    match state.and_then(DeliveryState::outcome) {
        Some(Outcome::Accepted) => "accepted",
        Some(Outcome::Rejected { .. }) => "rejected",
        Some(Outcome::Released) => "released",
        Some(Outcome::Modified(_)) => "modified",
        None => "no outcome",
    }
}
