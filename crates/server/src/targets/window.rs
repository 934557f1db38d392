//! How a class did over the last hour and day: what the engine had counted at past moments.
//!
//! The engine counts for ever upwards; here are only its numbers as they stood, in a ring of fixed
//! length, so that a window is the difference between now and then. Nothing is counted a second time, and
//! a sample that was missed makes a window less sharp, never wrong.

use vorrang_engine::{Span, Timestamp};

/// First deliveries so far, by whether they met their target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// Those in time.
    pub(super) met: u64,
    /// Those too late.
    pub(super) missed: u64,
}

impl Tally {
    /// What came after `earlier`.
    #[must_use]
    pub(super) fn since(self, earlier: Tally) -> Tally {
        Tally {
            met: self.met.saturating_sub(earlier.met),
            missed: self.missed.saturating_sub(earlier.missed),
        }
    }

    /// The part that was in time, from 0 to 1; none if there were none.
    #[must_use]
    pub(super) fn ratio(self) -> Option<f64> {
        let all = self.met.saturating_add(self.missed);
        (all > 0).then(|| as_float(self.met) / as_float(all))
    }
}

/// Counts this large lose their last digits, which no ratio shows.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no other way to a float")]
pub(super) fn as_float(count: u64) -> f64 {
    count as f64
}

/// The numbers of one class at the beginning of each of the last slices.
#[derive(Debug, Clone)]
pub(super) struct Window<const SLICES: usize> {
    slice: Span,
    /// Oldest first; the first was taken at the beginning of the window or when watching began.
    past: std::collections::VecDeque<(u64, Tally)>,
}

impl<const SLICES: usize> Window<SLICES> {
    /// An empty window of `SLICES` slices.
    #[must_use]
    pub(super) fn new(slice: Span) -> Window<SLICES> {
        Window { slice, past: std::collections::VecDeque::new() }
    }

    /// Takes note of the numbers now, and says what fell into the window that ends now.
    pub(super) fn look(&mut self, now: Timestamp, tally: Tally) -> Tally {
        let slice = now.0 / self.slice.0.max(1);
        if self.past.back().is_none_or(|(newest, _)| *newest < slice) {
            self.past.push_back((slice, tally));
        }
        let first = slice.saturating_sub(u64::try_from(SLICES).unwrap_or(u64::MAX));
        // One from before the window stays: where it stood then is where the window begins.
        while self.past.len() > 1 && self.past.get(1).is_some_and(|(begun, _)| *begun <= first) {
            self.past.pop_front();
        }
        tally.since(self.past.front().map(|(_, tally)| *tally).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(met: u64, missed: u64) -> Tally {
        Tally { met, missed }
    }

    #[test]
    fn a_window_tells_what_came_since_it_began_and_forgets_what_is_older() {
        let mut window = Window::<3>::new(Span::seconds(10));
        let at = |seconds: u64| Timestamp(seconds * 1_000);
        let steps = [
            (1_000, tally(100, 100), tally(0, 0)),
            (1_005, tally(110, 100), tally(10, 0)),
            (1_010, tally(110, 105), tally(10, 5)),
            (1_020, tally(111, 105), tally(11, 5)),
            (1_030, tally(112, 105), tally(12, 5)),
            // The slice from 1000 to 1010 has left.
            (1_040, tally(113, 105), tally(3, 0)),
            (1_049, tally(114, 105), tally(4, 0)),
            // A long pause: what was not looked at meanwhile counts from the last look before it.
            (9_000, tally(200, 105), tally(87, 0)),
            (9_100, tally(200, 105), tally(0, 0)),
        ];
        for (seconds, now, expected) in steps {
            assert_eq!(window.look(at(seconds), now), expected, "at {seconds}");
            assert!(window.past.len() <= 5, "bounded");
        }
    }

    #[test]
    fn without_deliveries_there_is_no_ratio() {
        assert_eq!(tally(0, 0).ratio(), None);
        assert_eq!(tally(3, 1).ratio(), Some(0.75));
        assert_eq!(tally(0, 1).ratio(), Some(0.0));
    }
}
