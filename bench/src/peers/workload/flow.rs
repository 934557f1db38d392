//! W1, W2 and W3: messages flow as fast as they go, or at a fixed rate, from senders to receivers.
//!
//! What is measured lies between two instants while everything runs: messages acknowledged and settled, CPU of the
//! server's processes, latencies. Senders wait while the backlog is above a bound, so that no server is measured by
//! how well it stores what the others deliver.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use super::{BODY_BYTES, Figures, Running, Scale, WINDOW, count, put};
use crate::histogram::Histogram;
use crate::peers::peer::{Layout, Message, Peer, Receiver, Sender, Stamp};

/// Messages in the server above which senders wait, where there are receivers.
const BACKLOG_MAX: u64 = 20_000;
/// How long the last messages may take after the senders have stopped.
const END_WAIT: Duration = Duration::from_secs(30);

/// How many clients, and how fast.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) senders: u32,
    pub(crate) receivers: u32,
    /// Messages a second over all senders; as fast as it goes without.
    pub(crate) rate: Option<f64>,
}

/// What all clients of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    began: Instant,
    stop: AtomicBool,
    senders_done: AtomicBool,
    measuring: AtomicBool,
    failed: AtomicBool,
    accepted: AtomicU64,
    settled: AtomicU64,
    numbers: AtomicU64,
}

impl Shared {
    pub(super) fn new() -> Arc<Shared> {
        Arc::new(Shared {
            began: Instant::now(),
            stop: AtomicBool::new(false),
            senders_done: AtomicBool::new(false),
            measuring: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            numbers: AtomicU64::new(0),
        })
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn backlog(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed).saturating_sub(self.settled.load(Ordering::Relaxed))
    }
}

/// Starts the peer and measures.
pub(crate) fn run(peer: &dyn Peer, plan: Plan, scale: &Scale) -> Result<Figures> {
    on(&Running::start(peer, Layout::Plain)?, plan, scale)
}

/// Measures a server that runs.
pub(crate) fn on(running: &Running, plan: Plan, scale: &Scale) -> Result<Figures> {
    let shared = Shared::new();
    let mut receivers = Vec::new();
    for _ in 0..plan.receivers {
        let (receiver, shared) = (running.clients.receiver(WINDOW)?, Arc::clone(&shared));
        receivers.push(thread::spawn(move || watched(&shared, || receive(&shared, receiver))));
    }
    let backlog_max = if plan.receivers == 0 { u64::MAX } else { BACKLOG_MAX };
    let mut senders = Vec::new();
    for _ in 0..plan.senders {
        let (sender, shared) = (running.clients.sender()?, Arc::clone(&shared));
        let rate = plan.rate.map(|rate| rate / f64::from(plan.senders));
        senders
            .push(thread::spawn(move || watched(&shared, || send(&shared, sender, rate, backlog_max, None))));
    }
    nap(&shared, scale.warm_up);
    let counts = || (shared.accepted.load(Ordering::Relaxed), shared.settled.load(Ordering::Relaxed));
    let (before, cpu_before) = (counts(), running.daemon.cpu()?);
    shared.measuring.store(true, Ordering::Relaxed);
    let began = Instant::now();
    nap(&shared, scale.measured);
    let seconds = began.elapsed().as_secs_f64();
    let (after, cpu_after) = (counts(), running.daemon.cpu()?);
    shared.measuring.store(false, Ordering::Relaxed);
    let memory = running.daemon.resident()?;
    shared.stop.store(true, Ordering::Relaxed);
    let acknowledged = gather(senders)?;
    shared.senders_done.store(true, Ordering::Relaxed);
    let received = gather(receivers)?;
    let done = count(if plan.receivers == 0 { after.0 - before.0 } else { after.1 - before.1 });
    let cpu = cpu_after.saturating_sub(cpu_before).as_secs_f64();
    let mut figures = Figures::new();
    put(&mut figures, "rate", done / seconds);
    put(&mut figures, "cpu_us", cpu * 1e6 / done.max(1.0));
    put(&mut figures, "per_cpu_second", done / cpu.max(0.01));
    put(&mut figures, "cores", cpu / seconds);
    put(&mut figures, "memory_mb", count(memory) / 1e6);
    latencies(&mut figures, "ack", &acknowledged);
    if plan.receivers > 0 {
        latencies(&mut figures, "received", &received);
    }
    Ok(figures)
}

/// Sends so many messages with several senders, or as many as the time allows; how many were acknowledged.
pub(crate) fn fill(
    running: &Running,
    messages: u64,
    senders: u64,
    patience: Duration,
    key: Option<fn(u64) -> u32>,
) -> Result<u64> {
    let shared = Shared::new();
    let mut threads = Vec::new();
    for _ in 0..senders {
        let (sender, shared) = (running.clients.sender()?, Arc::clone(&shared));
        threads.push(thread::spawn(move || watched(&shared, || send(&shared, sender, None, u64::MAX, key))));
    }
    let began = Instant::now();
    while shared.accepted.load(Ordering::Relaxed) < messages
        && began.elapsed() < patience
        && !shared.failed.load(Ordering::Relaxed)
    {
        thread::sleep(Duration::from_millis(2));
    }
    shared.stop.store(true, Ordering::Relaxed);
    gather(threads)?;
    Ok(shared.accepted.load(Ordering::Relaxed))
}

/// Receives and settles with several receivers until so many are settled or the time is up; how many, in which time.
pub(crate) fn drain(
    running: &Running,
    messages: u64,
    receivers: u32,
    patience: Duration,
) -> Result<(u64, Duration)> {
    let shared = Shared::new();
    shared.accepted.store(messages, Ordering::Relaxed);
    shared.senders_done.store(true, Ordering::Relaxed);
    let mut threads = Vec::new();
    for _ in 0..receivers {
        let (receiver, shared) = (running.clients.receiver(WINDOW)?, Arc::clone(&shared));
        threads.push(thread::spawn(move || watched(&shared, || receive(&shared, receiver))));
    }
    let began = Instant::now();
    while shared.backlog() > 0 && began.elapsed() < patience && !shared.failed.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(2));
    }
    let (settled, time) = (shared.settled.load(Ordering::Relaxed), began.elapsed());
    shared.accepted.store(0, Ordering::Relaxed);
    gather(threads)?;
    Ok((settled, time))
}

fn latencies(figures: &mut Figures, what: &str, histogram: &Histogram) {
    for (name, per_mille) in [("p50", 500), ("p99", 990), ("p999", 999)] {
        put(figures, &format!("{what}_{name}_ms"), histogram.quantile_ms(per_mille));
    }
    put(figures, &format!("{what}_max_ms"), histogram.max_ms());
}

/// Sleeps, but not on while a client has failed: its error is waiting to be told.
fn nap(shared: &Shared, time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time && !shared.failed.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(10).min(time));
    }
}

/// A client's failure stops the others.
fn watched(shared: &Shared, client: impl FnOnce() -> Result<Histogram>) -> Result<Histogram> {
    let outcome = client();
    if outcome.is_err() {
        shared.failed.store(true, Ordering::Relaxed);
        shared.stop.store(true, Ordering::Relaxed);
    }
    outcome
}

fn gather(clients: Vec<JoinHandle<Result<Histogram>>>) -> Result<Histogram> {
    let mut all = Histogram::new();
    for client in clients {
        all.merge(&client.join().map_err(|_| anyhow!("a client panicked"))??);
    }
    Ok(all)
}

/// Messages on the way, by their numbers, which are given in order.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    first: u64,
    sent: VecDeque<Option<Instant>>,
    open: usize,
}

impl InFlight {
    pub(super) fn push(&mut self, now: Instant) {
        self.sent.push_back(Some(now));
        self.open += 1;
    }

    /// When that message was sent, if it is still on the way.
    pub(super) fn remove(&mut self, number: u64) -> Option<Instant> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let sent = self.sent.get_mut(place)?.take()?;
        self.open -= 1;
        while let Some(None) = self.sent.front() {
            self.sent.pop_front();
            self.first += 1;
        }
        Some(sent)
    }

    pub(super) fn len(&self) -> usize {
        self.open
    }
}

fn send(
    shared: &Shared,
    mut sender: Box<dyn Sender>,
    rate: Option<f64>,
    backlog_max: u64,
    key: Option<fn(u64) -> u32>,
) -> Result<Histogram> {
    let mut histogram = Histogram::new();
    let mut in_flight = InFlight::default();
    let mut body = vec![b'x'; BODY_BYTES];
    let window = usize::try_from(WINDOW)?;
    let (began, mut sent) = (Instant::now(), 0_u64);
    let mut stopped = None;
    loop {
        let stopping = shared.stop.load(Ordering::Relaxed);
        if stopping {
            let since = *stopped.get_or_insert_with(Instant::now);
            if in_flight.len() == 0 || shared.failed.load(Ordering::Relaxed) {
                return Ok(histogram);
            }
            if since.elapsed() > END_WAIT {
                bail!("{} sends were not acknowledged within {END_WAIT:?}", in_flight.len());
            }
        }
        let due = rate.map_or(u64::MAX, |rate| due(began.elapsed(), rate));
        let held_back = shared.backlog() > backlog_max;
        while !stopping && !held_back && in_flight.len() < window && sent < due {
            let number = shared.numbers.fetch_add(1, Ordering::Relaxed);
            Stamp { sent_micros: shared.micros(), number, class: 0 }.write(&mut body);
            if !sender.send(&Message { body: &body, class: 0, key: key.map(|key| key(number)) })? {
                break;
            }
            in_flight.push(Instant::now());
            sent += 1;
        }
        if in_flight.len() == 0 {
            thread::sleep(Duration::from_micros(200));
            continue;
        }
        let wait = if rate.is_some() { Duration::from_micros(500) } else { Duration::from_millis(50) };
        let measuring = shared.measuring.load(Ordering::Relaxed);
        let mut accepted = 0;
        sender.acknowledged(wait, &mut |number| {
            if let Some(sent) = in_flight.remove(number) {
                accepted += 1;
                if measuring {
                    histogram.record(sent.elapsed());
                }
            }
        })?;
        shared.accepted.fetch_add(accepted, Ordering::Relaxed);
    }
}

fn receive(shared: &Shared, mut receiver: Box<dyn Receiver>) -> Result<Histogram> {
    let mut histogram = Histogram::new();
    let mut batch = Vec::new();
    let (mut told, mut ending) = (0, None);
    loop {
        receiver.poll(Duration::from_millis(20), &mut |delivery| batch.push(delivery))?;
        let measuring = shared.measuring.load(Ordering::Relaxed);
        for delivery in batch.drain(..) {
            if measuring {
                let latency = shared.micros().saturating_sub(delivery.stamp.sent_micros);
                histogram.record(Duration::from_micros(latency));
            }
            receiver.settle(delivery.token)?;
        }
        receiver.flush()?;
        let settled = receiver.settled();
        shared.settled.fetch_add(settled - told, Ordering::Relaxed);
        told = settled;
        if shared.failed.load(Ordering::Relaxed) {
            return Ok(histogram);
        }
        if shared.senders_done.load(Ordering::Relaxed) {
            if shared.backlog() == 0 {
                return Ok(histogram);
            }
            if shared.stop.load(Ordering::Relaxed)
                && ending.get_or_insert_with(Instant::now).elapsed() > END_WAIT
            {
                bail!("{} messages were not settled within {END_WAIT:?}", shared.backlog());
            }
        }
    }
}

/// Messages that should have been sent by now.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count that fits"
)]
pub(super) fn due(elapsed: Duration, rate: f64) -> u64 {
    (elapsed.as_secs_f64() * rate) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_on_the_way_may_be_acknowledged_in_any_order_and_once() {
        let mut in_flight = InFlight::default();
        let now = Instant::now();
        (0..4).for_each(|_| in_flight.push(now));
        for (number, known) in
            [(2, true), (2, false), (0, true), (9, false), (1, true), (3, true), (0, false)]
        {
            assert_eq!(in_flight.remove(number).is_some(), known, "{number}");
        }
        assert_eq!(in_flight.len(), 0);
        in_flight.push(now);
        assert!(in_flight.remove(4).is_some(), "numbers go on");
    }

    #[test]
    fn what_is_due_follows_the_rate() {
        for (millis, rate, expected) in [(0, 1000.0, 0), (1, 1000.0, 1), (999, 2.0, 1), (1_000, 2.0, 2)] {
            assert_eq!(due(Duration::from_millis(millis), rate), expected, "{millis} ms at {rate}");
        }
    }
}
