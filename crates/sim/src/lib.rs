//! The deterministic simulator: a whole shard with clients, disk, clock, network and crashes, in one
//! thread and decided by one seed.
//!
//! The shard is the real one, exactly as its thread would drive it. Everything around it is simulated:
//! clients that send, receive, settle, hold sessions and transact; a network that delays and breaks; a
//! disk that tears, fails and fills up; a clock that jumps and stands still; a broker that dies at any
//! moment. All calls and answers become a [`History`](history::History), and the
//! [checkers](check::check) hold it against the promises: S1 to S10 and L1. A seed that breaks one can
//! be run again, and does the same again.

pub mod check;
mod client;
pub mod coverage;
mod drain;
pub mod history;
pub mod mischief;
mod payload;
mod plan;
mod run;
mod station;
mod topology;
mod world;

pub use run::{Report, Setup, run};
