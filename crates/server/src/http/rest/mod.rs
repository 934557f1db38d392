//! Messages over plain HTTP: send, receive, settle, for scripts and tools without an AMQP client.
//!
//! The paths and headers are those of Service Bus. A request is one connection to the broker for as
//! long as it lasts; a lock outlives it, because it is known by its token. A message that was on its way
//! to a client that has gone is given back ([`crate::caller`]).

mod capitals;
mod headers;
mod incoming;
mod outgoing;
mod properties;

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use smallvec::smallvec;
use tokio::time::Instant;
use vorrang_amqp::message::Message;
use vorrang_broker::api::{Acceptance, Answer, Found, Operation, Purpose, Received, Refused};
use vorrang_broker::shard::{Body as Payload, Unreadable};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::entity::EntityPath;
use vorrang_engine::{LockToken, MailboxId, Refusal, Reply};

use self::capitals::Capitals;
use super::address::Verb;
use super::body;
use super::call::Call;
use super::fault::Fault;
use crate::caller::Answered;
use crate::front::condition::name;
use crate::front::connection::wall_time;
use crate::{date, http::Site};

/// How long a receive waits that does not say.
const WAIT: Duration = Duration::from_mins(1);
/// How long a receive may wait at most; a longer wish is shortened.
const WAIT_MAX: Duration = Duration::from_mins(2);
/// What a batch may be beyond one message: the quotes and braces of JSON around its parts.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Answers a request about messages.
pub(super) async fn serve(call: &Call, path: EntityPath, verb: Verb, body: Body) -> Result<Response, Fault> {
    let shown = path.to_string();
    if path.management {
        return Err(Fault::not_found(&shown));
    }
    match verb {
        Verb::Send => send(call, path, &shown, body).await,
        Verb::PeekLock => receive(call, path, &shown, ReceiveMode::PeekLock).await,
        Verb::ReceiveAndDelete => receive(call, path, &shown, ReceiveMode::ReceiveAndDelete).await,
        Verb::Complete(token) => settle(call, path, &shown, token, Settlement::Complete).await,
        Verb::Unlock(token) => {
            let abandon = Settlement::Abandon { changes: None, delay: None };
            settle(call, path, &shown, token, abandon).await
        }
        Verb::Renew(token) => renew(call, path, &shown, token).await,
    }
}

/// The data plane's own words: what is gone is 410, what was never locked is 404.
fn fault(refused: &Refused, path: &str) -> Fault {
    let fault = Fault::refused(refused, path);
    let status = match refused {
        Refused::NotFound { .. }
        | Refused::Impossible(Refusal::EntityNotFound { .. } | Refusal::MailboxNotFound { .. }) => {
            StatusCode::GONE
        }
        Refused::Impossible(Refusal::LockLost { .. }) => StatusCode::NOT_FOUND,
        _ => fault.status,
    };
    Fault { status, ..fault }
}

async fn ask(call: &Call, operation: Operation, shown: &str) -> Result<Answered, Fault> {
    call.caller.ask(operation).await?.map_err(|refused| fault(&refused, shown))
}

async fn find(call: &Call, path: EntityPath, purpose: Purpose, shown: &str) -> Result<Found, Fault> {
    match ask(call, Operation::Find { path, purpose }, shown).await? {
        Answered::Answer(Answer::Found(found)) => Ok(found),
        other => Err(Fault::unexpected(&other)),
    }
}

async fn send(call: &Call, path: EntityPath, shown: &str, body: Body) -> Result<Response, Fault> {
    let found = find(call, path, Purpose::Send, shown).await?;
    let Some(intake) = found.description.intake() else {
        let text = format!("'{shown}' is a subscription; messages are sent to its topic.");
        return Err(Fault::new(StatusCode::BAD_REQUEST, name::NOT_ALLOWED, text));
    };
    let message_bytes_max = usize::try_from(intake.message_bytes_max()).unwrap_or(usize::MAX);
    let batch = incoming::is_batch(&call.headers);
    let bytes_max = if batch { message_bytes_max.max(BATCH_BYTES_MAX) } else { message_bytes_max };
    let bytes = body::read(body, bytes_max).await.map_err(|fault| match fault.status {
        // The service calls this a quota.
        StatusCode::PAYLOAD_TOO_LARGE => Fault { status: StatusCode::FORBIDDEN, ..fault },
        _ => fault,
    })?;
    let messages = if batch {
        incoming::batch(&bytes)?.into_iter().collect()
    } else {
        smallvec![incoming::single(&call.headers, &call.spelling, &bytes)?]
    };
    let (entity, acceptance) = (found.entity, Acceptance::Numbers);
    ask(call, Operation::Send { entity, via: None, transaction: None, messages, acceptance }, shown).await?;
    Ok(StatusCode::CREATED.into_response())
}

async fn receive(call: &Call, path: EntityPath, shown: &str, mode: ReceiveMode) -> Result<Response, Fault> {
    let found = find(call, path, Purpose::Receive, shown).await?;
    let wait = call.query.number("timeout")?.map_or(WAIT, Duration::from_secs).min(WAIT_MAX);
    let mut stop = call.site.stop.clone();
    let received = tokio::select! {
        received = call.caller.receive(found.mailbox, mode, Instant::now() + wait) => received?,
        () = stop.requested() => {
            let text = "The broker is stopping; ask again when it is back.";
            return Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, name::INTERNAL_ERROR, text));
        }
    };
    let Some(received) = received.map_err(|refused| fault(&refused, shown))? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let locked = received.delivery.token.map(|token| (found.mailbox, token));
    match message(call, shown, received).await {
        Ok(response) => Ok(response),
        Err(fault) => {
            give_back(call, locked).await;
            Err(fault)
        }
    }
}

/// The message as a response; its bytes are read if they are not at hand.
async fn message(call: &Call, shown: &str, received: Received) -> Result<Response, Fault> {
    let Received { delivery, body } = received;
    let payload = match body {
        Some(payload) => payload,
        None => read_payload(&call.site, &delivery).await?,
    };
    if let Some(spans) = &call.site.watch.spans
        && let Ok(message) = Message::parse(payload.bytes.clone())
    {
        spans.delivered(shown, &delivery, &message, wall_time());
    }
    let origin = call.origin();
    let (mut response, capitals) = outgoing::response(&delivery, payload, |id, token| {
        format!("{}://{}/{shown}/messages/{id}/{token}", call.scheme(), origin.host)
    })?;
    response.extensions_mut().extend(capitals.spelling().await);
    Ok(response)
}

/// Reads from the disk, beside the tasks that serve connections.
async fn read_payload(site: &Site, delivery: &vorrang_engine::Delivery) -> Result<Payload, Fault> {
    let reader = site.broker.payloads().clone();
    let (location, size) = (delivery.location, delivery.size);
    let read = tokio::task::spawn_blocking(move || reader.read(location, size)).await;
    let failed = |text: String| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, name::INTERNAL_ERROR, text);
    match read {
        Ok(read) => read.map_err(|error: Unreadable| failed(format!("The message cannot be read: {error}."))),
        Err(_) => Err(failed("The message was not read: the server is stopping.".to_owned())),
    }
}

/// A message that could not be handed over is not kept from others.
async fn give_back(call: &Call, locked: Option<(MailboxId, LockToken)>) {
    let Some((mailbox, token)) = locked else { return };
    let (tokens, settlement) = (smallvec![token], Settlement::Release);
    // If it does not work the lock expires.
    let _ = call.caller.ask(Operation::Settle { mailbox, tokens, settlement, transaction: None }).await;
}

async fn settle(
    call: &Call,
    path: EntityPath,
    shown: &str,
    token: LockToken,
    settlement: Settlement,
) -> Result<Response, Fault> {
    let mailbox = find(call, path, Purpose::Receive, shown).await?.mailbox;
    let operation = Operation::Settle { mailbox, tokens: smallvec![token], settlement, transaction: None };
    ask(call, operation, shown).await?;
    Ok(StatusCode::OK.into_response())
}

async fn renew(call: &Call, path: EntityPath, shown: &str, token: LockToken) -> Result<Response, Fault> {
    let mailbox = find(call, path, Purpose::Receive, shown).await?.mailbox;
    let answered = ask(call, Operation::Renew { mailbox, tokens: smallvec![token] }, shown).await?;
    let Answered::Reply(Reply::Renewed { until }) = &answered else {
        return Err(Fault::unexpected(&answered));
    };
    let mut response = StatusCode::OK.into_response();
    if let Some(until) = until.first() {
        let text = serde_json::json!({ "LockedUntilUtc": date::rfc1123(*until) }).to_string();
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(properties::HEADER, value);
            let mut capitals = Capitals::default();
            capitals.note(properties::HEADER_WRITTEN);
            response.extensions_mut().extend(capitals.spelling().await);
        }
    }
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    Ok(response)
}
