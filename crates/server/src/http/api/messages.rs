//! Messages: browse, look at one, ask why it waits, send.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use smallvec::SmallVec;
use vorrang_broker::api::{Acceptance, Answer, Only, Operation, Purpose, Question};
use vorrang_engine::entity::EntityPath;
use vorrang_engine::message::MessageState;
use vorrang_engine::{Delivery, Incoming, Level, Reply, Sequence, SessionId};
use vorrang_filter::{Filter, Parameters, Sql};

use super::asker::Asker;
use super::call::{Call, answer, ok, unquoted};
use super::complaint::Complaints;
use super::failure::Failure;
use super::model::{self, NewMessage, Page, Sent};
use super::translation::{explanation, message, outgoing};
use crate::http::fault::Fault;

/// Messages on one page, unless the query says otherwise.
const PAGE: usize = 50;
/// Bytes of stored messages that are read for one page; a page ends early there, but never before its
/// first message.
const PAGE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of a body that brings messages; more goes over AMQP.
const SEND_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Reads a Service Bus SQL condition.
pub(super) fn read_filter(text: &str, field: &str, complaints: &mut Complaints) -> Option<Arc<Filter>> {
    let parsed = complaints.check(field, Sql::parse(text, Parameters::default()));
    parsed.map(|sql| Arc::new(Filter::from(sql)))
}

/// Looks at messages of a mailbox from a number on.
pub(super) async fn peek(
    asker: &Asker,
    question: Question,
    path: &EntityPath,
) -> Result<vorrang_engine::browse::Peeked, Failure> {
    match asker.question(question, &path.to_string()).await? {
        Answer::Peeked(peeked) => Ok(peeked),
        other => Err(Fault::unexpected(&other).into()),
    }
}

/// A page of messages.
pub(super) async fn browse(call: Call) -> Result<Response, Failure> {
    let path = call.mailbox()?;
    let mut complaints = Complaints::default();
    let filter = call.query.text("filter").and_then(|text| read_filter(text, "filter", &mut complaints));
    complaints.finish(())?;
    let state = call.query.text("state").map(|state| match state {
        "deferred" => MessageState::Deferred,
        "scheduled" => MessageState::Scheduled,
        _ => MessageState::Active,
    });
    let only = Only { state, level: call.query.number("level").map(Level), filter };
    let max: usize = call.query.number("top").unwrap_or(PAGE);
    let asker = call.asker()?;
    let found = asker.find(&path, Purpose::Receive).await?;
    let question = Question::Peek {
        mailbox: found.mailbox,
        from: Sequence(call.query.number("from").unwrap_or(0)),
        max,
        session: call.query.text("session").map(SessionId::from),
        only,
    };
    let peeked = peek(&asker, question, &path).await?;
    let (messages, next) = fitting(peeked.messages, peeked.next);
    let settings = found.description.outlet().map(|outlet| &outlet.priority);
    let with_body = call.query.flag("body");
    let read = asker.payloads(messages).await;
    let items: Vec<model::Message> = read
        .iter()
        .map(|(delivery, body)| message::shown(delivery, body.as_ref(), settings, with_body))
        .collect();
    let next = next.map(|next| format!("{}?{}", call.path, call.query.with("from", &next.0.to_string())));
    ok(&Page { items, next })
}

/// As many messages as may be read for one page, and where to go on.
fn fitting(mut messages: Vec<Delivery>, next: Option<Sequence>) -> (Vec<Delivery>, Option<Sequence>) {
    let mut bytes = 0_u64;
    let fits = |delivery: &Delivery| {
        let first = bytes == 0;
        bytes = bytes.saturating_add(u64::from(delivery.size));
        first || bytes <= PAGE_BYTES_MAX
    };
    match messages.iter().map(fits).position(|fits| !fits) {
        None => (messages, next),
        Some(place) => {
            let rest = messages.split_off(place);
            (messages, rest.first().map(|delivery| delivery.sequence))
        }
    }
}

/// One message with its body.
pub(super) async fn show(call: Call) -> Result<Response, Failure> {
    let (path, sequence) = (call.mailbox()?, call.sequence()?);
    let asker = call.asker()?;
    let found = asker.find(&path, Purpose::Receive).await?;
    let (mailbox, max) = (found.mailbox, 1);
    let question = Question::Peek { mailbox, from: sequence, max, session: None, only: Only::default() };
    let peeked = peek(&asker, question, &path).await?;
    let delivery = peeked.messages.into_iter().find(|delivery| delivery.sequence == sequence);
    let missing = || Failure::not_found(format!("there is no message {sequence} in '{path}'"));
    let read = asker.payloads(vec![delivery.ok_or_else(missing)?]).await;
    let (delivery, body) = read.first().ok_or_else(missing)?;
    let settings = found.description.outlet().map(|outlet| &outlet.priority);
    ok(&message::shown(delivery, body.as_ref(), settings, true))
}

/// Why a message waits.
pub(super) async fn explain(call: Call) -> Result<Response, Failure> {
    let (path, sequence) = (call.mailbox()?, call.sequence()?);
    let asker = call.asker()?;
    let found = asker.find(&path, Purpose::Receive).await?;
    let question = Question::Explain { mailbox: found.mailbox, sequence };
    match asker.question(question, &path.to_string()).await? {
        Answer::Explained(found) => ok(&explanation::shown(sequence, &found)),
        other => Err(Fault::unexpected(&other).into()),
    }
}

/// Sends messages: all or none.
pub(super) async fn send(mut call: Call) -> Result<Response, Failure> {
    let path = call.entity()?;
    let bytes = call.bytes(SEND_BYTES_MAX).await?;
    let messages = read_messages(&bytes)?;
    let asker = call.asker()?;
    let found = asker.find(&path, Purpose::Send).await?;
    let operation = Operation::Send {
        entity: found.entity,
        via: None,
        transaction: None,
        messages,
        acceptance: Acceptance::Numbers,
    };
    match asker.perform(operation, &path.to_string()).await? {
        Reply::Sent { sequences } => {
            let sequence_numbers = sequences.iter().map(|sequence| sequence.0).collect();
            answer(StatusCode::CREATED, &Sent { sequence_numbers })
        }
        other => Err(Fault::unexpected(&other).into()),
    }
}

/// Reads one message, or a list of them.
pub(super) fn read_messages(bytes: &[u8]) -> Result<SmallVec<[Incoming; 1]>, Failure> {
    let json: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|error| Failure::malformed(format!("the body is not JSON: {error}")))?;
    let items = match json {
        serde_json::Value::Array(items) => items,
        one => vec![one],
    };
    if items.is_empty() {
        return Err(Failure::malformed("there is no message in the list"));
    }
    let mut complaints = Complaints::default();
    let mut messages = SmallVec::new();
    for (index, item) in items.into_iter().enumerate() {
        let field = format!("[{index}]");
        if !item.is_object() {
            complaints.add(field, "must be a JSON object");
            continue;
        }
        let given = serde_json::from_value::<NewMessage>(item).map_err(|error| unquoted(&error));
        let given = complaints.check(&field, given);
        messages.extend(given.and_then(|given| outgoing::read(&given, &field, &mut complaints)));
    }
    complaints.finish(messages)
}
