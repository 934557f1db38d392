//! Values between AMQP and filters.
//!
//! Filters compute with fewer types than AMQP has: all integers are one, floats are doubles, symbols
//! are text. What a filter cannot use (lists, unknown described values) it sees as null.

use bytes::Bytes;
use vorrang_amqp::decode::Reader;
use vorrang_amqp::encode::Encode;
use vorrang_amqp::value::{Encoded, Timestamp, Value};
use vorrang_amqp::{Symbol, Text, Uuid};
use vorrang_filter::{Decimal, Lookup, Value as Property, ValueRef};

const TIMESPAN: &str = "com.microsoft:timespan";
const DATETIME_OFFSET: &str = "com.microsoft:datetime-offset";
const URI: &str = "com.microsoft:uri";

/// An encoded value as a filter sees it, borrowing its text from the buffer.
pub fn to_filter<'b>(encoded: &Encoded<'b>) -> Lookup<'b> {
    if let Some(text) = encoded.as_str() {
        return Lookup::Found(ValueRef::String(text));
    }
    match scalar(&encoded.decode(), encoded.as_bytes()) {
        Some(value) => Lookup::Found(value),
        None => Lookup::Null,
    }
}

/// The same for a value that stands alone.
pub(super) fn of_encoding(encoded: &[u8]) -> Lookup<'_> {
    let source = Bytes::copy_from_slice(encoded);
    let decoded = Reader::new(&source).value().ok();
    decoded.and_then(|value| scalar(&value, encoded)).map_or(Lookup::Null, Lookup::Found)
}

/// The value whose encoding ends with `bytes`' last byte: text and binaries are found there.
fn scalar<'b>(value: &Value, bytes: &'b [u8]) -> Option<ValueRef<'b>> {
    let tail = |length: usize| bytes.get(bytes.len().checked_sub(length)?..);
    Some(match value {
        Value::Boolean(flag) => ValueRef::Bool(*flag),
        Value::Float(number) => ValueRef::Double(f64::from(*number)),
        Value::Double(number) => ValueRef::Double(*number),
        Value::Char(character) => ValueRef::Char(*character),
        Value::Timestamp(at) => ValueRef::Timestamp(at.0),
        Value::Uuid(uuid) => ValueRef::Guid(u128::from_be_bytes(*uuid.as_bytes())),
        Value::Binary(binary) => ValueRef::Binary(tail(binary.len())?),
        Value::String(text) => ValueRef::String(std::str::from_utf8(tail(text.len())?).ok()?),
        Value::Symbol(name) => ValueRef::String(std::str::from_utf8(tail(name.as_bytes().len())?).ok()?),
        Value::Decimal32(bits) => decimal(u128::from(u32::from_be_bytes(*bits)), DECIMAL_32)?,
        Value::Decimal64(bits) => decimal(u128::from(u64::from_be_bytes(*bits)), DECIMAL_64)?,
        Value::Decimal128(bits) => decimal(u128::from_be_bytes(*bits), DECIMAL_128)?,
        Value::Described(described) => match (described.descriptor.as_str()?, &described.value) {
            (TIMESPAN, inner) => ValueRef::Timespan(inner.as_i64()?),
            (DATETIME_OFFSET, inner) => {
                ValueRef::Timestamp(vorrang_amqp::ticks::time_of_ticks(inner.as_i64()?).0)
            }
            (URI, inner) => scalar(inner, bytes)?,
            _ => return None,
        },
        other => match other.as_i64() {
            Some(number) => ValueRef::Int(number),
            // Only a ulong beyond 2^63 − 1 is left among the integers.
            None => ValueRef::Decimal(Decimal::new(other.as_integer()?, 0)?),
        },
    })
}

/// How the bits of an IEEE 754 decimal (binary integer coefficient) are shared out.
#[derive(Clone, Copy)]
struct DecimalFormat {
    coefficient_bits: u32,
    exponent_bits: u32,
    bias: i32,
}

const DECIMAL_32: DecimalFormat = DecimalFormat { coefficient_bits: 23, exponent_bits: 8, bias: 101 };
const DECIMAL_64: DecimalFormat = DecimalFormat { coefficient_bits: 53, exponent_bits: 10, bias: 398 };
const DECIMAL_128: DecimalFormat = DecimalFormat { coefficient_bits: 113, exponent_bits: 14, bias: 6_176 };

/// Reads a decimal in its usual form; the rare long form, infinities and NaN are null to a filter.
fn decimal(bits: u128, format: DecimalFormat) -> Option<ValueRef<'static>> {
    let sign = bits >> (format.coefficient_bits + format.exponent_bits) & 1;
    let exponent = bits >> format.coefficient_bits & ((1 << format.exponent_bits) - 1);
    if exponent >> (format.exponent_bits - 2) == 0b11 {
        return None;
    }
    let coefficient = i128::try_from(bits & ((1 << format.coefficient_bits) - 1)).ok()?;
    let signed = if sign == 1 { -coefficient } else { coefficient };
    let exponent = i32::try_from(exponent).ok()? - format.bias;
    let exact = match u32::try_from(exponent) {
        Ok(up) => 10_i128
            .checked_pow(up)
            .and_then(|power| signed.checked_mul(power))
            .and_then(|all| Decimal::new(all, 0)),
        Err(_) => u8::try_from(-exponent).ok().and_then(|scale| Decimal::new(signed, scale)),
    };
    Some(exact.map_or_else(|| ValueRef::Double(approximate(signed, exponent)), ValueRef::Decimal))
}

/// The nearest double to `coefficient × 10^exponent`, by way of its text.
fn approximate(coefficient: i128, exponent: i32) -> f64 {
    format!("{coefficient}e{exponent}").parse().unwrap_or(f64::NAN)
}

/// A value the broker made (by a rule's action, a dead-letter reason), encoded for the wire.
#[must_use]
pub fn encoded_value(property: &Property) -> Vec<u8> {
    let mut bytes = Vec::new();
    let value = match property {
        Property::String(text) => Value::String(Text::from(&**text)),
        Property::Bool(flag) => Value::Boolean(*flag),
        Property::Int(number) => Value::Long(*number),
        Property::Double(number) => Value::Double(*number),
        // The wire's decimals are not worth an encoder of their own for a value no SDK can set.
        Property::Decimal(number) => Value::Double(number.to_f64()),
        Property::Guid(guid) => Value::Uuid(Uuid::from_bytes(guid.to_be_bytes())),
        Property::Timestamp(at) => Value::Timestamp(Timestamp(*at)),
        Property::Timespan(ticks) => Value::described(Symbol::from_static(TIMESPAN), *ticks),
        Property::Char(character) => Value::Char(*character),
        Property::Binary(binary) => Value::Binary(bytes::Bytes::copy_from_slice(binary)),
    };
    value.encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use vorrang_amqp::value::MapBuilder;

    use super::*;

    /// How a filter sees an application property with this value.
    fn seen(value: &Value) -> Option<Property> {
        let mut builder = MapBuilder::default();
        builder.push(&Value::from("key"), value);
        let map = builder.finish();
        let (_, encoded) = map.encoded_iter().next().unwrap();
        let seen = to_filter(&encoded).value().map(ValueRef::to_value);
        let alone = of_encoding(encoded.as_bytes()).value().map(ValueRef::to_value);
        assert_eq!(alone, seen, "{value:?} on its own");
        seen
    }

    #[test]
    fn every_simple_type_is_seen_by_filters() {
        let text = |text: &str| Property::String(text.into());
        let decimal = |unscaled, scale| Property::Decimal(Decimal::new(unscaled, scale).unwrap());
        let cases = [
            (Value::Null, None),
            (Value::Boolean(true), Some(Property::Bool(true))),
            (Value::Ubyte(7), Some(Property::Int(7))),
            (Value::Short(-7), Some(Property::Int(-7))),
            (Value::Long(i64::MIN), Some(Property::Int(i64::MIN))),
            (Value::Ulong(u64::MAX), Some(decimal(i128::from(u64::MAX), 0))),
            (Value::Float(0.5), Some(Property::Double(0.5))),
            (Value::Double(-0.25), Some(Property::Double(-0.25))),
            (Value::Char('ü'), Some(Property::Char('ü'))),
            (Value::Timestamp(Timestamp(-5)), Some(Property::Timestamp(-5))),
            (Value::Uuid(Uuid::from_bytes([1; 16])), Some(Property::Guid(u128::from_be_bytes([1; 16])))),
            (Value::from("text"), Some(text("text"))),
            (Value::symbol("name"), Some(text("name"))),
            (
                Value::Binary(bytes::Bytes::from_static(b"\x00\xff")),
                Some(Property::Binary(Box::new([0, 255]))),
            ),
            (Value::described(Symbol::from_static(TIMESPAN), 42_i64), Some(Property::Timespan(42))),
            (Value::described(Symbol::from_static(URI), "sb://x"), Some(text("sb://x"))),
            (Value::described(Symbol::from_static("unknown"), 1_i64), None),
            (Value::Decimal128((123_u128 + (6_174 << 113)).to_be_bytes()), Some(decimal(123, 2))),
            (Value::Decimal32((5_u32 + (1 << 31) + (102 << 23)).to_be_bytes()), Some(decimal(-50, 0))),
        ];
        for (value, expected) in cases {
            assert_eq!(seen(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn a_property_the_broker_made_comes_back_the_same() {
        let properties = [
            Property::String("x".into()),
            Property::Bool(false),
            Property::Int(-1),
            Property::Double(1.5),
            Property::Guid(9),
            Property::Timestamp(10),
            Property::Timespan(11),
            Property::Char('c'),
            Property::Binary(Box::new([1, 2])),
        ];
        for property in properties {
            let encoded = bytes::Bytes::from(encoded_value(&property));
            let value = vorrang_amqp::decode::Reader::new(&encoded).value().unwrap();
            assert_eq!(seen(&value), Some(property));
        }
    }
}
