//! Values made to fit the property they are stored in.

use crate::decimal::{Decimal, approximate};
use crate::error::FilterError;
use crate::system::SystemProperty;
use crate::value::{Value, ValueRef};
use crate::{guid, time};

/// The value in the type that `existing` has, if it loses nothing by that; else as it is.
pub(crate) fn to_type_of(existing: ValueRef<'_>, value: Value) -> Value {
    let converted = match (existing, value.as_ref()) {
        (ValueRef::String(_), other) => Some(other.text().as_ref().into()),
        (ValueRef::Int(_), ValueRef::String(text)) => text.parse().ok().map(Value::Int),
        (ValueRef::Int(_), ValueRef::Double(number)) => whole(number).map(Value::Int),
        (ValueRef::Int(_), ValueRef::Decimal(number)) if number.scale() == 0 => {
            i64::try_from(number.unscaled()).ok().map(Value::Int)
        }
        (ValueRef::Double(_), ValueRef::Int(number)) => Some(approximate(number.into()).into()),
        (ValueRef::Double(_), ValueRef::Decimal(number)) => Some(number.to_f64().into()),
        (ValueRef::Double(_), ValueRef::String(text)) => {
            text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Double)
        }
        (ValueRef::Decimal(_), ValueRef::Int(number)) => Some(Decimal::from(number).into()),
        (ValueRef::Bool(_), ValueRef::String(text)) => match text {
            _ if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
            _ if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
            _ => None,
        },
        (ValueRef::Guid(_), ValueRef::String(text)) => guid::parse(text).map(Value::Guid),
        (ValueRef::Timestamp(_), ValueRef::String(text)) => time::parse_timestamp(text).map(Value::Timestamp),
        (ValueRef::Timespan(_), ValueRef::String(text)) => time::parse_timespan(text).map(Value::Timespan),
        _ => None,
    };
    converted.unwrap_or(value)
}

/// The value in the type that a settable system property has; none where setting it has no effect.
pub(crate) fn for_system(property: SystemProperty, value: Value) -> Result<Option<Value>, FilterError> {
    let unsettable = |found: String| Err(FilterError::Unsettable { property, found });
    match (property, value) {
        // A copy is made when the message is published, so it is too late to schedule it.
        (SystemProperty::ScheduledEnqueueTimeUtc, _) => Ok(None),
        (SystemProperty::Priority, Value::Int(level)) => match u8::try_from(level) {
            Ok(_) => Ok(Some(Value::Int(level))),
            Err(_) => unsettable(format!("{level}, a level is 0 to 255")),
        },
        (SystemProperty::TimeToLive, value) => {
            let ticks = match value.as_ref() {
                ValueRef::Timespan(ticks) => Some(ticks),
                ValueRef::String(text) => time::parse_timespan(text),
                _ => None,
            };
            match ticks {
                Some(ticks) if ticks > 0 => Ok(Some(Value::Timespan(ticks))),
                _ => unsettable(format!("this {}", value.as_ref().type_name())),
            }
        }
        (SystemProperty::Priority, other) => unsettable(format!("a {}", other.as_ref().type_name())),
        (_, text @ Value::String(_)) => Ok(Some(text)),
        (_, other) => Ok(Some(other.as_ref().text().as_ref().into())),
    }
}

/// A double that is a whole number and far enough from the limits to be one exactly.
fn whole(number: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0; // 2^53
    #[allow(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "a whole double within 2^53 is an int64 exactly"
    )]
    let whole = (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_the_type_it_replaces_if_that_loses_nothing() {
        let decimal = |unscaled, scale| Value::from(Decimal::new(unscaled, scale).unwrap());
        let cases: Vec<(Value, Value, Value)> = vec![
            ("old".into(), 5_i64.into(), "5".into()),
            ("old".into(), Value::Guid(1), "00000000-0000-0000-0000-000000000001".into()),
            (1_i64.into(), "5".into(), 5_i64.into()),
            (1_i64.into(), "five".into(), "five".into()),
            (1_i64.into(), 5.0.into(), 5_i64.into()),
            (1_i64.into(), 5.5.into(), 5.5.into()),
            (1_i64.into(), 1e300.into(), 1e300.into()),
            (1_i64.into(), f64::NAN.to_string().as_str().into(), "NaN".into()),
            (1_i64.into(), decimal(5, 0), 5_i64.into()),
            (1_i64.into(), decimal(55, 1), decimal(55, 1)),
            (1_i64.into(), true.into(), true.into()),
            (1.0.into(), 5_i64.into(), 5.0.into()),
            (1.0.into(), "1.5".into(), 1.5.into()),
            (1.0.into(), "inf".into(), "inf".into()),
            (decimal(1, 0), 5_i64.into(), decimal(5, 0)),
            (true.into(), "FALSE".into(), false.into()),
            (true.into(), 1_i64.into(), 1_i64.into()),
            (Value::Guid(1), "00000000-0000-0000-0000-000000000002".into(), Value::Guid(2)),
            (Value::Timestamp(1), "1970-01-01".into(), Value::Timestamp(0)),
            (Value::Timespan(1), "00:00:01".into(), Value::Timespan(10_000_000)),
        ];
        for (existing, new, stored) in cases {
            assert_eq!(to_type_of(existing.as_ref(), new.clone()), stored, "{existing:?} {new:?}");
        }
    }

    #[test]
    fn system_properties_take_only_what_fits_them() {
        use SystemProperty::{Label, Priority, ScheduledEnqueueTimeUtc, TimeToLive};
        let cases: Vec<(SystemProperty, Value, Option<Option<Value>>)> = vec![
            (Label, "l".into(), Some(Some("l".into()))),
            (Label, 5_i64.into(), Some(Some("5".into()))),
            (Priority, 0_i64.into(), Some(Some(0_i64.into()))),
            (Priority, 255_i64.into(), Some(Some(255_i64.into()))),
            (Priority, 256_i64.into(), None),
            (Priority, (-1_i64).into(), None),
            (Priority, "9".into(), None),
            (TimeToLive, "00:00:01".into(), Some(Some(Value::Timespan(10_000_000)))),
            (TimeToLive, Value::Timespan(1), Some(Some(Value::Timespan(1)))),
            (TimeToLive, Value::Timespan(0), None),
            (TimeToLive, "soon".into(), None),
            (TimeToLive, 5_i64.into(), None),
            (ScheduledEnqueueTimeUtc, 5_i64.into(), Some(None)),
        ];
        for (property, value, stored) in cases {
            assert_eq!(for_system(property, value.clone()).ok(), stored, "{property:?} {value:?}");
        }
    }
}
