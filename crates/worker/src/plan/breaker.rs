//! Stops asking for messages while something the handlers need is down.
//!
//! A handler that finds its database gone says *unavailable*: nothing is wrong with the message. After a few of
//! these in a row the breaker opens: the pump takes no messages, and those it has go back without counting a
//! delivery. After a while one message probes; if it goes well everything goes on, else the next wait is longer.

use std::time::Duration;

use super::backoff::Backoff;
use crate::moment::Moment;

/// When the breaker opens and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// So many times unavailable in a row open it.
    pub after: u32,
    /// How long it stays open, longer each time a probe fails.
    pub pause: Backoff,
}

impl Default for Trip {
    fn default() -> Self {
        let pause = Backoff {
            first: Duration::from_secs(1),
            max: Duration::from_mins(1),
            factor: 2,
            spread_percent: 20,
        };
        Trip { after: 3, pause }
    }
}

/// How many messages may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// As many as there are slots.
    All,
    /// One, to see whether things work again.
    Probe,
    /// None until then.
    NoneUntil(Moment),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed { in_a_row: u32 },
    Open { until: Moment, openings: u32 },
}

/// The breaker of one pump.
#[derive(Debug, Clone)]
pub struct Breaker {
    trip: Trip,
    seed: u64,
    state: State,
    opened: u64,
}

impl Breaker {
    /// A closed breaker; `seed` spreads the probes of many workers.
    pub fn new(trip: Trip, seed: u64) -> Breaker {
        Breaker { trip, seed, state: State::Closed { in_a_row: 0 }, opened: 0 }
    }

    /// What may be asked for now.
    pub fn permit(&self, now: Moment) -> Permit {
        match self.state {
            State::Closed { .. } => Permit::All,
            State::Open { until, .. } if now < until => Permit::NoneUntil(until),
            State::Open { .. } => Permit::Probe,
        }
    }

    /// How often it opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// A handler got through, whatever it thought of its message. Returns whether that closed the breaker.
    pub fn available(&mut self, now: Moment) -> bool {
        let closes = match self.state {
            State::Closed { .. } => false,
            // A task from before the outage that ends well during it proves nothing.
            State::Open { until, .. } if now < until => return false,
            State::Open { .. } => true,
        };
        self.state = State::Closed { in_a_row: 0 };
        closes
    }

    /// A handler found something it needs unavailable. Returns whether that opened the breaker.
    pub fn unavailable(&mut self, now: Moment) -> bool {
        let openings = match self.state {
            State::Closed { in_a_row } if in_a_row.saturating_add(1) < self.trip.after => {
                self.state = State::Closed { in_a_row: in_a_row.saturating_add(1) };
                return false;
            }
            State::Closed { .. } => 1,
            // The others that ran when it opened say the same; that is not news.
            State::Open { until, .. } if now < until => return false,
            State::Open { openings, .. } => openings.saturating_add(1),
        };
        let until = now.after(self.trip.pause.wait(openings, self.seed));
        self.state = State::Open { until, openings };
        self.opened = self.opened.saturating_add(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> Breaker {
        let pause = Backoff { spread_percent: 0, ..Trip::default().pause };
        Breaker::new(Trip { after: 3, pause }, 0)
    }

    fn at(seconds: u64) -> Moment {
        Moment::millis(seconds * 1_000)
    }

    #[test]
    fn it_opens_after_so_many_in_a_row_and_a_success_between_starts_anew() {
        let mut breaker = breaker();
        for round in 0..5 {
            assert!(!breaker.unavailable(at(round)));
            assert!(!breaker.unavailable(at(round)));
            assert!(!breaker.available(at(round)), "it never opened, so nothing closes");
        }
        assert!(!breaker.unavailable(at(9)) && !breaker.unavailable(at(9)));
        assert_eq!(breaker.permit(at(9)), Permit::All);
        assert!(breaker.unavailable(at(9)));
        assert_eq!(breaker.permit(at(9)), Permit::NoneUntil(at(10)));
    }

    #[test]
    fn a_probe_closes_it_or_makes_the_next_wait_longer() {
        let mut breaker = breaker();
        assert!((0..3).any(|_| breaker.unavailable(at(0))));
        let mut now = 0;
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            now += wait;
            assert_eq!(breaker.permit(at(now - 1)), Permit::NoneUntil(at(now)), "wait of {wait}");
            assert!(!breaker.unavailable(at(now - 1)), "stragglers are not news");
            assert!(!breaker.available(at(now - 1)), "nor do they close it");
            assert_eq!(breaker.permit(at(now)), Permit::Probe);
            assert!(breaker.unavailable(at(now)));
        }
        assert_eq!(breaker.opened(), 9);
        now += 60;
        assert!(breaker.available(at(now)));
        assert_eq!(breaker.permit(at(now)), Permit::All);
        assert!((0..3).any(|_| breaker.unavailable(at(now))));
        assert_eq!(breaker.permit(at(now)), Permit::NoneUntil(at(now + 1)), "waits begin small again");
    }
}
