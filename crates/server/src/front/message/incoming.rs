//! A message that a client sends: checked, and kept byte for byte as it came.

use std::fmt::Write as _;

use bytes::Bytes;
use vorrang_amqp::DecodeError;
use vorrang_amqp::message::{Essentials, Identity, Message};
use vorrang_amqp::value::Value;
use vorrang_engine::message::Incoming;
use vorrang_engine::text::Text;
use vorrang_engine::{Span, Timestamp};

use super::annotation;
use super::content;

/// One application property, key and value, at most.
const PROPERTY_BYTES_MAX: usize = 32 * 1024;
/// All application properties of a message together, at most.
const PROPERTIES_BYTES_MAX: usize = 64 * 1024;

/// Why a message is not accepted, before any entity is asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// It is not an AMQP message.
    #[error("the message cannot be decoded: {0}")]
    Decode(#[from] DecodeError),
    /// One of its application properties is too large.
    #[error("an application property of {size} bytes exceeds the limit of {limit}")]
    PropertyTooLarge {
        /// Its size.
        size: usize,
        /// The bound.
        limit: usize,
    },
    /// All of them together are.
    #[error("application properties of {size} bytes exceed the limit of {limit}")]
    PropertiesTooLarge {
        /// Their size.
        size: usize,
        /// The bound.
        limit: usize,
    },
}

/// Reads one encoded message.
pub fn read(payload: Bytes) -> Result<Incoming, Error> {
    let message = Message::parse(payload)?;
    let header = message.header()?.unwrap_or_default();
    let essentials = message.essentials()?;
    check_sizes(&message)?;
    let annotations = Annotations::of(&message);
    let time_to_live = time_to_live(&essentials).or(header.ttl.map(u64::from)).map(Span);
    let part = |text: &str| Text::part_of(message.encoded(), text);
    let message_id = essentials.message_id.map(|id| match id {
        Identity::String(text) => part(&text),
        Identity::Ulong(number) => Text::Number(number),
        other => Text::from(&*id_text(other)),
    });
    let session_id = essentials.group_id.map(|group| part(&group));
    let key = annotations.partition_key.as_ref().and_then(|key| key.as_text());
    let partition_key = key.map(|key| part(key.as_str()));
    Ok(Incoming {
        content: content::noted(&message),
        message_id,
        session_id,
        partition_key,
        time_to_live,
        scheduled_for: annotations.scheduled.as_ref().and_then(time),
        priority: header.priority,
        deadline: annotations.deadline.as_ref().and_then(time),
        payload: message.into_encoded(),
    })
}

/// The annotations that mean something to the engine; of several under one name, the first.
#[derive(Default)]
struct Annotations {
    partition_key: Option<Value>,
    scheduled: Option<Value>,
    deadline: Option<Value>,
}

impl Annotations {
    fn of(message: &Message) -> Annotations {
        let mut found = Annotations::default();
        for (key, value) in message.annotation_entries() {
            let place = match key.as_str() {
                Some(annotation::PARTITION_KEY) => &mut found.partition_key,
                Some(annotation::SCHEDULED) => &mut found.scheduled,
                Some(annotation::DEADLINE) => &mut found.deadline,
                _ => continue,
            };
            place.get_or_insert_with(|| value.decode());
        }
        found
    }
}

/// The lifetime a sender means by its two dates; it wins over `header.ttl`, which cannot say more than 49 days.
fn time_to_live(essentials: &Essentials<'_>) -> Option<u64> {
    let created = essentials.creation_time?.0;
    let expires = essentials.absolute_expiry_time?.0;
    u64::try_from(expires.checked_sub(created)?).ok().filter(|span| *span > 0)
}

/// A point in time, as a timestamp or as milliseconds in any integer type; before 1970 means at once.
fn time(value: &Value) -> Option<Timestamp> {
    let milliseconds = value.as_timestamp().map(|at| at.0).or_else(|| value.as_i64())?;
    Some(Timestamp(u64::try_from(milliseconds).unwrap_or(0)))
}

/// The id as text: what duplicate detection compares.
pub(crate) fn id_text(id: Identity<'_>) -> String {
    match id {
        Identity::String(id) => id.into_owned(),
        Identity::Ulong(number) => number.to_string(),
        Identity::Uuid(uuid) => uuid.to_string(),
        Identity::Binary(bytes) => {
            let mut digits = String::with_capacity(bytes.len().saturating_mul(2));
            for byte in bytes {
                // Writing to a string cannot fail.
                let _ = write!(digits, "{byte:02x}");
            }
            digits
        }
    }
}

fn check_sizes(message: &Message) -> Result<(), Error> {
    let section = message.layout().application_properties;
    if section.is_none_or(|section| section.end().saturating_sub(section.value()) <= PROPERTY_BYTES_MAX) {
        return Ok(());
    }
    let map = message.application_properties().unwrap_or_default();
    let all = map.encoded_entries().len();
    if all > PROPERTIES_BYTES_MAX {
        return Err(Error::PropertiesTooLarge { size: all, limit: PROPERTIES_BYTES_MAX });
    }
    for (key, value) in map.encoded_iter() {
        let size = key.as_bytes().len().saturating_add(value.as_bytes().len());
        if size > PROPERTY_BYTES_MAX {
            return Err(Error::PropertyTooLarge { size, limit: PROPERTY_BYTES_MAX });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use vorrang_amqp::descriptor;
    use vorrang_amqp::message::{
        Header, MessageId, Properties, put_data, put_header, put_map_section, put_properties,
    };
    use vorrang_amqp::value::Timestamp as AmqpTimestamp;
    use vorrang_filter::{SystemProperty, ValueRef};

    use super::*;

    fn encoded(header: Option<Header>, properties: Option<Properties>, key: &str, value: &Value) -> Bytes {
        let mut bytes = Vec::new();
        if let Some(header) = header {
            put_header(&mut bytes, &header);
        }
        if let Some(properties) = properties {
            put_properties(&mut bytes, &properties);
        }
        put_map_section(&mut bytes, descriptor::APPLICATION_PROPERTIES, |map| {
            map.entry(&Value::from(key), value);
        });
        put_data(&mut bytes, b"body");
        Bytes::from(bytes)
    }

    #[test]
    fn a_message_is_stored_byte_for_byte() {
        let properties = Properties { message_id: Some(MessageId::Ulong(7)), ..Properties::default() };
        let payload = encoded(None, Some(properties), "Priority", &Value::from("high"));
        let incoming = read(payload.clone()).unwrap();
        assert_eq!(incoming.payload, payload);
        assert_eq!(incoming.message_id.as_ref().map(|id| incoming.read(id)).as_deref(), Some("7"));
        let found = incoming.ask(|content| content.user("priority").value().map(ValueRef::to_value));
        assert_eq!(found, Some("high".into()));
    }

    #[test]
    fn a_message_without_an_id_is_left_without() {
        let header = Header { priority: Some(9), ..Header::default() };
        let payload = encoded(Some(header), None, "k", &Value::Int(1));
        let incoming = read(payload.clone()).unwrap();
        assert_eq!((incoming.message_id, incoming.priority), (None, Some(9)));
        assert_eq!(incoming.payload, payload);
    }

    #[test]
    fn the_lifetime_comes_from_the_two_dates_or_else_from_the_header() {
        let dates = |created: i64, expires: i64| Properties {
            message_id: Some(MessageId::Ulong(1)),
            creation_time: Some(AmqpTimestamp(created)),
            absolute_expiry_time: Some(AmqpTimestamp(expires)),
            ..Properties::default()
        };
        let cases = [
            ("both dates", Some(5), dates(1_000, 61_000), Some(60_000)),
            ("dates the wrong way round", Some(5), dates(2, 1), Some(5)),
            ("dates far apart", None, dates(i64::MIN, i64::MAX), None),
            ("header alone", Some(0), Properties::default(), Some(0)),
            ("nothing", None, Properties::default(), None),
        ];
        for (case, ttl, properties, expected) in cases {
            let header = Header { ttl, ..Header::default() };
            let payload = encoded(Some(header), Some(properties), "k", &Value::Null);
            let incoming = read(payload).unwrap();
            assert_eq!(incoming.time_to_live, expected.map(Span), "{case}");
        }
    }

    #[test]
    fn large_application_properties_are_refused_at_their_limits() {
        let with = |bytes: usize| {
            let value = Value::from("x".repeat(bytes).as_str());
            read(encoded(None, None, "k", &value))
        };
        // The key takes three bytes, the long string form five more than its text.
        assert!(with(PROPERTY_BYTES_MAX - 8).is_ok());
        assert!(matches!(with(PROPERTY_BYTES_MAX - 7), Err(Error::PropertyTooLarge { .. })));
        assert!(matches!(with(PROPERTIES_BYTES_MAX), Err(Error::PropertiesTooLarge { .. })));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(matches!(read(Bytes::from_static(b"\x00")), Err(Error::Decode(_))));
    }

    #[test]
    fn filters_see_system_properties() {
        let properties = Properties {
            message_id: Some(MessageId::String("m".into())),
            group_id: Some("s".into()),
            reply_to: Some("r".into()),
            ..Properties::default()
        };
        let incoming = read(encoded(None, Some(properties), "k", &Value::Null)).unwrap();
        let system = |property| incoming.ask(|content| content.system(property).map(ValueRef::to_value));
        assert_eq!(system(SystemProperty::MessageId), Some("m".into()));
        assert_eq!(system(SystemProperty::SessionId), Some("s".into()));
        assert_eq!(system(SystemProperty::ReplyTo), Some("r".into()));
        assert_eq!(system(SystemProperty::To), None);
        let session = incoming.session_id.as_ref();
        assert_eq!(session.map(|session| incoming.read(session)).as_deref(), Some("s"));
    }
}
