//! The load generator: real sockets, real disk, durable, in release mode.
//!
//! Starts the broker it measures as a process of its own, on a temporary data directory, so that the
//! broker's CPU and memory can be told from the generator's. The blocking client in [`wire`] also
//! serves the tests of the binary.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod broker;
mod client;
pub mod connections;
pub mod disk;
mod histogram;
pub mod load;
pub mod loopback;
pub mod peers;
mod process;
pub mod wire;
