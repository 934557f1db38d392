//! W5: how long each class waits when more comes than can be worked off.
//!
//! Four workers need 4 ms for a message, so a thousand are done in a second, and 1,200 come: a tenth of them in the top class,
//! three tenths in the next, and with the third class already slightly more than can be done. Whoever serves strictly by
//! priority never gets to the lowest. A wait ends when a worker begins with the message, not when it arrives in the worker's
//! prefetch: that is where priorities are lost. Workers take their prefetched messages in the order they came, as clients do.
//!
//! Each worker becomes free in a rhythm of its own, one of them every millisecond. If they were left to it they would fall into one
//! rhythm by chance, so that all are busy for 4 ms and then all free, and waits would show which peer was lucky.
//!
//! How late a worker wakes that slept for its 4 ms is measured along: where the processors are taken, by others on the machine
//! or by the server itself, waits are no longer the server's order alone. So is how long a bare synced write takes meanwhile: no
//! message can be durable, and so be handed out, sooner than that.
//!
//! An inversion: a worker begins with a message while a more urgent one, acknowledged more than 20 ms before, still waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::flow::{InFlight, due};
use super::{BODY_BYTES, Figures, Running, Scale, count, put};
use crate::disk::{self, Blocks};
use crate::histogram::Histogram;
use crate::peers::peer::{CLASSES, Delivery, Layout, Message, Peer, Receiver, Sender, Stamp};

const WORKERS: u32 = 4;
const SERVICE: Duration = Duration::from_millis(4);
/// 120 % of what four workers can do.
const RATE: f64 = 1_200.0;
/// Of twenty messages, in which class each is: 2, 6, 9 and 3 of them.
const MIX: [u8; 20] = [2, 1, 2, 0, 2, 1, 3, 2, 1, 2, 2, 1, 3, 2, 0, 1, 2, 3, 2, 1];
/// From when on a more urgent message counts as passed over.
const GRACE: Duration = Duration::from_millis(20);
const WINDOW: usize = 2_000;
/// Between two bare synced writes: few against those of the server.
const DISK_TICK: Duration = Duration::from_millis(20);
const DISK_BYTES: usize = 4_096;

/// What waits in each class, as the outside sees it.
#[derive(Debug)]
struct Ledger {
    began: Instant,
    waiting: Vec<BTreeMap<u64, Instant>>,
    /// Begun before their acknowledgement was seen.
    early: BTreeSet<u64>,
    waits: Vec<Histogram>,
    sent: Vec<u64>,
    begun: u64,
    inversions: u64,
    /// How late workers woke.
    late: Histogram,
}

impl Ledger {
    fn new() -> Ledger {
        let classes = usize::from(CLASSES);
        Ledger {
            began: Instant::now(),
            waiting: vec![BTreeMap::new(); classes],
            early: BTreeSet::new(),
            waits: vec![Histogram::new(); classes],
            sent: vec![0; classes],
            begun: 0,
            inversions: 0,
            late: Histogram::new(),
        }
    }

    fn acknowledged(&mut self, class: u8, number: u64, now: Instant) {
        if let Some(sent) = self.sent.get_mut(usize::from(class)) {
            *sent += 1;
        }
        if !self.early.remove(&number)
            && let Some(waiting) = self.waiting.get_mut(usize::from(class))
        {
            waiting.insert(number, now);
        }
    }

    /// A worker begins with a message.
    fn begun(&mut self, stamp: Stamp, now: Instant) {
        let class = usize::from(stamp.class);
        if self.waiting.get_mut(class).is_some_and(|waiting| waiting.remove(&stamp.number).is_none()) {
            self.early.insert(stamp.number);
        }
        self.begun += 1;
        let passed_over = |waiting: &BTreeMap<u64, Instant>| {
            waiting.values().next().is_some_and(|since| now.duration_since(*since) > GRACE)
        };
        if self.waiting.iter().take(class).any(passed_over) {
            self.inversions += 1;
        }
        let waited = now.duration_since(self.began).saturating_sub(Duration::from_micros(stamp.sent_micros));
        if let Some(waits) = self.waits.get_mut(class) {
            waits.record(waited);
        }
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::new();
        for (class, ((waits, waiting), sent)) in
            self.waits.iter().zip(&self.waiting).zip(&self.sent).enumerate()
        {
            let mut put = |name: &str, value| put(&mut figures, &format!("c{class}_{name}"), value);
            // A class that nobody served has no waits, rather than waits of no time.
            if waits.max_ms() > 0.0 {
                put("p50_ms", waits.quantile_ms(500));
                put("p99_ms", waits.quantile_ms(990));
                put("max_ms", waits.max_ms());
            }
            put("never", count(u64::try_from(waiting.len()).unwrap_or(0)));
            put("sent", count(*sent));
        }
        put(&mut figures, "begun", count(self.begun));
        put(&mut figures, "inversions", count(self.inversions));
        put(&mut figures, "late_p99_ms", self.late.quantile_ms(990));
        figures
    }
}

pub(crate) fn run(peer: &dyn Peer, prefetch: u32, scale: &Scale) -> Result<Figures> {
    let running = Running::start(peer, Layout::Priorities)?;
    let mut receivers = Vec::new();
    for _ in 0..WORKERS {
        receivers.push(running.clients.receiver(prefetch)?);
    }
    let sender = running.clients.sender()?;
    let mut blocks = Blocks::new(&std::env::temp_dir(), DISK_BYTES)?;
    let ledger = Mutex::new(Ledger::new());
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    let disk = thread::scope(|scope| -> Result<Histogram> {
        let (ledger, stop) = (&ledger, &stop);
        let disk = scope.spawn(|| disk::watch(&mut blocks, DISK_TICK, stop));
        let rhythms = (0..WORKERS).map(|worker| began + SERVICE / WORKERS * worker);
        let workers: Vec<_> = receivers
            .into_iter()
            .zip(rhythms)
            .map(|(receiver, rhythm)| {
                scope.spawn(move || stopping(stop, work(ledger, stop, receiver, rhythm)))
            })
            .collect();
        let sending = scope.spawn(move || stopping(stop, send(ledger, stop, sender)));
        while began.elapsed() < scale.overload && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        for thread in workers.into_iter().chain([sending]) {
            thread.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        disk.join().map_err(|_| anyhow!("the look at the disk panicked"))?
    })?;
    let mut figures = ledger.into_inner().map_err(|_| anyhow!("a client panicked"))?.figures();
    let sync = disk.quantile_ms(990);
    put(&mut figures, "disk_p99_ms", sync);
    let top = figures.get("c0_p99_ms").copied();
    if let Some(top) = top.filter(|_| sync > 0.0) {
        put(&mut figures, "c0_p99_syncs", top / sync);
    }
    Ok(figures)
}

/// A failure ends the run for all.
fn stopping(stop: &AtomicBool, outcome: Result<()>) -> Result<()> {
    if outcome.is_err() {
        stop.store(true, Ordering::Relaxed);
    }
    outcome
}

fn with<T>(ledger: &Mutex<Ledger>, change: impl FnOnce(&mut Ledger) -> T) -> Result<T> {
    Ok(change(&mut *ledger.lock().map_err(|_| anyhow!("a client panicked"))?))
}

fn send(ledger: &Mutex<Ledger>, stop: &AtomicBool, mut sender: Box<dyn Sender>) -> Result<()> {
    let began = with(ledger, |ledger| ledger.began)?;
    let mut in_flight = InFlight::default();
    let mut body = vec![b'x'; BODY_BYTES];
    let mut sent = 0;
    let class_of = |number: u64| {
        usize::try_from(number).ok().and_then(|number| MIX.get(number % MIX.len())).copied().unwrap_or(0)
    };
    while !stop.load(Ordering::Relaxed) {
        let due = due(began.elapsed(), RATE);
        while sent < due && in_flight.len() < WINDOW {
            let sent_micros = u64::try_from(began.elapsed().as_micros())?;
            let class = class_of(sent);
            Stamp { sent_micros, number: sent, class }.write(&mut body);
            if !sender.send(&Message { body: &body, class, key: None })? {
                break;
            }
            in_flight.push(Instant::now());
            sent += 1;
        }
        let mut seen = Vec::new();
        sender.acknowledged(Duration::from_millis(1), &mut |number| seen.push(number))?;
        let now = Instant::now();
        with(ledger, |ledger| {
            for number in seen {
                if in_flight.remove(number).is_some() {
                    ledger.acknowledged(class_of(number), number, now);
                }
            }
        })?;
    }
    Ok(())
}

/// Works off messages, and is free whenever a multiple of the time for one has passed since `free_at`.
fn work(
    ledger: &Mutex<Ledger>,
    stop: &AtomicBool,
    mut receiver: Box<dyn Receiver>,
    mut free_at: Instant,
) -> Result<()> {
    let mut local: VecDeque<Delivery> = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        let wait = if local.is_empty() { Duration::from_millis(20) } else { Duration::ZERO };
        receiver.poll(wait, &mut |delivery| local.push_back(delivery))?;
        let Some(delivery) = local.pop_front() else { continue };
        let now = Instant::now();
        with(ledger, |ledger| ledger.begun(delivery.stamp, now))?;
        free_at = next_free(free_at, now);
        thread::sleep(free_at.saturating_duration_since(Instant::now()));
        let late = Instant::now().saturating_duration_since(free_at);
        with(ledger, |ledger| ledger.late.record(late))?;
        receiver.settle(delivery.token)?;
    }
    receiver.flush()
}

/// When a worker that begins now is free again. A sleep that took too long is made up for, so that capacity does not depend on the
/// system's timer; what was missed beyond that is lost, and the rhythm stays.
fn next_free(free_at: Instant, now: Instant) -> Instant {
    let missed = now.saturating_duration_since(free_at).as_micros() / SERVICE.as_micros();
    free_at + SERVICE * u32::try_from(missed + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_keeps_its_rhythm_however_late_it_begins() {
        let start = Instant::now();
        let micros = |count: u64| start + Duration::from_micros(count);
        for (case, begins, free) in [
            ("before its rhythm has begun", 0, 5_000),
            ("on time", 1_000, 5_000),
            ("a little late, which is made up for", 1_300, 5_000),
            ("late by just less than a message", 4_999, 5_000),
            ("late by a message", 5_000, 9_000),
            ("late by some", 16_000, 17_000),
        ] {
            assert_eq!(next_free(micros(1_000), micros(begins)), micros(free), "{case}");
        }
    }

    fn stamp(number: u64, class: u8) -> Stamp {
        Stamp { sent_micros: 0, number, class }
    }

    #[test]
    fn the_upper_three_classes_alone_are_more_than_can_be_done() {
        let capacity = f64::from(WORKERS) / SERVICE.as_secs_f64();
        let mut shares = [0; 4];
        for class in MIX {
            shares[usize::from(class)] += 1;
        }
        assert_eq!(shares, [2, 6, 9, 3]);
        assert!((RATE - capacity * 1.2).abs() < 1e-9);
        assert!(RATE * 17.0 / 20.0 > capacity);
    }

    #[test]
    fn an_inversion_is_a_more_urgent_message_passed_over_for_longer_than_the_grace() {
        let cases = [
            ("nothing waits", None, 3, 0),
            ("the more urgent one has just come", Some((0, GRACE)), 3, 0),
            ("it waits too long", Some((0, GRACE + Duration::from_millis(1))), 3, 1),
            ("it is as urgent", Some((3, GRACE * 2)), 3, 0),
            ("it is less urgent", Some((3, GRACE * 2)), 1, 0),
        ];
        for (case, waiting, begun, inversions) in cases {
            let mut ledger = Ledger::new();
            let start = ledger.began;
            let mut now = start;
            if let Some((class, since)) = waiting {
                ledger.acknowledged(class, 1, start);
                now = start + since;
            }
            ledger.acknowledged(begun, 2, now);
            ledger.begun(stamp(2, begun), now);
            assert_eq!(ledger.inversions, inversions, "{case}");
        }
    }

    #[test]
    fn what_was_acknowledged_and_never_begun_is_counted_by_class() {
        let mut ledger = Ledger::new();
        let now = ledger.began;
        ledger.acknowledged(3, 1, now);
        ledger.acknowledged(3, 2, now);
        ledger.begun(stamp(2, 3), now);
        ledger.begun(stamp(3, 0), now);
        ledger.acknowledged(0, 3, now);
        let figures = ledger.figures();
        assert_eq!((figures["c3_never"], figures["c0_never"], figures["begun"]), (1.0, 0.0, 2.0));
    }
}
