//! `close`: the end of a connection (AMQP 1.0 2.7.9).

use crate::decode::{Composite, FieldReader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;
use crate::performative::Error;

/// Closes a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Close {
    /// Why, when it was not asked for.
    pub error: Option<Box<Error>>,
}

impl Composite for Close {
    const DESCRIPTOR: Descriptor = descriptor::CLOSE;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self { error: fields.optional("error", Error::decode_boxed)? })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.error);
    }
}
