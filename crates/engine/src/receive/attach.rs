//! Coming and going.

use crate::command::Attach;
use crate::effect::{Effect, Outcome, Reply};
use crate::fact::{Fact, ReturnCause};
use crate::id::{MailboxId, ReceiverId};
use crate::receive::Receiver;
use crate::refusal::{Countable, Refusal};
use crate::state::{Pump, State};
use crate::store::Handle;
use crate::time::Timestamp;
use std::sync::Arc;

impl State {
    pub(crate) fn decide_attach(
        &self,
        now: Timestamp,
        attach: &Attach,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.check_new_receiver(attach.receiver)?;
        let limit = self.limits.ordered_mailboxes_max;
        let count = attach.mailboxes.len();
        if count == 0 || count > limit {
            return Err(Refusal::RequestSize {
                what: Countable::Mailboxes,
                count: u64::try_from(count).unwrap_or(u64::MAX),
                limit: u64::try_from(limit).unwrap_or(u64::MAX),
            });
        }
        for (place, mailbox) in attach.mailboxes.iter().enumerate() {
            if attach.mailboxes.iter().take(place).any(|earlier| earlier == mailbox) {
                let limit = u64::try_from(limit).unwrap_or(u64::MAX);
                return Err(Refusal::TooMany { what: Countable::Mailboxes, limit });
            }
            if self.check_receivable(*mailbox)? {
                return Err(Refusal::SessionRequired { entity: mailbox.entity() });
            }
        }
        outcome.facts.push(Fact::ReceiverAttached { attach: Arc::new(attach.clone()), at: now });
        outcome.effects.push(Effect::Reply { request: attach.request, reply: Reply::Done });
        Ok(())
    }

    pub(crate) fn check_new_receiver(&self, receiver: ReceiverId) -> Result<(), Refusal> {
        if self.receivers.contains_key(&receiver) || self.accepting.contains_key(&receiver) {
            return Err(Refusal::ReceiverExists { receiver });
        }
        Ok(())
    }

    /// Whether one can receive from a mailbox at all; true if by sessions only.
    pub(crate) fn check_receivable(&self, id: MailboxId) -> Result<bool, Refusal> {
        let owner = self.owner(id)?;
        let entity = owner.id;
        let Some(outlet) = owner.outlet() else { return Err(Refusal::MailboxNotFound { mailbox: id }) };
        if !owner.shared().status.allows_receive() {
            return Err(Refusal::ReceiveDisabled { entity });
        }
        let mailbox = self.mailboxes.get(&id);
        let forwards = mailbox
            .map_or_else(|| crate::mailbox::Mailbox::new(id, owner).forwards, |mailbox| mailbox.forwards);
        if forwards {
            return Err(Refusal::Forwards { entity });
        }
        let limit = self.limits.receivers_per_mailbox_max;
        if mailbox.is_some_and(|mailbox| mailbox.ring.attached.len() >= limit) {
            let limit = u64::try_from(limit).unwrap_or(u64::MAX);
            return Err(Refusal::TooMany { what: Countable::Receivers, limit });
        }
        Ok(outlet.requires_session && id.is_main())
    }

    pub(crate) fn apply_attached(&mut self, attach: &Attach, at: Timestamp) -> Option<()> {
        for mailbox in &attach.mailboxes {
            self.mailbox_mut(*mailbox)?.ring.attached.insert(attach.receiver);
            self.catalogue.touch(mailbox.entity(), at);
        }
        let receiver = Receiver {
            mailboxes: attach.mailboxes.clone(),
            mode: attach.mode,
            min_level: attach.min_level,
            selector: attach.selector.clone(),
            session: Handle::NONE,
            credit: 0,
            window: 0,
            drain: false,
            queued: false,
            in_line: false,
        };
        self.receivers.insert(attach.receiver, receiver);
        Some(())
    }

    pub(crate) fn decide_detach(
        &self,
        now: Timestamp,
        receiver: ReceiverId,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        if self.accepting.contains_key(&receiver) {
            outcome.facts.push(Fact::AcceptEnded { receiver });
            return Ok(());
        }
        let Some(found) = self.receivers.get(&receiver) else {
            return Err(Refusal::ReceiverNotFound { receiver });
        };
        self.end_session_lock(now, found.session, ReturnCause::SessionClosed, outcome);
        outcome.facts.push(Fact::ReceiverDetached { receiver, at: now });
        Ok(())
    }

    pub(crate) fn apply_detached(&mut self, id: ReceiverId, at: Timestamp) -> Option<()> {
        let receiver = self.receivers.remove(&id)?;
        for mailbox in receiver.mailboxes {
            if let Some(mailbox) = self.mailboxes.get_mut(&mailbox) {
                mailbox.ring.forget(id);
            }
            self.catalogue.touch(mailbox.entity(), at);
        }
        if receiver.in_line {
            self.line.retain(|pump| *pump != Pump::Receiver(id));
        }
        Some(())
    }
}
