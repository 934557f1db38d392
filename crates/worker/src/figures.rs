//! What a pool has done and is doing, for people and for autoscalers.
//!
//! The pump is the only writer; anybody may read at any time. Counters only grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vorrang_client::Error;

use crate::pool::Settled;

/// The figures of one pool, shared.
#[derive(Debug)]
pub struct Figures {
    name: Arc<str>,
    pub(crate) slots: Gauge,
    pub(crate) running: Gauge,
    pub(crate) ready: Gauge,
    pub(crate) set_aside: Gauge,
    pub(crate) breaker_open: Gauge,
    pub(crate) preempted: Counter,
    pub(crate) breaker_opened: Counter,
    pub(crate) entities: Vec<EntityFigures>,
}

/// The figures of one of a pool's entities.
#[derive(Debug)]
pub struct EntityFigures {
    entity: Arc<str>,
    pub(crate) received: Counter,
    pub(crate) completed: Counter,
    pub(crate) failed: Counter,
    pub(crate) panicked: Counter,
    pub(crate) retried: Counter,
    pub(crate) dead_lettered: Counter,
    pub(crate) suspended: Counter,
    pub(crate) unavailable: Counter,
    pub(crate) given_back: Counter,
    pub(crate) locks_lost: Counter,
    pub(crate) renewed: Counter,
    pub(crate) wait: Sum,
    pub(crate) service: Sum,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn set(&self, value: usize) {
        self.0.store(u64::try_from(value).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// One more, for as long as the answer is held.
    pub(crate) fn hold(&self) -> OneMore<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        OneMore(self)
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counted in a gauge until it is dropped.
#[derive(Debug)]
pub(crate) struct OneMore<'g>(&'g Gauge);

impl Drop for OneMore<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Durations: how many, together, and the longest.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    count: AtomicU64,
    micros: AtomicU64,
    longest: AtomicU64,
}

impl Sum {
    pub(crate) fn add(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.longest.fetch_max(micros, Ordering::Relaxed);
    }

    pub(crate) fn mean(&self) -> Option<Duration> {
        let count = self.count.load(Ordering::Relaxed);
        Some(Duration::from_micros(self.micros.load(Ordering::Relaxed).checked_div(count)?))
    }

    fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::Relaxed))
    }
}

/// A pool at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The pool's name.
    pub pool: Arc<str>,
    /// How many tasks may run.
    pub slots: u64,
    /// How many run.
    pub running: u64,
    /// How many were received and wait for a slot.
    pub ready: u64,
    /// How many are set aside for higher ones.
    pub set_aside: u64,
    /// How often a task was set aside.
    pub preempted: u64,
    /// Whether the circuit breaker is open.
    pub breaker_open: bool,
    /// How often it opened.
    pub breaker_opened: u64,
    /// Each entity the pool serves.
    pub entities: Vec<EntitySnapshot>,
}

/// One of a pool's entities at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntitySnapshot {
    /// Its path.
    pub entity: Arc<str>,
    /// Messages received.
    pub received: u64,
    /// Messages completed.
    pub completed: u64,
    /// Tasks that failed, panics included.
    pub failed: u64,
    /// Tasks that panicked.
    pub panicked: u64,
    /// Messages that will come again after a while.
    pub retried: u64,
    /// Messages dead-lettered.
    pub dead_lettered: u64,
    /// Messages given back with a checkpoint.
    pub suspended: u64,
    /// Tasks that found something down.
    pub unavailable: u64,
    /// Messages given back before they started.
    pub given_back: u64,
    /// Locks that ended while the task ran, or before its settlement arrived.
    pub locks_lost: u64,
    /// Locks renewed.
    pub renewed: u64,
    /// The mean time from entering the entity to the start of the handler.
    pub wait_mean: Option<Duration>,
    /// The longest such time.
    pub wait_longest: Duration,
    /// The mean time a handler took.
    pub service_mean: Option<Duration>,
    /// The longest such time.
    pub service_longest: Duration,
}

impl Figures {
    pub(crate) fn new(name: Arc<str>, entities: impl IntoIterator<Item = Arc<str>>) -> Figures {
        Figures {
            name,
            slots: Gauge::default(),
            running: Gauge::default(),
            ready: Gauge::default(),
            set_aside: Gauge::default(),
            breaker_open: Gauge::default(),
            preempted: Counter::default(),
            breaker_opened: Counter::default(),
            entities: entities.into_iter().map(EntityFigures::new).collect(),
        }
    }

    /// The figures now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            pool: Arc::clone(&self.name),
            slots: self.slots.read(),
            running: self.running.read(),
            ready: self.ready.read(),
            set_aside: self.set_aside.read(),
            preempted: self.preempted.read(),
            breaker_open: self.breaker_open.read() > 0,
            breaker_opened: self.breaker_opened.read(),
            entities: self.entities.iter().map(EntityFigures::snapshot).collect(),
        }
    }

    /// The mean time of a task over all entities, weighted by how many there were.
    pub(crate) fn service_mean(&self) -> Option<Duration> {
        let (count, micros) = self.entities.iter().fold((0_u64, 0_u64), |(count, micros), entity| {
            let service = &entity.service;
            (
                count.saturating_add(service.count.load(Ordering::Relaxed)),
                micros.saturating_add(service.micros.load(Ordering::Relaxed)),
            )
        });
        Some(Duration::from_micros(micros.checked_div(count)?))
    }
}

impl EntityFigures {
    fn new(entity: Arc<str>) -> EntityFigures {
        EntityFigures {
            entity,
            received: Counter::default(),
            completed: Counter::default(),
            failed: Counter::default(),
            panicked: Counter::default(),
            retried: Counter::default(),
            dead_lettered: Counter::default(),
            suspended: Counter::default(),
            unavailable: Counter::default(),
            given_back: Counter::default(),
            locks_lost: Counter::default(),
            renewed: Counter::default(),
            wait: Sum::default(),
            service: Sum::default(),
        }
    }

    /// Counts what became of a message; whether the broker refused it.
    pub(crate) fn count(&self, settled: &Settled) -> bool {
        match settled {
            Settled::Completed => self.completed.add_one(),
            Settled::Retried => self.retried.add_one(),
            Settled::DeadLettered => self.dead_lettered.add_one(),
            Settled::Suspended => self.suspended.add_one(),
            Settled::GivenBack => self.given_back.add_one(),
            Settled::Otherwise => {}
            Settled::Refused(error) => {
                if matches!(error, Error::LockLost(_) | Error::SessionLockLost(_)) {
                    self.locks_lost.add_one();
                }
                return true;
            }
        }
        false
    }

    fn snapshot(&self) -> EntitySnapshot {
        EntitySnapshot {
            entity: Arc::clone(&self.entity),
            received: self.received.read(),
            completed: self.completed.read(),
            failed: self.failed.read(),
            panicked: self.panicked.read(),
            retried: self.retried.read(),
            dead_lettered: self.dead_lettered.read(),
            suspended: self.suspended.read(),
            unavailable: self.unavailable.read(),
            given_back: self.given_back.read(),
            locks_lost: self.locks_lost.read(),
            renewed: self.renewed.read(),
            wait_mean: self.wait.mean(),
            wait_longest: self.wait.longest(),
            service_mean: self.service.mean(),
            service_longest: self.service.longest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_over_what_was_counted_and_nothing_has_none() {
        let figures = Figures::new("p".into(), ["a".into(), "b".into()]);
        assert_eq!(figures.service_mean(), None);
        figures.entities[0].service.add(Duration::from_millis(10));
        figures.entities[1].service.add(Duration::from_millis(20));
        figures.entities[1].service.add(Duration::from_millis(30));
        assert_eq!(figures.service_mean(), Some(Duration::from_millis(20)));
        let snapshot = figures.snapshot();
        assert_eq!(snapshot.entities[1].service_mean, Some(Duration::from_millis(25)));
        assert_eq!(snapshot.entities[1].service_longest, Duration::from_millis(30));
        assert_eq!(snapshot.entities[0].wait_mean, None);
    }
}
