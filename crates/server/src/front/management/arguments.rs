//! Arguments of a request, typed on the way in.
//!
//! SDKs disagree about the width and sign of integers, about arrays and lists, and about symbols and
//! strings: all are taken. A null is an argument that was not given. How many items an argument has is
//! checked before any is looked at.

use std::sync::Arc;

use smallvec::SmallVec;
use vorrang_amqp::Text;
use vorrang_amqp::value::{Map, Value};
use vorrang_engine::{LockToken, Sequence, SessionId, Timestamp};

use crate::front::condition::{Told, name};

/// Messages, tokens or numbers in one request; more refuse it before anything is made of them. What
/// the engine takes in one request is less.
pub(super) const COUNT_MAX: u32 = 10_000;

/// The arguments of one request.
#[derive(Debug)]
pub(super) struct Arguments(Map);

impl Arguments {
    pub(super) fn new(map: Map) -> Arguments {
        Arguments(map)
    }

    /// The argument, if it is given and not null.
    pub(super) fn value(&self, key: &str) -> Option<Value> {
        self.0.value(key).filter(|value| !value.is_null())
    }

    /// A text, if it is given.
    pub(super) fn text(&self, key: &'static str) -> Result<Option<Text>, Told> {
        self.read(key, "a string", |value| value.as_text().cloned())
    }

    /// A text to keep, if it is given.
    pub(super) fn kept_text(&self, key: &'static str) -> Result<Option<Arc<str>>, Told> {
        Ok(self.text(key)?.map(|text| Arc::from(text.as_str())))
    }

    /// A text that must be given.
    pub(super) fn required_text(&self, key: &'static str) -> Result<Text, Told> {
        self.text(key)?.ok_or_else(|| missing(key))
    }

    /// A session's name, if one is given.
    pub(super) fn session(&self) -> Result<Option<SessionId>, Told> {
        Ok(self.kept_text("session-id")?.map(SessionId))
    }

    /// A session's name, which must be given.
    pub(super) fn required_session(&self) -> Result<SessionId, Told> {
        self.session()?.ok_or_else(|| missing("session-id"))
    }

    /// A flag; false if it is not given.
    pub(super) fn flag(&self, key: &'static str) -> Result<bool, Told> {
        Ok(self.read(key, "a boolean", Value::as_bool)?.unwrap_or(false))
    }

    /// An integer of any type, if it is given.
    pub(super) fn integer(&self, key: &'static str) -> Result<Option<i128>, Told> {
        self.read(key, "an integer", Value::as_integer)
    }

    /// An integer of any type that must be given.
    pub(super) fn required_integer(&self, key: &'static str) -> Result<i128, Told> {
        self.integer(key)?.ok_or_else(|| missing(key))
    }

    /// A count that is not negative, if it is given. More than fits means everything.
    pub(super) fn count(&self, key: &'static str) -> Result<Option<u32>, Told> {
        match self.integer(key)? {
            Some(number) if number < 0 => Err(out_of_range(format!("'{key}' must not be negative."))),
            number => Ok(number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))),
        }
    }

    /// A count of at least one that must be given. More than fits means everything.
    pub(super) fn required_count(&self, key: &'static str) -> Result<u32, Told> {
        match self.count(key)? {
            None => Err(missing(key)),
            Some(0) => Err(out_of_range(format!("'{key}' must be at least 1."))),
            Some(count) => Ok(count),
        }
    }

    /// A point in time, as a timestamp or as milliseconds since 1970, if it is given.
    pub(super) fn time(&self, key: &'static str) -> Result<Option<Timestamp>, Told> {
        let milliseconds =
            |value: &Value| value.as_timestamp().map(|at| at.0.into()).or_else(|| value.as_integer());
        let found: Option<i128> = self.read(key, "a timestamp", milliseconds)?;
        Ok(found.map(|at| Timestamp(clamped(at))))
    }

    /// Lock tokens, at least one.
    pub(super) fn tokens(&self) -> Result<SmallVec<[LockToken; 1]>, Told> {
        let token =
            |value: &Value| value.as_uuid().map(|uuid| LockToken(u128::from_be_bytes(*uuid.as_bytes())));
        self.items("lock-tokens", "uuid", token)
    }

    /// Sequence numbers, at least one. A negative one is no message's.
    pub(super) fn sequences(&self) -> Result<SmallVec<[Sequence; 1]>, Told> {
        self.items("sequence-numbers", "long", |value| value.as_u64().map(Sequence))
    }

    /// The items of a list or array that must be given and not be empty, each read by `read`.
    pub(super) fn items<T>(
        &self,
        key: &'static str,
        kind: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<SmallVec<[T; 1]>, Told> {
        let wrong = || argument_error(format!("'{key}' must be a sequence of {kind}."));
        let value = self.value(key).ok_or_else(|| missing(key))?;
        let count = match &value {
            Value::Array(array) => array.count(),
            Value::List(list) => list.count(),
            _ => return Err(wrong()),
        };
        if count == 0 || count > COUNT_MAX {
            return Err(out_of_range(format!("'{key}' has {count} items: allowed are 1 to {COUNT_MAX}.")));
        }
        let items: Option<SmallVec<[T; 1]>> = match &value {
            Value::Array(array) => array.iter().map(|item| read(&item)).collect(),
            Value::List(list) => list.iter().map(|item| read(&item)).collect(),
            _ => None,
        };
        items.ok_or_else(wrong)
    }

    fn read<T>(
        &self,
        key: &'static str,
        kind: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, Told> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match read(&value) {
            Some(read) => Ok(Some(read)),
            None => Err(argument_error(format!("'{key}' must be {kind}."))),
        }
    }
}

/// The nearest number that is not negative and fits.
pub(super) fn clamped(number: i128) -> u64 {
    u64::try_from(number.max(0)).unwrap_or(u64::MAX)
}

/// An argument of the wrong kind, or one too few.
pub(super) fn argument_error(text: impl Into<String>) -> Told {
    Told::new(name::ARGUMENT_ERROR, 400, text)
}

/// An argument beyond its bounds.
pub(super) fn out_of_range(text: impl Into<String>) -> Told {
    Told::new(name::ARGUMENT_OUT_OF_RANGE, 400, text)
}

/// An operation that this entity does not have.
pub(super) fn not_allowed(text: impl Into<String>) -> Told {
    Told::new(name::NOT_ALLOWED, 400, text)
}

fn missing(key: &str) -> Told {
    argument_error(format!("The request needs '{key}'."))
}

#[cfg(test)]
mod tests {
    use vorrang_amqp::value::{Array, List, Timestamp as AmqpTimestamp};
    use vorrang_amqp::{Symbol, Uuid};

    use super::*;

    fn arguments(key: Value, value: Value) -> Arguments {
        Arguments::new(std::iter::once((key, value)).collect())
    }

    fn of(key: &'static str, value: impl Into<Value>) -> Arguments {
        arguments(Value::from(key), value.into())
    }

    #[test]
    fn integers_are_taken_in_every_type() {
        let sevens = [
            Value::Ubyte(7),
            Value::Ushort(7),
            Value::Uint(7),
            Value::Ulong(7),
            Value::Byte(7),
            Value::Short(7),
            Value::Int(7),
            Value::Long(7),
        ];
        for seven in sevens {
            for key in [Value::from("top"), Value::symbol("top")] {
                assert_eq!(arguments(key, seven.clone()).count("top"), Ok(Some(7)), "{seven:?}");
            }
        }
        for wrong in [Value::from("7"), Value::Double(7.0), Value::Boolean(true)] {
            assert_eq!(of("top", wrong).count("top").unwrap_err().condition, name::ARGUMENT_ERROR);
        }
        assert_eq!(of("top", Value::Null).count("top"), Ok(None));
    }

    #[test]
    fn counts_hold_at_their_edges() {
        let cases = [
            (Value::Int(-1), Err(400), Err(400)),
            (Value::Int(0), Ok(Some(0)), Err(400)),
            (Value::Int(1), Ok(Some(1)), Ok(1)),
            (Value::Int(i32::MAX), Ok(Some(2_147_483_647)), Ok(2_147_483_647)),
            (Value::Ulong(u64::MAX), Ok(Some(u32::MAX)), Ok(u32::MAX)),
            (Value::Long(i64::MIN), Err(400), Err(400)),
        ];
        for (value, count, required) in cases {
            let arguments = of("n", value.clone());
            assert_eq!(arguments.count("n").map_err(|told| told.status), count, "{value:?}");
            assert_eq!(arguments.required_count("n").map_err(|told| told.status), required, "{value:?}");
        }
    }

    #[test]
    fn times_are_timestamps_or_milliseconds() {
        let cases = [
            (Value::Timestamp(AmqpTimestamp(5)), 5),
            (Value::Timestamp(AmqpTimestamp(-5)), 0),
            (Value::Ulong(u64::MAX), u64::MAX),
            (Value::Long(9), 9),
        ];
        for (value, expected) in cases {
            assert_eq!(of("t", value).time("t"), Ok(Some(Timestamp(expected))));
        }
        assert!(of("t", "now").time("t").is_err());
    }

    #[test]
    fn tokens_and_numbers_come_as_array_or_list() {
        let uuid = Uuid::from_bytes([1; 16]);
        let token = LockToken(u128::from_be_bytes([1; 16]));
        for tokens in [Value::Array(Array::of([uuid, uuid])), Value::List([uuid, uuid].into_iter().collect())]
        {
            assert_eq!(of("lock-tokens", tokens).tokens().unwrap().as_slice(), [token, token]);
        }
        for numbers in [Value::Array(Array::of([1_i64, 2])), Value::List([1_i32, 2].into_iter().collect())] {
            let read = of("sequence-numbers", numbers).sequences().unwrap();
            assert_eq!(read.as_slice(), [Sequence(1), Sequence(2)]);
        }
    }

    #[test]
    fn sequences_of_the_wrong_kind_or_length_are_refused() {
        let long = |count: usize| Value::Array(Array::of(std::iter::repeat_n(1_i64, count)));
        let most = usize::try_from(COUNT_MAX).unwrap();
        let cases = [
            (Value::Null, Some(name::ARGUMENT_ERROR)),
            (Value::Long(1), Some(name::ARGUMENT_ERROR)),
            (Value::List(List::EMPTY), Some(name::ARGUMENT_OUT_OF_RANGE)),
            (Value::Array(Array::of([-1_i64])), Some(name::ARGUMENT_ERROR)),
            (Value::Array(Array::of([Symbol::from_static("x")])), Some(name::ARGUMENT_ERROR)),
            (long(most), None),
            (long(most + 1), Some(name::ARGUMENT_OUT_OF_RANGE)),
        ];
        for (value, condition) in cases {
            let outcome = of("sequence-numbers", value).sequences();
            assert_eq!(outcome.err().map(|told| told.condition), condition);
        }
    }
}
