//! Making it so.

use std::sync::Arc;

use crate::fact::{DeadLetterCause, RemovalCause, ReturnCause};
use crate::id::{MailboxId, Sequence};
use crate::message::Overlay;
use crate::state::State;
use crate::store::{Handle, Place, Record};
use crate::time::Timestamp;

impl State {
    pub(crate) fn apply_removed(
        &mut self,
        (id, sequence): (MailboxId, Sequence),
        cause: RemovalCause,
        at: Timestamp,
    ) -> Option<()> {
        let handle = self.find(id, sequence)?;
        self.advance(at);
        let (live, locked) = (self.live, self.locked_since(handle));
        let (record, mailbox) = self.erase(handle)?;
        if live {
            let series = mailbox.observations.at(record.level, at);
            match cause {
                RemovalCause::Completed => series.completed(at, record.eligible, locked),
                RemovalCause::Expired => series.expired(),
                RemovalCause::Cancelled | RemovalCause::Deleted => {}
            }
        }
        self.catalogue.touch(id.entity(), at);
        Some(())
    }

    pub(crate) fn apply_returned(
        &mut self,
        (mailbox, sequence): (MailboxId, Sequence),
        (cause, at, counted): (ReturnCause, Timestamp, bool),
        overlay: Option<&Arc<Overlay>>,
        not_before: Option<Timestamp>,
    ) -> Option<()> {
        let handle = self.find(mailbox, sequence)?;
        self.advance(at);
        let place = self.records.get(handle)?.place();
        if !matches!(place, Place::Locked | Place::LockedDeferred | Place::Delayed) {
            return None;
        }
        if cause != ReturnCause::DelayOver {
            self.observe_settled(handle, at, true);
        }
        self.withdraw(handle)?;
        self.change(handle, counted, overlay)?;
        match (place, not_before) {
            (Place::LockedDeferred, _) => self.make_deferred(handle),
            (_, Some(until)) => self.make_wait(handle, Place::Delayed, until),
            (_, None) => self.make_ready(handle),
        }
    }

    pub(crate) fn apply_deferred(
        &mut self,
        (mailbox, sequence): (MailboxId, Sequence),
        at: Timestamp,
        overlay: Option<&Arc<Overlay>>,
    ) -> Option<()> {
        let handle = self.find(mailbox, sequence)?;
        self.advance(at);
        self.observe_settled(handle, at, false);
        self.withdraw(handle)?;
        self.change(handle, false, overlay)?;
        self.make_deferred(handle)
    }

    pub(crate) fn apply_dead_lettered(
        &mut self,
        (mailbox, sequence): (MailboxId, Sequence),
        to: MailboxId,
        (cause, at, counted): (DeadLetterCause, Timestamp, bool),
        source: &Arc<str>,
        overlay: Option<&Arc<Overlay>>,
    ) -> Option<()> {
        let handle = self.find(mailbox, sequence)?;
        self.advance(at);
        if self.mailbox_mut(to)?.index.get(sequence).is_some() {
            return None;
        }
        self.observe_settled(handle, at, false);
        self.withdraw(handle)?;
        self.change(handle, counted, overlay)?;
        let record = self.records.get_mut(handle)?;
        record.mailbox = to;
        let (size, level) = (u64::from(record.size), record.level);
        let extra = self.extra_mut(handle)?;
        extra.expires = Timestamp::NEVER;
        extra.dead_letter_source = Some(Arc::clone(source));
        let session = std::mem::replace(&mut extra.session, Handle::NONE);
        if let Some(left) = self.sessions.get_mut(session) {
            left.messages = left.messages.saturating_sub(1);
            self.close_session_if_over(session);
        }
        let live = self.live;
        let from = self.mailboxes.get_mut(&mailbox)?;
        from.index.remove(sequence);
        from.counts.bytes = from.counts.bytes.saturating_sub(size);
        if live {
            let series = from.observations.at(level, at);
            series.dead_lettered(cause);
            if cause == DeadLetterCause::Expired {
                series.expired();
            }
        }
        let to = self.mailboxes.get_mut(&to)?;
        to.index.insert(sequence, handle);
        to.counts.bytes = to.counts.bytes.saturating_add(size);
        self.make_ready(handle)
    }

    pub(crate) fn apply_reprioritised(
        &mut self,
        (mailbox, sequence): (MailboxId, Sequence),
        level: crate::level::Level,
    ) -> Option<()> {
        let handle = self.find(mailbox, sequence)?;
        let place = self.records.get(handle)?.place();
        let ready = matches!(place, Place::Listed | Place::Returned | Place::Dated);
        if ready {
            self.withdraw(handle)?;
        }
        let record = self.records.get_mut(handle)?;
        let old = std::mem::replace(&mut record.level, level);
        record.set_origin(crate::level::LevelOrigin::Operator);
        if !ready && let Some(mailbox) = self.mailboxes.get_mut(&mailbox) {
            mailbox.recount(place, Place::Transit, old);
            mailbox.count_in(place, level);
        }
        if ready { self.make_ready(handle) } else { Some(()) }
    }

    /// Counts a failed delivery and changes properties, on a message in transit.
    fn change(&mut self, handle: Handle, counted: bool, overlay: Option<&Arc<Overlay>>) -> Option<()> {
        if counted {
            let record = self.records.get_mut(handle)?;
            record.deliveries = record.deliveries.saturating_add(1);
        }
        if let Some(overlay) = overlay {
            self.extra_mut(handle)?.overlay = Some(Arc::clone(overlay));
        }
        Some(())
    }

    fn locked_since(&self, handle: Handle) -> Option<Timestamp> {
        let record = self.records.get(handle)?;
        let locked = matches!(record.place(), Place::Locked | Place::LockedDeferred);
        locked.then(|| self.locks.get(record.next).map(|lock| lock.since))?
    }

    /// Notes how long a message was locked.
    fn observe_settled(&mut self, handle: Handle, at: Timestamp, returned: bool) {
        let Some(since) = self.locked_since(handle).filter(|_| self.live) else { return };
        let Some(&Record { level, mailbox, .. }) = self.records.get(handle) else { return };
        if let Some(mailbox) = self.mailboxes.get_mut(&mailbox) {
            let series = mailbox.observations.at(level, at);
            series.settled(at, since);
            if returned {
                series.returned();
            }
        }
    }
}
