//! A message as filters and rules see it, read from its encoding when they ask.

use std::fmt;

use vorrang_amqp::message::{Message, MessageId, Properties};
use vorrang_amqp::value::Map;
use vorrang_broker::shard::{Body, Decode};
use vorrang_filter::{Lookup, SystemProperty, ValueRef, name};

use super::{annotation, value};

/// Ticks of 100 ns in a millisecond.
const TICKS_PER_MS: u64 = 10_000;

/// The properties of an encoded message, for filters.
pub struct Content {
    pub(super) properties: Properties,
    pub(super) application: Option<Map>,
    pub(super) annotations: Option<Map>,
    pub(super) priority: Option<u8>,
    pub(super) time_to_live_ms: Option<u64>,
    pub(super) size: usize,
}

impl Content {
    /// Reads the sections around the body; properties that cannot be read count as absent, because
    /// the message was accepted with them.
    #[must_use]
    pub fn of(message: &Message) -> Content {
        let header = message.header().ok().flatten();
        Content {
            properties: message.properties().ok().flatten().unwrap_or_default(),
            application: message.application_properties(),
            annotations: message.message_annotations(),
            priority: header.and_then(|header| header.priority),
            time_to_live_ms: header.and_then(|header| header.ttl).map(u64::from),
            size: message.encoded().len(),
        }
    }

    fn annotation(&self, name: &str) -> Option<ValueRef<'_>> {
        let entries = self.annotations.as_ref()?.encoded_iter();
        let (_, found) = entries.into_iter().find(|(key, _)| key.as_str() == Some(name))?;
        value::to_filter(&found).value()
    }
}

/// Makes stored messages readable for filters.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoredMessages;

impl Decode for StoredMessages {
    fn view(&self, body: &Body) -> Option<Box<dyn vorrang_filter::Message>> {
        let message = Message::parse(body.bytes.clone()).ok()?;
        Some(Box::new(Content::of(&message)))
    }

    fn property<'v>(&self, encoded: &'v [u8]) -> Lookup<'v> {
        value::of_encoding(encoded)
    }
}

impl vorrang_filter::Message for Content {
    fn system(&self, property: SystemProperty) -> Option<ValueRef<'_>> {
        let properties = &self.properties;
        match property {
            SystemProperty::ContentType => {
                properties.content_type.as_ref().map(|name| ValueRef::String(name.as_str()))
            }
            SystemProperty::CorrelationId => properties.correlation_id.as_ref().map(id),
            SystemProperty::MessageId => properties.message_id.as_ref().map(id),
            SystemProperty::Label => text(properties.subject.as_ref()),
            SystemProperty::To => text(properties.to.as_ref()),
            SystemProperty::ReplyTo => text(properties.reply_to.as_ref()),
            SystemProperty::ReplyToSessionId => text(properties.reply_to_group_id.as_ref()),
            SystemProperty::SessionId => text(properties.group_id.as_ref()),
            SystemProperty::PartitionKey => self.annotation(annotation::PARTITION_KEY),
            SystemProperty::ViaPartitionKey => self.annotation(annotation::VIA_PARTITION_KEY),
            SystemProperty::ScheduledEnqueueTimeUtc => self.annotation(annotation::SCHEDULED),
            SystemProperty::TimeToLive => {
                let ticks = self.time_to_live_ms?.saturating_mul(TICKS_PER_MS);
                Some(ValueRef::Timespan(i64::try_from(ticks).unwrap_or(i64::MAX)))
            }
            SystemProperty::Priority => self.priority.map(|level| ValueRef::Int(i64::from(level))),
            SystemProperty::Size => i64::try_from(self.size).ok().map(ValueRef::Int),
            SystemProperty::DeliveryCount => Some(ValueRef::Int(0)),
            // What the broker gives a message later has no value while it is being sent.
            SystemProperty::DeadLetterSource
            | SystemProperty::EnqueuedSequenceNumber
            | SystemProperty::EnqueuedTimeUtc
            | SystemProperty::ExpiresAtUtc
            | SystemProperty::ForcePersistence
            | SystemProperty::LockToken
            | SystemProperty::LockedUntilUtc
            | SystemProperty::SequenceNumber
            | SystemProperty::State => None,
        }
    }

    fn user(&self, name: &str) -> Lookup<'_> {
        let Some(map) = &self.application else { return Lookup::Missing };
        let names = map.encoded_iter().map(|(key, _)| key.as_str().unwrap_or_default());
        let Some(place) = name::position(names, name) else { return Lookup::Missing };
        let found = map.encoded_iter().nth(place);
        found.map_or(Lookup::Missing, |(_, encoded)| value::to_filter(&encoded))
    }
}

fn text(text: Option<&vorrang_amqp::Text>) -> Option<ValueRef<'_>> {
    text.map(|text| ValueRef::String(text.as_str()))
}

fn id(id: &MessageId) -> ValueRef<'_> {
    match id {
        MessageId::String(text) => ValueRef::String(text.as_str()),
        MessageId::Uuid(uuid) => ValueRef::Guid(u128::from_be_bytes(*uuid.as_bytes())),
        MessageId::Binary(bytes) => ValueRef::Binary(bytes),
        MessageId::Ulong(number) => match i64::try_from(*number) {
            Ok(number) => ValueRef::Int(number),
            Err(_) => vorrang_filter::Decimal::new(i128::from(*number), 0)
                .map_or(ValueRef::Int(i64::MAX), ValueRef::Decimal),
        },
    }
}

impl fmt::Debug for Content {
    /// Not the values: what applications put into messages does not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").field("size", &self.size).finish_non_exhaustive()
    }
}
