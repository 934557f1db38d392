//! What the holder of a session may do with it, and what everybody may ask about sessions.

use bytes::Bytes;

use crate::effect::{Effect, Outcome, Reply};
use crate::fact::Fact;
use crate::id::{MailboxId, ReceiverId, RequestTag, SessionId};
use crate::refusal::Refusal;
use crate::session::Session;
use crate::state::State;
use crate::store::Handle;
use crate::time::Timestamp;

impl State {
    pub(crate) fn decide_renew_session(
        &self,
        now: Timestamp,
        request: RequestTag,
        (mailbox, session, receiver): (MailboxId, &SessionId, ReceiverId),
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.held_session(now, mailbox, session, receiver)?;
        let until = now.after(self.lock_duration(mailbox)?);
        outcome.facts.push(Fact::SessionRenewed { mailbox, session: session.clone(), until });
        outcome.effects.push(Effect::Reply { request, reply: Reply::SessionRenewed { until } });
        Ok(())
    }

    pub(crate) fn decide_set_session_state(
        &self,
        now: Timestamp,
        request: RequestTag,
        (mailbox, session, receiver): (MailboxId, &SessionId, ReceiverId),
        state: Option<&Bytes>,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.held_session(now, mailbox, session, receiver)?;
        let (size, limit) = (state.map_or(0, Bytes::len), self.limits.session_state_bytes_max);
        if size > limit {
            return Err(Refusal::SessionStateTooLarge { size, limit });
        }
        let (session, state) = (session.clone(), state.cloned());
        outcome.facts.push(Fact::SessionStateSet { mailbox, session, state, at: now });
        outcome.effects.push(Effect::Reply { request, reply: Reply::Done });
        Ok(())
    }

    /// A session's state, for its holder.
    pub fn session_state(
        &self,
        now: Timestamp,
        mailbox: MailboxId,
        session: &SessionId,
        receiver: ReceiverId,
    ) -> Result<Option<Bytes>, Refusal> {
        let now = now.max(self.now);
        self.held_session(now, mailbox, session, receiver).map(|session| session.state.clone())
    }

    /// The sessions of a mailbox in the order of names, from after `after` on: those with messages or
    /// state, or, if a time is given, those whose state was set after it.
    pub fn list_sessions(
        &self,
        mailbox: MailboxId,
        updated_after: Option<Timestamp>,
        after: Option<&SessionId>,
        skip: usize,
        top: usize,
    ) -> Result<Vec<SessionId>, Refusal> {
        let owner = self.owner(mailbox)?;
        if !owner.outlet().is_some_and(|outlet| outlet.requires_session) {
            return Err(Refusal::NoSessions { entity: owner.id });
        }
        let table = self.mailboxes.get(&mailbox).and_then(|mailbox| mailbox.sessions.as_ref());
        let wanted = |handle: Handle| {
            self.sessions.get(handle).is_some_and(|session| match updated_after {
                Some(time) => session.state.is_some() && session.updated > time,
                None => session.state.is_some() || session.messages > session.scheduled,
            })
        };
        let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let names = table
            .into_iter()
            .flat_map(|table| table.names.range::<SessionId, _>((from, std::ops::Bound::Unbounded)));
        let wanted = names.filter(|(_, handle)| wanted(**handle)).map(|(name, _)| name.clone());
        Ok(wanted.skip(skip).take(top).collect())
    }

    fn held_session(
        &self,
        now: Timestamp,
        mailbox: MailboxId,
        name: &SessionId,
        receiver: ReceiverId,
    ) -> Result<&Session, Refusal> {
        let session = self.session_of(mailbox, name).and_then(|handle| self.sessions.get(handle));
        session
            .filter(|session| {
                session.lock.is_some_and(|lock| lock.receiver == Some(receiver) && now < lock.until)
            })
            .ok_or_else(|| Refusal::SessionLockLost { session: name.clone() })
    }

    fn session_of(&self, mailbox: MailboxId, name: &SessionId) -> Option<Handle> {
        self.mailboxes.get(&mailbox)?.sessions.as_ref()?.names.get(name).copied()
    }

    pub(crate) fn apply_session_renewed(
        &mut self,
        mailbox: MailboxId,
        name: &SessionId,
        until: Timestamp,
    ) -> Option<()> {
        let handle = self.session_of(mailbox, name)?;
        let lock = self.sessions.get_mut(handle)?.lock.as_mut()?;
        let old = std::mem::replace(&mut lock.until, until);
        self.timers.session_locks.remove(&(old, handle));
        self.timers.session_locks.insert((until, handle));
        Some(())
    }

    pub(crate) fn apply_session_unlocked(
        &mut self,
        mailbox: MailboxId,
        name: &SessionId,
        at: Timestamp,
    ) -> Option<()> {
        let handle = self.session_of(mailbox, name)?;
        let lock = self.sessions.get_mut(handle)?.lock.take()?;
        self.advance(at);
        self.timers.session_locks.remove(&(lock.until, handle));
        if let Some(receiver) = lock.receiver.and_then(|receiver| self.receivers.get_mut(&receiver)) {
            receiver.session = Handle::NONE;
        }
        self.rank_session(handle);
        self.close_session_if_over(handle);
        Some(())
    }

    pub(crate) fn apply_session_state(
        &mut self,
        mailbox: MailboxId,
        name: &SessionId,
        state: Option<&Bytes>,
        at: Timestamp,
    ) -> Option<()> {
        let handle = self.session_of(mailbox, name)?;
        self.advance(at);
        let session = self.sessions.get_mut(handle)?;
        let old = std::mem::replace(&mut session.state, state.cloned());
        session.updated = at;
        let size = |state: Option<&Bytes>| state.map_or(0, |state| u64::try_from(state.len()).unwrap_or(0));
        let account = self.mailboxes.get(&mailbox)?.account;
        let total = self.sizes.entry(account).or_default();
        *total = total.saturating_add(size(state)).saturating_sub(size(old.as_ref()));
        self.close_session_if_over(handle);
        Some(())
    }
}
