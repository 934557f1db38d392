//! Handlers that are not Rust: a command per message, a long-lived child per slot, an HTTP endpoint.
//!
//! All three get the same facts about a message under names of their own world, and say the same few words back.

mod child;
mod command;
mod facts;
mod http;
mod lines;
mod state;

pub use command::{CommandHandler, Exits};
pub use facts::Facts;
pub use http::{HttpHandler, Target, TargetError};
pub use lines::LineHandler;

/// The most of what a child writes to its standard error that is kept to explain a failure.
pub(crate) const COMPLAINT_BYTES_MAX: usize = 1_024;
/// The most of a child's or an endpoint's answer that is taken as a result.
pub(crate) const RESULT_BYTES_MAX: usize = 1_024 * 1_024;
