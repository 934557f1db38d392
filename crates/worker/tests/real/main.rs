//! The worker against a real broker in this process: every promise of the crate, as a story.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]
#![allow(clippy::disallowed_methods, reason = "these stories happen in real time")]
#![allow(missing_docs, reason = "the tests' names say it")]

mod breaker;
mod broker;
mod external;
mod kills;
mod pools;
#[path = "../postgres/server.rs"]
#[allow(dead_code, reason = "these stories never restart it")]
mod postgres;
mod preemption;
mod pump;
mod results;
mod scaling;
mod sessions;
