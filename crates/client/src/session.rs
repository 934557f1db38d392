//! Sessions: messages that belong together, received in order by one receiver at a time.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use vorrang_amqp::ticks::time_of_ticks;
use vorrang_amqp::value::Value;

use crate::client::Client;
use crate::entity::Source;
use crate::error::Error;
use crate::receiver::{Extras, Receiver, ReceiverOptions};
use crate::settle::Settler;
use crate::wall;

pub(crate) const SESSION_FILTER: &str = "com.microsoft:session-filter";
const LOCKED_UNTIL: &str = "com.microsoft:locked-until-utc";

/// Receives the messages of one session that it has locked. Everything a [`Receiver`] can do, and the session's state.
///
/// The lock ends with the connection: then [`Receiver::recv`] returns none, and the session must be accepted anew.
#[derive(Debug)]
pub struct SessionReceiver {
    receiver: Receiver,
    session: Session,
    locked_until: Option<SystemTime>,
}

/// A locked session, without its messages: its id, its lock and its state. Cheap to clone, for handlers that run elsewhere.
#[derive(Debug, Clone)]
pub struct Session {
    settler: Settler,
    id: Arc<str>,
}

impl Deref for SessionReceiver {
    type Target = Receiver;

    fn deref(&self) -> &Receiver {
        &self.receiver
    }
}

impl DerefMut for SessionReceiver {
    fn deref_mut(&mut self) -> &mut Receiver {
        &mut self.receiver
    }
}

impl SessionReceiver {
    pub(crate) async fn accept(
        client: &Client,
        source: Source,
        session: Option<&str>,
        wait: Duration,
        options: ReceiverOptions,
    ) -> Result<Self, Error> {
        let filter = session.map_or(Value::Null, Value::from);
        let extras = Extras { session_filter: Some(filter), wait: Some(wait) };
        let opened = Receiver::open_with(client, source, options, extras).await;
        let (receiver, opened) = opened.map_err(|error| match error {
            Error::Refused { condition, .. } if &*condition == "com.microsoft:timeout" => {
                Error::Timeout(wait)
            }
            other => other,
        })?;
        let session = receiver.settler().session().map(str::to_owned);
        let id = session.ok_or_else(|| Error::Protocol("the broker names no session".into()))?;
        let session = Session { settler: receiver.settler(), id: id.into() };
        let until = opened.answer.properties.as_ref().and_then(|map| map.value(LOCKED_UNTIL));
        let until = until.and_then(|ticks| ticks.as_i64()).map(time_of_ticks);
        Ok(SessionReceiver { receiver, session, locked_until: until.and_then(wall::system_time) })
    }

    /// The session, to be handed on.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The session's id.
    #[must_use]
    pub fn session_id(&self) -> &str {
        self.session.id()
    }

    /// Until when the session is locked, as far as we know.
    #[must_use]
    pub fn locked_until(&self) -> Option<SystemTime> {
        self.locked_until
    }

    /// Keeps the session locked for another lock duration; returns until when.
    pub async fn renew_lock(&mut self) -> Result<SystemTime, Error> {
        let until = self.session.renew_lock().await?;
        self.locked_until = Some(until);
        Ok(until)
    }

    /// What was stored with the session.
    pub async fn state(&self) -> Result<Option<Bytes>, Error> {
        self.session.state().await
    }

    /// Stores something with the session, or nothing.
    pub async fn set_state(&self, state: Option<Bytes>) -> Result<(), Error> {
        self.session.set_state(state).await
    }

    /// Gives back what was fetched, and the session.
    pub async fn close(self) -> Result<(), Error> {
        self.receiver.close().await
    }
}

impl AsRef<Settler> for SessionReceiver {
    fn as_ref(&self) -> &Settler {
        self.receiver.as_ref()
    }
}

impl Session {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Keeps the session locked for another lock duration; returns until when.
    pub async fn renew_lock(&self) -> Result<SystemTime, Error> {
        let answer = self.ask("com.microsoft:renew-session-lock", None).await?;
        let until = answer.value("expiration")?.as_timestamp().and_then(wall::system_time);
        until.ok_or_else(|| Error::Protocol("the answer names no time".into()))
    }

    /// What was stored with the session.
    pub async fn state(&self) -> Result<Option<Bytes>, Error> {
        let answer = self.ask("com.microsoft:get-session-state", None).await?;
        Ok(answer.body.value("session-state").and_then(|state| state.as_binary().cloned()))
    }

    /// Stores something with the session, or nothing.
    pub async fn set_state(&self, state: Option<Bytes>) -> Result<(), Error> {
        let state = Some(("session-state", Value::from(state)));
        self.ask("com.microsoft:set-session-state", state).await.map(|_| ())
    }

    async fn ask(
        &self,
        operation: &'static str,
        more: Option<(&'static str, Value)>,
    ) -> Result<crate::driver::Response, Error> {
        let mut arguments = vec![("session-id", Value::from(&*self.id))];
        arguments.extend(more);
        self.settler.management().call_repeatable(operation, arguments).await
    }
}
