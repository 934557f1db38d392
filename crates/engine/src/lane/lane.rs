//! One lane.
//!
//! In memory a lane is one list. When part of it lies on disk, it is: the *warm* list of what came
//! back, the runs, and the list of what is newer. Every key in the warm list is at most the `from` of
//! the first run; every key in the other list is beyond the last run.

use std::collections::{BTreeMap, VecDeque};

use super::{List, Run};
use crate::id::RunId;
use crate::store::record::Key;
use crate::store::{Handle, Place, Record, Slab};

/// The ready messages of one level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lane {
    list: List,
    returned: BTreeMap<Key, Handle>,
    cold: Option<Box<Cold>>,
}

#[derive(Debug, Clone, Default)]
struct Cold {
    warm: List,
    runs: VecDeque<Run>,
}

/// What is next in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// This message.
    Hot(Key, Handle),
    /// A message on disk, not before this key.
    Cold(Key, RunId),
}

impl Head {
    pub(crate) fn key(self) -> Key {
        match self {
            Head::Hot(key, _) | Head::Cold(key, _) => key,
        }
    }
}

impl Lane {
    /// How many messages, on disk or not.
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.list.len)
            .saturating_add(u64::try_from(self.returned.len()).unwrap_or(u64::MAX))
            .saturating_add(self.cold.as_ref().map_or(0, |cold| {
                let runs = cold.runs.iter().map(|run| u64::from(run.remaining()));
                runs.sum::<u64>().saturating_add(u64::from(cold.warm.len))
            }))
    }

    /// What is next.
    pub(crate) fn head(&self, records: &Slab<Record>) -> Option<Head> {
        let list = self.front().head;
        let listed = records.get(list).map(|record| Head::Hot(record.key(), list));
        let ordered = listed.or_else(|| {
            let run = self.cold.as_ref()?.runs.front()?;
            Some(Head::Cold(run.from, run.id))
        });
        let returned = self.returned.first_key_value().map(|(key, handle)| Head::Hot(*key, *handle));
        match (ordered, returned) {
            // A message that came back from a run may have the very key the rest of the run begins after.
            (Some(ordered), Some(returned)) if returned.key() <= ordered.key() => Some(returned),
            (None, returned) => returned,
            (ordered, _) => ordered,
        }
    }

    /// Puts a message where its key belongs.
    pub(crate) fn put(&mut self, records: &mut Slab<Record>, handle: Handle) {
        let Some(key) = records.get(handle).map(Record::key) else { return };
        let end = records.get(self.list.tail).map(Record::key).or_else(|| self.last_cold());
        if end.is_none_or(|end| end < key) {
            self.list.push_back(records, handle);
        } else if records.get(self.front().head).is_some_and(|first| key < first.key()) {
            self.front_mut().push_front(records, handle);
        } else {
            self.returned.insert(key, handle);
            if let Some(record) = records.get_mut(handle) {
                record.set_place(Place::Returned);
            }
        }
    }

    /// Takes a message out, wherever it is in the lane.
    pub(crate) fn take(&mut self, records: &mut Slab<Record>, handle: Handle) {
        let Some(record) = records.get(handle) else { return };
        let key = record.key();
        match record.place() {
            Place::Returned => {
                self.returned.remove(&key);
            }
            Place::Listed => {
                let first_run = self.cold.as_mut().and_then(|cold| {
                    let from = cold.runs.front()?.from;
                    Some((&mut cold.warm, from))
                });
                match first_run {
                    Some((warm, from)) if key <= from => warm.unlink(records, handle),
                    _ => self.list.unlink(records, handle),
                }
            }
            _ => {}
        }
    }

    /// Messages in memory, in order.
    pub(crate) fn iter<'a>(
        &'a self,
        records: &'a Slab<Record>,
    ) -> impl Iterator<Item = (Handle, &'a Record)> {
        let warm = self.cold.iter().flat_map(|cold| cold.warm.iter(records));
        let mut listed = warm.chain(self.list.iter(records)).peekable();
        let mut returned =
            self.returned.values().filter_map(|handle| Some((*handle, records.get(*handle)?))).peekable();
        std::iter::from_fn(move || match (listed.peek(), returned.peek()) {
            (Some((_, left)), Some((_, right))) if right.key() < left.key() => returned.next(),
            (None, Some(_)) => returned.next(),
            _ => listed.next(),
        })
    }

    /// The runs in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.cold.iter().flat_map(|cold| cold.runs.iter())
    }

    /// A run of this lane.
    pub(crate) fn run_mut(&mut self, id: RunId) -> Option<&mut Run> {
        self.cold.as_mut()?.runs.iter_mut().find(|run| run.id == id)
    }

    /// How many messages are in memory before the first run, and that run. None without runs.
    pub(crate) fn before_first_run(&self) -> Option<(u32, &Run)> {
        let cold = self.cold.as_ref()?;
        Some((cold.warm.len, cold.runs.front()?))
    }

    /// The messages of the list that follows the runs: those that may be chilled next.
    pub(crate) fn chillable<'a>(
        &self,
        records: &'a Slab<Record>,
    ) -> impl Iterator<Item = (Handle, &'a Record)> {
        self.list.iter(records)
    }

    /// Whether a message has come back and lies beside the list.
    pub(crate) fn is_beside(&self, records: &Slab<Record>, handle: Handle) -> bool {
        records.get(handle).is_some_and(|record| {
            record.place() == Place::Returned && self.returned.get(&record.key()) == Some(&handle)
        })
    }

    /// Replaces messages at the front of the list, or beside it, by a run, and puts `others` that stand among them beside
    /// the list. The caller has checked that they are those of the run, and frees their records afterwards.
    pub(crate) fn chill(
        &mut self,
        records: &mut Slab<Record>,
        (handles, others): (&[Handle], &[Handle]),
        run: Run,
    ) {
        for handle in handles {
            match records.get(*handle).map(Record::key) {
                Some(key) if self.is_beside(records, *handle) => drop(self.returned.remove(&key)),
                _ => self.list.unlink(records, *handle),
            }
        }
        for handle in others {
            self.list.unlink(records, *handle);
            if let Some(record) = records.get_mut(*handle) {
                record.set_place(Place::Returned);
                self.returned.insert(record.key(), *handle);
            }
        }
        self.cold.get_or_insert_default().runs.push_back(run);
    }

    /// Adds a run behind all messages and runs there are: what was there comes before it.
    pub(crate) fn push_run(&mut self, run: Run) {
        let cold = self.cold.get_or_insert_with(|| {
            let warm = std::mem::take(&mut self.list);
            Box::new(Cold { warm, runs: VecDeque::new() })
        });
        cold.runs.push_back(run);
    }

    /// Puts the next message of the first run back into memory.
    pub(crate) fn warm(&mut self, records: &mut Slab<Record>, handle: Handle) {
        let Some(&record) = records.get(handle) else { return };
        let Some(cold) = self.cold.as_mut() else { return };
        let Some(run) = cold.runs.front_mut() else { return };
        run.leave(run.consumed, record.location.region(), record.size);
        run.from = record.key();
        cold.warm.push_back(records, handle);
        self.drop_empty_run(records, 0);
    }

    /// Puts messages of a run back into memory before their turn: beside the list, each in its place.
    pub(crate) fn pluck(&mut self, records: &mut Slab<Record>, id: RunId, plucked: &[(u32, Handle)]) {
        let Some(cold) = self.cold.as_mut() else { return };
        let Some(index) = cold.runs.iter().position(|run| run.id == id) else { return };
        let Some(run) = cold.runs.get_mut(index) else { return };
        for (position, handle) in plucked {
            let Some(record) = records.get_mut(*handle) else { continue };
            run.leave(*position, record.location.region(), record.size);
            record.set_place(Place::Returned);
            self.returned.insert(record.key(), *handle);
        }
        self.drop_empty_run(records, index);
    }

    /// Forgets a run that nothing is left of, and that there ever was one if it was the last.
    fn drop_empty_run(&mut self, records: &mut Slab<Record>, index: usize) {
        let Some(cold) = self.cold.as_mut() else { return };
        if cold.runs.get(index).is_some_and(|run| run.remaining() == 0) {
            cold.runs.remove(index);
        }
        if cold.runs.is_empty() {
            let mut all = std::mem::take(&mut cold.warm);
            all.append(records, &self.list);
            self.list = all;
            self.cold = None;
        }
    }

    fn front(&self) -> &List {
        self.cold.as_ref().map_or(&self.list, |cold| &cold.warm)
    }

    fn front_mut(&mut self) -> &mut List {
        match &mut self.cold {
            Some(cold) => &mut cold.warm,
            None => &mut self.list,
        }
    }

    fn last_cold(&self) -> Option<Key> {
        self.cold.as_ref()?.runs.back().map(|run| run.last)
    }
}
