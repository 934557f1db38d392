//! Request and reply: a message that says where its answer goes, and the wait for that answer.
//!
//! Every call has a session of its own on a reply queue that requires sessions, so that callers never see each
//! other's replies and nothing has to be sorted out.

use std::time::{Duration, SystemTime};

use tokio::time::{Instant, timeout_at};

use crate::admin::QueueProperties;
use crate::client::{Client, random};
use crate::error::Error;
use crate::message::Message;
use crate::received::Received;
use crate::session::SessionReceiver;

/// A session's lock is renewed when this much of it is left, at least.
const RENEW_BEFORE: Duration = Duration::from_secs(5);

/// A reply queue that was made here and has not been used for so long is deleted by the broker.
const IDLE_MAX: Duration = Duration::from_mins(10);

/// Where replies come.
pub(crate) struct Replies<'c> {
    pub(crate) queue: &'c str,
    /// Where the queue is made when it is missing.
    pub(crate) admin: Option<&'c str>,
}

impl Replies<'_> {
    async fn accept(&self, client: &Client, session: &str, wait: Duration) -> Result<SessionReceiver, Error> {
        let accepted = client.accept_session(self.queue, Some(session), wait).await;
        let (Err(Error::NotFound(_)), Some(url)) = (&accepted, self.admin) else { return accepted };
        let wanted = QueueProperties::new(self.queue).with_sessions().with_auto_delete_on_idle(IDLE_MAX);
        client.admin(url)?.create_queue_if_missing(&wanted).await?;
        client.accept_session(self.queue, Some(session), wait).await
    }
}

/// Sends `message` to `queue` and waits for the reply.
pub(crate) async fn call(
    client: &Client,
    queue: &str,
    replies: &Replies<'_>,
    message: Message,
    time_out: Duration,
) -> Result<Received, Error> {
    let until = Instant::now() + time_out;
    let calling = async {
        let session = format!("call-{:016x}{:016x}", random()?, random()?);
        let reply_queue = replies.queue;
        let mut replies = replies.accept(client, &session, time_out).await?;
        let message = match message.message_id() {
            Some(_) => message,
            None => message.with_id(session.clone()),
        };
        let id = message.message_id().unwrap_or_default();
        let message = message.with_reply_to(reply_queue).with_reply_to_session(session);
        client.sender(queue).await?.send(message).await?;
        let reply = wait_for(&mut replies, &id).await?;
        replies.complete(&reply).await?;
        Ok(reply)
    };
    match timeout_at(until, calling).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::Timeout(time_out)),
    }
}

/// The reply to the request with this id; the session stays locked meanwhile.
async fn wait_for(replies: &mut SessionReceiver, id: &str) -> Result<Received, Error> {
    loop {
        let left = replies.locked_until().and_then(|until| until.duration_since(SystemTime::now()).ok());
        let left = left.unwrap_or_default();
        let renew_in = left.saturating_sub(RENEW_BEFORE).max(left / 2);
        match tokio::time::timeout(renew_in, replies.recv()).await {
            Ok(Some(reply)) if reply.correlation_id().is_none_or(|correlated| correlated == id) => {
                return Ok(reply);
            }
            // Somebody answered a question that was not asked here.
            Ok(Some(stray)) => replies.complete(&stray).await?,
            Ok(None) => return Err(replies.ending().cloned().unwrap_or(Error::Closed)),
            Err(_) => drop(replies.renew_lock().await?),
        }
    }
}

/// Sends a reply to where the request wants it.
pub(crate) async fn reply(client: &Client, request: &Received, reply: Message) -> Result<(), Error> {
    let Some(queue) = request.reply_to() else {
        return Err(Error::InvalidArgument("the request does not say where replies go".into()));
    };
    let mut reply = match request.message_id() {
        Some(id) => reply.with_correlation_id(id),
        None => reply,
    };
    if let Some(session) = request.reply_to_session() {
        reply = reply.with_session(session);
    }
    client.sender(queue).await?.send(reply).await
}
