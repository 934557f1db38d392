//! A message's bytes and its place, as it comes into a mailbox.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::id::{Location, MailboxId, Sequence, SessionId};
use crate::level::{Level, LevelOrigin};
use crate::message::Overlay;
use crate::time::{Span, Timestamp};

/// A message's bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// The bytes, before they are written; empty at recovery.
    pub bytes: Bytes,
    /// How many they are.
    pub size: u32,
    /// Where they lie; [`Location::NOWHERE`] before the shard has written them.
    pub location: Location,
    /// The message id given to a message that came without one; kept beside the bytes by the log.
    pub assigned_id: Option<u128>,
}

impl fmt::Debug for Payload {
    /// Without the bytes: bodies do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload")
            .field("size", &self.size)
            .field("location", &self.location)
            .field("assigned_id", &self.assigned_id)
            .finish_non_exhaustive()
    }
}

/// A message's place in a mailbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The mailbox.
    pub mailbox: MailboxId,
    /// Its number there.
    pub sequence: Sequence,
    /// The time it is ordered by: when it first became visible to receivers, anywhere.
    pub eligible: Timestamp,
    /// Its precedence.
    pub level: Level,
    /// What gave it that.
    pub origin: LevelOrigin,
    /// What most messages do not have.
    pub details: Option<Box<Details>>,
}

/// What most messages do not have.
#[derive(Debug, Clone, PartialEq)]
pub struct Details {
    /// When it became part of this mailbox's entity.
    pub enqueued: Timestamp,
    /// How long it lives, counted from there.
    pub time_to_live: Span,
    /// When that is over; [`Timestamp::NEVER`] in dead-letter queues and before a scheduled time.
    pub expires: Timestamp,
    /// Its session.
    pub session: Option<SessionId>,
    /// The number it was first given, if this is another.
    pub first_sequence: Option<Sequence>,
    /// When its sender wants it handled.
    pub deadline: Option<Timestamp>,
    /// Changes to it.
    pub overlay: Option<Arc<Overlay>>,
    /// The path of the entity it was dead-lettered from.
    pub dead_letter_source: Option<Arc<str>>,
    /// How many entities it was forwarded through.
    pub hops: u8,
}

impl Details {
    /// Nothing unusual but the time it was enqueued.
    #[must_use]
    pub fn new(enqueued: Timestamp) -> Details {
        Details {
            enqueued,
            time_to_live: Span::FOREVER,
            expires: Timestamp::NEVER,
            session: None,
            first_sequence: None,
            deadline: None,
            overlay: None,
            dead_letter_source: None,
            hops: 0,
        }
    }

    /// Whether a message with these details and this eligible time needs none of them.
    #[must_use]
    pub fn is_plain(&self, eligible: Timestamp) -> bool {
        let Details {
            enqueued,
            time_to_live,
            expires,
            session,
            first_sequence,
            deadline,
            overlay,
            dead_letter_source,
            hops,
        } = self;
        *enqueued == eligible
            && time_to_live.is_forever()
            && *expires == Timestamp::NEVER
            && session.is_none()
            && first_sequence.is_none()
            && deadline.is_none()
            && overlay.is_none()
            && dead_letter_source.is_none()
            && *hops == 0
    }
}

impl Arrival {
    /// When the message became part of its entity.
    #[must_use]
    pub fn enqueued(&self) -> Timestamp {
        self.details.as_ref().map_or(self.eligible, |details| details.enqueued)
    }
}
