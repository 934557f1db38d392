//! How many messages of which level are in which state.

use crate::level::Level;

/// Levels that a delivery looks at in search of lower messages that are held: few namespaces use more,
/// and those that do must not pay for it with every delivery.
const LOWER_MAX: usize = 16;

/// Messages of one level by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelCounts {
    /// Waiting to be received, on disk or not.
    pub ready: u64,
    /// Locked by somebody.
    pub locked: u64,
    /// Put aside, not locked.
    pub deferred: u64,
    /// Waiting for their scheduled time.
    pub scheduled: u64,
    /// Waiting for their retry delay to pass.
    pub delayed: u64,
}

impl LevelCounts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        let parts = [self.ready, self.locked, self.deferred, self.scheduled, self.delayed];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// The counts of a mailbox, for each level that was ever in use: at most 256.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    levels: Vec<(Level, LevelCounts)>,
}

impl Tally {
    /// The counts of a level, to be changed.
    pub(crate) fn at(&mut self, level: Level) -> &mut LevelCounts {
        let place = match self.levels.binary_search_by_key(&level, |(known, _)| *known) {
            Ok(place) => place,
            Err(place) => self.begin(place, level),
        };
        let (_, counts) = self.levels.get_mut(place).expect("the place was just found or filled");
        counts
    }

    #[cold]
    fn begin(&mut self, place: usize, level: Level) -> usize {
        self.levels.insert(place, (level, LevelCounts::default()));
        place
    }

    /// The counts of a level, if it was ever in use.
    pub(crate) fn get(&self, level: Level) -> Option<LevelCounts> {
        let place = self.levels.binary_search_by_key(&level, |(known, _)| *known).ok()?;
        self.levels.get(place).map(|(_, counts)| *counts)
    }

    /// How many of a level are locked.
    pub(crate) fn locked(&self, level: Level) -> u64 {
        self.get(level).map_or(0, |counts| counts.locked)
    }

    /// The lowest levels in use below `level` of which some are locked.
    pub(crate) fn locked_below(&self, level: Level) -> impl Iterator<Item = Level> {
        let below = self.levels.iter().take(LOWER_MAX).take_while(move |(lower, _)| *lower < level);
        below.filter(|(_, counts)| counts.locked > 0).map(|(lower, _)| *lower)
    }

    /// Every level with a message, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Level, LevelCounts)> {
        self.levels.iter().copied().filter(|(_, counts)| counts.total() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_without_messages_are_not_told_of() {
        let mut tally = Tally::default();
        for level in [9, 4, 200] {
            tally.at(Level(level)).ready += 1;
        }
        tally.at(Level(9)).ready -= 1;
        tally.at(Level(4)).locked += 2;
        let told: Vec<_> = tally.iter().map(|(level, counts)| (level.0, counts.total())).collect();
        assert_eq!(told, [(4, 3), (200, 1)]);
    }
}
