//! Finding the sections of an encoded message (AMQP 1.0 3.2).
//!
//! Sections come in a fixed order, each at most once, but for the data and sequence sections of a body. A message
//! that breaks this could mean one thing to us and another to its receiver, so it is refused.

use std::num::NonZeroU32;
use std::ops::Range;

use bytes::Bytes;

use crate::constructor as code;
use crate::decode::Reader;
use crate::descriptor;
use crate::error::DecodeError;

/// Where one section lies in the encoded message. Small, because a message's layout is moved with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    start: u32,
    value: u32,
    end: NonZeroU32,
}

impl Section {
    fn new(start: usize, value: usize, end: usize) -> Option<Self> {
        Some(Self { start: place(start), value: place(value), end: NonZeroU32::new(place(end))? })
    }

    /// Its first byte, the descriptor's.
    pub fn start(self) -> usize {
        index(self.start)
    }

    /// The first byte of its value.
    pub fn value(self) -> usize {
        index(self.value)
    }

    /// The byte behind it.
    pub fn end(self) -> usize {
        index(self.end.get())
    }
}

/// A place in a message: none is as long as four gigabytes, which [`Walk::begin`] makes sure of.
fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
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
    body_start: u32,
    body_end: u32,
    /// The footer.
    pub footer: Option<Section>,
}

/// A kind of section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// How much of a section's value is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Every value in it.
    Inside,
    /// Its size.
    AtSize,
}

impl Layout {
    /// Finds the sections of `encoded`, and checks every value outside the body.
    pub(super) fn of(encoded: &Bytes) -> Result<Self, DecodeError> {
        Self::find(encoded, Look::Inside)
    }

    /// Finds the sections of `encoded`, whose values were checked before.
    pub(super) fn of_checked(encoded: &Bytes) -> Result<Self, DecodeError> {
        Self::find(encoded, Look::AtSize)
    }

    #[inline]
    fn find(encoded: &Bytes, look: Look) -> Result<Self, DecodeError> {
        let mut walk = Walk::begin(encoded)?;
        let header = walk.section(Kind::Header, look)?;
        let delivery_annotations = walk.section(Kind::DeliveryAnnotations, look)?;
        let message_annotations = walk.section(Kind::MessageAnnotations, look)?;
        let properties = walk.section(Kind::Properties, look)?;
        let application_properties = walk.section(Kind::ApplicationProperties, look)?;
        let (body_kind, body) = walk.body()?;
        let footer = walk.section(Kind::Footer, look)?;
        walk.finish()?;
        Ok(Self {
            header,
            delivery_annotations,
            message_annotations,
            properties,
            application_properties,
            body_kind,
            body_start: place(body.start),
            body_end: place(body.end),
            footer,
        })
    }

    /// Of a message whose values were checked before, only what stands in front of the bare message: the header, the message's
    /// annotations, and where the bare message begins.
    #[inline]
    pub(super) fn front_of_checked(
        encoded: &Bytes,
    ) -> Result<(Option<Section>, Option<Section>, usize), DecodeError> {
        let mut walk = Walk::begin(encoded)?;
        let header = walk.section(Kind::Header, Look::AtSize)?;
        walk.section(Kind::DeliveryAnnotations, Look::AtSize)?;
        let annotations = walk.section(Kind::MessageAnnotations, Look::AtSize)?;
        Ok((header, annotations, walk.start))
    }

    /// All body sections, first to last; empty, but in its place, when there is none.
    pub fn body(&self) -> Range<usize> {
        index(self.body_start)..index(self.body_end)
    }

    /// Where the bare message begins: properties, application properties, body.
    pub fn bare_start(&self) -> usize {
        self.properties.map_or_else(|| self.behind_properties(), Section::start)
    }

    /// Where the part behind the properties begins: application properties, body.
    pub(super) fn behind_properties(&self) -> usize {
        self.application_properties.map_or(index(self.body_start), Section::start)
    }
}

/// A way through a message, from section to section.
struct Walk<'b> {
    encoded: &'b Bytes,
    reader: Reader<'b>,
    /// Where the next section starts, or the message ends.
    start: usize,
    /// The next section; its descriptor is read.
    next: Option<Kind>,
    previous: Option<Kind>,
}

impl<'b> Walk<'b> {
    /// Stands before the first section.
    #[inline]
    fn begin(encoded: &'b Bytes) -> Result<Self, DecodeError> {
        if u32::try_from(encoded.len()).is_err() {
            return Err(DecodeError::OutOfRange { expected: "a message of less than four gigabytes" });
        }
        let mut walk = Self { encoded, reader: Reader::new(encoded), start: 0, next: None, previous: None };
        walk.look()?;
        Ok(walk)
    }

    #[inline]
    fn position(&self) -> usize {
        self.encoded.len().saturating_sub(self.reader.remaining())
    }

    /// Looks what comes next.
    #[inline]
    fn look(&mut self) -> Result<(), DecodeError> {
        self.start = self.position();
        let at_end = self.reader.remaining() == 0;
        self.next = if at_end { None } else { Some(Kind::decode(&mut self.reader)?) };
        Ok(())
    }

    /// The next section if it is of this kind.
    #[allow(clippy::inline_always, reason = "kind and look are known where it is called")]
    #[inline(always)]
    fn section(&mut self, kind: Kind, look: Look) -> Result<Option<Section>, DecodeError> {
        if self.next != Some(kind) {
            return Ok(None);
        }
        let (start, value) = (self.start, self.position());
        kind.check_shape(self.reader.peek()?)?;
        match look {
            Look::Inside => self.reader.skip()?,
            Look::AtSize => self.reader.skip_by_size()?,
        }
        let end = self.position();
        self.previous = self.next;
        self.look()?;
        Ok(Section::new(start, value, end))
    }

    /// The sections of the body. Its values travel as they are, so only their sizes are looked at.
    #[inline]
    fn body(&mut self) -> Result<(BodyKind, Range<usize>), DecodeError> {
        let (kind, body_kind) = match self.next {
            Some(kind @ Kind::Data) => (kind, BodyKind::Data),
            Some(kind @ Kind::Sequence) => (kind, BodyKind::Sequence),
            Some(kind @ Kind::Value) => (kind, BodyKind::Value),
            _ => return Ok((BodyKind::Absent, self.start..self.start)),
        };
        let mut body = self.start..self.start;
        while let Some(section) = self.section(kind, Look::AtSize)? {
            body.end = section.end();
            if kind == Kind::Value {
                break;
            }
        }
        Ok((body_kind, body))
    }

    /// Refuses a section that is left: it came behind one it may not follow.
    #[inline]
    fn finish(&self) -> Result<(), DecodeError> {
        match (self.next, self.previous) {
            (Some(section), Some(after)) => {
                Err(DecodeError::SectionOrder { section: section.name(), after: after.name() })
            }
            _ => Ok(()),
        }
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
