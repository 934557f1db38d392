//! Payloads of messages that just came in, so that a message which is received at once is never read
//! back from the disk.
//!
//! The bytes are those the sender's connection took off the wire; keeping one keeps the buffer it is a
//! slice of. So the payload of a message that is gone is let go at once: the buffer is read into again while the
//! processor's cache still has it. Locations only grow, so the newest are at the back. A look-up begins beside the one
//! before: messages are asked for in nearly the order they came in, and a search from the middle would miss the
//! processor's cache at every step.

use bytes::Bytes;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::VecDeque;
use vorrang_engine::Location;

/// Payload bytes kept, by their [charge](charge); older ones make room. The oldest messages are delivered first, so a
/// backlog that does not fit in here is read back from the disk, message by message.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Payloads kept; older ones make room.
const COUNT_MAX: usize = 64 * 1024;
/// Payload bytes kept while nobody asks for any: a backlog grows, and what comes in is not what goes out.
const UNASKED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// So many come in without one being asked for before that is so.
const UNASKED_MAX: u32 = 4_096;
/// What counts as small. Reading a message back costs about the same whatever its size, up to a seventh of all that is
/// spent on one of a kilobyte: so small ones are worth more memory than large ones.
const SMALL_BYTES: usize = 2 * 1024;

/// What a payload counts for: a small one its size, a large one four times that.
fn charge(body: &Body) -> usize {
    let bytes = body.bytes.len();
    if bytes > SMALL_BYTES { bytes.saturating_mul(4) } else { bytes }
}

/// A message's stored bytes, and the id it was given if it came without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The bytes as they were sent.
    pub bytes: Bytes,
    /// The assigned message id.
    pub assigned_id: Option<u128>,
}

/// Whose payload it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owners {
    /// One message's.
    One,
    /// Perhaps that of several, each of which may be asked for.
    Several,
}

#[derive(Debug)]
struct Kept {
    location: Location,
    owners: Owners,
    /// None if its message is gone; the first always has one.
    body: Option<Body>,
}

/// The newest payloads.
#[derive(Debug, Default)]
pub(super) struct Recent {
    kept: VecDeque<Kept>,
    bytes: usize,
    /// How many made room or went with their message.
    gone: u64,
    /// The one behind that found last, counted from the first ever kept.
    next: Cell<u64>,
    /// The one behind that which went last, counted likewise.
    next_to_go: u64,
    /// How many came in since one was asked for that is here, or would be if more were kept.
    unasked: Cell<u32>,
}

impl Recent {
    pub(super) fn keep(&mut self, location: Location, owners: Owners, body: Body) {
        self.bytes = self.bytes.saturating_add(charge(&body));
        self.kept.push_back(Kept { location, owners, body: Some(body) });
        self.unasked.set(self.unasked.get().saturating_add(1));
        let bytes_max = if self.unasked.get() > UNASKED_MAX { UNASKED_BYTES_MAX } else { BYTES_MAX };
        while self.bytes > bytes_max || self.kept.len() > COUNT_MAX {
            self.pop();
        }
    }

    /// A message is gone: nobody asks for its payload again, if it had one of its own.
    pub(super) fn forget(&mut self, location: Location) {
        let Some(index) = self.search(location, self.next_to_go) else { return };
        self.next_to_go = self.behind(index);
        let Some(kept) = self.kept.get_mut(index).filter(|kept| kept.owners == Owners::One) else { return };
        if let Some(body) = kept.body.take() {
            self.bytes = self.bytes.saturating_sub(charge(&body));
        }
        if index == 0 {
            self.pop();
        }
    }

    /// A message has become several with one payload.
    pub(super) fn share(&mut self, location: Location) {
        if let Some(index) = self.search(location, self.next_to_go)
            && let Some(kept) = self.kept.get_mut(index)
        {
            kept.owners = Owners::Several;
        }
    }

    /// Gives up the oldest, and those behind it that are gone already.
    fn pop(&mut self) {
        while let Some(oldest) = self.kept.pop_front() {
            self.gone = self.gone.wrapping_add(1);
            self.bytes = self.bytes.saturating_sub(oldest.body.as_ref().map_or(0, charge));
            if self.kept.front().is_none_or(|next| next.body.is_some()) {
                break;
            }
        }
    }

    /// Bytes kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps none of them any longer.
    pub(super) fn clear(&mut self) {
        self.gone = self.gone.wrapping_add(u64::try_from(self.kept.len()).unwrap_or(u64::MAX));
        self.kept = VecDeque::new();
        self.bytes = 0;
    }

    pub(super) fn find(&self, location: Location) -> Option<&Body> {
        // What lies in the newest segment, or in the one before, is not far back; an extent's number is beyond them all.
        let newest = self.kept.back().map_or(0, |kept| kept.location.region().0);
        if newest.checked_sub(location.region().0).is_some_and(|back| back <= 1) {
            self.unasked.set(0);
        }
        let index = self.search(location, self.next.get())?;
        self.next.set(self.behind(index));
        self.kept.get(index)?.body.as_ref()
    }

    /// What comes behind an index, counted from the first ever kept.
    fn behind(&self, index: usize) -> u64 {
        self.gone.wrapping_add(u64::try_from(index).unwrap_or(u64::MAX)).wrapping_add(1)
    }

    /// The index of a location: steps away from the guess that double, then halves of the last of them. The guess is
    /// counted from the first ever kept.
    fn search(&self, location: Location, guess: u64) -> Option<usize> {
        let guess = usize::try_from(guess.saturating_sub(self.gone)).unwrap_or(usize::MAX);
        let guess = guess.min(self.kept.len().saturating_sub(1));
        let at = |index: usize| self.kept.get(index).map(|kept| kept.location);
        let (mut low, mut high) = match at(guess)?.cmp(&location) {
            Ordering::Equal => return Some(guess),
            Ordering::Less => {
                let (mut low, mut step) = (guess, 1_usize);
                while at(low.saturating_add(step)).is_some_and(|there| there <= location) {
                    low = low.saturating_add(step);
                    step = step.saturating_mul(2);
                }
                (low, low.saturating_add(step).min(self.kept.len()))
            }
            Ordering::Greater => {
                let (mut high, mut step) = (guess, 1_usize);
                while high > 0 && at(high.saturating_sub(step)).is_some_and(|there| there > location) {
                    high = high.saturating_sub(step);
                    step = step.saturating_mul(2);
                }
                (high.saturating_sub(step), high)
            }
        };
        // Whatever is at `high` is greater; what is looked for is at `low` or between.
        while low < high {
            let middle = low.midpoint(high);
            match at(middle)?.cmp(&location) {
                Ordering::Equal => return Some(middle),
                Ordering::Less => low = middle.saturating_add(1),
                Ordering::Greater => high = middle,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_look_up_finds_what_a_search_from_the_middle_finds_wherever_it_begins(
            steps in prop::collection::vec(1_u64..4, 0..300),
            sought in prop::collection::vec(0_u64..700, 1..60),
            gone in 0_u64..5,
        ) {
            let mut recent = Recent { gone, ..Recent::default() };
            let mut place = 0;
            for step in steps {
                place += step;
                recent.keep(Location(place), Owners::One, body(0));
            }
            for location in sought.into_iter().map(Location) {
                let found = recent.find(location).is_some();
                let expected = recent.kept.binary_search_by_key(&location, |kept| kept.location);
                prop_assert_eq!(found, expected.is_ok());
                if let Ok(index) = expected {
                    prop_assert_eq!(recent.next.get(), gone + u64::try_from(index).unwrap() + 1);
                }
            }
        }
    }

    fn body(bytes: usize) -> Body {
        Body { bytes: Bytes::from(vec![7; bytes]), assigned_id: None }
    }

    #[test]
    fn while_nobody_asks_for_what_is_near_little_is_kept() {
        let segment = |number: u64, offset: u64| Location(number << 32 | offset);
        let mut recent = Recent::default();
        for place in 0..10_000 {
            recent.keep(segment(7, place), Owners::One, body(1_024));
        }
        assert_eq!(recent.kept.len(), UNASKED_BYTES_MAX / 1_024);
        assert_eq!(recent.find(segment(5, 1)), None);
        recent.keep(segment(7, 10_000), Owners::One, body(1_024));
        assert_eq!(recent.kept.len(), UNASKED_BYTES_MAX / 1_024, "that one was far back");
        // One that would be here if more were kept.
        assert_eq!(recent.find(segment(6, 1)), None);
        for place in 10_001..14_000 {
            recent.keep(segment(7, place), Owners::One, body(1_024));
        }
        assert_eq!(recent.kept.len(), UNASKED_BYTES_MAX / 1_024 + 3_999);
    }

    proptest! {
        #[test]
        fn what_is_gone_is_not_found_nor_counted_and_the_others_are(
            count in 1_u64..200,
            shared in 0_u64..5,
            gone in prop::collection::vec(0_u64..200, 0..200),
        ) {
            let mut recent = Recent::default();
            let owners = |place: u64| if place % 5 < shared { Owners::Several } else { Owners::One };
            for place in 0..count {
                recent.keep(Location(place), Owners::One, body(10));
            }
            for place in (0..count).filter(|place| owners(*place) == Owners::Several) {
                recent.share(Location(place));
            }
            for place in &gone {
                recent.forget(Location(*place));
            }
            let stays = |place: &u64| owners(*place) == Owners::Several || !gone.contains(place);
            for place in 0..count {
                prop_assert_eq!(recent.find(Location(place)).is_some(), stays(&place), "{}", place);
            }
            prop_assert_eq!(recent.bytes, 10 * (0..count).filter(stays).count());
            prop_assert!(recent.kept.front().is_none_or(|first| first.body.is_some()));
            prop_assert_eq!(recent.gone + u64::try_from(recent.kept.len()).unwrap(), count);
        }
    }

    #[test]
    fn what_comes_after_all_was_given_up_is_found_as_before() {
        let mut recent = Recent::default();
        for place in 0..100 {
            recent.keep(Location(place), Owners::One, body(10));
        }
        assert!(recent.find(Location(60)).is_some());
        recent.clear();
        assert_eq!((recent.find(Location(99)), recent.bytes()), (None, 0));
        for place in 100..200 {
            recent.keep(Location(place), Owners::One, body(10));
        }
        assert!((100..200).all(|place| recent.find(Location(place)).is_some()));
        assert_eq!(recent.find(Location(99)), None);
    }

    #[test]
    fn the_newest_are_found_and_the_oldest_make_room() {
        let mut recent = Recent::default();
        for place in 0..100_u64 {
            recent.keep(Location(place * 10), Owners::One, body(1_000_000));
        }
        assert_eq!(recent.find(Location(990)), Some(&body(1_000_000)));
        assert_eq!(recent.find(Location(995)), None);
        assert_eq!(recent.find(Location(0)), None);
        assert!(recent.bytes <= BYTES_MAX);
        assert_eq!(recent.kept.len(), BYTES_MAX / 4_000_000);
        let mut small = Recent::default();
        for place in 0..40_000_u64 {
            small.keep(Location(place), Owners::One, body(1_100));
            assert!(small.find(Location(place)).is_some());
        }
        assert!(small.find(Location(0)).is_some(), "a backlog of 44 MB of small messages is at hand");
        let mut many = Recent::default();
        for place in 0..=u64::try_from(COUNT_MAX).unwrap() {
            many.keep(Location(place), Owners::One, body(0));
        }
        // They weigh nothing, so that it does not matter whether anybody asks.
        assert_eq!(many.find(Location(0)), None);
        assert!(many.find(Location(1)).is_some());
    }
}
