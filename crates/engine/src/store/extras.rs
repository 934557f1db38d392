//! What most messages do not have, in a slab beside the records.

use std::sync::Arc;

use super::slab::{Handle, Slot};
use crate::fact::Details;
use crate::id::{Sequence, SessionId};
use crate::message::Overlay;
use crate::time::{Span, Timestamp};

/// The unusual part of a message.
#[derive(Debug, Clone)]
pub(crate) struct Extra {
    pub(crate) enqueued: Timestamp,
    pub(crate) time_to_live: Span,
    pub(crate) expires: Timestamp,
    /// [`Timestamp::NEVER`] if it has none of its own.
    pub(crate) deadline: Timestamp,
    /// When a scheduled message becomes visible, or a delayed one may be tried again.
    pub(crate) due: Timestamp,
    /// Zero if it is the number it has.
    pub(crate) first_sequence: Sequence,
    pub(crate) overlay: Option<Arc<Overlay>>,
    pub(crate) dead_letter_source: Option<Arc<str>>,
    /// The session, in the slab of sessions.
    pub(crate) session: Handle,
    pub(crate) hops: u8,
    free: bool,
}

impl Extra {
    /// Nothing unusual, for a message enqueued at that time.
    pub(crate) fn new(enqueued: Timestamp) -> Extra {
        Extra {
            enqueued,
            time_to_live: Span::FOREVER,
            expires: Timestamp::NEVER,
            deadline: Timestamp::NEVER,
            due: Timestamp::NEVER,
            first_sequence: Sequence(0),
            overlay: None,
            dead_letter_source: None,
            session: Handle::NONE,
            hops: 0,
            free: false,
        }
    }

    pub(crate) fn from_details(details: &Details, session: Handle) -> Extra {
        Extra {
            time_to_live: details.time_to_live,
            expires: details.expires,
            deadline: details.deadline.unwrap_or(Timestamp::NEVER),
            first_sequence: details.first_sequence.unwrap_or_default(),
            overlay: details.overlay.clone(),
            dead_letter_source: details.dead_letter_source.clone(),
            session,
            hops: details.hops,
            ..Extra::new(details.enqueued)
        }
    }

    /// The same as a fact would say it.
    pub(crate) fn to_details(&self, session: Option<SessionId>) -> Details {
        Details {
            enqueued: self.enqueued,
            time_to_live: self.time_to_live,
            expires: self.expires,
            session,
            first_sequence: self.first_sequence(),
            deadline: (self.deadline != Timestamp::NEVER).then_some(self.deadline),
            overlay: self.overlay.clone(),
            dead_letter_source: self.dead_letter_source.clone(),
            hops: self.hops,
        }
    }

    pub(crate) fn first_sequence(&self) -> Option<Sequence> {
        (self.first_sequence != Sequence(0)).then_some(self.first_sequence)
    }
}

impl Slot for Extra {
    fn freed(next: Handle) -> Self {
        Extra { session: next, free: true, ..Extra::new(Timestamp(0)) }
    }

    fn next_free(&self) -> Option<Handle> {
        self.free.then_some(self.session)
    }
}
