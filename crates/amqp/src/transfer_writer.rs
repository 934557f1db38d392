//! One delivery on its way out, cut into frames the peer can take.

use bytes::{Buf, Bytes};

use crate::encode::{Encode, Output};
use crate::frame::{FRAME_TYPE_AMQP, begin_frame, end_frame};
use crate::performative::Transfer;

/// Writes a delivery as one or more transfer frames.
///
/// It owns what is left of the payload, so a session whose window closes can put it aside and go on later. The
/// payload has two parts: the sections written for this delivery, and the slice that was stored.
#[derive(Debug, Clone)]
pub struct TransferWriter {
    transfer: Transfer,
    head: Bytes,
    tail: Bytes,
}

/// Whether a delivery needs another frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More frames must follow.
    More,
    /// That was the last frame.
    Done,
}

impl TransferWriter {
    /// A delivery described by `transfer`, whose payload is `head` followed by `tail`.
    pub fn new(transfer: Transfer, head: Bytes, tail: Bytes) -> Self {
        Self { transfer, head, tail }
    }

    /// The fields of the next frame, `more` excepted.
    pub fn transfer(&self) -> &Transfer {
        &self.transfer
    }

    /// Payload bytes that are not written yet.
    pub fn remaining(&self) -> usize {
        self.head.len().saturating_add(self.tail.len())
    }

    /// Appends the next frame, of at most `frame_bytes_max` bytes.
    ///
    /// The first frame names the delivery; the ones behind it only the link. Should a limit be so small that a frame
    /// has no room for payload, one byte goes into it all the same: the delivery must end.
    pub fn write_frame<O: Output>(&mut self, out: &mut O, channel: u16, frame_bytes_max: u32) -> Progress {
        let start = begin_frame(out, FRAME_TYPE_AMQP, channel);
        self.transfer.more = false;
        self.transfer.encode(out);
        let limit = usize::try_from(frame_bytes_max).unwrap_or(usize::MAX);
        let room = limit.saturating_sub(out.position().saturating_sub(start));
        if self.remaining() <= room {
            out.put(&self.head);
            out.put(&self.tail);
            end_frame(out, start);
            self.head.clear();
            self.tail.clear();
            return Progress::Done;
        }
        // `more` takes one byte whether true or null, so the room stays the same.
        out.truncate(start);
        begin_frame(out, FRAME_TYPE_AMQP, channel);
        self.transfer.more = true;
        self.transfer.encode(out);
        self.put_payload(out, room.max(1));
        end_frame(out, start);
        self.transfer =
            Transfer { handle: self.transfer.handle, settled: self.transfer.settled, ..Transfer::default() };
        Progress::More
    }

    fn put_payload<O: Output>(&mut self, out: &mut O, length: usize) {
        let from_head = length.min(self.head.len());
        let from_tail = length.saturating_sub(from_head).min(self.tail.len());
        out.put(self.head.get(..from_head).unwrap_or_default());
        out.put(self.tail.get(..from_tail).unwrap_or_default());
        self.head.advance(from_head);
        self.tail.advance(from_tail);
    }
}
