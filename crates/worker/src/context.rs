//! What a handler knows and can do besides its message.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use tokio::sync::Notify;
use vorrang_client::{Abandon, Client, DeadLetter, Error, Message, Received, Session, Settler, Text, Value};

use crate::gate::Gate;
use crate::outcome::{Checkpoint, Outcome};
use crate::plan::settlement::{Settlement, Verdict, settlement};
use crate::pool::{CHECKPOINT, Options, PREEMPTIONS, Reins};
use crate::replies::Replies;

/// The application property that tells what went wrong at the last attempt.
pub const LAST_ERROR: &str = "vorrang-error";

/// The surroundings of one message; cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

/// What the pump and the handler share about one task.
#[derive(Debug)]
struct Inner {
    entity: Arc<str>,
    level: u8,
    checkpoint: Option<Checkpoint>,
    message: Received,
    settler: Option<Settler>,
    session: Option<Session>,
    options: Arc<Options>,
    replies: Arc<Replies>,
    gate: Gate,
    reins: Reins,
    asked: Asked,
    preemptions: AtomicU32,
    /// Settled, or the lock is gone: nothing more is told to the broker.
    over: AtomicBool,
}

/// What is asked of a task.
#[derive(Debug, Default)]
struct Asked {
    to_yield: AtomicBool,
    cancelled: AtomicBool,
    changed: Notify,
}

impl Context {
    pub(crate) fn new(
        entity: Arc<str>,
        level: u8,
        checkpoint: Option<Checkpoint>,
        message: Received,
        settler: Option<Settler>,
        options: &Arc<Options>,
        replies: &Arc<Replies>,
    ) -> Context {
        Context {
            inner: Arc::new(Inner {
                entity,
                level,
                checkpoint,
                message,
                settler,
                session: None,
                options: Arc::clone(options),
                replies: Arc::clone(replies),
                gate: Gate::default(),
                reins: Reins::default(),
                asked: Asked::default(),
                preemptions: AtomicU32::new(0),
                over: AtomicBool::new(false),
            }),
        }
    }

    /// The same, for a message of a session that this pool has locked.
    pub(crate) fn in_session(mut self, session: Session) -> Context {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.session = Some(session);
        }
        self
    }

    /// The session the message belongs to, with its state, in a pool that serves sessions.
    pub fn session(&self) -> Option<&Session> {
        self.inner.session.as_ref()
    }

    /// The queue or subscription the message came from.
    pub fn entity(&self) -> &str {
        &self.inner.entity
    }

    /// The level the broker decided.
    pub fn level(&self) -> u8 {
        self.inner.level
    }

    /// How far an earlier delivery came, if it left a checkpoint.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.inner.checkpoint.as_ref()
    }

    /// Whether a higher message wants the slot: return [`Outcome::Suspend`] soon. It may be withdrawn when a slot
    /// becomes free first.
    pub fn should_yield(&self) -> bool {
        self.inner.asked.to_yield.load(Ordering::Acquire)
    }

    /// Waits until [`Context::should_yield`].
    pub async fn yield_requested(&self) {
        self.until(Context::should_yield).await;
    }

    /// Whether the work is in vain: the lock is lost, or the worker must stop now.
    pub fn is_cancelled(&self) -> bool {
        self.inner.asked.cancelled.load(Ordering::Acquire)
    }

    /// Waits until [`Context::is_cancelled`].
    pub async fn cancelled(&self) {
        self.until(Context::is_cancelled).await;
    }

    /// The gate that stops the task; for handlers whose work runs elsewhere, such as in a child process.
    pub fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// What ends the task.
    pub(crate) fn reins(&self) -> &Reins {
        &self.inner.reins
    }

    /// The client the message came through, to send to other entities.
    pub fn client(&self) -> &Client {
        self.inner.replies.client()
    }

    /// Answers whoever the message asks to answer, with its correlation.
    pub async fn reply(&self, body: impl Into<Bytes>) -> Result<(), Error> {
        self.reply_with(Message::new(body)).await
    }

    /// Answers with a message of your own; correlation and session are set to what the request asks for.
    pub async fn reply_with(&self, answer: Message) -> Result<(), Error> {
        self.inner.replies.send(&self.inner.message, answer).await
    }

    /// Settles the message now, and waits for the broker; return [`Outcome::Settled`] afterwards.
    ///
    /// For handlers that must know that the broker has heard before they go on.
    pub async fn settle(&self, outcome: Outcome) -> Result<(), Error> {
        let (settlement, _) = self.settlement(outcome);
        if self.claim_settlement() { self.settle_as(settlement).await } else { Ok(()) }
    }

    /// Whether the broker is still to be told something; only the first to ask may tell it.
    pub(crate) fn claim_settlement(&self) -> bool {
        !self.inner.over.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn settler(&self) -> Option<&Settler> {
        self.inner.settler.as_ref()
    }

    /// What an outcome means for this message.
    pub(crate) fn settlement(&self, outcome: Outcome) -> (Settlement, Verdict) {
        let message = &self.inner.message;
        let seed = message.sequence_number().map_or(0, i64::unsigned_abs);
        settlement(outcome, &self.inner.options.retries, message.delivery_count(), seed)
    }

    /// Tells the broker; whoever calls this has claimed it.
    pub(crate) async fn settle_as(&self, settlement: Settlement) -> Result<(), Error> {
        let Inner { message, settler, .. } = &*self.inner;
        let Some(settler) = settler else { return Err(Error::Closed) };
        match settlement {
            Settlement::Complete => settler.complete(message).await,
            Settlement::Defer => settler.defer(message).await,
            Settlement::Abandon { delay, error } => {
                let mut abandon = Abandon::default();
                if !delay.is_zero() {
                    abandon = abandon.with_delay(delay);
                }
                if let Some(error) = error {
                    abandon = abandon.with_property(LAST_ERROR, error);
                }
                settler.abandon(message, abandon).await
            }
            Settlement::DeadLetter { reason, description } => {
                let letter = DeadLetter::because(reason).with_description(description);
                settler.dead_letter(message, letter).await
            }
            Settlement::Suspend(checkpoint) => settler.suspend(message, self.kept(checkpoint)).await,
            Settlement::None => Ok(()),
        }
    }

    /// What travels with a message that goes back to its place.
    fn kept(&self, checkpoint: Option<Checkpoint>) -> Vec<(Text, Value)> {
        let Some(Checkpoint(bytes)) = checkpoint else { return Vec::new() };
        let preemptions = self.inner.preemptions.load(Ordering::Acquire);
        vec![
            (Text::from(CHECKPOINT), Value::Binary(bytes)),
            (Text::from(PREEMPTIONS), Value::from(preemptions)),
        ]
    }

    pub(crate) async fn renew(&self) -> Result<SystemTime, Error> {
        match &self.inner.settler {
            Some(settler) => settler.renew(&self.inner.message).await,
            None => Err(Error::Closed),
        }
    }

    /// Asks the handler to yield, or takes that back.
    pub(crate) fn ask_to_yield(&self, yields: bool) {
        self.inner.asked.to_yield.store(yields, Ordering::Release);
        self.inner.asked.changed.notify_waiters();
    }

    /// Tells the handler that its work is in vain, and lets it run to notice.
    pub(crate) fn cancel(&self) {
        self.inner.asked.cancelled.store(true, Ordering::Release);
        self.inner.asked.changed.notify_waiters();
        self.inner.gate.open();
    }

    async fn until(&self, holds: fn(&Context) -> bool) {
        loop {
            // Registered before the look, so that no change is missed between the two.
            let changed = self.inner.asked.changed.notified();
            if holds(self) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn set_preemptions(&self, count: u32) {
        self.inner.preemptions.store(count, Ordering::Release);
    }

    /// The message is somebody else's now: nothing is told to the broker any more.
    pub(crate) fn forget_lock(&self) {
        self.inner.over.store(true, Ordering::Release);
    }

    pub(crate) fn message(&self) -> &Received {
        &self.inner.message
    }
}
