//! The deterministic heart of the broker: one namespace, and every decision about it.
//!
//! [`decide`](State::decide) looks and says what should happen; [`apply`](State::apply) makes it so.
//! There is no clock, file, socket, thread or random number in here: time is an argument, and the
//! same commands at the same times give the same facts, live and after a restart.

pub mod entity;
pub mod id;
pub mod level;
pub mod time;

pub use id::{Location, LockToken, ReceiverId, Sequence, TransactionId};
pub use level::Level;
pub use time::{Span, Timestamp};
