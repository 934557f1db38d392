//! The serving role: what is sent to an address waits there for a receiver on the same connection.
//!
//! Some addresses are there to show the other ways a conversation can go:
//!
//! | address | what happens |
//! |---|---|
//! | `refused` | the link is refused with `amqp:not-found` |
//! | `rejecting`, `releasing`, `modifying` | every message sent there gets that outcome |
//! | `detaching` | the first message detaches the link with an error |
//! | `closing` | the first message closes the connection with an error |
//!
//! A receiver's outcomes: accepted and rejected messages are gone, released and modified ones come again.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::thread;

use bytes::Bytes;
use vorrang_amqp::connection::{
    AttachReply, AttachRequest, Connection, Credentials, Delivery, Event, Gone, LinkId, Millis, Outgoing,
    SendError, ServerConfig, Settlement,
};
use vorrang_amqp::performative::{
    DeliveryState, Error, Modified, Outcome, Role, SenderSettleMode, TargetNode,
};

use crate::shell::Shell;
use crate::{Result, limits};

const USER: &str = "guest";
const PASSWORD: &str = "secret";
const CREDIT: u32 = 100;
const MESSAGE_BYTES_MAX: u64 = 1024 * 1024;

/// Serves every connection on a thread of its own until standard input ends.
pub(crate) fn run() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("listening {}", listener.local_addr()?.port());
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || {
                if let Err(error) = converse(socket) {
                    eprintln!("connection ended: {error}");
                }
            });
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn converse(socket: TcpStream) -> Result<()> {
    socket.set_nodelay(true)?;
    let connection = Connection::server(ServerConfig::new("interop-peer"), limits(), Millis(0));
    let mut shell = Shell::new(connection, socket);
    let mut node = Node::default();
    while let Some(event) = shell.next_event()? {
        node.handle(&mut shell.connection, event);
        node.deliver(&mut shell.connection);
    }
    shell.flush()
}

/// The messages and links of one connection.
#[derive(Default)]
struct Node {
    waiting: BTreeMap<String, VecDeque<Bytes>>,
    /// Links the peer sends on, and where to.
    sending: BTreeMap<LinkId, String>,
    /// Links the peer receives on.
    receiving: BTreeMap<LinkId, Outlet>,
    /// Deliveries without an outcome, by the key given to the engine.
    out: BTreeMap<u128, (String, Bytes)>,
    next_key: u128,
}

struct Outlet {
    address: String,
    settled: bool,
    draining: bool,
}

impl Node {
    fn handle(&mut self, connection: &mut Connection, event: Event) {
        // A link or connection that is gone meanwhile says so by an event; there is nothing else to do about it.
        let _gone = match event {
            Event::Credentials(credentials) if is_known(&credentials) => connection.accept_credentials(),
            Event::Credentials(_) => connection.refuse_credentials(),
            Event::Opened(_) => {
                connection.authenticated();
                Ok(())
            }
            Event::Attach(request) => self.attach(connection, *request),
            Event::Delivery(delivery) => self.take(connection, delivery),
            Event::TooLarge { link, delivery, limit, .. } => {
                let text = format!("a message has at most {limit} bytes");
                let error = Error::new("amqp:link:message-size-exceeded", text);
                connection.settle(link, delivery, Outcome::rejected(error).into())
            }
            Event::Credit { link, drain, .. } => {
                if let Some(outlet) = self.receiving.get_mut(&link) {
                    outlet.draining = drain;
                }
                Ok(())
            }
            Event::Settlement(settlement) => self.settle(connection, &settlement),
            Event::LinkEnded { link, .. } => {
                self.sending.remove(&link);
                self.receiving.remove(&link);
                Ok(())
            }
            _ => Ok(()),
        };
    }

    fn attach(
        &mut self,
        connection: &mut Connection,
        request: AttachRequest,
    ) -> std::result::Result<(), Gone> {
        let AttachRequest { link, attach, .. } = request;
        let address = match (attach.role, &attach.source, &attach.target) {
            (Role::Sender, _, Some(TargetNode::Node(target))) => target.address.as_ref(),
            (Role::Receiver, Some(source), _) => source.address.as_ref(),
            _ => None,
        };
        let address = address.map(|text| text.as_str().to_owned()).unwrap_or_default();
        if address == "refused" {
            return connection
                .refuse_attach(link, Error::new("amqp:not-found", "nothing is at this address"));
        }
        let settled = attach.snd_settle_mode == Some(SenderSettleMode::Settled);
        let max_message_size = (attach.role == Role::Sender).then_some(MESSAGE_BYTES_MAX);
        let reply = AttachReply {
            source: attach.source,
            target: attach.target,
            max_message_size,
            ..AttachReply::default()
        };
        connection.accept_attach(link, reply)?;
        match attach.role {
            Role::Sender => {
                self.sending.insert(link, address);
                connection.grant(link, CREDIT)
            }
            Role::Receiver => {
                self.receiving.insert(link, Outlet { address, settled, draining: false });
                Ok(())
            }
        }
    }

    /// Takes a message from the peer and tells its outcome.
    fn take(&mut self, connection: &mut Connection, delivery: Delivery) -> std::result::Result<(), Gone> {
        let link = delivery.link;
        let Some(address) = self.sending.get(&link) else { return Ok(()) };
        let outcome = match address.as_str() {
            "detaching" => {
                let error = Error::new("amqp:resource-limit-exceeded", "this address takes nothing");
                return connection.detach(link, true, Some(error));
            }
            "closing" => {
                return connection.close(Some(Error::new("amqp:connection:forced", "as the address says")));
            }
            "rejecting" => Outcome::rejected(Error::new("amqp:precondition-failed", "as the address says")),
            "releasing" => Outcome::Released,
            "modifying" => Outcome::Modified(Modified { delivery_failed: Some(true), ..Modified::default() }),
            _ => {
                self.waiting.entry(address.clone()).or_default().push_back(delivery.payload);
                Outcome::Accepted
            }
        };
        if !delivery.settled {
            connection.settle(link, delivery.delivery, outcome.into())?;
        }
        connection.grant(link, CREDIT)
    }

    /// Takes the outcomes a receiver told, and confirms those it wants confirmed.
    fn settle(
        &mut self,
        connection: &mut Connection,
        settlement: &Settlement,
    ) -> std::result::Result<(), Gone> {
        let outcome = settlement.state.as_deref().and_then(DeliveryState::outcome);
        // Those that come again take their places in reverse, so that the first is first again.
        for settled in settlement.deliveries.iter().rev() {
            let Some((address, payload)) = self.out.remove(&settled.key) else { continue };
            if matches!(outcome, Some(Outcome::Released | Outcome::Modified(_))) {
                self.waiting.entry(address).or_default().push_front(payload);
            }
        }
        if settlement.settled {
            return Ok(());
        }
        let echo = match outcome {
            Some(Outcome::Rejected { .. }) => Outcome::Rejected { error: None },
            Some(other) => other.clone(),
            None => return Ok(()),
        };
        for settled in &settlement.deliveries {
            connection.settle(settlement.link, settled.delivery, echo.clone().into())?;
        }
        Ok(())
    }

    /// Sends what waits, as far as credit and window reach, and answers drains.
    fn deliver(&mut self, connection: &mut Connection) {
        for (link, outlet) in &mut self.receiving {
            let waiting = self.waiting.entry(outlet.address.clone()).or_default();
            while let Some(payload) = waiting.front() {
                let outgoing = Outgoing {
                    tag: self.next_key.to_be_bytes().into(),
                    message_format: 0,
                    settled: outlet.settled,
                    state: None,
                    head: &[],
                    tail: payload,
                    key: self.next_key,
                };
                match connection.send(*link, &outgoing) {
                    Ok(_) => {}
                    Err(SendError::NoCredit) => break,
                    // The rest follows when the window opens or the output was taken: both bring us back here.
                    Err(_) => return,
                }
                if let Some(payload) = waiting.pop_front().filter(|_| !outlet.settled) {
                    self.out.insert(self.next_key, (outlet.address.clone(), payload));
                }
                self.next_key += 1;
            }
            if outlet.draining && connection.drained(*link).is_ok() {
                outlet.draining = false;
            }
        }
    }
}

fn is_known(credentials: &Credentials) -> bool {
    match credentials {
        Credentials::Plain(plain) => plain.user.as_str() == USER && plain.password.as_str() == PASSWORD,
        Credentials::External { .. } => false,
    }
}
