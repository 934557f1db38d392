//! Sessions: their locks, their state, and which there are.
//!
//! Whoever asks about a session must hold it, on the same connection; only the list of sessions is for
//! everybody who may receive.

use bytes::Bytes;
use vorrang_amqp::value::{Array, ArrayElement, MapBuilder, Value};
use vorrang_broker::api::{Link, Operation, Question};
use vorrang_engine::{SessionId, Timestamp};

use super::arguments::{Arguments, argument_error};
use super::locks::wire_time;
use super::plan::{Context, Plan, Reading};
use super::response::Response;
use crate::front::condition::{Told, name};

/// From here on a time means that the list is not about times: 10000-01-01, which is how .NET's last
/// moment comes over the wire.
const ANY_TIME: Timestamp = Timestamp(253_402_300_800_000);

/// Sessions in one response; more are left for the next page.
const PAGE_MAX: u32 = 1_000;

/// `renew-session-lock`.
pub(super) fn renew(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let (session, link) = held(arguments, context)?;
    let operation = Operation::RenewSession { mailbox: context.managed.mailbox, session, link };
    Ok(Plan::new(operation, Reading::Expiration))
}

/// When the renewed lock ends.
pub(super) fn renewed(until: Timestamp) -> Response {
    Response::of("expiration", wire_time(until))
}

/// `get-session-state`.
pub(super) fn state(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let (session, link) = held(arguments, context)?;
    let question = Question::SessionState { mailbox: context.managed.mailbox, session, link };
    Ok(Plan::new(Operation::Ask(question), Reading::State))
}

/// The state. Where there is none the key is there with a null: some clients look it up without asking.
pub(super) fn state_is(state: Option<Bytes>) -> Response {
    Response::of("session-state", state)
}

/// `set-session-state`; a null clears it.
pub(super) fn set_state(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let (session, link) = held(arguments, context)?;
    let state = match arguments.value("session-state") {
        None => None,
        // A copy: the state outlives the buffer it came in.
        Some(Value::Binary(bytes)) => Some(Bytes::copy_from_slice(&bytes)),
        Some(_) => return Err(argument_error("'session-state' must be a binary or null.")),
    };
    let operation = Operation::SetSessionState { mailbox: context.managed.mailbox, session, link, state };
    Ok(Plan::new(operation, Reading::Nothing))
}

/// `get-message-sessions`: those with messages or state, or those whose state has changed since a time.
pub(super) fn list(arguments: &Arguments, context: &Context<'_>) -> Result<Plan, Told> {
    let skip = arguments.count("skip")?.unwrap_or(0);
    let question = Question::Sessions {
        mailbox: context.managed.mailbox,
        updated_after: arguments.time("last-updated-time")?.filter(|time| *time < ANY_TIME),
        after: arguments.kept_text("last-session-id")?.map(SessionId),
        skip: usize::try_from(skip).unwrap_or(usize::MAX),
        top: usize::try_from(arguments.count("top")?.unwrap_or(PAGE_MAX).min(PAGE_MAX)).unwrap_or(usize::MAX),
    };
    Ok(Plan::new(Operation::Ask(question), Reading::Sessions { skip }))
}

/// A page of sessions, and where the next begins.
pub(super) fn listed(sessions: &[SessionId], skip: u32) -> Response {
    if sessions.is_empty() {
        return Response::nothing();
    }
    let next = u32::try_from(sessions.len()).unwrap_or(u32::MAX).saturating_add(skip);
    let mut body = MapBuilder::default();
    body.push(&"skip", &i32::try_from(next).unwrap_or(i32::MAX));
    body.push(&"sessions-ids", &Array::of(sessions.iter().map(Name)));
    Response::with(body.finish())
}

/// The words for a session that the client does not hold, or no longer.
pub(super) fn lock_lost() -> Told {
    let text = "The session lock has expired or is held by another receiver. Accept the session again.";
    Told::new(name::SESSION_LOCK_LOST, 410, text)
}

/// The session that is asked about, and the receiver that holds it.
fn held(arguments: &Arguments, context: &Context<'_>) -> Result<(SessionId, Link), Told> {
    let session = arguments.required_session()?;
    let link = (context.holder)(Some(&session)).ok_or_else(lock_lost)?;
    Ok((session, link))
}

/// A session's name as an item of an array.
struct Name<'a>(&'a SessionId);

impl ArrayElement for Name<'_> {
    /// A string with its length in four bytes.
    const CONSTRUCTOR: u8 = 0xb1;

    fn append(&self, body: &mut Vec<u8>) {
        let text = self.0.as_str().as_bytes();
        let length = u32::try_from(text.len()).expect("the engine keeps no session with a name of 4 GiB");
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(text);
    }
}
