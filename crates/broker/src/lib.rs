//! A shard and the typed API that every door uses.
//!
//! [`vorrang_engine`] decides, [`vorrang_log`] keeps; this crate joins the two on one thread and lets
//! nothing leave before it is durable. It also holds the one place where permission is given. It
//! knows no sockets, no HTTP, no AMQP frames, no async runtime and no clock.

pub mod access;
pub mod api;
pub mod journal;
pub mod shard;
