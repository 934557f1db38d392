//! Bytes on their way to the peer.
//!
//! Small things are copied behind each other into a buffer; large payloads stay where they are and are put in between
//! as chunks of their own. A buffer that is full becomes a chunk too and the next is begun, so that nothing is copied
//! twice. The shell takes all chunks and writes them with one vectored write.

use bytes::{Bytes, BytesMut};

/// Payloads from this size on are not copied: the copy would cost more than another slice in a vectored write.
/// For a kilobyte it costs less: whoever reads it first waits for its memory, and the system then finds it at hand. Sent
/// as slices, such messages took a few per cent more of the server's CPU.
pub(super) const COPY_BYTES_BELOW: usize = 4096;

/// The size of the first buffer. Each that is filled before the output is taken makes the next twice as large, so a busy
/// connection soon has large ones; each that was far too large when the connection rests makes it half as large.
const BUFFER_BYTES_MIN: usize = 1024;

/// No buffer is larger, unless one performative is.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// What most performatives need.
const PERFORMATIVE_BYTES: usize = 512;

/// The output of a connection.
#[derive(Debug)]
pub(super) struct Outbox {
    chunks: Vec<Bytes>,
    chunk_bytes: usize,
    tail: BytesMut,
    /// The size of the next buffer.
    buffer_bytes: usize,
    /// Bytes that were taken since the connection rested.
    taken_bytes: usize,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            chunk_bytes: 0,
            tail: BytesMut::new(),
            buffer_bytes: BUFFER_BYTES_MIN,
            taken_bytes: 0,
        }
    }
}

impl Outbox {
    /// Bytes that wait.
    #[inline]
    pub(super) fn pending(&self) -> usize {
        self.chunk_bytes.saturating_add(self.tail.len())
    }

    /// The buffer to write small things into.
    #[inline]
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        self.make_room(PERFORMATIVE_BYTES);
        &mut self.tail
    }

    /// Appends bytes to the buffer.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.tail.extend_from_slice(bytes);
    }

    /// Appends a part of a payload, without copying it if it is large.
    #[inline]
    pub(super) fn put_payload(&mut self, payload: &Bytes, from: usize, to: usize) {
        if to.saturating_sub(from) < COPY_BYTES_BELOW {
            return self.put(payload.get(from..to).unwrap_or_default());
        }
        self.close_tail();
        self.push_chunk(payload.slice(from..to));
    }

    /// Moves all output to the end of `chunks`.
    pub(super) fn take(&mut self, chunks: &mut Vec<Bytes>) {
        self.close_tail();
        chunks.append(&mut self.chunks);
        self.taken_bytes = self.taken_bytes.saturating_add(std::mem::take(&mut self.chunk_bytes));
    }

    /// Nothing is to be said for now: the buffer is given up, unless so much was said that the next would be as large.
    pub(super) fn rest(&mut self) {
        let taken = std::mem::take(&mut self.taken_bytes);
        let little = self.buffer_bytes == BUFFER_BYTES_MIN || taken <= self.buffer_bytes / 4;
        if little && self.pending() == 0 {
            self.buffer_bytes = (self.buffer_bytes / 2).max(BUFFER_BYTES_MIN);
            self.tail = BytesMut::new();
        }
    }

    #[inline]
    fn make_room(&mut self, bytes: usize) {
        if self.tail.capacity().saturating_sub(self.tail.len()) < bytes {
            self.begin_buffer(bytes);
        }
    }

    #[cold]
    fn begin_buffer(&mut self, bytes: usize) {
        if !self.tail.is_empty() {
            self.close_tail();
            self.buffer_bytes = self.buffer_bytes.saturating_mul(2).min(BUFFER_BYTES_MAX);
        }
        self.tail.reserve(self.buffer_bytes.max(bytes));
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let written = self.tail.split().freeze();
            self.push_chunk(written);
        }
    }

    fn push_chunk(&mut self, chunk: Bytes) {
        self.chunk_bytes = self.chunk_bytes.saturating_add(chunk.len());
        self.chunks.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_payloads_keep_their_memory_and_their_place() {
        let large = Bytes::from(vec![7u8; COPY_BYTES_BELOW]);
        let small = Bytes::from_static(b"small");
        let mut outbox = Outbox::default();
        outbox.buffer().extend_from_slice(b"head");
        outbox.put_payload(&large, 0, COPY_BYTES_BELOW);
        outbox.put_payload(&small, 1, 5);
        assert_eq!(outbox.pending(), 4 + COPY_BYTES_BELOW + 4);

        let mut chunks = Vec::new();
        outbox.take(&mut chunks);
        assert_eq!(chunks.len(), 3);
        assert_eq!((&chunks[0][..], &chunks[2][..]), (&b"head"[..], &b"mall"[..]));
        assert_eq!(chunks[1].as_ptr(), large.as_ptr(), "not copied");
        assert_eq!(outbox.pending(), 0);
    }

    #[test]
    fn a_connection_that_rests_gives_up_its_buffer_unless_it_says_much() {
        let mut outbox = Outbox::default();
        // What the connection says before it rests, the room it keeps then, and the size of its next buffer.
        let cases = [
            ("little", 100, 0, 1_024),
            ("much", 9_000, 1, 8_192),
            ("a quarter", 2_048, 0, 4_096),
            ("more than a quarter", 1_025, 1, 4_096),
            ("little again", 1, 0, 2_048),
            ("nothing", 0, 0, 1_024),
        ];
        for (case, said, kept, next) in cases {
            (0..said).for_each(|_| outbox.put(b"x"));
            outbox.rest();
            assert_eq!(outbox.pending(), said, "what waits stays: {case}");
            outbox.take(&mut Vec::new());
            outbox.rest();
            assert_eq!(outbox.tail.capacity().min(1), kept, "{case}");
            assert_eq!(outbox.buffer_bytes, next, "{case}");
        }
    }

    #[test]
    fn what_is_written_stays_where_it_was_written_and_buffers_are_bounded() {
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for number in 0..2_000u32 {
            let written = number.to_be_bytes().repeat(150);
            outbox.put(&written);
            expected.extend_from_slice(&written);
        }
        assert_eq!(outbox.pending(), expected.len());
        let mut chunks = Vec::new();
        outbox.take(&mut chunks);
        assert_eq!(chunks.concat(), expected);
        assert!(chunks.len() < 40, "{} chunks", chunks.len());
        assert!(chunks.iter().all(|chunk| chunk.len() <= BUFFER_BYTES_MAX));
    }
}
