//! Rules as the wire has them: maps on the way in, described lists on the way out.
//!
//! The descriptors come from two families that differ by one hexadecimal digit: those of rules and
//! actions, and those of filters. SDKs know them by number.

use std::sync::Arc;

use bytes::Bytes;
use vorrang_amqp::decode::Reader;
use vorrang_amqp::value::{ListBuilder, Map, MapBuilder, Value};
use vorrang_engine::entity::{Rule, RuleDescription, RuleName};
use vorrang_filter::correlation::FIELDS_MAX;
use vorrang_filter::{Action, Correlation, Filter, Parameters, Sql, SystemProperty, Value as Property};

use super::arguments::{Arguments, argument_error};
use super::locks::wire_time;
use crate::front::condition::Told;
use crate::front::message::{encoded_value, to_filter};

const RULE: u64 = 0x0000_0137_0000_0004;
const EMPTY_ACTION: u64 = 0x0000_0137_0000_0005;
const SQL_ACTION: u64 = 0x0000_0137_0000_0006;
const SQL_FILTER: u64 = 0x0000_0013_7000_0006;
const TRUE_FILTER: u64 = 0x0000_0013_7000_0007;
const FALSE_FILTER: u64 = 0x0000_0013_7000_0008;
const CORRELATION_FILTER: u64 = 0x0000_0013_7000_0009;

/// The version of the language that Service Bus writes beside an expression.
const COMPATIBILITY_LEVEL: i32 = 20;

/// The fields of a correlation filter before its properties, in the order of the list.
const CORRELATION_FIELDS: [(&str, SystemProperty); 8] = [
    ("correlation-id", SystemProperty::CorrelationId),
    ("message-id", SystemProperty::MessageId),
    ("to", SystemProperty::To),
    ("reply-to", SystemProperty::ReplyTo),
    ("label", SystemProperty::Label),
    ("session-id", SystemProperty::SessionId),
    ("reply-to-session-id", SystemProperty::ReplyToSessionId),
    ("content-type", SystemProperty::ContentType),
];

/// Reads a rule's filter and action.
pub(super) fn read(name: RuleName, description: &Arguments) -> Result<RuleDescription, Told> {
    let filter = match (part(description, "sql-filter")?, part(description, "correlation-filter")?) {
        (Some(sql), None) => {
            let text = sql.required_text("expression")?;
            let parsed = Sql::parse(text.as_str(), Parameters::default());
            Filter::from(
                parsed.map_err(|error| argument_error(format!("The filter is not valid: {error}.")))?,
            )
        }
        (None, Some(correlation)) => Filter::from(read_correlation(&correlation)?),
        _ => return Err(argument_error("A rule needs either 'sql-filter' or 'correlation-filter'.")),
    };
    let action = match part(description, "sql-rule-action")? {
        None => None,
        Some(action) => {
            let text = action.required_text("expression")?;
            let parsed = Action::parse(text.as_str(), Parameters::default());
            Some(Arc::new(
                parsed.map_err(|error| argument_error(format!("The action is not valid: {error}.")))?,
            ))
        }
    };
    Ok(RuleDescription { name, filter, action })
}

fn part(description: &Arguments, key: &str) -> Result<Option<Arguments>, Told> {
    match description.value(key) {
        None => Ok(None),
        Some(Value::Map(map)) => Ok(Some(Arguments::new(map))),
        Some(_) => Err(argument_error(format!("'{key}' must be a map."))),
    }
}

fn read_correlation(fields: &Arguments) -> Result<Correlation, Told> {
    let mut system = Vec::new();
    for (key, property) in CORRELATION_FIELDS {
        system.extend(fields.text(key)?.map(|text| (property, text.as_str().to_owned())));
    }
    let user = match fields.value("properties") {
        None => Vec::new(),
        Some(Value::Map(map)) => read_properties(&map)?,
        Some(_) => return Err(argument_error("'properties' must be a map.")),
    };
    Correlation::new(system, user)
        .map_err(|error| argument_error(format!("The filter is not valid: {error}.")))
}

/// Application properties to compare with. A null compares with nothing, as if it were not there.
fn read_properties(map: &Map) -> Result<Vec<(String, Property)>, Told> {
    if usize::try_from(map.len()).unwrap_or(usize::MAX) > FIELDS_MAX {
        let count = map.len();
        return Err(argument_error(format!("The filter has {count} properties, the limit is {FIELDS_MAX}.")));
    }
    let mut properties = Vec::new();
    for (key, value) in map.encoded_iter() {
        if value.decode().is_null() {
            continue;
        }
        let key = key.as_str().ok_or_else(|| argument_error("The names of properties must be strings."))?;
        let value = to_filter(&value).value().ok_or_else(|| {
            argument_error(format!("The property '{key}' has a type that filters do not compare."))
        })?;
        properties.push((key.to_owned(), value.to_value()));
    }
    Ok(properties)
}

/// A rule as a described list. The action is never null and the properties are never null: SDKs look
/// into both without asking.
pub(super) fn write(rule: &Rule) -> Value {
    let RuleDescription { name, filter, action } = &rule.description;
    let action = match action {
        None => described(EMPTY_ACTION, []),
        Some(action) => described(SQL_ACTION, [Value::from(action.text()), Value::from(COMPATIBILITY_LEVEL)]),
    };
    let created = Value::Timestamp(wire_time(rule.created));
    described(RULE, [write_filter(filter), action, Value::from(name.as_str()), created])
}

fn write_filter(filter: &Filter) -> Value {
    match filter {
        Filter::True => described(TRUE_FILTER, []),
        Filter::False => described(FALSE_FILTER, []),
        Filter::Sql(sql) => {
            described(SQL_FILTER, [Value::from(sql.text()), Value::from(COMPATIBILITY_LEVEL)])
        }
        Filter::Correlation(correlation) => {
            let field = |(_, wanted): (&str, SystemProperty)| {
                let found = correlation.system().find(|(property, _)| *property == wanted);
                Value::from(found.map(|(_, text)| text.to_owned()))
            };
            let mut properties = MapBuilder::default();
            for (name, value) in correlation.user() {
                properties.push(&name, &wire_value(value));
            }
            let fields = CORRELATION_FIELDS.into_iter().map(field);
            described(CORRELATION_FILTER, fields.chain([Value::Map(properties.finish())]))
        }
    }
}

fn described(code: u64, fields: impl IntoIterator<Item = Value>) -> Value {
    let mut list = ListBuilder::default();
    for field in fields {
        list.push(&field);
    }
    Value::described(code, list.finish())
}

fn wire_value(property: &Property) -> Value {
    let encoded = Bytes::from(encoded_value(property));
    Reader::new(&encoded).value().expect("what we encode can be read")
}
