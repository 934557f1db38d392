//! `open`: what each side of a connection allows (AMQP 1.0 2.7.1).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;
use crate::performative::Symbols;
use crate::text::Text;
use crate::value::Map;

/// Negotiates connection parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Open {
    /// Who the sender is.
    pub container_id: Text,
    /// The host the sender wants to reach.
    pub hostname: Option<Text>,
    /// The largest frame the sender reads; null means no limit of its own.
    pub max_frame_size: Option<u32>,
    /// The highest channel the sender accepts; null means 65535.
    pub channel_max: Option<u16>,
    /// Milliseconds of silence after which the sender gives up; null means never.
    pub idle_time_out: Option<u32>,
    /// Locales for text the sender writes.
    pub outgoing_locales: Option<Symbols>,
    /// Locales for text the sender reads.
    pub incoming_locales: Option<Symbols>,
    /// Extensions the sender supports.
    pub offered_capabilities: Option<Symbols>,
    /// Extensions the sender would use.
    pub desired_capabilities: Option<Symbols>,
    /// Product, version, platform and the like.
    pub properties: Option<Map>,
}

impl Composite for Open {
    const DESCRIPTOR: Descriptor = descriptor::OPEN;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            container_id: fields.required("container-id", Reader::text)?,
            hostname: fields.optional("hostname", Reader::text)?,
            max_frame_size: fields.optional("max-frame-size", Reader::uint)?,
            channel_max: fields.optional("channel-max", Reader::ushort)?,
            idle_time_out: fields.optional("idle-time-out", Reader::uint)?,
            outgoing_locales: fields.optional("outgoing-locales", Symbols::decode)?,
            incoming_locales: fields.optional("incoming-locales", Symbols::decode)?,
            offered_capabilities: fields.optional("offered-capabilities", Symbols::decode)?,
            desired_capabilities: fields.optional("desired-capabilities", Symbols::decode)?,
            properties: fields.optional("properties", Reader::map)?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.container_id);
        fields.field(&self.hostname);
        fields.field(&self.max_frame_size);
        fields.field(&self.channel_max);
        fields.field(&self.idle_time_out);
        fields.field(&self.outgoing_locales);
        fields.field(&self.incoming_locales);
        fields.field(&self.offered_capabilities);
        fields.field(&self.desired_capabilities);
        fields.field(&self.properties);
    }
}
