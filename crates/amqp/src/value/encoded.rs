//! One encoded value in a buffer that was checked.

use bytes::Bytes;

use crate::decode::Reader;
use crate::value::Value;

/// A value as it lies in a buffer: to be copied byte for byte, or decoded.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'b> {
    source: &'b Bytes,
    bytes: &'b [u8],
}

impl<'b> Encoded<'b> {
    /// A checked value at `bytes`, which lie in `source`.
    pub(crate) fn new(source: &'b Bytes, bytes: &'b [u8]) -> Self {
        Self { source, bytes }
    }

    /// The encoding.
    pub fn as_bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// The encoding as a slice that keeps the buffer alive.
    pub fn to_bytes(&self) -> Bytes {
        self.source.slice_ref(self.bytes)
    }

    /// The value.
    pub fn decode(&self) -> Value {
        Reader::of_checked_part(self.source, self.bytes).checked_value().unwrap_or_default()
    }

    /// The text of a string or symbol, without a look at the value's type beyond that.
    pub fn as_str(&self) -> Option<&'b str> {
        self.text_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// The bytes of a string or symbol.
    pub(crate) fn text_bytes(&self) -> Option<&'b [u8]> {
        Reader::of_checked_part(self.source, self.bytes).next_text()
    }
}
