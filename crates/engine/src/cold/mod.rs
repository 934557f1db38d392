//! Messages whose records lie on disk.
//!
//! The shard moves payloads that have grown old out of the log, sorted, and may then take the front of a
//! lane out of memory altogether: a *run*. Nothing is lost by that: counts include runs, order is kept
//! because a run has its place in the lane, and records are asked back for before they are needed.
//! Messages of a run expire when they come back.

mod apply;
mod plan;
#[cfg(test)]
mod tests;

pub(crate) use apply::arrival;
