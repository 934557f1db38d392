//! A buffer for many small writes that is used again and again.
//!
//! A `Vec` or `BytesMut` makes a call of every write, however small. Here the room is filled with zeros when it is made,
//! so that a write is a comparison and a copy of known length. That holds as the release is built, with LTO; without, the
//! copy is a call as well, and nothing is won.

use bytes::Bytes;

use crate::encode::Output;

/// How much the room grows at least.
const GROW_BYTES: usize = 256;

/// The buffer. It keeps its room when it is cleared.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    /// What was written, and zeros or what was written before it was last cleared.
    room: Vec<u8>,
    length: usize,
}

impl Sheet {
    /// Forgets what was written.
    #[inline]
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// What was written.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.room.get(..self.length).unwrap_or_default()
    }

    /// What was written, in memory that can be shared.
    pub fn into_bytes(mut self) -> Bytes {
        self.room.truncate(self.length);
        self.room.into()
    }

    #[cold]
    fn grow(&mut self, bytes: &[u8]) {
        self.room.truncate(self.length);
        self.room.extend_from_slice(bytes);
        self.length = self.room.len();
        self.room.resize(self.length.saturating_add(GROW_BYTES), 0);
    }
}

impl Output for Sheet {
    const COLLECT: bool = false;

    #[allow(clippy::inline_always, reason = "out of line, the length of the copy would not be known")]
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        match self.room.get_mut(self.length..end) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length = end;
            }
            None => self.grow(bytes),
        }
    }

    #[inline]
    fn written(&mut self) -> &mut [u8] {
        self.room.get_mut(..self.length).unwrap_or_default()
    }

    #[inline]
    fn position(&self) -> usize {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_there_whatever_the_room() {
        let mut sheet = Sheet::default();
        for round in 0..3 {
            sheet.clear();
            let mut expected = Vec::new();
            for length in [0, 1, 3, 255, 256, 257, 1000, 2] {
                let bytes = vec![u8::try_from(length % 251).unwrap(); length];
                sheet.put(&bytes);
                expected.extend_from_slice(&bytes);
                assert_eq!((sheet.as_bytes(), sheet.position()), (&*expected, expected.len()), "{round}");
                assert_eq!(sheet.written(), &*expected);
            }
            assert_eq!(sheet.clone().into_bytes(), expected);
        }
    }
}
