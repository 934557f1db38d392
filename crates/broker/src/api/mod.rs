//! The typed API that every door uses: connect, ask, be told.
//!
//! A door (AMQP, HTTP, a test) opens a [`Connection`](crate::shard::Connection) with an [`Outlet`],
//! pushes [`Request`]s into it and is told what came of them as [`Event`]s, in batches and in order.
//! Nothing a request caused is told before it is durable. Requests and events carry the door's own
//! numbers: a [`Tag`] for each request, a [`Link`] for each receiver.

mod develop;
mod event;
mod request;

pub use develop::{Captured, Develop, Fault, FaultKind, NewFault};
pub use event::{Answer, Condition, Event, Found, Listed, News, Received, Refused, weight};
pub use request::{Acceptance, Link, Only, Operation, Purpose, Question, Request, Tag};
pub(crate) use request::{Place, forward_targets};
pub use vorrang_engine::survey::Detail;

/// Where a connection's events go. Called on the shard's thread: take them and return.
pub trait Outlet: Send + Sync {
    /// Takes the next events, in order.
    fn effects(&self, batch: Vec<Event>);
}
