//! Proof by crashing: a small store on top of the log, and ways to break the disk under it.
//!
//! [`explore`] records the disk calls of a scripted run and recovers from every image a power
//! failure could have left at every point. [`tear`] tears the last write at every byte.
//! [`inject`] fails every single disk call. [`damage`] flips bits and ruins sectors. Each returns
//! how much it tried, or the first violation with what is needed to repeat it. The quick versions
//! run with the tests; `examples/crash_explorer.rs` runs the full ones.

mod damage;
mod explore;
mod inject;
mod model;
mod tear;

pub use damage::{DamageCounts, damage};
pub use explore::{ExploreCounts, Thoroughness, explore};
pub use inject::{InjectCounts, inject};
pub use tear::{TearCounts, tear, tear_share};

use std::fmt;

/// A promise that was broken, and how to see it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The seed of the run.
    pub seed: u64,
    /// Where in the run.
    pub place: String,
    /// What was broken.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "seed {}, {}: {}", self.seed, self.place, self.what)
    }
}

impl std::error::Error for Violation {}

#[cfg(test)]
mod tests;
