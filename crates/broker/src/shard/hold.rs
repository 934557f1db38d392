//! Events that wait until what they promise is durable.
//!
//! What a connection is to be told lies from the beginning in the buffers in which it will be told, one for each commit
//! that is waited for: an event is some hundred bytes, and is not moved again when its commit is there. The shard knows
//! who waits for which commit.

use super::core::Peers;
use super::peer::{Peer, PeerId};
use super::spares::Spares;
use crate::api::{Event, Tag};
use std::collections::VecDeque;
use std::sync::Arc;
use vorrang_log::Position;

/// Lists of connections that are kept to be used again.
const SPARE_LISTS_MAX: usize = 16;

/// Who is to be told something, and when.
#[derive(Debug)]
pub(super) struct Hold {
    durable: Position,
    /// By the commit they wait for. A connection that was told early is in vain in a list, which does no harm.
    waiting: VecDeque<(Position, Vec<PeerId>)>,
    /// How many events wait.
    count: usize,
    /// Connections with something to be told now.
    told: Vec<PeerId>,
    lists: Vec<Vec<PeerId>>,
    buffers: Arc<Spares<Event>>,
}

impl Hold {
    pub(super) fn new(durable: Position) -> Hold {
        let buffers = Arc::default();
        Hold { durable, waiting: VecDeque::new(), count: 0, told: Vec::new(), lists: Vec::new(), buffers }
    }

    /// The buffers that events are told in, to be given back.
    pub(super) fn buffers(&self) -> &Arc<Spares<Event>> {
        &self.buffers
    }

    /// Tells an event once `position` is durable, and now if there is nothing to wait for.
    #[inline]
    pub(super) fn tell(&mut self, peer: &mut Peer, position: Option<Position>, event: Event) {
        match position {
            Some(position) if position > self.durable => {
                let (waiting, begins) = peer.held.at(position, &self.buffers);
                if add(waiting, event) {
                    self.count = self.count.saturating_add(1);
                }
                if begins {
                    self.note(position, peer.id);
                }
            }
            _ => {
                if peer.outbox.is_empty() {
                    self.told.push(peer.id);
                    peer.outbox = self.buffers.take();
                }
                add(&mut peer.outbox, event);
            }
        }
    }

    /// Tells that a send was accepted, as an event would: most of them only make a run of others longer.
    #[inline]
    pub(super) fn tell_accepted(&mut self, peer: &mut Peer, position: Option<Position>, tag: Tag) {
        if let Some(events) = self.newest_with(peer, position)
            && lengthen(events, tag, 1)
        {
            return;
        }
        self.tell(peer, position, Event::Accepted { first: tag, count: 1 });
    }

    /// What a connection is told together with what waits for `position`, if there is anything yet.
    #[inline]
    fn newest_with<'a>(&self, peer: &'a mut Peer, position: Option<Position>) -> Option<&'a mut Vec<Event>> {
        match position {
            Some(position) if position > self.durable => peer.held.known(position),
            _ => Some(&mut peer.outbox),
        }
    }

    /// Everything up to `durable` is safe: what waited for it can be told.
    pub(super) fn release(&mut self, durable: Position, peers: &mut Peers) {
        self.durable = durable;
        while let Some((_, mut ids)) = self.waiting.pop_front_if(|(position, _)| *position <= durable) {
            for id in ids.drain(..) {
                let Some(peer) = peers.get_mut(&id) else { continue };
                while let Some(mut events) = peer.held.next(durable) {
                    self.count = self.count.saturating_sub(events.len());
                    if peer.outbox.is_empty() {
                        self.told.push(id);
                        peer.outbox = events;
                    } else {
                        append(&mut peer.outbox, &mut events);
                        self.buffers.give(events);
                    }
                }
            }
            if self.lists.len() < SPARE_LISTS_MAX {
                self.lists.push(ids);
            }
        }
    }

    /// Tells everything that can be told now.
    pub(super) fn tell_all(&mut self, peers: &mut Peers) {
        for id in self.told.drain(..) {
            if let Some(peer) = peers.get_mut(&id) {
                peer.flush();
            }
        }
    }

    /// How far everything is safe.
    pub(super) fn durable(&self) -> Position {
        self.durable
    }

    /// How many events wait.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Gives up the buffers that are kept to be used again.
    pub(super) fn drop_spare(&mut self) {
        self.lists = Vec::new();
        self.buffers.clear();
    }

    /// A connection is gone, and what it waited for with it.
    pub(super) fn forget(&mut self, peer: &Peer) {
        self.count = self.count.saturating_sub(peer.held.len());
    }

    /// Forgets everything that waits: none of it will ever be durable.
    pub(super) fn clear(&mut self, peers: &mut Peers) {
        self.waiting.clear();
        self.count = 0;
        for peer in peers.values_mut() {
            peer.held = Held::default();
        }
    }

    /// Notes that a connection waits for a commit.
    fn note(&mut self, position: Position, id: PeerId) {
        let index = place(&self.waiting, position);
        if let Some((known, ids)) = index.checked_sub(1).and_then(|before| self.waiting.get_mut(before))
            && *known == position
        {
            ids.push(id);
            return;
        }
        let mut ids = self.lists.pop().unwrap_or_default();
        ids.push(id);
        self.waiting.insert(index, (position, ids));
    }
}

/// What one connection waits to be told, by the commit it waits for, in the order it was decided.
#[derive(Debug, Default)]
pub(super) struct Held(VecDeque<(Position, Vec<Event>)>);

impl Held {
    /// What waits for this commit, if anything does and nothing waits for a later one.
    #[inline]
    fn known(&mut self, position: Position) -> Option<&mut Vec<Event>> {
        self.0.back_mut().filter(|(known, _)| *known == position).map(|(_, events)| events)
    }

    /// What waits for this commit, and whether it is the first that does.
    fn at(&mut self, position: Position, buffers: &Spares<Event>) -> (&mut Vec<Event>, bool) {
        let index = place(&self.0, position);
        let known = index
            .checked_sub(1)
            .filter(|before| self.0.get(*before).is_some_and(|(known, _)| *known == position));
        if known.is_none() {
            self.0.insert(index, (position, buffers.take()));
        }
        let (_, events) = self.0.get_mut(known.unwrap_or(index)).expect("it was just found or put there");
        (events, known.is_none())
    }

    /// The next that waits for nothing beyond `durable`.
    fn next(&mut self, durable: Position) -> Option<Vec<Event>> {
        self.0.pop_front_if(|(position, _)| *position <= durable).map(|(_, events)| events)
    }

    fn len(&self) -> usize {
        self.0.iter().map(|(_, events)| events.len()).sum()
    }
}

/// Where in a row of commits one belongs that is not there: behind all that are not later. Nearly always that is the
/// end, and not when a message is still on its way to the disk.
fn place<T>(row: &VecDeque<(Position, T)>, position: Position) -> usize {
    let mut index = row.len();
    while let Some(before) = index.checked_sub(1)
        && row.get(before).is_some_and(|(known, _)| *known > position)
    {
        index = before;
    }
    index
}

/// Adds an event. False if it became one with the last: neighbouring accepted sends do.
#[inline]
fn add(events: &mut Vec<Event>, event: Event) -> bool {
    if join(events, &event) {
        return false;
    }
    events.push(event);
    true
}

/// The same with many.
fn append(events: &mut Vec<Event>, more: &mut Vec<Event>) {
    let joined = more.first().is_some_and(|first| join(events, first));
    events.extend(more.drain(..).skip(usize::from(joined)));
}

fn join(events: &mut [Event], event: &Event) -> bool {
    if let Event::Accepted { first, count } = event { lengthen(events, *first, *count) } else { false }
}

/// Adds accepted sends to a run that they follow, if the newest event is one.
#[inline]
fn lengthen(events: &mut [Event], first: Tag, count: u32) -> bool {
    if let Some(Event::Accepted { first: run, count: length }) = events.last_mut()
        && run.0.checked_add(*length) == Some(first.0)
        && let Some(longer) = length.checked_add(count)
    {
        *length = longer;
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Link, Outlet};
    use std::sync::Mutex;

    #[derive(Default)]
    struct Told(Mutex<Vec<Event>>);

    impl Outlet for Told {
        fn effects(&self, batch: Vec<Event>) {
            self.0.lock().unwrap().extend(batch);
        }
    }

    /// Connections 0 to 2, and what they are told.
    struct World {
        hold: Hold,
        peers: Peers,
        told: Vec<Arc<Told>>,
    }

    impl World {
        fn new() -> World {
            let told: Vec<Arc<Told>> = (0..3).map(|_| Arc::default()).collect();
            let peer = |(id, told): (u32, &Arc<Told>)| {
                let outlet: Arc<dyn Outlet> = told.clone();
                (PeerId(id), Peer::new(PeerId(id), outlet))
            };
            let peers = (0..).zip(&told).map(peer).collect();
            World { hold: Hold::new(Position(0)), peers, told }
        }

        fn tell(&mut self, peer: u32, position: Option<u64>, event: Event) {
            let peer = self.peers.get_mut(&PeerId(peer)).unwrap();
            self.hold.tell(peer, position.map(Position), event);
        }

        /// Releases what is durable, and says what each was told.
        fn release(&mut self, durable: u64) -> [Vec<u32>; 3] {
            self.hold.release(Position(durable), &mut self.peers);
            self.hold.tell_all(&mut self.peers);
            [0, 1, 2].map(|peer| {
                let told = std::mem::take(&mut *self.told[peer].0.lock().unwrap());
                let number = |event| match event {
                    Event::Drained { link } => vec![link.0],
                    Event::Accepted { first, count } => {
                        (0..count).map(|n| first.0.wrapping_add(n)).chain([u32::MAX]).collect()
                    }
                    other => panic!("{other:?} was never told"),
                };
                told.into_iter().flat_map(number).collect()
            })
        }
    }

    #[test]
    fn an_accepted_send_is_told_as_its_event_would_be() {
        let (mut plain, mut by_event) = (World::new(), World::new());
        // Sends that follow each other, with gaps, of several commits, and after something else was told.
        let steps = [
            (Some(1), 1),
            (Some(1), 2),
            (Some(2), 3),
            (Some(1), 4),
            (None, 5),
            (None, 6),
            (None, 9),
            (Some(2), 10),
        ];
        for (number, (position, tag)) in steps.into_iter().enumerate() {
            for world in [&mut plain, &mut by_event] {
                if number == 4 {
                    world.tell(1, Some(2), drained(77));
                }
            }
            let peer = plain.peers.get_mut(&PeerId(1)).unwrap();
            plain.hold.tell_accepted(peer, position.map(Position), Tag(tag));
            by_event.tell(1, position, Event::Accepted { first: Tag(tag), count: 1 });
            assert_eq!(plain.hold.len(), by_event.hold.len(), "step {number}");
        }
        for durable in 0..=2 {
            assert_eq!(plain.release(durable), by_event.release(durable));
        }
    }

    fn drained(number: u32) -> Event {
        Event::Drained { link: Link(number) }
    }

    fn accepted(tag: u32) -> Event {
        Event::Accepted { first: Tag(tag), count: 1 }
    }

    #[test]
    fn events_leave_when_their_commit_is_durable_and_in_order() {
        let mut world = World::new();
        for (peer, position, number) in
            [(0, 3, 1), (1, 5, 2), (0, 3, 3), (0, 4, 4), (1, 5, 5), (0, 5, 6), (0, 4, 7), (2, 2, 8)]
        {
            world.tell(peer, Some(position), drained(number));
        }
        world.tell(2, None, drained(9));
        assert_eq!(world.hold.len(), 8);
        assert_eq!(world.release(1), [vec![], vec![], vec![9]], "what waits for nothing");
        assert_eq!(world.release(4), [vec![1, 3, 4, 7], vec![], vec![8]]);
        assert_eq!(world.hold.len(), 3);
        world.tell(0, Some(4), drained(10));
        assert_eq!(
            world.release(9),
            [vec![10, 6], vec![2, 5], vec![]],
            "the fourth commit is durable already"
        );
        assert_eq!(world.hold.len(), 0);
    }

    #[test]
    fn neighbouring_accepted_sends_become_one_event_also_over_several_commits() {
        let mut world = World::new();
        for (tag, position) in [
            (5, None),
            (6, None),
            (7, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (20, Some(2)),
            (u32::MAX, Some(3)),
            (0, Some(3)),
        ] {
            world.tell(0, position, accepted(tag));
        }
        assert_eq!(world.hold.len(), 5, "two events with the first commit are one");
        let end = u32::MAX;
        assert_eq!(world.release(3)[0], [5, 6, 7, 8, 9, end, 20, end, end, end, 0, end]);
    }

    #[test]
    fn who_is_gone_is_told_nothing_and_counts_for_nothing() {
        let mut world = World::new();
        for peer in [0, 1, 0] {
            world.tell(peer, Some(3), drained(1));
        }
        let gone = world.peers.remove(&PeerId(0)).unwrap();
        world.hold.forget(&gone);
        assert_eq!(world.hold.len(), 1);
        assert_eq!(world.release(3), [vec![], vec![1], vec![]]);
        world.tell(1, Some(4), drained(2));
        world.hold.clear(&mut world.peers);
        assert_eq!(world.hold.len(), 0);
        assert_eq!(world.release(4), [vec![], vec![], vec![]], "none of it will ever be durable");
    }

    #[test]
    fn a_buffer_that_is_given_back_is_filled_again() {
        let mut world = World::new();
        world.hold.buffers().give(Vec::with_capacity(77));
        world.tell(0, Some(1), drained(1));
        world.hold.release(Position(1), &mut world.peers);
        assert_eq!(world.peers[&PeerId(0)].outbox.capacity(), 77);
    }
}
