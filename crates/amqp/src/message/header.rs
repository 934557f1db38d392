//! The `header` section (AMQP 1.0 3.2.1).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;

/// Delivery details of a message. What the sender left null stays null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Whether the sender asked for durability.
    pub durable: Option<bool>,
    /// The priority the sender gave; AMQP's default is 4.
    pub priority: Option<u8>,
    /// Milliseconds to live.
    pub ttl: Option<u32>,
    /// Whether nobody else has had the message.
    pub first_acquirer: Option<bool>,
    /// Earlier unsuccessful deliveries. Always written.
    pub delivery_count: u32,
}

impl Composite for Header {
    const DESCRIPTOR: Descriptor = descriptor::HEADER;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            durable: fields.optional("durable", Reader::boolean)?,
            priority: fields.optional("priority", Reader::ubyte)?,
            ttl: fields.optional("ttl", Reader::uint)?,
            first_acquirer: fields.optional("first-acquirer", Reader::boolean)?,
            delivery_count: fields.optional("delivery-count", Reader::uint)?.unwrap_or(0),
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.durable);
        fields.field(&self.priority);
        fields.field(&self.ttl);
        fields.field(&self.first_acquirer);
        fields.field(&self.delivery_count);
    }
}
