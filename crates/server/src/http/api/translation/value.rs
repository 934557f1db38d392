//! Property values between JSON and filters.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use vorrang_amqp::Uuid;
use vorrang_engine::Timestamp;
use vorrang_filter::{Value, ValueRef};

use crate::http::api::model::{PropertyValue, TypedValue, ValueType};
use crate::{date, duration};

/// Ticks of 100 ns in a second.
const TICKS_PER_SECOND: u64 = 10_000_000;
/// Ticks in a millisecond.
const TICKS_PER_MS: u64 = 10_000;

/// A value as JSON.
pub(crate) fn shown(value: ValueRef<'_>) -> PropertyValue {
    let typed = |kind, value| PropertyValue::Typed(TypedValue { kind, value });
    match value {
        ValueRef::String(text) => PropertyValue::Text(text.to_owned()),
        ValueRef::Bool(flag) => PropertyValue::Bool(flag),
        ValueRef::Int(number) => PropertyValue::Int(number),
        ValueRef::Double(number) if number.is_finite() => PropertyValue::Double(number),
        // JSON has neither infinities nor NaN.
        ValueRef::Double(number) => PropertyValue::Text(number.to_string()),
        ValueRef::Decimal(_) => typed(ValueType::Decimal, value.text().into_owned()),
        ValueRef::Guid(guid) => typed(ValueType::Guid, Uuid::from_bytes(guid.to_be_bytes()).to_string()),
        ValueRef::Timestamp(at) => {
            let text = u64::try_from(at).map_or_else(|_| at.to_string(), |at| date::rfc3339(Timestamp(at)));
            typed(ValueType::Timestamp, text)
        }
        ValueRef::Timespan(ticks) => typed(ValueType::Timespan, timespan(ticks)),
        ValueRef::Char(character) => typed(ValueType::Char, character.to_string()),
        ValueRef::Binary(bytes) => typed(ValueType::Binary, BASE64.encode(bytes)),
    }
}

/// JSON as a value; none for null.
pub(crate) fn read(value: &PropertyValue) -> Result<Option<Value>, String> {
    Ok(Some(match value {
        PropertyValue::Null => return Ok(None),
        PropertyValue::Bool(flag) => Value::Bool(*flag),
        PropertyValue::Int(number) => Value::Int(*number),
        PropertyValue::Double(number) => Value::Double(*number),
        PropertyValue::Text(text) => Value::String(text.as_str().into()),
        PropertyValue::Typed(typed) => read_typed(typed)?,
    }))
}

fn read_typed(typed: &TypedValue) -> Result<Value, String> {
    let text = typed.value.as_str();
    let cannot = |what: &str| format!("'{}' is no {what}", text.chars().take(64).collect::<String>());
    match typed.kind {
        ValueType::Guid => guid(text).map(Value::Guid).ok_or_else(|| cannot("guid")),
        ValueType::Timestamp => {
            let at = date::parse(text).and_then(|at| i64::try_from(at.0).ok()).or_else(|| text.parse().ok());
            at.map(Value::Timestamp).ok_or_else(|| cannot("point in time in RFC 3339"))
        }
        ValueType::Timespan => ticks(text).map(Value::Timespan).ok_or_else(|| cannot("duration in ISO 8601")),
        ValueType::Char => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Ok(Value::Char(character)),
                _ => Err(cannot("single character")),
            }
        }
        ValueType::Binary => match BASE64.decode(text) {
            Ok(bytes) => Ok(Value::Binary(bytes.into_boxed_slice())),
            Err(_) => Err(cannot("base64")),
        },
        ValueType::Decimal => Err("decimal numbers cannot be given, only read".to_owned()),
    }
}

fn guid(text: &str) -> Option<u128> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    (digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .then(|| u128::from_str_radix(&digits, 16).ok())?
}

/// A duration with all its digits.
fn timespan(ticks: i64) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let ticks = ticks.unsigned_abs();
    let (seconds, rest) = (ticks / TICKS_PER_SECOND, ticks % TICKS_PER_SECOND);
    let fraction = match rest {
        0 => String::new(),
        rest => format!(".{}", format!("{rest:07}").trim_end_matches('0')),
    };
    format!("{sign}PT{seconds}{fraction}S")
}

/// The opposite; any duration is understood, and one in seconds alone to the last digit.
fn ticks(text: &str) -> Option<i64> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let exact = text.strip_prefix("PT").and_then(|rest| rest.strip_suffix('S')).and_then(seconds);
    let ticks = match exact {
        Some(ticks) => ticks,
        None => duration::parse(text).ok()?.0.checked_mul(TICKS_PER_MS)?,
    };
    let ticks = i64::try_from(ticks).ok()?;
    Some(if negative { ticks.checked_neg()? } else { ticks })
}

fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 7 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<7}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(TICKS_PER_SECOND)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            ".{0,20}".prop_map(|text| Value::String(text.into())),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            (-1e300..1e300).prop_map(Value::Double),
            any::<u128>().prop_map(Value::Guid),
            (0..253_402_300_799_999_i64).prop_map(Value::Timestamp),
            (i64::MIN + 1..=i64::MAX).prop_map(Value::Timespan),
            any::<char>().prop_map(Value::Char),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Value::Binary(bytes.into())),
        ]
    }

    proptest! {
        #[test]
        fn a_value_survives_its_way_through_json(value in values()) {
            let json = serde_json::to_string(&shown(value.as_ref())).unwrap();
            let back: PropertyValue = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(read(&back).unwrap(), Some(value), "{}", json);
        }
    }

    #[test]
    fn what_is_not_what_it_says_is_refused() {
        let cases = [
            (ValueType::Guid, "12"),
            (ValueType::Guid, "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz"),
            (ValueType::Timestamp, "yesterday"),
            (ValueType::Timespan, "a while"),
            (ValueType::Timespan, "PT99999999999999999999S"),
            (ValueType::Char, ""),
            (ValueType::Char, "ab"),
            (ValueType::Binary, "*"),
            (ValueType::Decimal, "1"),
        ];
        for (kind, value) in cases {
            let typed = PropertyValue::Typed(TypedValue { kind, value: value.to_owned() });
            assert!(read(&typed).is_err(), "{kind:?} {value}");
        }
    }
}
