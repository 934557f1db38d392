//! How often something happened lately: counts in slices of five seconds over five minutes.
//!
//! Slices are reused in a ring. Time is an argument; a slice that has become too old is cleared when
//! its place is used again or passed over when read, so an idle counter costs nothing.

use crate::time::{Span, Timestamp};

/// The length of a slice.
pub const SLICE: Span = Span::seconds(5);
/// How many slices are kept: five minutes.
pub const SLICES: usize = 60;

/// Counts of the last five minutes.
#[derive(Debug, Clone)]
pub struct Rate {
    counts: [u32; SLICES],
    /// The number of the newest slice, counted from the epoch.
    newest: u64,
    /// The number of the first slice that was counted in, so that a young counter does not seem slow.
    oldest: u64,
}

impl Rate {
    /// A counter that starts now.
    #[must_use]
    pub fn new(now: Timestamp) -> Rate {
        let slice = slice_of(now);
        Rate { counts: [0; SLICES], newest: slice, oldest: slice }
    }

    /// Counts `events` that happened now. Times before the newest slice count in that slice.
    pub fn count(&mut self, now: Timestamp, events: u32) {
        self.advance(slice_of(now));
        if let Some(count) = self.counts.get_mut(index_of(self.newest)) {
            *count = count.saturating_add(events);
        }
    }

    /// How many events fell in the last `span`, to within a slice, and how much time that covers: less
    /// than asked for while the counter is young, at most five minutes.
    #[must_use]
    pub fn within(&self, now: Timestamp, span: Span) -> (u64, Span) {
        let current = slice_of(now).max(self.newest);
        let wanted = span.0.div_ceil(SLICE.0).clamp(1, SLICES_U64);
        let first = current.saturating_sub(wanted - 1).max(self.oldest);
        let kept = self.newest.saturating_sub(SLICES_U64 - 1);
        let counted = (first.max(kept)..=self.newest).filter_map(|slice| self.counts.get(index_of(slice)));
        let events = counted.map(|count| u64::from(*count)).sum();
        // Whole slices, and of the current one what has passed of it, but never nothing.
        let begun = Timestamp(first.saturating_mul(SLICE.0));
        (events, Span(now.since(begun).0.max(1_000)))
    }

    /// Events in a thousand seconds over the last `span`: a rate without fractions.
    #[must_use]
    pub fn per_kilosecond(&self, now: Timestamp, span: Span) -> u64 {
        let (events, covered) = self.within(now, span);
        events.saturating_mul(1_000_000) / covered.0.max(1)
    }

    fn advance(&mut self, slice: u64) {
        if slice <= self.newest {
            return;
        }
        // Beyond a full turn of the ring every slice is old.
        let skipped = slice.saturating_sub(self.newest).min(SLICES_U64);
        for passed in slice - skipped + 1..=slice {
            if let Some(count) = self.counts.get_mut(index_of(passed)) {
                *count = 0;
            }
        }
        self.newest = slice;
    }
}

const SLICES_U64: u64 = 60;

fn slice_of(now: Timestamp) -> u64 {
    now.0 / SLICE.0
}

fn index_of(slice: u64) -> usize {
    usize::try_from(slice % SLICES_U64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * 1_000)
    }

    #[test]
    fn a_steady_stream_has_its_rate_however_young_the_counter() {
        let mut rate = Rate::new(at(1_000));
        for second in 1_000..1_600 {
            rate.count(at(second), 10);
            if [1_010, 1_100, 1_400, 1_599].contains(&second) {
                let (events, covered) = rate.within(at(second + 1), Span::minutes(1));
                assert_eq!(events, covered.0 / 100, "{second}");
                assert_eq!(rate.per_kilosecond(at(second + 1), Span::minutes(1)), 10_000);
            }
        }
    }

    #[test]
    fn what_is_older_than_five_minutes_is_forgotten() {
        let mut rate = Rate::new(at(0));
        rate.count(at(0), 7);
        assert_eq!(rate.within(at(299), Span::minutes(5)).0, 7);
        assert_eq!(rate.within(at(300), Span::minutes(5)).0, 0);
        assert_eq!(rate.within(at(1_000_000), Span::FOREVER).0, 0);
        rate.count(at(1_000_000), 1);
        assert_eq!(rate.within(at(1_000_000), Span::FOREVER).0, 1);
    }

    #[test]
    fn a_time_that_steps_back_is_counted_now() {
        let mut rate = Rate::new(at(100));
        rate.count(at(200), 1);
        rate.count(at(150), 1);
        assert_eq!(rate.within(at(200), Span::seconds(5)).0, 2);
    }

    proptest! {
        #[test]
        fn counts_equal_those_of_a_list(
            steps in proptest::collection::vec((0..40_u64, 0..5_u32), 1..100),
            slices in 1..=60_u64,
        ) {
            let mut rate = Rate::new(at(0));
            let mut all = Vec::new();
            let mut now = 0;
            for (passed, events) in steps {
                now += passed;
                rate.count(at(now), events);
                all.push((now / 5, u64::from(events)));
            }
            let first = (now / 5).saturating_sub(slices - 1);
            let expected: u64 = all.iter().filter(|(slice, _)| *slice >= first).map(|(_, events)| events).sum();
            prop_assert_eq!(rate.within(at(now), Span::seconds(slices * 5)).0, expected);
        }
    }
}
