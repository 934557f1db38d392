//! Looking into stored messages.
//!
//! The engine keeps numbers, not payloads. The few operations that must read a stored message
//! (activating a scheduled message of a topic, forwarding into one, filters over what is queued) ask
//! for it here. The shard answers from its cache or the log; the answer must be the same whenever it
//! is asked, or be `None` if the bytes cannot be read now.

use vorrang_filter::Lookup;

use crate::id::{Location, RunId, Sequence};
use crate::time::Timestamp;

/// The source of stored payloads.
pub trait Payloads {
    /// The message at `location`, as filters see it.
    fn message(&self, location: Location, size: u32) -> Option<Box<dyn vorrang_filter::Message + '_>>;

    /// What filters see of a value that a client set on a stored message, as it was encoded. By default only
    /// that it is there.
    fn property<'v>(&self, _encoded: &'v [u8]) -> Lookup<'v> {
        Lookup::Null
    }

    /// Records of a cold run, from the `from`-th on, at most `max`; fewer at its end.
    fn cold_records(&self, run: RunId, from: u32, max: u32) -> Vec<ColdRecord>;
}

/// What is kept on disk about a message that is not in memory: never delivered, nothing unusual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColdRecord {
    /// Its number.
    pub sequence: Sequence,
    /// When it became eligible.
    pub eligible: Timestamp,
    /// When it expires.
    pub expires: Timestamp,
    /// Where its bytes lie.
    pub location: Location,
    /// How many bytes they are.
    pub size: u32,
}

/// A source without messages, for commands known not to look and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPayloads;

impl Payloads for NoPayloads {
    fn message(&self, _: Location, _: u32) -> Option<Box<dyn vorrang_filter::Message + '_>> {
        None
    }

    fn cold_records(&self, _: RunId, _: u32, _: u32) -> Vec<ColdRecord> {
        Vec::new()
    }
}
