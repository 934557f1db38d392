//! Time passing: one thing that has become due after the other.
//!
//! Each tick handles one of them, so no step is long, and whatever else is due stays due:
//! [`State::next_deadline`] says so. Locks come first, because a message that is given back may be the
//! very next to expire.

use crate::effect::Outcome;
use crate::entity::catalogue::Change;
use crate::fact::{Fact, ReturnCause};
use crate::payloads::Payloads;
use crate::refusal::Refusal;
use crate::session::give_up;
use crate::state::State;
use crate::store::Place;
use crate::time::Timestamp;

impl State {
    pub(crate) fn decide_tick(
        &self,
        now: Timestamp,
        payloads: &dyn Payloads,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        if let Some(lock) = self.locks.first().filter(|lock| lock.until <= now) {
            self.give_back(now, lock, ReturnCause::LockExpired, None, None, outcome);
        } else if let Some((_, session)) = self.timers.session_locks.first().filter(|(at, _)| *at <= now) {
            self.expire_session(now, *session, outcome);
        } else if let Some((_, mailbox, sequence)) = self.timers.due.first().filter(|(at, ..)| *at <= now) {
            let Some(record) = self.find(*mailbox, *sequence).and_then(|handle| self.records.get(handle))
            else {
                return Ok(());
            };
            if record.place() == Place::Scheduled {
                return self.activate(now, record, payloads, outcome);
            }
            outcome.facts.push(Fact::Returned {
                mailbox: *mailbox,
                sequence: *sequence,
                cause: ReturnCause::DelayOver,
                at: now,
                counted: false,
                overlay: None,
                not_before: None,
            });
        } else if let Some((_, mailbox, sequence)) = self.timers.expiry.first().filter(|(at, ..)| *at <= now)
        {
            if let Some(record) = self.find(*mailbox, *sequence).and_then(|handle| self.records.get(handle)) {
                self.expire(now, record, None, false, outcome);
            }
        } else if let Some((until, mailbox)) = self.timers.stalled.first().filter(|(at, _)| *at <= now) {
            outcome.facts.push(Fact::ForwardResumed { mailbox: *mailbox, until: *until });
        } else if let Some((_, run)) = self.timers.cold.first().filter(|(at, _)| *at <= now) {
            self.pluck_expired(now, *run, payloads, outcome);
        } else if let Some((_, receiver, mailbox)) = self.timers.accepts.first().filter(|(at, ..)| *at <= now)
        {
            let table = self.mailboxes.get(mailbox).and_then(|mailbox| mailbox.sessions.as_ref());
            let waiting =
                table.and_then(|table| table.waiting.iter().find(|waiting| waiting.receiver == *receiver));
            if let Some(waiting) = waiting {
                give_up(waiting, outcome);
            }
        } else if self.transactions_due().is_some_and(|due| due <= now) {
            self.end_old_transaction(outcome);
        } else if let Some(entity) = self.catalogue.idle().due(now).next() {
            let used = self.catalogue.entity(entity).is_some_and(|found| self.is_in_use(found));
            if used {
                outcome.facts.push(Fact::EntityUsed { entity, at: now });
            } else {
                self.push_change(now, Change::Deleted { entity }, outcome);
            }
        }
        Ok(())
    }
}
