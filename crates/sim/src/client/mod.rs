//! Clients: small machines that ask, hear answers, and know only what they heard.

mod operator;
mod receive;
mod send;
mod session;
mod transact;

use crate::history::{Call, History, Mail, Outcome, Seen, Target};
use crate::topology::Topology;
use std::collections::BTreeMap;
use vorrang_broker::api::{Link, Operation};
use vorrang_engine::{EntityId, Sequence, Timestamp};
use vorrang_log::dice::Dice;

/// What a client does for a living.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Sends, schedules, cancels.
    Sender,
    /// Receives and settles.
    Receiver,
    /// Holds sessions.
    SessionHolder,
    /// Sends and settles in transactions.
    Transactor,
    /// Creates, changes and deletes entities.
    Operator,
}

/// The roles in the order of [`Plan::clients`](crate::plan::Plan).
pub(crate) const ROLES: [Role; 5] =
    [Role::Sender, Role::Receiver, Role::SessionHolder, Role::Transactor, Role::Operator];

/// Something a client asks for.
#[derive(Debug)]
pub(crate) struct Ask {
    /// The client's number for it; none if it is not answered.
    pub(crate) tag: u32,
    /// What goes to the broker.
    pub(crate) operation: Operation,
    /// What goes into the history; none if it is not answered.
    pub(crate) call: Option<Call>,
}

/// What a client hears.
#[derive(Debug, Clone)]
pub(crate) enum Heard {
    Answer { tag: u32, outcome: Outcome },
    Deliver { link: u32, seen: Seen },
    Detached { link: u32 },
}

/// What clients can look at while they act.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    /// Their own clock.
    pub(crate) now: Timestamp,
    /// The entities.
    pub(crate) topology: &'a Topology,
    /// Where new messages are registered.
    pub(crate) history: &'a mut History,
    /// The last number given to a message or a value.
    pub(crate) last: &'a mut u64,
    /// What was asked.
    pub(crate) asks: Vec<Ask>,
}

impl Scene<'_> {
    fn number(&mut self) -> u64 {
        *self.last += 1;
        *self.last
    }

    /// Registers a message before it is sent.
    fn register(&mut self, mail: Mail) -> u64 {
        let number = self.number();
        self.history.mails.insert(number, mail);
        number
    }
}

/// A receiver a client has open.
#[derive(Debug, Default)]
struct Line {
    received: u32,
    limit: u32,
    session: Option<String>,
}

/// A transaction a client has open.
#[derive(Debug, Clone, Copy)]
struct Work {
    id: u128,
    parts: u32,
    answered: u32,
    spoilt: bool,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    /// What it does.
    pub(crate) role: Role,
    /// Its connection, while it has one.
    pub(crate) peer: Option<u32>,
    dice: Dice,
    tags: u32,
    links: u32,
    calls: BTreeMap<u32, Call>,
    lines: BTreeMap<u32, Line>,
    held: Vec<Target>,
    settled: Vec<Target>,
    deferred: Vec<(EntityId, Sequence, u64)>,
    /// Scheduled messages on their way in, and where they were sent.
    sleeping: BTreeMap<u64, EntityId>,
    scheduled: Vec<(EntityId, Sequence, u64)>,
    work: Option<Work>,
}

impl Client {
    /// A client that is not connected.
    #[must_use]
    pub(crate) fn new(role: Role, dice: Dice) -> Client {
        Client {
            role,
            peer: None,
            dice,
            tags: 0,
            links: 0,
            calls: BTreeMap::new(),
            lines: BTreeMap::new(),
            held: Vec::new(),
            settled: Vec::new(),
            deferred: Vec::new(),
            sleeping: BTreeMap::new(),
            scheduled: Vec::new(),
            work: None,
        }
    }

    /// Does the next thing.
    pub(crate) fn act(&mut self, scene: &mut Scene<'_>) {
        match self.role {
            Role::Sender => self.send_something(scene),
            Role::Receiver => self.receive_something(scene),
            Role::SessionHolder => self.use_sessions(scene),
            Role::Transactor => self.transact(scene),
            Role::Operator => self.administer(scene),
        }
    }

    /// Forgets the connection and all that was on its way; locks may still be good elsewhere.
    pub(crate) fn lose_connection(&mut self) {
        self.peer = None;
        self.calls.clear();
        self.lines.clear();
        self.sleeping.clear();
        self.work = None;
    }

    /// Takes in what the broker said. Says what the message is received on, if it is one.
    pub(crate) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Deliver { link, seen } => {
                if let Some(line) = self.lines.get_mut(&link) {
                    line.received += 1;
                }
                self.hold(&seen);
            }
            Heard::Detached { link } => drop(self.lines.remove(&link)),
            Heard::Answer { tag, outcome } => {
                if let Some(call) = self.calls.remove(&tag) {
                    self.answered(call, outcome);
                }
            }
        }
    }

    fn hold(&mut self, seen: &Seen) {
        if let (Some((token, _)), Some(mail)) = (seen.lock, seen.mail) {
            self.held.push(Target { mailbox: seen.mailbox, sequence: seen.sequence, mail, token });
        }
    }

    fn answered(&mut self, call: Call, outcome: Outcome) {
        let refused = matches!(outcome, Outcome::Refused(_));
        if let (
            Call::Send { transaction: Some(_), .. } | Call::Settle { transaction: Some(_), .. },
            Some(work),
        ) = (&call, &mut self.work)
        {
            work.answered += 1;
            work.spoilt |= refused;
        }
        match (call, outcome) {
            (Call::Attach | Call::Accept { .. }, Outcome::Refused(_)) => {
                self.lines.retain(|_, line| line.session.is_some());
            }
            (Call::Accept { link, .. }, Outcome::Session { session, .. }) => {
                if let Some(line) = self.lines.get_mut(&link) {
                    line.session = Some(session);
                }
            }
            (Call::Send { mails, transaction: None }, Outcome::Sent(numbers)) => {
                if let ([mail], [number]) = (&mails[..], &numbers[..])
                    && let Some(entity) = self.sleeping.remove(mail)
                {
                    self.scheduled.push((entity, *number, *mail));
                }
            }
            (Call::Settle { how: crate::history::How::Defer, target, transaction: None }, Outcome::Done) => {
                self.deferred.push((target.mailbox.entity(), target.sequence, target.mail));
            }
            (Call::Declare, Outcome::Declared(id)) => {
                self.work = Some(Work { id, parts: 0, answered: 0, spoilt: false });
            }
            _ => {}
        }
    }

    /// Asks for something that is answered.
    fn ask(&mut self, scene: &mut Scene<'_>, operation: Operation, call: Call) {
        self.tags += 1;
        self.calls.insert(self.tags, call.clone());
        scene.asks.push(Ask { tag: self.tags, operation, call: Some(call) });
    }

    /// Says something that is not answered.
    fn say(&mut self, scene: &mut Scene<'_>, operation: Operation) {
        self.tags += 1;
        scene.asks.push(Ask { tag: self.tags, operation, call: None });
    }

    fn new_link(&mut self) -> Link {
        self.links += 1;
        Link(self.links)
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.dice.below(one_in) == 0
    }

    fn waits_for(&self, wanted: impl Fn(&Call) -> bool) -> bool {
        self.calls.values().any(wanted)
    }
}
