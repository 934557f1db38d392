//! Correlation filters: some fields, all of which must be equal.

use std::collections::BTreeMap;

use crate::equality::same_family;
use crate::message::Message;
use crate::system::SystemProperty;
use crate::value::Value;

/// Most fields one filter may have; more are refused.
pub const FIELDS_MAX: usize = 64;

/// A filter that matches a message whose fields equal all of its own.
///
/// System fields are compared as text, exactly; message and correlation ids of other types by their
/// text form. Application properties are found ignoring case, and equal by type family: numbers by
/// value whatever their type, everything else only within its own type.
#[derive(Debug, Clone, PartialEq)]
pub struct Correlation {
    system: BTreeMap<SystemProperty, Box<str>>,
    user: BTreeMap<Box<str>, Value>,
}

/// Why fields do not make a correlation filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no field at all.
    #[error("correlation filter needs at least one field")]
    Empty,
    /// There are too many.
    #[error("correlation filter has {count} fields, the limit is {limit}")]
    TooManyFields {
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A system property that correlation filters cannot compare.
    #[error("correlation filter cannot compare sys.{}", .0.name())]
    Field(SystemProperty),
}

impl Correlation {
    /// A filter over system fields and application properties. An empty text is a value like any other.
    pub fn new(
        system: impl IntoIterator<Item = (SystemProperty, String)>,
        user: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Self, Error> {
        let system: BTreeMap<SystemProperty, Box<str>> =
            system.into_iter().map(|(property, text)| (property, text.into())).collect();
        let user: BTreeMap<Box<str>, Value> =
            user.into_iter().map(|(name, value)| (name.into(), value)).collect();
        if let Some(property) = system.keys().find(|property| !property.correlates()) {
            return Err(Error::Field(*property));
        }
        match system.len() + user.len() {
            0 => Err(Error::Empty),
            count if count > FIELDS_MAX => Err(Error::TooManyFields { count, limit: FIELDS_MAX }),
            _ => Ok(Self { system, user }),
        }
    }

    /// The system fields compared.
    pub fn system(&self) -> impl Iterator<Item = (SystemProperty, &str)> {
        self.system.iter().map(|(property, text)| (*property, &**text))
    }

    /// The application properties compared.
    pub fn user(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.user.iter().map(|(name, value)| (&**name, value))
    }

    /// Whether every field equals the message's. Cannot fail.
    pub fn matches(&self, message: &dyn Message) -> bool {
        self.system()
            .all(|(property, text)| message.system(property).is_some_and(|value| value.text() == text))
            && self.user().all(|(name, value)| {
                message.user(name).value().is_some_and(|found| same_family(found, value.as_ref()))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapMessage;

    fn system(fields: &[(SystemProperty, &str)]) -> Correlation {
        Correlation::new(fields.iter().map(|(property, text)| (*property, (*text).to_owned())), []).unwrap()
    }

    fn user(fields: &[(&str, Value)]) -> Correlation {
        Correlation::new([], fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))).unwrap()
    }

    #[test]
    fn all_fields_must_match_exactly() {
        let message = MapMessage::new()
            .with_system(SystemProperty::Label, "red")
            .with_system(SystemProperty::To, "")
            .with("n", 1_i64);
        let cases: [(&[(SystemProperty, &str)], bool); 6] = [
            (&[(SystemProperty::Label, "red")], true),
            (&[(SystemProperty::Label, "Red")], false),
            (&[(SystemProperty::Label, "red"), (SystemProperty::To, "")], true),
            (&[(SystemProperty::Label, "red"), (SystemProperty::To, "x")], false),
            (&[(SystemProperty::Label, "red"), (SystemProperty::ReplyTo, "")], false),
            (&[(SystemProperty::ReplyTo, "")], false),
        ];
        for (fields, matches) in cases {
            assert_eq!(system(fields).matches(&message), matches, "{fields:?}");
        }
    }

    #[test]
    fn ids_that_are_not_strings_are_compared_by_their_text() {
        let message = MapMessage::new()
            .with_system(SystemProperty::MessageId, u64::MAX)
            .with_system(SystemProperty::CorrelationId, Value::Guid(10));
        let cases = [
            (SystemProperty::MessageId, "18446744073709551615", true),
            (SystemProperty::MessageId, "18446744073709551616", false),
            (SystemProperty::CorrelationId, "00000000-0000-0000-0000-00000000000a", true),
            (SystemProperty::CorrelationId, "00000000-0000-0000-0000-00000000000A", false),
        ];
        for (property, text, matches) in cases {
            assert_eq!(system(&[(property, text)]).matches(&message), matches, "{text}");
        }
    }

    #[test]
    fn properties_are_equal_by_type_family_and_found_in_any_case() {
        let message = MapMessage::new().with("n", 1_i64).with("s", "2").with_null("nothing").with("N", 3_i64);
        let cases: [(&str, Value, bool); 8] = [
            ("n", 1_i64.into(), true),
            ("n", 1.0.into(), true),
            ("n", "1".into(), false),
            ("N", 3_i64.into(), true),
            ("S", "2".into(), true),
            ("s", 2_i64.into(), false),
            ("nothing", "".into(), false),
            ("missing", "".into(), false),
        ];
        for (name, value, matches) in cases {
            assert_eq!(user(&[(name, value.clone())]).matches(&message), matches, "{name} {value:?}");
        }
    }

    #[test]
    fn a_filter_needs_a_field_and_takes_only_so_many() {
        assert_eq!(Correlation::new([], []), Err(Error::Empty));
        let fields = |count: usize| (0..count).map(|index| (format!("p{index}"), Value::Int(0)));
        assert!(Correlation::new([], fields(FIELDS_MAX)).is_ok());
        assert_eq!(
            Correlation::new([], fields(FIELDS_MAX + 1)),
            Err(Error::TooManyFields { count: 65, limit: 64 })
        );
        assert_eq!(
            Correlation::new([(SystemProperty::PartitionKey, String::new())], []),
            Err(Error::Field(SystemProperty::PartitionKey))
        );
    }
}
