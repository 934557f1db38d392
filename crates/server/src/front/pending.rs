//! Requests that wait for the broker's answer.
//!
//! Sends and settlements are many and are answered soon, about in order: a ring finds them by their
//! tag without a search, and runs of accepted sends stay runs. Everything else may wait long (a
//! session to become free) and is few: a map, under tags from the other half of the numbers, so that
//! a slow answer never holds the ring open.

use std::collections::{BTreeMap, VecDeque};

use vorrang_broker::api::Tag;

/// Tags of slow requests have this bit set, tags of quick ones do not.
const SLOW: u32 = 1 << 31;

/// Quick requests by tag.
#[derive(Debug)]
pub(super) struct Quick<T> {
    /// The tag of the front slot.
    first: u32,
    slots: VecDeque<Option<T>>,
}

impl<T> Quick<T> {
    pub(super) fn new() -> Self {
        Quick { first: 0, slots: VecDeque::new() }
    }

    /// Waits for an answer; the tag goes with the request.
    pub(super) fn push(&mut self, waiting: T) -> Tag {
        let place = u32::try_from(self.slots.len()).expect("the broker's inbox bounds what waits");
        self.slots.push_back(Some(waiting));
        Tag(self.first.wrapping_add(place) & !SLOW)
    }

    /// The tag that many requests later.
    pub(super) fn after(tag: Tag, steps: u32) -> Tag {
        Tag(tag.0.wrapping_add(steps) & !SLOW)
    }

    /// Whether a tag is of this kind.
    pub(super) fn owns(tag: Tag) -> bool {
        tag.0 & SLOW == 0
    }

    /// Takes what waited for this answer.
    pub(super) fn take(&mut self, tag: Tag) -> Option<T> {
        let place = usize::try_from(tag.0.wrapping_sub(self.first) & !SLOW).ok()?;
        let taken = self.slots.get_mut(place)?.take();
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first = self.first.wrapping_add(1) & !SLOW;
        }
        taken
    }

    /// How many slots are held, answered or not.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// Slow requests by tag.
#[derive(Debug)]
pub(super) struct Slow<T> {
    next: u32,
    waiting: BTreeMap<u32, T>,
}

impl<T> Slow<T> {
    pub(super) fn new() -> Self {
        Slow { next: 0, waiting: BTreeMap::new() }
    }

    /// Waits for an answer; the tag goes with the request.
    pub(super) fn push(&mut self, waiting: T) -> Tag {
        let tag = self.next | SLOW;
        self.next = self.next.wrapping_add(1) & !SLOW;
        self.waiting.insert(tag, waiting);
        Tag(tag)
    }

    /// Takes what waited for this answer.
    pub(super) fn take(&mut self, tag: Tag) -> Option<T> {
        self.waiting.remove(&tag.0)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_answers_find_their_request_in_any_order() {
        let mut quick = Quick::new();
        let tags: Vec<Tag> = (0..5).map(|number| quick.push(number)).collect();
        assert!(tags.iter().all(|tag| Quick::<u8>::owns(*tag)));
        assert_eq!(quick.take(tags[1]), Some(1));
        assert_eq!(quick.take(tags[1]), None, "an answer comes once");
        assert_eq!(quick.len(), 5);
        assert_eq!(quick.take(tags[0]), Some(0));
        assert_eq!(quick.len(), 3, "answered slots in front are given back");
        for tag in [3, 2, 4] {
            assert_eq!(quick.take(tags[tag]), Some(tag));
        }
        assert_eq!(quick.len(), 0);
        assert_eq!(quick.take(Tag(99)), None);
    }

    #[test]
    fn tags_go_round_without_meeting_the_slow_ones() {
        let mut quick = Quick { first: SLOW - 2, slots: VecDeque::new() };
        let tags: Vec<Tag> = (0..4).map(|number| quick.push(number)).collect();
        assert_eq!(tags, [Tag(SLOW - 2), Tag(SLOW - 1), Tag(0), Tag(1)]);
        for (number, tag) in tags.into_iter().enumerate() {
            assert_eq!(quick.take(tag), Some(number));
        }
        let mut slow = Slow::new();
        let tag = slow.push("session");
        assert!(!Quick::<u8>::owns(tag));
        assert_eq!((slow.take(tag), slow.take(tag)), (Some("session"), None));
    }
}
