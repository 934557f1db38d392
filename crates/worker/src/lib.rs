//! The consumer half of Vorrang: what runs handlers for messages.
//!
//! [`plan`] decides, without clock or socket: how large a pool is, which message gets a free slot, which task
//! is suspended for a higher one, when a lock must be renewed. Everything else is the shell around it: [`pool`] pumps
//! messages from the broker into a [`Handler`], [`external`] has handlers that are commands or HTTP endpoints, [`once`]
//! keeps effects from happening twice, [`results`] keeps what came out for whoever waits for it.

#![allow(clippy::disallowed_methods, reason = "the shell around `plan` is where clocks are read")]

pub mod context;
pub mod external;
pub mod figures;
pub mod gate;
pub mod handler;
pub mod moment;
pub mod once;
pub mod outcome;
pub mod plan;
pub mod pool;
mod replies;
pub mod results;

pub use context::Context;
pub use handler::Handler;
pub use moment::Moment;
pub use outcome::{Checkpoint, Outcome};
pub use pool::{Options, Pool, Problem};
