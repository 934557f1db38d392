//! Rules as `RuleDescription`: filters, actions and typed values.

use std::time::Duration;

use vorrang_amqp::value::Value;
use vorrang_amqp::{Symbol, Uuid};

use super::xml::{Element, SCHEMA, SERVICE_BUS};
use super::{fields::Written, iso};
use crate::rules::{CorrelationFilter, Rule, RuleFilter, Sql};
use crate::wall;

/// The version of the language that Service Bus has beside every expression.
const COMPATIBILITY_LEVEL: &str = "20";
/// The type of values in lists of pairs that AMQP has no type of its own for.
const TIMESPAN: &str = "com.microsoft:timespan";
/// A hundred nanoseconds, in which time spans are counted.
const TICKS_PER_SECOND: u64 = 10_000_000;

/// Writes a rule as an element of this name.
pub(super) fn write(rule: &Rule, root: &str) -> Element {
    let action = Element::new(SERVICE_BUS, "Action");
    let action = match &rule.action {
        None => action.of_kind(SERVICE_BUS, "EmptyRuleAction"),
        Some(sql) => action.of_kind(SERVICE_BUS, "SqlRuleAction").with_all(expression(sql)),
    };
    Element::new(SERVICE_BUS, root)
        .with(write_filter(&rule.filter))
        .with(action)
        .with(Element::leaf("Name", &rule.name))
}

/// Reads a rule; none if its filter is of a kind nobody here knows.
pub(super) fn read(name: &str, description: &Element) -> Option<Rule> {
    let filter = description.child("Filter").map_or(Some(RuleFilter::True), read_filter)?;
    let action = description.child("Action").filter(|action| action.kind_name() == Some("SqlRuleAction"));
    Some(Rule { name: name.to_owned(), filter, action: action.and_then(read_expression) })
}

pub(super) fn write_filter(filter: &RuleFilter) -> Element {
    let element = |kind: &str| Element::new(SERVICE_BUS, "Filter").of_kind(SERVICE_BUS, kind);
    match filter {
        RuleFilter::True => element("TrueFilter").with_all(expression(&Sql::from("1=1"))),
        RuleFilter::False => element("FalseFilter").with_all(expression(&Sql::from("1=0"))),
        RuleFilter::Sql(sql) => element("SqlFilter").with_all(expression(sql)),
        RuleFilter::Correlation(correlation) => {
            let fields = correlation.fields().into_iter();
            let fields = fields.filter_map(|(name, text)| Some(Element::leaf(name, text.as_deref()?)));
            element("CorrelationFilter")
                .with_all(fields)
                .with_all(pairs("Properties", &correlation.properties))
        }
    }
}

pub(super) fn read_filter(filter: &Element) -> Option<RuleFilter> {
    match filter.kind_name()? {
        "TrueFilter" => Some(RuleFilter::True),
        "FalseFilter" => Some(RuleFilter::False),
        "SqlFilter" => Some(RuleFilter::Sql(read_expression(filter)?)),
        "CorrelationFilter" => {
            let mut correlation = CorrelationFilter::default();
            for (name, field) in correlation.fields_mut() {
                *field = filter.child(name).filter(|field| !field.nil).map(|field| field.text.clone());
            }
            correlation.properties = read_pairs(filter, "Properties");
            Some(RuleFilter::Correlation(correlation))
        }
        _ => None,
    }
}

fn expression(sql: &Sql) -> impl Iterator<Item = Element> {
    let text = Element::leaf("SqlExpression", &sql.text);
    let level = Element::leaf("CompatibilityLevel", COMPATIBILITY_LEVEL);
    [text, level].into_iter().chain(pairs("Parameters", &sql.parameters))
}

fn read_expression(element: &Element) -> Option<Sql> {
    let text = element.value_of("SqlExpression")?.to_owned();
    Some(Sql { text, parameters: read_pairs(element, "Parameters") })
}

/// Names with typed values; nothing if there are none, as some readers demand.
fn pairs(name: &str, pairs: &[(String, Value)]) -> Option<Element> {
    let pair = |(key, value): &(String, Value)| {
        // A value that no filter can compare, such as a list, goes as what the service refuses by name.
        let (kind, text) = typed(value).unwrap_or_else(|| ("anyType", format!("{value:?}")));
        let value = Element::leaf("Value", text).of_kind(SCHEMA, kind);
        Element::new(SERVICE_BUS, "KeyValueOfstringanyType").with(Element::leaf("Key", key)).with(value)
    };
    (!pairs.is_empty()).then(|| Element::new(SERVICE_BUS, name).with_all(pairs.iter().map(pair)))
}

fn read_pairs(element: &Element, name: &str) -> Vec<(String, Value)> {
    let pairs = element.child(name).into_iter().flat_map(|list| &list.children);
    let pairs = pairs.filter_map(|pair| {
        let (key, value) = (pair.child("Key")?, pair.child("Value")?);
        Some((key.text.clone(), untyped(value.kind_name().unwrap_or("string"), &value.text)))
    });
    pairs.collect()
}

/// The schema's type and text of a value; none for values that no filter compares.
fn typed(value: &Value) -> Option<(&'static str, String)> {
    Some(match value {
        Value::Boolean(flag) => ("boolean", flag.to_string()),
        Value::Ubyte(number) => ("int", number.to_string()),
        Value::Ushort(number) => ("int", number.to_string()),
        Value::Byte(number) => ("int", number.to_string()),
        Value::Short(number) => ("int", number.to_string()),
        Value::Int(number) => ("int", number.to_string()),
        Value::Uint(number) => ("long", number.to_string()),
        Value::Long(number) => ("long", number.to_string()),
        Value::Ulong(number) => ("long", number.to_string()),
        Value::Float(number) => ("double", number.to_string()),
        Value::Double(number) => ("double", number.to_string()),
        Value::Char(letter) => ("char", u32::from(*letter).to_string()),
        Value::Timestamp(at) => ("dateTime", iso::write_time(wall::system_time(*at)?)),
        Value::Uuid(id) => ("guid", id.to_string()),
        Value::String(text) => ("string", text.as_str().to_owned()),
        Value::Symbol(name) => ("string", name.as_str().to_owned()),
        Value::Described(described) if is_timespan(&described.descriptor) => {
            let ticks = u64::try_from(described.value.as_i64()?).ok()?;
            let part = u32::try_from(ticks % TICKS_PER_SECOND).ok()?.checked_mul(100)?;
            ("duration", Duration::new(ticks / TICKS_PER_SECOND, part).write())
        }
        _ => return None,
    })
}

fn is_timespan(descriptor: &Value) -> bool {
    matches!(descriptor, Value::Symbol(name) if name.as_str() == TIMESPAN)
}

/// The value of a typed text; what cannot be read as its type is text.
fn untyped(kind: &str, text: &str) -> Value {
    let trimmed = text.trim();
    let read = match kind {
        "boolean" => trimmed.parse().ok().map(Value::Boolean),
        "int" | "short" | "byte" | "unsignedByte" | "unsignedShort" => trimmed.parse().ok().map(Value::Int),
        "long" | "unsignedInt" => trimmed.parse().ok().map(Value::Long),
        "unsignedLong" => trimmed.parse().ok().map(Value::Ulong),
        "double" | "float" => trimmed.parse().ok().map(Value::Double),
        "char" => trimmed.parse().ok().and_then(char::from_u32).map(Value::Char),
        "dateTime" => iso::read_time(trimmed).map(|at| Value::Timestamp(wall::timestamp(at))),
        "guid" => guid(trimmed).map(Value::Uuid),
        "duration" => iso::read_span(trimmed).and_then(|span| {
            let ticks = i64::try_from(span.as_nanos() / 100).ok()?;
            Some(Value::described(Symbol::from(TIMESPAN), ticks))
        }),
        _ => None,
    };
    read.unwrap_or_else(|| Value::from(text))
}

fn guid(text: &str) -> Option<Uuid> {
    let digits: String = text.chars().filter(|letter| *letter != '-').collect();
    let number = (digits.len() == 32).then(|| u128::from_str_radix(&digits, 16).ok())??;
    Some(Uuid::from_bytes(number.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use vorrang_amqp::value::Timestamp;

    use super::*;
    use crate::admin::xml;

    fn there_and_back(rule: &Rule) -> Option<Rule> {
        let text = write(rule, "RuleDescription").document();
        read(&rule.name, &xml::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn rules_of_every_kind_read_back_as_they_were_written() {
        let properties = vec![
            ("s".to_owned(), Value::from("a <b> & c")),
            ("empty".to_owned(), Value::from("")),
            ("b".to_owned(), Value::Boolean(true)),
            ("i".to_owned(), Value::Int(-7)),
            ("l".to_owned(), Value::Long(1 << 40)),
            ("d".to_owned(), Value::Double(2.5)),
            ("c".to_owned(), Value::Char('7')),
            ("t".to_owned(), Value::Timestamp(Timestamp(1_769_847_330_120))),
            ("g".to_owned(), Value::Uuid(Uuid::from_bytes([7; 16]))),
            ("p".to_owned(), Value::described(Symbol::from(TIMESPAN), 900_000_000_i64)),
        ];
        let sql = Sql { text: "color = @c AND size > 3".to_owned(), parameters: properties.clone() };
        let correlation = CorrelationFilter {
            subject: Some("urgent".to_owned()),
            content_type: Some("text/plain".to_owned()),
            properties,
            ..CorrelationFilter::default()
        };
        let filters = [
            RuleFilter::True,
            RuleFilter::False,
            RuleFilter::Sql(sql.clone()),
            RuleFilter::Correlation(correlation),
        ];
        for filter in filters {
            let rule = Rule { name: "r".to_owned(), filter, action: Some(sql.clone()) };
            assert_eq!(there_and_back(&rule), Some(rule));
        }
        let plain = Rule::sql("plain", "a = 1");
        assert_eq!(there_and_back(&plain), Some(plain));
    }

    #[test]
    fn a_filter_of_a_kind_nobody_knows_is_not_taken_for_another() {
        let mut description = write(&Rule::sql("r", "a = 1"), "RuleDescription");
        description.children[0].kind = Some((SERVICE_BUS.to_owned(), "NewFilter".to_owned()));
        assert_eq!(read("r", &description), None);
    }
}
