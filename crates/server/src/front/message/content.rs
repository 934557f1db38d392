//! A message as filters and rules see it, read from its encoding when they ask.

use std::fmt;
use std::sync::OnceLock;

use vorrang_amqp::message::{Message, MessageId, Properties};
use vorrang_broker::shard::{Body, Decode};
use vorrang_filter::{Lookup, SystemProperty, ValueRef, name};

use super::{annotation, value};

/// Ticks of 100 ns in a millisecond.
const TICKS_PER_MS: u64 = 10_000;

/// The properties of an encoded message, for filters. Most messages are never asked for any.
pub struct Content {
    message: Message,
    priority: Option<u8>,
    time_to_live_ms: Option<u64>,
    /// The properties, once somebody has asked for one.
    properties: OnceLock<Box<Properties>>,
}

impl Content {
    /// A message with the level and the lifetime that its sender gave it.
    #[must_use]
    pub fn new(message: Message, priority: Option<u8>, time_to_live_ms: Option<u64>) -> Content {
        Content { message, priority, time_to_live_ms, properties: OnceLock::new() }
    }

    /// A stored message.
    #[must_use]
    pub fn stored(message: Message) -> Content {
        let header = message.header().ok().flatten().unwrap_or_default();
        Content::new(message, header.priority, header.ttl.map(u64::from))
    }

    /// Properties that cannot be read count as absent, because the message was accepted with them.
    fn properties(&self) -> &Properties {
        self.properties.get_or_init(|| Box::new(self.message.properties().ok().flatten().unwrap_or_default()))
    }

    fn annotation(&self, name: &str) -> Option<ValueRef<'_>> {
        let (_, found) = self.message.annotation_entries().find(|(key, _)| key.as_str() == Some(name))?;
        value::to_filter(&found).value()
    }
}

/// Makes stored messages readable for filters.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoredMessages;

impl Decode for StoredMessages {
    fn view(&self, body: &Body) -> Option<Box<dyn vorrang_filter::Message>> {
        let message = Message::parse_again(body.bytes.clone()).ok()?;
        Some(Box::new(Content::stored(message)))
    }

    fn property<'v>(&self, encoded: &'v [u8]) -> Lookup<'v> {
        value::of_encoding(encoded)
    }
}

impl vorrang_filter::Message for Content {
    fn system(&self, property: SystemProperty) -> Option<ValueRef<'_>> {
        match property {
            SystemProperty::ContentType => {
                self.properties().content_type.as_ref().map(|name| ValueRef::String(name.as_str()))
            }
            SystemProperty::CorrelationId => self.properties().correlation_id.as_ref().map(id),
            SystemProperty::MessageId => self.properties().message_id.as_ref().map(id),
            SystemProperty::Label => text(self.properties().subject.as_ref()),
            SystemProperty::To => text(self.properties().to.as_ref()),
            SystemProperty::ReplyTo => text(self.properties().reply_to.as_ref()),
            SystemProperty::ReplyToSessionId => text(self.properties().reply_to_group_id.as_ref()),
            SystemProperty::SessionId => text(self.properties().group_id.as_ref()),
            SystemProperty::PartitionKey => self.annotation(annotation::PARTITION_KEY),
            SystemProperty::ViaPartitionKey => self.annotation(annotation::VIA_PARTITION_KEY),
            SystemProperty::ScheduledEnqueueTimeUtc => self.annotation(annotation::SCHEDULED),
            SystemProperty::TimeToLive => {
                let ticks = self.time_to_live_ms?.saturating_mul(TICKS_PER_MS);
                Some(ValueRef::Timespan(i64::try_from(ticks).unwrap_or(i64::MAX)))
            }
            SystemProperty::Priority => self.priority.map(|level| ValueRef::Int(i64::from(level))),
            SystemProperty::Size => i64::try_from(self.message.encoded().len()).ok().map(ValueRef::Int),
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
        let entries = || self.message.application_entries();
        let names = entries().map(|(key, _)| key.as_str().unwrap_or_default());
        let Some(place) = name::position(names, name) else { return Lookup::Missing };
        let found = entries().nth(place);
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
        f.debug_struct("Content").field("size", &self.message.encoded().len()).finish_non_exhaustive()
    }
}
