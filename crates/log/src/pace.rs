//! How fast background work may write, so that it never starves commits of the disk.

use std::time::Duration;

/// A rate for background writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    bytes_per_second: u64,
}

impl Pace {
    /// As fast as the disk goes; never sleeps.
    pub const UNLIMITED: Self = Self { bytes_per_second: u64::MAX };

    /// About this many bytes in a second.
    pub fn bytes_per_second(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1) }
    }

    /// Rests for as long as `bytes` may take. The time the write itself took comes on top, so the
    /// rate is an upper bound.
    pub fn rest(self, bytes: u64) {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        if let (Ok(nanos), true) = (u64::try_from(nanos), nanos >= 1_000) {
            std::thread::sleep(Duration::from_nanos(nanos));
        }
    }
}
