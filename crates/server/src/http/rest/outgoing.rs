//! A message as an HTTP response: its body as the body, what is known about it in headers.

use std::fmt::Write as _;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value as Json, json};
use vorrang_amqp::encode::{Output as _, Sheet};
use vorrang_amqp::message::{Message, Properties};
use vorrang_amqp::value::Value;
use vorrang_broker::shard::Body as Payload;
use vorrang_engine::message::{Delivery, MessageState};

use super::capitals::Capitals;
use super::headers;
use super::properties::{HEADER, HEADER_WRITTEN};
use crate::date;
use crate::front::message::{Purpose, annotation, id_text, to_filter, write_outgoing};
use crate::http::fault::Fault;

/// The response that hands a message over, and how its headers are written; `locate` makes the URL of its lock.
pub(super) fn response(
    delivery: &Delivery,
    payload: Payload,
    locate: impl FnOnce(&str, &str) -> String,
) -> Result<(Response, Capitals), Fault> {
    // What AMQP receivers would get, with every change laid over it.
    let unreadable = |_| Fault::malformed("The message is not in a form that can be shown over HTTP.");
    let stored = Message::parse(payload.bytes).map_err(unreadable)?;
    let mut out = Sheet::default();
    let rest = write_outgoing(delivery, &stored, payload.assigned_id, Purpose::Deliver, &mut out);
    out.put(rest);
    let message = Message::parse(out.into_bytes()).map_err(unreadable)?;
    let properties = message.properties().map_err(unreadable)?.unwrap_or_default();

    let status = if delivery.token.is_some() { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = (status, body(&message)).into_response();
    let (headers, mut capitals) = (response.headers_mut(), Capitals::default());
    match properties.content_type.as_ref().and_then(|kind| HeaderValue::from_str(kind.as_str()).ok()) {
        Some(kind) => headers.insert(header::CONTENT_TYPE, kind),
        None => headers.remove(header::CONTENT_TYPE),
    };
    for (key, value) in
        message.application_properties().iter().flat_map(vorrang_amqp::value::Map::encoded_iter)
    {
        if let (Some(key), Some(value)) = (key.as_str(), to_filter(&value).value()) {
            headers::write(headers, &mut capitals, key, &as_json(value));
        }
    }
    let described = broker_properties(delivery, &properties, &message);
    if let Some(token) = delivery.token {
        let id = described.get("MessageId").and_then(Json::as_str).unwrap_or("-");
        if let Ok(location) = HeaderValue::from_str(&locate(&escaped(id), &token.to_string())) {
            headers.insert(header::LOCATION, location);
        }
    }
    if let Ok(value) = HeaderValue::from_bytes(Json::Object(described).to_string().as_bytes()) {
        headers.insert(HEADER, value);
        capitals.note(HEADER_WRITTEN);
    }
    Ok((response, capitals))
}

/// The data sections one after the other; text and binary values as they are.
fn body(message: &Message) -> Bytes {
    let mut parts = message.data();
    match (parts.next(), parts.next()) {
        (Some(only), None) => only,
        (Some(first), Some(second)) => {
            let mut whole = BytesMut::from(&*first);
            whole.extend_from_slice(&second);
            parts.for_each(|part| whole.extend_from_slice(&part));
            whole.freeze()
        }
        (None, _) => match message.value() {
            Ok(Some(Value::String(text))) => Bytes::copy_from_slice(text.as_str().as_bytes()),
            Ok(Some(Value::Binary(bytes))) => bytes,
            // Other values have no form in HTTP; AMQP receivers see them.
            _ => Bytes::new(),
        },
    }
}

fn as_json(value: vorrang_filter::ValueRef<'_>) -> Json {
    use vorrang_filter::ValueRef;
    match value {
        ValueRef::Bool(flag) => json!(flag),
        ValueRef::Int(number) => json!(number),
        ValueRef::Double(number) => json!(number),
        ValueRef::Timestamp(at) => {
            let at = u64::try_from(at).unwrap_or(0);
            json!(date::rfc1123(vorrang_engine::Timestamp(at)))
        }
        other => json!(other.text()),
    }
}

fn broker_properties(delivery: &Delivery, properties: &Properties, message: &Message) -> Map<String, Json> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            map.insert(key.to_owned(), value);
        }
    };
    let text = |text: &Option<vorrang_amqp::Text>| text.as_ref().map(|text| json!(text.as_str()));
    put("MessageId", properties.message_id.clone().map(|id| json!(id_text(id.into()))));
    put("CorrelationId", properties.correlation_id.clone().map(|id| json!(id_text(id.into()))));
    put("SessionId", text(&properties.group_id));
    put("Label", text(&properties.subject));
    put("ReplyTo", text(&properties.reply_to));
    put("ReplyToSessionId", text(&properties.reply_to_group_id));
    put("To", text(&properties.to));
    let annotations = message.message_annotations();
    let annotation = |name: &str| annotations.as_ref().and_then(|map| map.value(name));
    put(
        "PartitionKey",
        annotation(annotation::PARTITION_KEY).and_then(|key| Some(json!(key.as_text()?.as_str()))),
    );
    put("DeliveryCount", Some(json!(u64::from(delivery.deliveries).saturating_add(1))));
    put("EnqueuedTimeUtc", Some(json!(date::rfc1123(delivery.enqueued))));
    put("EnqueuedSequenceNumber", delivery.first_sequence.map(|sequence| json!(sequence.0)));
    put("SequenceNumber", Some(json!(delivery.sequence.0)));
    if !delivery.time_to_live.is_forever() {
        let seconds = std::time::Duration::from_millis(delivery.time_to_live.0).as_secs_f64();
        put("TimeToLive", Some(json!(seconds)));
    }
    put("LockToken", delivery.token.map(|token| json!(token.to_string())));
    put("LockedUntilUtc", delivery.locked_until.map(|until| json!(date::rfc1123(until))));
    put("State", Some(json!(state(delivery.state))));
    put("DeadLetterSource", delivery.dead_letter_source.as_ref().map(|source| json!(&**source)));
    map
}

fn state(state: MessageState) -> &'static str {
    match state {
        MessageState::Active => "Active",
        MessageState::Deferred => "Deferred",
        MessageState::Scheduled => "Scheduled",
    }
}

/// An id as one segment of a path.
fn escaped(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
