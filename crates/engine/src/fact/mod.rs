//! What happened: the only thing that changes the state, live and at recovery.
//!
//! A fact carries every outcome of the decision behind it (level, numbers, times, tokens, matched
//! subscriptions), so that applying it never looks at a clock, a policy or a filter, and means the
//! same for ever. The bytes they are written as belong to the shard.
//!
//! A fact about a message names it by mailbox and sequence number. A fact that does not fit the state
//! is ignored and counted, see [`State::misfits`](crate::State::misfits).

mod arrival;
mod restored;

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::command::{Attach, Relocation, Send, Settle};
use crate::entity::{self, Entity};
use crate::id::{
    EntityId, LockToken, MailboxId, ReceiverId, Region, RequestTag, RunId, Sequence, SessionId, TransactionId,
};
use crate::level::Level;
use crate::message::Overlay;
use crate::payloads::ColdRecord;
use crate::refusal::Refusal;
use crate::time::{Span, Timestamp};

pub use crate::command::ReceiveMode;
pub use arrival::{Arrival, Details, Payload};
pub use restored::{RestoredGaps, RestoredMailbox, RestoredMessage, RestoredRun, RestoredSession, Standing};

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Fact {
    /// The namespace began.
    Created {
        /// What lock tokens are made from.
        seed: u128,
        /// When.
        at: Timestamp,
    },
    /// The state was rebuilt after a restart. Tokens made from now on differ from all before, also
    /// from those whose locks were not written down in time.
    Recovered {
        /// The number of restarts so far.
        generation: u64,
        /// When.
        at: Timestamp,
    },
    /// An entity or rule was created, changed or deleted.
    Administered {
        /// What.
        change: Box<entity::Change>,
        /// When.
        at: Timestamp,
    },

    /// A message entered a queue.
    Enqueued {
        /// Its bytes.
        payload: Payload,
        /// Its place.
        arrival: Arrival,
    },
    /// A message was published on a topic.
    Published {
        /// The topic.
        topic: EntityId,
        /// Its number there.
        sequence: Sequence,
        /// When.
        at: Timestamp,
        /// Its bytes, stored once; empty if nobody wanted the message.
        payload: Payload,
        /// The copies, in subscriptions and their dead-letter queues.
        copies: Vec<Arrival>,
    },
    /// A message was accepted for later, at a queue or topic.
    Scheduled {
        /// Its bytes.
        payload: Payload,
        /// Its place; eligible is when it was accepted.
        arrival: Arrival,
        /// When it becomes visible.
        due: Timestamp,
    },
    /// Numbers were promised to messages of an open transaction.
    Reserved {
        /// The mailbox.
        mailbox: MailboxId,
        /// The next free number.
        next: Sequence,
    },
    /// A message id was seen; it is not accepted again within the window.
    IdSeen {
        /// The queue or topic.
        entity: EntityId,
        /// The id, hashed.
        key: u128,
        /// When.
        at: Timestamp,
    },
    /// A message left a mailbox for others, at once and as one: a scheduled message became active, or
    /// a waiting one was forwarded.
    Relayed {
        /// Where it was.
        mailbox: MailboxId,
        /// Its number there.
        sequence: Sequence,
        /// Why.
        cause: RelayCause,
        /// When.
        at: Timestamp,
        /// Where it is now; nowhere if nobody wanted it or it was a duplicate there.
        copies: Vec<Arrival>,
    },

    /// A message was locked for a receiver.
    Locked {
        /// The mailbox.
        mailbox: MailboxId,
        /// The message.
        sequence: Sequence,
        /// The proof.
        token: LockToken,
        /// When.
        at: Timestamp,
        /// When it ends.
        until: Timestamp,
        /// Who has it; none for a receive by number.
        receiver: Option<ReceiverId>,
        /// The mailbox's rescue account after this delivery.
        rescue: u16,
    },
    /// A message was removed because it is being sent to a receiver that does not settle.
    Taken {
        /// The mailbox.
        mailbox: MailboxId,
        /// The message.
        sequence: Sequence,
        /// When.
        at: Timestamp,
        /// Who gets it; none for a receive by number.
        receiver: Option<ReceiverId>,
        /// The mailbox's rescue account after this delivery.
        rescue: u16,
    },
    /// A message lock was renewed.
    Renewed {
        /// The mailbox.
        mailbox: MailboxId,
        /// The message.
        sequence: Sequence,
        /// When.
        at: Timestamp,
        /// When it ends now.
        until: Timestamp,
    },
    /// A message is gone.
    Removed {
        /// The mailbox.
        mailbox: MailboxId,
        /// The message.
        sequence: Sequence,
        /// Why.
        cause: RemovalCause,
        /// When.
        at: Timestamp,
    },
    /// A locked message went back to its place, or to the deferred ones if it came from there.
    Returned {
        /// The mailbox.
        mailbox: MailboxId,
        /// The message.
        sequence: Sequence,
        /// Why.
        cause: ReturnCause,
        /// When.
        at: Timestamp,
        /// Whether the delivery counts as failed.
        counted: bool,
        /// All changes on the message from now on, if that changed.
        overlay: Option<Arc<Overlay>>,
        /// When it may be delivered again, if not at once.
        not_before: Option<Timestamp>,
    },
    /// A locked message was put aside.
    Deferred {
        /// The mailbox.
        mailbox: MailboxId,
        /// The message.
        sequence: Sequence,
        /// When.
        at: Timestamp,
        /// All changes on the message from now on, if that changed.
        overlay: Option<Arc<Overlay>>,
    },
    /// A message moved to a dead-letter mailbox of its entity, with its number, level and place in time.
    DeadLettered {
        /// Where it was.
        mailbox: MailboxId,
        /// Its number, here and there.
        sequence: Sequence,
        /// Where it is.
        to: MailboxId,
        /// Why.
        cause: DeadLetterCause,
        /// When.
        at: Timestamp,
        /// Whether a delivery that led here counts as failed.
        counted: bool,
        /// The path of the entity it comes from.
        source: Arc<str>,
        /// All changes on the message from now on, the reason among them.
        overlay: Option<Arc<Overlay>>,
    },
    /// A waiting message has another level.
    Reprioritised {
        /// The mailbox.
        mailbox: MailboxId,
        /// The message.
        sequence: Sequence,
        /// Its level now.
        level: Level,
    },

    /// A session was locked for a receiver.
    SessionLocked {
        /// The mailbox.
        mailbox: MailboxId,
        /// The session.
        session: SessionId,
        /// Who has it.
        receiver: ReceiverId,
        /// How it takes messages.
        mode: ReceiveMode,
        /// When.
        at: Timestamp,
        /// When it ends.
        until: Timestamp,
        /// The mailbox's rescue account after this choice.
        rescue: u16,
    },
    /// A session lock was renewed, and with it the locks of its messages.
    SessionRenewed {
        /// The mailbox.
        mailbox: MailboxId,
        /// The session.
        session: SessionId,
        /// When it ends now.
        until: Timestamp,
    },
    /// A session lock ended; its messages' locks were ended by facts before this one.
    SessionUnlocked {
        /// The mailbox.
        mailbox: MailboxId,
        /// The session.
        session: SessionId,
        /// When.
        at: Timestamp,
    },
    /// A session's state changed.
    SessionStateSet {
        /// The mailbox.
        mailbox: MailboxId,
        /// The session.
        session: SessionId,
        /// The state; none if it was cleared.
        state: Option<Bytes>,
        /// When.
        at: Timestamp,
    },

    /// Payloads lie elsewhere now.
    Moved {
        /// The messages and their new places.
        moves: Vec<Relocation>,
    },
    /// The front of a lane left memory.
    Chilled {
        /// The mailbox.
        mailbox: MailboxId,
        /// The lane.
        level: Level,
        /// The run.
        run: RunId,
        /// The messages in lane order.
        records: Vec<ColdRecord>,
    },
    /// Messages of a run came back to memory, in order.
    Warmed {
        /// The run.
        run: RunId,
        /// The messages.
        records: Vec<ColdRecord>,
    },
    /// What was left of a run was written to disk again, in another place.
    Rehoused {
        /// The run as it was.
        run: RunId,
        /// The run as it is now: those that were left, and nothing else.
        to: RunId,
        /// Where their payloads lie now.
        region: Region,
    },
    /// Messages of a run came back to memory before their turn, because they expire.
    Plucked {
        /// The run.
        run: RunId,
        /// The messages, each with its position in the run.
        records: Vec<(u32, ColdRecord)>,
        /// No other message of the run expires before this.
        soonest: Timestamp,
    },

    /// Everything was taken away: entities, messages, locks, sessions. What follows puts another state there.
    Cleared {
        /// When.
        at: Timestamp,
    },
    /// The clock was set ahead, also as a part of a snapshot.
    ClockAdvanced {
        /// How far it runs ahead of the wall clock from now on.
        ahead: Span,
    },

    /// Part of a snapshot: the namespace itself.
    RestoredNamespace {
        /// What lock tokens are made from.
        seed: u128,
        /// The number of restarts so far.
        generation: u64,
        /// How many tokens were made.
        tokens: u64,
        /// The number of the next entity.
        next_entity: u32,
        /// The number of the next rule.
        next_rule: u32,
        /// The latest time known.
        now: Timestamp,
    },
    /// Part of a snapshot: an entity, in the order of numbers.
    RestoredEntity {
        /// The entity.
        entity: Arc<Entity>,
        /// When it was last used.
        accessed: Timestamp,
    },
    /// Part of a snapshot: what a mailbox knows beside its messages.
    RestoredMailbox(Box<RestoredMailbox>),
    /// Part of a snapshot: a session with its state and lock.
    RestoredSession(Box<RestoredSession>),
    /// Part of a snapshot: a message, in the order of its lane.
    RestoredMessage(Box<RestoredMessage>),
    /// Part of a snapshot: a run on disk.
    RestoredRun(Box<RestoredRun>),
    /// Part of a snapshot: what left the run told before this out of turn, and what may expire in it.
    RestoredGaps(Box<RestoredGaps>),

    /// An entity is in use, though nothing happens: it does not delete itself.
    EntityUsed {
        /// The entity.
        entity: EntityId,
        /// When.
        at: Timestamp,
    },
    /// A message named a class that its entity does not have, which was counted as no class at all.
    ClassUnknown {
        /// The mailbox.
        mailbox: MailboxId,
    },
    /// A receiver was attached.
    ReceiverAttached {
        /// The receiver.
        attach: Arc<Attach>,
        /// When.
        at: Timestamp,
    },
    /// A receiver has so much credit now.
    CreditSet {
        /// The receiver.
        receiver: ReceiverId,
        /// How much.
        credit: u32,
        /// Whether it is to be given back when nothing is left.
        drain: bool,
    },
    /// A draining receiver's credit was given back.
    CreditDrained {
        /// The receiver.
        receiver: ReceiverId,
    },
    /// A receiver is gone.
    ReceiverDetached {
        /// The receiver.
        receiver: ReceiverId,
        /// When.
        at: Timestamp,
    },
    /// The next message of a mailbox cannot be handed on now.
    ForwardStalled {
        /// The mailbox.
        mailbox: MailboxId,
        /// When it was tried.
        at: Timestamp,
        /// When it is tried again.
        until: Timestamp,
    },
    /// It is time to try again.
    ForwardResumed {
        /// The mailbox.
        mailbox: MailboxId,
        /// The time that has come.
        until: Timestamp,
    },
    /// A receiver with a selector has looked at messages.
    SelectorLooked {
        /// The receiver.
        receiver: ReceiverId,
        /// The mailbox it looked at.
        mailbox: MailboxId,
        /// The greatest number it has looked at.
        upto: Sequence,
        /// Messages that had come back and were looked at again.
        again: Vec<Sequence>,
        /// Those that match.
        found: Vec<Sequence>,
    },
    /// A receiver with a selector had found more than it could remember, and looks at everything again.
    SelectorReset {
        /// The receiver.
        receiver: ReceiverId,
        /// The mailbox it looks at.
        mailbox: MailboxId,
    },
    /// A receiver's selector matches none of the messages that are ready.
    SelectorIdle {
        /// The receiver.
        receiver: ReceiverId,
        /// The mailbox it looked at.
        mailbox: MailboxId,
    },
    /// Somebody waits for a session.
    AcceptWaiting {
        /// Where the answer goes.
        request: RequestTag,
        /// The receiver to be.
        receiver: ReceiverId,
        /// The mailbox.
        mailbox: MailboxId,
        /// The session; none for any.
        session: Option<SessionId>,
        /// How it takes messages.
        mode: ReceiveMode,
        /// When it gives up.
        until: Timestamp,
    },
    /// Somebody no longer waits for a session.
    AcceptEnded {
        /// The receiver.
        receiver: ReceiverId,
    },
    /// Whoever was next in line to be served could not be, and goes to the end of it.
    Pumped,
    /// More of a run was asked for.
    WarmAsked {
        /// The run.
        run: RunId,
        /// Up to which record, exclusive.
        upto: u32,
    },
    /// A transaction began.
    TransactionDeclared {
        /// Its id.
        transaction: TransactionId,
        /// When.
        at: Timestamp,
    },
    /// A send joined a transaction. It happens at commit.
    SendEnlisted {
        /// The messages, and the transaction.
        send: Arc<Send>,
        /// The numbers promised to them.
        sequences: SmallVec<[Sequence; 1]>,
        /// When.
        at: Timestamp,
    },
    /// A settlement joined a transaction. It happens at commit; until then the messages stay locked.
    SettlementEnlisted {
        /// The locks, and the transaction.
        settle: Arc<Settle>,
        /// When.
        at: Timestamp,
    },
    /// Something that was to join a transaction was refused: it can only be rolled back now.
    TransactionPoisoned {
        /// Its id.
        transaction: TransactionId,
        /// What was refused.
        cause: Box<Refusal>,
    },
    /// A transaction ended; what it did stands in other facts of the same decision.
    TransactionEnded {
        /// Its id.
        transaction: TransactionId,
    },
}

/// Why a message went from one mailbox to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelayCause {
    /// Its scheduled time came.
    Activated,
    /// Its entity forwards.
    Forwarded,
    /// Its entity forwards what it dead-letters.
    DeadLetterForwarded,
}

/// Why a message is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemovalCause {
    /// It was completed.
    Completed,
    /// It outlived its time.
    Expired,
    /// It was scheduled and taken back.
    Cancelled,
    /// An operator deleted it.
    Deleted,
}

/// Why a locked message went back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReturnCause {
    /// The receiver abandoned it.
    Abandoned,
    /// The receiver released it unread.
    Released,
    /// The receiver put it back for something more urgent.
    Suspended,
    /// Its lock ran out.
    LockExpired,
    /// Its session lock ran out.
    SessionExpired,
    /// Its session was closed.
    SessionClosed,
    /// Its retry delay is over.
    DelayOver,
}

/// Why a message was dead-lettered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeadLetterCause {
    /// The receiver said so.
    Application,
    /// It was delivered too often.
    MaxDeliveries,
    /// It outlived its time.
    Expired,
    /// It was forwarded too often.
    MaxHops,
    /// Its forward target could not take it.
    Undeliverable,
    /// A filter or action failed on it.
    FilterError,
    /// It needs a session and names none.
    NoSession,
}

impl DeadLetterCause {
    /// Every cause there is.
    pub const ALL: [DeadLetterCause; 7] = [
        DeadLetterCause::Application,
        DeadLetterCause::MaxDeliveries,
        DeadLetterCause::Expired,
        DeadLetterCause::MaxHops,
        DeadLetterCause::Undeliverable,
        DeadLetterCause::FilterError,
        DeadLetterCause::NoSession,
    ];
}

/// How a fact is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Applied, never written: gone after a restart, as the connections it is about.
    Volatile,
    /// Written with the next commit; nobody waits for it. Losing it means an early redelivery.
    Riding,
    /// Written, and the effects of its decision wait until it is safe.
    Waiting,
}

impl Fact {
    /// How this fact is kept.
    #[must_use]
    pub fn durability(&self) -> Durability {
        match self {
            Fact::EntityUsed { .. }
            | Fact::ClassUnknown { .. }
            | Fact::ReceiverAttached { .. }
            | Fact::CreditSet { .. }
            | Fact::CreditDrained { .. }
            | Fact::ReceiverDetached { .. }
            | Fact::SelectorIdle { .. }
            | Fact::ForwardStalled { .. }
            | Fact::ForwardResumed { .. }
            | Fact::SelectorLooked { .. }
            | Fact::SelectorReset { .. }
            | Fact::AcceptWaiting { .. }
            | Fact::AcceptEnded { .. }
            | Fact::Pumped
            | Fact::WarmAsked { .. }
            | Fact::TransactionDeclared { .. }
            | Fact::SendEnlisted { .. }
            | Fact::SettlementEnlisted { .. }
            | Fact::TransactionPoisoned { .. }
            | Fact::TransactionEnded { .. } => Durability::Volatile,
            Fact::Locked { .. } | Fact::Renewed { .. } | Fact::Reserved { .. } => Durability::Riding,
            Fact::Returned { cause, .. } => match cause {
                ReturnCause::LockExpired | ReturnCause::SessionExpired | ReturnCause::DelayOver => {
                    Durability::Riding
                }
                ReturnCause::Abandoned
                | ReturnCause::Released
                | ReturnCause::Suspended
                | ReturnCause::SessionClosed => Durability::Waiting,
            },
            _ => Durability::Waiting,
        }
    }

    /// The payload this fact brings to the log, whose place the shard fills in before applying it.
    #[must_use]
    pub fn payload(&self) -> Option<&Payload> {
        match self {
            Fact::Enqueued { payload, .. }
            | Fact::Published { payload, .. }
            | Fact::Scheduled { payload, .. } => Some(payload),
            _ => None,
        }
    }

    /// See [`Fact::payload`].
    pub fn payload_mut(&mut self) -> Option<&mut Payload> {
        match self {
            Fact::Enqueued { payload, .. }
            | Fact::Published { payload, .. }
            | Fact::Scheduled { payload, .. } => Some(payload),
            _ => None,
        }
    }
}
