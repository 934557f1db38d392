//! What the clients did and what they were told, in the order of the broker's steps.
//!
//! Checkers see nothing else. A call that was never answered may or may not have happened. Everything
//! told in one step happened at the same moment as far as different clients are concerned: between two
//! of them "later" means a later step.

use std::collections::BTreeMap;
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{EntityId, LockToken, MailboxId, Sequence, Span, Timestamp};

/// A call of a client, numbered over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// A receiver: the connection's number and the link's.
pub type LinkId = (u32, u32);

/// Everything that happened in a run, and what there is to know beforehand.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// What happened, in order.
    pub entries: Vec<Entry>,
    /// Every message a client ever tried to send.
    pub mails: BTreeMap<u64, Mail>,
    /// What is promised about the queues and subscriptions.
    pub boxes: BTreeMap<EntityId, BoxRules>,
    /// What receivers want, other than everything.
    pub wishes: BTreeMap<LinkId, Wish>,
}

/// What a receiver wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// Only messages of this kind.
    pub kind: Option<u8>,
    /// Only messages of this level or higher.
    pub min_level: u8,
    /// Messages of another queue if the first has none.
    pub ordered: bool,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The broker's step.
    pub step: u64,
    /// The broker's time, which never goes back while it runs.
    pub clock: Timestamp,
    /// What it was.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum What {
    /// A client asked for something.
    Invoke { id: CallId, peer: u32, call: Call },
    /// The broker answered.
    Return { id: CallId, outcome: Outcome },
    /// The broker sent a message.
    Deliver { link: LinkId, mode: ReceiveMode, seen: Seen },
    /// A receive-and-delete link may be sent this many messages in all.
    Allow { link: LinkId, entity: EntityId, limit: u32 },
    /// The broker learned that a receiver is gone, or ended it.
    LinkEnded { link: LinkId },
    /// A message was delivered whose bytes could not be read, so that nobody has seen it.
    Unread,
    /// The broker learned that a connection is gone.
    Closed { peer: u32 },
    /// The broker died.
    Crash,
    /// The broker is back.
    Restart,
    /// Faults are over; everything must drain.
    DrainBegins,
    /// Draining has ended with so many messages left.
    DrainEnds { left: u64 },
}

/// What a client asked for.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Call {
    Send {
        mails: Vec<u64>,
        transaction: Option<u128>,
    },
    Cancel {
        mails: Vec<u64>,
    },
    Settle {
        how: How,
        target: Target,
        transaction: Option<u128>,
    },
    Renew {
        target: Target,
    },
    /// With the message, if it is removed by being read.
    ReceiveDeferred {
        entity: EntityId,
        sequence: Sequence,
        removes: Option<u64>,
    },
    Accept {
        mailbox: MailboxId,
        link: u32,
    },
    RenewSession {
        mailbox: MailboxId,
        session: String,
    },
    SetState {
        mailbox: MailboxId,
        session: String,
        value: Option<u64>,
    },
    GetState {
        mailbox: MailboxId,
        session: String,
    },
    Declare,
    Discharge {
        transaction: u128,
        rollback: bool,
    },
    Attach,
    Administer,
    Reprioritise,
    DeleteMessages,
    Peek,
}

/// A locked message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Where it is.
    pub mailbox: MailboxId,
    /// Its number there.
    pub sequence: Sequence,
    /// Which message it is.
    pub mail: u64,
    /// The lock.
    pub token: LockToken,
}

/// How a message is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each variant is the settlement of the same name")]
pub enum How {
    Complete,
    Abandon,
    Release,
    Suspend,
    Defer,
    DeadLetter,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is the answer of the same name")]
pub enum Outcome {
    Done,
    Sent(Vec<Sequence>),
    Until(Timestamp),
    Received(usize),
    Session {
        session: String,
        until: Timestamp,
    },
    Declared(u128),
    State(Option<u64>),
    Peeked(Vec<Sequence>),
    Count(u32),
    /// Not done, for this reason.
    Refused(String),
}

/// A message as a client tried to send it.
#[derive(Debug, Clone, PartialEq)]
pub struct Mail {
    /// The queues and subscriptions it must come to.
    pub targets: Vec<EntityId>,
    /// Its message id.
    pub message_id: Option<u64>,
    /// Its session.
    pub session: Option<String>,
    /// Its level.
    pub level: u8,
    /// Its kind, which filters can see.
    pub kind: u8,
    /// How long it lives.
    pub time_to_live: Option<Span>,
    /// Not before this time.
    pub scheduled: Option<Timestamp>,
}

/// A message as it was delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Which one it is; none if its bytes are not what anybody sent.
    pub mail: Option<u64>,
    /// Where it was.
    pub mailbox: MailboxId,
    /// Its number there.
    pub sequence: Sequence,
    /// Its level.
    pub level: u8,
    /// How many deliveries failed before.
    pub deliveries: u32,
    /// When it became part of the entity.
    pub enqueued: Timestamp,
    /// The lock and its end.
    pub lock: Option<(LockToken, Timestamp)>,
    /// Why it was dead-lettered.
    pub reason: Option<String>,
    /// Whether it was received by its number.
    pub deferred: bool,
}

/// What is promised about a queue or subscription.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a promise of its own")]
pub struct BoxRules {
    /// How long locks last.
    pub lock: Span,
    /// Failed deliveries after which a message is dead-lettered.
    pub deliveries_max: u32,
    /// Whether messages come in sessions.
    pub sessions: bool,
    /// How long message ids are remembered.
    pub window: Option<Span>,
    /// Whether a higher level is always first.
    pub strict: bool,
    /// Whether messages of one level come in the order of their time.
    pub in_line: bool,
    /// Whether messages are received and deleted, and may be lost on the way.
    pub lossy: bool,
    /// Whether expired messages are dead-lettered.
    pub keeps_expired: bool,
}

impl History {
    /// The rules of the entity a mailbox is of.
    #[must_use]
    pub fn rules(&self, mailbox: MailboxId) -> Option<&BoxRules> {
        self.boxes.get(&mailbox.entity())
    }

    /// Deliveries with their places in the history.
    pub fn deliveries(&self) -> impl Iterator<Item = (usize, &Entry, LinkId, ReceiveMode, &Seen)> {
        self.entries.iter().enumerate().filter_map(|(place, entry)| match &entry.what {
            What::Deliver { link, mode, seen } => Some((place, entry, *link, *mode, seen)),
            _ => None,
        })
    }
}
