//! A message to send: a body, what Service Bus calls its properties, and the application's own.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Serialize;
use vorrang_amqp::descriptor;
use vorrang_amqp::message::{
    Header, MessageId, Properties, put_data, put_header, put_map_section, put_properties, put_value,
};
use vorrang_amqp::value::{Map, Value};
use vorrang_amqp::{Symbol, Text};

use crate::error::Error;
use crate::wall;

/// The application property by which Vorrang knows a message's class (`low`, `normal`, `high`, `urgent`, …).
const CLASS: &str = "Priority";
/// W3C trace context travels in application properties of these names.
pub(crate) const TRACE_PARENT: &str = "traceparent";
pub(crate) const TRACE_STATE: &str = "tracestate";
const DEADLINE: &str = "x-opt-vorrang-deadline";
pub(crate) const SCHEDULED: &str = "x-opt-scheduled-enqueue-time";
const PARTITION_KEY: &str = "x-opt-partition-key";

/// A message to send.
///
/// ```
/// use std::time::Duration;
/// use vorrang_client::Message;
///
/// let message = Message::text("one pizza")
///     .with_id("order-17")
///     .with_priority(9)
///     .with_time_to_live(Duration::from_secs(600))
///     .with_property("customer", "gold");
/// assert_eq!(message.message_id().as_deref(), Some("order-17"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    header: Header,
    has_header: bool,
    annotations: Vec<(Symbol, Value)>,
    properties: Properties,
    application: Vec<(Text, Value)>,
    body: Body,
}

#[derive(Debug, Clone, PartialEq)]
enum Body {
    Data(Bytes),
    Value(Value),
}

impl Default for Body {
    fn default() -> Self {
        Body::Data(Bytes::new())
    }
}

impl Message {
    /// A message whose body is these bytes.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Message { body: Body::Data(body.into()), ..Message::default() }
    }

    /// A message whose body is this text.
    pub fn text(body: impl Into<String>) -> Self {
        Message::new(body.into()).with_content_type("text/plain")
    }

    /// A message whose body is this value as JSON.
    pub fn json(body: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(body).map_err(|error| Error::Body(error.to_string().into()))?;
        Ok(Message::new(body).with_content_type("application/json"))
    }

    /// A message whose body is an AMQP value instead of bytes.
    pub fn value(body: impl Into<Value>) -> Self {
        Message { body: Body::Value(body.into()), ..Message::default() }
    }

    /// Identifies the message, for duplicate detection above all.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<Text>) -> Self {
        self.properties.message_id = Some(MessageId::String(id.into()));
        self
    }

    /// Puts the message into a session.
    #[must_use]
    pub fn with_session(mut self, session: impl Into<Text>) -> Self {
        self.properties.group_id = Some(session.into());
        self
    }

    /// What the message is about; Service Bus's label.
    #[must_use]
    pub fn with_subject(mut self, subject: impl Into<Text>) -> Self {
        self.properties.subject = Some(subject.into());
        self
    }

    /// The media type of the body.
    #[must_use]
    pub fn with_content_type(mut self, content_type: impl Into<Text>) -> Self {
        self.properties.content_type = Some(Symbol::from(content_type.into()));
        self
    }

    /// The message this one belongs to.
    #[must_use]
    pub fn with_correlation_id(mut self, id: impl Into<Text>) -> Self {
        self.properties.correlation_id = Some(MessageId::String(id.into()));
        self
    }

    /// Where answers go.
    #[must_use]
    pub fn with_reply_to(mut self, entity: impl Into<Text>) -> Self {
        self.properties.reply_to = Some(entity.into());
        self
    }

    /// The session answers go to.
    #[must_use]
    pub fn with_reply_to_session(mut self, session: impl Into<Text>) -> Self {
        self.properties.reply_to_group_id = Some(session.into());
        self
    }

    /// Whom the message is for; the broker does not look at it.
    #[must_use]
    pub fn with_to(mut self, to: impl Into<Text>) -> Self {
        self.properties.to = Some(to.into());
        self
    }

    /// How important the message is, as a number: higher comes first.
    #[must_use]
    pub fn with_priority(mut self, priority: u8) -> Self {
        self.header.priority = Some(priority);
        self.has_header = true;
        self
    }

    /// How important the message is, as the name of a class: the application property `Priority`.
    #[must_use]
    pub fn with_class(self, class: impl Into<Text>) -> Self {
        self.with_property(CLASS, class.into())
    }

    /// How long the message matters. The broker may shorten it.
    #[must_use]
    pub fn with_time_to_live(mut self, time: Duration) -> Self {
        self.header.ttl = Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
        self.has_header = true;
        // The header cannot say more than 49 days, so the two dates say it too.
        let now = wall::timestamp(SystemTime::now());
        let milliseconds = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.properties.creation_time = Some(now);
        self.properties.absolute_expiry_time =
            Some(vorrang_amqp::Timestamp(now.0.saturating_add(milliseconds)));
        self
    }

    /// When the message must be handled, for entities that order by deadline. An extension of Vorrang.
    #[must_use]
    pub fn with_deadline(self, at: SystemTime) -> Self {
        self.with_annotation(DEADLINE, wall::timestamp(at))
    }

    /// When the message becomes visible.
    #[must_use]
    pub fn with_scheduled_time(self, at: SystemTime) -> Self {
        self.with_annotation(SCHEDULED, wall::timestamp(at))
    }

    /// The partition key.
    #[must_use]
    pub fn with_partition_key(self, key: impl Into<Text>) -> Self {
        self.with_annotation(PARTITION_KEY, key.into())
    }

    /// An application property; replaces one of the same name.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<Text>, value: impl Into<Value>) -> Self {
        let name = name.into();
        self.application.retain(|(known, _)| *known != name);
        self.application.push((name, value.into()));
        self
    }

    /// A message annotation; replaces one of the same name.
    #[must_use]
    pub fn with_annotation(mut self, name: impl Into<Text>, value: impl Into<Value>) -> Self {
        let name = Symbol::from(name.into());
        self.annotations.retain(|(known, _)| *known != name);
        self.annotations.push((name, value.into()));
        self
    }

    /// The W3C trace context this message continues: `traceparent`, and `tracestate` if there is one.
    #[must_use]
    pub fn with_trace_context(self, parent: &str, state: Option<&str>) -> Self {
        let message = self.with_property(TRACE_PARENT, parent);
        match state {
            Some(state) => message.with_property(TRACE_STATE, state),
            None => message,
        }
    }

    /// The message's id as text, if it has one.
    #[must_use]
    pub fn message_id(&self) -> Option<String> {
        self.properties.message_id.as_ref().map(id_text)
    }

    /// The session the message is in.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.properties.group_id.as_ref().map(Text::as_str)
    }

    /// What a received message was sent as, to be sent on. Annotations of the broker stay behind.
    pub(crate) fn from_parts(
        header: Header,
        properties: Properties,
        annotations: Option<&Map>,
        application: Option<&Map>,
        data: Option<Bytes>,
        value: Value,
    ) -> Self {
        let kept = |(key, value): (Value, Value)| Some((key.as_text()?.clone(), value));
        let entries = |map: Option<&Map>| map.into_iter().flat_map(Map::iter).filter_map(kept).collect();
        let annotations: Vec<(Text, Value)> = entries(annotations);
        Message {
            header: Header { delivery_count: 0, first_acquirer: None, ..header },
            has_header: true,
            annotations: annotations
                .into_iter()
                .filter(|(name, _)| !name.as_bytes().starts_with(b"x-opt-") || *name == DEADLINE)
                .map(|(name, value)| (Symbol::from(name), value))
                .collect(),
            properties,
            application: entries(application),
            body: data.map_or(Body::Value(value), Body::Data),
        }
    }

    /// The encoded message.
    pub(crate) fn encode(&self) -> Bytes {
        let body_bytes = match &self.body {
            Body::Data(data) => data.len(),
            Body::Value(_) => 64,
        };
        let mut out = Vec::with_capacity(body_bytes.saturating_add(128));
        if self.has_header {
            put_header(&mut out, &self.header);
        }
        if !self.annotations.is_empty() {
            put_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, |map| {
                for (name, value) in &self.annotations {
                    map.entry(name, value);
                }
            });
        }
        if self.properties != Properties::default() {
            put_properties(&mut out, &self.properties);
        }
        if !self.application.is_empty() {
            put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |map| {
                for (name, value) in &self.application {
                    map.entry(name, value);
                }
            });
        }
        match &self.body {
            Body::Data(data) => put_data(&mut out, data),
            Body::Value(value) => put_value(&mut out, value),
        }
        Bytes::from(out)
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Message::text(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Message::text(text)
    }
}

/// An id as text, whatever its type.
pub(crate) fn id_text(id: &MessageId) -> String {
    match id {
        MessageId::String(text) => text.as_str().to_owned(),
        MessageId::Ulong(number) => number.to_string(),
        MessageId::Uuid(uuid) => uuid.to_string(),
        MessageId::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_on_the_wire() {
        let message = Message::text("hello")
            .with_id("m")
            .with_priority(9)
            .with_class("high")
            .with_property("n", 1_i64)
            .with_property("n", 2_i64)
            .with_annotation("x-mine", "a")
            .with_trace_context("00-a-b-01", Some("v=1"));
        let parsed = vorrang_amqp::Message::parse(message.encode()).unwrap();
        assert_eq!(parsed.header().unwrap().unwrap().priority, Some(9));
        let application = parsed.application_properties().unwrap();
        assert_eq!(application.value("Priority"), Some(Value::from("high")));
        assert_eq!((application.value("n"), application.len()), (Some(Value::Long(2)), 4));
        assert_eq!(application.value("traceparent"), Some(Value::from("00-a-b-01")));
        assert_eq!(parsed.message_annotations().unwrap().value("x-mine"), Some(Value::from("a")));
        assert_eq!(parsed.data().next().unwrap(), "hello");
    }

    #[test]
    fn a_bare_message_is_only_its_body() {
        let encoded = Message::new("x").encode();
        assert_eq!(&encoded[..], b"\x00\x53\x75\xa0\x01x");
    }

    #[test]
    fn a_long_life_is_told_by_two_dates() {
        let days = Duration::from_hours(24 * 100);
        let message = Message::new("").with_time_to_live(days);
        assert_eq!(message.header.ttl, Some(u32::MAX));
        let (from, to) = (message.properties.creation_time, message.properties.absolute_expiry_time);
        assert_eq!(to.unwrap().0 - from.unwrap().0, 100 * 24 * 3_600_000);
    }
}
