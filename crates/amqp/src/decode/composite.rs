//! Composites: a descriptor and a list of fields that may end early.

use crate::constructor as code;
use crate::decode::Reader;
use crate::descriptor::{self, Descriptor};
use crate::encode::{Encode, FieldWriter, Output, Scratch, put_composite};
use crate::error::DecodeError;

/// A described list with named fields.
pub trait Composite: Sized {
    /// Its descriptor.
    const DESCRIPTOR: Descriptor;

    /// Reads the fields in order.
    fn read(fields: &mut FieldReader<'_, '_>) -> Result<Self, DecodeError>;

    /// Writes the fields in order, all of them.
    fn write<O: Output>(&self, fields: &mut FieldWriter<'_, O>);

    /// Reads descriptor and fields.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.expect_descriptor(Self::DESCRIPTOR)?;
        reader.fields(Self::DESCRIPTOR.name, Self::read)
    }

    /// Writes descriptor and fields.
    #[inline]
    fn encode_composite<O: Output>(&self, out: &mut O) {
        if O::COLLECT {
            let mut scratch = Scratch::new();
            put_composite(&mut scratch, Self::DESCRIPTOR, |fields| self.write(fields));
            if let Some(encoded) = scratch.fitting() {
                out.put(encoded);
                return;
            }
        }
        put_composite(out, Self::DESCRIPTOR, |fields| self.write(fields));
    }
}

/// Reads the fields of one composite, in order.
#[derive(Debug)]
pub struct FieldReader<'r, 'b> {
    reader: &'r mut Reader<'b>,
    left: u32,
    composite: &'static str,
}

impl<'b> FieldReader<'_, 'b> {
    /// The next field, or `None` if it is null or the list ended before it.
    #[inline]
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'b>) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        if let Some((&code::NULL, rest)) = self.reader.rest.split_first() {
            self.reader.rest = rest;
            return Ok(None);
        }
        match read(self.reader) {
            Ok(value) => Ok(Some(value)),
            Err(problem) => Err(problem.in_field(self.composite, name)),
        }
    }

    /// The next field, which must be there.
    #[inline]
    pub fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'b>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        match self.optional(name, read)? {
            Some(value) => Ok(value),
            None => Err(DecodeError::Missing.in_field(self.composite, name)),
        }
    }

    /// A flag that is false by default.
    #[inline]
    pub fn flag(&mut self, name: &'static str) -> Result<bool, DecodeError> {
        Ok(self.optional(name, Reader::boolean)?.unwrap_or(false))
    }
}

impl<'b> Reader<'b> {
    /// Reads the descriptor of a described value: a number, or a name that stands for one.
    #[inline]
    pub fn descriptor(&mut self, expected: &'static str) -> Result<u64, DecodeError> {
        if let [code::DESCRIBED, code::SMALL_ULONG, number, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*number));
        }
        self.unusual_descriptor(expected)
    }

    #[cold]
    fn unusual_descriptor(&mut self, expected: &'static str) -> Result<u64, DecodeError> {
        match self.byte()? {
            code::DESCRIBED => {}
            found => return Err(DecodeError::UnexpectedType { expected, code: found }),
        }
        match self.byte()? {
            code::SMALL_ULONG => Ok(self.byte()?.into()),
            code::ULONG => Ok(u64::from_be_bytes(self.take_array()?)),
            code::ULONG_0 => Ok(0),
            found @ (code::SYMBOL_8 | code::SYMBOL_32) => {
                let name = self.variable(found == code::SYMBOL_32)?;
                descriptor::code_of(name).ok_or(DecodeError::UnknownDescriptor { expected })
            }
            _ => Err(DecodeError::UnknownDescriptor { expected }),
        }
    }

    /// Reads a descriptor that must be this one.
    pub fn expect_descriptor(&mut self, expected: Descriptor) -> Result<(), DecodeError> {
        let found = self.descriptor(expected.name)?;
        if found == u64::from(expected.code) {
            Ok(())
        } else {
            Err(DecodeError::UnexpectedDescriptor { expected: expected.name, found })
        }
    }

    /// Reads the field list of a composite. Fields `read` does not know are checked and passed over.
    #[inline]
    pub fn fields<T>(
        &mut self,
        composite: &'static str,
        read: impl FnOnce(&mut FieldReader<'_, 'b>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let (body, count): (&[u8], u32) = match self.byte()? {
            code::LIST_8 => self.compound(false)?,
            code::LIST_32 => self.compound(true)?,
            code::LIST_0 => (&[], 0),
            found => return Err(DecodeError::UnexpectedType { expected: "a list of fields", code: found }),
        };
        self.inside(body, |reader| {
            let mut fields = FieldReader { reader, left: count, composite };
            let value = read(&mut fields)?;
            let unknown = fields.left;
            for _ in 0..unknown {
                reader.skip()?;
            }
            Ok(value)
        })
    }
}

/// Lets composites stand wherever a value is written.
macro_rules! encode_composites {
    ($($type:ty),* $(,)?) => {
        $(impl Encode for $type {
            fn encode<O: Output>(&self, out: &mut O) {
                self.encode_composite(out);
            }
        })*
    };
}

encode_composites! {
    crate::performative::Open,
    crate::performative::Begin,
    crate::performative::Attach,
    crate::performative::Flow,
    crate::performative::Transfer,
    crate::performative::Disposition,
    crate::performative::Detach,
    crate::performative::End,
    crate::performative::Close,
    crate::performative::Error,
    crate::performative::Source,
    crate::performative::Target,
    crate::performative::Coordinator,
    crate::performative::Declare,
    crate::performative::Discharge,
    crate::performative::SaslMechanisms,
    crate::performative::SaslInit,
    crate::performative::SaslChallenge,
    crate::performative::SaslResponse,
    crate::performative::SaslOutcome,
}
