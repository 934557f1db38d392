//! The pump: the next message to the next receiver.

use crate::command::ReceiveMode;
use crate::effect::{Effect, Outcome};
use crate::fact::Fact;
use crate::id::{LockToken, MailboxId, ReceiverId};
use crate::lane::Head;
use crate::level::Level;
use crate::lock::token::Purpose;
use crate::mailbox::Mailbox;
use crate::message::{Delivery, MessageState};
use crate::order::{Choice, choose};
use crate::payloads::Payloads;
use crate::receive::Receiver;
use crate::state::{Pump, State};
use crate::store::{Handle, Place, Record};
use crate::time::{Span, Timestamp};

impl State {
    pub(crate) fn decide_deliver(&self, now: Timestamp, payloads: &dyn Payloads, outcome: &mut Outcome) {
        let Some(next) = self.line.front() else { return };
        let before = outcome.facts.len();
        match next {
            Pump::Mailbox(id) => self.serve_mailbox(now, *id, payloads, outcome),
            Pump::Receiver(id) => self.serve_receiver(now, *id, outcome),
        }
        if outcome.facts.len() == before {
            outcome.facts.push(Fact::Pumped);
        }
    }

    fn serve_mailbox(&self, now: Timestamp, id: MailboxId, payloads: &dyn Payloads, outcome: &mut Outcome) {
        let Some(mailbox) = self.mailboxes.get(&id).filter(|mailbox| mailbox.is_servable()) else {
            return;
        };
        if mailbox.forwards {
            self.decide_forward(now, id, payloads, outcome);
            return;
        }
        if mailbox.sessions.is_some() {
            self.serve_waiting_accept(now, mailbox, outcome);
            return;
        }
        let choice = mailbox.ring.floor().and_then(|floor| self.choose_from(mailbox, now, floor));
        let Some(choice) = choice else {
            self.serve_choosy(now, id, mailbox, payloads, outcome);
            return;
        };
        let Some((handle, record)) = self.chosen(now, (id, mailbox), choice, outcome) else { return };
        if let Some(receiver) = self.next_receiver(id, mailbox, record, payloads) {
            self.hand_out(now, handle, receiver, choice.rescue, outcome);
        }
    }

    /// The message that was chosen, if it can go now: one on disk is asked for, an expired one expires.
    pub(crate) fn chosen(
        &self,
        now: Timestamp,
        (id, mailbox): (MailboxId, &Mailbox),
        choice: Choice,
        outcome: &mut Outcome,
    ) -> Option<(Handle, &Record)> {
        self.ask_ahead(id, mailbox, choice.level, outcome);
        let Head::Hot(_, handle) = choice.head else { return None };
        let record = self.records.get(handle)?;
        if self.is_expired(now, record) {
            self.expire(now, record, None, false, outcome);
            return None;
        }
        Some((handle, record))
    }

    /// The next message of a mailbox for those who accept `floor` or higher.
    pub(crate) fn choose_from(&self, mailbox: &Mailbox, now: Timestamp, floor: Level) -> Option<Choice> {
        choose(&mailbox.lanes, &mailbox.dated, &mailbox.ordering, &self.records, now, floor, mailbox.rescue)
    }

    /// Whose turn it is among those who accept a message and are not served better elsewhere.
    fn next_receiver(
        &self,
        id: MailboxId,
        mailbox: &Mailbox,
        record: &Record,
        payloads: &dyn Payloads,
    ) -> Option<ReceiverId> {
        let free = |(_, receiver): &(u64, ReceiverId)| !self.is_served_before(*receiver, id);
        let first = mailbox.ring.firsts(record.level).filter(free).min();
        // Only where all of them wait for a more important mailbox, look behind them.
        let plain = first.or_else(|| mailbox.ring.candidates(record.level).filter(free).min());
        let choosy = mailbox.ring.choosy().filter(free).find(|(turn, receiver)| {
            plain.is_none_or(|(other, _)| *turn < other) && self.wants(*receiver, record, payloads)
        });
        choosy.into_iter().chain(plain).min().map(|(_, receiver)| receiver)
    }

    /// Whether an ordered receiver has something to get from a mailbox before this one.
    pub(crate) fn is_served_before(&self, receiver_id: ReceiverId, id: MailboxId) -> bool {
        let Some(receiver) = self.receivers.get(&receiver_id) else { return true };
        let mut earlier = receiver.mailboxes.iter().take_while(|mailbox| **mailbox != id);
        earlier.any(|mailbox| self.may_have_for(*mailbox, receiver_id, receiver))
    }

    /// Whether a mailbox has a message for a receiver now.
    pub(crate) fn has_for(&self, id: MailboxId, receiver: &Receiver) -> bool {
        self.mailboxes.get(&id).is_some_and(|mailbox| {
            let floor = mailbox.ordering.floor(receiver.min_level, receiver.credit, receiver.window);
            mailbox.is_servable() && mailbox.highest().is_some_and(|highest| highest >= floor)
        })
    }

    /// Serves the holder of a session, or gives a draining receiver its credit back.
    fn serve_receiver(&self, now: Timestamp, id: ReceiverId, outcome: &mut Outcome) {
        let Some(receiver) = self.receivers.get(&id) else { return };
        if receiver.credit == 0 {
            // Messages that crossed the drain, or the client itself, left nothing: it is answered all the same.
        } else if let Some(session) = self.sessions.get(receiver.session) {
            if session.lock.is_none_or(|lock| lock.until <= now) {
                // Other things were due before it: it ends here, or its holder would stay in line for nothing.
                self.expire_session(now, receiver.session, outcome);
                return;
            }
            let held = self.mailboxes.get(&session.mailbox).is_none_or(|mailbox| mailbox.held);
            let head = session.head(&self.records).filter(|_| !held);
            if let Some(record) = head.and_then(|head| self.records.get(head)) {
                if self.is_expired(now, record) {
                    self.expire(now, record, None, false, outcome);
                } else if let Some(head) = head {
                    let rescue = self.mailboxes.get(&session.mailbox).map_or(0, |mailbox| mailbox.rescue);
                    self.hand_out(now, head, id, rescue, outcome);
                }
                return;
            }
        } else if receiver.mailboxes.iter().any(|mailbox| self.may_have_for(*mailbox, id, receiver)) {
            return;
        }
        if receiver.drain {
            outcome.facts.push(Fact::CreditDrained { receiver: id });
            outcome.effects.push(Effect::Drained { receiver: id });
        }
    }

    /// The same, for one that may have looked there and found nothing.
    fn may_have_for(&self, mailbox: MailboxId, id: ReceiverId, receiver: &Receiver) -> bool {
        self.has_for(mailbox, receiver)
            && (receiver.selector.is_none()
                || self
                    .mailboxes
                    .get(&mailbox)
                    .is_some_and(|mailbox| mailbox.ring.choosy().any(|(_, other)| other == id)))
    }

    /// Locks or removes a ready message for a receiver, and sends it.
    pub(crate) fn hand_out(
        &self,
        now: Timestamp,
        handle: Handle,
        id: ReceiverId,
        rescue: u16,
        outcome: &mut Outcome,
    ) {
        let Some(record) = self.records.get(handle) else { return };
        let Some(receiver) = self.receivers.get(&id) else { return };
        let (mailbox, sequence) = (record.mailbox, record.sequence);
        let held = self.sessions.get(receiver.session).and_then(|session| session.lock);
        let lock = match receiver.mode {
            ReceiveMode::PeekLock => {
                let until = match (held, self.mailboxes.get(&mailbox)) {
                    (Some(lock), _) => lock.until,
                    (None, Some(mailbox)) => now.after(mailbox.lock_duration),
                    (None, None) => return,
                };
                let token = LockToken(self.next_made(0, Purpose::Lock));
                let receiver = Some(id);
                outcome.facts.push(Fact::Locked {
                    mailbox,
                    sequence,
                    token,
                    at: now,
                    until,
                    receiver,
                    rescue,
                });
                Some((token, until))
            }
            ReceiveMode::ReceiveAndDelete => {
                outcome.facts.push(Fact::Taken { mailbox, sequence, at: now, receiver: Some(id), rescue });
                None
            }
        };
        outcome.effects.push(Effect::Deliver { receiver: id, delivery: self.delivery_under(record, lock) });
    }

    /// Everything the front writes around a payload, but for the lock: who holds that is the holder's to know.
    pub(crate) fn delivery_of(&self, record: &Record) -> Delivery {
        self.delivery_under(record, None)
    }

    /// The same, with the lock.
    #[inline]
    pub(crate) fn delivery_under(&self, record: &Record, lock: Option<(LockToken, Timestamp)>) -> Delivery {
        let extra = self.extras.get(record.extra);
        let scheduled = record.place() == Place::Scheduled;
        Delivery {
            mailbox: record.mailbox,
            sequence: record.sequence,
            first_sequence: extra.and_then(crate::store::Extra::first_sequence),
            location: record.location,
            size: record.size,
            level: record.level,
            state: match record.place() {
                Place::Deferred | Place::LockedDeferred => MessageState::Deferred,
                Place::Scheduled => MessageState::Scheduled,
                _ => MessageState::Active,
            },
            deliveries: u32::from(record.deliveries),
            enqueued: extra.map_or(record.eligible, |extra| extra.enqueued),
            time_to_live: extra.map_or(Span::FOREVER, |extra| extra.time_to_live),
            expires: extra.map_or(Timestamp::NEVER, |extra| extra.expires),
            scheduled_for: extra.map(|extra| extra.due).filter(|_| scheduled),
            token: lock.map(|(token, _)| token),
            locked_until: lock.map(|(_, until)| until),
            session: extra
                .and_then(|extra| self.sessions.get(extra.session))
                .map(|session| session.name.clone()),
            dead_letter_source: extra.and_then(|extra| extra.dead_letter_source.clone()),
            overlay: extra.and_then(|extra| extra.overlay.clone()),
        }
    }
}
