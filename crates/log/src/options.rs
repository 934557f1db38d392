//! How a log is laid out and what it may use.

use crate::batch::Limits;
use crate::entry::BLOCK_BYTES;
use crate::segment::FIRST_ENTRY;
use crate::units::on_disk;

/// Sizes and bounds of one shard's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which shard this is; a directory of another shard is refused.
    pub shard: u32,
    /// Length of a segment. 64 MiB: small enough that a machine with little disk can hold a few
    /// and that zero-filling one takes a fraction of a second, large enough that a change of
    /// segment is rare (one in fifty full commits).
    pub segment_bytes: u64,
    /// Length of the very first segment of a new directory; kept small, so that the log soon goes on in one
    /// that was zero-filled in the background.
    pub first_segment_bytes: u64,
    /// What the ring may take on disk. Beyond it, live records must move to extents.
    pub ring_bytes: u64,
    /// Segments kept ready beside those in use.
    pub spare_segments: u32,
    /// Free disk space that segments never take: left to extents and snapshots, without which a
    /// full ring could not be emptied, and to the rest of the machine.
    pub disk_reserve_bytes: u64,
    /// Room kept for settlements: while less than this is left, appends that grow the backlog
    /// are refused and appends that shrink it go on.
    pub settle_reserve_bytes: u64,
    /// Sizes that bound every commit.
    pub limits: Limits,
    /// How fast spare segments are zero-filled in the background.
    pub fill_bytes_per_second: u64,
    /// A bug to run with, for the tests of our own tests.
    #[cfg(test)]
    pub(crate) planted: Option<Planted>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shard: 0,
            segment_bytes: 64 << 20,
            first_segment_bytes: 11 << 18,
            ring_bytes: 2 << 30,
            spare_segments: 2,
            disk_reserve_bytes: 256 << 20,
            settle_reserve_bytes: 64 << 20,
            limits: Limits::default(),
            fill_bytes_per_second: 200 << 20,
            #[cfg(test)]
            planted: None,
        }
    }
}

impl Options {
    /// A layout small enough to be explored exhaustively: kilobytes instead of megabytes.
    pub fn tiny() -> Self {
        Self {
            segment_bytes: 40 << 10,
            first_segment_bytes: 28 << 10,
            ring_bytes: 400 << 10,
            disk_reserve_bytes: 64 << 10,
            settle_reserve_bytes: 40 << 10,
            limits: Limits { batch_bytes: 4 << 10, record_bytes: 2 << 10 },
            fill_bytes_per_second: u64::MAX,
            ..Self::default()
        }
    }

    /// Says what is wrong with the sizes, if anything is.
    pub fn check(&self) -> Result<(), OptionsError> {
        let least = FIRST_ENTRY + 2 * on_disk(self.limits.entry_bytes());
        for (name, bytes) in
            [("segment_bytes", self.segment_bytes), ("first_segment_bytes", self.first_segment_bytes)]
        {
            if bytes < least {
                return Err(OptionsError::TooSmall { name, bytes, least });
            }
            if bytes > u64::from(u32::MAX) || !bytes.is_multiple_of(on_disk(BLOCK_BYTES)) {
                return Err(OptionsError::NotBlocks { name, bytes });
            }
        }
        let least = self.segment_bytes.saturating_mul(u64::from(self.spare_segments) + 4);
        if self.ring_bytes < least {
            return Err(OptionsError::TooSmall { name: "ring_bytes", bytes: self.ring_bytes, least });
        }
        Ok(())
    }

    /// Whether this bug was planted; never outside this crate's tests.
    #[cfg(test)]
    pub(crate) fn has(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }

    /// Whether this bug was planted; never outside this crate's tests.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "the tests' version looks at it")]
    pub(crate) const fn has(&self, _bug: Planted) -> bool {
        false
    }

    /// How many segments the ring may have.
    pub(crate) fn ring_segments(&self) -> usize {
        crate::units::in_memory(self.ring_bytes / self.segment_bytes.max(1))
    }
}

/// Mistakes the crash explorer and the damage tests must catch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A batch is reported durable before the sync that makes it so.
    AckBeforeSync,
    /// The new name of a segment is not synced before it is written to.
    NoDirectorySync,
    /// A segment gets its name before its header is synced.
    NameBeforeHeader,
    /// A released segment is reused before its removal from the log is durable.
    ReuseBeforeDirectorySync,
    /// A segment is reused although a kept snapshot needs it.
    ReleaseBeforeSnapshot,
    /// A segment is reused although the batch that emptied it is not durable.
    ReleaseBeforeDurable,
    /// A snapshot gets its name before its bytes are synced.
    SnapshotNameBeforeSync,
    /// An extent gets its name before its bytes are synced.
    ExtentNameBeforeSync,
    /// The tail is cut at the first bad entry without looking for what follows.
    CutBeforeVerify,
    /// Entries are taken by checksum alone: no batch number, no chain.
    NoChain,
    /// After a failed sync the log carries on.
    SyncErrorIgnored,
}

/// A layout that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Below what the other sizes need.
    #[error("{name} of {bytes} bytes is below the least possible, {least}")]
    TooSmall {
        /// Which option.
        name: &'static str,
        /// Its value.
        bytes: u64,
        /// The least it may be.
        least: u64,
    },
    /// Not addressable, or not a whole number of blocks.
    #[error("{name} of {bytes} bytes is not a multiple of 4096 below 4 GiB")]
    NotBlocks {
        /// Which option.
        name: &'static str,
        /// Its value.
        bytes: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_we_offer_work_and_neighbours_beyond_the_edge_do_not() {
        Options::default().check().unwrap();
        let tiny = Options::tiny();
        tiny.check().unwrap();
        let cases = [
            Options { segment_bytes: tiny.segment_bytes + 1, ..tiny.clone() },
            Options { segment_bytes: 8 << 10, ..tiny.clone() },
            Options { first_segment_bytes: 8 << 10, ..tiny.clone() },
            Options { segment_bytes: 4 << 30, ring_bytes: u64::MAX, ..tiny.clone() },
            Options { ring_bytes: 6 * tiny.segment_bytes - 1, ..tiny.clone() },
        ];
        for case in cases {
            assert!(case.check().is_err(), "{case:?}");
        }
    }
}
