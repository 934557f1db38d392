//! Duplicate detection: the message ids an entity has seen lately.
//!
//! Ids are remembered as keyed 128-bit hashes, in the order they came: 24 bytes and an index entry
//! each. What is older than the window is dropped as new ids come in, two for one, so that no timer is
//! needed and no step is ever long.

use std::collections::VecDeque;

use hashbrown::HashTable;

use crate::time::{Span, Timestamp};

/// The ids one entity has seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    seen: VecDeque<(u128, Timestamp)>,
    /// How many were dropped before the first in `seen`: places are counted from the beginning of time.
    dropped: u64,
    places: HashTable<u64>,
}

fn hash(key: u128) -> u64 {
    u64::try_from(key & u128::from(u64::MAX)).unwrap_or(0)
}

impl History {
    /// Whether an id was seen within the window before `now`.
    pub(crate) fn contains(&self, key: u128, now: Timestamp, window: Span) -> bool {
        self.seen_at(key).is_some_and(|at| now.since(at) < window)
    }

    /// Remembers an id, and forgets what is out of the window.
    pub(crate) fn insert(&mut self, key: u128, at: Timestamp, window: Span) {
        for _ in 0..2 {
            match self.seen.front() {
                Some((_, oldest)) if at.since(*oldest) >= window => self.forget_oldest(),
                _ => break,
            }
        }
        let place = self.dropped.saturating_add(u64::try_from(self.seen.len()).unwrap_or(0));
        // An id that lapsed but was not dropped yet is remembered at its new place only.
        if let Ok(entry) = self.places.find_entry(hash(key), |place| {
            get(&self.seen, self.dropped, *place).is_some_and(|(other, _)| *other == key)
        }) {
            entry.remove();
        }
        self.seen.push_back((key, at));
        let (seen, dropped) = (&self.seen, self.dropped);
        self.places.insert_unique(hash(key), place, |place| {
            get(seen, dropped, *place).map_or(0, |(other, _)| hash(*other))
        });
    }

    /// How many ids before `now` would still be remembered if everything lapsed were dropped.
    pub(crate) fn is_full(&self, max: usize, now: Timestamp, window: Span) -> bool {
        self.seen.len() >= max && self.seen.front().is_some_and(|(_, oldest)| now.since(*oldest) < window)
    }

    /// The ids, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, Timestamp)> {
        self.seen.iter().copied()
    }

    fn seen_at(&self, key: u128) -> Option<Timestamp> {
        let same =
            |place: &u64| get(&self.seen, self.dropped, *place).is_some_and(|(other, _)| *other == key);
        let place = self.places.find(hash(key), same)?;
        get(&self.seen, self.dropped, *place).map(|(_, at)| *at)
    }

    fn forget_oldest(&mut self) {
        if let Some((key, _)) = self.seen.pop_front() {
            let place = self.dropped;
            if let Ok(entry) = self.places.find_entry(hash(key), |other| *other == place) {
                entry.remove();
            }
            self.dropped = self.dropped.saturating_add(1);
        }
    }
}

fn get(seen: &VecDeque<(u128, Timestamp)>, dropped: u64, place: u64) -> Option<&(u128, Timestamp)> {
    seen.get(usize::try_from(place.checked_sub(dropped)?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Span = Span(1_000);

    #[test]
    fn an_id_is_a_duplicate_until_the_window_has_passed() {
        let mut history = History::default();
        history.insert(7, Timestamp(100), WINDOW);
        for (now, duplicate) in [(100, true), (1_099, true), (1_100, false), (9_000, false)] {
            assert_eq!(history.contains(7, Timestamp(now), WINDOW), duplicate, "{now}");
        }
        assert!(!history.contains(8, Timestamp(100), WINDOW));
        // A longer window reaches back further, as far as anything is remembered.
        assert!(history.contains(7, Timestamp(1_100), Span(2_000)));
    }

    #[test]
    fn what_is_out_of_the_window_is_forgotten_as_new_ids_come() {
        let mut history = History::default();
        for number in 0..100 {
            history.insert(number, Timestamp(u64::try_from(number).unwrap()), WINDOW);
        }
        for number in 100..150 {
            history.insert(number, Timestamp(5_000), WINDOW);
        }
        assert_eq!(history.iter().count(), 50);
        assert!(history.iter().all(|(key, _)| key >= 100));
        assert!(history.is_full(50, Timestamp(5_500), WINDOW));
        assert!(!history.is_full(50, Timestamp(6_000), WINDOW), "the oldest has lapsed");
        assert!(!history.is_full(51, Timestamp(5_500), WINDOW));
    }

    #[test]
    fn an_id_that_comes_again_after_its_window_is_remembered_anew() {
        let mut history = History::default();
        for filler in 10..20 {
            history.insert(filler, Timestamp(0), WINDOW);
        }
        history.insert(1, Timestamp(0), WINDOW);
        history.insert(1, Timestamp(2_000), WINDOW);
        assert!(history.contains(1, Timestamp(2_500), WINDOW));
        for filler in 20..40 {
            history.insert(filler, Timestamp(2_600), WINDOW);
        }
        assert!(history.contains(1, Timestamp(2_700), WINDOW), "dropping its old place forgot it");
    }
}
