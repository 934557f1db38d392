//! How many slots a pool should have, from what waits and how long it may.
//!
//! To start everything that waits within the target, `waiting × service ÷ target` slots are needed; work that
//! keeps coming needs `rate × service` more. When the oldest message has used up part of its target, what
//! remains counts instead, down to a quarter, so that a pool that is late grows up to four times as eagerly.
//!
//! Up at once; down to the largest size wanted within the last cooldown, so that a dip between two bursts
//! does not cost a pool. Zero only where the bounds allow it, with nothing waiting and nothing running.

use std::collections::VecDeque;
use std::time::Duration;

use super::size::SIZE_MAX;
use crate::moment::Moment;

/// How a pool is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaling {
    /// How long a message may wait: the class's target.
    pub target: Duration,
    /// How long a task takes, until that has been measured.
    pub service_assumed: Duration,
    /// How long a smaller size must have been enough before the pool shrinks to it.
    pub cooldown: Duration,
}

impl Default for Scaling {
    fn default() -> Self {
        Scaling {
            target: Duration::from_secs(10),
            service_assumed: Duration::from_millis(500),
            cooldown: Duration::from_mins(1),
        }
    }
}

/// What is known about the work at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Messages that wait, over all the pool's queues.
    pub waiting: u64,
    /// How long the oldest of them has waited.
    pub oldest: Duration,
    /// Messages that arrive in a thousand seconds, if somebody counts them.
    pub arrivals_per_kilosecond: u64,
    /// How long a task takes on average; none before one was measured.
    pub service: Option<Duration>,
    /// Tasks that run now, here.
    pub running: u32,
}

/// The size that a load calls for, before cooldown and bounds.
pub fn wanted(scaling: &Scaling, load: &Load) -> u32 {
    let service = load.service.unwrap_or(scaling.service_assumed).as_micros().max(1);
    let target = scaling.target.as_micros().max(1);
    let slack = target.saturating_sub(load.oldest.as_micros()).max(target / 4).max(1);
    let backlog = u128::from(load.waiting).saturating_mul(service).div_ceil(slack);
    // A rate per thousand seconds times microseconds: 10^9 of them make one slot.
    let steady = u128::from(load.arrivals_per_kilosecond).saturating_mul(service).div_ceil(1_000_000_000);
    let slots = u32::try_from(backlog.saturating_add(steady)).unwrap_or(SIZE_MAX).min(SIZE_MAX);
    if slots == 0 && (load.waiting > 0 || load.running > 0) { 1 } else { slots }
}

/// Remembers what was wanted lately.
#[derive(Debug, Clone)]
pub struct Autoscaler {
    scaling: Scaling,
    /// What was wanted and when; each wants less than the one before, so the first is the largest.
    lately: VecDeque<(Moment, u32)>,
}

impl Autoscaler {
    /// An autoscaler that has seen nothing yet.
    pub fn new(scaling: Scaling) -> Autoscaler {
        Autoscaler { scaling, lately: VecDeque::new() }
    }

    /// The size that is right now. Its memory is bounded by the number of different sizes.
    pub fn desired(&mut self, now: Moment, load: &Load) -> u32 {
        let wanted = wanted(&self.scaling, load);
        while self.lately.back().is_some_and(|(_, size)| *size <= wanted) {
            self.lately.pop_back();
        }
        self.lately.push_back((now, wanted));
        // The last one is what is wanted now, and stays.
        while self.lately.len() > 1 && self.over(now) {
            self.lately.pop_front();
        }
        self.lately.front().map_or(wanted, |(_, size)| *size)
    }

    /// Whether the largest size was last wanted a cooldown ago.
    fn over(&self, now: Moment) -> bool {
        self.lately.front().is_some_and(|(at, _)| now.since(*at) >= self.scaling.cooldown)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn scaling() -> Scaling {
        Scaling { target: 10 * SECOND, service_assumed: SECOND, cooldown: 60 * SECOND }
    }

    fn at(seconds: u64) -> Moment {
        Moment::millis(seconds * 1_000)
    }

    #[test]
    fn the_size_follows_length_age_service_time_and_target() {
        let idle = Load::default();
        let cases = [
            ("nothing to do", idle, 0),
            ("something runs", Load { running: 3, ..idle }, 1),
            ("one waits", Load { waiting: 1, ..idle }, 1),
            ("exactly as many as fit", Load { waiting: 10, ..idle }, 1),
            ("one more", Load { waiting: 11, ..idle }, 2),
            ("a backlog", Load { waiting: 1_000, ..idle }, 100),
            (
                "measured, faster than assumed",
                Load { waiting: 1_000, service: Some(SECOND / 10), ..idle },
                10,
            ),
            ("half the target used up", Load { waiting: 1_000, oldest: 5 * SECOND, ..idle }, 200),
            ("late: never more than four times", Load { waiting: 1_000, oldest: 60 * SECOND, ..idle }, 400),
            ("steady arrivals", Load { arrivals_per_kilosecond: 3_000, ..idle }, 3),
            ("both", Load { waiting: 10, arrivals_per_kilosecond: 3_500, ..idle }, 5),
            ("more than anybody can have", Load { waiting: u64::MAX, ..idle }, SIZE_MAX),
        ];
        for (case, load, size) in cases {
            assert_eq!(wanted(&scaling(), &load), size, "{case}");
        }
    }

    #[test]
    fn a_day_of_load_is_followed_up_at_once_and_down_after_the_cooldown() {
        let mut scaler = Autoscaler::new(scaling());
        let trace = [
            (0, 0, 0, "asleep"),
            (5, 100, 10, "a burst: up at once"),
            (10, 200, 20, "more: up again"),
            (20, 50, 20, "a dip does not count yet"),
            (69, 10, 20, "just before the cooldown"),
            (70, 10, 5, "down to the most wanted since, not to the least"),
            (79, 10, 5, "the dip's own cooldown"),
            (80, 10, 1, "and further down"),
            (200, 0, 0, "asleep again"),
            (201, 30, 3, "awake at once"),
        ];
        for (seconds, waiting, size, why) in trace {
            let load = Load { waiting, ..Load::default() };
            assert_eq!(scaler.desired(at(seconds), &load), size, "{why} at {seconds} s");
        }
    }

    proptest! {
        /// Never less than what is wanted now, never more than the most wanted within the cooldown.
        #[test]
        fn the_size_lies_between_now_and_the_largest_of_late(
            loads in prop::collection::vec((0_u64..30, 0_u64..500), 1..100),
        ) {
            let mut scaler = Autoscaler::new(scaling());
            let mut now = 0;
            let mut seen: Vec<(u64, u32)> = Vec::new();
            for (step, waiting) in loads {
                now += step;
                let load = Load { waiting, ..Load::default() };
                let wanted = wanted(&scaling(), &load);
                seen.push((now, wanted));
                let recent = seen.iter().filter(|(at, _)| now - at < 60).map(|(_, size)| *size);
                prop_assert_eq!(Some(scaler.desired(at(now), &load)), recent.max());
                prop_assert!(scaler.lately.len() <= 60);
            }
        }
    }
}
