//! Everything that can be asked of a namespace.
//!
//! Entities are named by the number that a look-up in the catalogue gave at attach, so that the hot
//! commands carry no text. A command that is answered carries the caller's [`RequestTag`]; the answer
//! is an [`Effect::Reply`](crate::Effect::Reply) with that tag, or the [`Refusal`](crate::Refusal)
//! that `decide` returns. Questions that change nothing (peek, list, show, explain, counts) are
//! methods of [`State`](crate::State) and not commands.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;
use vorrang_filter::Filter;

use crate::entity;
use crate::fact::Fact;
use crate::id::{
    EntityId, Location, LockToken, MailboxId, ReceiverId, Region, RequestTag, RunId, Sequence, SessionId,
    TransactionId,
};
use crate::level::Level;
use crate::message::{Incoming, Overlay};
use crate::payloads::ColdRecord;
use crate::time::{Span, Timestamp};

/// A request, or an event that the shard reports.
#[derive(Debug, Clone)]
pub enum Command {
    /// Begins an empty namespace. The seed is secret: lock tokens are made from it.
    Create {
        /// Random, chosen once for the life of the namespace.
        seed: u128,
    },
    /// Sets the clock ahead, for tests that do not want to wait.
    Advance {
        /// Where the answer goes.
        request: RequestTag,
        /// By how much more than before.
        by: Span,
    },
    /// Puts another state in place of this one, all or nothing. Every receiver is gone with the old one.
    Replace {
        /// Where the answer goes.
        request: RequestTag,
        /// The other state as a snapshot tells it, with payloads where they lie now; nothing for none.
        parts: Vec<Fact>,
    },
    /// Says that the state was rebuilt after a restart: every connection is gone, and with them the
    /// session locks. Must come once, before any other command, after every replay.
    Recover,
    /// Creates, changes or deletes an entity or a rule.
    Administer {
        /// Where the answer goes.
        request: RequestTag,
        /// What to change.
        change: Box<entity::Request>,
    },

    /// Sends messages: all or none.
    Send(Send),
    /// Takes back scheduled messages: all or none.
    Cancel {
        /// Where the answer goes.
        request: RequestTag,
        /// The queue or topic they were scheduled at.
        entity: EntityId,
        /// Their numbers.
        sequences: Vec<Sequence>,
    },

    /// Attaches a receiver.
    Attach(Box<Attach>),
    /// Attaches a receiver to a session, waiting for one if need be.
    AcceptSession(Box<AcceptSession>),
    /// Says how many messages a receiver may be sent now, replacing what was said before.
    Credit {
        /// The receiver.
        receiver: ReceiverId,
        /// How many.
        credit: u32,
        /// Whether credit that finds no message is to be given back at once.
        drain: bool,
    },
    /// Closes a receiver, or stops waiting for a session. Message locks stay; a session lock ends.
    Detach {
        /// The receiver.
        receiver: ReceiverId,
    },
    /// Hands the next message to the next receiver, or serves whoever else is next in line: a client
    /// that waits for a session, an entity that forwards, a receiver that drains. The shard repeats
    /// this while [`State::has_deliverable`](crate::State::has_deliverable).
    Deliver,

    /// Settles locked messages: all or none.
    Settle(Settle),
    /// Renews message locks: all or none.
    Renew {
        /// Where the answer goes.
        request: RequestTag,
        /// The mailbox the locks are in.
        mailbox: MailboxId,
        /// The locks.
        tokens: SmallVec<[LockToken; 1]>,
    },
    /// Receives deferred messages by number: all or none.
    ReceiveDeferred {
        /// Where the answer goes.
        request: RequestTag,
        /// The mailbox they are in.
        mailbox: MailboxId,
        /// Their numbers.
        sequences: Vec<Sequence>,
        /// Whether to lock or remove them.
        mode: ReceiveMode,
        /// The receiver that holds the messages' session, where they have one.
        receiver: Option<ReceiverId>,
    },
    /// Renews a session lock.
    RenewSession {
        /// Where the answer goes.
        request: RequestTag,
        /// The mailbox.
        mailbox: MailboxId,
        /// The session.
        session: SessionId,
        /// Who claims to hold it.
        receiver: ReceiverId,
    },
    /// Sets or clears a session's state.
    SetSessionState {
        /// Where the answer goes.
        request: RequestTag,
        /// The mailbox.
        mailbox: MailboxId,
        /// The session.
        session: SessionId,
        /// Who claims to hold it.
        receiver: ReceiverId,
        /// The new state; none clears it.
        state: Option<Bytes>,
    },

    /// Begins a transaction.
    Declare {
        /// Where the answer goes.
        request: RequestTag,
    },
    /// Ends a transaction.
    Discharge {
        /// Where the answer goes; none when nobody waits because the connection is gone.
        request: Option<RequestTag>,
        /// The transaction.
        transaction: TransactionId,
        /// Whether to undo instead of commit.
        rollback: bool,
    },

    /// Deletes waiting messages without delivering them.
    DeleteMessages {
        /// Where the answer goes.
        request: RequestTag,
        /// The mailbox.
        mailbox: MailboxId,
        /// Which of them.
        selection: Selection,
        /// Only those enqueued before this time.
        before: Timestamp,
        /// At most so many.
        max: u32,
    },
    /// Gives waiting messages another level, and with it another lane.
    Reprioritise {
        /// Where the answer goes.
        request: RequestTag,
        /// The mailbox.
        mailbox: MailboxId,
        /// Which of them.
        selection: Selection,
        /// Their new level.
        level: Level,
        /// At most so many.
        max: u32,
        /// Only count what would change.
        dry_run: bool,
    },

    /// Moves a waiting message, as it is or repaired, out of its mailbox and back to work.
    Replay(Box<Replay>),

    /// Time has passed: handles the next thing that has become due. The shard repeats this while
    /// [`State::next_deadline`](crate::State::next_deadline) is not in the future.
    Tick,

    /// Payloads were copied elsewhere by the shard, sorted for reading.
    Move {
        /// The messages and their new places.
        moves: Vec<Relocation>,
    },
    /// The front of a lane was written to disk as a run; its records leave memory.
    Chill(Box<Chill>),
    /// Notes that somebody has looked at an entity, which keeps it from deleting itself.
    Use {
        /// The entity.
        entity: EntityId,
    },
    /// Takes over a run that was written to disk again.
    Rehouse(Rehouse),
    /// The records that an [`Effect::Warm`](crate::Effect::Warm) asked for.
    Warm {
        /// The run.
        run: RunId,
        /// The position of the first record in it.
        from: u32,
        /// The records, in order.
        records: Vec<ColdRecord>,
    },
}

/// Messages on their way in.
#[derive(Debug, Clone)]
pub struct Send {
    /// Where the answer goes.
    pub request: RequestTag,
    /// The queue or topic they are for.
    pub entity: EntityId,
    /// The entity they pass on their way, which keeps them if they cannot be handed over.
    pub via: Option<EntityId>,
    /// The transaction they belong to.
    pub transaction: Option<TransactionId>,
    /// The messages, in order.
    pub messages: SmallVec<[Incoming; 1]>,
}

/// How a receiver takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReceiveMode {
    /// Locked until settled.
    PeekLock,
    /// Removed before they are sent.
    ReceiveAndDelete,
}

/// A receiver to attach.
#[derive(Debug, Clone)]
pub struct Attach {
    /// Where the answer goes.
    pub request: RequestTag,
    /// The number the shard gave it, never used before.
    pub receiver: ReceiverId,
    /// Where it receives from. Several mailboxes are served strictly in this order.
    pub mailboxes: SmallVec<[MailboxId; 1]>,
    /// How it takes messages.
    pub mode: ReceiveMode,
    /// Only messages of this level or higher.
    pub min_level: Level,
    /// Only messages that match.
    pub selector: Option<Arc<Filter>>,
}

/// A session to attach a receiver to.
#[derive(Debug, Clone)]
pub struct AcceptSession {
    /// Where the answer goes.
    pub request: RequestTag,
    /// The number the shard gave the receiver, never used before.
    pub receiver: ReceiverId,
    /// The entity's mailbox.
    pub mailbox: MailboxId,
    /// The session; none for the next that is free and has messages.
    pub session: Option<SessionId>,
    /// How it takes messages.
    pub mode: ReceiveMode,
    /// How long to wait for one.
    pub wait: Span,
}

/// Locked messages, and what to do with them.
#[derive(Debug, Clone)]
pub struct Settle {
    /// Where the answer goes.
    pub request: RequestTag,
    /// The mailbox the locks are in.
    pub mailbox: MailboxId,
    /// The locks.
    pub tokens: SmallVec<[LockToken; 1]>,
    /// What to do.
    pub settlement: Settlement,
    /// The transaction this belongs to.
    pub transaction: Option<TransactionId>,
}

/// The ways a delivery can end.
#[derive(Debug, Clone, PartialEq)]
pub enum Settlement {
    /// It is done: delete the message.
    Complete,
    /// It failed: give the message back, count a delivery.
    Abandon {
        /// Property changes to keep with the message.
        changes: Option<Arc<Overlay>>,
        /// How long to wait before the next attempt.
        delay: Option<Span>,
    },
    /// It was not looked at: give the message back as it was.
    Release,
    /// It was interrupted for something more urgent: give the message back, count nothing, and keep
    /// what the worker wants to find when it resumes.
    Suspend {
        /// The checkpoint.
        checkpoint: Option<Arc<Overlay>>,
    },
    /// Put it aside, to be received by its number.
    Defer {
        /// Property changes to keep with the message.
        changes: Option<Arc<Overlay>>,
    },
    /// It cannot be processed: move it to the dead-letter queue.
    DeadLetter {
        /// Why.
        reason: Option<Arc<str>>,
        /// More about it.
        description: Option<Arc<str>>,
        /// Property changes to keep with the message.
        changes: Option<Arc<Overlay>>,
    },
}

/// Which waiting messages an operation is about.
#[derive(Debug, Clone)]
pub enum Selection {
    /// All of them.
    All,
    /// Those of one session.
    Session(SessionId),
    /// These.
    Sequences(Vec<Sequence>),
    /// Those that match, looked for from this number on.
    Filter {
        /// The condition.
        filter: Arc<Filter>,
        /// Where to begin.
        from: Sequence,
    },
}

/// A message to move out of a dead-letter queue, and what it shall be where it goes.
///
/// Answered by [`Reply::Sent`](crate::Reply::Sent) with its new number; with none if the message lies on
/// disk, is being read now, and must be asked for again.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Where the answer goes.
    pub request: RequestTag,
    /// Where it is.
    pub mailbox: MailboxId,
    /// Its number there. Nobody may have it locked.
    pub sequence: Sequence,
    /// The queue or topic it goes to, or the subscription whose dead letter it is.
    pub to: EntityId,
    /// What is stored there. Its priority and schedule are not looked at.
    pub message: Incoming,
    /// Another level than it has.
    pub level: Option<Level>,
}

/// A payload's new place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Where the message is.
    pub mailbox: MailboxId,
    /// Its number.
    pub sequence: Sequence,
    /// Where its bytes were; a message that has moved on meanwhile is left alone.
    pub from: Location,
    /// Where they are now.
    pub to: Location,
}

/// The rest of a run that was written to disk again, in another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rehouse {
    /// The run as it was.
    pub run: RunId,
    /// How many of its records had come back then.
    pub consumed: u32,
    /// How many messages were left then. If anything has come back since, the run stays where it is.
    pub left: u32,
    /// The run as it is now, with those that were left and nothing else.
    pub to: RunId,
    /// Where their payloads lie now.
    pub region: Region,
}

/// A stretch of a lane that was written to disk. What has changed since stays in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chill {
    /// The mailbox.
    pub mailbox: MailboxId,
    /// The lane.
    pub level: Level,
    /// The run's number, never used before; the following ones are those of its later records.
    pub run: RunId,
    /// The messages in lane order, with the places their payloads have now.
    pub records: Vec<ColdRecord>,
}
