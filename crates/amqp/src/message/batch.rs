//! Service Bus batches: a message of format `0x80013700` whose data sections are encoded messages.
//!
//! Read one with [`Message::data`](super::Message::data): every item is a message of its own. The sections around
//! them repeat parts of the first message and mean nothing.

use crate::message::put_data;

/// Builds the payload of a batch.
#[derive(Debug, Clone, Default)]
pub struct BatchBuilder {
    payload: Vec<u8>,
    count: u32,
}

impl BatchBuilder {
    /// Appends one encoded message.
    pub fn push(&mut self, message: &[u8]) {
        put_data(&mut self.payload, message);
        self.count = self.count.saturating_add(1);
    }

    /// Number of messages so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Size of the payload if a message of `length` bytes were added.
    pub fn size_with(&self, length: usize) -> usize {
        let head: usize = if u8::try_from(length).is_ok() { 5 } else { 8 };
        self.payload.len().saturating_add(head).saturating_add(length)
    }

    /// The payload.
    pub fn finish(self) -> Vec<u8> {
        self.payload
    }
}
