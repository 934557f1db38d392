//! The JSON API of a whole server: real sockets, a real disk, the broker between.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected shall stop"
)]

mod autoscaling;
mod definitions;
mod entities;
mod events;
mod messages;
mod rights;
mod server;
mod workbench;
