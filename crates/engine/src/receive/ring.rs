//! Whose turn it is among the receivers of a mailbox that have credit.
//!
//! Receivers stand in line by what they accept: all who take any level in one line, express receivers
//! in others. Turns are numbered across the lines, so the one who has waited longest among those who
//! accept a message gets it. Whoever is served goes to the end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::looked::Looked;
use crate::id::{ReceiverId, Sequence};
use crate::level::Level;
use crate::order::Rank;

/// A place in line.
pub(crate) type Turn = u64;

/// The receivers of a mailbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring {
    /// Everybody attached, with credit or without.
    pub(crate) attached: BTreeSet<ReceiverId>,
    /// Those with credit, by the lowest level they accept.
    lines: BTreeMap<Level, VecDeque<(Turn, ReceiverId)>>,
    /// Those with credit that look into messages before they take one.
    choosy: VecDeque<(Turn, ReceiverId)>,
    /// Those of them that found nothing, until something changes.
    idle: BTreeSet<ReceiverId>,
    /// What they know, for as long as they are attached.
    looked: BTreeMap<ReceiverId, Looked>,
    next_turn: Turn,
}

impl Ring {
    /// Puts a receiver at the end of the line for messages of `floor` or higher.
    pub(crate) fn join(&mut self, receiver: ReceiverId, floor: Level, choosy: bool) {
        let turn = self.next_turn;
        self.next_turn = turn.saturating_add(1);
        let line = if choosy { &mut self.choosy } else { self.lines.entry(floor).or_default() };
        line.push_back((turn, receiver));
    }

    /// Puts a receiver that stands in some line at the end of the line for messages of `floor` or higher.
    pub(crate) fn rejoin(&mut self, receiver: ReceiverId, floor: Level, choosy: bool) {
        // Whoever was just served stands first, and nearly always goes to the end of the very same line: one
        // that it stands in alone need not be given up and made again for that.
        if !choosy
            && let Some(line) = self.lines.get_mut(&floor)
            && line.front().is_some_and(|(_, first)| *first == receiver)
        {
            line.pop_front();
            line.push_back((self.next_turn, receiver));
            self.next_turn = self.next_turn.saturating_add(1);
            self.idle.remove(&receiver);
        } else {
            self.leave(receiver);
            self.join(receiver, floor, choosy);
        }
    }

    /// Takes a receiver out of line.
    pub(crate) fn leave(&mut self, receiver: ReceiverId) {
        // Whoever was just served stands first in its line; that is by far the most common case.
        let mut found = None;
        for (floor, line) in &mut self.lines {
            if line.front().is_some_and(|(_, first)| *first == receiver) {
                line.pop_front();
                found = Some(*floor);
                break;
            }
        }
        if found.is_none() {
            for line in self.lines.values_mut() {
                line.retain(|(_, other)| *other != receiver);
            }
            self.choosy.retain(|(_, other)| *other != receiver);
            self.lines.retain(|_, line| !line.is_empty());
        } else if let Some(floor) = found
            && self.lines.get(&floor).is_some_and(VecDeque::is_empty)
        {
            self.lines.remove(&floor);
        }
        self.idle.remove(&receiver);
    }

    /// Whether nobody is in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.choosy.is_empty()
    }

    /// The lowest level anybody in line accepts without looking.
    pub(crate) fn floor(&self) -> Option<Level> {
        self.lines.first_key_value().map(|(floor, _)| *floor)
    }

    /// Those in line who accept a message of `level`, each line's first ones first.
    pub(crate) fn candidates(&self, level: Level) -> impl Iterator<Item = (Turn, ReceiverId)> {
        self.lines.range(..=level).flat_map(|(_, line)| line.iter().copied())
    }

    /// The first of each line that accepts a message of `level`.
    pub(crate) fn firsts(&self, level: Level) -> impl Iterator<Item = (Turn, ReceiverId)> {
        self.lines.range(..=level).filter_map(|(_, line)| line.front().copied())
    }

    /// Those who look into messages and have not found nothing lately, in turn.
    pub(crate) fn choosy(&self) -> impl Iterator<Item = (Turn, ReceiverId)> {
        self.choosy.iter().copied().filter(|(_, receiver)| !self.idle.contains(receiver))
    }

    /// A choosy receiver found nothing; it is not asked again before something changes.
    pub(crate) fn rest(&mut self, receiver: ReceiverId) {
        self.idle.insert(receiver);
    }

    /// A message became ready: whoever found nothing may look at it.
    pub(crate) fn arrived(&mut self, sequence: Sequence) {
        if !self.idle.is_empty() {
            self.idle.clear();
        }
        for looked in self.looked.values_mut() {
            looked.arrived(sequence);
        }
    }

    /// Whether anybody remembers what it has looked at, and must be told of what leaves.
    pub(crate) fn is_watched(&self) -> bool {
        !self.looked.is_empty()
    }

    /// A message is no longer ready.
    pub(crate) fn left(&mut self, standing: (Rank, Sequence)) {
        for looked in self.looked.values_mut() {
            looked.left(standing);
        }
    }

    /// What a choosy receiver knows, if it has looked.
    pub(crate) fn looked(&self, receiver: ReceiverId) -> Option<&Looked> {
        self.looked.get(&receiver)
    }

    pub(crate) fn looked_mut(&mut self, receiver: ReceiverId) -> &mut Looked {
        self.looked.entry(receiver).or_default()
    }

    /// The order has changed: everybody looks again.
    pub(crate) fn look_again(&mut self) {
        self.looked.clear();
        self.idle.clear();
    }

    /// A receiver is gone.
    pub(crate) fn forget(&mut self, receiver: ReceiverId) {
        self.leave(receiver);
        self.attached.remove(&receiver);
        self.looked.remove(&receiver);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(ring: &Ring, level: u8) -> Vec<u64> {
        let mut all: Vec<_> = ring.candidates(Level(level)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, receiver)| receiver.0).collect()
    }

    #[test]
    fn those_who_accept_a_level_stand_in_the_order_they_came() {
        let mut ring = Ring::default();
        for (receiver, floor) in [(1, 0), (2, 9), (3, 0), (4, 5)] {
            ring.join(ReceiverId(receiver), Level(floor), false);
        }
        assert_eq!(ring.floor(), Some(Level(0)));
        for (level, expected) in [(0, vec![1, 3]), (5, vec![1, 3, 4]), (9, vec![1, 2, 3, 4])] {
            assert_eq!(order(&ring, level), expected, "level {level}");
        }
        ring.rejoin(ReceiverId(1), Level(0), false);
        assert_eq!(order(&ring, 9), [2, 3, 4, 1], "first in its line");
        ring.rejoin(ReceiverId(1), Level(0), false);
        assert_eq!(order(&ring, 9), [2, 3, 4, 1], "last in its line");
        ring.rejoin(ReceiverId(2), Level(5), false);
        assert_eq!(order(&ring, 9), [3, 4, 1, 2], "alone in its line, and to another");
        assert_eq!(order(&ring, 5), [3, 4, 1, 2]);
        for receiver in [3, 1] {
            ring.leave(ReceiverId(receiver));
        }
        assert_eq!(ring.floor(), Some(Level(5)));
    }
}
