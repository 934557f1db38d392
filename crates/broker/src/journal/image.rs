//! A whole namespace in one piece of bytes: its state as a snapshot tells it, and the payloads beside it.
//!
//! ```text
//! magic 8 | taken u64 | messages u64 | payloads u32
//! payload = location u64 | assigned id: u8 0, or 1 and u128 | length u32 | bytes
//! the state, as a stream of facts
//! SHA-256 of all before, 32
//! ```
//!
//! Locations only tell which payload belongs to which message: where they lay means nothing any more. An image
//! is made of bytes that were verified when they were read, and says by its digest whether it is still what was
//! written.

use super::field::Error as FieldError;
use super::stream;
use crate::shard::Body;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use vorrang_engine::fact::Fact;
use vorrang_engine::{Location, Timestamp};

const MAGIC: [u8; 8] = *b"VRIMAGE1";
const DIGEST_BYTES: usize = 32;
/// The bytes that tell what an image is, without its content.
pub const HEAD_BYTES: usize = 28;
/// The largest image; a larger one is neither made nor read.
pub const BYTES_MAX: usize = 256 * 1024 * 1024;

/// Why bytes are no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Something else, or of another version.
    #[error("this is no snapshot of a namespace, or one of another version")]
    Magic,
    /// More than there may be.
    #[error("a snapshot holds at most {} MiB of messages and definitions", BYTES_MAX >> 20)]
    TooLarge,
    /// Not what was written.
    #[error("the snapshot is damaged: its digest is not that of its content")]
    Damaged,
    /// It ends too early.
    #[error("the snapshot is cut off")]
    Short,
    /// The state in it cannot be read.
    #[error("the snapshot cannot be understood: {0}")]
    Field(#[from] FieldError),
    /// A message has no payload.
    #[error("the snapshot lacks the content of a message")]
    PayloadMissing,
}

/// A whole namespace.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// When it was taken, by the shard's clock.
    pub taken: Timestamp,
    /// Payloads by where they lay.
    pub payloads: BTreeMap<Location, Body>,
    /// The state.
    pub parts: Vec<Fact>,
}

/// What an image is, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// When it was taken, by the shard's clock.
    pub taken: Timestamp,
    /// How many messages there are in it.
    pub messages: u64,
}

impl Summary {
    /// Reads the first bytes of an image.
    pub fn read(head: &[u8]) -> Result<Summary, Error> {
        let (magic, rest) = head.split_first_chunk().ok_or(Error::Short)?;
        if *magic != MAGIC {
            return Err(Error::Magic);
        }
        let (taken, rest) = rest.split_first_chunk().ok_or(Error::Short)?;
        let (messages, _) = rest.split_first_chunk().ok_or(Error::Short)?;
        Ok(Summary { taken: Timestamp(u64::from_le_bytes(*taken)), messages: u64::from_le_bytes(*messages) })
    }
}

impl Image {
    /// How many messages there are in it.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let messages = self.parts.iter().filter(|part| matches!(part, Fact::RestoredMessage(_)));
        u64::try_from(messages.count()).unwrap_or(u64::MAX)
    }

    /// As bytes.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.taken.0.to_le_bytes());
        out.extend_from_slice(&self.messages().to_le_bytes());
        let count = u32::try_from(self.payloads.len()).map_err(|_| Error::TooLarge)?;
        out.extend_from_slice(&count.to_le_bytes());
        for (location, body) in &self.payloads {
            out.extend_from_slice(&location.0.to_le_bytes());
            out.push(u8::from(body.assigned_id.is_some()));
            out.extend(body.assigned_id.into_iter().flat_map(u128::to_le_bytes));
            let length = u32::try_from(body.bytes.len()).map_err(|_| Error::TooLarge)?;
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&body.bytes);
            if out.len() > BYTES_MAX {
                return Err(Error::TooLarge);
            }
        }
        stream::begin(&mut out);
        for part in &self.parts {
            stream::fact(part, &mut out);
        }
        stream::end(&mut out);
        let digest = Sha256::digest(&out);
        out.extend_from_slice(&digest);
        if out.len() > BYTES_MAX { Err(Error::TooLarge) } else { Ok(out) }
    }

    /// From bytes; every message in it has its payload.
    pub fn decode(bytes: &Bytes) -> Result<Image, Error> {
        if bytes.len() > BYTES_MAX {
            return Err(Error::TooLarge);
        }
        let Summary { taken, .. } = Summary::read(bytes)?;
        let end =
            bytes.len().checked_sub(DIGEST_BYTES).filter(|end| *end >= HEAD_BYTES).ok_or(Error::Short)?;
        let (content, digest) = bytes.split_at_checked(end).ok_or(Error::Short)?;
        if Sha256::digest(content).as_slice() != digest {
            return Err(Error::Damaged);
        }
        let mut rest = bytes.slice(HEAD_BYTES.saturating_sub(4)..end);
        let count = u32::from_le_bytes(chunk(&mut rest)?);
        let mut payloads = BTreeMap::new();
        for _ in 0..count {
            let location = Location(u64::from_le_bytes(chunk(&mut rest)?));
            let [assigned] = chunk(&mut rest)?;
            let assigned_id = match assigned {
                0 => None,
                _ => Some(u128::from_le_bytes(chunk(&mut rest)?)),
            };
            let length =
                usize::try_from(u32::from_le_bytes(chunk(&mut rest)?)).map_err(|_| Error::TooLarge)?;
            if length > rest.len() {
                return Err(Error::Short);
            }
            payloads.insert(location, Body { bytes: rest.split_to(length), assigned_id });
        }
        let mut parts = Vec::new();
        let mut reader = stream::Reader::default();
        reader.feed(&rest, |piece| {
            if let stream::Piece::Fact(fact) = piece {
                parts.push(fact);
            }
        })?;
        reader.finish()?;
        let has_payload = |part: &Fact| match part {
            Fact::RestoredMessage(message) => payloads
                .get(&message.location)
                .is_some_and(|body| u32::try_from(body.bytes.len()) == Ok(message.size)),
            // What lies on disk lies in no image.
            Fact::RestoredRun(_) | Fact::RestoredGaps(_) => false,
            _ => true,
        };
        if parts.iter().all(has_payload) {
            Ok(Image { taken, payloads, parts })
        } else {
            Err(Error::PayloadMissing)
        }
    }
}

fn chunk<const N: usize>(rest: &mut Bytes) -> Result<[u8; N], Error> {
    let found = *rest.first_chunk().ok_or(Error::Short)?;
    let _ = rest.split_to(N);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::samples::Source;
    use proptest::prelude::*;

    fn image() -> Image {
        let entropy: Vec<u8> = (1..=250).map(|n: u8| n.wrapping_mul(37)).collect();
        let mut source = Source(&entropy);
        let mut message = source.fact(29);
        let Fact::RestoredMessage(inner) = &mut message else { panic!("{message:?}") };
        (inner.location, inner.size) = (Location(77), 3);
        let body = Body { bytes: Bytes::from_static(b"abc"), assigned_id: Some(9) };
        let parts = vec![source.fact(25), source.fact(26), source.fact(27), message];
        Image { taken: Timestamp(5), payloads: BTreeMap::from([(Location(77), body)]), parts }
    }

    #[test]
    fn an_image_is_read_as_it_was_written() {
        let image = image();
        let bytes = Bytes::from(image.encode().unwrap());
        let read = Image::decode(&bytes).unwrap();
        assert_eq!(format!("{read:?}"), format!("{image:?}"));
        let summary = Summary::read(&bytes[..HEAD_BYTES]).unwrap();
        assert_eq!(summary, Summary { taken: Timestamp(5), messages: 1 });
    }

    #[test]
    fn damage_anywhere_and_every_cut_are_noticed() {
        let bytes = image().encode().unwrap();
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert!(Image::decode(&Bytes::from(damaged)).is_err(), "byte {place}");
            assert!(Image::decode(&Bytes::copy_from_slice(&bytes[..place])).is_err(), "cut at {place}");
        }
    }

    #[test]
    fn a_message_without_its_payload_is_noticed() {
        let mut image = image();
        image.payloads.clear();
        let bytes = Bytes::from(image.encode().unwrap());
        assert_eq!(Image::decode(&bytes).unwrap_err(), Error::PayloadMissing);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(mut content in proptest::collection::vec(any::<u8>(), 0..200)) {
            // Behind a digest that is right, so that the content itself is looked at.
            content.splice(0..0, MAGIC);
            let digest = Sha256::digest(&content);
            content.extend_from_slice(&digest);
            let _ = Image::decode(&Bytes::from(content));
        }
    }
}
