//! Receivers that look into messages before they take one.
//!
//! Looking goes on in steps of a bounded number of messages, until everything that is ready and in memory
//! was looked at once; then the best of what fits is handed out. When there is nothing, messages on disk are asked for, and it
//! rests until something changes in the mailbox, and looks at that alone.

use crate::browse::matches_stored;
use crate::effect::Outcome;
use crate::fact::Fact;
use crate::id::{MailboxId, ReceiverId, Sequence};
use crate::level::Level;
use crate::mailbox::Mailbox;
use crate::payloads::Payloads;
use crate::shelf::standing;
use crate::state::{Pump, State};
use crate::store::{Handle, Place, Record};
use crate::time::Timestamp;

use super::looked::Looked;

impl State {
    /// Finds a message for the first choosy receiver in turn.
    pub(super) fn serve_choosy(
        &self,
        now: Timestamp,
        id: MailboxId,
        mailbox: &Mailbox,
        payloads: &dyn Payloads,
        outcome: &mut Outcome,
    ) {
        let free = |(_, receiver): &(u64, ReceiverId)| !self.is_served_before(*receiver, id);
        let Some((_, receiver)) = mailbox.ring.choosy().find(free) else { return };
        let nothing = Looked::default();
        let looked = mailbox.ring.looked(receiver).unwrap_or(&nothing);
        if let Some(fact) = self.look(id, mailbox, receiver, looked, payloads) {
            outcome.facts.push(fact);
            return;
        }
        let ready = |sequence| self.ready_record(mailbox, sequence);
        if let Some((handle, record)) = looked.found().find_map(ready) {
            if self.is_expired(now, record) {
                self.expire(now, record, None, false, outcome);
            } else {
                self.hand_out(now, handle, receiver, mailbox.rescue, outcome);
            }
        } else if looked.overflowed() {
            outcome.facts.push(Fact::SelectorReset { receiver, mailbox: id });
        } else {
            let floor = self.receivers.get(&receiver).map_or(Level(0), |receiver| receiver.min_level);
            self.ask_for_choosy(id, mailbox, floor, outcome);
            outcome.facts.push(Fact::SelectorIdle { receiver, mailbox: id });
        }
    }

    /// Looks at the next messages that were not looked at yet; none if all were.
    fn look(
        &self,
        id: MailboxId,
        mailbox: &Mailbox,
        receiver: ReceiverId,
        looked: &Looked,
        payloads: &dyn Payloads,
    ) -> Option<Fact> {
        let max = self.limits.selector_scan_max;
        let again: Vec<Sequence> = looked.again().take(max).collect();
        let left = max.saturating_sub(again.len());
        let new = mailbox.index.from(looked.upto().next()).map(|(sequence, _)| sequence);
        let new: Vec<Sequence> = new.take(left).collect();
        let upto = new.last().copied().unwrap_or(looked.upto());
        if again.is_empty() && new.is_empty() {
            return None;
        }
        let fits = |sequence: &Sequence| {
            self.ready_record(mailbox, *sequence)
                .is_some_and(|(_, record)| self.wants(receiver, record, payloads))
        };
        let found = again.iter().chain(&new).copied().filter(fits).collect();
        Some(Fact::SelectorLooked { receiver, mailbox: id, upto, again, found })
    }

    fn ready_record(&self, mailbox: &Mailbox, sequence: Sequence) -> Option<(Handle, &Record)> {
        let handle = mailbox.index.get(sequence)?;
        let record = self.records.get(handle)?;
        let ready = matches!(record.place(), Place::Listed | Place::Returned | Place::Dated);
        ready.then_some((handle, record))
    }

    /// Whether a message is of the level and content a receiver wants. One that cannot be read is not.
    pub(super) fn wants(&self, receiver: ReceiverId, record: &Record, payloads: &dyn Payloads) -> bool {
        let Some(receiver) = self.receivers.get(&receiver) else { return false };
        let Some(selector) = &receiver.selector else { return true };
        record.level >= receiver.min_level && matches_stored(selector, &self.delivery_of(record), payloads)
    }

    pub(crate) fn apply_selector_looked(
        &mut self,
        receiver: ReceiverId,
        id: MailboxId,
        upto: Sequence,
        again: &[Sequence],
        found: &[Sequence],
    ) -> Option<()> {
        let mailbox = self.mailboxes.get_mut(&id)?;
        let stand = |sequence: &Sequence| {
            let record = self.records.get(mailbox.index.get(*sequence)?)?;
            let deadline = self.extras.get(record.extra).map_or(Timestamp::NEVER, |extra| extra.deadline);
            Some(standing(record, deadline, &mailbox.ordering))
        };
        let found: Vec<_> = found.iter().filter_map(stand).collect();
        mailbox.ring.looked_mut(receiver).look(upto, again, found);
        self.served(Pump::Mailbox(id));
        Some(())
    }

    pub(crate) fn apply_selector_reset(&mut self, receiver: ReceiverId, id: MailboxId) -> Option<()> {
        *self.mailboxes.get_mut(&id)?.ring.looked_mut(receiver) = Looked::default();
        self.served(Pump::Mailbox(id));
        Some(())
    }
}
