//! The pieces of a snapshot. A snapshot is a list of facts, so that there is one way to build a state
//! and one set of bytes to keep readable.

use bytes::Bytes;

use super::Arrival;
use crate::cold;
use crate::id::{Location, LockToken, MailboxId, Region, RunId, Sequence, SessionId};
use crate::level::Level;
use crate::payloads::ColdRecord;
use crate::time::Timestamp;

/// What a mailbox knows beside its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredMailbox {
    /// The mailbox.
    pub mailbox: MailboxId,
    /// The number its next message gets.
    pub next_sequence: Sequence,
    /// Its rescue account.
    pub rescue: u16,
    /// The message ids it remembers, oldest first.
    pub ids_seen: Vec<(u128, Timestamp)>,
}

/// A session with its state and lock.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredSession {
    /// The mailbox.
    pub mailbox: MailboxId,
    /// The session.
    pub session: SessionId,
    /// Its state.
    pub state: Option<Bytes>,
    /// When the state was last set.
    pub updated: Timestamp,
    /// When its lock ends, if it is locked. The receiver is gone after a restart.
    pub locked_until: Option<Timestamp>,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredMessage {
    /// Its place.
    pub arrival: Arrival,
    /// Where its bytes lie.
    pub location: Location,
    /// How many they are.
    pub size: u32,
    /// How many deliveries failed.
    pub deliveries: u16,
    /// What it is doing.
    pub standing: Standing,
}

/// What a message is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Waiting in its lane or session.
    Ready,
    /// Put aside.
    Deferred,
    /// Waiting for its scheduled time.
    Scheduled {
        /// That time.
        due: Timestamp,
    },
    /// Waiting for its retry delay to pass.
    Delayed {
        /// When that is.
        until: Timestamp,
    },
    /// Locked by somebody.
    Locked {
        /// The proof.
        token: LockToken,
        /// When it was taken or last renewed.
        since: Timestamp,
        /// When it ends.
        until: Timestamp,
        /// Whether it was deferred before and goes back to being so.
        deferred: bool,
    },
}

/// A run on disk: the part of a lane that is not in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredRun {
    /// The mailbox.
    pub mailbox: MailboxId,
    /// The lane.
    pub level: Level,
    /// The run.
    pub run: RunId,
    /// How many records were written.
    pub count: u32,
    /// How many of them are back in memory or gone.
    pub consumed: u32,
    /// The eligible time and number from which the remaining ones come.
    pub from: (Timestamp, Sequence),
    /// The eligible time and number of the last one.
    pub last: (Timestamp, Sequence),
    /// The bytes of the remaining payloads.
    pub bytes: u64,
    /// How many of the remaining payloads lie in which region.
    pub regions: Vec<(Region, u32)>,
}

/// What a run on disk knows beside its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredGaps {
    /// The run.
    pub run: RunId,
    /// No remaining message expires before this.
    pub soonest: Timestamp,
    /// The records that left out of turn: one bit for each record of the run, the first record's lowest.
    pub gaps: Vec<u64>,
}

impl RestoredGaps {
    /// Whether the record at this position of the run left out of turn.
    #[must_use]
    pub fn has(&self, position: u32) -> bool {
        let word = usize::try_from(position / 64).unwrap_or(usize::MAX);
        self.gaps.get(word).is_some_and(|bits| bits & (1 << (position % 64)) != 0)
    }
}

impl RestoredRun {
    /// One of its messages, as it would be told if it were in memory.
    #[must_use]
    pub fn message(&self, record: &ColdRecord) -> RestoredMessage {
        RestoredMessage {
            arrival: cold::arrival(self.mailbox, self.level, record),
            location: record.location,
            size: record.size,
            deliveries: 0,
            standing: Standing::Ready,
        }
    }
}
