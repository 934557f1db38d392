//! How much the broker may send: a free slot is a credit, a busy pool listens for higher work only.

use std::cmp::Reverse;

use super::{Order, Precedence, Slots, TaskId};
use crate::moment::Moment;

impl Slots {
    /// How many messages of a queue may be on their way or ready, all links of that queue together.
    ///
    /// In strict order there is one link for the whole list, and `queue` does not matter: as many as slots are
    /// free, and the prefetch. By weight each queue has its own link, and its share of the slots waits here, so
    /// that there is something to choose from.
    pub fn credit(&self, queue: usize) -> usize {
        if self.capacity == 0 {
            return 0;
        }
        match &self.order {
            Order::Strict => {
                let free = self.capacity.saturating_sub(self.occupied);
                free.saturating_add(self.prefetch).saturating_sub(self.ready())
            }
            Order::Weighted(share) => {
                let window = share.of(self.capacity, queue).max(self.prefetch).max(1);
                window.saturating_sub(self.ready.get(queue).map_or(0, std::collections::BTreeSet::len))
            }
        }
    }

    /// Whether a message of at least `floor` could start now by setting another aside.
    ///
    /// Only then does the express link get its credit: else the message is better off with another worker.
    pub fn express(&self, now: Moment, floor: Precedence) -> bool {
        self.occupied >= self.capacity && self.ready() == 0 && self.victim(now, floor).is_some()
    }

    /// When [`Slots::express`] will turn true by time alone; none if it is true already or time does not help.
    pub fn express_at(&self, now: Moment, floor: Precedence) -> Option<Moment> {
        let guards = self.guards.as_ref()?;
        if self.set_aside.len() >= guards.set_aside_max || self.victim(now, floor).is_some() {
            return None;
        }
        let mut earliest: Option<Moment> = None;
        let mut next = self.victims.first().copied();
        while let Some((precedence, _, _)) = next.filter(|(precedence, _, _)| *precedence < floor) {
            // The last of each level has run longest.
            let end = (precedence, Reverse(Moment::START), TaskId(u64::MAX));
            if let Some((_, Reverse(since), _)) = self.victims.range(..=end).next_back() {
                let at = since.after(guards.run_min);
                earliest = Some(earliest.map_or(at, |known| known.min(at)));
            }
            next = self.victims.range(end..).find(|key| **key != end).copied();
        }
        earliest
    }
}
