//! Nodes that answer requests: `$management` and `$cbs`, and the tokens put there.

use bytes::Bytes;
use vorrang_amqp::connection::Millis;
use vorrang_amqp::descriptor;
use vorrang_amqp::message::{Message, MessageId, Properties, put_map_section, put_properties, put_value};
use vorrang_amqp::performative::{DeliveryState, Source, Target, TargetNode};
use vorrang_amqp::value::{Array, Map, Value};
use vorrang_amqp::{Text, Uuid};
use vorrang_broker::access::token::sign;
use vorrang_engine::entity::authorization::Secret;

use crate::client::Client;
use crate::links::{receiver, sender};
use crate::message::now;

/// What a node answered.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) message: Message,
    pub(crate) application: Map,
    pub(crate) settled: bool,
}

impl Response {
    /// `statusCode`, which must be an `int`.
    pub(crate) fn status(&self) -> i32 {
        match self.application.value("statusCode") {
            Some(Value::Int(status)) => status,
            other => panic!("statusCode is an int, not {other:?}"),
        }
    }

    /// `errorCondition`, which must be a symbol.
    pub(crate) fn condition(&self) -> String {
        match self.application.value("errorCondition") {
            Some(Value::Symbol(condition)) => condition.as_str().to_owned(),
            None => String::new(),
            other => panic!("errorCondition is a symbol, not {other:?}"),
        }
    }

    /// Both.
    pub(crate) fn told(&self) -> (i32, String) {
        (self.status(), self.condition())
    }

    pub(crate) fn body(&self) -> Map {
        match self.message.value().unwrap() {
            Some(Value::Map(map)) => map,
            other => panic!("the body is a map, not {other:?}"),
        }
    }

    pub(crate) fn value(&self, key: &str) -> Value {
        assert_eq!(self.told(), (200, String::new()), "{:?}", self.application);
        self.body().value(key).unwrap_or_else(|| panic!("no {key} in {:?}", self.body()))
    }

    /// The messages of a peek or a receive, with what stands beside each.
    pub(crate) fn messages(&self) -> Vec<(Message, Map)> {
        let Value::List(list) = self.value("messages") else { panic!("messages are a list") };
        let read = |entry: Value| {
            let map = entry.as_map().unwrap().clone();
            let bytes = map.value("message").unwrap().as_binary().unwrap().clone();
            (Message::parse(bytes).unwrap(), map)
        };
        list.iter().map(read).collect()
    }
}

/// The arguments of a request.
pub(crate) fn arguments<const N: usize>(entries: [(&str, Value); N]) -> Map {
    entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect()
}

/// Lock tokens as an argument.
pub(crate) fn tokens(tokens: &[Uuid]) -> Value {
    Array::of(tokens.iter().copied()).into()
}

/// Sequence numbers as an argument.
pub(crate) fn numbers(numbers: &[i64]) -> Value {
    Array::of(numbers.iter().copied()).into()
}

/// A request as a message.
pub(crate) fn request(id: MessageId, reply_to: Option<&str>, application: &Map, body: &Value) -> Bytes {
    let mut out = Vec::new();
    let properties =
        Properties { message_id: Some(id), reply_to: reply_to.map(Text::from), ..Properties::default() };
    put_properties(&mut out, &properties);
    put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |map| {
        for (key, value) in application.encoded_iter() {
            map.encoded(key, value);
        }
    });
    put_value(&mut out, body);
    out.into()
}

/// A token for a resource, as it stands in the token, that ends after so many seconds from now.
pub(crate) fn token(key_name: &str, key: &str, resource: &str, seconds: i64) -> String {
    let expiry = (now() / 1_000 + seconds).to_string();
    let signature = sign(&Secret::new(key), resource, &expiry);
    let escaped = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("SharedAccessSignature sr={resource}&sig={escaped}&se={expiry}&skn={key_name}")
}

impl Client {
    /// The request and response links of a node, attached when first needed.
    pub(crate) fn node(&mut self, address: &str) -> (u32, u32) {
        if let Some(pair) = self.nodes.get(address) {
            return *pair;
        }
        let (asking, answering) = (self.next_handle, self.next_handle + 1);
        self.next_handle += 2;
        let mut attach = receiver(answering, address);
        attach.target = Some(TargetNode::Node(Target::at(format!("reply-{answering}"))));
        let reply = self.attach(attach);
        assert!(reply.source.is_some(), "{address} refused: {:?}", self.next());
        self.credit(answering, 1_000);
        let mut attach = sender(asking, address);
        attach.source = Some(Source::at("client"));
        self.attach(attach);
        self.granted(asking);
        self.nodes.insert(address.to_owned(), (asking, answering));
        (asking, answering)
    }

    /// Asks a node and waits for its answer.
    pub(crate) fn ask(&mut self, address: &str, application: &Map, body: &Value) -> Response {
        let (asking, answering) = self.node(address);
        self.next_request += 1;
        if self.next_request.is_multiple_of(500) {
            self.credit(answering, 1_000);
        }
        let id = MessageId::Ulong(self.next_request);
        let payload = request(id.clone(), Some(&format!("reply-{answering}")), application, body);
        let delivery = self.transfer(asking, payload);
        assert_eq!(self.outcome(delivery), DeliveryState::ACCEPTED, "requests are accepted");
        let response = self.response(address);
        assert_eq!(response.message.properties().unwrap().unwrap().correlation_id, Some(id));
        response
    }

    /// The next response of a node.
    pub(crate) fn response(&mut self, address: &str) -> Response {
        let (_, answering) = self.nodes[address];
        let delivery = self.delivery(answering);
        let application = delivery.message.application_properties().unwrap_or_default();
        let settled = delivery.transfer.settled == Some(true);
        Response { message: delivery.message, application, settled }
    }

    /// An operation on an entity.
    pub(crate) fn manage<const N: usize>(
        &mut self,
        entity: &str,
        operation: &str,
        entries: [(&str, Value); N],
    ) -> Response {
        let operation = Value::from(format!("com.microsoft:{operation}"));
        let application = arguments([("operation", operation)]);
        self.ask(&format!("{entity}/$management"), &application, &arguments(entries).into())
    }

    /// The same, on behalf of a link.
    pub(crate) fn manage_for<const N: usize>(
        &mut self,
        entity: &str,
        link: &str,
        operation: &str,
        entries: [(&str, Value); N],
    ) -> Response {
        let operation = Value::from(format!("com.microsoft:{operation}"));
        let application = arguments([("operation", operation), ("associated-link-name", Value::from(link))]);
        self.ask(&format!("{entity}/$management"), &application, &arguments(entries).into())
    }

    /// Puts a token; returns the status, and the condition of a refusal.
    pub(crate) fn put_token(&mut self, audience: &str, token: &str) -> (i32, String) {
        let application = arguments([
            ("operation", Value::from("put-token")),
            ("type", Value::from("servicebus.windows.net:sastoken")),
            ("name", Value::from(audience)),
        ]);
        let response = self.ask("$cbs", &application, &Value::from(token));
        cbs_told(&response)
    }

    /// How many messages wait for a receiver, looked at without taking any.
    pub(crate) fn peek_all(&mut self, entity: &str) -> Vec<Message> {
        let entries = [("from-sequence-number", Value::Long(1)), ("message-count", Value::Int(200))];
        let response = self.manage(entity, "peek-message", entries);
        if response.status() == 204 {
            return Vec::new();
        }
        response.messages().into_iter().map(|(message, _)| message).collect()
    }
}

/// The status of a put-token, in the spelling of `$cbs`.
pub(crate) fn cbs_told(response: &Response) -> (i32, String) {
    let Some(Value::Int(status)) = response.application.value("status-code") else {
        panic!("status-code is an int: {:?}", response.application)
    };
    match response.application.value("error-condition") {
        Some(Value::Symbol(condition)) => (status, condition.as_str().to_owned()),
        None => (status, String::new()),
        other => panic!("error-condition is a symbol, not {other:?}"),
    }
}

/// So many milliseconds, as attaches give their patience.
pub(crate) fn millis(count: u64) -> Millis {
    Millis(count)
}
