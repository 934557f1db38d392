//! Which lane each run on disk belongs to.
//!
//! A run's number says where its records are written down. The shard must not throw that away while a run is left that
//! needs it, so it asks which runs came to their end, and whether there are others beside them.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use crate::id::{MailboxId, RunId};
use crate::level::Level;

/// All runs there are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    lanes: BTreeMap<RunId, (MailboxId, Level)>,
    ended: Vec<RunId>,
}

impl Runs {
    pub(crate) fn insert(&mut self, run: RunId, lane: (MailboxId, Level)) {
        self.lanes.insert(run, lane);
    }

    pub(crate) fn remove(&mut self, run: RunId) {
        if self.lanes.remove(&run).is_some() {
            self.ended.push(run);
        }
    }

    pub(crate) fn get(&self, run: RunId) -> Option<(MailboxId, Level)> {
        self.lanes.get(&run).copied()
    }

    pub(crate) fn contains(&self, run: RunId) -> bool {
        self.lanes.contains_key(&run)
    }

    /// Whether there is a run with one of these numbers.
    pub(crate) fn any_in(&self, numbers: impl RangeBounds<RunId>) -> bool {
        self.lanes.range(numbers).next().is_some()
    }

    /// None any more.
    pub(crate) fn cleared(mut self) -> Runs {
        self.ended.extend(std::mem::take(&mut self.lanes).into_keys());
        self
    }

    /// Those that came to their end since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<RunId> {
        std::mem::take(&mut self.ended)
    }

    #[cfg(test)]
    pub(crate) fn numbers(&self) -> impl Iterator<Item = RunId> {
        self.lanes.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_reported_once_when_it_ends_and_those_beside_it_are_found() {
        let mut runs = Runs::default();
        for number in [7, 9, 20] {
            runs.insert(RunId(number), (MailboxId(1), Level(4)));
        }
        runs.remove(RunId(9));
        runs.remove(RunId(8));
        assert_eq!(runs.take_ended(), [RunId(9)]);
        assert_eq!(runs.take_ended(), []);
        let cases = [(0..7, false), (0..8, true), (8..20, false), (20..21, true), (21..99, false)];
        for (numbers, there) in cases {
            let range = RunId(numbers.start)..RunId(numbers.end);
            assert_eq!(runs.any_in(range), there, "{numbers:?}");
        }
        assert_eq!(runs.cleared().take_ended(), [RunId(7), RunId(20)]);
    }
}
