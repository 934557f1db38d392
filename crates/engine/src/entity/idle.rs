//! When entities were last used, and which are due to delete themselves.
//!
//! The time of use is kept to the second: a busy entity moves its timer once a second at most, so noting a
//! use costs one look-up per message. An entity is therefore deleted up to a second late, never early.

use crate::id::EntityId;
use crate::time::{Span, Timestamp};
use std::collections::BTreeSet;

/// How finely uses are noted.
const GRAIN: Span = Span::seconds(1);

#[derive(Debug, Clone, Copy)]
struct Use {
    accessed: Timestamp,
    /// The idle time after which the entity goes.
    after: Span,
}

impl Use {
    /// When the entity is due; never before `after` since the true last use, which may lie up to
    /// [`GRAIN`] behind `accessed`.
    fn due(self) -> Option<Timestamp> {
        (!self.after.is_forever()).then(|| self.accessed.after(self.after).after(GRAIN))
    }
}

/// The times of use of all entities.
#[derive(Debug, Clone, Default)]
pub struct Idle {
    uses: hashbrown::HashMap<EntityId, Use, foldhash::fast::FixedState>,
    /// Whose use was noted last, and until when another one of it says nothing new.
    noted: Option<(EntityId, Timestamp)>,
    timers: BTreeSet<(Timestamp, EntityId)>,
}

impl Idle {
    /// When an entity was last used, to the second.
    #[must_use]
    pub fn accessed(&self, id: EntityId) -> Option<Timestamp> {
        self.uses.get(&id).map(|found| found.accessed)
    }

    /// When the next entity is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Entities whose time is up, the longest overdue first. Whether one is in use all the same, by a
    /// waiting receiver or a scheduled message, its caller must see, and note as a use.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = EntityId> {
        self.timers.iter().take_while(move |(due, _)| *due <= now).map(|(_, id)| *id)
    }

    /// Begins to watch an entity, or watches it by another idle time; either is a use.
    pub(super) fn watch(&mut self, id: EntityId, now: Timestamp, after: Span) {
        self.set(id, Use { accessed: now, after });
    }

    /// Notes a use.
    pub(super) fn touch(&mut self, id: EntityId, now: Timestamp) {
        if self.noted.is_some_and(|(noted, until)| noted == id && now < until) {
            return;
        }
        let Some(&found) = self.uses.get(&id) else { return };
        let mut until = found.accessed.after(GRAIN);
        if now >= until {
            self.set(id, Use { accessed: now, ..found });
            until = now.after(GRAIN);
        }
        self.noted = Some((id, until));
    }

    /// The entity is gone.
    pub(super) fn forget(&mut self, id: EntityId) {
        self.noted = None;
        if let Some(due) = self.uses.remove(&id).and_then(Use::due) {
            self.timers.remove(&(due, id));
        }
    }

    fn set(&mut self, id: EntityId, new: Use) {
        self.noted = None;
        if let Some(due) = self.uses.insert(id, new).and_then(Use::due) {
            self.timers.remove(&(due, id));
        }
        if let Some(due) = new.due() {
            self.timers.insert((due, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: EntityId = EntityId(1);
    const B: EntityId = EntityId(2);

    fn due(idle: &Idle, now: u64) -> Vec<EntityId> {
        idle.due(Timestamp(now)).collect()
    }

    #[test]
    fn an_entity_is_due_after_its_idle_time_and_never_early() {
        let mut idle = Idle::default();
        idle.watch(A, Timestamp(0), Span(10_000));
        idle.watch(B, Timestamp(0), Span::FOREVER);
        assert_eq!(idle.next_due(), Some(Timestamp(11_000)));
        for (now, expected) in [(10_000, vec![]), (10_999, vec![]), (11_000, vec![A])] {
            assert_eq!(due(&idle, now), expected, "{now}");
        }
        // Uses within a second of the noted one are not noted, but the wait covers them.
        idle.touch(A, Timestamp(999));
        assert_eq!(idle.accessed(A), Some(Timestamp(0)));
        assert!(idle.next_due().unwrap() >= Timestamp(999 + 10_000));
        idle.touch(A, Timestamp(1_000));
        assert_eq!(idle.accessed(A), Some(Timestamp(1_000)));
        assert_eq!(idle.next_due(), Some(Timestamp(12_000)));
    }

    #[test]
    fn each_use_is_held_against_what_is_known_of_its_own_entity() {
        let mut idle = Idle::default();
        idle.watch(A, Timestamp(0), Span(10_000));
        idle.watch(B, Timestamp(0), Span(10_000));
        for (id, now, accessed) in
            [(A, 2_000, 2_000), (B, 2_500, 2_500), (A, 2_999, 2_000), (A, 3_000, 3_000)]
        {
            idle.touch(id, Timestamp(now));
            assert_eq!(idle.accessed(id), Some(Timestamp(accessed)), "{id:?} at {now}");
        }
        // Whoever is watched anew begins anew.
        idle.watch(A, Timestamp(100), Span(10_000));
        idle.touch(A, Timestamp(1_100));
        assert_eq!(idle.accessed(A), Some(Timestamp(1_100)));
    }

    #[test]
    fn a_forgotten_entity_leaves_nothing_behind() {
        let mut idle = Idle::default();
        idle.watch(A, Timestamp(0), Span(10_000));
        idle.touch(A, Timestamp(5_000));
        idle.touch(B, Timestamp(5_000));
        idle.forget(A);
        idle.forget(B);
        assert_eq!(idle.next_due(), None);
        assert_eq!(idle.accessed(A), None);
        assert_eq!(idle.accessed(B), None);
    }

    #[test]
    fn another_idle_time_replaces_the_timer() {
        let mut idle = Idle::default();
        idle.watch(A, Timestamp(0), Span(10_000));
        idle.watch(A, Timestamp(1), Span::FOREVER);
        assert_eq!(idle.next_due(), None);
        idle.watch(A, Timestamp(2), Span(20_000));
        assert_eq!(idle.next_due(), Some(Timestamp(21_002)));
    }
}
