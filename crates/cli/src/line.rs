//! Messages as lines of JSON: what `receive` writes, `send` reads again.
//!
//! The words are those of the JSON API. What a broker adds on the way (its numbers, times and counts) is written
//! for people and passed over when a line is read; a word nobody knows is a mistake.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value as Json;
use vorrang_client::{Message, Received, Value};
use vorrang_engine::Timestamp;
use vorrang_server::http::api::model::{MessageBody, NewMessage, PropertyValue, TypedValue, ValueType};
use vorrang_server::{date, duration};

/// Words of a received message that say nothing about the one to send.
const OF_THE_BROKER: [&str; 9] = [
    "sequenceNumber",
    "enqueuedAt",
    "lockedUntil",
    "deliveryCount",
    "class",
    "deadLetterReason",
    "deadLetterErrorDescription",
    "deadLetterSource",
    "source",
];

/// A line that can be sent.
const EXAMPLE: &str = r#"{"body":{"text":"hello"}}"#;

/// A received message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sequence_number: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enqueued_at: Option<String>,
    delivery_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_error_description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_source: Option<String>,
    #[serde(flatten)]
    message: NewMessage,
}

impl Line {
    pub(crate) fn of(received: &Received) -> Line {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let is_property = |(name, value): (String, Value)| Some((name, property(&value)?));
        Line {
            sequence_number: received.sequence_number(),
            enqueued_at: received.enqueued_time().map(written),
            delivery_count: received.delivery_count(),
            dead_letter_reason: received.dead_letter_reason(),
            dead_letter_error_description: received.dead_letter_description(),
            dead_letter_source: received.dead_letter_source(),
            message: NewMessage {
                body: Some(body(received)),
                message_id: received.message_id(),
                correlation_id: received.correlation_id(),
                session_id: text(received.session_id()),
                subject: text(received.subject()),
                content_type: text(received.content_type()),
                to: text(received.to()),
                reply_to: text(received.reply_to()),
                reply_to_session_id: text(received.reply_to_session()),
                time_to_live: None,
                scheduled_for: None,
                level: Some(received.level()),
                properties: received.properties().into_iter().filter_map(is_property).collect(),
            },
        }
    }
}

/// Reads a line. What is wrong with it is said in words.
pub(crate) fn read(line: &str) -> Result<NewMessage, String> {
    let mut json: Json = serde_json::from_str(line).map_err(|error| format!("this is no JSON: {error}"))?;
    let fields =
        json.as_object_mut().ok_or_else(|| format!("a message is a JSON object, such as {EXAMPLE}"))?;
    if fields.get("body").is_some_and(|body| !body.is_object() && !body.is_null()) {
        return Err(format!("a body says of what kind it is: text, json or base64, such as {EXAMPLE}"));
    }
    for word in OF_THE_BROKER {
        fields.remove(word);
    }
    serde_json::from_value(json).map_err(|error| error.to_string())
}

/// Puts one text into a message.
type Step = fn(Message, String) -> Message;

/// The message to send.
pub(crate) fn message(new: NewMessage) -> Result<Message, String> {
    let (bytes, is_json) = match new.body {
        None => (Vec::new(), false),
        Some(MessageBody::Text(text)) => (text.into_bytes(), false),
        Some(MessageBody::Json(json)) => {
            (serde_json::to_vec(&json).map_err(|error| error.to_string())?, true)
        }
        Some(MessageBody::Base64(text)) => {
            (STANDARD.decode(text).map_err(|error| format!("the body is no base64: {error}"))?, false)
        }
        Some(MessageBody::Value(_)) => return Err("a body of another AMQP type cannot be sent".to_owned()),
    };
    let mut message = Message::new(bytes);
    if let Some(content_type) = new.content_type.or_else(|| is_json.then(|| "application/json".to_owned())) {
        message = message.with_content_type(content_type);
    }
    let steps: [(Option<String>, Step); 7] = [
        (new.message_id, |message, text| message.with_id(text)),
        (new.correlation_id, |message, text| message.with_correlation_id(text)),
        (new.session_id, |message, text| message.with_session(text)),
        (new.subject, |message, text| message.with_subject(text)),
        (new.to, |message, text| message.with_to(text)),
        (new.reply_to, |message, text| message.with_reply_to(text)),
        (new.reply_to_session_id, |message, text| message.with_reply_to_session(text)),
    ];
    for (text, step) in steps {
        if let Some(text) = text {
            message = step(message, text);
        }
    }
    if let Some(text) = new.time_to_live {
        let span = duration::parse(&text).map_err(|error| error.to_string())?;
        if !span.is_forever() {
            message = message.with_time_to_live(Duration::from_millis(span.0));
        }
    }
    if let Some(text) = new.scheduled_for {
        let at = date::parse(&text)
            .ok_or_else(|| format!("{text:?} is no time; write it like 2026-01-31T12:00:00Z"))?;
        message = message.with_scheduled_time(SystemTime::UNIX_EPOCH + Duration::from_millis(at.0));
    }
    if let Some(level) = new.level {
        message = message.with_priority(level);
    }
    for (name, value) in new.properties {
        message = message.with_property(name, value_of(value)?);
    }
    Ok(message)
}

fn body(received: &Received) -> MessageBody {
    if let Ok(Some(value)) = received.value() {
        return match value {
            Value::String(text) => MessageBody::Text(text.to_string()),
            Value::Binary(bytes) => MessageBody::Base64(STANDARD.encode(bytes)),
            other => MessageBody::Value(Json::from(format!("{other:?}"))),
        };
    }
    let bytes = received.body();
    let said = received.content_type().unwrap_or_default();
    let is_json = said.starts_with("application/json") || said.ends_with("+json");
    if let Some(json) = is_json.then(|| serde_json::from_slice(&bytes).ok()).flatten() {
        return MessageBody::Json(json);
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => MessageBody::Text(text.to_owned()),
        Err(_) => MessageBody::Base64(STANDARD.encode(&bytes)),
    }
}

fn written(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    date::rfc3339(Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

/// A property in JSON; lists and maps, which Service Bus does not have, are left out.
fn property(value: &Value) -> Option<PropertyValue> {
    let typed = |kind, value| Some(PropertyValue::Typed(TypedValue { kind, value }));
    match value {
        Value::Null => Some(PropertyValue::Null),
        Value::Boolean(value) => Some(PropertyValue::Bool(*value)),
        Value::Ubyte(number) => Some(PropertyValue::Int(i64::from(*number))),
        Value::Ushort(number) => Some(PropertyValue::Int(i64::from(*number))),
        Value::Uint(number) => Some(PropertyValue::Int(i64::from(*number))),
        Value::Ulong(number) => i64::try_from(*number).ok().map(PropertyValue::Int),
        Value::Byte(number) => Some(PropertyValue::Int(i64::from(*number))),
        Value::Short(number) => Some(PropertyValue::Int(i64::from(*number))),
        Value::Int(number) => Some(PropertyValue::Int(i64::from(*number))),
        Value::Long(number) => Some(PropertyValue::Int(*number)),
        Value::Float(number) => Some(PropertyValue::Double(f64::from(*number))),
        Value::Double(number) => Some(PropertyValue::Double(*number)),
        Value::String(text) => Some(PropertyValue::Text(text.to_string())),
        Value::Char(letter) => typed(ValueType::Char, letter.to_string()),
        Value::Uuid(uuid) => typed(ValueType::Guid, uuid.to_string()),
        Value::Binary(bytes) => typed(ValueType::Binary, STANDARD.encode(bytes)),
        Value::Timestamp(at) => {
            let at = Timestamp(u64::try_from(at.0).unwrap_or(0));
            typed(ValueType::Timestamp, date::rfc3339(at))
        }
        _ => None,
    }
}

/// A property for the wire.
fn value_of(value: PropertyValue) -> Result<Value, String> {
    Ok(match value {
        PropertyValue::Null => Value::Null,
        PropertyValue::Bool(value) => Value::Boolean(value),
        PropertyValue::Int(number) => Value::Long(number),
        PropertyValue::Double(number) => Value::Double(number),
        PropertyValue::Text(text) => Value::from(text),
        PropertyValue::Typed(TypedValue { kind: ValueType::Binary, value }) => {
            let bytes =
                STANDARD.decode(value).map_err(|error| format!("a property is no base64: {error}"))?;
            Value::Binary(bytes.into())
        }
        PropertyValue::Typed(TypedValue { kind: ValueType::Timestamp, value }) => {
            let at = date::parse(&value).ok_or_else(|| format!("{value:?} is no time"))?;
            Value::Timestamp(vorrang_client::Timestamp(i64::try_from(at.0).unwrap_or(i64::MAX)))
        }
        PropertyValue::Typed(TypedValue { kind: ValueType::Char, value }) => {
            value.chars().next().map_or(Value::Null, Value::Char)
        }
        PropertyValue::Typed(TypedValue { kind, value }) => {
            return Err(format!(
                "a property of type {kind:?} ({value}) cannot be sent from here; send it as text"
            ));
        }
    })
}

/// `name=value` of the command line: a number or a truth value if it reads as one.
pub(crate) fn pair(text: &str) -> Result<(String, PropertyValue), String> {
    let (name, value) = text.split_once('=').ok_or("a property looks like shop=7 or Priority=high")?;
    let typed = match serde_json::from_str::<Json>(value) {
        Ok(Json::Bool(value)) => PropertyValue::Bool(value),
        Ok(Json::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => PropertyValue::Int(number),
            (None, Some(number)) => PropertyValue::Double(number),
            (None, None) => PropertyValue::from(value),
        },
        _ => PropertyValue::from(value),
    };
    Ok((name.to_owned(), typed))
}

/// Properties of a map.
pub(crate) fn properties(pairs: &[(String, PropertyValue)]) -> BTreeMap<String, PropertyValue> {
    pairs.iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_received_message_can_be_sent_again() {
        let text = r#"{"sequenceNumber":7,"enqueuedAt":"2026-01-01T00:00:00Z","deliveryCount":2,"deadLetterReason":"x",
            "body":{"json":{"a":1}},"messageId":"m","level":9,"properties":{"shop":7,"open":true,"name":"é"}}"#;
        let new = read(text).unwrap();
        assert_eq!((new.message_id.as_deref(), new.level), (Some("m"), Some(9)));
        assert!(message(new).is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        let cases = [
            ("{", "no JSON"),
            ("[]", "a message is a JSON object"),
            (r#"{"bdoy":{"text":"x"}}"#, "bdoy"),
            (r#"{"body":"x"}"#, r#"such as {"body":{"text":"hello"}}"#),
            (r#"{"body":{"base64":"?"}}"#, "no base64"),
            (r#"{"timeToLive":"soon"}"#, "no duration"),
            (r#"{"scheduledFor":"later"}"#, "no time"),
        ];
        for (line, expected) in cases {
            let error = read(line).and_then(message).map(drop).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn properties_of_the_command_line_keep_their_types() {
        let cases = [
            ("a=7", PropertyValue::Int(7)),
            ("a=1.5", PropertyValue::Double(1.5)),
            ("a=true", PropertyValue::Bool(true)),
            ("a=high", PropertyValue::from("high")),
            ("a=", PropertyValue::from("")),
        ];
        for (text, expected) in cases {
            assert_eq!(pair(text).unwrap(), ("a".to_owned(), expected), "{text}");
        }
        assert!(pair("a").is_err());
    }
}
