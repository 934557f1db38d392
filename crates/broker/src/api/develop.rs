//! What only developers do to a broker: for tests, never in production. The doors offer it in development mode
//! alone.

use bytes::Bytes;
use vorrang_engine::entity::EntityPath;
use vorrang_engine::{Span, Timestamp};

/// Something a developer wants.
#[derive(Debug)]
pub enum Develop {
    /// The time, and how far it runs ahead. Answered by [`Answer::Clock`](super::Answer).
    Clock,
    /// Sets the clock ahead by so much more. What is due by then has happened when this is answered, but for
    /// deliveries and what a bounded number of ticks leaves over.
    Advance {
        /// How much.
        by: Span,
    },
    /// The whole namespace as it is now. Answered by [`Answer::Captured`](super::Answer).
    Capture,
    /// Puts what was captured in the place of what is there, all or nothing. Every receiver is ended.
    Restore {
        /// What was captured.
        image: Bytes,
    },
    /// Takes every message away, with sessions, locks and what duplicate detection remembers; and on request
    /// every entity too. Every receiver is ended.
    Clear {
        /// Whether the entities go too.
        entities: bool,
    },
    /// Makes something go wrong from now on. Answered by [`Answer::Faults`](super::Answer) with this one.
    Inject(NewFault),
    /// Takes no request for so long, of anybody: more than the broker can take, without having to send it. What was
    /// decided before goes on.
    Stall {
        /// How long, by the shard's clock; at most a minute.
        lasts: Span,
    },
    /// What goes wrong now. Answered by [`Answer::Faults`](super::Answer).
    Faults,
    /// Ends a fault, or all of them. Answered by [`Answer::Faults`](super::Answer) with those that were ended.
    Mend(Option<u64>),
}

/// Something that is to go wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFault {
    /// Where.
    pub entity: EntityPath,
    /// What.
    pub kind: FaultKind,
    /// How often; without this and without an end it happens once.
    pub count: Option<u32>,
    /// For how long, by the shard's clock.
    pub lasts: Option<Span>,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Sends are refused as if there were too many.
    Busy,
    /// Settlements are late by so much. Meanwhile the lock may end, or the connection.
    DelaySettles(Span),
}

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its number.
    pub id: u64,
    /// Where.
    pub entity: EntityPath,
    /// What.
    pub kind: FaultKind,
    /// How often more; without this as often as it comes.
    pub left: Option<u32>,
    /// Until when; without this until it has happened often enough.
    pub until: Option<Timestamp>,
}

/// A whole namespace in a few bytes.
#[derive(Debug, Clone)]
pub struct Captured {
    /// All of it.
    pub image: Bytes,
    /// How many messages there are in it.
    pub messages: u64,
}
