//! Channels and handles: which of the peer's numbers means which of our slots, and which of ours are free.
//!
//! Peers choose their numbers freely: Python begins on channel 1, others may use any handle up to the agreed
//! maximum. Small numbers, which nearly all peers use, are looked up by index; the others in a tree, so that one
//! large number costs one entry and not an array up to it.

use std::collections::{BTreeMap, BTreeSet};

/// Numbers below this are looked up by index.
const DIRECT: u32 = 64;

/// The peer's numbers and the slots they stand for.
#[derive(Debug, Default)]
pub(super) struct PeerNumbers {
    direct: Vec<Option<u32>>,
    others: BTreeMap<u32, u32>,
}

impl PeerNumbers {
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<u32> {
        if number < DIRECT {
            let index = usize::try_from(number).ok()?;
            return self.direct.get(index).copied().flatten();
        }
        self.others.get(&number).copied()
    }

    pub(super) fn insert(&mut self, number: u32, slot: u32) {
        if number >= DIRECT {
            self.others.insert(number, slot);
            return;
        }
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        if self.direct.len() <= index {
            self.direct.resize(index.saturating_add(1), None);
        }
        if let Some(place) = self.direct.get_mut(index) {
            *place = Some(slot);
        }
    }

    pub(super) fn remove(&mut self, number: u32) {
        if number >= DIRECT {
            self.others.remove(&number);
        } else if let Some(place) = usize::try_from(number).ok().and_then(|index| self.direct.get_mut(index))
        {
            *place = None;
        }
    }
}

/// Numbers of ours, handed out from the lowest.
#[derive(Debug, Default)]
pub(super) struct OwnNumbers {
    returned: BTreeSet<u32>,
    unused: u32,
}

impl OwnNumbers {
    /// The lowest free number, if it is not above `max`.
    pub(super) fn take(&mut self, max: u32) -> Option<u32> {
        if let Some(number) = self.returned.first().copied().filter(|number| *number <= max) {
            self.returned.remove(&number);
            return Some(number);
        }
        let number = self.unused;
        if number > max {
            return None;
        }
        self.unused = number.checked_add(1)?;
        Some(number)
    }

    /// Makes a number free again.
    pub(super) fn give_back(&mut self, number: u32) {
        self.returned.insert(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_can_be_used_and_costs_one_entry() {
        let mut numbers = PeerNumbers::default();
        for (slot, number) in [0, 1, 63, 64, 4999, u32::MAX].into_iter().enumerate() {
            let slot = u32::try_from(slot).unwrap();
            assert_eq!(numbers.get(number), None);
            numbers.insert(number, slot);
            assert_eq!(numbers.get(number), Some(slot));
        }
        assert!(numbers.direct.len() <= 64);
        numbers.remove(63);
        numbers.remove(u32::MAX);
        assert_eq!((numbers.get(63), numbers.get(u32::MAX), numbers.get(64)), (None, None, Some(3)));
    }

    #[test]
    fn own_numbers_come_from_the_lowest_and_stop_at_the_maximum() {
        let mut numbers = OwnNumbers::default();
        assert_eq!(
            [numbers.take(2), numbers.take(2), numbers.take(2), numbers.take(2)],
            [Some(0), Some(1), Some(2), None]
        );
        numbers.give_back(1);
        assert_eq!((numbers.take(0), numbers.take(2)), (None, Some(1)));
    }
}
