//! Results that wait for whoever asked: a store on the broker, made of what the broker has anyway.
//!
//! A results queue requires sessions; the session of a result is its correlation id. A result is one message or
//! several: *parts*, then the *last*, which is marked complete and says how many parts there are. A message is
//! there or not there, so nobody reads half of one; and a result counts only when its last message and every part it
//! names are there, so nobody reads half of a result either. A worker that died in between and puts everything
//! again does no harm: parts have numbers, and a number that is there twice is the same part.
//!
//! Waiting means holding the session, to which the broker sends what arrives: no polling, but the lock is renewed. Results
//! that nobody fetches are removed when their time is over.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};
use vorrang_client::{
    Client, Error, Message, Received, Sender, SenderOptions, SessionReceiver, Source, Value,
};

/// Marks the last message of a result.
const COMPLETE: &str = "vorrang-complete";
/// The number of a part, from 0; the last message has the number of parts.
const PART: &str = "vorrang-part";
/// Parts of one result; one more is refused.
pub const PARTS_MAX: u32 = 1_000;
/// How long one look for a session waits; a broker allows some minutes at most.
const LOOK_MAX: Duration = Duration::from_secs(30);
/// Pauses before a session that somebody else holds is asked for again.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Renewals are at least this far apart, however little is left of the lock.
const RENEW_APART_MIN: Duration = Duration::from_millis(100);

/// The results in one queue.
#[derive(Debug, Clone)]
pub struct Results {
    client: Client,
    source: Source,
    sender: std::sync::Arc<Sender>,
    time_to_live: Duration,
}

/// A whole result. Its messages stay locked until [`Finished::remove`], or go back when this is dropped.
#[derive(Debug)]
pub struct Finished {
    /// What the worker put last.
    pub body: Bytes,
    /// What it put before, in order.
    pub parts: Vec<Bytes>,
    session: SessionReceiver,
    messages: Vec<Received>,
}

impl Results {
    /// The results in `queue`, which requires sessions. Each lives for `time_to_live`.
    pub async fn open(client: &Client, queue: &str, time_to_live: Duration) -> Result<Results, Error> {
        // Putting a part twice does no harm, so a send of unknown outcome is sent again.
        let options = SenderOptions { resend: true };
        let sender = std::sync::Arc::new(client.sender_with(queue, options).await?);
        Ok(Results { client: client.clone(), source: Source::from(queue), sender, time_to_live })
    }

    /// Puts a part of a result; numbers go from 0 without gaps.
    pub async fn put(&self, correlation: &str, part: u32, body: impl Into<Bytes>) -> Result<(), Error> {
        if part >= PARTS_MAX {
            return Err(Error::Limit {
                what: "parts of a result",
                limit: usize::try_from(PARTS_MAX).unwrap_or(0),
            });
        }
        self.sender.send(self.message(correlation, part, body)).await
    }

    /// Puts the last message of a result that has so many parts: now it is complete.
    pub async fn complete(&self, correlation: &str, parts: u32, body: impl Into<Bytes>) -> Result<(), Error> {
        self.sender.send(self.message(correlation, parts, body).with_property(COMPLETE, true)).await
    }

    /// Waits until a result is complete. [`Error::Timeout`] if it is not in time; what was there stays.
    ///
    /// One caller at a time looks at a result: others wait until it has let go.
    pub async fn wait(&self, correlation: &str, within: Duration) -> Result<Finished, Error> {
        let until = Instant::now() + within;
        loop {
            let session = self.session(correlation, until, within).await?;
            match gather(session, until).await {
                Ok(finished) => return Ok(finished),
                Err(Error::Timeout(_)) => return Err(Error::Timeout(within)),
                // Messages came back with the session; they are fetched again.
                Err(error) if error.is_transient() || matches!(error, Error::SessionLockLost(_)) => {
                    sleep(PAUSE_MIN).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn session(
        &self,
        correlation: &str,
        until: Instant,
        within: Duration,
    ) -> Result<SessionReceiver, Error> {
        let mut pause = PAUSE_MIN;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Timeout(within));
            }
            let accepted =
                self.client.accept_session(self.source.clone(), Some(correlation), left.min(LOOK_MAX)).await;
            match accepted {
                Ok(session) => return Ok(session),
                Err(Error::Timeout(_)) => {}
                // Somebody else looks at it, or has let go only just now.
                Err(Error::SessionCannotBeLocked(_)) => {
                    sleep(pause.min(left)).await;
                    pause = pause.saturating_mul(2).min(PAUSE_MAX);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn message(&self, correlation: &str, part: u32, body: impl Into<Bytes>) -> Message {
        Message::new(body)
            .with_id(format!("{correlation}/{part}"))
            .with_session(correlation)
            .with_correlation_id(correlation)
            .with_property(PART, part)
            .with_time_to_live(self.time_to_live)
    }
}

impl Finished {
    /// The result has been made use of: it is removed.
    pub async fn remove(self) -> Result<(), Error> {
        for outcome in self.session.complete_all(&self.messages).await {
            outcome?;
        }
        self.session.close().await
    }

    /// The result stays for others until its time is over.
    pub async fn keep(self) -> Result<(), Error> {
        give_back(&self.session, &self.messages).await;
        self.session.close().await
    }
}

/// Takes messages until they are a whole result, and keeps the session locked meanwhile.
async fn gather(mut session: SessionReceiver, until: Instant) -> Result<Finished, Error> {
    let mut messages: Vec<Received> = Vec::new();
    loop {
        if let Some((body, parts)) = whole(&messages) {
            return Ok(Finished { body, parts, session, messages });
        }
        let left = session.locked_until().and_then(|locked| locked.duration_since(SystemTime::now()).ok());
        let renew_at = Instant::now() + (left.unwrap_or_default() / 2).max(RENEW_APART_MIN);
        match timeout_at(until.min(renew_at), session.recv()).await {
            Ok(Some(message)) => messages.push(message),
            Ok(None) => return Err(session.ending().cloned().unwrap_or(Error::Closed)),
            Err(_) if Instant::now() < until => drop(session.renew_lock().await?),
            Err(_) => {
                give_back(&session, &messages).await;
                session.close().await?;
                return Err(Error::Timeout(Duration::ZERO));
            }
        }
    }
}

/// Gives messages back without counting a delivery; where that fails their session's end does it.
async fn give_back(session: &SessionReceiver, messages: &[Received]) {
    for message in messages {
        let _ = session.suspend(message, Vec::new()).await;
    }
}

/// The last message's body and all parts, if they are all there.
fn whole(messages: &[Received]) -> Option<(Bytes, Vec<Bytes>)> {
    let part =
        |message: &Received| message.property(PART).and_then(|value| u32::try_from(value.as_u64()?).ok());
    let complete = |message: &&Received| message.property(COMPLETE) == Some(Value::Boolean(true));
    let last = messages.iter().find(complete)?;
    let count = part(last)?;
    let others = messages.iter().filter(|message| !complete(message));
    let by_number: BTreeMap<u32, &Received> =
        others.filter_map(|message| Some((part(message)?, message))).collect();
    let parts = (0..count.min(PARTS_MAX)).map(|number| by_number.get(&number).map(|part| part.body()));
    Some((last.body(), parts.collect::<Option<Vec<Bytes>>>()?))
}
