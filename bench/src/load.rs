//! Send, receive and complete through queues, and what that costs the broker.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use clap::Args;

use crate::broker::Broker;
use crate::client::{self, Run, Sending};
use crate::disk;
use crate::histogram::Histogram;

/// What can be told on the command line.
#[derive(Debug, Args)]
pub struct Options {
    /// Senders, each with a connection of its own
    #[arg(long, default_value_t = 4)]
    senders: usize,
    /// Receivers, each with a connection of its own
    #[arg(long, default_value_t = 4)]
    receivers: usize,
    /// Queues the clients are spread over
    #[arg(long, default_value_t = 1)]
    queues: usize,
    /// Bytes of a message's body
    #[arg(long, default_value_t = 1_024)]
    size: usize,
    /// Seconds that are measured
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds before that; longer, and the log has come round to segments it wrote before
    #[arg(long, default_value_t = 1)]
    warm_up: u64,
    /// Senders wait while more than so many messages are in the broker
    #[arg(long, default_value_t = 50_000)]
    backlog: u64,
    /// Deliveries each sender has on the way
    #[arg(long, default_value_t = 1_000)]
    window: usize,
    /// Credit of each receiver
    #[arg(long, default_value_t = 1_000)]
    credit: u32,
    /// Messages per second over all senders; as fast as it goes unless given
    #[arg(long)]
    rate: Option<f64>,
    /// The broker to start; the one built beside this program unless given
    #[arg(long)]
    broker: Option<PathBuf>,
    /// Where the broker's data goes
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<()> {
    let queues: Vec<String> = (0..options.queues.max(1)).map(|number| format!("q{number}")).collect();
    let broker = Broker::start(options.broker.as_deref(), options.folder.as_deref(), &queues)?;
    println!(
        "start to ready {:.0} ms, idle memory {:.1} MB",
        broker.started_in.as_secs_f64() * 1e3,
        megabytes(broker.resident()?)
    );
    let run = Arc::new(Run {
        address: broker.address.clone(),
        started: Instant::now(),
        stop_sending: AtomicBool::new(false),
        senders_done: AtomicBool::new(false),
        measuring: AtomicBool::new(false),
        accepted: AtomicU64::new(0),
        completed: AtomicU64::new(0),
    });
    let queue = |number: usize| queues.get(number % queues.len()).cloned().unwrap_or_default();
    let receivers: Vec<JoinHandle<Result<Histogram>>> = (0..options.receivers)
        .map(|number| {
            let (run, queue, credit) = (Arc::clone(&run), queue(number), options.credit);
            thread::spawn(move || client::receive(&run, &queue, credit))
        })
        .collect();
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a handful of senders")]
    let share = options.senders as f64;
    let sending = Sending {
        body_bytes: options.size,
        window: options.window,
        rate: options.rate.map(|rate| rate / share),
        backlog: options.backlog,
    };
    let senders: Vec<JoinHandle<Result<Histogram>>> = (0..options.senders)
        .map(|number| {
            let (run, queue) = (Arc::clone(&run), queue(number));
            thread::spawn(move || client::send(&run, &queue, sending))
        })
        .collect();
    thread::sleep(Duration::from_secs(options.warm_up));
    let before = (run.accepted.load(Ordering::Relaxed), run.completed.load(Ordering::Relaxed), broker.cpu()?);
    run.measuring.store(true, Ordering::Relaxed);
    let began = Instant::now();
    thread::sleep(Duration::from_secs(options.seconds));
    let seconds = began.elapsed().as_secs_f64();
    let after = (run.accepted.load(Ordering::Relaxed), run.completed.load(Ordering::Relaxed), broker.cpu()?);
    let memory = broker.resident()?;
    run.measuring.store(false, Ordering::Relaxed);
    run.stop_sending.store(true, Ordering::Relaxed);
    let accepted = gather(senders)?;
    run.senders_done.store(true, Ordering::Relaxed);
    let received = gather(receivers)?;
    let sent = count(after.0 - before.0);
    let done = count(after.1 - before.1);
    let cpu = after.2.saturating_sub(before.2).as_secs_f64();
    println!("sent      {:>9.0} messages/s", sent / seconds);
    println!("completed {:>9.0} messages/s", done / seconds);
    println!(
        "broker    {:>9.2} µs of CPU per completed message, {:.1} MB",
        cpu * 1e6 / done.max(1.0),
        megabytes(memory)
    );
    print_latency("send to accepted", &accepted);
    print_latency("send to received", &received);
    let (all_sent, all_done) = (run.accepted.load(Ordering::Relaxed), run.completed.load(Ordering::Relaxed));
    println!("in all: {all_sent} accepted, {all_done} completed");
    if options.rate.is_some() {
        let folder = options.folder.clone().unwrap_or_else(std::env::temp_dir);
        print_latency("bare fdatasync", &disk::measure(&folder, 4_096, Duration::from_secs(3))?);
    }
    Ok(())
}

fn gather(clients: Vec<JoinHandle<Result<Histogram>>>) -> Result<Histogram> {
    let mut all = Histogram::new();
    for client in clients {
        all.merge(&client.join().map_err(|_| anyhow!("a client panicked"))??);
    }
    Ok(all)
}

fn print_latency(what: &str, histogram: &Histogram) {
    println!(
        "{what:<17} p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.2} ms",
        histogram.quantile_ms(500),
        histogram.quantile_ms(990),
        histogram.quantile_ms(999),
        histogram.max_ms()
    );
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a figure for people")]
fn count(number: u64) -> f64 {
    number as f64
}

fn megabytes(bytes: u64) -> f64 {
    count(bytes) / 1e6
}
