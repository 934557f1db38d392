//! `transfer`: one frame of one delivery (AMQP 1.0 2.7.5).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;
use crate::performative::{DeliveryState, DeliveryTag, ReceiverSettleMode};

/// The format of an ordinary AMQP message.
pub const MESSAGE_FORMAT_PLAIN: u32 = 0;

/// The format of a Service Bus batch: every data section is one encoded message.
pub const MESSAGE_FORMAT_BATCH: u32 = 0x8001_3700;

/// A frame of a delivery; its payload travels beside it in [`crate::FrameBody::Transfer`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "the flags are the ones AMQP defines")]
pub struct Transfer {
    /// The sender's handle for the link.
    pub handle: u32,
    /// The delivery's number in the session; on the first frame of a delivery, optional on the others.
    pub delivery_id: Option<u32>,
    /// The delivery's name on the link; on the first frame, optional on the others.
    pub delivery_tag: Option<DeliveryTag>,
    /// What the payload is; on the first frame, optional on the others.
    /// Null is written as 0 on a first frame: rhea decodes a message only if its format is spelled out.
    pub message_format: Option<u32>,
    /// Whether the sender has forgotten the delivery already; null means false on the first frame.
    pub settled: Option<bool>,
    /// Whether another frame of this delivery follows.
    pub more: bool,
    /// A settle mode for this delivery alone.
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    /// The state at the sender; a transaction names itself here.
    pub state: Option<DeliveryState>,
    /// Whether this resumes an earlier attachment's delivery.
    pub resume: bool,
    /// Whether the delivery is given up; its payload so far counts for nothing.
    pub aborted: bool,
    /// Whether the sender can wait for an answer.
    pub batchable: bool,
}

impl Transfer {
    /// The format as it is written.
    pub(crate) fn written_format(&self) -> Option<u32> {
        self.message_format.or(self.delivery_id.map(|_| MESSAGE_FORMAT_PLAIN))
    }
}

impl Composite for Transfer {
    const DESCRIPTOR: Descriptor = descriptor::TRANSFER;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            handle: fields.required("handle", Reader::uint)?,
            delivery_id: fields.optional("delivery-id", Reader::uint)?,
            delivery_tag: fields.optional("delivery-tag", DeliveryTag::decode)?,
            message_format: fields.optional("message-format", Reader::uint)?,
            settled: fields.optional("settled", Reader::boolean)?,
            more: fields.flag("more")?,
            rcv_settle_mode: fields.optional("rcv-settle-mode", ReceiverSettleMode::decode)?,
            state: fields.optional("state", DeliveryState::decode)?,
            resume: fields.flag("resume")?,
            aborted: fields.flag("aborted")?,
            batchable: fields.flag("batchable")?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.handle);
        fields.field(&self.delivery_id);
        fields.field(&self.delivery_tag);
        fields.field(&self.written_format());
        fields.field(&self.settled);
        fields.flag(self.more);
        fields.field(&self.rcv_settle_mode);
        fields.field(&self.state);
        fields.flag(self.resume);
        fields.flag(self.aborted);
        fields.flag(self.batchable);
    }
}
