//! A small buffer on the stack, in which most performatives fit.
//!
//! A `BytesMut` takes its time with every field it is given. A performative of a dozen fields is written here first,
//! where a field costs a comparison, and appended in one piece: half the time. What is longer, and written by one owner
//! again and again, goes into a [`Sheet`](super::Sheet).

use crate::encode::Output;

/// Room for a transfer with the longest tag, a flow or a disposition, several times over.
const SCRATCH_BYTES: usize = 128;

/// Collects bytes until some do not fit; from then on it takes no more.
#[derive(Debug)]
pub(crate) struct Scratch {
    bytes: [u8; SCRATCH_BYTES],
    length: usize,
    overflowed: bool,
}

impl Scratch {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { bytes: [0; SCRATCH_BYTES], length: 0, overflowed: false }
    }

    /// What was written, unless it was too much.
    #[inline]
    pub(crate) fn fitting(&self) -> Option<&[u8]> {
        if self.overflowed { None } else { self.bytes.get(..self.length) }
    }
}

impl Output for Scratch {
    const COLLECT: bool = false;

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        match self.bytes.get_mut(self.length..end) {
            Some(place) if !self.overflowed => {
                place.copy_from_slice(bytes);
                self.length = end;
            }
            _ => self.overflowed = true,
        }
    }

    #[inline]
    fn written(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.length).unwrap_or_default()
    }

    #[inline]
    fn position(&self) -> usize {
        self.length
    }
}
