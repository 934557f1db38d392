//! The client against a real broker in this process, over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop, and lives in real time"
)]

mod admin;
mod broker;
mod calls;
mod endings;
mod foreign;
mod keda;
mod messages;
mod restart;
mod rules;
mod sessions;
mod transactions;
