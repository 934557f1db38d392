//! What a door is told.

use super::develop::{Captured, Fault};
use super::request::{Link, Purpose, Tag};
use crate::access::Denied;
use crate::shard::Body;
use bytes::Bytes;
use std::sync::Arc;
use vorrang_engine::browse::Peeked;
use vorrang_engine::entity::{Entity, EntityPath};
use vorrang_engine::explain::Explanation;
use vorrang_engine::survey::Survey;
use vorrang_engine::{Counts, Delivery, EntityId, MailboxId, Refusal, Reply, SessionId, Span, Timestamp};
use vorrang_log::{NoRoom, Pressure};

/// Something that happened, for one connection.
#[derive(Debug)]
pub enum Event {
    /// Sends were accepted, all with these consecutive tags.
    Accepted {
        /// The first.
        first: Tag,
        /// How many.
        count: u32,
    },
    /// A request was carried out.
    Reply {
        /// The request.
        tag: Tag,
        /// What came of it.
        reply: Reply,
    },
    /// A question was answered.
    Answer {
        /// The question.
        tag: Tag,
        /// The answer.
        answer: Answer,
    },
    /// A request was not carried out.
    Refused {
        /// The request.
        tag: Tag,
        /// Why.
        refused: Refused,
    },
    /// A message for a receiver.
    Deliver {
        /// The receiver.
        link: Link,
        /// The message.
        delivery: Delivery,
        /// Its bytes, if they are at hand; else the [`PayloadReader`](crate::shard::PayloadReader) has
        /// them.
        body: Option<Body>,
    },
    /// A draining receiver has no more to expect; its credit is given back.
    Drained {
        /// The receiver.
        link: Link,
    },
    /// A receiver was ended by the broker.
    Detached {
        /// The receiver.
        link: Link,
        /// Why.
        refused: Refused,
    },
    /// Keys were changed or taken away that rights of this connection rested on.
    /// [`Keys::left_of`](crate::shard::Keys::left_of) says what is left; receivers are detached by themselves.
    KeysChanged,
    /// Something happened that a watcher wants to know.
    News {
        /// What.
        news: News,
        /// When.
        at: Timestamp,
    },
    /// The shard has stopped: nothing more will come. Requests not answered so far never will be.
    Stopped {
        /// Why.
        reason: Arc<str>,
    },
}

impl Event {
    /// Has the message it brings fetched from memory, if it brings one: said a little before it is written.
    #[inline]
    pub fn fetch(&self) {
        if let Event::Deliver { body: Some(body), .. } = self {
            vorrang_memory::fetch(&body.bytes);
        }
    }
}

/// What a delivery weighs on its way through a connection: its bytes, and what is kept around them.
#[must_use]
pub fn weight(delivery: &Delivery) -> u64 {
    u64::from(delivery.size).saturating_add(256)
}

/// What those are told who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// An entity was created.
    Created(EntityPath),
    /// An entity or its rules were changed.
    Changed(EntityPath),
    /// An entity was deleted, with its subscriptions if it was a topic.
    Deleted(EntityPath),
    /// Messages of an entity were dead-lettered: so many, since this was last told.
    DeadLettered(EntityPath, u64),
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The asker lacks the right.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// It is not possible.
    #[error(transparent)]
    Impossible(#[from] Refusal),
    /// There is nothing at this path. Only those are told who would be allowed to use it.
    #[error("the messaging entity '{path}' could not be found")]
    NotFound {
        /// The path, as it was asked for.
        path: Arc<str>,
    },
    /// Not now: whoever asks again later is served.
    #[error("{why}")]
    Busy {
        /// What there is too much of.
        why: &'static str,
    },
    /// A receiver was ended from outside; another may take its place at once.
    #[error("{why}")]
    Ended {
        /// By what.
        why: &'static str,
    },
    /// What was captured cannot be used, or what was asked of a fault goes too far.
    #[error("{why}")]
    Unusable {
        /// Why, and what would be.
        why: Arc<str>,
    },
    /// There is no room: nothing that grows the backlog is taken until something has left.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// An entity that was looked up.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its number.
    pub entity: EntityId,
    /// The mailbox the path means.
    pub mailbox: MailboxId,
    /// What it was looked up for.
    pub purpose: Purpose,
    /// Everything about it.
    pub description: Arc<Entity>,
}

/// A message that was received.
#[derive(Debug, Clone)]
pub struct Received {
    /// The message.
    pub delivery: Delivery,
    /// Its bytes, if they are at hand; always for one that was removed, unless they cannot be read. Else
    /// the [`PayloadReader`](crate::shard::PayloadReader) has them.
    pub body: Option<Body>,
}

/// How a shard is doing.
#[derive(Debug, Clone)]
pub struct Condition {
    /// When this was so, by the shard's clock.
    pub now: Timestamp,
    /// Connections it serves.
    pub connections: usize,
    /// Message locks that are held.
    pub locks: u32,
    /// Events that wait for the disk.
    pub held_events: usize,
    /// How full the ring is.
    pub ring: Pressure,
    /// Extents that hold messages moved out of the ring.
    pub extents: usize,
    /// Bytes written since the last snapshot began.
    pub bytes_since_snapshot: u64,
    /// When that was.
    pub snapshot_at: Timestamp,
    /// Entries that are safe on disk, since the log was made.
    pub commits: u64,
    /// Whether what grows the backlog is taken, or why not.
    pub room: Result<(), NoRoom>,
}

/// An entity as administrators see it: what it was told to be, and what is counted about it.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Everything about it.
    pub entity: Arc<Entity>,
    /// When it was last used, to the second.
    pub accessed: Timestamp,
    /// Bytes against its quota; a subscription's are counted with its topic.
    pub size: u64,
    /// Messages in its main mailbox; for a topic those that are scheduled.
    pub main: Counts,
    /// Messages in its dead-letter queue.
    pub dead_letter: Counts,
    /// Messages in its transfer dead-letter queue.
    pub transfer_dead_letter: Counts,
    /// Receivers attached to its main mailbox.
    pub receivers: usize,
}

/// Answers to questions.
#[derive(Debug)]
pub enum Answer {
    /// The entity that was looked up.
    Found(Found),
    /// A subscription, asked for its rules.
    Subscription(Arc<Entity>),
    /// Entities, in the order of their names.
    Listed(Vec<Listed>),
    /// How many queues and topics there are.
    Namespace {
        /// Both together.
        entities: usize,
    },
    /// Messages that were looked at.
    Peeked(Peeked),
    /// Why a message waits.
    Explained(Box<Explanation>),
    /// How much there is of everything, and where to go on.
    Surveyed(Survey),
    /// How the shard is doing.
    Condition(Box<Condition>),
    /// The time by the shard's clock.
    Clock {
        /// The time.
        now: Timestamp,
        /// How far it runs ahead of the wall clock.
        ahead: Span,
    },
    /// The whole namespace.
    Captured(Captured),
    /// What goes wrong because somebody wants it to.
    Faults(Vec<Fault>),
    /// A session's state, if it has one.
    SessionState(Option<Bytes>),
    /// Sessions, in the order of their names.
    Sessions(Vec<SessionId>),
    /// Deferred messages, locked or removed, in the order of the numbers asked for.
    Received(Vec<Received>),
}
