//! Taking a session, or waiting for one.

use crate::command::{AcceptSession, ReceiveMode};
use crate::effect::{Effect, Outcome, Reply};
use crate::fact::{Fact, ReturnCause};
use crate::id::{MailboxId, ReceiverId, RequestTag, SessionId};
use crate::mailbox::Mailbox;
use crate::receive::Receiver;
use crate::refusal::{Countable, Refusal};
use crate::session::SessionLock;
use crate::session::table::Waiting;
use crate::state::{Pump, State};
use crate::store::Handle;
use crate::time::Timestamp;

impl State {
    pub(crate) fn decide_accept(
        &self,
        now: Timestamp,
        accept: &AcceptSession,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let AcceptSession { request, receiver, mailbox: id, session, mode, wait } = accept;
        self.check_new_receiver(*receiver)?;
        if !self.check_receivable(*id)? {
            return Err(Refusal::NoSessions { entity: id.entity() });
        }
        let mailbox = self.mailboxes.get(id);
        if let Some(name) = session {
            return self.accept_named(now, accept, name, mailbox, outcome);
        }
        let table = mailbox.and_then(|mailbox| mailbox.sessions.as_ref());
        let queue = table.map_or(0, |table| table.waiting.len());
        if queue == 0
            && let Some(mailbox) = mailbox
            && let Some((handle, rescue)) = best_session(now, mailbox)
        {
            self.push_session_lock(now, (*request, *receiver), (handle, *mode), rescue, outcome);
            return Ok(());
        }
        let wait = (*wait).min(self.limits.accept_wait_max);
        if wait.0 == 0 {
            return Err(Refusal::NoSessionInTime { waited: wait });
        }
        let limit = self.limits.waiting_accepts_max;
        if queue >= limit {
            let limit = u64::try_from(limit).unwrap_or(u64::MAX);
            return Err(Refusal::TooMany { what: Countable::WaitingAccepts, limit });
        }
        outcome.facts.push(Fact::AcceptWaiting {
            request: *request,
            receiver: *receiver,
            mailbox: *id,
            session: None,
            mode: *mode,
            until: now.after(wait),
        });
        Ok(())
    }

    fn accept_named(
        &self,
        now: Timestamp,
        accept: &AcceptSession,
        name: &SessionId,
        mailbox: Option<&Mailbox>,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let table = mailbox.and_then(|mailbox| mailbox.sessions.as_ref());
        let known = table.and_then(|table| table.names.get(name)).copied();
        if let Some(lock) = known.and_then(|handle| self.sessions.get(handle)?.lock) {
            if now < lock.until {
                return Err(Refusal::SessionLocked { session: name.clone() });
            }
            // It ran out in this very instant, and nobody has said so yet.
            self.expire_session(now, known.unwrap_or(Handle::NONE), outcome);
        }
        let limit = self.limits.sessions_max;
        if known.is_none() && table.is_some_and(|table| table.names.len() >= limit) {
            let limit = u64::try_from(limit).unwrap_or(u64::MAX);
            return Err(Refusal::TooMany { what: Countable::Sessions, limit });
        }
        if !name.as_str().is_empty() && name.as_str().chars().nth(self.limits.key_chars_max).is_some() {
            let (what, limit) = (crate::refusal::KeyKind::SessionId, self.limits.key_chars_max);
            return Err(Refusal::KeyTooLong { what, limit });
        }
        let rescue = mailbox.map_or(0, |mailbox| mailbox.rescue);
        let who = (accept.request, accept.receiver);
        self.push_lock_fact(now, who, (accept.mailbox, name.clone(), accept.mode), rescue, outcome);
        Ok(())
    }

    /// Gives the next free session to whoever has waited longest for one.
    pub(crate) fn serve_waiting_accept(&self, now: Timestamp, mailbox: &Mailbox, outcome: &mut Outcome) {
        let Some(table) = &mailbox.sessions else { return };
        let Some(waiting) = table.waiting.front() else { return };
        if now >= waiting.until {
            return give_up(waiting, outcome);
        }
        if let Some((handle, rescue)) = best_session(now, mailbox) {
            let who = (waiting.request, waiting.receiver);
            self.push_session_lock(now, who, (handle, waiting.mode), rescue, outcome);
        }
    }

    fn push_session_lock(
        &self,
        now: Timestamp,
        who: (RequestTag, ReceiverId),
        (handle, mode): (Handle, ReceiveMode),
        rescue: u16,
        outcome: &mut Outcome,
    ) {
        if let Some(session) = self.sessions.get(handle) {
            let what = (session.mailbox, session.name.clone(), mode);
            self.push_lock_fact(now, who, what, rescue, outcome);
        }
    }

    fn push_lock_fact(
        &self,
        now: Timestamp,
        (request, receiver): (RequestTag, ReceiverId),
        (mailbox, session, mode): (MailboxId, SessionId, ReceiveMode),
        rescue: u16,
        outcome: &mut Outcome,
    ) {
        let until = now.after(self.lock_duration(mailbox).unwrap_or_default());
        let reply = Reply::SessionAccepted { receiver, session: session.clone(), until };
        outcome.facts.push(Fact::SessionLocked { mailbox, session, receiver, mode, at: now, until, rescue });
        outcome.effects.push(Effect::Reply { request, reply });
    }

    /// Ends a session's lock because its time is up, and tells its holder.
    pub(crate) fn expire_session(&self, now: Timestamp, handle: Handle, outcome: &mut Outcome) {
        let Some(session) = self.sessions.get(handle) else { return };
        self.end_session_lock(now, handle, ReturnCause::SessionExpired, outcome);
        if let Some(receiver) = session.lock.and_then(|lock| lock.receiver)
            && self.receivers.contains_key(&receiver)
        {
            let refusal = Refusal::SessionLockLost { session: session.name.clone() };
            outcome.facts.push(Fact::ReceiverDetached { receiver, at: now });
            outcome.effects.push(Effect::Detach { receiver, refusal });
        }
    }

    pub(crate) fn apply_session_locked(
        &mut self,
        (mailbox, name): (MailboxId, &SessionId),
        (receiver, mode): (ReceiverId, ReceiveMode),
        (at, until): (Timestamp, Timestamp),
        rescue: u16,
    ) -> Option<()> {
        let handle = self.open_session(mailbox, name)?;
        if self.sessions.get(handle)?.lock.is_some() {
            return None;
        }
        self.advance(at);
        self.catalogue.touch(mailbox.entity(), at);
        self.sessions.get_mut(handle)?.lock = Some(SessionLock { receiver: Some(receiver), mode, until });
        self.timers.session_locks.insert((until, handle));
        self.rank_session(handle);
        self.mailbox_mut(mailbox)?.rescue = rescue;
        self.apply_accept_ended(receiver);
        if self.live {
            self.mailbox_mut(mailbox)?.ring.attached.insert(receiver);
            let attached = Receiver {
                mailboxes: smallvec::smallvec![mailbox],
                mode,
                min_level: crate::level::Level(0),
                selector: None,
                session: handle,
                credit: 0,
                window: 0,
                drain: false,
                queued: false,
                in_line: false,
            };
            self.receivers.insert(receiver, attached);
        }
        self.served(Pump::Mailbox(mailbox));
        Some(())
    }

    pub(crate) fn apply_accept_waiting(&mut self, fact: &Fact) -> Option<()> {
        let Fact::AcceptWaiting { request, receiver, mailbox, mode, until, .. } = fact else { return None };
        let since = self.now;
        let waiting = Waiting { request: *request, receiver: *receiver, mode: *mode, since, until: *until };
        self.mailbox_mut(*mailbox)?.sessions.as_mut()?.waiting.push_back(waiting);
        self.accepting.insert(*receiver, *mailbox);
        self.timers.accepts.insert((*until, *receiver, *mailbox));
        self.touch(*mailbox);
        Some(())
    }

    pub(crate) fn apply_accept_ended(&mut self, receiver: ReceiverId) -> Option<()> {
        let mailbox = self.accepting.remove(&receiver)?;
        let table = self.mailboxes.get_mut(&mailbox)?.sessions.as_mut()?;
        let place = table.waiting.iter().position(|waiting| waiting.receiver == receiver)?;
        let waiting = table.waiting.remove(place)?;
        self.timers.accepts.remove(&(waiting.until, receiver, mailbox));
        Some(())
    }
}

/// The free session that is next, and what choosing it does to the rescue account.
fn best_session(now: Timestamp, mailbox: &Mailbox) -> Option<(Handle, u16)> {
    let table = mailbox.sessions.as_ref()?;
    let (_, best) = table.ranked.first()?;
    let ((oldest, _), longest_waiting) = table.aged.first()?;
    let rescue = &mailbox.ordering.rescue;
    let share = rescue.share.thousandths();
    if !mailbox.ordering.is_strict() || share == 0 || now.since(*oldest) <= rescue.after {
        return Some((*best, 0));
    }
    let saved = mailbox.rescue.saturating_add(share);
    Some(match saved.checked_sub(1_000) {
        Some(left) => (*longest_waiting, left),
        None => (*best, saved),
    })
}

/// Tells a client that it has waited long enough.
pub(crate) fn give_up(waiting: &Waiting, outcome: &mut Outcome) {
    let waited = waiting.until.since(waiting.since);
    outcome.facts.push(Fact::AcceptEnded { receiver: waiting.receiver });
    let refusal = Refusal::NoSessionInTime { waited };
    outcome.effects.push(Effect::Refuse { request: waiting.request, refusal });
}
