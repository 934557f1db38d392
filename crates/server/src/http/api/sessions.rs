//! The sessions of a queue or subscription.

use axum::response::Response;
use vorrang_broker::api::{Answer, Purpose, Question};
use vorrang_engine::SessionId;

use super::call::{Call, ok};
use super::failure::Failure;
use super::model::{Page, Session};
use crate::http::fault::Fault;

/// Sessions on one page, unless the query says otherwise.
const PAGE: usize = 100;

/// A page of sessions that have messages or a state, in the order of their names.
pub(super) async fn list(call: Call) -> Result<Response, Failure> {
    let path = call.entity()?;
    let top: usize = call.query.number("top").unwrap_or(PAGE);
    let asker = call.asker()?;
    let found = asker.find(&path, Purpose::Receive).await?;
    let question = Question::Sessions {
        mailbox: found.mailbox,
        updated_after: None,
        after: call.query.text("after").map(SessionId::from),
        skip: 0,
        top: top.saturating_add(1),
    };
    let mut sessions = match asker.question(question, &path.to_string()).await? {
        Answer::Sessions(sessions) => sessions,
        other => return Err(Fault::unexpected(&other).into()),
    };
    let more = sessions.len() > top;
    sessions.truncate(top);
    let last = sessions.last().filter(|_| more);
    let next = last.map(|last| format!("{}?{}", call.path, call.query.with("after", &last.to_string())));
    let items = sessions.iter().map(|session| Session { session_id: session.to_string() }).collect();
    ok(&Page { items, next })
}
