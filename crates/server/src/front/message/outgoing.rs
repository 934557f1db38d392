//! A message on its way to a client: what the broker knows in front, what the sender sent behind.

use bytes::Bytes;
use vorrang_amqp::encode::{Encode, Output, Sheet};
use vorrang_amqp::message::{BodyKind, Changes, Header, Message, MessageId, Properties};
use vorrang_amqp::value::{Map, MapBuilder, Timestamp as AmqpTimestamp, Value};
use vorrang_amqp::{DecodeError, Symbol, Text, Uuid};
use vorrang_engine::message::{Delivery, MessageState, Overlay, PropertyChange, PropertyValue};
use vorrang_engine::{Level, LockToken, Timestamp};
use vorrang_filter::{SystemProperty, Value as Property};

use super::{annotation, plain, value};

/// Why a message is written: clients expect different annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose<'a> {
    /// An ordinary delivery.
    Deliver,
    /// A delivery on a link that is served from several entities, with the path of this one.
    DeliverFrom(&'a str),
    /// An answer to a peek or to a receive by sequence number, which says the message's state.
    Show,
}

/// Writes the sections in front to `out` and returns the rest of the message, its end, which follows them.
///
/// `assigned_id` is the id the broker gave a message that came without one.
pub fn write<'m>(
    delivery: &Delivery,
    message: &'m Message,
    assigned_id: Option<u128>,
    purpose: Purpose<'_>,
    out: &mut Sheet,
) -> &'m [u8] {
    let header = header(delivery, message.header().ok().flatten());
    let kept = message.message_annotations();
    let overlay = delivery.overlay.as_deref();
    let properties = changed_properties(delivery, message, assigned_id, overlay);
    let application = overlay.and_then(|overlay| changed_application_properties(message, overlay));
    let changes = Changes { properties: properties.as_ref(), application_properties: application.as_ref() };
    message.rebuild(
        out,
        &header,
        |map| {
            if let Some(token) = delivery.token {
                map.symbol(annotation::LOCK_TOKEN, &uuid(token));
            }
        },
        |map| {
            if let Some(kept) = &kept {
                map.keep_except(kept, &annotation::OWNED);
            }
            map.symbol(annotation::ENQUEUED_TIME, &timestamp(delivery.enqueued));
            map.symbol(annotation::SEQUENCE, &long(delivery.sequence.0));
            if let Some(first) = delivery.first_sequence {
                map.symbol(annotation::ENQUEUE_SEQUENCE, &long(first.0));
            }
            if let Some(until) = delivery.locked_until {
                map.symbol(annotation::LOCKED_UNTIL, &timestamp(until));
            }
            if purpose == Purpose::Show || delivery.state != MessageState::Active {
                map.symbol(annotation::MESSAGE_STATE, &state(delivery.state));
            }
            if let Some(source) = &delivery.dead_letter_source {
                map.symbol(annotation::DEAD_LETTER_SOURCE, &Text::from(&**source));
            }
            if let Purpose::DeliverFrom(entity) = purpose {
                map.symbol(annotation::SOURCE, &Text::from(entity));
            }
        },
        changes,
    )
}

/// The same for a message that was just read from where it is stored. Gives its bytes back, and says where in them the rest
/// begins.
pub fn write_stored(
    delivery: &Delivery,
    encoded: Bytes,
    assigned_id: Option<u128>,
    purpose: Purpose<'_>,
    out: &mut Sheet,
) -> Result<(Bytes, usize), DecodeError> {
    if purpose == Purpose::Deliver
        && assigned_id.is_none()
        && let Some(from) = plain::write(delivery, &encoded, out)
    {
        return Ok((encoded, from));
    }
    let message = Message::parse_again(encoded)?;
    let rest = write(delivery, &message, assigned_id, purpose, out).len();
    let encoded = message.into_encoded();
    let from = encoded.len().saturating_sub(rest);
    Ok((encoded, from))
}

/// The whole message without its body and footer, for a peek that asks for that.
pub fn write_without_body(
    delivery: &Delivery,
    message: &Message,
    assigned_id: Option<u128>,
    out: &mut Sheet,
) {
    let tail = write(delivery, message, assigned_id, Purpose::Show, out);
    let layout = message.layout();
    let behind_body = message.encoded().len().saturating_sub(layout.body().start);
    let kept = tail.len().saturating_sub(behind_body);
    if layout.body_kind == BodyKind::Absent && layout.footer.is_none() {
        out.put(tail);
    } else {
        out.put(tail.get(..kept).unwrap_or_default());
    }
}

/// The header as the sender wrote it, with the lifetime the broker granted, the count it keeps, and the
/// level it decided where that is not what the sender's header says.
pub(super) fn header(delivery: &Delivery, stored: Option<Header>) -> Header {
    let stored = stored.unwrap_or_default();
    let finite = !delivery.time_to_live.is_forever();
    let level = stored.priority.unwrap_or(Level::NORMAL.0);
    Header {
        ttl: finite.then(|| u32::try_from(delivery.time_to_live.0).unwrap_or(u32::MAX)),
        priority: if level == delivery.level.0 { stored.priority } else { Some(delivery.level.0) },
        delivery_count: delivery.deliveries,
        ..stored
    }
}

/// New properties if anything about them differs from what the sender wrote.
fn changed_properties(
    delivery: &Delivery,
    message: &Message,
    assigned_id: Option<u128>,
    overlay: Option<&Overlay>,
) -> Option<Properties> {
    let finite = !delivery.time_to_live.is_forever();
    let system = overlay.map(|overlay| &overlay.system).filter(|system| !system.is_empty());
    if !finite && system.is_none() && assigned_id.is_none() {
        return None;
    }
    let mut properties = message.properties().ok().flatten().unwrap_or_default();
    if let Some(id) = assigned_id {
        let id = format!("{id:032x}");
        properties.message_id.get_or_insert_with(|| MessageId::String(id.into()));
    }
    if finite {
        properties.absolute_expiry_time = Some(timestamp(delivery.expires));
        properties.creation_time = Some(timestamp(delivery.enqueued));
    }
    for (property, value) in system.into_iter().flatten() {
        set_system_property(&mut properties, *property, value.as_ref());
    }
    Some(properties)
}

fn set_system_property(properties: &mut Properties, property: SystemProperty, value: Option<&Property>) {
    let text = value.map(|value| Text::from(&*value.as_ref().text()));
    match property {
        SystemProperty::MessageId => properties.message_id = text.map(MessageId::String),
        SystemProperty::CorrelationId => properties.correlation_id = text.map(MessageId::String),
        SystemProperty::ContentType => properties.content_type = text.map(Symbol::from),
        SystemProperty::Label => properties.subject = text,
        SystemProperty::To => properties.to = text,
        SystemProperty::ReplyTo => properties.reply_to = text,
        SystemProperty::ReplyToSessionId => properties.reply_to_group_id = text,
        SystemProperty::SessionId => properties.group_id = text,
        // The rest is not in this section: the engine keeps lifetime and level, and has no partitions.
        _ => {}
    }
}

/// The application properties with the overlay's changes, values untouched where nothing changed.
fn changed_application_properties(message: &Message, overlay: &Overlay) -> Option<Map> {
    if overlay.properties.is_empty() {
        return None;
    }
    let stored = message.application_properties().unwrap_or_default();
    let mut builder = MapBuilder::default();
    for (key, found) in stored.encoded_iter() {
        let changed = key.as_str().is_some_and(|key| overlay.properties.contains_key(key));
        if !changed {
            builder.push(&EncodedValue(key.as_bytes()), &EncodedValue(found.as_bytes()));
        }
    }
    for (name, change) in &overlay.properties {
        let encoded = match change {
            PropertyChange::Set(PropertyValue::Typed(typed)) => Bytes::from(value::encoded_value(typed)),
            PropertyChange::Set(PropertyValue::Encoded(bytes)) => bytes.clone(),
            PropertyChange::Removed => continue,
        };
        builder.push(&Text::from(&**name), &EncodedValue(&encoded));
    }
    Some(builder.finish())
}

/// A value that was encoded, and checked, before.
#[derive(Debug, Clone, Copy)]
pub struct EncodedValue<'b>(pub &'b [u8]);

impl Encode for EncodedValue<'_> {
    fn encode<O: Output>(&self, out: &mut O) {
        out.put(self.0);
    }
}

fn timestamp(at: Timestamp) -> AmqpTimestamp {
    AmqpTimestamp(long(at.0))
}

/// A number as AMQP's `long`, which is what clients expect of sequence numbers.
pub(super) fn long(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn uuid(token: LockToken) -> Uuid {
    Uuid::from_bytes(token.0.to_be_bytes())
}

fn state(state: MessageState) -> Value {
    Value::Int(match state {
        MessageState::Active => 0,
        MessageState::Deferred => 1,
        MessageState::Scheduled => 2,
    })
}

#[cfg(test)]
pub(super) mod tests;
