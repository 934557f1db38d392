//! What the AMQP engine costs a server process per message, with real sockets and nothing behind it.
//!
//! The server is a process of its own, so that its CPU can be told from the generator's: a sink that accepts
//! every message, or a source that sends one for every credit. The generator writes frames it encoded
//! before, so that it is never the slower side by much; what it costs is not counted.

mod generator;
mod server;

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::process::Process;

/// What can be told on the command line.
#[derive(Debug, Args)]
pub struct Options {
    /// Messages of each measurement
    #[arg(long, default_value_t = 2_000_000)]
    messages: u32,
    /// Measurements of each kind; all are printed
    #[arg(long, default_value_t = 2)]
    rounds: u32,
}

/// What the process under measurement is told; it prints its port and serves one connection.
#[derive(Debug, Args)]
pub struct PeerOptions {
    /// Which way the messages go
    #[arg(long, value_enum)]
    direction: Direction,
    /// Bytes of a message the source sends
    #[arg(long, default_value_t = 0)]
    size: usize,
    /// A sink tells every outcome in a frame of its own instead of in ranges
    #[arg(long)]
    single: bool,
}

/// Seen from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direction {
    /// Messages come in.
    Ingest,
    /// Messages go out.
    Delivery,
}

/// Measures every direction, size and way to acknowledge.
pub fn run(options: &Options) -> Result<()> {
    println!("CPU of the server process, user and system, per message");
    for direction in [Direction::Ingest, Direction::Delivery] {
        for size in [100, 1_024] {
            for single in [false, true] {
                let rounds: Result<Vec<Figures>> =
                    (0..options.rounds).map(|_| measure(direction, size, single, options.messages)).collect();
                let acks = if single { "one ack each" } else { "ranged acks" };
                let figures: Vec<String> = rounds?.iter().map(Figures::to_string).collect();
                println!("{direction:?} {size:>5} B, {acks:<12}  {}", figures.join("   "));
            }
        }
    }
    Ok(())
}

/// Serves one connection as [`run`] asks for it.
pub fn serve(options: &PeerOptions) -> Result<()> {
    server::run(options.direction, options.size, options.single)
}

struct Figures {
    micros: f64,
    rate: f64,
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} µs ({:.2} M/s)", self.micros, self.rate / 1e6)
    }
}

fn measure(direction: Direction, size: usize, single: bool, messages: u32) -> Result<Figures> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("amqp-peer").arg("--direction").arg(match direction {
        Direction::Ingest => "ingest",
        Direction::Delivery => "delivery",
    });
    command.arg("--size").arg(size.to_string()).stdout(Stdio::piped());
    if single {
        command.arg("--single");
    }
    let (peer, mut lines) = Process::start(&mut command)?;
    let Some(address) = lines.next().transpose()? else { bail!("the server ended before it listened") };
    let (mut reading, writing) = generator::connect(&address, direction)?;
    let before = peer.cpu()?;
    let seconds = match direction {
        Direction::Ingest => generator::send(reading, writing, size, messages),
        Direction::Delivery => generator::receive(&mut reading, writing, messages, single),
    }
    .context("the generator stopped")?;
    let cpu = peer.cpu()?.saturating_sub(before);
    Ok(Figures {
        micros: cpu.as_secs_f64() * 1e6 / f64::from(messages),
        rate: f64::from(messages) / seconds.as_secs_f64(),
    })
}
