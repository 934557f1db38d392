//! A message on its way out.

use std::sync::Arc;

use super::Overlay;
use crate::id::{Location, LockToken, MailboxId, Sequence, SessionId};
use crate::level::Level;
use crate::time::{Span, Timestamp};

/// A message's state as clients see it in `x-opt-message-state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageState {
    /// Waiting to be received, or locked by somebody.
    Active,
    /// Put aside; received by its sequence number alone.
    Deferred,
    /// Not visible to receivers before its time.
    Scheduled,
}

/// Everything the front writes around a payload: on delivery, on receive by number and on peek.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Where the message is.
    pub mailbox: MailboxId,
    /// Its number there.
    pub sequence: Sequence,
    /// The number it was first given, where forwarding or fan-out gave it another since.
    pub first_sequence: Option<Sequence>,
    /// Where its bytes lie.
    pub location: Location,
    /// How many bytes they are.
    pub size: u32,
    /// Its precedence.
    pub level: Level,
    /// Its state.
    pub state: MessageState,
    /// How many earlier deliveries failed.
    pub deliveries: u32,
    /// When it became part of this entity.
    pub enqueued: Timestamp,
    /// How long it lives from then on; [`Span::FOREVER`] if it has no end.
    pub time_to_live: Span,
    /// When that will be over.
    pub expires: Timestamp,
    /// When it will become visible, if it is scheduled.
    pub scheduled_for: Option<Timestamp>,
    /// The proof of the lock; none for peek and receive-and-delete.
    pub token: Option<LockToken>,
    /// When the lock ends.
    pub locked_until: Option<Timestamp>,
    /// Its session.
    pub session: Option<SessionId>,
    /// The path of the entity it was dead-lettered from.
    pub dead_letter_source: Option<Arc<str>>,
    /// Changes to lay over the payload.
    pub overlay: Option<Arc<Overlay>>,
}
