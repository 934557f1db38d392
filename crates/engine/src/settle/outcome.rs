//! What becomes of a message when its lock ends or its time is up.
//!
//! The rules are the same whoever ends it: an attempt that counts may be the last one, and a message
//! that has outlived its time meanwhile goes at once.

use std::sync::Arc;

use crate::effect::Outcome;
use crate::fact::{DeadLetterCause, Fact, RemovalCause, ReturnCause};
use crate::id::{MailboxId, Sequence};
use crate::lock::Lock;
use crate::message::Overlay;
use crate::state::State;
use crate::store::{Handle, Place, Record};
use crate::time::Timestamp;

impl State {
    /// Gives a locked message back: to its place, or to where it must go instead.
    pub(crate) fn give_back(
        &self,
        now: Timestamp,
        lock: &Lock,
        cause: ReturnCause,
        overlay: Option<Arc<Overlay>>,
        not_before: Option<Timestamp>,
        outcome: &mut Outcome,
    ) {
        let (mailbox, sequence) = (lock.mailbox, lock.sequence);
        let Some(record) = self.records.get(lock.message) else { return };
        let counts =
            matches!(cause, ReturnCause::Abandoned | ReturnCause::LockExpired | ReturnCause::SessionExpired);
        // In dead-letter queues nothing counts and nothing expires: messages stay until somebody takes them.
        let counted = counts && mailbox.is_main();
        if self.is_expired(now, record) {
            return self.expire(now, record, overlay, counted, outcome);
        }
        let deferred = record.place() == Place::LockedDeferred;
        let attempts = u32::from(record.deliveries).saturating_add(u32::from(counted));
        if counted && !deferred && attempts >= self.attempts_max(mailbox) {
            let description = format!("Message could not be consumed after {attempts} delivery attempts.");
            let reasons = Overlay::dead_letter(Some("MaxDeliveryCountExceeded"), Some(&description));
            let overlay = self.laid_over(record, overlay, reasons);
            let to = MailboxId::dead_letter(mailbox.entity());
            return self.bury(
                now,
                (mailbox, sequence),
                to,
                DeadLetterCause::MaxDeliveries,
                counted,
                overlay,
                outcome,
            );
        }
        outcome.facts.push(Fact::Returned {
            mailbox,
            sequence,
            cause,
            at: now,
            counted,
            overlay,
            not_before,
        });
    }

    /// Ends a message that has outlived its time.
    pub(crate) fn expire(
        &self,
        now: Timestamp,
        record: &Record,
        overlay: Option<Arc<Overlay>>,
        counted: bool,
        outcome: &mut Outcome,
    ) {
        let (mailbox, sequence) = (record.mailbox, record.sequence);
        let outlet = self.catalogue.entity(mailbox.entity()).and_then(|entity| entity.outlet());
        let kept = outlet.is_some_and(|outlet| outlet.dead_letter_on_expiry);
        let deferred = matches!(record.place(), Place::Deferred | Place::LockedDeferred);
        if kept && !deferred {
            let description = "The message expired and was dead lettered.";
            let reasons = Overlay::dead_letter(Some("TTLExpiredException"), Some(description));
            let overlay = self.laid_over(record, overlay, reasons);
            let to = MailboxId::dead_letter(mailbox.entity());
            self.bury(now, (mailbox, sequence), to, DeadLetterCause::Expired, counted, overlay, outcome);
        } else {
            outcome.facts.push(Fact::Removed { mailbox, sequence, cause: RemovalCause::Expired, at: now });
        }
    }

    /// Moves a message to a dead-letter queue of its entity.
    #[expect(clippy::too_many_arguments, reason = "each is a field of the fact")]
    pub(crate) fn bury(
        &self,
        now: Timestamp,
        (mailbox, sequence): (MailboxId, Sequence),
        to: MailboxId,
        cause: DeadLetterCause,
        counted: bool,
        overlay: Option<Arc<Overlay>>,
        outcome: &mut Outcome,
    ) {
        let entity = self.catalogue.entity(mailbox.entity());
        let source: Arc<str> = entity.map(|entity| entity.path.to_string()).unwrap_or_default().into();
        outcome.facts.push(Fact::DeadLettered {
            mailbox,
            sequence,
            to,
            cause,
            at: now,
            counted,
            source,
            overlay,
        });
    }

    /// Whether a message has outlived its time. Nothing expires in a dead-letter queue.
    pub(crate) fn is_expired(&self, now: Timestamp, record: &Record) -> bool {
        record.extra.is_some()
            && record.mailbox.is_main()
            && self.extras.get(record.extra).is_some_and(|extra| extra.expires <= now)
    }

    /// The changes on a message, `newer` or else its own, with the reason of its end on top.
    pub(crate) fn laid_over(
        &self,
        record: &Record,
        newer: Option<Arc<Overlay>>,
        reasons: Overlay,
    ) -> Option<Arc<Overlay>> {
        let own = || self.extras.get(record.extra).and_then(|extra| extra.overlay.clone());
        let below = newer.or_else(own);
        Overlay::merged(below.as_ref(), Some(&Arc::new(reasons)))
    }

    fn attempts_max(&self, mailbox: MailboxId) -> u32 {
        let outlet = self.catalogue.entity(mailbox.entity()).and_then(|entity| entity.outlet());
        outlet.map_or(u32::MAX, |outlet| outlet.max_delivery_count)
    }

    /// Ends a session's lock, and with it the locks of its messages.
    pub(crate) fn end_session_lock(
        &self,
        now: Timestamp,
        handle: Handle,
        cause: ReturnCause,
        outcome: &mut Outcome,
    ) {
        let Some(session) = self.sessions.get(handle).filter(|session| session.lock.is_some()) else {
            return;
        };
        for sequence in &session.locked {
            let message = self.find(session.mailbox, *sequence).and_then(|handle| self.records.get(handle));
            if let Some(lock) = message.and_then(|record| self.locks.get(record.next)) {
                self.give_back(now, lock, cause, None, None, outcome);
            }
        }
        let (mailbox, session) = (session.mailbox, session.name.clone());
        outcome.facts.push(Fact::SessionUnlocked { mailbox, session, at: now });
    }
}
