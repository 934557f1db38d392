//! What the engine has seen: counts, rates and waits, by mailbox and level.
//!
//! Every number here is counted where the fact it tells of is applied, in the same step; nothing is
//! sampled, and what the lanes know already (how many wait, how old the oldest is) is not kept a
//! second time. A mailbox that has never held a message has no series and costs one empty list. The
//! numbers start over with the process: they describe what this run of it has seen.

pub mod histogram;
mod inversion;
pub mod rate;
mod report;
pub mod series;
mod tally;

pub use histogram::Histogram;
pub use rate::Rate;
pub use report::LevelReport;
pub use series::{DeadLetters, Series};
pub use tally::LevelCounts;
pub(crate) use tally::Tally;

use crate::level::Level;
use crate::time::Timestamp;

/// The series of one mailbox, by level.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    /// Sorted by level. There are few, and the busy ones stay in the processor's cache.
    series: Vec<(Level, Box<Series>)>,
    unknown_classes: u64,
}

impl Observations {
    /// The series of a level, begun if need be.
    pub fn at(&mut self, level: Level, now: Timestamp) -> &mut Series {
        let place = match self.series.binary_search_by_key(&level, |(known, _)| *known) {
            Ok(place) => place,
            Err(place) => self.begin(place, level, now),
        };
        let (_, series) = self.series.get_mut(place).expect("the place was just found or filled");
        series
    }

    #[cold]
    fn begin(&mut self, place: usize, level: Level, now: Timestamp) -> usize {
        self.series.insert(place, (level, Box::new(Series::new(now))));
        place
    }

    /// The series of a level, if it has begun.
    #[must_use]
    pub fn get(&self, level: Level) -> Option<&Series> {
        let place = self.series.binary_search_by_key(&level, |(known, _)| *known).ok()?;
        self.series.get(place).map(|(_, series)| &**series)
    }

    /// All series that have begun, lowest level first.
    pub fn all(&self) -> impl Iterator<Item = (Level, &Series)> {
        self.series.iter().map(|(level, series)| (*level, &**series))
    }

    /// Notes that a message named a class that does not exist.
    pub fn unknown_class(&mut self) {
        self.unknown_classes = self.unknown_classes.saturating_add(1);
    }

    /// How many messages named a class that does not exist.
    #[must_use]
    pub fn unknown_classes(&self) -> u64 {
        self.unknown_classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_begin_with_their_first_message_and_come_in_the_order_of_levels() {
        let mut observations = Observations::default();
        assert!(observations.get(Level(4)).is_none());
        for level in [9, 1, 255, 4, 1, 0] {
            observations.at(Level(level), Timestamp(7)).arrived(Timestamp(7));
        }
        let seen: Vec<_> = observations.all().map(|(level, series)| (level.0, series.arrivals)).collect();
        assert_eq!(seen, [(0, 1), (1, 2), (4, 1), (9, 1), (255, 1)]);
        assert_eq!(observations.get(Level(1)).map(|series| series.arrivals), Some(2));
    }

    #[test]
    fn a_mailbox_without_messages_costs_next_to_nothing() {
        assert!(size_of::<Observations>() <= 32);
        assert_eq!(Observations::default().all().count(), 0);
    }
}
