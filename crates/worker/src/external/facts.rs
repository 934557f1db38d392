//! What a handler outside of Rust is told about a message, under one set of names.

use std::time::UNIX_EPOCH;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value as Json, json};
use vorrang_client::{Received, Value};

use crate::context::Context;

/// What one environment may hold together; the rest of the properties is left out, the largest systems allow more.
const ENVIRONMENT_BYTES_MAX: usize = 64 * 1_024;

/// A message in plain text and bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// What the broker and the sender say, by name.
    pub named: Vec<(&'static str, String)>,
    /// The application properties.
    pub properties: Vec<(String, Value)>,
    /// The body.
    pub body: Bytes,
}

impl Facts {
    /// Everything worth telling.
    pub fn of(context: &Context, message: &Received) -> Facts {
        let enqueued = message.enqueued_time().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let optional = [
            ("message_id", message.message_id()),
            ("correlation_id", message.correlation_id()),
            ("session_id", message.session_id().map(str::to_owned)),
            ("subject", message.subject().map(str::to_owned)),
            ("content_type", message.content_type().map(str::to_owned)),
            ("reply_to", message.reply_to().map(str::to_owned)),
            ("sequence_number", message.sequence_number().map(|number| number.to_string())),
            ("enqueued_ms", enqueued.map(|time| time.as_millis().to_string())),
            ("traceparent", message.trace_parent()),
        ];
        let mut named = vec![
            ("entity", context.entity().to_owned()),
            ("level", context.level().to_string()),
            ("delivery_count", message.delivery_count().to_string()),
        ];
        named.extend(optional.into_iter().filter_map(|(name, text)| Some((name, text?))));
        Facts { named, properties: message.properties(), body: message.body() }
    }

    /// As environment variables: `VORRANG_MESSAGE_ID`, `VORRANG_PROPERTY_CUSTOMER`, ….
    ///
    /// What no environment can hold (a zero byte, too much) is left out.
    pub fn variables(&self) -> Vec<(String, String)> {
        let named = self
            .named
            .iter()
            .map(|(name, text)| (format!("VORRANG_{}", name.to_ascii_uppercase()), text.clone()));
        let properties = self.properties.iter().filter_map(|(name, value)| {
            let name: String = name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                .collect();
            Some((format!("VORRANG_PROPERTY_{name}"), text(value)?))
        });
        let mut room = ENVIRONMENT_BYTES_MAX;
        named
            .chain(properties)
            .filter(|(_, text)| !text.contains('\0'))
            .take_while(|(name, text)| {
                let size = name.len().saturating_add(text.len());
                room = room.saturating_sub(size);
                room > 0
            })
            .collect()
    }

    /// As one JSON object; the body as text where it is text, else in base64.
    pub fn json(&self) -> Json {
        let mut object = Map::new();
        for (name, text) in &self.named {
            let number = matches!(*name, "level" | "delivery_count" | "sequence_number" | "enqueued_ms");
            let value = text.parse::<u64>().ok().filter(|_| number).map_or_else(|| json!(text), |n| json!(n));
            object.insert((*name).to_owned(), value);
        }
        let properties =
            self.properties.iter().filter_map(|(name, value)| Some((name.clone(), json_of(value)?)));
        object.insert("properties".to_owned(), Json::Object(properties.collect()));
        match std::str::from_utf8(&self.body) {
            Ok(text) => object.insert("body".to_owned(), json!(text)),
            Err(_) => object.insert("body_base64".to_owned(), json!(STANDARD.encode(&self.body))),
        };
        Json::Object(object)
    }
}

/// A value as text; none for what has no obvious one.
pub(super) fn text(value: &Value) -> Option<String> {
    match json_of(value)? {
        Json::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

fn json_of(value: &Value) -> Option<Json> {
    if let Some(text) = value.as_str() {
        return Some(json!(text));
    }
    match value {
        Value::Boolean(flag) => Some(json!(flag)),
        Value::Float(number) => Some(json!(number)),
        Value::Double(number) => Some(json!(number)),
        Value::Timestamp(time) => Some(json!(time.0)),
        Value::Uuid(uuid) => Some(json!(uuid.to_string())),
        other => {
            other.as_i64().map(|number| json!(number)).or_else(|| other.as_u64().map(|number| json!(number)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(body: &'static [u8]) -> Facts {
        let properties = vec![
            ("customer-tier".to_owned(), Value::from("gold")),
            ("count".to_owned(), Value::Int(-3)),
            ("bad".to_owned(), Value::from("a\0b")),
        ];
        let named = vec![("entity", "orders".to_owned()), ("level", "7".to_owned())];
        Facts { named, properties, body: Bytes::from_static(body) }
    }

    #[test]
    fn variables_are_upper_case_and_leave_out_what_cannot_be_one() {
        let variables = facts(b"").variables();
        let expected = [
            ("VORRANG_ENTITY", "orders"),
            ("VORRANG_LEVEL", "7"),
            ("VORRANG_PROPERTY_CUSTOMER_TIER", "gold"),
            ("VORRANG_PROPERTY_COUNT", "-3"),
        ];
        let found: Vec<(&str, &str)> = variables.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(found, expected);
        let mut large = facts(b"");
        large.properties.insert(0, ("large".to_owned(), Value::from("x".repeat(ENVIRONMENT_BYTES_MAX))));
        assert_eq!(large.variables().len(), 2, "what is too much is left out");
    }

    #[test]
    fn a_body_is_text_or_base64() {
        assert_eq!(facts("größe".as_bytes()).json()["body"], json!("größe"));
        assert_eq!(facts(b"").json()["level"], json!(7));
        assert_eq!(facts(b"").json()["properties"]["count"], json!(-3));
        assert_eq!(facts(b"\xff").json()["body_base64"], json!("/w=="));
    }
}
