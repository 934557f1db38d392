//! All mailboxes, by number.
//!
//! Whatever happens to a message happens in one mailbox, and each step of it asks for that mailbox again. So the
//! one that was last asked for to be changed is found by comparing its number, all others by hashing theirs.

use hashbrown::hash_map::Entry;

use crate::id::MailboxId;
use crate::mailbox::Mailbox;
use crate::state::ById;

/// The mailboxes that were ever needed, until their entities are deleted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mailboxes {
    places: ById<MailboxId, usize>,
    /// What is left of one that is gone is an empty slot, which another one is put into.
    slots: Vec<Slot>,
    empty: Vec<usize>,
    /// Where the one is that was last asked for.
    last: usize,
}

#[derive(Debug, Clone)]
struct Slot {
    id: MailboxId,
    mailbox: Option<Box<Mailbox>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "asked as every other map is")]
impl Mailboxes {
    pub(crate) fn get(&self, id: &MailboxId) -> Option<&Mailbox> {
        self.slots.get(self.place(*id)?)?.mailbox.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: &MailboxId) -> Option<&mut Mailbox> {
        self.last = self.place(*id)?;
        self.slots.get_mut(self.last)?.mailbox.as_deref_mut()
    }

    /// The mailbox of that number, put there if there is none and `new` gives one.
    pub(crate) fn get_or_open(
        &mut self,
        id: MailboxId,
        new: impl FnOnce() -> Option<Mailbox>,
    ) -> Option<&mut Mailbox> {
        if self.place(id).is_none() {
            self.insert(id, new()?);
        }
        self.get_mut(&id)
    }

    pub(crate) fn remove(&mut self, id: &MailboxId) -> Option<Box<Mailbox>> {
        let place = self.places.remove(id)?;
        self.empty.push(place);
        self.slots.get_mut(place)?.mailbox.take()
    }

    /// All of them, in an order that means nothing.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&MailboxId, &Mailbox)> {
        self.slots.iter().filter_map(|slot| Some((&slot.id, slot.mailbox.as_deref()?)))
    }

    fn place(&self, id: MailboxId) -> Option<usize> {
        match self.slots.get(self.last) {
            Some(Slot { id: known, mailbox: Some(_) }) if *known == id => Some(self.last),
            _ => self.look_up(id),
        }
    }

    /// By itself, so that the short way through [`Mailboxes::place`] is short.
    #[inline(never)]
    fn look_up(&self, id: MailboxId) -> Option<usize> {
        self.places.get(&id).copied()
    }

    fn insert(&mut self, id: MailboxId, mailbox: Mailbox) {
        if let Entry::Vacant(vacant) = self.places.entry(id) {
            let slot = Slot { id, mailbox: Some(Box::new(mailbox)) };
            let place = self.empty.pop().unwrap_or(self.slots.len());
            match self.slots.get_mut(place) {
                Some(empty) => *empty = slot,
                None => self.slots.push(slot),
            }
            vacant.insert(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;

    #[test]
    fn the_one_last_asked_for_is_not_taken_for_another_nor_found_when_it_is_gone() {
        let mut trial = Trial::new();
        trial.queue("a", vec![]);
        let entity = trial.state.catalogue.entity(trial.mailbox("a").entity()).unwrap();
        let [first, second, third] = [1, 2, 3].map(MailboxId);
        let mut mailboxes = Mailboxes::default();
        let new = |id| move || Some(Mailbox::new(id, entity));
        for (id, rescue) in [(first, 1), (second, 2)] {
            mailboxes.get_or_open(id, new(id)).unwrap().rescue = rescue;
        }
        let seen = |mailboxes: &Mailboxes, id| mailboxes.get(&id).map(|mailbox| mailbox.rescue);
        for id in [first, second, third, second, first] {
            mailboxes.get_mut(&id);
            assert_eq!([first, second, third].map(|id| seen(&mailboxes, id)), [Some(1), Some(2), None]);
        }
        assert_eq!(mailboxes.remove(&first).map(|mailbox| mailbox.rescue), Some(1));
        assert!(mailboxes.get(&first).is_none() && mailboxes.get_mut(&first).is_none());
        assert!(mailboxes.remove(&first).is_none());
        assert!(mailboxes.get_or_open(third, || None).is_none());
        mailboxes.get_or_open(third, new(third)).unwrap().rescue = 3;
        assert_eq!([first, second, third].map(|id| seen(&mailboxes, id)), [None, Some(2), Some(3)]);
        let all: Vec<_> = mailboxes.iter().map(|(id, mailbox)| (*id, mailbox.rescue)).collect();
        assert_eq!(all, [(third, 3), (second, 2)], "a slot is used again");
    }
}
