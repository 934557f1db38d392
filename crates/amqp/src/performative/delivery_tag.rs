//! A delivery's name on its link, kept inline.

use std::fmt;

use crate::decode::Reader;
use crate::encode::{Encode, Output, put_binary};
use crate::error::DecodeError;

/// AMQP 1.0 2.8.7: a delivery tag is up to 32 bytes.
pub const DELIVERY_TAG_BYTES_MAX: usize = 32;

/// A delivery tag. Inline, so that reading a transfer touches no reference count for it.
#[derive(Clone, Copy, Default)]
pub struct DeliveryTag {
    length: u8,
    bytes: [u8; DELIVERY_TAG_BYTES_MAX],
}

impl DeliveryTag {
    /// A tag of these bytes, at most 32.
    #[inline]
    pub fn new(tag: &[u8]) -> Result<Self, DecodeError> {
        // Lock tokens are 16 bytes; a copy of known length is a pair of moves.
        if let Ok(tag) = <[u8; 16]>::try_from(tag) {
            return Ok(Self::from(tag));
        }
        let too_long = || DecodeError::DeliveryTagTooLong { length: tag.len() };
        let mut bytes = [0; DELIVERY_TAG_BYTES_MAX];
        bytes.get_mut(..tag.len()).ok_or_else(too_long)?.copy_from_slice(tag);
        let length = u8::try_from(tag.len()).map_err(|_| too_long())?;
        Ok(Self { length, bytes })
    }

    /// The tag's bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&self.bytes)
    }
}

impl From<[u8; 16]> for DeliveryTag {
    #[inline]
    fn from(tag: [u8; 16]) -> Self {
        let mut bytes = [0; DELIVERY_TAG_BYTES_MAX];
        if let Some(place) = bytes.first_chunk_mut::<16>() {
            *place = tag;
        }
        Self { length: 16, bytes }
    }
}

impl From<u64> for DeliveryTag {
    /// A counter as an 8-byte tag, for links where any unique tag will do.
    fn from(counter: u64) -> Self {
        let mut bytes = [0; DELIVERY_TAG_BYTES_MAX];
        if let Some(place) = bytes.first_chunk_mut::<8>() {
            *place = counter.to_be_bytes();
        }
        Self { length: 8, bytes }
    }
}

impl PartialEq for DeliveryTag {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for DeliveryTag {}

impl std::hash::Hash for DeliveryTag {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for DeliveryTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            write!(formatter, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl DeliveryTag {
    #[inline]
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::new(reader.binary_slice()?)
    }
}

impl Encode for DeliveryTag {
    #[inline]
    fn encode<O: Output>(&self, out: &mut O) {
        put_binary(out, self.as_bytes());
    }
}
