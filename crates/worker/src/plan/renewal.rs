//! When which lock must be renewed.
//!
//! A lock is renewed when half of what is left of it has passed, but no sooner than it makes sense; a failed
//! renewal is tried again at half of the rest, so several tries fit before the end. What has ended is reported
//! once, so that the task can be told that its message is somebody else's now.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::slots::TaskId;
use crate::moment::Moment;

/// Tries are at least this far apart, however little is left: a broker that cannot answer is not asked faster.
const APART_MIN: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
struct Lock {
    /// When it ends.
    until: Moment,
    /// When it was taken: renewing stops some time after that.
    taken: Moment,
    /// When it is renewed next; [`Moment::NEVER`] while an answer is awaited or renewing has stopped.
    due: Moment,
}

/// What time has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// This lock is to be renewed now.
    Renew(TaskId),
    /// This lock has ended; it is no longer tracked.
    Lost(TaskId),
}

/// The locks of one pump.
#[derive(Debug)]
pub struct Renewals {
    /// How long one message's lock is kept alive; then it runs out.
    longest: Duration,
    locks: BTreeMap<TaskId, Lock>,
    due: BTreeSet<(Moment, TaskId)>,
    ends: BTreeSet<(Moment, TaskId)>,
}

impl Renewals {
    /// Renews each lock for `longest` after it was taken; zero renews none.
    pub fn new(longest: Duration) -> Renewals {
        Renewals { longest, locks: BTreeMap::new(), due: BTreeSet::new(), ends: BTreeSet::new() }
    }

    /// How many locks are held.
    pub fn len(&self) -> usize {
        self.locks.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// A message was received, locked until `until`.
    pub fn track(&mut self, id: TaskId, now: Moment, until: Moment) {
        self.place(id, now, now, until);
    }

    /// The broker has renewed a lock.
    pub fn renewed(&mut self, id: TaskId, now: Moment, until: Moment) {
        if let Some(Lock { taken, .. }) = self.forget(id) {
            self.place(id, taken, now, until);
        }
    }

    /// A renewal did not work; it is tried again while there is time.
    pub fn failed(&mut self, id: TaskId, now: Moment) {
        if let Some(Lock { taken, until, .. }) = self.forget(id) {
            self.place(id, taken, now, until);
        }
    }

    /// The message is settled, or the lock known to be lost.
    pub fn ended(&mut self, id: TaskId) {
        self.forget(id);
    }

    /// When [`Renewals::next`] has something to say again.
    pub fn wake(&self) -> Option<Moment> {
        let due = self.due.first().map(|(at, _)| *at);
        let end = self.ends.first().map(|(at, _)| *at);
        [due, end].into_iter().flatten().min()
    }

    /// The next thing that is due; call until there is none. Each renewal is answered by
    /// [`Renewals::renewed`] or [`Renewals::failed`].
    pub fn next(&mut self, now: Moment) -> Option<Due> {
        if let Some((_, id)) = self.ends.first().copied().filter(|(at, _)| *at <= now) {
            self.forget(id);
            return Some(Due::Lost(id));
        }
        let (at, id) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, id));
        if let Some(lock) = self.locks.get_mut(&id) {
            lock.due = Moment::NEVER;
        }
        Some(Due::Renew(id))
    }

    /// Locks that end within `margin`: their tasks may be working for nothing.
    pub fn at_risk(&self, now: Moment, margin: Duration) -> usize {
        let end = now.after(margin);
        self.ends.iter().take_while(|(at, _)| *at <= end).count()
    }

    fn place(&mut self, id: TaskId, taken: Moment, now: Moment, until: Moment) {
        let wait = (until.since(now) / 2).max(APART_MIN);
        let at = now.after(wait);
        let stops = taken.after(self.longest);
        let due = if at < until && at <= stops { at } else { Moment::NEVER };
        if due != Moment::NEVER {
            self.due.insert((due, id));
        }
        self.ends.insert((until, id));
        self.locks.insert(id, Lock { until, taken, due });
    }

    fn forget(&mut self, id: TaskId) -> Option<Lock> {
        let lock = self.locks.remove(&id)?;
        self.due.remove(&(lock.due, id));
        self.ends.remove(&(lock.until, id));
        Some(lock)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: TaskId = TaskId(1);
    const HOUR: Duration = Duration::from_hours(1);

    fn at(seconds: u64) -> Moment {
        Moment::millis(seconds * 1_000)
    }

    #[test]
    fn a_lock_is_renewed_at_half_its_time_again_and_again() {
        let mut renewals = Renewals::new(HOUR);
        renewals.track(ID, at(0), at(60));
        assert_eq!(renewals.wake(), Some(at(30)));
        assert_eq!(renewals.next(at(29)), None);
        assert_eq!(renewals.next(at(30)), Some(Due::Renew(ID)));
        assert_eq!(renewals.next(at(30)), None, "asked once");
        renewals.renewed(ID, at(31), at(91));
        assert_eq!(renewals.wake(), Some(at(61)));
        renewals.ended(ID);
        assert_eq!((renewals.wake(), renewals.len()), (None, 0));
    }

    #[test]
    fn a_failed_renewal_is_tried_again_at_half_the_rest_and_then_the_lock_is_lost() {
        let mut renewals = Renewals::new(HOUR);
        renewals.track(ID, at(0), at(32));
        let mut tries = Vec::new();
        while let Some(now) = renewals.wake() {
            match renewals.next(now) {
                Some(Due::Renew(_)) => {
                    tries.push(now.elapsed().as_secs());
                    renewals.failed(ID, now);
                }
                Some(Due::Lost(id)) => {
                    assert_eq!((id, now), (ID, at(32)));
                    break;
                }
                None => panic!("woken for nothing at {now:?}"),
            }
        }
        assert_eq!(tries[..5], [16, 24, 28, 30, 31]);
        assert!(tries.len() < 12, "the last tries do not crowd: {}", tries.len());
        assert!(renewals.is_empty());
    }

    #[test]
    fn renewing_stops_after_the_longest_time_and_the_end_is_still_told() {
        let mut renewals = Renewals::new(Duration::from_secs(45));
        renewals.track(ID, at(0), at(60));
        assert_eq!(renewals.next(at(30)), Some(Due::Renew(ID)));
        renewals.renewed(ID, at(30), at(90));
        assert_eq!(renewals.wake(), Some(at(90)), "the next renewal would be too late a time");
        assert_eq!(renewals.at_risk(at(80), Duration::from_secs(9)), 0);
        assert_eq!(renewals.at_risk(at(80), Duration::from_secs(10)), 1);
        assert_eq!(renewals.next(at(90)), Some(Due::Lost(ID)));
        let mut never = Renewals::new(Duration::ZERO);
        never.track(ID, at(0), at(60));
        assert_eq!(never.wake(), Some(at(60)));
    }

    proptest! {
        /// As long as the broker answers, no lock is ever lost, whatever the lengths.
        #[test]
        fn while_the_broker_answers_no_lock_is_lost(locks in prop::collection::vec((1_u64..300, 0_u64..50), 1..50)) {
            let mut renewals = Renewals::new(HOUR);
            for (index, (seconds, begin)) in locks.iter().enumerate() {
                let id = TaskId(u64::try_from(index).expect("small"));
                renewals.track(id, at(*begin), at(begin + seconds));
            }
            for _ in 0..locks.len() * 20 {
                let now = renewals.wake().expect("locks are held");
                while let Some(due) = renewals.next(now) {
                    let Due::Renew(id) = due else { return Err(TestCaseError::fail(format!("{due:?}"))) };
                    let (seconds, _) = locks[usize::try_from(id.0).expect("small")];
                    renewals.renewed(id, now, now.after(Duration::from_secs(seconds)));
                }
            }
            prop_assert_eq!(renewals.len(), locks.len());
        }
    }
}
