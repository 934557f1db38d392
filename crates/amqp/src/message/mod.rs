//! Messages: where their sections lie, what is in them, and how to send them on.
//!
//! A broker must not encode a body again, and need not look at it. So a [`Message`] is the encoded bytes and the
//! offsets of the sections in them; a section is decoded when someone asks. For delivery only the sections in front
//! are written anew ([`Message::rebuild`]) and the bare message follows as the slice it always was.

mod batch;
mod header;
mod layout;
mod properties;
mod rebuild;
mod write;

use bytes::Bytes;

pub use batch::BatchBuilder;
pub use header::Header;
pub use layout::{BodyKind, Layout, Section};
pub use properties::{MessageId, Properties};
pub use rebuild::Changes;
pub use write::{put_data, put_header, put_map_section, put_properties, put_value};

use crate::decode::{Composite, Reader, quick};
use crate::error::DecodeError;
use crate::value::{Map, Value};

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

    /// A message whose sections were found before, for instance when it was stored.
    ///
    /// A layout of other bytes yields sections that are absent or nonsense, never a panic.
    pub fn with_layout(encoded: Bytes, layout: Layout) -> Self {
        Self { encoded, layout }
    }

    /// The whole encoded message.
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// Where the sections are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The header, if there is one.
    pub fn header(&self) -> Result<Option<Header>, DecodeError> {
        self.composite(self.layout.header)
    }

    /// The properties, if there are any.
    pub fn properties(&self) -> Result<Option<Properties>, DecodeError> {
        let section = self.layout.properties.and_then(|section| self.encoded.get(section.value..section.end));
        if let Some(properties) = section.and_then(|section| quick::properties(section, &self.encoded)) {
            return Ok(Some(properties));
        }
        self.properties_carefully()
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

    /// The footer.
    pub fn footer(&self) -> Option<Map> {
        self.map(self.layout.footer)
    }

    /// The contents of the data sections, in order; none if the body is of another kind.
    pub fn data(&self) -> impl Iterator<Item = Bytes> + '_ {
        let body = match self.layout.body_kind {
            BodyKind::Data => self.encoded.get(self.layout.body.start..self.layout.body.end),
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
        let body = self.encoded.get(self.layout.body.start..self.layout.body.end)?;
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

    fn composite<T: Composite>(&self, section: Option<Section>) -> Result<Option<T>, DecodeError> {
        let Some(bytes) = section.and_then(|section| self.encoded.get(section.value..section.end)) else {
            return Ok(None);
        };
        Reader::of_part(&self.encoded, bytes).fields(T::DESCRIPTOR.name, T::read).map(Some)
    }

    fn map(&self, section: Option<Section>) -> Option<Map> {
        let section = section?;
        let bytes = self.encoded.get(section.value..section.end)?;
        Reader::of_part(&self.encoded, bytes).checked_map()
    }
}
