//! Sending to a queue or topic.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep};
use vorrang_amqp::connection::OwnAttach;
use vorrang_amqp::message::BatchBuilder;
use vorrang_amqp::performative::{
    DeliveryState, ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode,
};
use vorrang_amqp::value::{Array, List, Map, Value};

use crate::backoff::{Attempts, RetryPolicy};
use crate::client::{Client, random};
use crate::driver::{Accepted, Command, Farewell, Hub, LinkKey, OpenLink, OpenRole, SendItem, SenderShared};
use crate::error::Error;
use crate::management::Management;
use crate::message::Message;

/// The format of a batch: a message whose data sections are messages.
const BATCH_FORMAT: u32 = 0x8001_3700;
/// Messages in one batch, whatever their size; the broker takes a few more.
const BATCH_MESSAGES_MAX: u32 = 4_000;
/// A batch on a link that names no limit.
const BATCH_BYTES: u64 = 256 * 1024;
/// Permits one sender has for what is on its way: one per started KiB. A sender waits when they are used up.
const ROOM: usize = 16 * 1024;
const ROOM_BYTES: usize = 1024;

/// How a sender sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderOptions {
    /// Send a message again whose outcome is unknown after the connection broke, if it has a message id.
    ///
    /// Only for entities that detect duplicates: on others the message may then be there twice. Without it such a
    /// send ends in [`Error::Ambiguous`].
    pub resend: bool,
}

/// Sends to a queue or topic. Cheap to clone; many sends may be under way at once.
#[derive(Debug, Clone)]
pub struct Sender {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    hub: Hub,
    link: LinkKey,
    shared: Arc<SenderShared>,
    room: Arc<Semaphore>,
    management: Management,
    entity: String,
    options: SenderOptions,
    retry: RetryPolicy,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.hub.farewell(Farewell::Link { link: self.link });
    }
}

/// A message on its way: resolves when the broker has taken or refused it.
#[derive(Debug)]
#[must_use = "the outcome is told by awaiting this"]
pub struct Submitted {
    answer: oneshot::Receiver<Result<Accepted, Error>>,
    /// Keeps the link until the outcome is known.
    sender: Sender,
}

impl Future for Submitted {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(cx).map(|answer| match answer {
            Ok(outcome) => outcome.map(|_| ()),
            Err(_) => Err(self.sender.inner.hub.ending()),
        })
    }
}

impl Sender {
    pub(crate) async fn open(client: &Client, entity: &str, options: SenderOptions) -> Result<Self, Error> {
        let shared = Arc::new(SenderShared::default());
        let attach = OwnAttach {
            snd_settle_mode: Some(SenderSettleMode::Unsettled),
            rcv_settle_mode: Some(ReceiverSettleMode::First),
            source: Some(Source::at(entity)),
            target: Some(TargetNode::Node(Target::at(entity))),
            ..OwnAttach::new("", Role::Sender)
        };
        let role = OpenRole::Sender { shared: Arc::clone(&shared) };
        let audiences = vec![entity.to_owned()];
        let opened = client
            .open_link(Duration::ZERO, |reply| OpenLink { attach, audiences, role, recover: true, reply })
            .await?;
        let inner = Inner {
            hub: client.hub().clone(),
            link: opened.link,
            shared,
            room: Arc::new(Semaphore::new(ROOM)),
            management: client.management(entity),
            entity: entity.to_owned(),
            options,
            retry: client.retry(),
        };
        Ok(Sender { inner: Arc::new(inner) })
    }

    /// Where this sender sends to.
    #[must_use]
    pub fn entity(&self) -> &str {
        &self.inner.entity
    }

    /// The largest message the entity takes, if it says so.
    #[must_use]
    pub fn message_bytes_max(&self) -> Option<u64> {
        Some(self.inner.shared.message_bytes_max.load(Ordering::Relaxed)).filter(|most| *most > 0)
    }

    /// Sends a message; done when the broker has it safe.
    ///
    /// Many sends on one sender may be awaited at once; they share round trips. A broker that is busy is asked again after a
    /// growing pause, for as long as [`RetryPolicy::give_up_after`].
    pub async fn send(&self, message: impl Into<Message>) -> Result<(), Error> {
        let message = message.into();
        let repeatable = self.inner.options.resend && message.message_id().is_some();
        let payload = message.encode();
        let submitted = self.submit_encoded(payload.clone(), 0, repeatable, None).await?;
        self.taken(submitted, payload, 0, repeatable).await
    }

    /// Waits for an outcome. What a busy broker refused it does not have, so it is sent again.
    async fn taken(
        &self,
        submitted: Submitted,
        payload: Bytes,
        message_format: u32,
        repeatable: bool,
    ) -> Result<(), Error> {
        let until = Instant::now() + self.inner.retry.give_up_after;
        let mut attempts = Attempts::after_one();
        let mut outcome = submitted.await;
        while let Err(Error::ServerBusy(_)) = outcome {
            let pause = attempts.next_pause(&self.inner.retry);
            if Instant::now() + pause >= until {
                break;
            }
            sleep(pause).await;
            outcome = self.submit_encoded(payload.clone(), message_format, repeatable, None).await?.await;
        }
        outcome
    }

    /// Hands a message over and returns at once; the outcome comes by awaiting what is returned. Messages submitted
    /// one after the other are sent in that order. Nothing is sent again that a busy broker refused, which would change it.
    ///
    /// Waits only when this sender has too much on its way already.
    pub async fn submit(&self, message: impl Into<Message>) -> Result<Submitted, Error> {
        let message = message.into();
        let repeatable = self.inner.options.resend && message.message_id().is_some();
        self.submit_encoded(message.encode(), 0, repeatable, None).await
    }

    /// Sends messages in as few transfers as the link's limit allows. Each batch is taken as a whole or not at all;
    /// with an error, batches before and beside the one it is about may have been taken.
    pub async fn send_all<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<(), Error> {
        let limit = usize::try_from(self.batch_bytes_max()).unwrap_or(usize::MAX);
        let mut under_way = Vec::new();
        let mut batch = BatchBuilder::default();
        let mut repeatable = self.inner.options.resend;
        for message in messages {
            let message = message.into();
            let encoded = message.encode();
            if batch.count() > 0
                && (batch.size_with(encoded.len()) > limit || batch.count() >= BATCH_MESSAGES_MAX)
            {
                let full = Bytes::from(std::mem::take(&mut batch).finish());
                let submitted = self.submit_encoded(full.clone(), BATCH_FORMAT, repeatable, None).await?;
                under_way.push((submitted, full, BATCH_FORMAT, repeatable));
                repeatable = self.inner.options.resend;
            }
            repeatable &= message.message_id().is_some();
            if batch.size_with(encoded.len()) > limit {
                // Too large for a batch; the entity may take it alone.
                let submitted = self.submit_encoded(encoded.clone(), 0, repeatable, None).await?;
                under_way.push((submitted, encoded, 0, repeatable));
                repeatable = self.inner.options.resend;
            } else {
                batch.push(&encoded);
            }
        }
        if batch.count() > 0 {
            let last = Bytes::from(batch.finish());
            let submitted = self.submit_encoded(last.clone(), BATCH_FORMAT, repeatable, None).await?;
            under_way.push((submitted, last, BATCH_FORMAT, repeatable));
        }
        for (submitted, payload, message_format, repeatable) in under_way {
            self.taken(submitted, payload, message_format, repeatable).await?;
        }
        Ok(())
    }

    /// Schedules messages for later; returns the numbers by which they can be cancelled.
    pub async fn schedule<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
        at: SystemTime,
    ) -> Result<Vec<i64>, Error> {
        self.schedule_in(messages.into_iter().map(Into::into), at, None).await
    }

    pub(crate) async fn schedule_in(
        &self,
        messages: impl Iterator<Item = Message>,
        at: SystemTime,
        state: Option<DeliveryState>,
    ) -> Result<Vec<i64>, Error> {
        let mut entries: Vec<Value> = Vec::new();
        for message in messages {
            let message = message.with_scheduled_time(at);
            let message = match message.message_id() {
                Some(_) => message,
                None => message.with_id(format!("{:016x}{:016x}", random()?, random()?)),
            };
            let id = message.message_id().unwrap_or_default();
            let mut entry = vec![("message-id", Value::from(id)), ("message", Value::from(message.encode()))];
            if let Some(session) = message.session_id() {
                entry.push(("session-id", Value::from(session)));
            }
            let entry: Map = entry.into_iter().map(|(name, value)| (Value::from(name), value)).collect();
            entries.push(Value::Map(entry));
        }
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let list: List = entries.into_iter().collect();
        let answer = self
            .inner
            .management
            .call("com.microsoft:schedule-message", vec![("messages", Value::List(list))], state)
            .await?;
        let number = |item: &Value| {
            item.as_i64().ok_or_else(|| Error::Protocol("a sequence number that is none".into()))
        };
        answer.items("sequence-numbers")?.iter().map(number).collect()
    }

    /// Cancels scheduled messages: all of them or, if one is not scheduled any more, none.
    pub async fn cancel(&self, sequence_numbers: &[i64]) -> Result<(), Error> {
        if sequence_numbers.is_empty() {
            return Ok(());
        }
        let numbers = Value::Array(Array::of(sequence_numbers.iter().copied()));
        let arguments = vec![("sequence-numbers", numbers)];
        self.inner
            .management
            .call("com.microsoft:cancel-scheduled-message", arguments, None)
            .await
            .map(|_| ())
    }

    pub(crate) async fn submit_encoded(
        &self,
        payload: Bytes,
        message_format: u32,
        repeatable: bool,
        state: Option<DeliveryState>,
    ) -> Result<Submitted, Error> {
        let size = u64::try_from(payload.len()).unwrap_or(u64::MAX);
        if let Some(limit) = self.message_bytes_max().filter(|limit| size > *limit) {
            return Err(Error::TooLarge { size, limit });
        }
        let share = payload.len().div_ceil(ROOM_BYTES).clamp(1, ROOM);
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.inner.room).acquire_many_owned(share).await.map_err(|_| Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        let link = self.inner.link;
        let item = SendItem { link, payload, message_format, state, repeatable, room: Some(room), reply };
        self.inner.hub.command(Command::Send(item)).await?;
        Ok(Submitted { answer, sender: self.clone() })
    }

    fn batch_bytes_max(&self) -> u64 {
        match self.inner.shared.batch_bytes_max.load(Ordering::Relaxed) {
            0 => BATCH_BYTES,
            most => most,
        }
    }
}
