//! The load generator's command line.

use clap::{Parser, Subcommand};
use vorrang_bench::{disk, load};

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
