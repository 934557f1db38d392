//! Making deliveries so: locking and removing.

use crate::id::{LockToken, MailboxId, ReceiverId, Sequence};
use crate::lock::Lock;
use crate::state::State;
use crate::store::{Handle, Place, Record};
use crate::time::Timestamp;

impl State {
    pub(crate) fn apply_locked(
        &mut self,
        (mailbox, sequence): (MailboxId, Sequence),
        token: LockToken,
        (at, until): (Timestamp, Timestamp),
        receiver: Option<ReceiverId>,
        rescue: u16,
    ) -> Option<()> {
        self.count_made();
        let handle = self.find(mailbox, sequence)?;
        let record = *self.records.get(handle)?;
        let place = match record.place() {
            Place::Listed | Place::Returned | Place::Dated => Place::Locked,
            Place::Deferred => Place::LockedDeferred,
            _ => return None,
        };
        self.advance(at);
        self.delivered(&record, at, rescue);
        self.pull(handle, &record, place)?;
        let (_, _, session) = self.expiry_of(&record);
        let mut lock = Lock::new(token, mailbox, sequence, handle);
        (lock.since, lock.until, lock.session) = (at, until, session);
        let lock = self.locks.insert(lock);
        self.stand_locked(handle, place, lock)?;
        if let Some(receiver) = receiver {
            self.spend_credit(receiver, mailbox);
        }
        Some(())
    }

    pub(crate) fn apply_taken(
        &mut self,
        (id, sequence): (MailboxId, Sequence),
        at: Timestamp,
        receiver: Option<ReceiverId>,
        rescue: u16,
    ) -> Option<()> {
        let handle = self.find(id, sequence)?;
        let record = *self.records.get(handle)?;
        self.advance(at);
        self.delivered(&record, at, rescue);
        let live = self.live;
        let (record, mailbox) = self.erase(handle)?;
        if live {
            mailbox.observations.at(record.level, at).completed(at, record.eligible, None);
        }
        if let Some(receiver) = receiver {
            self.spend_credit(receiver, id);
        }
        Some(())
    }

    /// Notes a delivery in the mailbox's account and observations.
    fn delivered(&mut self, record: &Record, at: Timestamp, rescue: u16) {
        self.catalogue.touch(record.mailbox.entity(), at);
        if let Some(mailbox) = self.mailboxes.get_mut(&record.mailbox) {
            mailbox.rescue = rescue;
            if self.live {
                // The wait that people are promised.
                let target =
                    if record.mailbox.is_main() { mailbox.ordering.promised(record.level) } else { None };
                mailbox.observe_delivered(record, at, target);
            }
        }
    }

    /// The token a message is locked under.
    pub(crate) fn token_of(&self, handle: Handle) -> Option<LockToken> {
        let record = self.records.get(handle)?;
        let locked = matches!(record.place(), Place::Locked | Place::LockedDeferred);
        locked.then(|| self.locks.get(record.next).map(|lock| lock.token))?
    }
}
