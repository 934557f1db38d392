//! A property's value in JSON.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A property's value. Text, numbers and truth values are written as in JSON; what JSON has no word for
/// is an object that names its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum PropertyValue {
    /// Null: a property that is there without a value, or in an edit one to remove.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Double(f64),
    /// A text.
    Text(String),
    /// What JSON has no word for.
    Typed(TypedValue),
}

/// A value with its type: `{ "type": "guid", "value": "…" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TypedValue {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ValueType,
    /// The value as text: a guid with hyphens, a timestamp in RFC 3339, a timespan as a duration, one
    /// character, bytes in base64, a decimal number.
    pub value: String,
}

/// The types JSON has no word for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum ValueType {
    /// A UUID.
    Guid,
    /// A point in time.
    Timestamp,
    /// A duration.
    Timespan,
    /// One character.
    Char,
    /// Bytes.
    Binary,
    /// A decimal number; given in answers alone.
    Decimal,
}

impl From<&str> for PropertyValue {
    fn from(text: &str) -> PropertyValue {
        PropertyValue::Text(text.to_owned())
    }
}
