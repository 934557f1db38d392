//! Transactions: sends and settlements over several entities that happen together or not at all.
//!
//! What joins a transaction is checked at once, by the very code that will do it, but done at commit. If
//! something is no longer possible then (a lock has expired, a queue is full), nothing is done and the
//! client is told why. Something that is refused when it wants to join spoils the transaction: a client
//! that does not look at the answer must not commit the rest.

mod table;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::command::{Send, Settle};
use crate::effect::{Effect, Outcome, Reply};
use crate::fact::Fact;
use crate::id::{MailboxId, RequestTag, Sequence, TransactionId};
use crate::lock::token::{self, Purpose};
use crate::refusal::Refusal;
use crate::send::draft::Draft;
use crate::state::State;
use crate::time::Timestamp;

use table::Operation;
pub(crate) use table::Transactions;

/// The numbers of a send's messages, and the next free one of their mailbox if any were reserved.
type Promised = (SmallVec<[Sequence; 1]>, Option<(MailboxId, Sequence)>);

impl State {
    pub(crate) fn decide_declare(
        &self,
        now: Timestamp,
        request: RequestTag,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.transactions.check_declare(&self.limits)?;
        let identity = self.identity;
        let (seed, count) = (identity.seed.unwrap_or(0), identity.made_volatile);
        let transaction = TransactionId(token::make(seed, identity.generation, count, Purpose::Transaction));
        outcome.facts.push(Fact::TransactionDeclared { transaction, at: now });
        outcome.effects.push(Effect::Reply { request, reply: Reply::Declared { transaction } });
        Ok(())
    }

    /// Lets a send join a transaction, or spoils the transaction if the send is not possible.
    pub(crate) fn decide_enlist_send(
        &self,
        now: Timestamp,
        send: &Send,
        transaction: TransactionId,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.transactions.get(transaction)?;
        match self.check_enlist_send(now, send, transaction) {
            Ok((sequences, reserved)) => {
                if let Some((mailbox, next)) = reserved {
                    outcome.facts.push(Fact::Reserved { mailbox, next });
                }
                let reply = Reply::Sent { sequences: sequences.clone() };
                outcome.facts.push(Fact::SendEnlisted { send: Arc::new(send.clone()), sequences, at: now });
                outcome.effects.push(Effect::Reply { request: send.request, reply });
            }
            Err(refusal) => spoil(send.request, transaction, refusal, outcome),
        }
        Ok(())
    }

    /// The numbers promised to the messages, and what that reserves. Only scheduled messages are told
    /// theirs before the commit; all others are numbered when they come in, so that numbers grow in the
    /// order of arrival.
    fn check_enlist_send(
        &self,
        now: Timestamp,
        send: &Send,
        transaction: TransactionId,
    ) -> Result<Promised, Refusal> {
        let bytes = send.messages.iter().map(|message| u64::from(message.size())).sum();
        self.transactions.check_join(transaction, send.messages.len(), bytes, &self.limits)?;
        self.plan_send(now, send, &mut Draft::default(), &mut Outcome::default())?;
        let mailbox = MailboxId::main(send.entity);
        let mut draft = Draft::default();
        let mut reserved = None;
        let promise = |message: &crate::message::Incoming| {
            if message.scheduled_for.is_none_or(|due| due <= now) {
                return Sequence(0);
            }
            let sequence = draft.number(self, mailbox);
            reserved = Some((mailbox, sequence.next()));
            sequence
        };
        let sequences = send.messages.iter().map(promise).collect();
        Ok((sequences, reserved))
    }

    /// Lets a settlement join a transaction, or spoils the transaction if it is not possible.
    pub(crate) fn decide_enlist_settle(
        &self,
        now: Timestamp,
        settle: &Settle,
        transaction: TransactionId,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.transactions.get(transaction)?;
        let checked = self
            .transactions
            .check_join(transaction, settle.tokens.len(), 0, &self.limits)
            .and_then(|()| self.check_not_enlisted(settle))
            .and_then(|()| self.plan_settle(now, settle, &mut Outcome::default()));
        match checked {
            Ok(()) => {
                outcome.facts.push(Fact::SettlementEnlisted { settle: Arc::new(settle.clone()), at: now });
                outcome.effects.push(Effect::Reply { request: settle.request, reply: Reply::Done });
            }
            Err(refusal) => spoil(settle.request, transaction, refusal, outcome),
        }
        Ok(())
    }

    fn check_not_enlisted(&self, settle: &Settle) -> Result<(), Refusal> {
        for token in &settle.tokens {
            if let Some(transaction) = self.locks.find(*token).and_then(|lock| self.locks.transaction(lock)) {
                return Err(Refusal::LockEnlisted { token: *token, transaction });
            }
        }
        Ok(())
    }

    pub(crate) fn decide_discharge(
        &self,
        now: Timestamp,
        request: Option<RequestTag>,
        transaction: TransactionId,
        rollback: bool,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let open = self.transactions.get(transaction)?;
        let mut done = Outcome::default();
        let result = match open.poisoned() {
            _ if rollback => Ok(()),
            Some(cause) => Err(cause.clone()),
            None => self.commit(now, open.operations(), &mut done),
        };
        let answer = match result {
            Ok(()) => {
                outcome.facts.append(&mut done.facts);
                outcome.effects.append(&mut done.effects);
                request.map(|request| Effect::Reply { request, reply: Reply::Done })
            }
            Err(cause) => request.map(|request| {
                let cause = Box::new(cause);
                Effect::Refuse { request, refusal: Refusal::TransactionRolledBack { transaction, cause } }
            }),
        };
        outcome.facts.push(Fact::TransactionEnded { transaction });
        outcome.effects.extend(answer);
        Ok(())
    }

    /// Does everything that joined, as one decision.
    fn commit(&self, now: Timestamp, operations: &[Operation], done: &mut Outcome) -> Result<(), Refusal> {
        let mut draft = Draft::default();
        for operation in operations {
            match operation {
                Operation::Send { send, sequences } => {
                    let mailbox = MailboxId::main(send.entity);
                    draft.promise(
                        mailbox,
                        sequences.iter().copied().filter(|promised| *promised != Sequence(0)),
                    );
                    self.plan_send(now, send, &mut draft, done)?;
                }
                Operation::Settle(settle) => self.plan_settle(now, settle, done)?,
            }
        }
        Ok(())
    }

    /// When the oldest transaction becomes too old.
    pub(crate) fn transactions_due(&self) -> Option<Timestamp> {
        self.transactions.oldest().map(|(since, _)| since.after(self.limits.transaction_time_max))
    }

    /// Rolls back the transaction that has been open for the longest time.
    pub(crate) fn end_old_transaction(&self, outcome: &mut Outcome) {
        let oldest = self.transactions.oldest();
        outcome.facts.extend(oldest.map(|(_, transaction)| Fact::TransactionEnded { transaction }));
    }

    pub(crate) fn apply_transaction(&mut self, fact: &Fact) -> Option<()> {
        match fact {
            Fact::TransactionDeclared { transaction, at } => {
                self.identity.made_volatile = self.identity.made_volatile.saturating_add(1);
                self.advance(*at);
                self.transactions.declare(*transaction, *at)
            }
            Fact::SendEnlisted { send, sequences, at } => {
                self.advance(*at);
                self.transactions.enlist_send(send, sequences, *at)
            }
            Fact::SettlementEnlisted { settle, at } => {
                self.advance(*at);
                self.transactions.enlist_settle(settle, *at)?;
                self.mark_locks(settle, settle.transaction);
                Some(())
            }
            Fact::TransactionPoisoned { transaction, cause } => self.transactions.poison(*transaction, cause),
            Fact::TransactionEnded { transaction } => {
                let ended = self.transactions.end(*transaction)?;
                for operation in ended.operations() {
                    if let Operation::Settle(settle) = operation {
                        self.mark_locks(settle, None);
                    }
                }
                Some(())
            }
            _ => None,
        }
    }

    /// Notes on locks which transaction will settle them. A lock that is gone needs no note.
    fn mark_locks(&mut self, settle: &Settle, transaction: Option<TransactionId>) {
        for token in &settle.tokens {
            self.locks.enlist(*token, transaction);
        }
    }
}

fn spoil(request: RequestTag, transaction: TransactionId, refusal: Refusal, outcome: &mut Outcome) {
    outcome.facts.push(Fact::TransactionPoisoned { transaction, cause: Box::new(refusal.clone()) });
    outcome.effects.push(Effect::Refuse { request, refusal });
}

#[cfg(test)]
mod tests;
