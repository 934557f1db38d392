//! A message that was received, with everything the broker says about it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use vorrang_amqp::message::{Header, Properties};
use vorrang_amqp::value::{Map, Value};
use vorrang_amqp::{Symbol, Text, Uuid};

use crate::driver::{Arrived, DeliveryRef};
use crate::error::Error;
use crate::message::{Message, TRACE_PARENT, id_text};
use crate::wall;

/// Messages up to this size get memory of their own, so that one that is held for long does not keep the whole read
/// buffer it came in.
const DETACHED_BYTES_MAX: usize = 8 * 1024;

/// A received message. Cheap to clone and to hand on.
#[derive(Debug, Clone)]
pub struct Received {
    parts: Arc<Parts>,
    lock_token: Option<Uuid>,
    pub(crate) delivery: Option<DeliveryRef>,
}

/// What was read of a message.
#[derive(Debug)]
struct Parts {
    message: vorrang_amqp::Message,
    header: Header,
    properties: Properties,
    annotations: Option<Map>,
}

/// In which state a message is that was peeked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// To be received.
    Active,
    /// Set aside until somebody asks for it by number.
    Deferred,
    /// To become active later.
    Scheduled,
}

impl Received {
    /// Reads a delivery.
    pub(crate) fn from_arrived(arrived: Arrived) -> Result<Self, Error> {
        let tag = <[u8; 16]>::try_from(arrived.tag.as_bytes()).ok();
        let lock_token = tag.filter(|_| !arrived.settled).map(Uuid::from_dotnet_bytes);
        let delivery = (!arrived.settled).then_some(arrived.delivery);
        Received::read(arrived.payload, lock_token, delivery)
    }

    /// Reads an encoded message.
    pub(crate) fn read(
        payload: Bytes,
        lock_token: Option<Uuid>,
        delivery: Option<DeliveryRef>,
    ) -> Result<Self, Error> {
        let payload =
            if payload.len() <= DETACHED_BYTES_MAX { Bytes::copy_from_slice(&payload) } else { payload };
        let unreadable = |error: vorrang_amqp::DecodeError| Error::Protocol(error.to_string().into());
        let message = vorrang_amqp::Message::parse(payload).map_err(unreadable)?;
        let header = message.header().map_err(unreadable)?.unwrap_or_default();
        let properties = message.properties().map_err(unreadable)?.unwrap_or_default();
        let annotations = message.message_annotations();
        let parts = Arc::new(Parts { message, header, properties, annotations });
        Ok(Received { parts, lock_token, delivery })
    }

    /// The body's bytes. Empty if the body is an AMQP value; see [`Received::value`].
    #[must_use]
    pub fn body(&self) -> Bytes {
        let mut parts = self.parts.message.data();
        let first = parts.next().unwrap_or_default();
        let Some(second) = parts.next() else { return first };
        // Nearly no sender cuts its body; those that do get it in one piece.
        let mut whole = Vec::with_capacity(first.len().saturating_add(second.len()));
        whole.extend_from_slice(&first);
        whole.extend_from_slice(&second);
        parts.for_each(|part| whole.extend_from_slice(&part));
        Bytes::from(whole)
    }

    /// The body as text, if it is one data section of UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let body = self.parts.message.encoded().get(self.parts.message.layout().body())?;
        // One data section: descriptor, then a binary with one or four bytes of length.
        let data = match body {
            [0x00, 0x53, 0x75, 0xa0, length, data @ ..] if data.len() == usize::from(*length) => data,
            [0x00, 0x53, 0x75, 0xb0, a, b, c, d, data @ ..]
                if u32::try_from(data.len()) == Ok(u32::from_be_bytes([*a, *b, *c, *d])) =>
            {
                data
            }
            _ => return None,
        };
        std::str::from_utf8(data).ok()
    }

    /// The body, read as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body()).map_err(|error| Error::Body(error.to_string().into()))
    }

    /// The body, if it is an AMQP value.
    pub fn value(&self) -> Result<Option<Value>, Error> {
        self.parts.message.value().map_err(|error| Error::Body(error.to_string().into()))
    }

    /// The message's id as text.
    #[must_use]
    pub fn message_id(&self) -> Option<String> {
        self.parts.properties.message_id.as_ref().map(id_text)
    }

    /// The message this one belongs to, as text.
    #[must_use]
    pub fn correlation_id(&self) -> Option<String> {
        self.parts.properties.correlation_id.as_ref().map(id_text)
    }

    /// The session the message is in.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.parts.properties.group_id.as_ref().map(Text::as_str)
    }

    /// What the message is about.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.parts.properties.subject.as_ref().map(Text::as_str)
    }

    /// The media type of the body.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.parts.properties.content_type.as_ref().map(Symbol::as_str)
    }

    /// Where answers go.
    #[must_use]
    pub fn reply_to(&self) -> Option<&str> {
        self.parts.properties.reply_to.as_ref().map(Text::as_str)
    }

    /// The session answers go to.
    #[must_use]
    pub fn reply_to_session(&self) -> Option<&str> {
        self.parts.properties.reply_to_group_id.as_ref().map(Text::as_str)
    }

    /// Whom the message is for.
    #[must_use]
    pub fn to(&self) -> Option<&str> {
        self.parts.properties.to.as_ref().map(Text::as_str)
    }

    /// An application property.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<Value> {
        self.parts.message.application_properties()?.value(name)
    }

    /// All application properties, in the order of the wire.
    #[must_use]
    pub fn properties(&self) -> Vec<(String, Value)> {
        let map = self.parts.message.application_properties().unwrap_or_default();
        map.iter().filter_map(|(key, value)| Some((key.as_str()?.to_owned(), value))).collect()
    }

    /// A message annotation.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<Value> {
        self.parts.annotations.as_ref()?.value(name)
    }

    /// The priority in the header. Vorrang writes there the level it decided, where that is another than the sender's.
    #[must_use]
    pub fn priority(&self) -> Option<u8> {
        self.parts.header.priority
    }

    /// The class the sender named, or a number as text: the application property `Priority`.
    #[must_use]
    pub fn class(&self) -> Option<String> {
        match self.property("Priority")? {
            Value::String(text) => Some(text.as_str().to_owned()),
            other => other.as_integer().map(|number| number.to_string()),
        }
    }

    /// The level the broker served the message at; 4, AMQP's default priority, if nothing says otherwise.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.parts.header.priority.unwrap_or(4)
    }

    /// Which of several ordered sources the message came from, if the broker says so. An extension of Vorrang.
    #[must_use]
    pub fn source(&self) -> Option<String> {
        self.annotation("x-opt-vorrang-source")?.as_str().map(str::to_owned)
    }

    /// W3C trace context of the sender.
    #[must_use]
    pub fn trace_parent(&self) -> Option<String> {
        self.property(TRACE_PARENT)?.as_str().map(str::to_owned)
    }

    /// Earlier deliveries that did not succeed; 0 at the first.
    #[must_use]
    pub fn delivery_count(&self) -> u32 {
        self.parts.header.delivery_count
    }

    /// How long the message lives.
    #[must_use]
    pub fn time_to_live(&self) -> Option<Duration> {
        self.parts.header.ttl.map(|milliseconds| Duration::from_millis(milliseconds.into()))
    }

    /// The message's place in its entity.
    #[must_use]
    pub fn sequence_number(&self) -> Option<i64> {
        self.annotation("x-opt-sequence-number")?.as_i64()
    }

    /// When the message became part of its entity.
    #[must_use]
    pub fn enqueued_time(&self) -> Option<SystemTime> {
        self.time("x-opt-enqueued-time")
    }

    /// When the lock ends, as it was at delivery.
    #[must_use]
    pub fn locked_until(&self) -> Option<SystemTime> {
        self.time("x-opt-locked-until")
    }

    /// When the message is or was due.
    #[must_use]
    pub fn scheduled_time(&self) -> Option<SystemTime> {
        self.time("x-opt-scheduled-enqueue-time")
    }

    /// When the message ceases to matter.
    #[must_use]
    pub fn expires_at(&self) -> Option<SystemTime> {
        wall::system_time(self.parts.properties.absolute_expiry_time?)
    }

    /// The entity a dead-lettered message comes from.
    #[must_use]
    pub fn dead_letter_source(&self) -> Option<String> {
        self.annotation("x-opt-deadletter-source")?.as_str().map(str::to_owned)
    }

    /// Why the message was dead-lettered.
    #[must_use]
    pub fn dead_letter_reason(&self) -> Option<String> {
        self.property("DeadLetterReason")?.as_str().map(str::to_owned)
    }

    /// More about why the message was dead-lettered.
    #[must_use]
    pub fn dead_letter_description(&self) -> Option<String> {
        self.property("DeadLetterErrorDescription")?.as_str().map(str::to_owned)
    }

    /// The state of a peeked message.
    #[must_use]
    pub fn state(&self) -> MessageState {
        match self.annotation("x-opt-message-state").and_then(|state| state.as_i64()) {
            Some(1) => MessageState::Deferred,
            Some(2) => MessageState::Scheduled,
            _ => MessageState::Active,
        }
    }

    /// What proves that we hold the message; none if it is not locked.
    #[must_use]
    pub fn lock_token(&self) -> Option<Uuid> {
        self.lock_token
    }

    /// The size of the encoded message.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        self.parts.message.encoded().len()
    }

    /// A message like this one, to be sent on: body, properties and application properties, without what the broker
    /// wrote.
    #[must_use]
    pub fn to_message(&self) -> Message {
        let has_data = self.parts.message.layout().body_kind != vorrang_amqp::message::BodyKind::Value;
        Message::from_parts(
            self.parts.header,
            self.parts.properties.clone(),
            self.parts.annotations.as_ref(),
            self.parts.message.application_properties().as_ref(),
            has_data.then(|| self.body()),
            self.parts.message.value().ok().flatten().unwrap_or_default(),
        )
    }

    fn time(&self, annotation: &str) -> Option<SystemTime> {
        wall::system_time(self.annotation(annotation)?.as_timestamp()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(message: &Message) -> Received {
        Received::read(message.encode(), None, None).unwrap()
    }

    #[test]
    fn what_was_sent_is_what_is_received() {
        let sent =
            Message::text("größe").with_id("m").with_session("s").with_property("k", 7).with_priority(3);
        let received = received(&sent);
        assert_eq!(received.text(), Some("größe"));
        assert_eq!(received.message_id().as_deref(), Some("m"));
        assert_eq!((received.session_id(), received.priority()), (Some("s"), Some(3)));
        assert_eq!(received.property("k"), Some(Value::Int(7)));
        assert_eq!(received.to_message().encode(), received.parts.message.encoded());
    }

    #[test]
    fn text_is_found_whatever_the_length_of_the_body() {
        for length in [0, 1, 255, 256, 70_000] {
            let text = "x".repeat(length);
            assert_eq!(received(&Message::text(text.clone())).text(), Some(text.as_str()), "{length}");
        }
        assert_eq!(received(&Message::new(vec![0xff])).text(), None);
        assert_eq!(received(&Message::value(7_i64)).text(), None);
        assert_eq!(received(&Message::value(7_i64)).value().unwrap(), Some(Value::Long(7)));
    }

    #[test]
    fn json_goes_both_ways() {
        let sent = Message::json(&vec![1, 2, 3]).unwrap();
        assert_eq!(received(&sent).json::<Vec<i32>>().unwrap(), [1, 2, 3]);
        assert!(matches!(received(&Message::text("{")).json::<i32>(), Err(Error::Body(_))));
    }

    #[test]
    fn what_is_no_message_is_an_error_and_no_panic() {
        assert!(matches!(
            Received::read(Bytes::from_static(b"\x00\x53"), None, None),
            Err(Error::Protocol(_))
        ));
    }
}
