//! Sessions: messages that belong together, received by one receiver at a time and in order.
//!
//! A session exists while it has messages, state or a lock. Inside it the order is by number, whatever
//! the levels. Between sessions the policy of the entity decides by the first message of each, or by
//! the best one if the entity lifts.

mod accept;
mod hold;
pub(crate) mod table;
#[cfg(test)]
mod tests;

pub(crate) use accept::give_up;
pub(crate) use table::{Session, SessionLock, SessionTable};
