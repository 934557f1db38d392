//! A message on its way in.
//!
//! It is made by one thread and used up by another, for every message that is sent: so it holds nothing that was
//! allocated for it alone, and one count on the memory of its payload.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::text::Text;
use crate::time::{Span, Timestamp};

/// How much whoever reads payloads may note about one.
pub const OUTLINE_WORDS: usize = 6;

/// What was noted about a payload when it was first read. The engine carries it and does not look into it.
pub type Outline = [u32; OUTLINE_WORDS];

/// Shows a message, of which this was noted, as filters see it. Calls once.
pub type Show = fn(&Incoming, Outline, &mut dyn FnMut(&dyn vorrang_filter::Message));

/// What filters and rules may ask of a message that is just being sent.
#[derive(Clone)]
pub enum Content {
    /// It is read from the payload when they ask; of most messages they ask little.
    Within {
        /// What was noted when the message was read.
        outline: Outline,
        /// How to read more.
        show: Show,
    },
    /// It is not part of the payload.
    Apart(Arc<dyn vorrang_filter::Message + Send + Sync>),
}

/// One message of a send, with the few things the engine needs taken out of its payload.
#[derive(Clone)]
pub struct Incoming {
    /// The encoded message, as it will be stored. Texts and content may be parts of it: it stays what it is.
    pub payload: Bytes,
    /// The message as filters see it.
    pub content: Content,
    /// The message id. Without one the engine assigns one, and the message is never a duplicate.
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
    /// A message with nothing but a payload, and what filters see beside it.
    #[must_use]
    pub fn new(payload: Bytes, content: Arc<dyn vorrang_filter::Message + Send + Sync>) -> Incoming {
        Incoming {
            payload,
            content: Content::Apart(content),
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

    /// One of its texts.
    #[must_use]
    pub fn read<'a>(&'a self, text: &'a Text) -> Cow<'a, str> {
        text.of(&self.payload)
    }

    /// Asks something of the message as filters see it.
    pub fn ask<R>(&self, ask: impl FnOnce(&dyn vorrang_filter::Message) -> R) -> R {
        match &self.content {
            Content::Apart(content) => ask(&**content),
            Content::Within { outline, show } => {
                let (mut ask, mut answer) = (Some(ask), None);
                show(self, *outline, &mut |content| answer = ask.take().map(|ask| ask(content)));
                answer.expect("a message is shown to whoever asks")
            }
        }
    }
}

impl fmt::Debug for Incoming {
    /// Everything but the payload: bodies do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &Option<Text>| text.as_ref().map(|text| self.read(text).into_owned());
        f.debug_struct("Incoming")
            .field("size", &self.payload.len())
            .field("message_id", &text(&self.message_id))
            .field("session_id", &text(&self.session_id))
            .field("time_to_live", &self.time_to_live)
            .field("scheduled_for", &self.scheduled_for)
            .field("priority", &self.priority)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Content {
    /// Not the values: what applications put into messages does not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Content")
    }
}
