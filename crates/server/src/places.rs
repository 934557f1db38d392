//! How many connections there may be at a time, and how near that is.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::count::Counter;

/// Places for connections. Whoever finds none is turned away.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    max: usize,
    turned_away: Counter,
}

impl Places {
    /// So many places.
    #[must_use]
    pub fn new(max: usize) -> Places {
        let max = max.min(Semaphore::MAX_PERMITS);
        Places { free: Arc::new(Semaphore::new(max)), max, turned_away: Counter::default() }
    }

    /// A place, held until it is dropped; none if all are taken.
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.free).try_acquire_owned().ok();
        if place.is_none() {
            self.turned_away.add(1);
        }
        place
    }

    /// How many there are.
    #[must_use]
    pub fn max(&self) -> usize {
        self.max
    }

    /// How many are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.max.saturating_sub(self.free.available_permits())
    }

    /// How often somebody found none.
    #[must_use]
    pub fn turned_away(&self) -> u64 {
        self.turned_away.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_and_given_back_and_who_finds_none_is_counted() {
        let places = Places::new(2);
        let first = places.take();
        let second = places.take();
        assert!(first.is_some() && second.is_some() && places.take().is_none());
        assert_eq!((places.taken(), places.max(), places.turned_away()), (2, 2, 1));
        drop(first);
        assert_eq!(places.taken(), 1);
        assert!(places.take().is_some());
    }
}
