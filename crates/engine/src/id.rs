//! Names for things that are numbered, each its own type so that they cannot be mixed up.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::entity::SubQueue;

/// A queue, topic or subscription. Given at creation and never used again, so that a deleted and
/// re-created entity of the same name is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u32);

/// A place that holds messages: an entity's main queue or one of its sub-queues.
///
/// The number is the entity's, times four, plus the part: looking one up needs no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailboxId(pub u32);

/// The most entities a namespace can ever have created: a mailbox number must fit its type.
pub const ENTITIES_EVER_MAX: u32 = u32::MAX / 4;

/// A session's name within its entity, as the sender chose it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub Arc<str>);

/// What a caller wrote on its request to find the answer again. Opaque to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RequestTag(pub u64);

/// A stretch of messages that lies on disk in lane order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// A message's number within its entity: starts at 1, grows by one, is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(pub u64);

/// Where a message's bytes lie. Opaque to the engine but for the region, which it counts:
/// a region that no message points into can be used again by the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(pub u64);

/// The part of the log (a segment or an extent) that a [`Location`] points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(pub u32);

/// The proof of a peek-lock: new for every delivery, unguessable, valid until settled or expired.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockToken(pub u128);

/// A receiving link, as the shard numbers it. Never used again while the shard lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(pub u64);

/// A transaction, as the shard numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u128);

impl MailboxId {
    /// The mailbox of `entity` that holds this part of it.
    #[must_use]
    pub fn new(entity: EntityId, part: SubQueue) -> MailboxId {
        let part = match part {
            SubQueue::Main => 0,
            SubQueue::DeadLetter => 1,
            SubQueue::TransferDeadLetter => 2,
        };
        MailboxId(entity.0.saturating_mul(4).saturating_add(part))
    }

    /// An entity's main mailbox. A topic keeps its scheduled messages there.
    #[must_use]
    pub fn main(entity: EntityId) -> MailboxId {
        MailboxId::new(entity, SubQueue::Main)
    }

    /// An entity's dead-letter mailbox.
    #[must_use]
    pub fn dead_letter(entity: EntityId) -> MailboxId {
        MailboxId::new(entity, SubQueue::DeadLetter)
    }

    /// An entity's mailbox for what could not be handed over to another entity.
    #[must_use]
    pub fn transfer_dead_letter(entity: EntityId) -> MailboxId {
        MailboxId::new(entity, SubQueue::TransferDeadLetter)
    }

    /// The entity this mailbox belongs to.
    #[must_use]
    pub fn entity(self) -> EntityId {
        EntityId(self.0 / 4)
    }

    /// Which part of its entity this is.
    #[must_use]
    pub fn part(self) -> SubQueue {
        match self.0 % 4 {
            0 => SubQueue::Main,
            1 => SubQueue::DeadLetter,
            _ => SubQueue::TransferDeadLetter,
        }
    }

    /// Whether messages live here as in an ordinary queue: with expiry, a maximum of deliveries, sessions.
    #[must_use]
    pub fn is_main(self) -> bool {
        self.0.is_multiple_of(4)
    }
}

impl SessionId {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SessionId {
    fn from(text: &str) -> Self {
        SessionId(text.into())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({:?})", self.0)
    }
}

impl Sequence {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Sequence {
        Sequence(self.0.saturating_add(1))
    }
}

impl Location {
    /// Not yet written anywhere: what a fact carries before the log has given its payload a place.
    pub const NOWHERE: Location = Location(u64::MAX);

    /// The region this location lies in: its upper half.
    #[must_use]
    pub fn region(self) -> Region {
        Region(u32::try_from(self.0 >> 32).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for LockToken {
    /// The usual hyphenated form, in RFC 4122 order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:032x}", self.0);
        for (index, digit) in text.chars().enumerate() {
            if matches!(index, 8 | 12 | 16 | 20) {
                f.write_str("-")?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

impl fmt::Debug for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockToken({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_written_as_a_uuid() {
        let token = LockToken(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        assert_eq!(token.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(LockToken(1).to_string(), "00000000-0000-0000-0000-000000000001");
    }

    #[test]
    fn a_mailbox_number_tells_entity_and_part() {
        for part in [SubQueue::Main, SubQueue::DeadLetter, SubQueue::TransferDeadLetter] {
            let mailbox = MailboxId::new(EntityId(7), part);
            assert_eq!((mailbox.entity(), mailbox.part()), (EntityId(7), part));
        }
    }
}
