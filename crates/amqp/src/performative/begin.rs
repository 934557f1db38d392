//! `begin`: a session on a channel (AMQP 1.0 2.7.2).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;
use crate::performative::Symbols;
use crate::value::Map;

/// Begins a session, or answers one that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Begin {
    /// In an answer, the channel on which the peer began; null when beginning.
    pub remote_channel: Option<u16>,
    /// The id of the next transfer frame the sender will write.
    pub next_outgoing_id: u32,
    /// Transfer frames the sender can take.
    pub incoming_window: u32,
    /// Transfer frames the sender may write.
    pub outgoing_window: u32,
    /// The highest link handle the sender accepts; null means no limit of its own.
    pub handle_max: Option<u32>,
    /// Extensions the sender supports.
    pub offered_capabilities: Option<Symbols>,
    /// Extensions the sender would use.
    pub desired_capabilities: Option<Symbols>,
    /// Session properties.
    pub properties: Option<Map>,
}

impl Composite for Begin {
    const DESCRIPTOR: Descriptor = descriptor::BEGIN;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            remote_channel: fields.optional("remote-channel", Reader::ushort)?,
            next_outgoing_id: fields.required("next-outgoing-id", Reader::uint)?,
            incoming_window: fields.required("incoming-window", Reader::uint)?,
            outgoing_window: fields.required("outgoing-window", Reader::uint)?,
            handle_max: fields.optional("handle-max", Reader::uint)?,
            offered_capabilities: fields.optional("offered-capabilities", Symbols::decode)?,
            desired_capabilities: fields.optional("desired-capabilities", Symbols::decode)?,
            properties: fields.optional("properties", Reader::map)?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.remote_channel);
        fields.field(&self.next_outgoing_id);
        fields.field(&self.incoming_window);
        fields.field(&self.outgoing_window);
        fields.field(&self.handle_max);
        fields.field(&self.offered_capabilities);
        fields.field(&self.desired_capabilities);
        fields.field(&self.properties);
    }
}
