//! Finding the sections of an encoded message (AMQP 1.0 3.2).
//!
//! Sections come in a fixed order, each at most once, but for the data and sequence sections of a body. A message
//! that breaks this could mean one thing to us and another to its receiver, so it is refused.

use std::ops::Range;

use bytes::Bytes;

use crate::constructor as code;
use crate::decode::Reader;
use crate::descriptor;
use crate::error::DecodeError;

/// Where one section lies in the encoded message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Its first byte, the descriptor's.
    pub start: usize,
    /// The first byte of its value.
    pub value: usize,
    /// The byte behind it.
    pub end: usize,
}

/// What a body is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum BodyKind {
    /// There is no body section; some clients send such messages.
    #[default]
    Absent,
    /// One or more data sections.
    Data,
    /// One or more sequence sections.
    Sequence,
    /// One value section.
    Value,
}

/// Where the sections of a message lie.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// Transport headers.
    pub header: Option<Section>,
    /// Annotations for the next hop.
    pub delivery_annotations: Option<Section>,
    /// Annotations of the message.
    pub message_annotations: Option<Section>,
    /// Properties the standard defines.
    pub properties: Option<Section>,
    /// Properties of the application.
    pub application_properties: Option<Section>,
    /// What the body is made of.
    pub body_kind: BodyKind,
    /// All body sections, first to last; empty, but in its place, when there is none.
    pub body: Range<usize>,
    /// The footer.
    pub footer: Option<Section>,
}

/// A kind of section, in the order of the wire. The three kinds of body exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Header,
    DeliveryAnnotations,
    MessageAnnotations,
    Properties,
    ApplicationProperties,
    Data,
    Sequence,
    Value,
    Footer,
}

impl Layout {
    /// Finds the sections of `encoded`, and checks every value outside the body.
    pub(super) fn of(encoded: &Bytes) -> Result<Self, DecodeError> {
        Self::find(encoded, |kind, reader| if kind.is_body() { reader.skip_by_size() } else { reader.skip() })
    }

    /// Finds the sections of `encoded`, whose values were checked before.
    pub(super) fn of_checked(encoded: &Bytes) -> Result<Self, DecodeError> {
        Self::find(encoded, |_, reader| reader.skip_by_size())
    }

    /// Finds the sections of `encoded`, passing over their values with `pass`.
    #[inline]
    fn find(
        encoded: &Bytes,
        pass: impl Fn(Kind, &mut Reader<'_>) -> Result<(), DecodeError>,
    ) -> Result<Self, DecodeError> {
        let mut layout = Self::default();
        let mut reader = Reader::new(encoded);
        let mut previous = None;
        while reader.remaining() > 0 {
            let start = encoded.len().saturating_sub(reader.remaining());
            let kind = Kind::decode(&mut reader)?;
            let value = encoded.len().saturating_sub(reader.remaining());
            if let Some(previous) = previous
                && !kind.may_follow(previous)
            {
                return Err(DecodeError::SectionOrder { section: kind.name(), after: previous.name() });
            }
            kind.check_shape(reader.peek()?)?;
            pass(kind, &mut reader)?;
            let end = encoded.len().saturating_sub(reader.remaining());
            layout.record(kind, Section { start, value, end });
            previous = Some(kind);
        }
        layout.place_empty_body(encoded.len());
        Ok(layout)
    }

    #[inline]
    fn record(&mut self, kind: Kind, section: Section) {
        match kind {
            Kind::Header => self.header = Some(section),
            Kind::DeliveryAnnotations => self.delivery_annotations = Some(section),
            Kind::MessageAnnotations => self.message_annotations = Some(section),
            Kind::Properties => self.properties = Some(section),
            Kind::ApplicationProperties => self.application_properties = Some(section),
            Kind::Data => self.record_body(BodyKind::Data, section),
            Kind::Sequence => self.record_body(BodyKind::Sequence, section),
            Kind::Value => self.record_body(BodyKind::Value, section),
            Kind::Footer => self.footer = Some(section),
        }
    }

    #[inline]
    fn record_body(&mut self, kind: BodyKind, section: Section) {
        if self.body_kind == BodyKind::Absent {
            self.body_kind = kind;
            self.body.start = section.start;
        }
        self.body.end = section.end;
    }

    fn place_empty_body(&mut self, length: usize) {
        if self.body_kind == BodyKind::Absent {
            let place = self.footer.map_or(length, |footer| footer.start);
            self.body = place..place;
        }
    }

    /// Where the bare message begins: properties, application properties, body.
    pub fn bare_start(&self) -> usize {
        self.properties.map_or_else(|| self.behind_properties(), |section| section.start)
    }

    /// Where the part behind the properties begins: application properties, body.
    pub(super) fn behind_properties(&self) -> usize {
        self.application_properties.map_or(self.body.start, |section| section.start)
    }
}

impl Kind {
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const EXPECTED: &str = "a message section";
        match reader.descriptor(EXPECTED)? {
            0x70 => Ok(Self::Header),
            0x71 => Ok(Self::DeliveryAnnotations),
            0x72 => Ok(Self::MessageAnnotations),
            0x73 => Ok(Self::Properties),
            0x74 => Ok(Self::ApplicationProperties),
            0x75 => Ok(Self::Data),
            0x76 => Ok(Self::Sequence),
            0x77 => Ok(Self::Value),
            0x78 => Ok(Self::Footer),
            found => Err(DecodeError::UnexpectedDescriptor { expected: EXPECTED, found }),
        }
    }

    #[inline]
    fn may_follow(self, previous: Self) -> bool {
        if previous.is_body() && self.is_body() {
            return previous == self && self != Self::Value;
        }
        previous < self
    }

    #[inline]
    fn is_body(self) -> bool {
        matches!(self, Self::Data | Self::Sequence | Self::Value)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Header => descriptor::HEADER.name,
            Self::DeliveryAnnotations => descriptor::DELIVERY_ANNOTATIONS.name,
            Self::MessageAnnotations => descriptor::MESSAGE_ANNOTATIONS.name,
            Self::Properties => descriptor::PROPERTIES.name,
            Self::ApplicationProperties => descriptor::APPLICATION_PROPERTIES.name,
            Self::Data => descriptor::DATA.name,
            Self::Sequence => descriptor::AMQP_SEQUENCE.name,
            Self::Value => descriptor::AMQP_VALUE.name,
            Self::Footer => descriptor::FOOTER.name,
        }
    }

    /// Checks that the section's value has the shape its descriptor promises.
    #[inline]
    fn check_shape(self, constructor: u8) -> Result<(), DecodeError> {
        let (expected, fits) = match self {
            Self::Header | Self::Properties | Self::Sequence => {
                ("a list", matches!(constructor, code::LIST_0 | code::LIST_8 | code::LIST_32))
            }
            Self::DeliveryAnnotations
            | Self::MessageAnnotations
            | Self::ApplicationProperties
            | Self::Footer => ("a map", matches!(constructor, code::MAP_8 | code::MAP_32)),
            Self::Data => ("a binary", matches!(constructor, code::BINARY_8 | code::BINARY_32)),
            Self::Value => ("a value", true),
        };
        if fits { Ok(()) } else { Err(DecodeError::UnexpectedType { expected, code: constructor }) }
    }
}
