//! What a decision has promised so far and the state does not know yet.
//!
//! A send of many messages, or a transaction of many sends, is decided as one while the state stands
//! still. The draft remembers which numbers, ids and bytes the earlier part has used.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::id::{EntityId, MailboxId, Sequence};
use crate::lock::token::{self, Purpose};
use crate::state::State;

/// Promises of one decision.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// Sorted: a topic may number copies in thousands of mailboxes, which come in order.
    next: SmallVec<[(MailboxId, Sequence); 4]>,
    /// Numbers that messages to come were promised earlier.
    promised: VecDeque<(MailboxId, Sequence)>,
    ids: SmallVec<[(EntityId, u128); 4]>,
    bytes: SmallVec<[(EntityId, u64); 2]>,
    /// Tokens and ids made.
    made: u64,
    /// Where messages go that named a class nobody knows there.
    pub(crate) unknown_classes: SmallVec<[MailboxId; 1]>,
}

impl Draft {
    /// The next free number of a mailbox, which is now taken.
    pub(crate) fn number(&mut self, state: &State, mailbox: MailboxId) -> Sequence {
        if let Some(place) = self.promised.iter().position(|(id, _)| *id == mailbox)
            && let Some((_, sequence)) = self.promised.remove(place)
        {
            return sequence;
        }
        match self.next.binary_search_by_key(&mailbox, |(id, _)| *id) {
            Ok(place) => {
                let Some((_, next)) = self.next.get_mut(place) else { return Sequence(0) };
                let sequence = *next;
                *next = sequence.next();
                sequence
            }
            Err(place) => {
                let known = state.mailboxes.get(&mailbox);
                let sequence = known.map_or(Sequence(1), |mailbox| mailbox.next_sequence);
                self.next.insert(place, (mailbox, sequence.next()));
                sequence
            }
        }
    }

    /// The next messages of a mailbox get these numbers, which nobody else has.
    pub(crate) fn promise(&mut self, mailbox: MailboxId, sequences: impl Iterator<Item = Sequence>) {
        self.promised.extend(sequences.map(|sequence| (mailbox, sequence)));
    }

    /// Notes a message id; false if it was noted before.
    pub(crate) fn note_id(&mut self, entity: EntityId, key: u128) -> bool {
        let fresh = !self.ids.contains(&(entity, key));
        if fresh {
            self.ids.push((entity, key));
        }
        fresh
    }

    /// How many ids were noted for an entity.
    pub(crate) fn ids_noted(&self, entity: EntityId) -> usize {
        self.ids.iter().filter(|(known, _)| *known == entity).count()
    }

    /// The bytes an account holds with what was promised, before and after adding some.
    pub(crate) fn charge(&mut self, state: &State, account: EntityId, size: u64) -> u64 {
        let held = state.sizes.get(&account).copied().unwrap_or(0);
        let place = self.bytes.iter().position(|(known, _)| *known == account);
        let place = place.unwrap_or_else(|| {
            self.bytes.push((account, 0));
            self.bytes.len().saturating_sub(1)
        });
        let Some((_, promised)) = self.bytes.get_mut(place) else { return held };
        let before = held.saturating_add(*promised);
        *promised = promised.saturating_add(size);
        before
    }

    /// A new token or id.
    pub(crate) fn make(&mut self, state: &State, purpose: Purpose) -> u128 {
        let made = state.next_made(self.made, purpose);
        self.made = self.made.saturating_add(1);
        made
    }
}

impl State {
    /// The token or id that is made after so many others.
    pub(crate) fn next_made(&self, after: u64, purpose: Purpose) -> u128 {
        let count = self.identity.made.saturating_add(after);
        token::make(self.identity.seed.unwrap_or(0), self.identity.generation, count, purpose)
    }
}
