//! Receivers: who may be given messages, and whose turn it is.
//!
//! Receivers are not part of what is written down: after a restart there are none. The pump serves one
//! delivery at a time, in turn over everybody who can be served: mailboxes with a message and a receiver
//! for it, sessions whose holder has credit, clients waiting for a session, receivers to be drained.

mod attach;
mod credit;
mod deferred;
mod deliver;
mod lock;
mod looked;
pub(crate) mod receiver;
pub(crate) mod ring;
mod selector;
#[cfg(test)]
mod tests;

pub(crate) use receiver::Receiver;
pub(crate) use ring::Ring;
