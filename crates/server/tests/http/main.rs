//! The HTTP doors of a whole server: real sockets, a real disk, the broker between.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "a test that does not get what it expects ends there"
)]

mod administration;
mod matrix;
mod messages;
mod server;
