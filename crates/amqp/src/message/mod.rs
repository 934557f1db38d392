//! Messages: where their sections lie, what is in them, and how to send them on.
//!
//! A broker must not encode a body again, and need not look at it. So a [`Message`] is the encoded bytes and the
//! offsets of the sections in them; a section is decoded when someone asks. For delivery only the sections in front
//! are written anew ([`Message::rebuild`]) and the bare message follows as the slice it always was.

mod batch;
mod front;
mod header;
mod layout;
mod outline;
mod properties;
mod rebuild;
mod write;

use bytes::Bytes;

pub use batch::BatchBuilder;
pub use front::Front;
pub use header::Header;
pub use layout::{BodyKind, Layout, Section};
pub use outline::Outline;
pub use properties::{Essentials, Identity, MessageId, Properties};
pub use rebuild::Changes;
pub use write::{put_data, put_header, put_map_section, put_properties, put_value};

use crate::decode::{Composite, Reader, quick};
use crate::error::DecodeError;
use crate::value::{Encoded, Map, Value};

/// An encoded message whose sections were found and checked, the body excepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    encoded: Bytes,
    layout: Layout,
}

impl Message {
    /// Finds the sections of an encoded message.
    ///
    /// Checks their order, their descriptors and every value outside the body. Of body values only the outermost
    /// size is looked at: they travel as they are.
    pub fn parse(encoded: Bytes) -> Result<Self, DecodeError> {
        let layout = Layout::of(&encoded)?;
        Ok(Self { encoded, layout })
    }

    /// Finds the sections of a message that [`Message::parse`] has taken before, for instance when it was stored.
    ///
    /// Their order, descriptors and sizes are checked again, what is in them is not.
    pub fn parse_again(encoded: Bytes) -> Result<Self, DecodeError> {
        let layout = Layout::of_checked(&encoded)?;
        Ok(Self { encoded, layout })
    }

    /// The whole encoded message.
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// The whole encoded message, when nothing else is wanted of it any more.
    pub fn into_encoded(self) -> Bytes {
        self.encoded
    }

    /// What to note about the message, to look into it again without finding its sections.
    pub fn outline(&self) -> Outline {
        Outline::of(&self.layout)
    }

    /// Where the sections are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The header, if there is one.
    #[inline]
    pub fn header(&self) -> Result<Option<Header>, DecodeError> {
        self.value_of(self.layout.header).map(|value| header_in(&self.encoded, value)).transpose()
    }

    /// The header, whatever its encoding.
    pub(crate) fn header_carefully(&self) -> Result<Option<Header>, DecodeError> {
        self.composite(self.layout.header)
    }

    /// The properties, if there are any.
    pub fn properties(&self) -> Result<Option<Properties>, DecodeError> {
        self.value_of(self.layout.properties).map(|value| properties_in(&self.encoded, value)).transpose()
    }

    /// Those of the properties that a broker needs. Refuses what [`Message::properties`] refuses.
    pub fn essentials(&self) -> Result<Essentials<'_>, DecodeError> {
        let Some(section) = self.value_of(self.layout.properties) else { return Ok(Essentials::default()) };
        match quick::essentials(section) {
            Some(essentials) => Ok(essentials),
            None => Ok(self.properties_carefully()?.unwrap_or_default().into()),
        }
    }

    /// The properties, whatever their encoding.
    pub(crate) fn properties_carefully(&self) -> Result<Option<Properties>, DecodeError> {
        self.composite(self.layout.properties)
    }

    /// Annotations meant for the next hop.
    pub fn delivery_annotations(&self) -> Option<Map> {
        self.map(self.layout.delivery_annotations)
    }

    /// Annotations of the message.
    pub fn message_annotations(&self) -> Option<Map> {
        self.map(self.layout.message_annotations)
    }

    /// The application's own properties; look at them with [`Map::encoded_iter`] to keep values byte for byte.
    pub fn application_properties(&self) -> Option<Map> {
        self.map(self.layout.application_properties)
    }

    /// Keys and values of the message's annotations in order, still encoded.
    pub fn annotation_entries(&self) -> impl Iterator<Item = (Encoded<'_>, Encoded<'_>)> + '_ {
        self.entries(self.layout.message_annotations)
    }

    /// Keys and values of the application's own properties in order, still encoded.
    pub fn application_entries(&self) -> impl Iterator<Item = (Encoded<'_>, Encoded<'_>)> + '_ {
        self.entries(self.layout.application_properties)
    }

    /// The footer.
    pub fn footer(&self) -> Option<Map> {
        self.map(self.layout.footer)
    }

    /// The contents of the data sections, in order; none if the body is of another kind.
    pub fn data(&self) -> impl Iterator<Item = Bytes> + '_ {
        let body = match self.layout.body_kind {
            BodyKind::Data => self.encoded.get(self.layout.body()),
            _ => None,
        };
        let mut reader = Reader::of_part(&self.encoded, body.unwrap_or_default());
        std::iter::from_fn(move || {
            reader.descriptor("data").ok()?;
            reader.binary().ok()
        })
    }

    /// The encoded value of an `amqp-value` body.
    pub fn encoded_value(&self) -> Option<Bytes> {
        if self.layout.body_kind != BodyKind::Value {
            return None;
        }
        let body = self.encoded.get(self.layout.body())?;
        let mut reader = Reader::of_part(&self.encoded, body);
        reader.descriptor("amqp-value").ok()?;
        Some(reader.shared_rest())
    }

    /// The value of an `amqp-value` body, checked now.
    pub fn value(&self) -> Result<Option<Value>, DecodeError> {
        let Some(encoded) = self.encoded_value() else { return Ok(None) };
        let mut reader = Reader::new(&encoded);
        let value = reader.value()?;
        reader.finish()?;
        Ok(Some(value))
    }

    /// The encoded value of a section.
    #[inline]
    fn value_of(&self, section: Option<Section>) -> Option<&[u8]> {
        section.and_then(|section| self.encoded.get(section.value()..section.end()))
    }

    fn composite<T: Composite>(&self, section: Option<Section>) -> Result<Option<T>, DecodeError> {
        self.value_of(section).map(|value| composite_in(&self.encoded, value)).transpose()
    }

    fn entries(&self, section: Option<Section>) -> impl Iterator<Item = (Encoded<'_>, Encoded<'_>)> + '_ {
        entries_in(&self.encoded, self.value_of(section).unwrap_or_default())
    }

    fn map(&self, section: Option<Section>) -> Option<Map> {
        let bytes = self.value_of(section)?;
        Reader::of_part(&self.encoded, bytes).checked_map()
    }
}

/// The header whose encoded value is `value`, a part of `encoded`.
#[inline]
fn header_in(encoded: &Bytes, value: &[u8]) -> Result<Header, DecodeError> {
    match quick::header(value) {
        Some(header) => Ok(header),
        None => composite_in(encoded, value),
    }
}

/// The properties whose encoded value is `value`, a part of `encoded`.
fn properties_in(encoded: &Bytes, value: &[u8]) -> Result<Properties, DecodeError> {
    match quick::properties(value, encoded) {
        Some(properties) => Ok(properties),
        None => composite_in(encoded, value),
    }
}

fn composite_in<T: Composite>(encoded: &Bytes, value: &[u8]) -> Result<T, DecodeError> {
    Reader::of_part(encoded, value).fields(T::DESCRIPTOR.name, T::read)
}

/// Keys and values of the map whose encoded value is `value`, a part of `encoded` that was checked before.
fn entries_in<'b>(
    encoded: &'b Bytes,
    value: &'b [u8],
) -> impl Iterator<Item = (Encoded<'b>, Encoded<'b>)> + 'b {
    let mut reader = Reader::of_checked_part(encoded, value);
    let count = reader.enter_checked_map().unwrap_or(0);
    (0..count / 2).map_while(move |_| Some((reader.checked_encoded()?, reader.checked_encoded()?)))
}
