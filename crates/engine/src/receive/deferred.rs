//! Receiving what was put aside, by its numbers.

use crate::command::ReceiveMode;
use crate::effect::{Effect, Outcome, Reply};
use crate::fact::Fact;
use crate::id::{LockToken, MailboxId, ReceiverId, RequestTag, Sequence};
use crate::lock::token::Purpose;
use crate::refusal::{Countable, Refusal};
use crate::send::draft::Draft;
use crate::state::State;
use crate::store::{Place, Record};
use crate::time::Timestamp;

impl State {
    pub(crate) fn decide_receive_deferred(
        &self,
        now: Timestamp,
        (request, id): (RequestTag, MailboxId),
        sequences: &[Sequence],
        mode: ReceiveMode,
        receiver: Option<ReceiverId>,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let owner = self.owner(id)?;
        if !owner.shared().status.allows_receive() {
            return Err(Refusal::ReceiveDisabled { entity: owner.id });
        }
        self.check_numbers(sequences)?;
        let duration = self.lock_duration(id)?;
        let rescue = self.mailboxes.get(&id).map_or(0, |mailbox| mailbox.rescue);
        let mut draft = Draft::default();
        let mut messages = Vec::with_capacity(sequences.len());
        for &sequence in sequences {
            let record = self.deferred(now, id, sequence)?;
            let session_until = self.check_session(now, record, receiver)?;
            let lock = match mode {
                ReceiveMode::PeekLock => {
                    let until = session_until.unwrap_or_else(|| now.after(duration));
                    let token = LockToken(draft.make(self, Purpose::Lock));
                    let (mailbox, at, receiver) = (id, now, None);
                    outcome.facts.push(Fact::Locked {
                        mailbox,
                        sequence,
                        token,
                        at,
                        until,
                        receiver,
                        rescue,
                    });
                    Some((token, until))
                }
                ReceiveMode::ReceiveAndDelete => {
                    let (mailbox, at, receiver) = (id, now, None);
                    outcome.facts.push(Fact::Taken { mailbox, sequence, at, receiver, rescue });
                    None
                }
            };
            messages.push(self.delivery_under(record, lock));
        }
        outcome.effects.push(Effect::Reply { request, reply: Reply::Received { messages } });
        Ok(())
    }

    fn deferred(&self, now: Timestamp, mailbox: MailboxId, sequence: Sequence) -> Result<&Record, Refusal> {
        let record = self.find(mailbox, sequence).and_then(|handle| self.records.get(handle));
        record
            .filter(|record| record.place() == Place::Deferred && !self.is_expired(now, record))
            .ok_or(Refusal::MessageNotFound { sequence })
    }

    /// When the lock of a message's session ends, if it has one and `receiver` holds it.
    fn check_session(
        &self,
        now: Timestamp,
        record: &Record,
        receiver: Option<ReceiverId>,
    ) -> Result<Option<Timestamp>, Refusal> {
        let (_, _, session) = self.expiry_of(record);
        let Some(session) = self.sessions.get(session) else { return Ok(None) };
        match session.lock {
            Some(lock) if receiver.is_some() && lock.receiver == receiver && now < lock.until => {
                Ok(Some(lock.until))
            }
            _ => Err(Refusal::SessionLockLost { session: session.name.clone() }),
        }
    }

    /// Whether a list of numbers is of a size that is allowed, without naming one twice.
    pub(crate) fn check_numbers(&self, sequences: &[Sequence]) -> Result<(), Refusal> {
        let limit = self.limits.numbers_per_request_max;
        if sequences.is_empty() || sequences.len() > limit {
            return Err(Refusal::RequestSize {
                what: Countable::Sequences,
                count: u64::try_from(sequences.len()).unwrap_or(u64::MAX),
                limit: u64::try_from(limit).unwrap_or(u64::MAX),
            });
        }
        let mut sorted = sequences.to_vec();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find_map(|pair| match pair {
            [left, right] if left == right => Some(*left),
            _ => None,
        });
        twice.map_or(Ok(()), |sequence| Err(Refusal::NamedTwice { sequence }))
    }
}
