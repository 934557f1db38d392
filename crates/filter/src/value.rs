//! Values a filter computes with, owned and borrowed.
//!
//! There is no null among them. A property that is absent and a property that holds null differ
//! for `EXISTS` alone; both are told apart by [`Lookup`](crate::Lookup) and are *unknown*
//! everywhere else, so no operator has to think of a null operand.

use std::borrow::Cow;
use std::fmt;

use crate::decimal::Decimal;
use crate::{guid, time};

/// A value that owns its text or bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text; URIs too.
    String(Box<str>),
    /// True or false.
    Bool(bool),
    /// Every AMQP integer type, up to 2^63 − 1.
    Int(i64),
    /// AMQP float and double.
    Double(f64),
    /// AMQP decimals, and ulong beyond 2^63 − 1.
    Decimal(Decimal),
    /// AMQP uuid, most significant byte first.
    Guid(u128),
    /// Milliseconds since 1970 UTC.
    Timestamp(i64),
    /// Ticks of 100 ns.
    Timespan(i64),
    /// One character.
    Char(char),
    /// Bytes.
    Binary(Box<[u8]>),
}

/// A value that borrows its text or bytes: what evaluation works on, free to copy.
///
/// The wide tag keeps the content aligned in every variant. Without it the compiler copies values in
/// pieces that straddle those it wrote, and the processor stalls on each.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(u64)]
#[expect(missing_docs, reason = "the variants are those of `Value`")]
pub enum ValueRef<'v> {
    String(&'v str),
    Bool(bool),
    Int(i64),
    Double(f64),
    Decimal(Decimal),
    Guid(u128),
    Timestamp(i64),
    Timespan(i64),
    Char(char),
    Binary(&'v [u8]),
}

impl Value {
    /// The same value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::String(text) => ValueRef::String(text),
            Self::Bool(flag) => ValueRef::Bool(*flag),
            Self::Int(number) => ValueRef::Int(*number),
            Self::Double(number) => ValueRef::Double(*number),
            Self::Decimal(number) => ValueRef::Decimal(*number),
            Self::Guid(guid) => ValueRef::Guid(*guid),
            Self::Timestamp(at_ms) => ValueRef::Timestamp(*at_ms),
            Self::Timespan(ticks) => ValueRef::Timespan(*ticks),
            Self::Char(character) => ValueRef::Char(*character),
            Self::Binary(bytes) => ValueRef::Binary(bytes),
        }
    }
}

impl<'v> ValueRef<'v> {
    /// The same value, owned.
    pub fn to_value(self) -> Value {
        match self {
            Self::String(text) => Value::String(text.into()),
            Self::Bool(flag) => Value::Bool(flag),
            Self::Int(number) => Value::Int(number),
            Self::Double(number) => Value::Double(number),
            Self::Decimal(number) => Value::Decimal(number),
            Self::Guid(guid) => Value::Guid(guid),
            Self::Timestamp(at_ms) => Value::Timestamp(at_ms),
            Self::Timespan(ticks) => Value::Timespan(ticks),
            Self::Char(character) => Value::Char(character),
            Self::Binary(bytes) => Value::Binary(bytes.into()),
        }
    }

    /// The name of the value's type, as error texts use it.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int64",
            Self::Double(_) => "double",
            Self::Decimal(_) => "decimal",
            Self::Guid(_) => "guid",
            Self::Timestamp(_) => "datetime",
            Self::Timespan(_) => "timespan",
            Self::Char(_) => "char",
            Self::Binary(_) => "binary",
        }
    }

    /// The value as text, borrowed if it is text already. Ids that are not strings are compared in
    /// this form; bytes are written as lower-case hexadecimal digits.
    pub fn text(self) -> Cow<'v, str> {
        match self {
            Self::String(text) => Cow::Borrowed(text),
            other => Cow::Owned(other.to_string()),
        }
    }
}

impl fmt::Display for ValueRef<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::String(text) => out.write_str(text),
            Self::Bool(flag) => write!(out, "{flag}"),
            Self::Int(number) => write!(out, "{number}"),
            Self::Double(number) => write!(out, "{number}"),
            Self::Decimal(number) => write!(out, "{number}"),
            Self::Guid(guid) => guid::write(guid, out),
            Self::Timestamp(at_ms) => time::write_timestamp(at_ms, out),
            Self::Timespan(ticks) => time::write_timespan(ticks, out),
            Self::Char(character) => write!(out, "{character}"),
            Self::Binary(bytes) => bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
        }
    }
}

impl<'v> From<&'v Value> for ValueRef<'v> {
    fn from(value: &'v Value) -> Self {
        value.as_ref()
    }
}

impl From<u64> for ValueRef<'_> {
    /// Numbers beyond the range of int64 become decimals, so that none loses a digit.
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or_else(|_| Self::Decimal(number.into()), Self::Int)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        ValueRef::from(number).to_value()
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Double(number)
    }
}

impl From<Decimal> for Value {
    fn from(number: Decimal) -> Self {
        Self::Decimal(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_text_form() {
        let cases: [(Value, &str); 12] = [
            ("a b".into(), "a b"),
            (true.into(), "true"),
            ((-5_i64).into(), "-5"),
            (u64::MAX.into(), "18446744073709551615"),
            (1.5.into(), "1.5"),
            (Decimal::new(-150, 2).unwrap().into(), "-1.5"),
            (Value::Guid(1), "00000000-0000-0000-0000-000000000001"),
            (Value::Timestamp(0), "1970-01-01T00:00:00.000Z"),
            (Value::Timespan(10_000_000), "00:00:01"),
            (Value::Char('x'), "x"),
            (Value::Binary([1, 255].into()), "01ff"),
            (0_u64.into(), "0"),
        ];
        for (value, text) in cases {
            assert_eq!(value.as_ref().text(), text, "{value:?}");
            assert_eq!(value.as_ref().to_value(), value);
        }
    }
}
