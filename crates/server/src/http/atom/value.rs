//! Typed values of filters, in the type names of XML Schema.

use vorrang_engine::{Span, Timestamp};
use vorrang_filter::{Decimal, Value};

use super::writer::Writer;
use super::xml::{Element, Space, read};
use crate::{date, duration};

const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";

/// Ticks of 100 ns in a millisecond.
const TICKS: i64 = 10_000;

/// Reads the `KeyValueOfstringanyType` pairs of an element.
pub(crate) fn pairs(element: &Element, problems: &mut Vec<String>) -> Vec<(String, Value)> {
    let mut pairs = Vec::new();
    for pair in element.children.iter().filter(|child| child.name == "KeyValueOfstringanyType") {
        let child = |name: &str| pair.children.iter().find(|child| child.name == name);
        let (Some(key), Some(value)) = (child("Key"), child("Value")) else {
            problems.push(format!("{} has an entry without Key or Value", element.name));
            continue;
        };
        match from_element(value) {
            Some(value) => pairs.push((key.text.clone(), value)),
            None => problems.push(format!(
                "{} has '{}' of type {} with the value '{}', which cannot be read",
                element.name,
                key.text,
                value.kind.as_deref().unwrap_or("string"),
                value.text,
            )),
        }
    }
    pairs
}

fn from_element(element: &Element) -> Option<Value> {
    let text = element.text.trim();
    Some(match element.kind.as_deref().unwrap_or("string") {
        "string" | "anyURI" => Value::String(element.text.as_str().into()),
        "boolean" => Value::Bool(match text {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return None,
        }),
        "int" | "long" | "short" | "byte" | "unsignedByte" | "unsignedShort" | "unsignedInt"
        | "unsignedLong" | "integer" => Value::Int(read(text)?),
        "double" | "float" => Value::Double(read(text)?),
        "decimal" => Value::Decimal(decimal(text)?),
        "dateTime" => {
            let at = date::parse(text).or_else(|| date::parse(&format!("{text}Z")))?;
            Value::Timestamp(i64::try_from(at.0).ok()?)
        }
        "duration" => Value::Timespan(i64::try_from(duration::parse(text).ok()?.0).ok()?.checked_mul(TICKS)?),
        "guid" => Value::Guid(guid(text)?),
        "char" => Value::Char(char(text)?),
        _ => return None,
    })
}

/// .NET writes a character as its number.
fn char(text: &str) -> Option<char> {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if !letter.is_ascii_digit() => Some(letter),
        _ => read::<u32>(text).and_then(char::from_u32),
    }
}

fn decimal(text: &str) -> Option<Decimal> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let unscaled = read::<i128>(&format!("{whole}{fraction}"))?;
    Decimal::new(unscaled, u8::try_from(fraction.len()).ok()?)
}

fn guid(text: &str) -> Option<u128> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    (digits.len() == 32).then(|| u128::from_str_radix(&digits, 16).ok())?
}

/// Writes pairs within an element of this name; nothing if there are none, as clients demand.
pub(crate) fn write_pairs<'v>(
    writer: &mut Writer,
    name: &str,
    pairs: impl Iterator<Item = (&'v str, &'v Value)>,
) {
    let mut pairs = pairs.peekable();
    if pairs.peek().is_none() {
        return;
    }
    writer.element(name, &[], |writer| {
        for (key, value) in pairs {
            writer.element("KeyValueOfstringanyType", &[], |writer| {
                writer.leaf("Key", key);
                let kind = format!("d6p1:{}", kind(value));
                writer.element("Value", &[("xmlns:d6p1", SCHEMA), ("i:type", &kind)], |writer| {
                    writer.text(&text(value));
                });
            });
        }
    });
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Int(number) if i32::try_from(*number).is_ok() => "int",
        Value::Int(_) => "long",
        Value::Double(_) => "double",
        Value::Decimal(_) => "decimal",
        Value::Guid(_) => "guid",
        Value::Timestamp(_) => "dateTime",
        Value::Timespan(_) => "duration",
        Value::Char(_) => "char",
        Value::Binary(_) => "hexBinary",
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Timestamp(at) => date::rfc3339(Timestamp(u64::try_from(*at).unwrap_or(0))),
        Value::Timespan(ticks) => duration::to_iso(Span(u64::try_from(*ticks / TICKS).unwrap_or(0))),
        Value::Char(letter) => u32::from(*letter).to_string(),
        other => other.as_ref().text().into_owned(),
    }
}

/// Whether an element belongs to a description, wherever it stands.
pub(crate) fn is_ours(element: &Element) -> bool {
    matches!(element.space, Space::ServiceBus | Space::Priority)
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    #[test]
    fn every_type_reads_back_as_it_was_written() {
        let values = [
            ("s", Value::String("a <b> & c".into())),
            ("empty", Value::String("".into())),
            ("b", Value::Bool(true)),
            ("i", Value::Int(-7)),
            ("l", Value::Int(1 << 40)),
            ("d", Value::Double(2.5)),
            ("m", Value::Decimal(Decimal::new(12_345, 2).unwrap())),
            ("g", Value::Guid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)),
            ("t", Value::Timestamp(1_769_847_330_120)),
            ("p", Value::Timespan(90 * 10_000_000)),
            ("c", Value::Char('7')),
        ];
        let mut writer = Writer::default();
        writer.element("a", &[("xmlns:i", "http://www.w3.org/2001/XMLSchema-instance")], |writer| {
            write_pairs(writer, "Parameters", values.iter().map(|(key, value)| (*key, value)));
        });
        let text = writer.finish();
        let element = xml::parse(text.as_bytes()).unwrap();
        let mut problems = Vec::new();
        let read = pairs(element.field("Parameters").unwrap(), &mut problems);
        assert_eq!(problems, Vec::<String>::new());
        let expected: Vec<_> = values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn a_value_that_its_type_does_not_have_is_named() {
        let text = r#"<P xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><KeyValueOfstringanyType><Key>k</Key>
            <Value i:type="x:int">many</Value></KeyValueOfstringanyType><KeyValueOfstringanyType/></P>"#;
        let mut problems = Vec::new();
        assert!(pairs(&xml::parse(text.as_bytes()).unwrap(), &mut problems).is_empty());
        assert_eq!(problems[0], "P has 'k' of type int with the value 'many', which cannot be read");
        assert_eq!(problems[1], "P has an entry without Key or Value");
    }
}
