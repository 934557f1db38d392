//! Every operation, from the bytes of a request to the bytes of a response.

mod answers;
mod nonsense;
mod requests;
mod rules;

use bytes::Bytes;
use vorrang_amqp::descriptor;
use vorrang_amqp::message::{
    Header, Message, MessageId, Properties, put_data, put_header, put_map_section, put_properties, put_value,
};
use vorrang_amqp::value::{Map, Value};
use vorrang_broker::api::Link;
use vorrang_broker::shard::Body;
use vorrang_engine::message::{Delivery, MessageState};
use vorrang_engine::{
    EntityId, Level, Location, LockToken, MailboxId, Sequence, SessionId, Span, Timestamp, TransactionId,
};

use super::plan::{Context, Plan, Reaction, plan};
use super::request::Request;
use super::response::Response;
use crate::front::condition::Told;
use crate::front::links::Managed;

const NOW: Timestamp = Timestamp(1_000_000);
/// The session that the asking connection holds, and the receiver that holds it.
const HELD: &str = "held";
const HOLDER: Link = Link(9);

fn queue() -> Managed {
    let entity = EntityId(3);
    Managed { entity, mailbox: MailboxId::main(entity), path: "orders".into(), message_bytes_max: 262_144 }
}

fn dead_letters() -> Managed {
    let mailbox = MailboxId::dead_letter(EntityId(3));
    Managed { mailbox, path: "orders/$DeadLetterQueue".into(), ..queue() }
}

fn subscription() -> Managed {
    Managed { path: "news/Subscriptions/all".into(), ..queue() }
}

/// Arguments with string keys.
fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    entries.into_iter().collect()
}

fn encoded_request(operation: &str, body: &Value) -> Bytes {
    let mut bytes = Vec::new();
    let id = Some(MessageId::Ulong(7));
    put_properties(&mut bytes, &Properties { message_id: id, ..Properties::default() });
    put_map_section(&mut bytes, descriptor::APPLICATION_PROPERTIES, |map| {
        map.entry(&"operation", &format!("com.microsoft:{operation}").as_str());
    });
    put_value(&mut bytes, body);
    bytes.into()
}

fn ask_in(
    transaction: Option<TransactionId>,
    managed: &Managed,
    operation: &str,
    arguments: Map,
) -> Result<Plan, Told> {
    let request = Request::read(encoded_request(operation, &Value::Map(arguments))).unwrap();
    let holder = |session: Option<&SessionId>| match session {
        Some(session) => (session.as_str() == HELD).then_some(HOLDER),
        None => None,
    };
    plan(&request, &Context { managed, transaction, now: NOW, holder: &holder })
}

fn ask(managed: &Managed, operation: &str, arguments: Map) -> Result<Plan, Told> {
    ask_in(None, managed, operation, arguments)
}

/// Status, condition and body, read back from the bytes.
fn read_back(response: &Response) -> (i32, Option<String>, Map) {
    let message = Message::parse(response.encode(Some(MessageId::Ulong(7))).freeze()).unwrap();
    assert_eq!(message.properties().unwrap().unwrap().correlation_id, Some(MessageId::Ulong(7)));
    let properties = message.application_properties().unwrap();
    let Some(Value::Int(status)) = properties.value("statusCode") else { panic!("a status is an int") };
    let condition = properties.value("errorCondition").map(|condition| match condition {
        Value::Symbol(condition) => condition.as_str().to_owned(),
        other => panic!("a condition is a symbol, not {other:?}"),
    });
    let Some(Value::Map(body)) = message.value().unwrap() else { panic!("a body is a map") };
    (status, condition, body)
}

fn read_reaction(reaction: &Reaction) -> (i32, Option<String>, Map) {
    read_back(&reaction.response)
}

fn delivery(sequence: u64, state: MessageState, token: Option<LockToken>) -> Delivery {
    Delivery {
        mailbox: queue().mailbox,
        sequence: Sequence(sequence),
        first_sequence: None,
        location: Location(sequence),
        size: 100,
        level: Level(4),
        state,
        deliveries: 0,
        enqueued: Timestamp(500),
        time_to_live: Span::FOREVER,
        expires: Timestamp::NEVER,
        scheduled_for: None,
        token,
        locked_until: token.map(|_| Timestamp(900)),
        session: None,
        dead_letter_source: None,
        overlay: None,
    }
}

/// A stored message of a known id and body.
fn stored(body: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    put_header(&mut bytes, &Header::default());
    let message_id = Some(MessageId::String("m".into()));
    put_properties(&mut bytes, &Properties { message_id, ..Properties::default() });
    put_data(&mut bytes, body);
    bytes.into()
}

fn body(bytes: Bytes) -> Body {
    Body { bytes, assigned_id: None }
}
