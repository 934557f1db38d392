//! The budget for begins and attaches.
//!
//! Opening and closing costs the peer a few bytes and us tables, names and replies. Honest clients do it in bursts
//! when they start; a flood does it for ever.

use super::limits::ChurnLimit;
use super::time::Millis;

/// What is left of the budget, in thousandths of an operation so that refilling by the millisecond is exact.
#[derive(Debug, Clone)]
pub(super) struct Churn {
    limit: ChurnLimit,
    left_milli: u64,
    refilled_at: Millis,
}

impl Churn {
    pub(super) fn new(limit: ChurnLimit, now: Millis) -> Self {
        Self { limit, left_milli: full(limit), refilled_at: now }
    }

    /// Takes one operation; `false` when the budget is used up.
    pub(super) fn take(&mut self, now: Millis) -> bool {
        // One operation per second is one thousandth of an operation per millisecond.
        let refill = now.since(self.refilled_at).saturating_mul(u64::from(self.limit.per_second));
        self.refilled_at = now.max(self.refilled_at);
        self.left_milli = self.left_milli.saturating_add(refill).min(full(self.limit));
        match self.left_milli.checked_sub(1000) {
            Some(left) => {
                self.left_milli = left;
                true
            }
            None => false,
        }
    }
}

fn full(limit: ChurnLimit) -> u64 {
    u64::from(limit.burst).saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_then_the_pace() {
        let mut churn = Churn::new(ChurnLimit { burst: 3, per_second: 2 }, Millis(1000));
        assert!((0..3).all(|_| churn.take(Millis(1000))));
        assert!(!churn.take(Millis(1499)), "one operation takes half a second to come back");
        assert!(churn.take(Millis(1500)));
        assert!(!churn.take(Millis(1500)));
        assert!((0..3).all(|_| churn.take(Millis(1_000_000))), "never more than the burst");
        assert!(!churn.take(Millis(1_000_000)));
        assert!(!churn.take(Millis(5)), "time that runs backwards gives nothing");
    }
}
