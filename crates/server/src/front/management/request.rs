//! The envelope of a request: which operation, for whom, and its arguments.

use bytes::Bytes;
use vorrang_amqp::message::{Message, MessageId};
use vorrang_amqp::value::{Map, Value};
use vorrang_amqp::{DecodeError, Text};

use super::arguments::{Arguments, argument_error};
use crate::front::condition::Told;

/// A request as it came.
#[derive(Debug)]
pub(super) struct Request {
    /// What to do; none if the client does not say.
    pub(super) operation: Option<Text>,
    /// What the response has to bear.
    pub(super) correlation: Option<MessageId>,
    /// Where the response goes.
    pub(super) reply_to: Option<Text>,
    /// The link on whose behalf the client asks.
    pub(super) link_name: Option<Text>,
    /// The client's name for the request, for the log.
    pub(super) tracking: Option<Text>,
    body: Result<Option<Value>, DecodeError>,
}

impl Request {
    /// Reads the envelope. A message that is none has no sender to respond to.
    pub(super) fn read(payload: Bytes) -> Result<Request, DecodeError> {
        let message = Message::parse(payload)?;
        let properties = message.properties()?.unwrap_or_default();
        let application = message.application_properties().unwrap_or_default();
        let text = |key: &str| application.value(key).and_then(|value| value.as_text().cloned());
        Ok(Request {
            operation: text("operation"),
            link_name: text("associated-link-name"),
            tracking: text("com.microsoft:tracking-id"),
            correlation: properties.message_id.or(properties.correlation_id),
            reply_to: properties.reply_to,
            body: message.value(),
        })
    }

    /// The arguments; a request without a body has none.
    pub(super) fn arguments(&self) -> Result<Arguments, Told> {
        match &self.body {
            Ok(None | Some(Value::Null)) => Ok(Arguments::new(Map::EMPTY)),
            Ok(Some(Value::Map(map))) => Ok(Arguments::new(map.clone())),
            Ok(Some(_)) => Err(argument_error("The arguments of a request are a map.")),
            Err(error) => Err(argument_error(format!("The arguments cannot be decoded: {error}."))),
        }
    }
}

#[cfg(test)]
mod tests {
    use vorrang_amqp::descriptor;
    use vorrang_amqp::message::{Properties, put_map_section, put_properties, put_value};
    use vorrang_amqp::{Symbol, Uuid};

    use super::*;

    fn encoded(properties: &Properties, operation: &Value, body: &Value) -> Bytes {
        let mut bytes = Vec::new();
        put_properties(&mut bytes, properties);
        put_map_section(&mut bytes, descriptor::APPLICATION_PROPERTIES, |map| {
            map.entry(&"operation", operation);
            map.entry(&Symbol::from_static("associated-link-name"), &"link");
            map.entry(&"com.microsoft:server-timeout", &0_i64);
        });
        put_value(&mut bytes, body);
        bytes.into()
    }

    #[test]
    fn the_id_to_correlate_by_keeps_its_type() {
        let ids = [
            MessageId::String("a".into()),
            MessageId::Uuid(Uuid::from_bytes([7; 16])),
            MessageId::Ulong(1),
            MessageId::Binary(Bytes::from_static(b"b")),
        ];
        for id in ids {
            let properties = Properties { message_id: Some(id.clone()), ..Properties::default() };
            let request = Request::read(encoded(&properties, &Value::from("op"), &Value::Null)).unwrap();
            assert_eq!(request.correlation, Some(id));
            assert_eq!(request.operation.unwrap(), "op");
            assert_eq!(request.link_name.unwrap(), "link");
        }
    }

    #[test]
    fn arguments_are_a_map_or_nothing() {
        let read = |body: &Value| {
            let request = Request::read(encoded(&Properties::default(), &Value::symbol("op"), body)).unwrap();
            request.arguments().map(drop).map_err(|told| told.status)
        };
        assert_eq!(read(&Value::Null), Ok(()));
        assert_eq!(read(&Value::Map(Map::EMPTY)), Ok(()));
        assert_eq!(read(&Value::from("text")), Err(400));
        assert!(Request::read(Bytes::from_static(b"\x00\x53")).is_err());
        // A map that claims more than there is: the envelope can be read, so the sender is told.
        let broken = Request::read(Bytes::from_static(b"\x00\x53\x77\xc1\x02\x02\xa1")).unwrap();
        assert_eq!(broken.arguments().unwrap_err().status, 400);
        let no_operation = Request::read(encoded(&Properties::default(), &Value::Int(1), &Value::Null));
        assert_eq!(no_operation.unwrap().operation, None);
    }
}
