//! A message out of an HTTP request: written in AMQP, because that is what is stored and what receivers get.

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use serde_json::Value as Json;
use vorrang_amqp::message::{
    Header, MessageId, Properties, put_data, put_header, put_map_section, put_properties,
};
use vorrang_amqp::value::{Timestamp as AmqpTimestamp, Value};
use vorrang_amqp::{Symbol, Text, descriptor};
use vorrang_engine::{Incoming, Timestamp};

use super::{headers, properties};
use crate::front::connection::wall_time;
use crate::front::message::{annotation, read_incoming};
use crate::http::fault::Fault;
use crate::http::spelling::Spelling;

/// The media type of a batch.
const BATCH: &str = "application/vnd.microsoft.servicebus.json";

/// Whether a request brings several messages.
pub(super) fn is_batch(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(BATCH))
}

/// The message of a request.
pub(super) fn single(headers: &HeaderMap, spelling: &Spelling, body: &Bytes) -> Result<Incoming, Fault> {
    let text = |name: &header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let sent = match headers.get(&properties::HEADER) {
        None => properties::Sent::default(),
        Some(value) => {
            let text = std::str::from_utf8(value.as_bytes());
            properties::Sent::parse(text.map_err(|_| Fault::malformed("BrokerProperties are not UTF-8."))?)?
        }
    };
    written(&sent, text(&header::CONTENT_TYPE), &headers::read(headers, spelling)?, body)
}

/// The messages of a batch: a list of objects with `Body`, `BrokerProperties` and `UserProperties`.
pub(super) fn batch(body: &Bytes) -> Result<Vec<Incoming>, Fault> {
    let parsed: Result<Vec<Json>, _> = serde_json::from_slice(body);
    let elements =
        parsed.map_err(|error| Fault::malformed(format!("A batch must be a JSON array: {error}.")))?;
    if elements.is_empty() {
        return Err(Fault::malformed("A batch needs at least one message."));
    }
    elements.iter().enumerate().map(|(index, element)| one(index, element)).collect()
}

fn one(index: usize, element: &Json) -> Result<Incoming, Fault> {
    let wrong = |what: &str| Fault::malformed(format!("Message {index} of the batch {what}."));
    let element = element.as_object().ok_or_else(|| wrong("is not an object"))?;
    let member = |name: &str| {
        let found = element.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    };
    let object = |name: &str| match member(name) {
        None => Ok(None),
        Some(Json::Object(object)) => Ok(Some(object)),
        Some(_) => Err(wrong(&format!("has {name} that are not an object"))),
    };
    let body = match member("Body") {
        None => "",
        Some(body) => body.as_str().ok_or_else(|| wrong("has a Body that is not a string"))?,
    };
    let sent = object("BrokerProperties")?.map(properties::Sent::of).transpose()?.unwrap_or_default();
    let mut application = Vec::new();
    for (key, value) in object("UserProperties")?.into_iter().flatten().filter(|(_, value)| !value.is_null())
    {
        let value = property(value)
            .ok_or_else(|| wrong(&format!("has the property '{key}', which is no string, number or flag")))?;
        application.push((key.clone(), value));
    }
    written(&sent, None, &application, body.as_bytes())
}

fn property(value: &Json) -> Option<Value> {
    match value {
        Json::String(text) => Some(Value::from(text.as_str())),
        Json::Bool(flag) => Some(Value::from(*flag)),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Some(i32::try_from(number).map_or(Value::from(number), Value::from)),
            None => number.as_f64().map(Value::from),
        },
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

/// Writes the message and reads it again, as everything that comes in is read.
fn written(
    sent: &properties::Sent,
    content_type: Option<&str>,
    application: &[(String, Value)],
    body: &[u8],
) -> Result<Incoming, Fault> {
    let mut out = Vec::with_capacity(body.len().saturating_add(256));
    let mut properties = Properties {
        message_id: sent.message_id.as_deref().map(|id| MessageId::String(id.into())),
        correlation_id: sent.correlation_id.as_deref().map(|id| MessageId::String(id.into())),
        to: sent.to.as_deref().map(Text::from),
        subject: sent.label.as_deref().map(Text::from),
        reply_to: sent.reply_to.as_deref().map(Text::from),
        content_type: content_type.map(Symbol::from),
        group_id: sent.session_id.as_deref().map(Text::from),
        reply_to_group_id: sent.reply_to_session_id.as_deref().map(Text::from),
        ..Properties::default()
    };
    if let Some(span) = sent.time_to_live {
        if let Ok(ttl) = u32::try_from(span.0) {
            put_header(&mut out, &Header { ttl: Some(ttl), ..Header::default() });
        } else {
            // Longer than the header can say: two dates do.
            let now = wall_time();
            properties.creation_time = Some(wire_time(now));
            properties.absolute_expiry_time = Some(wire_time(now.after(span)));
        }
    }
    put_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, |map| {
        if let Some(at) = sent.scheduled {
            map.symbol(annotation::SCHEDULED, &wire_time(at));
        }
        if let Some(key) = &sent.partition_key {
            map.symbol(annotation::PARTITION_KEY, &Text::from(key.as_str()));
        }
        if let Some(key) = &sent.via_partition_key {
            map.symbol(annotation::VIA_PARTITION_KEY, &Text::from(key.as_str()));
        }
    });
    put_properties(&mut out, &properties);
    if !application.is_empty() {
        put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |map| {
            for (key, value) in application {
                map.entry(&Text::from(key.as_str()), value);
            }
        });
    }
    put_data(&mut out, body);
    read_incoming(Bytes::from(out)).map_err(|error| Fault::malformed(format!("{error}.")))
}

fn wire_time(at: Timestamp) -> AmqpTimestamp {
    AmqpTimestamp(i64::try_from(at.0).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use vorrang_amqp::message::Message;
    use vorrang_engine::Span;

    use super::*;

    #[test]
    fn a_request_becomes_an_amqp_message() {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "text/plain".parse().unwrap());
        headers.insert("color", "\"red\"".parse().unwrap());
        headers
            .insert("brokerproperties", r#"{"MessageId":"m","Label":"l","TimeToLive":30}"#.parse().unwrap());
        let incoming = single(&headers, &Spelling::default(), &Bytes::from_static(b"hello")).unwrap();
        assert_eq!(incoming.message_id.as_ref().map(|id| incoming.read(id)).as_deref(), Some("m"));
        assert_eq!(incoming.time_to_live, Some(Span::seconds(30)));
        let message = Message::parse(incoming.payload).unwrap();
        assert_eq!(message.data().collect::<Vec<_>>(), [Bytes::from_static(b"hello")]);
        let properties = message.properties().unwrap().unwrap();
        assert_eq!(properties.content_type, Some(Symbol::from("text/plain")));
        assert_eq!(properties.subject, Some(Text::from("l")));
        let application = message.application_properties().unwrap();
        assert_eq!(application.value("color"), Some(Value::from("red")));
    }

    #[test]
    fn a_batch_is_all_or_nothing_and_says_which_message_is_wrong() {
        let text = r#"[{"Body":"a","UserProperties":{"N":1,"F":true,"T":"x","D":0.5}},{"Body":"b","BrokerProperties":
            {"Label":"M2","TimeToLiveTimeSpan":"0.00:00:40"}}]"#;
        let messages = batch(&Bytes::from(text)).unwrap();
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[1].time_to_live, Some(Span::seconds(40)));
        let cases = [
            ("", "must be a JSON array"),
            ("{}", "must be a JSON array"),
            ("[]", "at least one"),
            (r#"[{"Body":"a"},7]"#, "Message 1 of the batch is not an object"),
            (r#"[{"Body":7}]"#, "Message 0 of the batch has a Body"),
            (r#"[{"UserProperties":[]}]"#, "has UserProperties that are not an object"),
            (r#"[{"UserProperties":{"k":[]}}]"#, "has the property 'k'"),
            (r#"[{"BrokerProperties":{"MessageId":7}}]"#, "'MessageId'"),
        ];
        for (text, expected) in cases {
            let fault = batch(&Bytes::from(text)).map(|_| ()).unwrap_err();
            assert!(fault.text.contains(expected), "{text}: {}", fault.text);
        }
    }

    #[test]
    fn a_batch_is_known_by_its_media_type() {
        for (kind, expected) in [
            ("application/vnd.microsoft.servicebus.json", true),
            ("Application/vnd.microsoft.servicebus.json; charset=utf-8", true),
            ("application/json", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", kind.parse().unwrap());
            assert_eq!(is_batch(&headers), expected, "{kind}");
        }
    }
}
