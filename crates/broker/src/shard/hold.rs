//! Events that wait until what they promise is durable.

use super::peer::PeerId;
use crate::api::Event;
use std::collections::VecDeque;
use vorrang_log::Position;

/// Events by the commit they wait for, in the order they were decided.
#[derive(Debug, Default)]
pub(super) struct Hold {
    waiting: VecDeque<(Position, Vec<(PeerId, Event)>)>,
    /// Buffers to use again.
    spare: Vec<Vec<(PeerId, Event)>>,
    count: usize,
}

impl Hold {
    /// Keeps an event until `position` is durable.
    pub(super) fn keep(&mut self, position: Position, peer: PeerId, event: Event) {
        self.count = self.count.saturating_add(1);
        // Nearly always the newest commit; an older one when a message is still on its way to the disk.
        let mut index = self.waiting.len();
        while let Some(before) = index.checked_sub(1)
            && self.waiting.get(before).is_some_and(|(known, _)| *known > position)
        {
            index = before;
        }
        if let Some(before) = index.checked_sub(1)
            && let Some((known, events)) = self.waiting.get_mut(before)
            && *known == position
        {
            events.push((peer, event));
            return;
        }
        let mut events = self.spare.pop().unwrap_or_default();
        events.push((peer, event));
        self.waiting.insert(index, (position, events));
    }

    /// Hands out every event that waits for nothing beyond `durable`.
    pub(super) fn release(&mut self, durable: Position, mut tell: impl FnMut(PeerId, Event)) {
        while self.waiting.front().is_some_and(|(position, _)| *position <= durable) {
            let Some((_, mut events)) = self.waiting.pop_front() else { break };
            self.count = self.count.saturating_sub(events.len());
            for (peer, event) in events.drain(..) {
                tell(peer, event);
            }
            self.spare.push(events);
        }
    }

    /// How many events wait.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Forgets everything: none of it will ever be durable.
    pub(super) fn clear(&mut self) {
        *self = Hold::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Link;

    fn drained(number: u32) -> Event {
        Event::Drained { link: Link(number) }
    }

    #[test]
    fn events_leave_when_their_commit_is_durable_and_in_order() {
        let mut hold = Hold::default();
        for (position, number) in [(3, 1), (5, 2), (3, 3), (4, 4), (5, 5)] {
            hold.keep(Position(position), PeerId(7), drained(number));
        }
        let mut told = Vec::new();
        let mut release = |hold: &mut Hold, durable| {
            told.clear();
            hold.release(Position(durable), |_, event| match event {
                Event::Drained { link } => told.push(link.0),
                other => panic!("{other:?} was never kept"),
            });
            told.clone()
        };
        assert_eq!(release(&mut hold, 2), [0_u32; 0]);
        assert_eq!(release(&mut hold, 4), [1, 3, 4]);
        assert_eq!(hold.len(), 2);
        assert_eq!(release(&mut hold, 9), [2, 5]);
        assert_eq!(hold.len(), 0);
    }
}
