//! A stretch of a lane that lies on disk.
//!
//! Its messages come back in order. One that expires before its turn comes back alone and leaves a gap:
//! the record stays in the file, and is passed over from then on.

use crate::id::{Region, RunId};
use crate::store::record::Key;
use crate::time::Timestamp;

/// What is known of a stretch whose records are not in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    /// How many records were written.
    pub(crate) count: u32,
    /// How many of them, from the first on, are back in memory. The next one is no gap.
    pub(crate) consumed: u32,
    /// Up to which record more was asked for; asking twice would waste reads. Not kept in snapshots.
    pub(crate) asked: u32,
    /// No remaining record comes before this. Those that came back do.
    pub(crate) from: Key,
    pub(crate) last: Key,
    pub(crate) bytes: u64,
    /// How many of the remaining payloads lie where; usually one region.
    pub(crate) regions: Vec<(Region, u32)>,
    /// No remaining message expires before this.
    pub(crate) soonest: Timestamp,
    pub(crate) gaps: Gaps,
}

impl Run {
    /// How many messages are left.
    pub(crate) fn remaining(&self) -> u32 {
        self.unread().saturating_sub(self.gaps.ahead)
    }

    /// How many records follow those that were consumed, gaps among them.
    pub(crate) fn unread(&self) -> u32 {
        self.count.saturating_sub(self.consumed)
    }

    /// The message at a position left for good: the next one, or one out of turn.
    pub(crate) fn leave(&mut self, position: u32, region: Region, size: u32) {
        self.bytes = self.bytes.saturating_sub(u64::from(size));
        self.forget(region);
        if position == self.consumed {
            self.consumed = self.consumed.saturating_add(1);
        } else {
            self.gaps.open(position);
        }
        while self.consumed < self.count && self.gaps.contains(self.consumed) {
            self.consumed = self.consumed.saturating_add(1);
            self.gaps.ahead = self.gaps.ahead.saturating_sub(1);
        }
    }

    /// One payload less lies in that region.
    fn forget(&mut self, region: Region) {
        if let Some((_, left)) = self.regions.iter_mut().find(|(known, _)| *known == region) {
            *left = left.saturating_sub(1);
        }
        self.regions.retain(|(_, left)| *left > 0);
    }
}

/// Which records of a run left it out of turn: one bit each, none while there are no gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    bits: Vec<u64>,
    /// How many of them are yet to be passed over.
    ahead: u32,
}

impl Gaps {
    /// Gaps as they were written down, in a run of which so much was consumed.
    pub(crate) fn restore(bits: &[u64], consumed: u32, count: u32) -> Gaps {
        let mut gaps = Gaps { bits: bits.to_vec(), ahead: 0 };
        gaps.ahead = gaps.between(consumed, count);
        gaps
    }

    /// To be written down.
    pub(crate) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// How many are yet to be passed over.
    pub(crate) fn ahead(&self) -> u32 {
        self.ahead
    }

    pub(crate) fn contains(&self, position: u32) -> bool {
        self.bits.get(word(position)).is_some_and(|bits| bits & bit(position) != 0)
    }

    /// How many there are from `from` up to `to`.
    pub(crate) fn between(&self, from: u32, to: u32) -> u32 {
        if self.bits.is_empty() {
            return 0;
        }
        u32::try_from((from..to).filter(|position| self.contains(*position)).count()).unwrap_or(u32::MAX)
    }

    fn open(&mut self, position: u32) {
        let word = word(position);
        if self.bits.len() <= word {
            self.bits.resize(word.saturating_add(1), 0);
        }
        if let Some(bits) = self.bits.get_mut(word)
            && *bits & bit(position) == 0
        {
            *bits |= bit(position);
            self.ahead = self.ahead.saturating_add(1);
        }
    }
}

fn word(position: u32) -> usize {
    usize::try_from(position / 64).unwrap_or(usize::MAX)
}

fn bit(position: u32) -> u64 {
    1 << (position % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Sequence;

    #[test]
    fn what_left_out_of_turn_is_passed_over_and_counted_once() {
        let key = |number| (Timestamp(number), Sequence(number));
        let mut run = Run {
            id: RunId(1),
            count: 200,
            consumed: 0,
            asked: 0,
            from: key(0),
            last: key(199),
            bytes: 2_000,
            regions: vec![(Region(7), 200)],
            soonest: Timestamp::NEVER,
            gaps: Gaps::default(),
        };
        for position in [1, 2, 64, 127, 199, 2] {
            run.leave(position, Region(7), 10);
        }
        assert_eq!((run.consumed, run.unread(), run.remaining()), (0, 200, 195));
        run.leave(0, Region(7), 10);
        assert_eq!((run.consumed, run.remaining()), (3, 194), "the gaps behind it are passed over");
        assert_eq!(run.gaps.between(0, 65), 3);
        let again = Gaps::restore(run.gaps.bits(), run.consumed, run.count);
        assert_eq!(again, run.gaps);
        for position in 3..200 {
            if !run.gaps.contains(position) {
                run.leave(position, Region(7), 10);
            }
        }
        assert_eq!((run.remaining(), run.unread()), (0, 0));
    }
}
