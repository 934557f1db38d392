//! The connection engine, seen from outside: bytes in, bytes and events out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected shall fail, and its support code too"
)]

mod fuzz;
mod limits;
mod links;
mod pair;
mod raw;
mod sasl;
mod smoke;
mod states;
mod time;
mod traces;
