//! What an operator may ask about mailboxes: how much is there, how old it is, what was seen of it.

use crate::id::{EntityId, MailboxId};
use crate::lane::Lane;
use crate::lane::lanes::NOBODY;
use crate::level::Level;
use crate::mailbox::Counts;
use crate::observe::Observations;
use crate::state::State;
use crate::time::Timestamp;

/// The ready messages of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The level.
    pub level: Level,
    /// How many, on disk or not.
    pub count: u64,
    /// Since when the oldest of them has been eligible.
    pub oldest: Timestamp,
}

impl State {
    /// How many messages a mailbox holds in which state. One that was never used holds none.
    #[must_use]
    pub fn counts(&self, mailbox: MailboxId) -> Counts {
        self.mailboxes.get(&mailbox).map(|mailbox| mailbox.counts).unwrap_or_default()
    }

    /// The levels at which messages are ready, the highest first. Messages in sessions are not in here.
    #[must_use]
    pub fn waiting(&self, mailbox: MailboxId) -> Vec<Waiting> {
        let Some(mailbox) = self.mailboxes.get(&mailbox) else { return Vec::new() };
        let heads = mailbox.lanes.heads(Level(0)).filter(|(_, head)| *head != NOBODY);
        let mut waiting: Vec<_> = heads
            .map(|(level, (oldest, _))| {
                let count = mailbox.lanes.lane(level).map_or(0, Lane::len);
                Waiting { level, count, oldest }
            })
            .collect();
        waiting.reverse();
        waiting
    }

    /// What this run has seen of a mailbox.
    #[must_use]
    pub fn observations(&self, mailbox: MailboxId) -> Option<&Observations> {
        self.mailboxes.get(&mailbox).map(|mailbox| &mailbox.observations)
    }

    /// The bytes that count against an entity's quota; a subscription's count against its topic's.
    #[must_use]
    pub fn size(&self, entity: EntityId) -> u64 {
        self.sizes.get(&entity).copied().unwrap_or(0)
    }

    /// How many receivers are attached to a mailbox.
    #[must_use]
    pub fn receiver_count(&self, mailbox: MailboxId) -> usize {
        self.mailboxes.get(&mailbox).map_or(0, |mailbox| mailbox.ring.attached.len())
    }

    /// How many message locks are held.
    #[must_use]
    pub fn lock_count(&self) -> u32 {
        self.locks.len()
    }
}
