//! How much there is of everything. What it is by level, and what was seen of it, is in
//! [`observe`](crate::observe).

use crate::id::{EntityId, MailboxId};
use crate::mailbox::Counts;
use crate::state::State;

impl State {
    /// How many messages a mailbox holds in which state. One that was never used holds none.
    #[must_use]
    pub fn counts(&self, mailbox: MailboxId) -> Counts {
        self.mailboxes.get(&mailbox).map(|mailbox| mailbox.counts).unwrap_or_default()
    }

    /// The bytes that count against an entity's quota; a subscription's count against its topic's.
    #[must_use]
    pub fn size(&self, entity: EntityId) -> u64 {
        self.sizes.get(&entity).copied().unwrap_or(0)
    }

    /// How many messages named a class that does not exist there, since the process began.
    #[must_use]
    pub fn unknown_classes(&self, mailbox: MailboxId) -> u64 {
        self.mailboxes.get(&mailbox).map_or(0, |mailbox| mailbox.observations.unknown_classes())
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
