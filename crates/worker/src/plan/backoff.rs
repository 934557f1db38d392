//! How long a message that failed waits before it is tried again.
//!
//! Each attempt waits longer, up to a maximum; a part of the wait is spread by the message, so that a thousand
//! messages that failed together do not come back together.

use std::time::Duration;

/// The growth of the waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub first: Duration,
    /// The longest wait.
    pub max: Duration,
    /// By how much each wait is longer than the one before.
    pub factor: u32,
    /// How much of a wait is spread, in percent: at 20 it lies between 80 and 100 percent.
    pub spread_percent: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { first: Duration::from_secs(1), max: Duration::from_mins(5), factor: 2, spread_percent: 20 }
    }
}

impl Backoff {
    /// Retries at once, always.
    pub const NONE: Backoff =
        Backoff { first: Duration::ZERO, max: Duration::ZERO, factor: 1, spread_percent: 0 };

    /// The wait after the `failures`-th failure (from 1) of the message that `seed` stands for.
    pub fn wait(&self, failures: u32, seed: u64) -> Duration {
        let growth = self.factor.max(1).saturating_pow(failures.saturating_sub(1));
        let whole = self.first.saturating_mul(growth).min(self.max);
        let spread = self.spread_percent.min(100);
        // Thousandths of the spread, by the message and the attempt.
        let thousandths = mixed(seed ^ (u64::from(failures) << 32)) % 1_001;
        let part = u128::from(thousandths) * u128::from(spread);
        let cut = whole.as_nanos().saturating_mul(part) / 100_000;
        whole.saturating_sub(Duration::from_nanos(u64::try_from(cut).unwrap_or(u64::MAX)))
    }
}

/// Spreads the bits of a number (the finaliser of `SplitMix64`).
fn mixed(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_wait_is_longer_up_to_the_maximum() {
        let backoff = Backoff { spread_percent: 0, ..Backoff::default() };
        let cases = [(0, 1), (1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (40, 300), (u32::MAX, 300)];
        for (failures, seconds) in cases {
            assert_eq!(backoff.wait(failures, 7), Duration::from_secs(seconds), "{failures}");
        }
        assert_eq!(Backoff::NONE.wait(5, 7), Duration::ZERO);
    }

    #[test]
    fn messages_that_failed_together_come_back_apart() {
        let waits: std::collections::BTreeSet<Duration> =
            (0..1_000).map(|seed| Backoff::default().wait(5, seed)).collect();
        assert!(waits.len() > 500, "{} different waits", waits.len());
    }

    proptest! {
        #[test]
        fn a_wait_lies_within_its_spread(failures in 1_u32..100, seed: u64, spread in 0_u32..200) {
            let whole = Backoff { spread_percent: 0, ..Backoff::default() }.wait(failures, seed);
            let wait = Backoff { spread_percent: spread, ..Backoff::default() }.wait(failures, seed);
            prop_assert!(wait <= whole);
            prop_assert!(wait >= whole * (100 - spread.min(100)) / 100);
        }
    }
}
