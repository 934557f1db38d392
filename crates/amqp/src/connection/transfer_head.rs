//! The head of an ordinary transfer frame, written in one piece.
//!
//! A transfer without state needs eleven fields of which only the tag has a length of its own. Numbers are written
//! in their long form, so that everything else stands at a fixed place; every reader takes either form.

use bytes::BytesMut;

use crate::constructor as code;
use crate::descriptor;
use crate::frame::FRAME_TYPE_AMQP;
use crate::performative::DeliveryTag;

/// Frame header, descriptor, list head, handle, delivery id, and the head of the tag.
const BEFORE_TAG: usize = 8 + 3 + 3 + 5 + 5 + 2;

/// Message format, settled, more, and five nulls: settle mode, state, resume, aborted, batchable.
const BEHIND_TAG: usize = 5 + 1 + 1 + 5;

/// Number of fields of a transfer.
const FIELDS: u8 = 11;

/// What the first frame of an ordinary delivery says.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransferHead {
    pub(super) channel: u16,
    pub(super) handle: u32,
    pub(super) delivery: u32,
    pub(super) tag: DeliveryTag,
    pub(super) message_format: u32,
    pub(super) settled: bool,
}

impl TransferHead {
    /// Bytes of the frame without its payload.
    #[inline]
    pub(super) fn length(&self) -> usize {
        BEFORE_TAG.saturating_add(self.tag.as_bytes().len()).saturating_add(BEHIND_TAG)
    }

    /// Writes the head of a frame that holds the whole `payload` bytes behind it.
    #[inline]
    pub(super) fn write(&self, out: &mut BytesMut, payload: usize) {
        let tag = self.tag.as_bytes();
        let size = u32::try_from(self.length().saturating_add(payload)).unwrap_or(u32::MAX);
        // A tag has at most 32 bytes, so neither length leaves its byte.
        let tag_length = u8::try_from(tag.len()).unwrap_or(u8::MAX);
        let list = tag_length.saturating_add(25);
        let [s0, s1, s2, s3] = size.to_be_bytes();
        let [c0, c1] = self.channel.to_be_bytes();
        let [h0, h1, h2, h3] = self.handle.to_be_bytes();
        let [d0, d1, d2, d3] = self.delivery.to_be_bytes();
        let before: [u8; BEFORE_TAG] = [
            s0,
            s1,
            s2,
            s3,
            2,
            FRAME_TYPE_AMQP,
            c0,
            c1,
            code::DESCRIBED,
            code::SMALL_ULONG,
            descriptor::TRANSFER.code,
            code::LIST_8,
            list,
            FIELDS,
            code::UINT,
            h0,
            h1,
            h2,
            h3,
            code::UINT,
            d0,
            d1,
            d2,
            d3,
            code::BINARY_8,
            tag_length,
        ];
        let [f0, f1, f2, f3] = self.message_format.to_be_bytes();
        let settled = if self.settled { code::TRUE } else { code::FALSE };
        let behind: [u8; BEHIND_TAG] = [
            code::UINT,
            f0,
            f1,
            f2,
            f3,
            settled,
            code::NULL,
            code::NULL,
            code::NULL,
            code::NULL,
            code::NULL,
            code::NULL,
        ];
        out.extend_from_slice(&before);
        out.extend_from_slice(tag);
        out.extend_from_slice(&behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, FrameBody};

    #[test]
    fn the_short_way_says_the_same_as_the_long_one() {
        for tag in [&b""[..], &[7], &[1; 16], &[9; 32]] {
            for number in [0, 1, 255, 256, u32::MAX] {
                for settled in [true, false] {
                    let head = TransferHead {
                        channel: 0x1234,
                        handle: number,
                        delivery: number,
                        tag: DeliveryTag::new(tag).unwrap(),
                        message_format: number,
                        settled,
                    };
                    let mut out = BytesMut::new();
                    head.write(&mut out, 7);
                    assert_eq!(out.len(), head.length());
                    out.extend_from_slice(b"payload");
                    let frame = Frame::decode(out.freeze()).unwrap();
                    let FrameBody::Transfer(transfer, payload) = frame.body else { panic!() };
                    assert_eq!((frame.channel, &payload[..]), (0x1234, &b"payload"[..]));
                    assert_eq!((transfer.handle, transfer.delivery_id), (number, Some(number)));
                    assert_eq!(transfer.delivery_tag.unwrap().as_bytes(), tag);
                    assert_eq!((transfer.message_format, transfer.settled), (Some(number), Some(settled)));
                    assert!(!transfer.more && !transfer.aborted && transfer.state.is_none());
                }
            }
        }
    }
}
