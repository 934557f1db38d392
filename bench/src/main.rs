//! The load generator's command line.

use clap::{Parser, Subcommand};
use vorrang_bench::{connections, disk, load, loopback, peers};

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
    /// Many connections with one link each: memory of each, and messages across them
    Connections(connections::Options),
    /// The same workloads on other brokers, and the document that compares them
    Peers(peers::Options),
    /// Instructions of the broker for each message, under callgrind
    Instructions(peers::instructions::Options),
    /// Where the broker's CPU time goes, as flame graphs
    Flame(peers::flame::Options),
    /// One fdatasync after another, as the disk does it
    Disk(disk::Options),
    /// The AMQP engine on real sockets with nothing behind it: CPU per message
    Amqp(loopback::Options),
    /// The server `amqp` measures
    #[command(hide = true)]
    AmqpPeer(loopback::PeerOptions),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().workload {
        Workload::Load(options) => load::run(&options),
        Workload::Connections(options) => connections::run(&options).map(drop),
        Workload::Peers(options) => peers::run(&options),
        Workload::Instructions(options) => peers::instructions::run(&options),
        Workload::Flame(options) => peers::flame::run(&options),
        Workload::Disk(options) => disk::run(&options),
        Workload::Amqp(options) => loopback::run(&options),
        Workload::AmqpPeer(options) => loopback::serve(&options),
    }
}
