//! Many connections with one link each: what each costs in memory, and whether messages get through all of them.
//!
//! Half of the connections send and half receive, spread over some queues. A pacer hands out the rate; nothing is sent
//! faster, so that what is measured is the number of connections and not the disk.

mod peer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use vorrang_amqp::performative::Role;

use crate::broker::Broker;
use peer::Peer;

/// How often the pacer hands out its share.
const TICK: Duration = Duration::from_millis(10);
/// Handshakes at a time: a storm, but not one that only measures the listen queue.
const HANDSHAKES_MAX: usize = 256;
/// How long the last messages may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Connections, each with one link
    #[arg(long, default_value_t = 10_000)]
    pub count: u32,
    /// Messages per second over all of them; 0 only connects
    #[arg(long, default_value_t = 10_000)]
    pub rate: u32,
    /// How long to send
    #[arg(long, default_value_t = 10)]
    pub seconds: u32,
    /// Queues the connections are spread over
    #[arg(long, default_value_t = 100)]
    pub queues: u32,
    /// The broker's binary; the one beside this program if not given
    #[arg(long)]
    pub broker: Option<PathBuf>,
    /// Where the broker's data goes; a temporary folder if not given
    #[arg(long)]
    pub folder: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Connections that were opened.
    pub connections: u64,
    /// Connections that broke.
    pub broken: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages the broker accepted.
    pub accepted: u64,
    /// Messages received and completed.
    pub completed: u64,
    /// Memory of the broker for each connection.
    pub bytes_per_connection: u64,
}

/// Counted by all connections.
#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    accepted: AtomicU64,
    completed: AtomicU64,
    broken: AtomicU64,
}

/// Runs the measurement and prints it.
pub fn run(options: &Options) -> Result<Report> {
    raise_descriptor_limit(u64::from(options.count) + 200)?;
    let queues: Vec<String> = (0..options.queues.max(1)).map(|number| format!("queue-{number}")).collect();
    let broker = Broker::start(options.broker.as_deref(), options.folder.as_deref(), &queues)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(options, &broker, &queues))
}

async fn measure(options: &Options, broker: &Broker, queues: &[String]) -> Result<Report> {
    let counters = Arc::new(Counters::default());
    let idle = broker.resident()?;
    let began = Instant::now();
    let (links, mut connected) = connect(options.count, &broker.address, queues, &counters).await?;
    let storm = began.elapsed();
    let connections = u64::from(options.count);
    let bytes_per_connection = broker.resident()?.saturating_sub(idle) / connections.max(1);
    println!(
        "connections      {connections} in {storm:.1?}, {:.0} per second",
        f64::from(options.count) / storm.as_secs_f64()
    );
    println!("memory           {bytes_per_connection} bytes per connection beyond {} KiB idle", idle / 1_024);
    let cpu = broker.cpu()?;
    let began = Instant::now();
    let ordered = pace(options, &links).await;
    let took = began.elapsed();
    drop(links);
    let left = Instant::now();
    // Compared with what was ordered, not with what was sent: an order may still lie in its sender's line.
    while counters.completed.load(Ordering::Relaxed) < ordered && left.elapsed() < PATIENCE {
        sleep(TICK).await;
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let report = Report {
        connections,
        broken: count(&counters.broken),
        sent: count(&counters.sent),
        accepted: count(&counters.accepted),
        completed: count(&counters.completed),
        bytes_per_connection,
    };
    connected.abort_all();
    println!(
        "messages         {} sent, {} accepted, {} completed in {took:.1?}; {} missing",
        report.sent,
        report.accepted,
        report.completed,
        report.sent.saturating_sub(report.completed)
    );
    println!("broken           {} connections", report.broken);
    println!(
        "broker           {:.1?} of CPU while sending, {} KiB",
        broker.cpu()?.saturating_sub(cpu),
        broker.resident()? / 1_024
    );
    Ok(report)
}

/// Opens every connection; returns a line to each sender.
async fn connect(
    count: u32,
    address: &str,
    queues: &[String],
    counters: &Arc<Counters>,
) -> Result<(Vec<mpsc::Sender<()>>, JoinSet<()>)> {
    let places = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let mut opening = JoinSet::new();
    for (number, queue) in (0..count).zip(queues.iter().cycle()) {
        let (places, address, queue) = (Arc::clone(&places), address.to_owned(), queue.clone());
        // Neighbours share a queue only by chance of the cycle, so the role follows the round, not the number.
        let round = number / u32::try_from(queues.len())?;
        let role = if round.is_multiple_of(2) { Role::Receiver } else { Role::Sender };
        opening.spawn(async move {
            let _place = places.acquire().await?;
            let mut peer = Peer::connect(&address).await?;
            let link = peer.attach(&queue, role).await?;
            anyhow::Ok((peer, link, role))
        });
    }
    let (mut lines, mut running) = (Vec::new(), JoinSet::new());
    while let Some(opened) = opening.join_next().await {
        let (peer, link, role) = opened?.context("a connection could not be opened")?;
        let counters = Arc::clone(counters);
        match role {
            Role::Sender => {
                let (line, orders) = mpsc::channel(64);
                lines.push(line);
                running.spawn(async move {
                    if peer.send_all(link, orders, &counters).await.is_err() {
                        counters.broken.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            Role::Receiver => {
                running.spawn(async move {
                    if peer.receive_all(link, &counters).await.is_err() {
                        counters.broken.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        }
    }
    Ok((lines, running))
}

/// Hands out the rate, round and round; returns how many messages it ordered.
async fn pace(options: &Options, senders: &[mpsc::Sender<()>]) -> u64 {
    let share = u64::from(options.rate) / 100;
    let ticks = u64::from(options.seconds) * 100;
    let mut ordered = 0;
    let mut next = senders.iter().cycle();
    let mut clock = interval(TICK);
    for _ in 0..ticks {
        clock.tick().await;
        for _ in 0..share {
            let Some(sender) = next.next() else { return ordered };
            // A sender that is gone is counted as broken.
            if sender.send(()).await.is_ok() {
                ordered += 1;
            }
        }
    }
    ordered
}

/// Lets this process hold as many sockets as the system allows it.
pub(crate) fn raise_descriptor_limit(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
            .context("cannot raise the limit of open files")?;
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        anyhow::bail!(
            "the system allows {:?} open files, {needed} are needed: raise `ulimit -Hn`",
            limit.maximum
        );
    }
    Ok(())
}
