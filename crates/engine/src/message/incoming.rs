//! A message on its way in.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::text::Text;
use crate::time::{Span, Timestamp};

/// What filters and rules may ask of a message that is just being sent.
pub type Content = Arc<dyn vorrang_filter::Message + Send + Sync>;

/// One message of a send, with the few things the engine needs taken out of its payload.
#[derive(Clone)]
pub struct Incoming {
    /// The encoded message, as it will be stored.
    pub payload: Bytes,
    /// The message as filters see it.
    pub content: Content,
    /// The message id in its text form. Without one the engine assigns one, and the message is never
    /// a duplicate.
    pub message_id: Option<Text>,
    /// The session the message belongs to.
    pub session_id: Option<Text>,
    /// The partition key, which must equal the session id where both are set.
    pub partition_key: Option<Text>,
    /// How long the sender wants it kept; the entity's default caps it.
    pub time_to_live: Option<Span>,
    /// When it shall become visible; a time that has passed means at once.
    pub scheduled_for: Option<Timestamp>,
    /// AMQP's `header.priority`, if the sender set one.
    pub priority: Option<u8>,
    /// When the sender wants it handled, for entities ordered by deadline.
    pub deadline: Option<Timestamp>,
}

impl Incoming {
    /// A message with nothing but a payload.
    #[must_use]
    pub fn new(payload: Bytes, content: Content) -> Incoming {
        Incoming {
            payload,
            content,
            message_id: None,
            session_id: None,
            partition_key: None,
            time_to_live: None,
            scheduled_for: None,
            priority: None,
            deadline: None,
        }
    }

    /// The size that counts against quotas.
    #[must_use]
    pub fn size(&self) -> u32 {
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX)
    }
}

impl fmt::Debug for Incoming {
    /// Everything but the payload: bodies do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("size", &self.payload.len())
            .field("message_id", &self.message_id)
            .field("session_id", &self.session_id)
            .field("time_to_live", &self.time_to_live)
            .field("scheduled_for", &self.scheduled_for)
            .field("priority", &self.priority)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
