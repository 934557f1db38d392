//! Making locks last longer.

use crate::effect::{Effect, Outcome, Reply};
use crate::fact::Fact;
use crate::id::{LockToken, MailboxId, RequestTag, Sequence};
use crate::refusal::Refusal;
use crate::state::State;
use crate::store::Place;
use crate::time::{Span, Timestamp};

impl State {
    pub(crate) fn decide_renew(
        &self,
        now: Timestamp,
        request: RequestTag,
        mailbox: MailboxId,
        tokens: &[LockToken],
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.check_tokens(tokens)?;
        let until = now.after(self.lock_duration(mailbox)?);
        // Said of the entity, whatever the tokens are worth: trying other ones is useless.
        let in_sessions = self.owner(mailbox)?.outlet().is_some_and(|outlet| outlet.requires_session);
        if in_sessions && mailbox.is_main() {
            return Err(Refusal::RenewInSession);
        }
        for token in tokens {
            let lock = self.held(now, mailbox, *token)?;
            outcome.facts.push(Fact::Renewed { mailbox, sequence: lock.sequence, at: now, until });
        }
        let until = vec![until; tokens.len()];
        outcome.effects.push(Effect::Reply { request, reply: Reply::Renewed { until } });
        Ok(())
    }

    pub(crate) fn apply_renewed(
        &mut self,
        (mailbox, sequence): (MailboxId, Sequence),
        at: Timestamp,
        until: Timestamp,
    ) -> Option<()> {
        let record = self.records.get(self.find(mailbox, sequence)?)?;
        if !matches!(record.place(), Place::Locked | Place::LockedDeferred) {
            return None;
        }
        let lock = record.next;
        self.advance(at);
        self.locks.renew(lock, at, until);
        Some(())
    }

    /// How long locks of a mailbox last.
    pub(crate) fn lock_duration(&self, mailbox: MailboxId) -> Result<Span, Refusal> {
        match self.owner(mailbox)?.outlet() {
            Some(outlet) => Ok(outlet.lock_duration),
            None => Err(Refusal::MailboxNotFound { mailbox }),
        }
    }
}
