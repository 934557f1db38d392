//! `detach`: the end of a link's attachment, or of the link (AMQP 1.0 2.7.7).

use crate::decode::{Composite, FieldReader, Reader};
use crate::descriptor::{self, Descriptor};
use crate::encode::{FieldWriter, Output};
use crate::error::DecodeError;
use crate::performative::Error;

/// Detaches a link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Detach {
    /// The sender's handle for the link.
    pub handle: u32,
    /// Whether the link is closed and not only detached.
    pub closed: bool,
    /// Why, when it was not asked for.
    pub error: Option<Box<Error>>,
}

impl Composite for Detach {
    const DESCRIPTOR: Descriptor = descriptor::DETACH;

    #[inline]
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError> {
        Ok(Self {
            handle: fields.required("handle", Reader::uint)?,
            closed: fields.flag("closed")?,
            error: fields.optional("error", Error::decode_boxed)?,
        })
    }

    #[inline]
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>) {
        fields.field(&self.handle);
        fields.flag(self.closed);
        fields.field(&self.error);
    }
}
