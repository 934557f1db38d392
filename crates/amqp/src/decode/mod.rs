//! Reading AMQP types from a buffer without copying.
//!
//! A [`Reader`] walks over bytes that a peer sent and charges a [`Budget`]. Compound values are checked to their
//! last item when they are read and then kept as slices, so later looks at them cannot fail. Nesting is bounded by
//! the budget, so the recursion below is too.

mod composite;
mod pass;
pub(crate) mod quick;
mod scalar;

use bytes::Bytes;

pub use composite::{Composite, FieldReader};

use crate::budget::Budget;
use crate::constructor as code;
use crate::error::DecodeError;
use crate::text::{Symbol, Text, check_utf8};
use crate::uuid::Uuid;
use crate::value::{Array, Described, Encoded, List, Map, Timestamp, Value};

/// A place in a buffer, and what may still be done with the rest of it.
#[derive(Debug)]
pub struct Reader<'b> {
    /// The buffer; slices of it are handed out.
    source: &'b Bytes,
    /// What is not read yet.
    rest: &'b [u8],
    budget: Budget,
}

/// The constructor of an array's items, with the descriptors in front of it, outermost first.
#[derive(Debug)]
pub(crate) struct ElementConstructor {
    descriptors: Vec<Value>,
    code: u8,
}

impl<'b> Reader<'b> {
    /// Reads all of `source`, with a budget to match its length.
    #[inline]
    pub fn new(source: &'b Bytes) -> Self {
        Self { source, rest: source, budget: Budget::for_input(source.len()) }
    }

    /// Reads a slice that an earlier reader checked and paid for.
    pub(crate) fn of_checked(source: &'b Bytes) -> Self {
        Self { source, rest: source, budget: Budget::of_checked() }
    }

    /// Reads `part` of `source`, with a budget to match its length.
    #[inline]
    pub(crate) fn of_part(source: &'b Bytes, part: &'b [u8]) -> Self {
        Self { source, rest: part, budget: Budget::for_input(part.len()) }
    }

    /// Reads `part` of `source`, which an earlier reader checked and paid for.
    #[inline]
    pub(crate) fn of_checked_part(source: &'b Bytes, part: &'b [u8]) -> Self {
        Self { source, rest: part, budget: Budget::of_checked() }
    }

    /// Bytes that are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// What is left of the budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Refuses bytes behind the last value.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(DecodeError::TrailingBytes { count }),
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'b [u8], DecodeError> {
        match self.rest.split_at_checked(length) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.truncated(length)),
        }
    }

    #[inline]
    pub(crate) fn take_array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(self.truncated(N)),
        }
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                Ok(*byte)
            }
            None => Err(self.truncated(1)),
        }
    }

    #[cold]
    fn truncated(&self, needed: usize) -> DecodeError {
        DecodeError::Truncated { needed, available: self.rest.len() }
    }

    /// The next byte, which stays where it is.
    #[inline]
    pub(crate) fn peek(&self) -> Result<u8, DecodeError> {
        self.rest.first().copied().ok_or_else(|| self.truncated(1))
    }

    /// What is left, shared with the source.
    pub(crate) fn shared_rest(&self) -> Bytes {
        self.share(self.rest)
    }

    /// A slice of the source that shares its memory.
    #[inline]
    pub(crate) fn share(&self, part: &'b [u8]) -> Bytes {
        self.source.slice_ref(part)
    }

    /// The bytes behind a one-byte or four-byte length.
    #[inline]
    fn variable(&mut self, wide: bool) -> Result<&'b [u8], DecodeError> {
        let length =
            if wide { usize_of(u32::from_be_bytes(self.take_array()?))? } else { self.byte()?.into() };
        self.take(length)
    }

    /// The body and the count of a compound value, after its constructor. The count is charged.
    #[inline]
    fn compound(&mut self, wide: bool) -> Result<(&'b [u8], u32), DecodeError> {
        let whole = self.variable(wide)?;
        let split = if wide {
            whole.split_first_chunk::<4>().map(|(count, body)| (u32::from_be_bytes(*count), body))
        } else {
            whole.split_first().map(|(count, body)| (u32::from(*count), body))
        };
        let Some((count, body)) = split else {
            return Err(DecodeError::Truncated { needed: if wide { 4 } else { 1 }, available: whole.len() });
        };
        self.budget.charge(count)?;
        Ok((body, count))
    }

    /// Reads any value.
    pub fn value(&mut self) -> Result<Value, DecodeError> {
        let constructor = self.byte()?;
        if constructor == code::DESCRIBED {
            return self.described();
        }
        self.value_of(constructor)
    }

    fn described(&mut self) -> Result<Value, DecodeError> {
        self.budget.descend()?;
        let descriptor = self.plain_value()?;
        let value = self.value()?;
        self.budget.ascend();
        Ok(Value::Described(Box::new(Described { descriptor, value })))
    }

    /// Reads a value that is not described itself. Descriptors are such: a described descriptor means nothing, and
    /// a tree of them would hold more memory than it has bytes.
    fn plain_value(&mut self) -> Result<Value, DecodeError> {
        match self.byte()? {
            code::DESCRIBED => {
                Err(DecodeError::UnexpectedType { expected: "a plain descriptor", code: code::DESCRIBED })
            }
            constructor => self.value_of(constructor),
        }
    }

    /// Reads the value behind a constructor.
    fn value_of(&mut self, constructor: u8) -> Result<Value, DecodeError> {
        Ok(match constructor {
            code::NULL => Value::Null,
            code::TRUE => Value::Boolean(true),
            code::FALSE => Value::Boolean(false),
            code::BOOLEAN => Value::Boolean(self.boolean_byte()?),
            code::UBYTE => Value::Ubyte(self.byte()?),
            code::USHORT => Value::Ushort(u16::from_be_bytes(self.take_array()?)),
            code::UINT_0 => Value::Uint(0),
            code::SMALL_UINT => Value::Uint(self.byte()?.into()),
            code::UINT => Value::Uint(u32::from_be_bytes(self.take_array()?)),
            code::ULONG_0 => Value::Ulong(0),
            code::SMALL_ULONG => Value::Ulong(self.byte()?.into()),
            code::ULONG => Value::Ulong(u64::from_be_bytes(self.take_array()?)),
            code::BYTE => Value::Byte(i8::from_be_bytes(self.take_array()?)),
            code::SHORT => Value::Short(i16::from_be_bytes(self.take_array()?)),
            code::SMALL_INT => Value::Int(i8::from_be_bytes(self.take_array()?).into()),
            code::INT => Value::Int(i32::from_be_bytes(self.take_array()?)),
            code::SMALL_LONG => Value::Long(i8::from_be_bytes(self.take_array()?).into()),
            code::LONG => Value::Long(i64::from_be_bytes(self.take_array()?)),
            code::FLOAT => Value::Float(f32::from_be_bytes(self.take_array()?)),
            code::DOUBLE => Value::Double(f64::from_be_bytes(self.take_array()?)),
            code::DECIMAL_32 => Value::Decimal32(self.take_array()?),
            code::DECIMAL_64 => Value::Decimal64(self.take_array()?),
            code::DECIMAL_128 => Value::Decimal128(self.take_array()?),
            code::CHAR => Value::Char(self.character()?),
            code::TIMESTAMP => Value::Timestamp(Timestamp(i64::from_be_bytes(self.take_array()?))),
            code::UUID => Value::Uuid(Uuid::from_bytes(self.take_array()?)),
            code::BINARY_8 | code::BINARY_32 => {
                let bytes = self.variable(constructor == code::BINARY_32)?;
                Value::Binary(self.share(bytes))
            }
            code::STRING_8 | code::STRING_32 => {
                Value::String(self.checked_text(constructor == code::STRING_32)?)
            }
            code::SYMBOL_8 | code::SYMBOL_32 => {
                Value::Symbol(Symbol::from(self.checked_text(constructor == code::SYMBOL_32)?))
            }
            code::LIST_0 => Value::List(List::EMPTY),
            code::LIST_8 | code::LIST_32 => Value::List(self.list_of(constructor)?),
            code::MAP_8 | code::MAP_32 => Value::Map(self.map_of(constructor)?),
            code::ARRAY_8 | code::ARRAY_32 => Value::Array(self.array_of(constructor)?),
            _ => return Err(DecodeError::UnknownConstructor { code: constructor }),
        })
    }

    #[inline]
    fn checked_text(&mut self, wide: bool) -> Result<Text, DecodeError> {
        let bytes = self.variable(wide)?;
        check_utf8(bytes)?;
        Ok(Text::from_checked(self.share(bytes)))
    }

    fn boolean_byte(&mut self) -> Result<bool, DecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(DecodeError::InvalidBoolean { byte }),
        }
    }

    fn character(&mut self) -> Result<char, DecodeError> {
        let number = u32::from_be_bytes(self.take_array()?);
        char::from_u32(number).ok_or(DecodeError::InvalidChar { code: number })
    }

    fn list_of(&mut self, constructor: u8) -> Result<List, DecodeError> {
        let (body, count) = self.compound(constructor == code::LIST_32)?;
        self.check_items(body, count)?;
        Ok(List::from_checked(self.share(body), count))
    }

    fn map_of(&mut self, constructor: u8) -> Result<Map, DecodeError> {
        let (body, count) = self.compound(constructor == code::MAP_32)?;
        check_even(count)?;
        self.check_items(body, count)?;
        Ok(Map::from_checked(self.share(body), count))
    }

    fn array_of(&mut self, constructor: u8) -> Result<Array, DecodeError> {
        let (body, count) = self.compound(constructor == code::ARRAY_32)?;
        self.check_elements(body, count)?;
        Ok(Array::from_checked(self.share(body), count))
    }

    /// Checks one value and passes over it.
    pub fn skip(&mut self) -> Result<(), DecodeError> {
        let mut budget = self.budget.clone();
        if let Some(rest) = pass::pass(self.rest, &mut budget) {
            self.rest = rest;
            self.budget = budget;
            return Ok(());
        }
        self.skip_carefully()
    }

    /// Checks one value of any kind and passes over it, or says what is wrong with it.
    pub(crate) fn skip_carefully(&mut self) -> Result<(), DecodeError> {
        let constructor = self.byte()?;
        if constructor != code::DESCRIBED {
            return self.skip_of(constructor);
        }
        self.budget.descend()?;
        self.skip_descriptor()?;
        self.skip()?;
        self.budget.ascend();
        Ok(())
    }

    fn skip_descriptor(&mut self) -> Result<(), DecodeError> {
        match self.byte()? {
            code::DESCRIBED => {
                Err(DecodeError::UnexpectedType { expected: "a plain descriptor", code: code::DESCRIBED })
            }
            constructor => self.skip_of(constructor),
        }
    }

    /// Checks the value behind a constructor and passes over it.
    fn skip_of(&mut self, constructor: u8) -> Result<(), DecodeError> {
        match constructor {
            code::NULL | code::TRUE | code::FALSE | code::UINT_0 | code::ULONG_0 | code::LIST_0 => Ok(()),
            code::BOOLEAN => self.boolean_byte().map(drop),
            code::CHAR => self.character().map(drop),
            code::UBYTE
            | code::BYTE
            | code::SMALL_UINT
            | code::SMALL_ULONG
            | code::SMALL_INT
            | code::SMALL_LONG => self.take(1).map(drop),
            code::USHORT | code::SHORT => self.take(2).map(drop),
            code::UINT | code::INT | code::FLOAT | code::DECIMAL_32 => self.take(4).map(drop),
            code::ULONG | code::LONG | code::DOUBLE | code::TIMESTAMP | code::DECIMAL_64 => {
                self.take(8).map(drop)
            }
            code::DECIMAL_128 | code::UUID => self.take(16).map(drop),
            code::BINARY_8 | code::BINARY_32 => self.variable(constructor == code::BINARY_32).map(drop),
            code::STRING_8 | code::SYMBOL_8 => check_utf8(self.variable(false)?),
            code::STRING_32 | code::SYMBOL_32 => check_utf8(self.variable(true)?),
            code::LIST_8 | code::LIST_32 => {
                let (body, count) = self.compound(constructor == code::LIST_32)?;
                self.check_items(body, count)
            }
            code::MAP_8 | code::MAP_32 => {
                let (body, count) = self.compound(constructor == code::MAP_32)?;
                check_even(count)?;
                self.check_items(body, count)
            }
            code::ARRAY_8 | code::ARRAY_32 => {
                let (body, count) = self.compound(constructor == code::ARRAY_32)?;
                self.check_elements(body, count)
            }
            _ => Err(DecodeError::UnknownConstructor { code: constructor }),
        }
    }

    /// Passes over one value by the sizes on its outside, without a look at what is in it.
    #[inline]
    pub fn skip_by_size(&mut self) -> Result<(), DecodeError> {
        if let Some(rest) = pass::pass_by_size(self.rest) {
            self.rest = rest;
            return Ok(());
        }
        self.skip_by_size_carefully()
    }

    /// The same for a value of any kind.
    fn skip_by_size_carefully(&mut self) -> Result<(), DecodeError> {
        let mut constructor = self.byte()?;
        while constructor == code::DESCRIBED {
            self.budget.charge(1)?;
            self.skip_descriptor()?;
            constructor = self.byte()?;
        }
        match constructor {
            code::LIST_8 | code::MAP_8 | code::ARRAY_8 | code::STRING_8 | code::SYMBOL_8 => {
                self.variable(false).map(drop)
            }
            code::LIST_32 | code::MAP_32 | code::ARRAY_32 | code::STRING_32 | code::SYMBOL_32 => {
                self.variable(true).map(drop)
            }
            _ => self.skip_of(constructor),
        }
    }

    /// Checks that `body` is exactly `count` values.
    fn check_items(&mut self, body: &'b [u8], count: u32) -> Result<(), DecodeError> {
        self.inside(body, |reader| {
            for _ in 0..count {
                reader.skip()?;
            }
            Ok(())
        })
    }

    /// Checks that `body` is a constructor and exactly `count` values of it.
    fn check_elements(&mut self, body: &'b [u8], count: u32) -> Result<(), DecodeError> {
        if body.is_empty() && count == 0 {
            // It is written with the constructor it lacks, and must be readable then: its level counts already.
            return self.inside(body, |_| Ok(()));
        }
        let depth = self.budget.clone();
        self.inside(body, |reader| {
            let mut constructor = reader.byte()?;
            while constructor == code::DESCRIBED {
                reader.budget.descend()?;
                reader.skip_descriptor()?;
                constructor = reader.byte()?;
            }
            for _ in 0..count {
                reader.skip_of(constructor)?;
            }
            Ok(())
        })?;
        self.budget.restore_depth(&depth);
        Ok(())
    }

    /// Runs `read` one level down on `body`, which it must read to its end.
    #[inline]
    fn inside<T>(
        &mut self,
        body: &'b [u8],
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.budget.descend()?;
        let outer = std::mem::replace(&mut self.rest, body);
        let value = read(self)?;
        if !self.rest.is_empty() {
            return Err(DecodeError::SizeMismatch { left: self.rest.len() });
        }
        self.rest = outer;
        self.budget.ascend();
        Ok(value)
    }
}

/// Looks at slices that were checked before. `None` cannot happen there; it ends the iteration rather than the process.
impl<'b> Reader<'b> {
    pub(crate) fn checked_value(&mut self) -> Option<Value> {
        let value = self.value();
        debug_assert!(value.is_ok(), "a checked slice holds values: {value:?}");
        value.ok()
    }

    pub(crate) fn skip_checked(&mut self) -> Option<()> {
        let skipped = self.skip();
        debug_assert!(skipped.is_ok(), "a checked slice holds values: {skipped:?}");
        skipped.ok()
    }

    pub(crate) fn checked_constructor(&mut self) -> Option<ElementConstructor> {
        let mut descriptors = Vec::new();
        loop {
            match self.byte().ok()? {
                code::DESCRIBED => descriptors.push(self.plain_value().ok()?),
                code => return Some(ElementConstructor { descriptors, code }),
            }
        }
    }

    pub(crate) fn checked_element(&mut self, constructor: &ElementConstructor) -> Option<Value> {
        let value = self.value_of(constructor.code).ok()?;
        let wrap = |value, descriptor: &Value| {
            Value::Described(Box::new(Described { descriptor: descriptor.clone(), value }))
        };
        Some(constructor.descriptors.iter().rev().fold(value, wrap))
    }

    /// The next value, still encoded.
    pub(crate) fn checked_encoded(&mut self) -> Option<Encoded<'b>> {
        let before = self.rest;
        self.skip_checked()?;
        let length = before.len().checked_sub(self.rest.len())?;
        Some(Encoded::new(self.source, before.get(..length)?))
    }

    /// Goes into a map whose entries were checked in their place, and returns how many keys and values follow.
    pub(crate) fn enter_checked_map(&mut self) -> Option<u32> {
        let wide = self.byte().ok()? == code::MAP_32;
        let (body, count) = self.compound(wide).ok()?;
        self.rest = body;
        Some(count)
    }

    /// A map whose entries were checked in their place.
    pub(crate) fn checked_map(&mut self) -> Option<Map> {
        let count = self.enter_checked_map()?;
        Some(Map::from_checked(self.shared_rest(), count))
    }

    /// The bytes of the next value if it is a string or symbol. Does not move.
    pub(crate) fn next_text(&self) -> Option<&'b [u8]> {
        match self.rest {
            [code::STRING_8 | code::SYMBOL_8, length, rest @ ..] => rest.get(..usize::from(*length)),
            [code::STRING_32 | code::SYMBOL_32, a, b, c, d, rest @ ..] => {
                let length = usize_of(u32::from_be_bytes([*a, *b, *c, *d])).ok()?;
                rest.get(..length)
            }
            _ => None,
        }
    }
}

#[inline]
fn check_even(count: u32) -> Result<(), DecodeError> {
    if count.is_multiple_of(2) { Ok(()) } else { Err(DecodeError::OddMap { count }) }
}

/// A wire length as an index. Only fails where `usize` is narrower than 32 bits.
#[inline]
pub(crate) fn usize_of(length: u32) -> Result<usize, DecodeError> {
    usize::try_from(length).map_err(|_| DecodeError::OutOfRange { expected: "the address space" })
}
