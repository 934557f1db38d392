//! Bytes on their way to the peer.
//!
//! Small things are copied behind each other into one buffer; large payloads stay where they are and are put in
//! between as chunks of their own. The shell takes all chunks and writes them with one vectored write.

use bytes::{Bytes, BytesMut};

/// Payloads from this size on are not copied: the copy would cost more than another slice in a vectored write.
pub(super) const COPY_BYTES_BELOW: usize = 4096;

/// How much the buffer grows at least. It doubles as it is filled and remembers its size, so a busy connection soon
/// has a large one, while an idle one keeps little.
const GROW_BYTES: usize = 1024;

/// The output of a connection.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    chunks: Vec<Bytes>,
    chunk_bytes: usize,
    tail: BytesMut,
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
        if self.tail.capacity().saturating_sub(self.tail.len()) < 512 {
            self.tail.reserve(GROW_BYTES);
        }
        &mut self.tail
    }

    /// Appends a part of a payload, without copying it if it is large.
    #[inline]
    pub(super) fn put_payload(&mut self, payload: &Bytes, from: usize, to: usize) {
        if to.saturating_sub(from) < COPY_BYTES_BELOW {
            if let Some(part) = payload.get(from..to) {
                self.tail.extend_from_slice(part);
            }
            return;
        }
        self.close_tail();
        self.push_chunk(payload.slice(from..to));
    }

    /// Moves all output to the end of `chunks`.
    pub(super) fn take(&mut self, chunks: &mut Vec<Bytes>) {
        self.close_tail();
        chunks.append(&mut self.chunks);
        self.chunk_bytes = 0;
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
}
