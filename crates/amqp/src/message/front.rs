//! What stands in front of a stored message, when nothing behind it is asked for.
//!
//! Most messages go out with another header and other annotations, and otherwise as they came. Where that begins is found
//! without going through the rest of them.

use bytes::Bytes;

use super::header_in;
use super::layout::{Layout, Section};
use crate::error::DecodeError;
use crate::message::Header;

/// The sections before the bare message.
#[derive(Debug, Clone, Copy)]
pub struct Front<'m> {
    encoded: &'m Bytes,
    header: Option<Section>,
    annotations: Option<Section>,
    bare_start: usize,
}

impl<'m> Front<'m> {
    /// Finds the sections in front of a message that [`Message::parse`](super::Message::parse) has taken before.
    #[inline]
    pub fn of_checked(encoded: &'m Bytes) -> Result<Self, DecodeError> {
        let (header, annotations, bare_start) = Layout::front_of_checked(encoded)?;
        Ok(Self { encoded, header, annotations, bare_start })
    }

    /// The header, if there is one.
    #[inline]
    pub fn header(&self) -> Result<Option<Header>, DecodeError> {
        let value = self.header.and_then(|section| self.encoded.get(section.value()..section.end()));
        value.map(|value| header_in(self.encoded, value)).transpose()
    }

    /// Whether the message has annotations of its own.
    pub fn is_annotated(&self) -> bool {
        self.annotations.is_some()
    }

    /// Where the bare message begins: properties, application properties, body.
    pub fn bare_start(&self) -> usize {
        self.bare_start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor;
    use crate::message::{
        Message, Properties, put_data, put_header, put_map_section, put_properties, put_value,
    };

    /// Messages with and without each of their sections.
    fn messages() -> impl Iterator<Item = Message> {
        (0..1_u32 << 7).map(|sections| {
            let has = |section: u32| sections >> section & 1 == 1;
            let mut bytes = Vec::new();
            if has(0) {
                put_header(&mut bytes, &Header { priority: Some(3), ..Header::default() });
            }
            let maps = [
                (1, descriptor::DELIVERY_ANNOTATIONS),
                (2, descriptor::MESSAGE_ANNOTATIONS),
                (4, descriptor::APPLICATION_PROPERTIES),
            ];
            for (section, map) in maps {
                if section == 4 && has(3) {
                    put_properties(&mut bytes, &Properties::default());
                }
                if has(section) {
                    put_map_section(&mut bytes, map, |map| map.symbol("key", &1_i64));
                }
            }
            if has(5) {
                put_data(&mut bytes, b"body");
            } else {
                put_value(&mut bytes, &7_i64);
            }
            if has(6) {
                put_map_section(&mut bytes, descriptor::FOOTER, |map| map.symbol("key", &1_i64));
            }
            Message::parse(Bytes::from(bytes)).unwrap()
        })
    }

    #[test]
    fn what_is_found_in_front_is_what_a_look_at_the_whole_message_finds() {
        for message in messages() {
            let front = Front::of_checked(message.encoded()).unwrap();
            assert_eq!(front.header(), message.header());
            assert_eq!(front.is_annotated(), message.layout().message_annotations.is_some());
            assert_eq!(front.bare_start(), message.layout().bare_start(), "{message:?}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(Front::of_checked(&Bytes::from_static(b"\x00\x53")).is_err());
    }
}
