//! Looking at what waits, and changing it by hand: peek, delete, purge and re-prioritise.
//!
//! Looking takes nothing and locks nothing. Every request looks at a bounded number of messages and
//! says where to go on, so that no question, however broad, holds the shard up.

mod change;
mod cold;
mod peek;
mod ready;
mod stored;

pub(crate) use change::Target;
pub(crate) use cold::ColdReader;
pub(crate) use peek::matches_stored;
pub use peek::{Peek, Peeked};
pub(crate) use stored::Stored;

#[cfg(test)]
mod tests;
