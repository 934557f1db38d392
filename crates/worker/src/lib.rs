//! The consumer half of Vorrang: what runs handlers for messages.
//!
//! [`plan`] decides, without clock or socket: how large a pool is, which message gets a free slot, which task
//! is suspended for a higher one, when a lock must be renewed. Everything else is the shell around it.

#![allow(clippy::disallowed_methods, reason = "the shell around `plan` is where clocks are read")]

pub mod gate;
pub mod moment;
pub mod once;
pub mod outcome;
pub mod plan;

pub use moment::Moment;
pub use outcome::{Checkpoint, Outcome};
