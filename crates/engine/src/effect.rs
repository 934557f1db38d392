//! What leaves the engine: answers, deliveries, and requests to the shard.
//!
//! An effect of a decision is held until the decision is durable. A delivery is the exception: it
//! waits only until its *message* is durable, because losing the lock means an early redelivery, which
//! at-least-once allows, while losing the message would not be allowed.

use smallvec::SmallVec;

use crate::fact::Fact;
use crate::id::{
    EntityId, LockToken, MailboxId, ReceiverId, RequestTag, RunId, Sequence, SessionId, TransactionId,
};
use crate::level::Level;
use crate::message::Delivery;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// What a decision came to: facts to write down and apply, effects to release after that.
///
/// The facts of one outcome are one: the log must keep all of them or none. The buffers are meant to
/// be used again; [`Outcome::clear`] keeps their memory.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What happened, in order.
    pub facts: Vec<Fact>,
    /// What to tell whom, in order.
    pub effects: Vec<Effect>,
}

impl Outcome {
    /// Empties the buffers for the next decision.
    pub fn clear(&mut self) {
        self.facts.clear();
        self.effects.clear();
    }
}

/// Something to do outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Answers a request.
    Reply {
        /// The request.
        request: RequestTag,
        /// The answer.
        reply: Reply,
    },
    /// Answers a request that waited and was refused in the end.
    Refuse {
        /// The request.
        request: RequestTag,
        /// Why.
        refusal: Refusal,
    },
    /// Sends a message to a receiver.
    Deliver {
        /// The receiver.
        receiver: ReceiverId,
        /// The message.
        delivery: Delivery,
    },
    /// Gives a draining receiver's remaining credit back: nothing is left for it.
    Drained {
        /// The receiver.
        receiver: ReceiverId,
    },
    /// Ends a receiver: its entity is gone or disabled, or its session lock is lost.
    Detach {
        /// The receiver.
        receiver: ReceiverId,
        /// Why.
        refusal: Refusal,
    },
    /// Asks the shard to read the next records of a cold run and send them as
    /// [`Command::Warm`](crate::Command::Warm).
    Warm {
        /// The mailbox.
        mailbox: MailboxId,
        /// The lane.
        level: Level,
        /// The run.
        run: RunId,
        /// The position of the first record wanted.
        from: u32,
        /// How many.
        count: u32,
    },
}

/// Answers to requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Done; there is no more to say.
    Done,
    /// Messages were accepted, under these numbers. A duplicate that was dropped has the number zero.
    Sent {
        /// One for each message, in order.
        sequences: SmallVec<[Sequence; 1]>,
    },
    /// An entity or rule was created, changed or deleted.
    Administered {
        /// The entity it was about; the new one, if one was created.
        entity: EntityId,
    },
    /// Locks were renewed until these times.
    Renewed {
        /// One for each token, in order.
        until: Vec<Timestamp>,
    },
    /// Deferred messages, locked or removed.
    Received {
        /// One for each number, in order.
        messages: Vec<Delivery>,
    },
    /// A session is locked for the receiver.
    SessionAccepted {
        /// The receiver.
        receiver: ReceiverId,
        /// The session.
        session: SessionId,
        /// When the lock ends unless renewed.
        until: Timestamp,
    },
    /// A session lock was renewed.
    SessionRenewed {
        /// When it ends now.
        until: Timestamp,
    },
    /// A transaction has begun.
    Declared {
        /// Its id.
        transaction: TransactionId,
    },
    /// Messages were deleted.
    Deleted {
        /// How many.
        count: u32,
        /// Where to go on looking, if not everything was looked at.
        next: Option<Sequence>,
    },
    /// Messages were given another level, or would have been.
    Reprioritised {
        /// How many.
        count: u32,
        /// Where to go on looking, if not everything was looked at.
        next: Option<Sequence>,
    },
}

impl Effect {
    /// The token of the lock a delivery brings, if it brings one.
    #[must_use]
    pub fn token(&self) -> Option<LockToken> {
        match self {
            Effect::Deliver { delivery, .. } => delivery.token,
            _ => None,
        }
    }
}
