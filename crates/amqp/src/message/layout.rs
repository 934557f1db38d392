//! Finding the sections of an encoded message (AMQP 1.0 3.2).
//!
//! Sections come in a fixed order, each at most once, but for the data and sequence sections of a body. A message
//! that breaks this could mean one thing to us and another to its receiver, so it is refused.

use std::ops::Range;

use bytes::Bytes;

use crate::constructor as code;
use crate::decode::Reader;
use crate::descriptor::{self, Descriptor};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

/// How far through the order of sections a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Start,
    Header,
    DeliveryAnnotations,
    MessageAnnotations,
    Properties,
    ApplicationProperties,
    Body,
    Footer,
}

impl Layout {
    /// Finds the sections of `encoded`.
    pub fn of(encoded: &Bytes) -> Result<Self, DecodeError> {
        let mut layout = Self::default();
        let mut reader = Reader::new(encoded);
        let mut stage = Stage::Start;
        let mut previous = "the start of the message";
        while reader.remaining() > 0 {
            let start = encoded.len().saturating_sub(reader.remaining());
            let found = section_descriptor(&mut reader)?;
            let value = encoded.len().saturating_sub(reader.remaining());
            let next = stage_of(found);
            let repeats = next == Stage::Body && stage == Stage::Body && layout.body_repeats(found);
            if next <= stage && !repeats {
                return Err(DecodeError::SectionOrder { section: found.name, after: previous });
            }
            check_section(&mut reader, found, next)?;
            let end = encoded.len().saturating_sub(reader.remaining());
            layout.record(next, found, Section { start, value, end });
            stage = next;
            previous = found.name;
        }
        layout.place_empty_body(encoded.len());
        Ok(layout)
    }

    /// Whether another body section of this kind may follow the ones there are.
    fn body_repeats(&self, found: Descriptor) -> bool {
        match self.body_kind {
            BodyKind::Data => found == descriptor::DATA,
            BodyKind::Sequence => found == descriptor::AMQP_SEQUENCE,
            BodyKind::Absent | BodyKind::Value => false,
        }
    }

    fn record(&mut self, stage: Stage, found: Descriptor, section: Section) {
        match stage {
            Stage::Start => {}
            Stage::Header => self.header = Some(section),
            Stage::DeliveryAnnotations => self.delivery_annotations = Some(section),
            Stage::MessageAnnotations => self.message_annotations = Some(section),
            Stage::Properties => self.properties = Some(section),
            Stage::ApplicationProperties => self.application_properties = Some(section),
            Stage::Footer => self.footer = Some(section),
            Stage::Body => {
                if self.body_kind == BodyKind::Absent {
                    self.body.start = section.start;
                }
                self.body.end = section.end;
                self.body_kind = match found {
                    descriptor::DATA => BodyKind::Data,
                    descriptor::AMQP_SEQUENCE => BodyKind::Sequence,
                    _ => BodyKind::Value,
                };
            }
        }
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

#[inline]
fn section_descriptor(reader: &mut Reader<'_>) -> Result<Descriptor, DecodeError> {
    const EXPECTED: &str = "a message section";
    let found = reader.descriptor(EXPECTED)?;
    Ok(match found {
        0x70 => descriptor::HEADER,
        0x71 => descriptor::DELIVERY_ANNOTATIONS,
        0x72 => descriptor::MESSAGE_ANNOTATIONS,
        0x73 => descriptor::PROPERTIES,
        0x74 => descriptor::APPLICATION_PROPERTIES,
        0x75 => descriptor::DATA,
        0x76 => descriptor::AMQP_SEQUENCE,
        0x77 => descriptor::AMQP_VALUE,
        0x78 => descriptor::FOOTER,
        _ => return Err(DecodeError::UnexpectedDescriptor { expected: EXPECTED, found }),
    })
}

#[inline]
fn stage_of(found: Descriptor) -> Stage {
    match found {
        descriptor::HEADER => Stage::Header,
        descriptor::DELIVERY_ANNOTATIONS => Stage::DeliveryAnnotations,
        descriptor::MESSAGE_ANNOTATIONS => Stage::MessageAnnotations,
        descriptor::PROPERTIES => Stage::Properties,
        descriptor::APPLICATION_PROPERTIES => Stage::ApplicationProperties,
        descriptor::FOOTER => Stage::Footer,
        _ => Stage::Body,
    }
}

/// Checks that the section's value has the shape its descriptor promises, and passes over it.
fn check_section(reader: &mut Reader<'_>, found: Descriptor, stage: Stage) -> Result<(), DecodeError> {
    let constructor = reader.peek()?;
    let (expected, fits) = match stage {
        Stage::Header | Stage::Properties => {
            ("a list", matches!(constructor, code::LIST_0 | code::LIST_8 | code::LIST_32))
        }
        Stage::Body if found == descriptor::DATA => {
            ("a binary", matches!(constructor, code::BINARY_8 | code::BINARY_32))
        }
        Stage::Body if found == descriptor::AMQP_SEQUENCE => {
            ("a list", matches!(constructor, code::LIST_0 | code::LIST_8 | code::LIST_32))
        }
        Stage::Start | Stage::Body => ("a value", true),
        _ => ("a map", matches!(constructor, code::MAP_8 | code::MAP_32)),
    };
    if !fits {
        return Err(DecodeError::UnexpectedType { expected, code: constructor });
    }
    if stage == Stage::Body { reader.skip_by_size() } else { reader.skip() }
}
