//! How long to wait before trying again: doubling pauses with jitter, bounded.

use std::time::Duration;

/// When a lost connection or link is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The pause before the second attempt; the first is made at once.
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// How long operations wait for a connection before they fail with
    /// [`Error::Disconnected`](crate::Error::Disconnected). The client goes on trying after that.
    pub give_up_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            pause_min: Duration::from_millis(100),
            pause_max: Duration::from_secs(10),
            give_up_after: Duration::from_mins(1),
        }
    }
}

/// Attempts since the last success.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attempts(u32);

impl Attempts {
    /// The first attempt has been made.
    pub(crate) fn after_one() -> Self {
        Attempts(1)
    }

    /// Counts an attempt and says how long to wait before it.
    ///
    /// The pause lies between half of the doubled step and all of it, so that clients that lost the same broker do
    /// not come back in the same moment.
    pub(crate) fn next_pause(&mut self, policy: &RetryPolicy) -> Duration {
        let step = self.0;
        self.0 = self.0.saturating_add(1);
        let Some(doublings) = step.checked_sub(1) else { return Duration::ZERO };
        let full = policy.pause_min.saturating_mul(1 << doublings.min(20)).min(policy.pause_max);
        full.mul_f64(0.5 + 0.5 * fraction())
    }

    pub(crate) fn reset(&mut self) {
        self.0 = 0;
    }
}

/// A number from 0 to 1. Nothing secret depends on it, so a failing source of randomness costs only the spread.
fn fraction() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_nothing_to_the_bound() {
        let policy = RetryPolicy { pause_max: Duration::from_secs(1), ..RetryPolicy::default() };
        let mut attempts = Attempts::default();
        assert_eq!(attempts.next_pause(&policy), Duration::ZERO);
        for full in [100, 200, 400, 800, 1000, 1000] {
            let (pause, full) = (attempts.next_pause(&policy), Duration::from_millis(full));
            assert!(pause >= full / 2 && pause <= full, "{pause:?} of {full:?}");
        }
        for _ in 0..100 {
            assert!(attempts.next_pause(&policy) <= policy.pause_max);
        }
        attempts.reset();
        assert_eq!(attempts.next_pause(&policy), Duration::ZERO);
    }
}
