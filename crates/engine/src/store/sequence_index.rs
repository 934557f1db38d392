//! From a sequence number to a message, at about four bytes a message.
//!
//! Numbers are given out in order, so the messages of a mailbox are dense near the top and thin out
//! below. The top is a row of pages of 256 numbers, each either a plain array or, when little is left
//! in it, a short sorted list. What falls far behind moves into an ordered map, one entry a message, so
//! that a single old message does not keep a row of a billion numbers alive.

use std::collections::{BTreeMap, VecDeque};

use super::slab::Handle;
use crate::id::Sequence;

const PAGE: u64 = 256;
/// Below this many entries a page is a list.
const SPARSE_BELOW: usize = 48;
/// A page at the bottom of the row with so few entries moves to the map.
const STRAGGLERS_MAX: usize = 8;
/// A gap of so many pages begins a new row.
const GAP_PAGES_MAX: u64 = 1_024;

/// Messages of one mailbox by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct SequenceIndex {
    /// Everything below the row.
    stragglers: BTreeMap<Sequence, Handle>,
    /// Consecutive pages, the first covering `base * PAGE ..`.
    row: VecDeque<Page>,
    base: u64,
    len: usize,
}

#[derive(Debug, Clone)]
enum Page {
    Sparse(Vec<(u8, Handle)>),
    Dense { slots: Box<[Handle; 256]>, live: usize },
}

impl SequenceIndex {
    pub(crate) fn get(&self, sequence: Sequence) -> Option<Handle> {
        match self.page_number(sequence) {
            Some(number) => self.row.get(number)?.get(offset(sequence)),
            None => self.stragglers.get(&sequence).copied(),
        }
    }

    /// Files a message. A number that is taken keeps its first owner, and `false` says so.
    pub(crate) fn insert(&mut self, sequence: Sequence, handle: Handle) -> bool {
        if self.row.is_empty() {
            let above =
                self.stragglers.last_key_value().map_or(0, |(last, _)| (last.0 / PAGE).saturating_add(1));
            self.base = above.max(sequence.0 / PAGE);
        }
        let page = sequence.0 / PAGE;
        let top = self.base.saturating_add(u64::try_from(self.row.len()).unwrap_or(u64::MAX));
        if page >= top.saturating_add(GAP_PAGES_MAX) {
            while !self.row.is_empty() {
                self.retire_first();
            }
            self.base = page;
        }
        let fresh = match self.page_number(sequence) {
            None => {
                let vacant = !self.stragglers.contains_key(&sequence);
                if vacant {
                    self.stragglers.insert(sequence, handle);
                }
                vacant
            }
            Some(number) => {
                while self.row.len() <= number {
                    self.row.push_back(self.next_page());
                }
                self.row.get_mut(number).is_some_and(|page| page.insert(offset(sequence), handle))
            }
        };
        if fresh {
            self.len = self.len.saturating_add(1);
        }
        fresh
    }

    pub(crate) fn remove(&mut self, sequence: Sequence) -> Option<Handle> {
        let removed = match self.page_number(sequence) {
            Some(number) => self.row.get_mut(number)?.remove(offset(sequence)),
            None => self.stragglers.remove(&sequence),
        }?;
        self.len = self.len.saturating_sub(1);
        self.tidy();
        Some(removed)
    }

    /// Messages from a number on, in order.
    pub(crate) fn from(&self, start: Sequence) -> impl Iterator<Item = (Sequence, Handle)> {
        let below = self.stragglers.range(start..).map(|(sequence, handle)| (*sequence, *handle));
        let skip = self.page_number(start).unwrap_or(0);
        let above = self.row.iter().enumerate().skip(skip).flat_map(move |(number, page)| {
            let number = self.base.saturating_add(u64::try_from(number).unwrap_or(u64::MAX));
            page.iter().map(move |(offset, handle)| {
                (Sequence(number.saturating_mul(PAGE).saturating_add(u64::from(offset))), handle)
            })
        });
        below.chain(above.skip_while(move |(sequence, _)| *sequence < start))
    }

    fn page_number(&self, sequence: Sequence) -> Option<usize> {
        (sequence.0 / PAGE).checked_sub(self.base).and_then(|number| usize::try_from(number).ok())
    }

    /// An empty page for the end of the row: one that follows many messages will have many.
    fn next_page(&self) -> Page {
        match self.row.back() {
            Some(Page::Dense { .. }) => Page::dense(&[]),
            Some(Page::Sparse(_)) | None => Page::Sparse(Vec::new()),
        }
    }

    /// Keeps the row no longer than what lies in it deserves.
    fn tidy(&mut self) {
        while let Some(first) = self.row.front() {
            let worth = self.len.saturating_sub(self.stragglers.len()) / 32;
            let few = first.len() <= STRAGGLERS_MAX && self.row.len() > 1;
            let long = self.row.len() > worth.saturating_add(64);
            if first.len() > 0 && !few && !long {
                return;
            }
            if self.row.len() == 1 && first.len() > 0 {
                return;
            }
            self.retire_first();
        }
    }

    fn retire_first(&mut self) {
        if let Some(first) = self.row.pop_front() {
            let start = self.base.saturating_mul(PAGE);
            let entries = first
                .iter()
                .map(|(offset, handle)| (Sequence(start.saturating_add(u64::from(offset))), handle));
            self.stragglers.extend(entries);
            self.base = self.base.saturating_add(1);
        }
    }
}

fn offset(sequence: Sequence) -> u8 {
    u8::try_from(sequence.0 % PAGE).unwrap_or(0)
}

impl Page {
    fn len(&self) -> usize {
        match self {
            Page::Sparse(entries) => entries.len(),
            Page::Dense { live, .. } => *live,
        }
    }

    fn get(&self, offset: u8) -> Option<Handle> {
        match self {
            Page::Sparse(entries) => {
                let found = entries.binary_search_by_key(&offset, |(at, _)| *at).ok()?;
                entries.get(found).map(|(_, handle)| *handle)
            }
            Page::Dense { slots, .. } => {
                slots.get(usize::from(offset)).copied().filter(|handle| handle.is_some())
            }
        }
    }

    fn insert(&mut self, offset: u8, handle: Handle) -> bool {
        match self {
            Page::Sparse(entries) => match entries.binary_search_by_key(&offset, |(at, _)| *at) {
                Ok(_) => false,
                Err(at) => {
                    entries.insert(at, (offset, handle));
                    if entries.len() > SPARSE_BELOW {
                        *self = Page::dense(entries);
                    }
                    true
                }
            },
            Page::Dense { slots, live } => match slots.get_mut(usize::from(offset)) {
                Some(slot) if !slot.is_some() => {
                    *slot = handle;
                    *live = live.saturating_add(1);
                    true
                }
                _ => false,
            },
        }
    }

    fn remove(&mut self, offset: u8) -> Option<Handle> {
        match self {
            Page::Sparse(entries) => {
                let found = entries.binary_search_by_key(&offset, |(at, _)| *at).ok()?;
                Some(entries.remove(found).1)
            }
            Page::Dense { slots, live } => {
                let slot = slots.get_mut(usize::from(offset)).filter(|slot| slot.is_some())?;
                let removed = std::mem::replace(slot, Handle::NONE);
                *live = live.saturating_sub(1);
                if *live < SPARSE_BELOW / 2 {
                    *self = Page::Sparse(self.iter().collect());
                }
                Some(removed)
            }
        }
    }

    fn dense(entries: &[(u8, Handle)]) -> Page {
        let mut slots = Box::new([Handle::NONE; 256]);
        for (offset, handle) in entries {
            if let Some(slot) = slots.get_mut(usize::from(*offset)) {
                *slot = *handle;
            }
        }
        Page::Dense { slots, live: entries.len() }
    }

    fn iter(&self) -> impl Iterator<Item = (u8, Handle)> {
        let (sparse, dense) = match self {
            Page::Sparse(entries) => (Some(entries), None),
            Page::Dense { slots, .. } => (None, Some(slots)),
        };
        let sparse = sparse.into_iter().flatten().copied();
        let dense = dense.into_iter().flat_map(|slots| (0..=u8::MAX).zip(slots.iter().copied()));
        sparse.chain(dense.filter(|(_, handle)| handle.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Operation {
        Append(u64),
        Put(u64),
        Remove(prop::sample::Index),
        RemoveOldest,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            6 => (0u64..3).prop_map(Operation::Append),
            1 => (1_000u64..1_000_000).prop_map(Operation::Append),
            1 => (0u64..1_000_000_000).prop_map(Operation::Put),
            3 => any::<prop::sample::Index>().prop_map(Operation::Remove),
            3 => Just(Operation::RemoveOldest),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn it_behaves_as_an_ordered_map(operations in prop::collection::vec(operation(), 1..1_500)) {
            let mut model = BTreeMap::new();
            let mut index = SequenceIndex::default();
            let mut top = 0;
            for (number, operation) in operations.into_iter().enumerate() {
                let handle = Handle(u32::try_from(number).unwrap());
                let chosen = match operation {
                    Operation::Append(skip) => {
                        top += 1 + skip;
                        Some(Sequence(top))
                    }
                    Operation::Put(sequence) => Some(Sequence(sequence)),
                    Operation::Remove(_) | Operation::RemoveOldest if model.is_empty() => None,
                    Operation::Remove(which) => {
                        let gone = *model.keys().nth(which.index(model.len())).unwrap();
                        prop_assert_eq!(index.remove(gone), model.remove(&gone));
                        None
                    }
                    Operation::RemoveOldest => {
                        let gone = *model.keys().next().unwrap();
                        prop_assert_eq!(index.remove(gone), model.remove(&gone));
                        None
                    }
                };
                if let Some(sequence) = chosen {
                    let fresh = !model.contains_key(&sequence);
                    prop_assert_eq!(index.insert(sequence, handle), fresh);
                    if fresh {
                        model.insert(sequence, handle);
                    }
                }
                prop_assert_eq!(index.len, model.len());
            }
            prop_assert!(index.from(Sequence(0)).eq(model.iter().map(|(s, h)| (*s, *h))));
            let middle = Sequence(top / 2);
            prop_assert!(index.from(middle).eq(model.range(middle..).map(|(s, h)| (*s, *h))));
            for (sequence, handle) in &model {
                prop_assert_eq!(index.get(*sequence), Some(*handle));
                prop_assert_eq!(index.get(Sequence(sequence.0 + 1)), model.get(&Sequence(sequence.0 + 1)).copied());
            }
        }
    }

    #[test]
    fn one_old_message_does_not_keep_a_long_row_alive() {
        let mut index = SequenceIndex::default();
        index.insert(Sequence(1), Handle(1));
        for number in 2..200_000 {
            index.insert(Sequence(number), Handle(2));
            index.remove(Sequence(number));
        }
        assert!(index.row.len() <= 66, "{} pages for one message", index.row.len());
        assert_eq!(index.from(Sequence(0)).collect::<Vec<_>>(), [(Sequence(1), Handle(1))]);
    }
}
