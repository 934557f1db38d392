//! Frames into the outbox.

use super::outbox::Outbox;
use crate::encode::Encode;
use crate::frame::{FRAME_TYPE_AMQP, HEARTBEAT, SaslFrame, begin_frame, end_frame};
use crate::protocol_header::Protocol;

/// Writes an AMQP frame with this performative.
pub(super) fn put_frame(outbox: &mut Outbox, channel: u16, performative: &impl Encode) {
    let buffer = outbox.buffer();
    let start = begin_frame(buffer, FRAME_TYPE_AMQP, channel);
    performative.encode(buffer);
    end_frame(buffer, start);
}

/// Writes a frame of the SASL layer.
pub(super) fn put_sasl(outbox: &mut Outbox, frame: &SaslFrame) {
    frame.encode(outbox.buffer());
}

/// Writes a protocol header.
pub(super) fn put_header(outbox: &mut Outbox, protocol: Protocol) {
    outbox.buffer().extend_from_slice(&protocol.header());
}

/// Writes a frame that says nothing but that we live.
pub(super) fn put_heartbeat(outbox: &mut Outbox) {
    outbox.buffer().extend_from_slice(&HEARTBEAT);
}
