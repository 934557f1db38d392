//! A stored message as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map as Object, Value as Json};
use vorrang_amqp::encode::{Output as _, Sheet};
use vorrang_amqp::message::{BodyKind, Message, MessageId, Properties};
use vorrang_amqp::value::{Map, Value};
use vorrang_broker::shard::Body;
use vorrang_engine::entity::priority::PrioritySettings;
use vorrang_engine::{Delivery, MessageState, Overlay, Timestamp};

use super::value;
use crate::date;
use crate::front::message::{Purpose, to_filter, write_outgoing};
use crate::http::api::model::{self, MessageBody, PropertyValue};

/// How deep an AMQP value is followed; what lies deeper is left out.
const DEPTH_MAX: u32 = 16;

/// A message as its receiver would get it, changes since it was stored included; none if it cannot be read.
pub(crate) fn whole(delivery: &Delivery, stored: &Body) -> Option<Message> {
    let message = Message::parse(stored.bytes.clone()).ok()?;
    let mut out = Sheet::default();
    let rest = write_outgoing(delivery, &message, stored.assigned_id, Purpose::Show, &mut out);
    out.put(rest);
    Message::parse(out.into_bytes()).ok()
}

/// Tells of a message. Without `stored`, because its bytes cannot be read, what is known beside them.
pub(crate) fn shown(
    delivery: &Delivery,
    stored: Option<&Body>,
    settings: Option<&PrioritySettings>,
    with_body: bool,
) -> model::Message {
    let message = stored.and_then(|stored| whole(delivery, stored));
    let properties = message.as_ref().and_then(|message| message.properties().ok().flatten());
    let properties = properties.unwrap_or_default();
    let application = message.as_ref().and_then(Message::application_properties).unwrap_or_default();
    let reason = |name: &str| application.value(name).and_then(|found| Some(found.as_str()?.to_owned()));
    let body = message.as_ref().filter(|_| with_body).and_then(|message| body(message, &properties));
    model::Message {
        sequence_number: delivery.sequence.0,
        enqueued_sequence_number: delivery.first_sequence.map(|first| first.0),
        state: match delivery.state {
            MessageState::Active => model::MessageState::Active,
            MessageState::Deferred => model::MessageState::Deferred,
            MessageState::Scheduled => model::MessageState::Scheduled,
        },
        level: delivery.level.0,
        class: settings.and_then(|settings| settings.class_of(delivery.level)).map(str::to_owned),
        delivery_count: delivery.deliveries,
        enqueued_at: date::rfc3339(delivery.enqueued),
        scheduled_for: delivery.scheduled_for.map(date::rfc3339),
        expires_at: (delivery.expires != Timestamp::NEVER).then(|| date::rfc3339(delivery.expires)),
        size_in_bytes: u64::from(delivery.size),
        message_id: properties.message_id.as_ref().map(id),
        correlation_id: properties.correlation_id.as_ref().map(id),
        session_id: text(properties.group_id.as_ref()),
        subject: text(properties.subject.as_ref()),
        content_type: properties.content_type.as_ref().map(|name| name.as_str().to_owned()),
        to: text(properties.to.as_ref()),
        reply_to: text(properties.reply_to.as_ref()),
        reply_to_session_id: text(properties.reply_to_group_id.as_ref()),
        dead_letter_reason: reason(Overlay::REASON),
        dead_letter_error_description: reason(Overlay::DESCRIPTION),
        dead_letter_source: delivery.dead_letter_source.as_ref().map(ToString::to_string),
        properties: application_shown(&application),
        body,
    }
}

fn text(text: Option<&vorrang_amqp::Text>) -> Option<String> {
    text.map(|text| text.as_str().to_owned())
}

fn id(id: &MessageId) -> String {
    match id {
        MessageId::String(text) => text.as_str().to_owned(),
        MessageId::Ulong(number) => number.to_string(),
        MessageId::Uuid(uuid) => uuid.to_string(),
        MessageId::Binary(bytes) => BASE64.encode(bytes),
    }
}

fn application_shown(application: &Map) -> std::collections::BTreeMap<String, PropertyValue> {
    let entry = |(key, found): (vorrang_amqp::value::Encoded<'_>, vorrang_amqp::value::Encoded<'_>)| {
        let shown = to_filter(&found).value().map_or(PropertyValue::Null, value::shown);
        Some((key.as_str()?.to_owned(), shown))
    };
    application.encoded_iter().filter_map(entry).collect()
}

/// The body in the most readable form it has.
fn body(message: &Message, properties: &Properties) -> Option<MessageBody> {
    match message.layout().body_kind {
        BodyKind::Absent => None,
        BodyKind::Data => {
            let data: Vec<u8> = message.data().flat_map(|part| part.to_vec()).collect();
            Some(bytes_shown(data, properties))
        }
        BodyKind::Value => match message.value().ok().flatten()? {
            Value::String(text) => Some(MessageBody::Text(text.as_str().to_owned())),
            Value::Binary(bytes) => Some(MessageBody::Base64(BASE64.encode(&bytes))),
            other => Some(MessageBody::Value(json(&other, DEPTH_MAX))),
        },
        // The sections are lists one after the other; the first says enough to recognise it.
        BodyKind::Sequence => Some(MessageBody::Value(Json::String("an AMQP sequence".to_owned()))),
    }
}

fn bytes_shown(data: Vec<u8>, properties: &Properties) -> MessageBody {
    let content_type = properties.content_type.as_ref().map(|name| name.as_str().to_ascii_lowercase());
    let media = content_type.as_deref().and_then(|name| name.split(';').next()).unwrap_or_default().trim();
    if (media == "application/json" || media.ends_with("+json"))
        && let Ok(json) = serde_json::from_slice(&data)
    {
        return MessageBody::Json(json);
    }
    match String::from_utf8(data) {
        Ok(text) => MessageBody::Text(text),
        Err(error) => MessageBody::Base64(BASE64.encode(error.as_bytes())),
    }
}

/// An AMQP value as well as JSON can say it.
fn json(value: &Value, depth: u32) -> Json {
    let Some(depth) = depth.checked_sub(1) else { return Json::Null };
    match value {
        Value::Null => Json::Null,
        Value::Boolean(flag) => Json::Bool(*flag),
        Value::String(text) => Json::String(text.as_str().to_owned()),
        Value::Symbol(name) => Json::String(name.as_str().to_owned()),
        Value::Char(character) => Json::String(character.to_string()),
        Value::Float(number) => {
            serde_json::Number::from_f64(f64::from(*number)).map_or(Json::Null, Json::Number)
        }
        Value::Double(number) => serde_json::Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Uuid(uuid) => Json::String(uuid.to_string()),
        Value::Timestamp(at) => {
            Json::String(date::rfc3339(Timestamp(u64::try_from(at.0).unwrap_or_default())))
        }
        Value::Binary(bytes) => Json::String(BASE64.encode(bytes)),
        Value::List(list) => Json::Array(list.iter().map(|item| json(&item, depth)).collect()),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, found)| {
                let key = key.as_str().map_or_else(|| json(&key, depth).to_string(), str::to_owned);
                (key, json(&found, depth))
            });
            Json::Object(entries.collect::<Object<String, Json>>())
        }
        Value::Described(described) => json(&described.value, depth),
        other => other.as_i64().map_or(Json::Null, Json::from),
    }
}
