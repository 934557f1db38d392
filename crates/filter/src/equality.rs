//! When two values are equal, and which comes first.
//!
//! There are two equalities. Correlation filters compare within a family of types (numbers are one
//! family) and nothing else. SQL's `=` also lets a string stand for the GUID or the point in time
//! it spells. Both are total: values that cannot be compared are simply not equal.

use std::cmp::Ordering;

use crate::number::Number;
use crate::value::ValueRef;
use crate::{guid, time};

/// Equality within one family of types.
pub(crate) fn same_family(left: ValueRef<'_>, right: ValueRef<'_>) -> bool {
    if let (ValueRef::String(left), ValueRef::String(right)) = (left, right) {
        return left == right;
    }
    match (Number::from_value(left), Number::from_value(right)) {
        (Some(left), Some(right)) => left.compare(right) == Some(Ordering::Equal),
        (None, None) => left == right,
        _ => false,
    }
}

/// SQL's `=`.
pub(crate) fn equal(left: ValueRef<'_>, right: ValueRef<'_>) -> bool {
    match (left, right) {
        (ValueRef::Guid(guid), ValueRef::String(text)) | (ValueRef::String(text), ValueRef::Guid(guid)) => {
            guid::parse(text) == Some(guid)
        }
        (ValueRef::Timestamp(at_ms), ValueRef::String(text))
        | (ValueRef::String(text), ValueRef::Timestamp(at_ms)) => time::parse_timestamp(text) == Some(at_ms),
        _ => same_family(left, right),
    }
}

/// How two values stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Known(Ordering),
    /// Numbers without an order: one is NaN, and every comparison is false.
    NotANumber,
    /// These types have no order.
    Undefined,
}

/// The order behind SQL's `<`, `<=`, `>` and `>=`. Strings are ordered by code point.
pub(crate) fn order(left: ValueRef<'_>, right: ValueRef<'_>) -> Order {
    let known = match (left, right) {
        (ValueRef::String(left), ValueRef::String(right)) => Some(left.cmp(right)),
        (ValueRef::Int(left), ValueRef::Int(right))
        | (ValueRef::Timestamp(left), ValueRef::Timestamp(right))
        | (ValueRef::Timespan(left), ValueRef::Timespan(right)) => Some(left.cmp(&right)),
        (ValueRef::Timestamp(left), ValueRef::String(right)) => {
            time::parse_timestamp(right).map(|right| left.cmp(&right))
        }
        (ValueRef::String(left), ValueRef::Timestamp(right)) => {
            time::parse_timestamp(left).map(|left| left.cmp(&right))
        }
        (ValueRef::Char(left), ValueRef::Char(right)) => Some(left.cmp(&right)),
        _ => match (Number::from_value(left), Number::from_value(right)) {
            (Some(left), Some(right)) => match left.compare(right) {
                Some(order) => Some(order),
                None => return Order::NotANumber,
            },
            _ => None,
        },
    };
    known.map_or(Order::Undefined, Order::Known)
}

/// Bytes that comparing the two may look at, for the step budget.
pub(crate) fn compared_bytes(left: ValueRef<'_>, right: ValueRef<'_>) -> usize {
    match (left, right) {
        (ValueRef::String(left), ValueRef::String(right)) => left.len().min(right.len()),
        (ValueRef::Binary(left), ValueRef::Binary(right)) => left.len().min(right.len()),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::decimal::Decimal;

    const GUID_TEXT: &str = "00000000-0000-0000-0000-00000000000A";

    #[test]
    fn equality_by_family_and_equality_of_sql() {
        let int = |number: i64| Value::from(number);
        let decimal = |unscaled, scale| Value::from(Decimal::new(unscaled, scale).unwrap());
        // left, right, equal within the family, equal in SQL
        let cases: Vec<(Value, Value, bool, bool)> = vec![
            (int(1), int(1), true, true),
            (int(1), int(2), false, false),
            (int(1), 1.0.into(), true, true),
            (int(1), 1.5.into(), false, false),
            (int(1), decimal(10, 1), true, true),
            (decimal(15, 1), 1.5.into(), true, true),
            (0.0.into(), (-0.0).into(), true, true),
            (f64::NAN.into(), f64::NAN.into(), false, false),
            (i64::MAX.into(), (9_223_372_036_854_775_807_f64).into(), true, true),
            (i64::MAX.into(), u64::MAX.into(), false, false),
            (int(1), true.into(), false, false),
            (int(2), "2".into(), false, false),
            ("a".into(), "a".into(), true, true),
            ("a".into(), "A".into(), false, false),
            (true.into(), true.into(), true, true),
            (true.into(), "true".into(), false, false),
            (Value::Guid(10), Value::Guid(10), true, true),
            (Value::Guid(10), GUID_TEXT.into(), false, true),
            (Value::Guid(11), GUID_TEXT.into(), false, false),
            (Value::Guid(10), "ten".into(), false, false),
            (Value::Timestamp(0), Value::Timestamp(0), true, true),
            (Value::Timestamp(0), "1970-01-01".into(), false, true),
            (Value::Timestamp(0), int(0), false, false),
            (Value::Timestamp(0), Value::Timespan(0), false, false),
            (Value::Char('a'), Value::Char('a'), true, true),
            (Value::Char('a'), "a".into(), false, false),
            (Value::Binary([1].into()), Value::Binary([1].into()), true, true),
        ];
        for (left, right, in_family, in_sql) in cases {
            for (a, b) in [(&left, &right), (&right, &left)] {
                assert_eq!(same_family(a.as_ref(), b.as_ref()), in_family, "{a:?} {b:?}");
                assert_eq!(equal(a.as_ref(), b.as_ref()), in_sql, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn only_numbers_text_times_durations_and_characters_have_an_order() {
        use Ordering::{Equal, Greater, Less};
        let cases: Vec<(Value, Value, Order)> = vec![
            (1_i64.into(), 1.5.into(), Order::Known(Less)),
            (1_i64.into(), f64::NAN.into(), Order::NotANumber),
            (u64::MAX.into(), i64::MAX.into(), Order::Known(Greater)),
            ("a".into(), "B".into(), Order::Known(Greater)),
            ("a".into(), 1_i64.into(), Order::Undefined),
            ("10".into(), 9_i64.into(), Order::Undefined),
            (true.into(), false.into(), Order::Undefined),
            (Value::Guid(1), Value::Guid(2), Order::Undefined),
            (Value::Guid(1), GUID_TEXT.into(), Order::Undefined),
            (Value::Timestamp(5), Value::Timestamp(5), Order::Known(Equal)),
            (Value::Timestamp(5), "1970-01-01".into(), Order::Known(Greater)),
            (Value::Timestamp(5), "yesterday".into(), Order::Undefined),
            (Value::Timespan(5), Value::Timespan(6), Order::Known(Less)),
            (Value::Char('a'), Value::Char('b'), Order::Known(Less)),
            (Value::Binary([1].into()), Value::Binary([2].into()), Order::Undefined),
        ];
        for (left, right, expected) in cases {
            assert_eq!(order(left.as_ref(), right.as_ref()), expected, "{left:?} {right:?}");
        }
    }
}
