//! The load generator: real sockets, real disk, durable, in release mode.
//!
//! Starts the broker it measures as a process of its own, on a temporary data directory, so that the
//! broker's CPU and memory can be told from the generator's.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod broker;
mod client;
mod disk;
mod histogram;
mod load;
mod wire;

use clap::{Parser, Subcommand};

/// Measures a broker.
#[derive(Debug, Parser)]
#[command(name = "vorrang-bench")]
struct Arguments {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    /// Send, receive and complete: rate, latency, CPU of the broker
    Load(load::Options),
    /// One fdatasync after another, as the disk does it
    Disk(disk::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().workload {
        Workload::Load(options) => load::run(&options),
        Workload::Disk(options) => disk::run(&options),
    }
}
