//! The lanes of a mailbox, with the key of each head at hand.
//!
//! Picking compares heads alone. Their times lie side by side, so that the hardest question (who is the
//! oldest of 256 lanes?) reads two kilobytes and follows no pointer; numbers are looked at to break ties.

use super::{Head, Lane, Run};
use crate::id::{RunId, Sequence};
use crate::level::Level;
use crate::store::record::Key;
use crate::store::{Handle, Record, Slab};
use crate::time::Timestamp;

/// What an empty lane shows for its head: later than everything.
pub(crate) const NOBODY: Key = (Timestamp::NEVER, Sequence(u64::MAX));

/// One lane for each level in use, lowest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lanes {
    known: Levels,
    waiting: Levels,
    /// The levels of the lanes, the two parts of the keys of their heads, and the lanes.
    levels: Vec<Level>,
    eligible: Vec<Timestamp>,
    sequences: Vec<Sequence>,
    rows: Vec<Lane>,
}

/// A set of levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Levels([u64; 4]);

impl Levels {
    fn contains(self, level: Level) -> bool {
        self.0.get(word(level)).is_some_and(|bits| bits & bit(level) != 0)
    }

    fn set(&mut self, level: Level, present: bool) {
        if let Some(bits) = self.0.get_mut(word(level)) {
            *bits = if present { *bits | bit(level) } else { *bits & !bit(level) };
        }
    }

    /// How many levels of the set are lower.
    fn rank(self, level: Level) -> usize {
        let below = self.0.iter().take(word(level)).map(|bits| bits.count_ones()).sum::<u32>();
        let here = self.0.get(word(level)).map_or(0, |bits| (bits & bit(level).wrapping_sub(1)).count_ones());
        usize::try_from(below.saturating_add(here)).unwrap_or(usize::MAX)
    }

    fn highest(self) -> Option<Level> {
        let (word, bits) = self.0.iter().enumerate().rev().find(|(_, bits)| **bits != 0)?;
        let level = u32::try_from(word)
            .ok()?
            .checked_mul(64)?
            .checked_add(63_u32.checked_sub(bits.leading_zeros())?)?;
        u8::try_from(level).ok().map(Level)
    }
}

fn word(level: Level) -> usize {
    usize::from(level.0 / 64)
}

fn bit(level: Level) -> u64 {
    1 << (level.0 % 64)
}

impl Lanes {
    /// The highest level at which a message is ready.
    pub(crate) fn highest(&self) -> Option<Level> {
        self.waiting.highest()
    }

    pub(crate) fn lane(&self, level: Level) -> Option<&Lane> {
        self.known.contains(level).then(|| self.rows.get(self.known.rank(level)))?
    }

    /// The heads of lanes at `floor` or above, with their levels. Empty lanes show [`NOBODY`].
    pub(crate) fn heads(&self, floor: Level) -> impl Iterator<Item = (Level, Key)> {
        let skip = self.known.rank(floor);
        let keys = self.eligible.iter().copied().zip(self.sequences.iter().copied());
        self.levels.iter().copied().zip(keys).skip(skip)
    }

    /// The oldest head of the lanes at `floor` or above.
    pub(crate) fn oldest(&self, floor: Level) -> Option<(Level, Key)> {
        self.soonest(floor, |_, eligible| eligible).map(|(_, level, key)| (level, key))
    }

    /// The head of the lanes at `floor` or above that stands first, when each stands by the time that
    /// `stand` makes of its level and eligible time, and where that is.
    pub(crate) fn soonest(
        &self,
        floor: Level,
        stand: impl Fn(Level, Timestamp) -> Timestamp,
    ) -> Option<(Timestamp, Level, Key)> {
        let skip = self.known.rank(floor);
        let levels = self.levels.get(skip..)?;
        let keys = self.eligible.get(skip..)?.iter().zip(self.sequences.get(skip..)?);
        let mut soonest = (Timestamp::NEVER, Level(0), NOBODY);
        for (level, (eligible, sequence)) in levels.iter().zip(keys) {
            let stand = stand(*level, *eligible);
            // Nearly every lane is passed over here, by one comparison.
            if stand > soonest.0 || (stand == soonest.0 && *sequence >= soonest.2.1) {
                continue;
            }
            soonest = (stand, *level, (*eligible, *sequence));
        }
        (soonest.2 != NOBODY).then_some(soonest)
    }

    /// How long ago the oldest head became eligible, without saying which it is.
    pub(crate) fn oldest_eligible(&self, floor: Level) -> Timestamp {
        let skip = self.known.rank(floor);
        self.eligible.iter().skip(skip).min().copied().unwrap_or(Timestamp::NEVER)
    }

    /// What is next at a level.
    pub(crate) fn head(&self, level: Level, records: &Slab<Record>) -> Option<Head> {
        self.lane(level)?.head(records)
    }

    pub(crate) fn put(&mut self, records: &mut Slab<Record>, handle: Handle) {
        let Some(&record) = records.get(handle) else { return };
        let index = self.open(record.level);
        let shown = self.eligible.get_mut(index).zip(self.sequences.get_mut(index));
        if let (Some(lane), Some((eligible, sequence))) = (self.rows.get_mut(index), shown) {
            lane.put(records, handle);
            // The head is the one that was or the new one. Asking the lane would read the head's record, which
            // in a long lane is far from where the new one is put.
            (*eligible, *sequence) = record.key().min((*eligible, *sequence));
            self.waiting.set(record.level, true);
        }
    }

    pub(crate) fn take(&mut self, records: &mut Slab<Record>, handle: Handle) {
        let Some(level) = records.get(handle).map(|record| record.level) else { return };
        self.with(level, records, |lane, records| lane.take(records, handle));
    }

    pub(crate) fn chill(
        &mut self,
        level: Level,
        records: &mut Slab<Record>,
        handles: (&[Handle], &[Handle]),
        run: Run,
    ) {
        self.with(level, records, |lane, records| lane.chill(records, handles, run));
    }

    pub(crate) fn push_run(&mut self, level: Level, records: &mut Slab<Record>, run: Run) {
        self.with(level, records, |lane, _| lane.push_run(run));
    }

    pub(crate) fn warm(&mut self, records: &mut Slab<Record>, handle: Handle) {
        let Some(level) = records.get(handle).map(|record| record.level) else { return };
        self.with(level, records, |lane, records| lane.warm(records, handle));
    }

    pub(crate) fn pluck(
        &mut self,
        level: Level,
        records: &mut Slab<Record>,
        run: RunId,
        plucked: &[(u32, Handle)],
    ) {
        self.with(level, records, |lane, records| lane.pluck(records, run, plucked));
    }

    pub(crate) fn run_mut(&mut self, level: Level, id: RunId) -> Option<&mut Run> {
        let lane = self.known.contains(level).then(|| self.known.rank(level))?;
        self.rows.get_mut(lane)?.run_mut(id)
    }

    /// The lanes in use with their levels, highest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Level, &Lane)> {
        self.levels.iter().copied().zip(&self.rows).rev()
    }

    /// Changes a lane and keeps what is known of its head true.
    fn with(
        &mut self,
        level: Level,
        records: &mut Slab<Record>,
        change: impl FnOnce(&mut Lane, &mut Slab<Record>),
    ) {
        let index = self.open(level);
        let shown = self.eligible.get_mut(index).zip(self.sequences.get_mut(index));
        if let (Some(lane), Some((eligible, sequence))) = (self.rows.get_mut(index), shown) {
            change(lane, records);
            let head = lane.head(records);
            (*eligible, *sequence) = head.map_or(NOBODY, Head::key);
            self.waiting.set(level, head.is_some());
        }
    }

    /// Where the lane of a level is, made if need be.
    fn open(&mut self, level: Level) -> usize {
        let index = self.known.rank(level);
        if !self.known.contains(level) {
            self.begin(index, level);
        }
        index
    }

    #[cold]
    fn begin(&mut self, index: usize, level: Level) {
        self.rows.insert(index, Lane::default());
        self.eligible.insert(index, NOBODY.0);
        self.sequences.insert(index, NOBODY.1);
        self.levels.insert(index, level);
        self.known.set(level, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_of_levels_ranks_and_finds_as_an_ordered_set(levels in prop::collection::btree_set(any::<u8>(), 0..40), probe: u8) {
            let mut set = Levels::default();
            for level in &levels {
                set.set(Level(*level), true);
            }
            prop_assert_eq!(set.highest().map(|level| level.0), levels.last().copied());
            prop_assert_eq!(set.rank(Level(probe)), levels.range(..probe).count());
            for level in 0..=u8::MAX {
                prop_assert_eq!(set.contains(Level(level)), levels.contains(&level));
            }
        }
    }
}
