//! The envelope of a response.
//!
//! The types are part of the protocol: SDKs cast the status to a 32-bit integer and the condition to a
//! symbol, and guess a condition from the status where none is sent. So one is always sent.

use bytes::BytesMut;
use vorrang_amqp::message::{MessageId, Properties, put_map_section, put_properties, put_value};
use vorrang_amqp::value::{Map, Value};
use vorrang_amqp::{Symbol, descriptor};

use crate::front::condition::Told;

/// A response, but for whom it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Response {
    status: i32,
    description: String,
    condition: Option<&'static str>,
    body: Map,
}

impl Response {
    /// Done; there is no more to say.
    pub(super) fn done() -> Response {
        Response::with(Map::EMPTY)
    }

    /// Done, with a result.
    pub(super) fn with(body: Map) -> Response {
        Response { status: 200, description: "OK".to_owned(), condition: None, body }
    }

    /// Done, with a result of one entry.
    pub(super) fn of(key: &'static str, value: impl Into<Value>) -> Response {
        Response::with(std::iter::once((key, value.into())).collect())
    }

    /// There is nothing of what was asked for.
    pub(super) fn nothing() -> Response {
        Response { status: 204, description: "No Content".to_owned(), condition: None, body: Map::EMPTY }
    }

    /// The encoded message, for the request with this id.
    pub(super) fn encode(&self, correlation: Option<MessageId>) -> BytesMut {
        let mut out = BytesMut::with_capacity(self.body.encoded_entries().len().saturating_add(256));
        put_properties(&mut out, &Properties { correlation_id: correlation, ..Properties::default() });
        put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |map| {
            map.entry(&"statusCode", &self.status);
            map.entry(&"statusDescription", &self.description.as_str());
            if let Some(condition) = self.condition {
                map.entry(&"errorCondition", &Symbol::from_static(condition));
                map.entry(&"error-condition", &Symbol::from_static(condition));
            }
        });
        put_value(&mut out, &self.body);
        out
    }
}

impl From<Told> for Response {
    fn from(told: Told) -> Response {
        Response {
            status: told.status,
            description: told.text,
            condition: Some(told.condition),
            body: Map::EMPTY,
        }
    }
}

#[cfg(test)]
mod tests {
    use vorrang_amqp::Uuid;
    use vorrang_amqp::message::Message;

    use super::*;
    use crate::front::condition::name;

    #[test]
    fn a_failure_has_the_types_that_sdks_cast_to() {
        let told = Told::new(name::MESSAGE_LOCK_LOST, 410, "gone");
        let id = MessageId::Uuid(Uuid::from_bytes([3; 16]));
        let message = Message::parse(Response::from(told).encode(Some(id.clone())).freeze()).unwrap();
        assert_eq!(message.properties().unwrap().unwrap().correlation_id, Some(id));
        let properties = message.application_properties().unwrap();
        assert_eq!(properties.value("statusCode"), Some(Value::Int(410)));
        assert_eq!(properties.value("statusDescription"), Some(Value::from("gone")));
        let condition = Value::symbol("com.microsoft:message-lock-lost");
        assert_eq!(properties.value("errorCondition"), Some(condition.clone()));
        assert_eq!(properties.value("error-condition"), Some(condition));
        assert!(properties.iter().all(|(key, _)| matches!(key, Value::String(_))));
        assert_eq!(message.value().unwrap(), Some(Value::Map(Map::EMPTY)));
    }

    #[test]
    fn a_success_has_no_condition() {
        for (response, status) in [(Response::done(), 200), (Response::nothing(), 204)] {
            let message = Message::parse(response.encode(Some(MessageId::Ulong(1))).freeze()).unwrap();
            let properties = message.application_properties().unwrap();
            assert_eq!(properties.value("statusCode"), Some(Value::Int(status)));
            assert!(!properties.contains("errorCondition") && !properties.contains("error-condition"));
            assert_eq!(message.value().unwrap(), Some(Value::Map(Map::EMPTY)));
        }
    }
}
