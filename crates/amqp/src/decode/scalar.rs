//! Typed reads for the fields of composites: liberal about width and about string or symbol.

use bytes::Bytes;

use crate::constructor as code;
use crate::decode::Reader;
use crate::error::DecodeError;
use crate::text::{Symbol, Text};
use crate::value::{Map, Timestamp};

impl Reader<'_> {
    /// A boolean.
    #[inline]
    pub fn boolean(&mut self) -> Result<bool, DecodeError> {
        match self.byte()? {
            code::TRUE => Ok(true),
            code::FALSE => Ok(false),
            code::BOOLEAN => self.boolean_byte(),
            found => Err(DecodeError::UnexpectedType { expected: "a boolean", code: found }),
        }
    }

    /// An integer that fits 8 unsigned bits.
    #[inline]
    pub fn ubyte(&mut self) -> Result<u8, DecodeError> {
        match self.byte()? {
            code::UBYTE => self.byte(),
            found => self.converted(found, "a ubyte"),
        }
    }

    /// An integer that fits 16 unsigned bits.
    #[inline]
    pub fn ushort(&mut self) -> Result<u16, DecodeError> {
        match self.byte()? {
            code::USHORT => Ok(u16::from_be_bytes(self.take_array()?)),
            found => self.converted(found, "a ushort"),
        }
    }

    /// An integer that fits 32 unsigned bits.
    #[inline]
    pub fn uint(&mut self) -> Result<u32, DecodeError> {
        match self.byte()? {
            code::UINT_0 => Ok(0),
            code::SMALL_UINT => Ok(self.byte()?.into()),
            code::UINT => Ok(u32::from_be_bytes(self.take_array()?)),
            found => self.converted(found, "a uint"),
        }
    }

    /// An integer that fits 64 unsigned bits.
    #[inline]
    pub fn ulong(&mut self) -> Result<u64, DecodeError> {
        match self.byte()? {
            code::ULONG_0 => Ok(0),
            code::SMALL_ULONG => Ok(self.byte()?.into()),
            code::ULONG => Ok(u64::from_be_bytes(self.take_array()?)),
            found => self.converted(found, "a ulong"),
        }
    }

    /// An integer of another type than expected, if it fits.
    #[cold]
    fn converted<T: TryFrom<i128>>(&mut self, found: u8, expected: &'static str) -> Result<T, DecodeError> {
        let integer = matches!(
            found,
            code::UBYTE
                | code::USHORT
                | code::UINT_0
                | code::SMALL_UINT
                | code::UINT
                | code::ULONG_0
                | code::SMALL_ULONG
                | code::ULONG
                | code::BYTE
                | code::SHORT
                | code::SMALL_INT
                | code::INT
                | code::SMALL_LONG
                | code::LONG
        );
        if !integer {
            return Err(DecodeError::UnexpectedType { expected, code: found });
        }
        let number = self.value_of(found)?.as_integer();
        number.and_then(|number| T::try_from(number).ok()).ok_or(DecodeError::OutOfRange { expected })
    }

    /// A point in time.
    #[inline]
    pub fn timestamp(&mut self) -> Result<Timestamp, DecodeError> {
        match self.byte()? {
            code::TIMESTAMP => Ok(Timestamp(i64::from_be_bytes(self.take_array()?))),
            found => Err(DecodeError::UnexpectedType { expected: "a timestamp", code: found }),
        }
    }

    /// Bytes, borrowed.
    #[inline]
    pub(crate) fn binary_slice(&mut self) -> Result<&[u8], DecodeError> {
        match self.byte()? {
            code::BINARY_8 => self.variable(false),
            code::BINARY_32 => self.variable(true),
            found => Err(DecodeError::UnexpectedType { expected: "a binary", code: found }),
        }
    }

    /// Bytes, shared with the buffer.
    pub fn binary(&mut self) -> Result<Bytes, DecodeError> {
        let bytes = match self.byte()? {
            code::BINARY_8 => self.variable(false)?,
            code::BINARY_32 => self.variable(true)?,
            found => return Err(DecodeError::UnexpectedType { expected: "a binary", code: found }),
        };
        Ok(self.share(bytes))
    }

    /// A string, or a symbol in its place.
    pub fn text(&mut self) -> Result<Text, DecodeError> {
        match self.byte()? {
            code::STRING_8 | code::SYMBOL_8 => self.checked_text(false),
            code::STRING_32 | code::SYMBOL_32 => self.checked_text(true),
            found => Err(DecodeError::UnexpectedType { expected: "a string", code: found }),
        }
    }

    /// A symbol, or a string in its place.
    pub fn symbol(&mut self) -> Result<Symbol, DecodeError> {
        match self.byte()? {
            code::STRING_8 | code::SYMBOL_8 => self.checked_text(false).map(Symbol::from),
            code::STRING_32 | code::SYMBOL_32 => self.checked_text(true).map(Symbol::from),
            found => Err(DecodeError::UnexpectedType { expected: "a symbol", code: found }),
        }
    }

    /// A map.
    pub fn map(&mut self) -> Result<Map, DecodeError> {
        match self.byte()? {
            found @ (code::MAP_8 | code::MAP_32) => self.map_of(found),
            found => Err(DecodeError::UnexpectedType { expected: "a map", code: found }),
        }
    }
}
