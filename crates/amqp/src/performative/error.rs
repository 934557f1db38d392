//! `error`: a condition a peer can act on, with words for its user (AMQP 1.0 2.8.14).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;
use crate::text::{Symbol, Text};
use crate::value::Map;

/// What went wrong. Always written with all three fields; some clients index them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Error {
    /// The condition, such as `amqp:not-found`.
    pub condition: Symbol,
    /// Words for a human.
    pub description: Option<Text>,
    /// Details; keys arrive as symbols or as strings.
    pub info: Option<Map>,
}

impl Error {
    /// A condition with words.
    pub fn new(condition: &'static str, description: impl Into<Text>) -> Self {
        Self { condition: Symbol::from_static(condition), description: Some(description.into()), info: None }
    }
}

impl Composite for Error {
    const DESCRIPTOR: Descriptor = descriptor::ERROR;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            condition: fields.required("condition", Reader::symbol)?,
            description: fields.optional("description", Reader::text)?,
            info: fields.optional("info", Reader::map)?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.condition);
        fields.field(&self.description);
        fields.field(&self.info);
    }
}

impl Error {
    /// Reads an error onto the heap, where the rare one does not widen every frame.
    pub(crate) fn decode_boxed(reader: &mut Reader<'_>) -> Result<Box<Self>, DecodeError> {
        Self::decode(reader).map(Box::new)
    }
}
