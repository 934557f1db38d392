//! The promises, each checked in a file of its own over a finished history.

mod digest;
#[cfg(test)]
mod forge;
mod l1_drains;
mod s10_state;
mod s1_kept;
mod s2_sent;
mod s3_gone;
mod s4_one_lock;
mod s5_count;
mod s6_order;
mod s7_unique;
mod s8_in_time;
mod s9_whole;

use crate::history::History;
pub use digest::{Digest, Fate};

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The promise: `S1` to `S10`, `L1`, or `open` for a broker that does not come back.
    pub promise: &'static str,
    /// What happened.
    pub text: String,
}

type Checker = fn(&History, &Digest) -> Vec<String>;

const CHECKERS: [(&str, Checker); 11] = [
    ("S1", s1_kept::check),
    ("S2", s2_sent::check),
    ("S3", s3_gone::check),
    ("S4", s4_one_lock::check),
    ("S5", s5_count::check),
    ("S6", s6_order::check),
    ("S7", s7_unique::check),
    ("S8", s8_in_time::check),
    ("S9", s9_whole::check),
    ("S10", s10_state::check),
    ("L1", l1_drains::check),
];

/// Checks every promise.
#[must_use]
pub fn check(history: &History) -> Vec<Violation> {
    let digest = Digest::new(history);
    let found = CHECKERS.iter().flat_map(|(promise, checker)| {
        checker(history, &digest).into_iter().map(move |text| Violation { promise, text })
    });
    found.collect()
}
