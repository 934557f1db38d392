//! Deliveries of one session and direction that are not settled yet.
//!
//! Delivery ids only grow, so the set is a queue: new deliveries are appended, old ones leave from the front. Ids
//! without gaps are found by their distance from the front, others by binary search. A delivery settled in the
//! middle leaves a hole; holes are squeezed out when they outnumber what is left, so the memory follows the number
//! of unsettled deliveries and not the age of the oldest.

use std::collections::VecDeque;
use std::ops::Range;

use super::serial::Serial;

/// The index of a link in the connection's table; not a handle of either side.
pub(super) type LinkSlot = u32;

/// Holes that are tolerated whatever is left, so that small sets are never squeezed.
const HOLES_FREE: usize = 64;

/// One delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<Key> {
    pub(super) id: Serial,
    pub(super) link: LinkSlot,
    pub(super) progress: Progress,
    pub(super) key: Key,
}

/// How far the settlement of a delivery has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// No outcome yet.
    Open,
    /// One side has told its outcome and waits for the other to settle.
    Decided,
    /// Settled; only a hole in the queue.
    Hole,
}

/// A new delivery id that does not come after those already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutOfOrder;

/// The unsettled deliveries, ordered by id.
#[derive(Debug)]
pub(super) struct Unsettled<Key> {
    entries: VecDeque<Entry<Key>>,
    live: usize,
}

impl<Key: Copy> Unsettled<Key> {
    pub(super) fn new() -> Self {
        Self { entries: VecDeque::new(), live: 0 }
    }

    /// Number of unsettled deliveries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Adds a delivery, which must come after all others.
    ///
    /// It must also come after the oldest one: ids that jump could otherwise overtake it around the circle, and
    /// neither search nor order would mean anything any more.
    #[inline]
    pub(super) fn push(&mut self, id: Serial, link: LinkSlot, key: Key) -> Result<(), OutOfOrder> {
        if let (Some(front), Some(back)) = (self.entries.front(), self.entries.back())
            && !(id.is_after(back.id) && id.is_after(front.id))
        {
            return Err(OutOfOrder);
        }
        self.entries.push_back(Entry { id, link, progress: Progress::Open, key });
        self.live = self.live.saturating_add(1);
        Ok(())
    }

    /// The delivery with this id, if it is unsettled.
    #[inline]
    pub(super) fn get_mut(&mut self, id: Serial) -> Option<&mut Entry<Key>> {
        let index = self.position(id)?;
        self.entries.get_mut(index).filter(|entry| entry.progress != Progress::Hole)
    }

    /// Settles a delivery of a link; `false` if there is no such one.
    #[inline]
    pub(super) fn settle(&mut self, id: Serial, link: LinkSlot) -> bool {
        match self.get_mut(id) {
            Some(entry) if entry.link == link => entry.progress = Progress::Hole,
            _ => return false,
        }
        self.live = self.live.saturating_sub(1);
        self.tidy();
        true
    }

    /// Indices of the deliveries from `first` to `last`, for [`Unsettled::at_mut`]. Never longer than the set,
    /// whatever the range claims.
    #[inline]
    pub(super) fn indices(&self, first: Serial, last: Serial) -> Range<usize> {
        let Some(front) = self.entries.front() else { return 0..0 };
        if first.is_after(last) {
            return 0..0;
        }
        // A range may begin long before the oldest delivery; ids behind the front count as the front.
        let from = if front.id.is_after(first) { 0 } else { first.since(front.id) };
        if front.id.is_after(last) {
            return 0..0;
        }
        let to = last.since(front.id);
        self.lower_bound(from)..self.upper_bound(to)
    }

    /// The entry at an index out of [`Unsettled::indices`]; holes are skipped.
    #[inline]
    pub(super) fn at_mut(&mut self, index: usize) -> Option<&mut Entry<Key>> {
        self.entries.get_mut(index).filter(|entry| entry.progress != Progress::Hole)
    }

    /// Turns the entry at an index into a hole. Indices stay valid until [`Unsettled::tidy`].
    #[inline]
    pub(super) fn hole_at(&mut self, index: usize) {
        if let Some(entry) = self.at_mut(index) {
            entry.progress = Progress::Hole;
            self.live = self.live.saturating_sub(1);
        }
    }

    /// Forgets the deliveries of a link that is gone.
    pub(super) fn forget_link(&mut self, link: LinkSlot) {
        self.entries.retain(|entry| entry.link != link && entry.progress != Progress::Hole);
        self.live = self.entries.len();
    }

    /// Forgets the deliveries of a link that is going, but for those whose outcome was told and not answered.
    /// Returns how many these are.
    pub(super) fn keep_decided(&mut self, link: LinkSlot) -> usize {
        let mut kept = 0;
        self.entries.retain(|entry| {
            let of_link = entry.link == link;
            let decided = entry.progress == Progress::Decided;
            kept += usize::from(of_link && decided);
            entry.progress != Progress::Hole && (!of_link || decided)
        });
        self.live = self.entries.len();
        kept
    }

    /// Drops holes from the front, and squeezes the others out once they are the majority.
    #[inline]
    pub(super) fn tidy(&mut self) {
        while let Some(entry) = self.entries.front() {
            if entry.progress != Progress::Hole {
                break;
            }
            self.entries.pop_front();
        }
        let holes = self.entries.len().saturating_sub(self.live);
        if holes > self.live.saturating_add(HOLES_FREE) {
            self.entries.retain(|entry| entry.progress != Progress::Hole);
        }
    }

    #[inline]
    fn position(&self, id: Serial) -> Option<usize> {
        let front = self.entries.front()?.id;
        let distance = id.since(front);
        if let Some(index) = self.guess(front, distance) {
            return Some(index);
        }
        let index = self.entries.partition_point(|entry| entry.id.since(front) < distance);
        self.entries.get(index).is_some_and(|entry| entry.id == id).then_some(index)
    }

    /// The index of the first entry at least `distance` from the front.
    #[inline]
    fn lower_bound(&self, distance: u32) -> usize {
        let Some(front) = self.entries.front().map(|entry| entry.id) else { return 0 };
        if let Some(exact) = self.guess(front, distance) {
            return exact;
        }
        self.entries.partition_point(|entry| entry.id.since(front) < distance)
    }

    /// The index behind the last entry at most `distance` from the front.
    #[inline]
    fn upper_bound(&self, distance: u32) -> usize {
        let Some(front) = self.entries.front().map(|entry| entry.id) else { return 0 };
        if let Some(exact) = self.guess(front, distance) {
            return exact.saturating_add(1);
        }
        self.entries.partition_point(|entry| entry.id.since(front) <= distance)
    }

    /// The index of the entry at `distance`, if no id is missing before it.
    #[inline]
    fn guess(&self, front: Serial, distance: u32) -> Option<usize> {
        let index = usize::try_from(distance).ok()?;
        let entry = self.entries.get(index)?;
        (entry.id.since(front) == distance).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn ids(unsettled: &mut Unsettled<u64>, first: u32, last: u32) -> Vec<u32> {
        let range = unsettled.indices(Serial::new(first), Serial::new(last));
        range.filter_map(|index| unsettled.at_mut(index).map(|entry| entry.id.get())).collect()
    }

    #[test]
    fn a_range_is_clamped_to_what_is_there() {
        let mut unsettled = Unsettled::new();
        for id in [10, 11, 12, 20] {
            unsettled.push(Serial::new(id), 0, u64::from(id)).unwrap();
        }
        let cases = [
            ("exact", 10, 12, vec![10, 11, 12]),
            ("wider on both sides", 5, 40, vec![10, 11, 12, 20]),
            ("half the circle", 0, 0x7fff_ffff, vec![10, 11, 12, 20]),
            ("inside a gap", 13, 19, vec![]),
            ("behind", 1, 9, vec![]),
            ("ahead", 21, 30, vec![]),
            ("last before first", 12, 10, vec![]),
            ("one", 20, 20, vec![20]),
        ];
        for (case, first, last, expected) in cases {
            assert_eq!(ids(&mut unsettled, first, last), expected, "{case}");
        }
    }

    #[test]
    fn one_old_delivery_does_not_keep_the_memory_of_all_that_followed() {
        let mut unsettled = Unsettled::new();
        unsettled.push(Serial::new(0), 0, 0u64).unwrap();
        for id in 1..100_000 {
            unsettled.push(Serial::new(id), 0, 0).unwrap();
            assert!(unsettled.settle(Serial::new(id), 0));
            assert!(unsettled.entries.len() < 200);
        }
        assert!(!unsettled.settle(Serial::new(0), 1), "another link's");
        assert!(unsettled.settle(Serial::new(0), 0));
        assert_eq!(unsettled.entries.len(), 0);
    }

    #[test]
    fn ids_must_grow_and_may_not_overtake_the_oldest() {
        let mut unsettled = Unsettled::new();
        unsettled.push(Serial::new(0), 0, 0u64).unwrap();
        assert_eq!(unsettled.push(Serial::new(0), 0, 0), Err(OutOfOrder), "same id");
        unsettled.push(Serial::new(0x7fff_ffff), 0, 0).unwrap();
        assert_eq!(unsettled.push(Serial::new(0xffff_fff0), 0, 0), Err(OutOfOrder), "round the circle");
    }

    proptest! {
        #[test]
        fn the_set_agrees_with_a_map(
            start in any::<u32>(),
            steps in prop::collection::vec((0u8..3, 0u32..20, 0u32..4), 1..200),
        ) {
            let start = Serial::new(start);
            let mut unsettled = Unsettled::new();
            let mut model: BTreeMap<u32, u32> = BTreeMap::new();
            let mut next = 0u32;
            for (kind, number, link) in steps {
                match kind {
                    0 => {
                        next += 1 + number / 15;
                        unsettled.push(start.advanced(next), link, u64::from(next)).unwrap();
                        model.insert(next, link);
                    }
                    1 => {
                        let id = next.saturating_sub(number);
                        let settled = unsettled.settle(start.advanced(id), link);
                        prop_assert_eq!(settled, model.get(&id) == Some(&link));
                        if settled {
                            model.remove(&id);
                        }
                    }
                    _ => {
                        unsettled.forget_link(link);
                        model.retain(|_, of| *of != link);
                    }
                }
                prop_assert_eq!(unsettled.len(), model.len());
                let from = next.saturating_sub(number);
                let range = unsettled.indices(start.advanced(from), start.advanced(next));
                let seen: Vec<u64> = range.filter_map(|index| unsettled.at_mut(index).map(|entry| entry.key)).collect();
                let expected: Vec<u64> = model.range(from..).map(|(id, _)| u64::from(*id)).collect();
                prop_assert_eq!(seen, expected);
            }
        }
    }
}
