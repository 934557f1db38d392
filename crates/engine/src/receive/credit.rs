//! Credit, and standing in line for as long as there is some.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::Receiver;
use crate::effect::Outcome;
use crate::fact::Fact;
use crate::id::{MailboxId, ReceiverId};
use crate::level::Level;
use crate::mailboxes::Mailboxes;
use crate::refusal::Refusal;
use crate::state::{Pump, State};

impl State {
    pub(crate) fn decide_credit(
        &self,
        receiver: ReceiverId,
        credit: u32,
        drain: bool,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        if !self.receivers.contains_key(&receiver) {
            return Err(Refusal::ReceiverNotFound { receiver });
        }
        let credit = credit.min(self.limits.credit_max);
        outcome.facts.push(Fact::CreditSet { receiver, credit, drain });
        Ok(())
    }

    pub(crate) fn apply_credit(&mut self, id: ReceiverId, credit: u32, drain: bool) -> Option<()> {
        let old = self.floors(id);
        let receiver = self.receivers.get_mut(&id)?;
        receiver.credit = credit;
        receiver.window = receiver.window.max(credit);
        receiver.drain = drain;
        // Whoever only gets more of what it had keeps its place in line.
        if !receiver.queued || credit == 0 || old != self.floors(id) {
            self.requeue_receiver(id);
        }
        self.touch_receiver(id);
        Some(())
    }

    pub(crate) fn apply_drained(&mut self, id: ReceiverId) -> Option<()> {
        self.apply_credit(id, 0, false)?;
        self.served(Pump::Receiver(id));
        Some(())
    }

    /// One message less may be sent to a receiver, which goes to the end of its lines.
    pub(crate) fn spend_credit(&mut self, id: ReceiverId, mailbox: MailboxId) {
        if let Some(receiver) = self.receivers.get_mut(&id) {
            receiver.credit = receiver.credit.saturating_sub(1);
            let (holder, drain) = (receiver.holds_session(), receiver.drain);
            requeue(id, receiver, &mut self.mailboxes, &mut self.line);
            self.served(if holder { Pump::Receiver(id) } else { Pump::Mailbox(mailbox) });
            if holder || drain {
                self.touch_receiver(id);
            }
        }
    }

    /// Puts a receiver at the end of the lines of its mailboxes, or out of them if it has no credit.
    pub(crate) fn requeue_receiver(&mut self, id: ReceiverId) {
        if let Some(receiver) = self.receivers.get_mut(&id) {
            requeue(id, receiver, &mut self.mailboxes, &mut self.line);
        }
    }

    /// The lowest level a receiver may be given now, in each of its mailboxes.
    fn floors(&self, id: ReceiverId) -> SmallVec<[Level; 1]> {
        let receiver = self.receivers.get(&id);
        let mailboxes = receiver.iter().flat_map(|receiver| &receiver.mailboxes);
        let floor = |mailbox| {
            let (receiver, mailbox) = (receiver?, self.mailboxes.get(mailbox)?);
            Some(mailbox.ordering.floor(receiver.min_level, receiver.credit, receiver.window))
        };
        mailboxes.filter_map(floor).collect()
    }

    /// Puts a receiver in line by itself, if it holds a session with a message or is to be drained.
    pub(crate) fn touch_receiver(&mut self, id: ReceiverId) {
        let Some(receiver) = self.receivers.get(&id) else { return };
        if receiver.in_line || (receiver.credit == 0 && !receiver.drain) {
            return;
        }
        let waits = self.sessions.get(receiver.session).is_some_and(|session| {
            let held = self.mailboxes.get(&session.mailbox).is_none_or(|mailbox| mailbox.held);
            !held && session.head(&self.records).is_some()
        });
        if (receiver.drain || waits)
            && let Some(receiver) = self.receivers.get_mut(&id)
        {
            receiver.in_line = true;
            self.line.push_back(Pump::Receiver(id));
        }
    }

    /// Somebody was served: if it stood first in line, it goes to the end.
    pub(crate) fn served(&mut self, who: Pump) {
        if self.line.front() == Some(&who) {
            self.rotate();
        }
    }

    /// Whoever is first in line goes to the end, if there is still something for it.
    pub(crate) fn rotate(&mut self) {
        match self.line.pop_front() {
            Some(Pump::Mailbox(id)) => {
                if let Some(mailbox) = self.mailboxes.get_mut(&id) {
                    mailbox.in_line = false;
                    mailbox.line_up(id, &mut self.line);
                }
            }
            Some(Pump::Receiver(id)) => {
                if let Some(receiver) = self.receivers.get_mut(&id) {
                    receiver.in_line = false;
                }
                self.touch_receiver(id);
            }
            None => {}
        }
    }

    pub(crate) fn apply_selector_idle(&mut self, receiver: ReceiverId, mailbox: MailboxId) -> Option<()> {
        self.mailboxes.get_mut(&mailbox)?.ring.rest(receiver);
        self.served(Pump::Mailbox(mailbox));
        Some(())
    }
}

/// Puts a receiver at the end of the lines of its mailboxes, or out of them if it has no credit.
fn requeue(id: ReceiverId, receiver: &mut Receiver, mailboxes: &mut Mailboxes, line: &mut VecDeque<Pump>) {
    if receiver.holds_session() {
        return;
    }
    let (stood, stands) = (receiver.queued, receiver.credit > 0);
    if !stood && !stands {
        return;
    }
    let choosy = receiver.selector.is_some();
    for mailbox_id in &receiver.mailboxes {
        let Some(mailbox) = mailboxes.get_mut(mailbox_id) else { continue };
        let floor = mailbox.ordering.floor(receiver.min_level, receiver.credit, receiver.window);
        match (stood, stands) {
            (true, true) => mailbox.ring.rejoin(id, floor, choosy),
            (true, false) => mailbox.ring.leave(id),
            (false, _) => mailbox.ring.join(id, floor, choosy),
        }
        mailbox.line_up(*mailbox_id, line);
    }
    receiver.queued = stands;
}
