//! Filing what was accepted.

use crate::entity::fan_out;
use crate::fact::{Arrival, Payload};
use crate::id::{EntityId, Location, MailboxId, Sequence};
use crate::state::State;
use crate::store::{Handle, Place};
use crate::time::Timestamp;

impl State {
    pub(crate) fn apply_enqueued(&mut self, payload: &Payload, arrival: &Arrival) -> Option<()> {
        self.count_made();
        let handle = self.take_in(arrival, payload.location, payload.size)?;
        self.catalogue.touch(arrival.mailbox.entity(), arrival.enqueued());
        self.make_ready(handle)
    }

    pub(crate) fn apply_published(
        &mut self,
        (topic, sequence): (EntityId, Sequence),
        at: Timestamp,
        payload: &Payload,
        copies: &[Arrival],
    ) -> Option<()> {
        self.count_made();
        self.apply_reserved(MailboxId::main(topic), sequence.next())?;
        self.catalogue.touch(topic, at);
        self.advance(at);
        for copy in copies {
            self.apply_copy(copy, payload.location, payload.size)?;
        }
        Some(())
    }

    /// Files one copy of a message whose payload is stored already.
    pub(crate) fn apply_copy(&mut self, copy: &Arrival, location: Location, size: u32) -> Option<Handle> {
        let handle = self.take_in(copy, location, size)?;
        if !copy.mailbox.is_main() {
            // The number was taken from the entity's own count.
            self.apply_reserved(MailboxId::main(copy.mailbox.entity()), copy.sequence.next())?;
        }
        if copy.mailbox == MailboxId::dead_letter(copy.mailbox.entity()) {
            self.observe_dead_letter(copy);
        }
        self.make_ready(handle)?;
        Some(handle)
    }

    /// Counts a copy that went from its topic straight to the dead-letter queue, where others are counted: with
    /// the mailbox it would have come to.
    fn observe_dead_letter(&mut self, copy: &Arrival) {
        let overlay = copy.details.as_ref().and_then(|details| details.overlay.as_ref());
        let cause = fan_out::cause(overlay.and_then(|overlay| overlay.reason()));
        if self.live
            && let Some(main) = self.mailboxes.get_mut(&MailboxId::main(copy.mailbox.entity()))
        {
            main.observations.at(copy.level, copy.enqueued()).dead_lettered(cause);
        }
    }

    pub(crate) fn apply_scheduled(
        &mut self,
        payload: &Payload,
        arrival: &Arrival,
        due: Timestamp,
    ) -> Option<()> {
        self.count_made();
        let (handle, _) = self.admit(arrival, payload.location, payload.size)?;
        self.advance(arrival.enqueued());
        self.catalogue.touch(arrival.mailbox.entity(), arrival.enqueued());
        self.make_wait(handle, Place::Scheduled, due)
    }

    pub(crate) fn apply_reserved(&mut self, mailbox: MailboxId, next: Sequence) -> Option<()> {
        let mailbox = self.mailbox_mut(mailbox)?;
        mailbox.next_sequence = mailbox.next_sequence.max(next);
        Some(())
    }

    pub(crate) fn apply_id_seen(&mut self, entity: EntityId, key: u128, at: Timestamp) -> Option<()> {
        let window = self.catalogue.entity(entity)?.intake()?.duplicate_window;
        // The ids of an entity are kept with its mailbox in a snapshot.
        self.mailbox_mut(MailboxId::main(entity))?;
        self.histories.entry(entity).or_default().insert(key, at, window);
        Some(())
    }

    pub(crate) fn count_made(&mut self) {
        self.identity.made = self.identity.made.saturating_add(1);
    }

    /// Takes in a message that is visible at once.
    fn take_in(&mut self, arrival: &Arrival, location: Location, size: u32) -> Option<Handle> {
        let (live, at) = (self.live, arrival.enqueued());
        let (handle, mailbox) = self.admit(arrival, location, size)?;
        if live {
            mailbox.observations.at(arrival.level, at).arrived(at);
        }
        self.advance(at);
        Some(handle)
    }
}
