//! Receivers that look into messages before they take one.
//!
//! Looking costs a read of the payload, so a choosy receiver looks at a bounded number of messages from
//! the head on. When it finds nothing it rests until something changes in the mailbox.

use vorrang_filter::Environment;

use crate::effect::Outcome;
use crate::fact::Fact;
use crate::id::{MailboxId, ReceiverId};
use crate::mailbox::Mailbox;
use crate::payloads::Payloads;
use crate::state::State;
use crate::store::{Handle, Record};
use crate::time::Timestamp;

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
        for (handle, record) in self.first_ready(mailbox) {
            if self.is_expired(now, record) {
                return self.expire(now, record, None, false, outcome);
            }
            if self.wants(receiver, record, payloads) {
                return self.hand_out(now, handle, receiver, mailbox.rescue, outcome);
            }
        }
        outcome.facts.push(Fact::SelectorIdle { receiver, mailbox: id });
    }

    /// Whether a message is of the level and content a receiver wants. One that cannot be read is not.
    pub(super) fn wants(&self, receiver: ReceiverId, record: &Record, payloads: &dyn Payloads) -> bool {
        let Some(receiver) = self.receivers.get(&receiver) else { return false };
        let Some(selector) = &receiver.selector else { return true };
        if record.level < receiver.min_level {
            return false;
        }
        let Some(message) = payloads.message(record.location, record.size) else { return false };
        let mut ids = self.new_ids();
        selector.matches(&*message, &mut Environment::new(&mut ids)).unwrap_or(false)
    }

    /// The ready messages in memory in the order of the policy, as many as a selector may look at.
    fn first_ready<'a>(&'a self, mailbox: &'a Mailbox) -> Vec<(Handle, &'a Record)> {
        let max = self.limits.selector_scan_max;
        let lanes = mailbox.lanes.iter().flat_map(|(_, lane)| lane.iter(&self.records).take(max));
        let dated = mailbox
            .dated
            .values()
            .take(max)
            .filter_map(|(handle, _)| Some((*handle, self.records.get(*handle)?)));
        let rank = |record: &Record| {
            let deadline = self.extras.get(record.extra).map(|extra| extra.deadline);
            let deadline = deadline.filter(|deadline| *deadline != Timestamp::NEVER);
            (mailbox.ordering.rank(record.level, record.eligible, deadline), record.sequence)
        };
        let mut all: Vec<_> = lanes.chain(dated).collect();
        all.sort_by_key(|(_, record)| rank(record));
        all.truncate(max);
        all
    }
}
