//! `attach`: a link on a session (AMQP 1.0 2.7.3).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;
use crate::performative::{ReceiverSettleMode, Role, SenderSettleMode, Source, Symbols, TargetNode};
use crate::text::Text;
use crate::value::Map;

/// Attaches a link, or answers an attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attach {
    /// The link's name, unique per direction between two containers.
    pub name: Text,
    /// The number the sender of this frame uses for the link.
    pub handle: u32,
    /// The role the sender of this frame plays on the link.
    pub role: Role,
    /// How deliveries are settled by the sending end; null when the peer named none, so that it can be echoed.
    pub snd_settle_mode: Option<SenderSettleMode>,
    /// How deliveries are settled by the receiving end; null when the peer named none.
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    /// Where messages come from; null refuses the link.
    pub source: Option<Source>,
    /// Where messages go; null refuses the link.
    pub target: Option<TargetNode>,
    /// Deliveries of an earlier attachment. We read the map and make nothing of it.
    pub unsettled: Option<Map>,
    /// Whether `unsettled` was cut short.
    pub incomplete_unsettled: bool,
    /// The delivery count a sender starts from; mandatory when `role` is sender.
    pub initial_delivery_count: Option<u32>,
    /// The largest message the sender of this frame takes; null and 0 mean no limit of its own.
    pub max_message_size: Option<u64>,
    /// Extensions the sender supports.
    pub offered_capabilities: Option<Symbols>,
    /// Extensions the sender would use.
    pub desired_capabilities: Option<Symbols>,
    /// Link properties.
    pub properties: Option<Map>,
}

impl Attach {
    /// An attach with a name, a handle and a role, all else null.
    pub fn new(name: Text, handle: u32, role: Role) -> Self {
        Self {
            name,
            handle,
            role,
            snd_settle_mode: None,
            rcv_settle_mode: None,
            source: None,
            target: None,
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: None,
            max_message_size: None,
            offered_capabilities: None,
            desired_capabilities: None,
            properties: None,
        }
    }
}

impl Composite for Attach {
    const DESCRIPTOR: Descriptor = descriptor::ATTACH;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: fields.required("name", Reader::text)?,
            handle: fields.required("handle", Reader::uint)?,
            role: fields.required("role", Role::decode)?,
            snd_settle_mode: fields.optional("snd-settle-mode", SenderSettleMode::decode)?,
            rcv_settle_mode: fields.optional("rcv-settle-mode", ReceiverSettleMode::decode)?,
            source: fields.optional("source", Source::decode)?,
            target: fields.optional("target", TargetNode::decode)?,
            unsettled: fields.optional("unsettled", Reader::map)?,
            incomplete_unsettled: fields.flag("incomplete-unsettled")?,
            initial_delivery_count: fields.optional("initial-delivery-count", Reader::uint)?,
            max_message_size: fields.optional("max-message-size", Reader::ulong)?,
            offered_capabilities: fields.optional("offered-capabilities", Symbols::decode)?,
            desired_capabilities: fields.optional("desired-capabilities", Symbols::decode)?,
            properties: fields.optional("properties", Reader::map)?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.name);
        fields.field(&self.handle);
        fields.field(&self.role);
        fields.field(&self.snd_settle_mode);
        fields.field(&self.rcv_settle_mode);
        fields.field(&self.source);
        fields.field(&self.target);
        fields.field(&self.unsettled);
        fields.flag(self.incomplete_unsettled);
        fields.field(&self.initial_delivery_count);
        fields.field(&self.max_message_size);
        fields.field(&self.offered_capabilities);
        fields.field(&self.desired_capabilities);
        fields.field(&self.properties);
    }
}
