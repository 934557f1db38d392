//! Settlement as receivers ask for it.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::command::{Settle, Settlement};
use crate::effect::{Effect, Outcome, Reply};
use crate::fact::{DeadLetterCause, Fact, RemovalCause, ReturnCause};
use crate::id::{LockToken, MailboxId, Sequence};
use crate::lock::Lock;
use crate::message::Overlay;
use crate::refusal::{Countable, Refusal};
use crate::state::State;
use crate::time::Timestamp;

impl State {
    pub(crate) fn decide_settle(
        &self,
        now: Timestamp,
        settle: &Settle,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        if let Some(transaction) = settle.transaction {
            return self.decide_enlist_settle(now, settle, transaction, outcome);
        }
        self.plan_settle(now, settle, outcome)?;
        outcome.effects.push(Effect::Reply { request: settle.request, reply: Reply::Done });
        Ok(())
    }

    /// Checks a settlement and adds what becomes of it, as part of a decision. Locks that are part of a
    /// transaction can be settled by it alone.
    pub(crate) fn plan_settle(
        &self,
        now: Timestamp,
        settle: &Settle,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.check_token_count(&settle.tokens)?;
        let mut last = Sequence(0);
        for token in &settle.tokens {
            let lock = self.held(now, settle.mailbox, *token)?;
            // Messages are settled in nearly the order of their numbers: while those grow, no lock is named twice.
            if lock.sequence > last {
                last = lock.sequence;
            } else if last != Sequence(u64::MAX) {
                check_named_once(&settle.tokens)?;
                last = Sequence(u64::MAX);
            }
            if let Some(transaction) = self.locks.transaction(lock)
                && settle.transaction != Some(transaction)
            {
                return Err(Refusal::LockEnlisted { token: *token, transaction });
            }
            self.plan_settlement(now, lock, &settle.settlement, outcome)?;
        }
        Ok(())
    }

    fn plan_settlement(
        &self,
        now: Timestamp,
        lock: &Lock,
        settlement: &Settlement,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let (mailbox, sequence) = (lock.mailbox, lock.sequence);
        match settlement {
            Settlement::Complete => {
                let cause = RemovalCause::Completed;
                outcome.facts.push(Fact::Removed { mailbox, sequence, cause, at: now });
            }
            Settlement::Abandon { changes, delay } => {
                let overlay = self.changed(lock, changes.as_ref())?;
                let until = delay.filter(|delay| delay.0 > 0).map(|delay| now.after(delay));
                self.give_back(now, lock, ReturnCause::Abandoned, overlay, until, outcome);
            }
            Settlement::Release => self.give_back(now, lock, ReturnCause::Released, None, None, outcome),
            Settlement::Suspend { checkpoint } => {
                let overlay = self.changed(lock, checkpoint.as_ref())?;
                self.give_back(now, lock, ReturnCause::Suspended, overlay, None, outcome);
            }
            Settlement::Defer { changes } => {
                let overlay = self.changed(lock, changes.as_ref())?;
                outcome.facts.push(Fact::Deferred { mailbox, sequence, at: now, overlay });
            }
            Settlement::DeadLetter { reason, description, changes } => {
                let reasons = Overlay::dead_letter(self.cut(reason.as_ref()), self.cut(description.as_ref()));
                let all = Overlay::merged(changes.as_ref(), Some(&Arc::new(reasons)));
                let overlay = self.changed(lock, all.as_ref())?;
                if mailbox.is_main() {
                    let to = MailboxId::dead_letter(mailbox.entity());
                    self.bury(
                        now,
                        (mailbox, sequence),
                        to,
                        DeadLetterCause::Application,
                        false,
                        overlay,
                        outcome,
                    );
                } else {
                    // There is no dead-letter queue of a dead-letter queue: it stays, with the new reason.
                    self.give_back(now, lock, ReturnCause::Abandoned, overlay, None, outcome);
                }
            }
        }
        Ok(())
    }

    /// The lock with this token, if it is held in this mailbox now.
    pub(crate) fn held(
        &self,
        now: Timestamp,
        mailbox: MailboxId,
        token: LockToken,
    ) -> Result<&Lock, Refusal> {
        let lost = || Refusal::LockLost { token };
        let lock = self.locks.find(token).filter(|lock| lock.mailbox == mailbox).ok_or_else(lost)?;
        match self.sessions.get(lock.session) {
            None if now < lock.until => Ok(lock),
            None => Err(lost()),
            Some(session) if session.lock.is_some_and(|held| now < held.until) => Ok(lock),
            Some(session) => Err(Refusal::SessionLockLost { session: session.name.clone() }),
        }
    }

    /// Checks that locks are named, not too many, and none twice.
    pub(crate) fn check_tokens(&self, tokens: &[LockToken]) -> Result<(), Refusal> {
        self.check_token_count(tokens)?;
        check_named_once(tokens)
    }

    fn check_token_count(&self, tokens: &[LockToken]) -> Result<(), Refusal> {
        let limit = self.limits.numbers_per_request_max;
        if tokens.is_empty() || tokens.len() > limit {
            return Err(Refusal::RequestSize {
                what: Countable::Tokens,
                count: u64::try_from(tokens.len()).unwrap_or(u64::MAX),
                limit: u64::try_from(limit).unwrap_or(u64::MAX),
            });
        }
        Ok(())
    }

    /// All changes on a locked message with these added; none if nothing is added.
    fn changed(&self, lock: &Lock, changes: Option<&Arc<Overlay>>) -> Result<Option<Arc<Overlay>>, Refusal> {
        let Some(changes) = changes.filter(|changes| !changes.is_empty()) else { return Ok(None) };
        let record = self.records.get(lock.message);
        let extra = record.and_then(|record| self.extras.get(record.extra));
        let merged = Overlay::merged(extra.and_then(|extra| extra.overlay.as_ref()), Some(changes));
        let size = merged.as_ref().map_or(0, |overlay| overlay.size());
        let limit = self.limits.overlay_bytes_max;
        if size > limit { Err(Refusal::ChangesTooLarge { size, limit }) } else { Ok(merged) }
    }

    /// A reason as long as it may be.
    fn cut<'a>(&self, text: Option<&'a Arc<str>>) -> Option<&'a str> {
        let text = text?;
        let end = text.char_indices().nth(self.limits.reason_chars_max).map_or(text.len(), |(end, _)| end);
        text.get(..end)
    }
}

fn check_named_once(tokens: &[LockToken]) -> Result<(), Refusal> {
    if tokens.len() > 1 {
        let mut sorted: SmallVec<[LockToken; 16]> = tokens.into();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| matches!(pair, [left, right] if left == right));
        if let Some([token, _]) = twice {
            return Err(Refusal::LockLost { token: *token });
        }
    }
    Ok(())
}
