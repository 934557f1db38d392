//! `vorrang bench`: how fast a running broker is from here, with senders and receivers on a queue of its own.
//!
//! Every message counted as sent is safe on the broker's disk, and every one counted as received is completed. The
//! queue is deleted at the end; should this be killed, it goes by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;
use vorrang_client::{Error, Message, Received};

use crate::api::{Api, Json};
use crate::connection::Connection;
use crate::entity::bytes;
use crate::failure::{Failure, Outcome};
use crate::messages::seconds;
use crate::output::{self, Format, Table};
use crate::transfer::{failure, wait};

/// Messages sent in one go.
const BATCH: u64 = 100;
/// Messages received in one go.
const RECEIVE: u32 = 500;
/// Messages that may lie in the queue; senders wait beyond it, so that the queue's size is not what is measured.
const BACKLOG_MAX: u64 = 20_000;
/// How long senders rest at that bound.
const REST: Duration = Duration::from_millis(2);
/// How often a sender with a rate sends.
const BEAT: Duration = Duration::from_millis(10);
/// How long a receiver waits for more before it looks whether all was sent.
const PATIENCE: Duration = Duration::from_millis(300);
/// Times of messages that each receiver keeps; the later ones are counted, but their times are not looked at.
const TIMES_MAX: usize = 4_000_000;
/// Bytes in front of a body that say when it was sent.
const STAMP_BYTES: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Senders, each with a connection of its own
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    senders: u64,
    /// Receivers, each with a connection of its own
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    receivers: u64,
    /// Bytes of a message's body, 8 at least
    #[arg(long, value_name = "BYTES", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(8..=100_000_000))]
    size: u32,
    /// How long messages are sent
    #[arg(long = "for", value_name = "DURATION", default_value = "5s", value_parser = wait)]
    lasts: Duration,
    /// Messages per second over all senders; as fast as it goes unless given
    #[arg(long, value_name = "PER-SECOND", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
}

/// What was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    sent: u64,
    sent_per_second: f64,
    received: u64,
    received_per_second: f64,
    message_bytes: u32,
    /// From being sent to being received.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_seconds: Option<Latency>,
}

#[derive(Debug, Serialize)]
struct Latency {
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

/// What the tasks share.
struct Run {
    queue: String,
    started: Instant,
    until: Instant,
    sent: AtomicU64,
    received: AtomicU64,
    /// When the last of them was completed, in nanoseconds since the beginning.
    ended: AtomicU64,
    all_sent: AtomicBool,
}

/// Measures and tells.
pub(crate) fn run(options: &Options, connection: &Connection, format: Format) -> Outcome {
    let api = Api::new(connection.clone());
    let number = getrandom::u64().map_err(|error| anyhow::anyhow!("no random number: {error}"))?;
    let queue = format!("vorrang-bench-{number:016x}");
    let path = format!("/api/queues/{queue}");
    let _: Json = api.put(&path, &json!({ "autoDeleteOnIdle": "PT5M" }))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let measured = runtime.block_on(measure(options, connection, queue));
    api.delete(&path)?;
    let figures = measured?;
    if format == Format::Json {
        return output::json(&figures);
    }
    let mut table = Table::new(&["what", "messages", "per second", "bytes per second"]);
    for (what, count, rate) in [
        ("sent and safe", figures.sent, figures.sent_per_second),
        ("received and completed", figures.received, figures.received_per_second),
    ] {
        let volume = whole(rate).saturating_mul(u64::from(figures.message_bytes));
        table.row(vec![what.into(), count.into(), format!("{rate:.0}").into(), bytes(volume).into()]);
    }
    table.print()?;
    if let Some(Latency { p50, p95, p99, max }) = figures.latency_seconds {
        let [p50, p95, p99, max] = [p50, p95, p99, max].map(seconds);
        output::line(&format!("from sender to receiver: p50 {p50}, p95 {p95}, p99 {p99}, max {max}"))?;
    }
    Ok(())
}

async fn measure(options: &Options, connection: &Connection, queue: String) -> Result<Figures, Failure> {
    let started = Instant::now();
    let run = Arc::new(Run {
        queue,
        started,
        until: started + options.lasts,
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        all_sent: AtomicBool::new(false),
    });
    let (mut senders, mut receivers) = (JoinSet::new(), JoinSet::new());
    for _ in 0..options.receivers {
        receivers.spawn(receive(Arc::clone(&run), connection.clone()));
    }
    for number in 0..options.senders {
        // The rest goes to the first ones.
        let share =
            options.rate.map(|rate| rate / options.senders + u64::from(number < rate % options.senders));
        senders.spawn(send(Arc::clone(&run), connection.clone(), options.size, share));
    }
    let sent = finished(&mut senders).await;
    let sending = started.elapsed();
    // Receivers end whether or not the senders could do their work.
    run.all_sent.store(true, Ordering::Release);
    let times = finished(&mut receivers).await?;
    sent?;
    let receiving = Duration::from_nanos(run.ended.load(Ordering::Acquire));
    let (sent, received) = (run.sent.load(Ordering::Acquire), run.received.load(Ordering::Acquire));
    Ok(Figures {
        sent,
        sent_per_second: rate(sent, sending),
        received,
        received_per_second: rate(received, receiving),
        message_bytes: options.size,
        latency_seconds: latency(times.into_iter().flatten().collect()),
    })
}

/// Waits for every task; the first failure is the outcome.
async fn finished<T: 'static>(tasks: &mut JoinSet<Result<T, Error>>) -> Result<Vec<T>, Failure> {
    let mut results = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        results.push(ended.map_err(|error| anyhow::anyhow!("a task ended early: {error}"))?);
    }
    results.into_iter().collect::<Result<Vec<T>, Error>>().map_err(failure)
}

async fn send(run: Arc<Run>, connection: Connection, size: u32, share: Option<u64>) -> Result<(), Error> {
    let client = connection.client().await?;
    let sender = client.sender(&run.queue).await?;
    let size = usize::try_from(size).unwrap_or(STAMP_BYTES).max(STAMP_BYTES);
    let begun = Instant::now();
    let mut mine = 0_u64;
    while Instant::now() < run.until {
        let behind = run.sent.load(Ordering::Acquire).saturating_sub(run.received.load(Ordering::Acquire));
        let due = share.map_or(BATCH, |share| due(share, begun.elapsed()).saturating_sub(mine).min(BATCH));
        if behind > BACKLOG_MAX || due == 0 {
            tokio::time::sleep(if due == 0 { BEAT } else { REST }).await;
            continue;
        }
        let stamp = nanos(run.started);
        let message = || {
            let mut body = stamp.to_le_bytes().to_vec();
            body.resize(size, b'x');
            Message::new(body)
        };
        sender.send_all((0..due).map(|_| message())).await?;
        mine = mine.saturating_add(due);
        run.sent.fetch_add(due, Ordering::AcqRel);
    }
    client.close().await
}

/// How many messages a sender should have sent by now.
fn due(per_second: u64, after: Duration) -> u64 {
    let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    per_second.saturating_mul(millis) / 1_000
}

/// Receives and completes until all was sent and nothing comes any more; returns how long messages took.
async fn receive(run: Arc<Run>, connection: Connection) -> Result<Vec<Duration>, Error> {
    let client = connection.client().await?;
    let mut receiver = client.receiver(run.queue.as_str()).await?;
    let mut times = Vec::new();
    loop {
        let all_sent = run.all_sent.load(Ordering::Acquire);
        let batch = receiver.recv_batch(RECEIVE, PATIENCE).await?;
        let now = run.started.elapsed();
        let room = TIMES_MAX.saturating_sub(times.len());
        times.extend(batch.iter().filter_map(stamp).map(|sent| now.saturating_sub(sent)).take(room));
        if batch.is_empty() {
            if all_sent {
                break;
            }
            continue;
        }
        receiver.complete_all(&batch).await.into_iter().collect::<Result<(), Error>>()?;
        run.received.fetch_add(u64::try_from(batch.len()).unwrap_or(0), Ordering::AcqRel);
        run.ended.fetch_max(nanos(run.started), Ordering::AcqRel);
    }
    receiver.close().await?;
    client.close().await?;
    Ok(times)
}

fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// When a message was sent, since the beginning.
fn stamp(received: &Received) -> Option<Duration> {
    let body = received.body();
    body.first_chunk::<STAMP_BYTES>().map(|stamp| Duration::from_nanos(u64::from_le_bytes(*stamp)))
}

fn latency(mut times: Vec<Duration>) -> Option<Latency> {
    times.sort_unstable();
    let part = |hundredths: usize| {
        let at = times.len().saturating_sub(1).saturating_mul(hundredths) / 100;
        times.get(at).map(Duration::as_secs_f64)
    };
    Some(Latency { p50: part(50)?, p95: part(95)?, p99: part(99)?, max: part(100)? })
}

fn rate(count: u64, during: Duration) -> f64 {
    // Counts are far below where a double becomes coarse.
    let count = u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
    count / during.as_secs_f64().max(0.001)
}

/// A rate without its fraction, for a size that is shown.
fn whole(rate: f64) -> u64 {
    Duration::try_from_secs_f64(rate).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        assert!(latency(Vec::new()).is_none());
        let shown = |times: Vec<Duration>| {
            let Latency { p50, p95, p99, max } = latency(times).unwrap();
            format!("{p50} {p95} {p99} {max}")
        };
        assert_eq!(shown(vec![Duration::from_secs(3)]), "3 3 3 3");
        assert_eq!(shown((0..=100).rev().map(Duration::from_secs).collect()), "50 95 99 100");
    }

    #[test]
    fn a_rate_is_kept_over_time() {
        let cases = [(100, 0, 0), (100, 10, 1), (100, 1_000, 100), (1, 999, 0), (1, 1_000, 1)];
        for (per_second, millis, expected) in cases {
            assert_eq!(due(per_second, Duration::from_millis(millis)), expected, "{per_second} {millis}");
        }
    }
}
