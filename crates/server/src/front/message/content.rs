//! A message as filters and rules see it, read from its encoding when they ask.

use std::borrow::Borrow;
use std::cell::OnceCell;
use std::fmt;

use bytes::Bytes;
use vorrang_amqp::message::{Message, MessageId, Outline, Properties};
use vorrang_broker::shard::{Body, Decode};
use vorrang_engine::message as engine;
use vorrang_filter::{Lookup, SystemProperty, ValueRef, name};

use super::{annotation, value};

/// Ticks of 100 ns in a millisecond.
const TICKS_PER_MS: u64 = 10_000;

/// The properties of an encoded message, its own or lent, for filters. Most messages are never asked for any.
struct Content<B> {
    encoded: B,
    outline: Outline,
    priority: Option<u8>,
    time_to_live_ms: Option<u64>,
    /// The properties, once somebody has asked for one.
    properties: OnceCell<Box<Properties>>,
}

/// What the engine carries of a message that is being sent, to ask for more when it must.
pub(super) fn noted(message: &Message) -> engine::Content {
    engine::Content::Within { outline: message.outline().words(), show }
}

/// A message that is being sent, with the level and the lifetime that its sender gave it.
fn show(
    incoming: &engine::Incoming,
    outline: engine::Outline,
    ask: &mut dyn FnMut(&dyn vorrang_filter::Message),
) {
    ask(&Content {
        encoded: &incoming.payload,
        outline: Outline::from_words(outline),
        priority: incoming.priority,
        time_to_live_ms: incoming.time_to_live.map(|span| span.0),
        properties: OnceCell::new(),
    });
}

impl Content<Bytes> {
    /// A stored message.
    fn stored(message: Message) -> Self {
        let header = message.header().ok().flatten().unwrap_or_default();
        Content {
            outline: message.outline(),
            priority: header.priority,
            time_to_live_ms: header.ttl.map(u64::from),
            properties: OnceCell::new(),
            encoded: message.into_encoded(),
        }
    }
}

impl<B: Borrow<Bytes>> Content<B> {
    fn encoded(&self) -> &Bytes {
        self.encoded.borrow()
    }

    /// Properties that cannot be read count as absent, because the message was accepted with them.
    fn properties(&self) -> &Properties {
        let read = || Box::new(self.outline.properties(self.encoded()).unwrap_or_default());
        self.properties.get_or_init(read)
    }

    fn annotation(&self, name: &str) -> Option<ValueRef<'_>> {
        let mut entries = self.outline.annotation_entries(self.encoded());
        let (_, found) = entries.find(|(key, _)| key.as_str() == Some(name))?;
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

impl<B: Borrow<Bytes>> vorrang_filter::Message for Content<B> {
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
            SystemProperty::Size => i64::try_from(self.encoded().len()).ok().map(ValueRef::Int),
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
        if !self.outline.has_application_properties() {
            return Lookup::Missing;
        }
        let entries = || self.outline.application_entries(self.encoded());
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

impl<B: Borrow<Bytes>> fmt::Debug for Content<B> {
    /// Not the values: what applications put into messages does not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").field("size", &self.encoded().len()).finish_non_exhaustive()
    }
}
