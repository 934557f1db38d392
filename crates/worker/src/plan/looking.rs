//! When a pool that scales looks at what waits: at once when its slots fill up, and not at all while it idles.
//!
//! While a slot is free nothing waits: the broker would have filled it. So nobody has to be asked, and an idle pool at its
//! smallest exchanges nothing. When every slot is busy the backlog is looked at soon, and again after pauses that double
//! as long as a look changes nothing, up to the interval: work that comes and goes costs few looks, a burst is met at
//! once. A gauge that somebody gave is asked at every interval, because it may know what the slots cannot.

use std::time::Duration;

use crate::moment::Moment;

/// The first pause between two looks.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// How a pool is at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// Whether every slot is busy.
    pub busy: bool,
    /// Whether it has more slots than its fewest.
    pub can_shrink: bool,
    /// Whether the gauge is one that somebody gave.
    pub own_gauge: bool,
}

/// What is known of the backlog, or how to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The gauge is to be asked.
    Ask,
    /// Nothing waits.
    NothingWaits,
}

/// Remembers the last look.
#[derive(Debug, Clone)]
pub struct Looking {
    interval: Duration,
    last: Option<Moment>,
    /// Until the next look at a pool that is busy.
    pause: Duration,
}

impl Looking {
    /// Has not looked yet.
    pub fn new(interval: Duration) -> Looking {
        Looking { interval, last: None, pause: PAUSE_MIN.min(interval) }
    }

    /// When the next look is due; none while nothing but a change of the situation calls for one.
    pub fn due(&self, situation: Situation) -> Option<Moment> {
        let Some(last) = self.last else { return Some(Moment::START) };
        match situation {
            Situation { own_gauge: true, .. } => Some(last.after(self.interval)),
            Situation { busy: true, .. } => Some(last.after(self.pause)),
            Situation { can_shrink: true, .. } => Some(last.after(self.interval)),
            _ => None,
        }
    }

    /// The look that is due, if one is.
    pub fn next(&mut self, now: Moment, situation: Situation) -> Option<Look> {
        let due = self.due(situation).filter(|due| *due <= now)?;
        // After a long rest the next burst is met at once again.
        if now.since(due) >= self.interval {
            self.pause = PAUSE_MIN.min(self.interval);
        }
        self.last = Some(now);
        Some(if situation.busy || situation.own_gauge { Look::Ask } else { Look::NothingWaits })
    }

    /// The gauge has answered, and the pool grew for it or not.
    pub fn answered(&mut self, now: Moment, grew: bool) {
        self.last = Some(now);
        let next = if grew { PAUSE_MIN } else { self.pause.saturating_mul(2) };
        self.pause = next.min(self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(5);
    const IDLE: Situation = Situation { busy: false, can_shrink: false, own_gauge: false };
    const LARGE: Situation = Situation { can_shrink: true, ..IDLE };
    const BUSY: Situation = Situation { busy: true, ..IDLE };

    fn rested() -> Looking {
        let mut looking = Looking::new(INTERVAL);
        assert_eq!(looking.next(Moment::START, IDLE), Some(Look::NothingWaits));
        looking
    }

    #[test]
    fn an_idle_pool_at_its_smallest_never_looks_and_a_larger_one_asks_nobody() {
        let mut looking = rested();
        assert_eq!(looking.due(IDLE), None);
        assert_eq!(looking.due(LARGE), Some(Moment::millis(5_000)));
        assert_eq!(looking.next(Moment::millis(4_999), LARGE), None);
        assert_eq!(looking.next(Moment::millis(5_000), LARGE), Some(Look::NothingWaits));
    }

    #[test]
    fn a_burst_is_met_at_once_and_what_changes_nothing_is_looked_at_ever_less() {
        let mut looking = rested();
        let hour = 3_600_000;
        assert_eq!(
            looking.next(Moment::millis(hour), BUSY),
            Some(Look::Ask),
            "after an hour of rest, at once"
        );
        let mut at = hour;
        for pause in [200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            looking.answered(Moment::millis(at), false);
            assert_eq!(looking.due(BUSY), Some(Moment::millis(at + pause)));
            assert_eq!(looking.next(Moment::millis(at + pause - 1), BUSY), None);
            at += pause;
            assert_eq!(looking.next(Moment::millis(at), BUSY), Some(Look::Ask));
        }
        looking.answered(Moment::millis(at), true);
        assert_eq!(looking.due(BUSY), Some(Moment::millis(at + 100)), "it grew: is it enough?");
        // Work that comes and goes gets no new right to look at once; a rest gives it.
        for _ in 0..8 {
            at += 5_000;
            let _ = looking.next(Moment::millis(at), BUSY);
            looking.answered(Moment::millis(at), false);
        }
        assert_eq!(looking.next(Moment::millis(at + 4_999), BUSY), None);
        at += 10_000;
        assert_eq!(looking.next(Moment::millis(at), BUSY), Some(Look::Ask));
        looking.answered(Moment::millis(at), false);
        assert_eq!(looking.due(BUSY), Some(Moment::millis(at + 200)));
    }

    #[test]
    fn a_gauge_of_somebodys_own_is_asked_at_every_interval() {
        let mut looking = rested();
        let own = Situation { own_gauge: true, ..IDLE };
        assert_eq!(looking.due(own), Some(Moment::millis(5_000)));
        assert_eq!(looking.next(Moment::millis(5_000), own), Some(Look::Ask));
    }
}
