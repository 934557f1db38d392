//! The little to note about a message that was parsed, to look into it again later.
//!
//! A [`Message`](super::Message) knows where everything lies and shares the encoded bytes. A message that waits for
//! somebody who may or may not want to see its properties needs neither: an outline is a few numbers, and is read together
//! with the bytes it was made for.

use bytes::Bytes;

use super::layout::{Layout, Section};
use super::properties::Properties;
use super::{entries_in, properties_in};
use crate::value::Encoded;

/// Where the sections lie that say something about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outline {
    annotations: Part,
    properties: Part,
    application_properties: Part,
}

/// Where a section's value lies; nowhere if it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Part {
    start: u32,
    end: u32,
}

impl Outline {
    pub(super) fn of(layout: &Layout) -> Self {
        Self {
            annotations: Part::of(layout.message_annotations),
            properties: Part::of(layout.properties),
            application_properties: Part::of(layout.application_properties),
        }
    }

    /// The outline as plain numbers, for whoever carries it without knowing what it is.
    pub fn words(self) -> [u32; 6] {
        let Self { annotations, properties, application_properties: application } = self;
        [
            annotations.start,
            annotations.end,
            properties.start,
            properties.end,
            application.start,
            application.end,
        ]
    }

    /// The outline that was told as these numbers.
    pub fn from_words(words: [u32; 6]) -> Self {
        let [annotations_start, annotations_end, start, end, application_start, application_end] = words;
        Self {
            annotations: Part { start: annotations_start, end: annotations_end },
            properties: Part { start, end },
            application_properties: Part { start: application_start, end: application_end },
        }
    }

    /// The properties. Those that cannot be read count as absent: whether they can was asked when the message came.
    pub fn properties(self, encoded: &Bytes) -> Option<Properties> {
        let value = self.properties.of_encoded(encoded).filter(|value| !value.is_empty())?;
        properties_in(encoded, value).ok()
    }

    /// Keys and values of the message's annotations in order, still encoded.
    pub fn annotation_entries(self, encoded: &Bytes) -> impl Iterator<Item = (Encoded<'_>, Encoded<'_>)> {
        entries_in(encoded, self.annotations.of_encoded(encoded).unwrap_or_default())
    }

    /// Whether the application has given the message properties of its own.
    pub fn has_application_properties(self) -> bool {
        self.application_properties != Part::default()
    }

    /// Keys and values of the application's own properties in order, still encoded.
    pub fn application_entries(self, encoded: &Bytes) -> impl Iterator<Item = (Encoded<'_>, Encoded<'_>)> {
        entries_in(encoded, self.application_properties.of_encoded(encoded).unwrap_or_default())
    }
}

impl Part {
    fn of(section: Option<Section>) -> Self {
        // No section of a message that was parsed lies beyond four gigabytes.
        let number = |place| u32::try_from(place).unwrap_or(u32::MAX);
        section.map_or_else(Self::default, |section| Self {
            start: number(section.value()),
            end: number(section.end()),
        })
    }

    fn of_encoded(self, encoded: &Bytes) -> Option<&[u8]> {
        encoded.get(usize::try_from(self.start).ok()?..usize::try_from(self.end).ok()?)
    }
}
