//! Pools over sessions: each slot has one session at a time and handles its messages one after the other.
//!
//! A slot waits in the broker for a session that has messages and belongs to nobody, keeps it locked, and lets it go when
//! nothing has come for a while, so that few slots serve many sessions.
//!
//! What must stay true: **the order within a session.** One message at a time is fetched and nothing ahead, and a message
//! that is to be tried again is waited for with the session held: given back with a delay it would be overtaken.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, watch};
use tokio::task::{self, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::info;
use vorrang_client::{Client, Credit, Error, Received, ReceiverOptions, Session, SessionReceiver};

use super::options::Options;
use super::problem::{OnProblem, Problem};
use super::pump::{CHECKPOINT, Control};
use super::task::{Settled, settle};
use crate::context::Context;
use crate::figures::{EntityFigures, Figures};
use crate::gate::{Gated, Panicked};
use crate::handler::Handler;
use crate::outcome::{Checkpoint, Outcome};
use crate::plan::backoff::Backoff;
use crate::plan::settlement::{Settlement, Verdict};
use crate::replies::Replies;

/// How long the broker is asked to wait for a session; then it is asked again, so that an answer that was lost is missed for
/// no longer.
const ACCEPT_WAIT: Duration = Duration::from_mins(1);
/// How soon a session is asked for again after the broker refused.
const REFUSED: Backoff = Backoff {
    first: Duration::from_millis(500),
    max: Duration::from_secs(30),
    factor: 2,
    spread_percent: 20,
};
/// Renewals are at least this far apart, however little is left of the lock.
const RENEW_APART_MIN: Duration = Duration::from_millis(100);

/// How a pool serves sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sessions {
    /// A session without messages for so long is let go.
    pub idle: Duration,
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions { idle: Duration::from_secs(5) }
    }
}

/// What the slots are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wish {
    /// Slots with this number and above end after their message.
    slots: u32,
    /// When tasks that still run are cancelled.
    cancel_at: Option<Instant>,
}

/// What every slot knows.
pub(super) struct Surroundings<H> {
    pub(super) client: Client,
    pub(super) options: Arc<Options>,
    pub(super) sessions: Sessions,
    pub(super) handler: Arc<H>,
    pub(super) figures: Arc<Figures>,
    pub(super) replies: Arc<Replies>,
    pub(super) on_problem: OnProblem,
}

/// Keeps as many slots as wanted, until it is told to stop and they have ended.
pub(super) async fn run<H: Handler>(surroundings: Surroundings<H>, mut control: mpsc::Receiver<Control>) {
    let surroundings = Arc::new(surroundings);
    let options = Arc::clone(&surroundings.options);
    let (mut size, mut paused, mut cancel_at) = (options.size, false, None);
    let (wishes, wish) = watch::channel(Wish { slots: 0, cancel_at: None });
    let mut tasks = JoinSet::new();
    let (mut running, mut taken) = (BTreeMap::new(), BTreeSet::new());
    loop {
        let size_now = options.hours.size_at(unix_seconds()).unwrap_or(size);
        // A slot without a session costs nothing but its wait in the broker, so a size with bounds needs no measuring.
        let slots = if paused || cancel_at.is_some() { 0 } else { size_now.slots(Some(u32::MAX)) };
        // Nobody listens while there are no slots.
        let _ = wishes.send_replace(Wish { slots, cancel_at });
        for number in 0..slots {
            if taken.insert(number) {
                let slot = Slot { number, wish: wish.clone(), surroundings: Arc::clone(&surroundings) };
                running.insert(tasks.spawn(slot.run()).id(), number);
            }
        }
        surroundings.figures.slots.set(usize::try_from(slots).unwrap_or(usize::MAX));
        if cancel_at.is_some() && tasks.is_empty() {
            break;
        }
        let change = options.hours.seconds_to_change(unix_seconds()).unwrap_or(24 * 60 * 60);
        tokio::select! {
            command = control.recv(), if cancel_at.is_none() => match command {
                Some(Control::Pause(done)) => {
                    paused = true;
                    // Whoever asked may not care when.
                    let _ = done.send(());
                }
                Some(Control::Resume) => paused = false,
                Some(Control::Resize(wanted)) => size = wanted,
                Some(Control::Stop { within }) => cancel_at = Some(Instant::now() + within),
                // The pool's handle is gone: nobody can ask for anything any more.
                None => cancel_at = Some(Instant::now()),
            },
            Some(ended) = tasks.join_next_with_id(), if !tasks.is_empty() => {
                let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                if let Some(number) = running.remove(&id) {
                    taken.remove(&number);
                }
            }
            () = sleep(Duration::from_secs(change.max(1))) => {}
        }
    }
    info!(pool = %options.name, "pool stopped");
}

/// One slot: one session after the other.
struct Slot<H> {
    number: u32,
    wish: watch::Receiver<Wish>,
    surroundings: Arc<Surroundings<H>>,
}

impl<H: Handler> Slot<H> {
    async fn run(mut self) {
        let mut refusals = 0_u32;
        while self.works() {
            let wait = match self.accept().await {
                None => continue,
                Some(Ok(receiver)) => {
                    refusals = 0;
                    self.serve(receiver).await;
                    continue;
                }
                // No session had a message.
                Some(Err(Error::Timeout(_))) => Duration::ZERO,
                Some(Err(error)) => {
                    let entity = self.entity().to_owned();
                    (self.surroundings.on_problem)(&Problem::Receive { entity, error });
                    refusals = refusals.saturating_add(1);
                    REFUSED.wait(refusals, self.number.into())
                }
            };
            self.pause(wait).await;
        }
    }

    fn works(&self) -> bool {
        self.number < self.wish.borrow().slots
    }

    fn entity(&self) -> &str {
        self.surroundings.options.serves.first().map_or("", |served| served.entity.as_str())
    }

    fn figures(&self) -> Option<&EntityFigures> {
        self.surroundings.figures.entities.first()
    }

    /// Waits, but not when there is nothing to wait for any more.
    async fn pause(&mut self, wait: Duration) {
        tokio::select! {
            () = sleep(wait) => {}
            () = unwanted(&mut self.wish, self.number) => {}
        }
    }

    /// A session that has messages; none if the slot has to end.
    async fn accept(&mut self) -> Option<Result<SessionReceiver, Error>> {
        let client = self.surroundings.client.clone();
        let entity = self.entity().to_owned();
        let options = ReceiverOptions { credit: Credit::Manual, ..ReceiverOptions::default() };
        tokio::select! {
            accepted = client.accept_session_with(entity, None, ACCEPT_WAIT, options) => Some(accepted),
            () = unwanted(&mut self.wish, self.number) => None,
        }
    }

    /// Handles a session's messages until none come.
    async fn serve(&mut self, mut receiver: SessionReceiver) {
        let session = receiver.session().clone();
        let surroundings = Arc::clone(&self.surroundings);
        let renewed = || {
            if let Some(figures) = surroundings.figures.entities.first() {
                figures.renewed.add_one();
            }
        };
        let mut lost = pin!(keep_locked(&session, receiver.locked_until(), renewed));
        let mut unavailable = 0_u32;
        while self.works() && receiver.add_credit(1).await.is_ok() {
            let received = tokio::select! {
                received = receiver.recv() => received,
                () = sleep(surroundings.sessions.idle) => None,
                () = unwanted(&mut self.wish, self.number) => None,
                error = &mut lost => { self.renewal_failed(error); None }
            };
            let Some(message) = received else { break };
            match self.handle(&receiver, &session, message, lost.as_mut()).await {
                None => break,
                // Whatever is down is down for other sessions as well: this slot rests, longer each time.
                Some(Verdict::Unavailable) => {
                    unavailable = unavailable.saturating_add(1);
                    let pause = surroundings.options.breaker.pause.wait(unavailable, self.number.into());
                    tokio::select! {
                        () = self.pause(pause) => {}
                        error = &mut lost => { self.renewal_failed(error); break }
                    }
                }
                Some(_) => unavailable = 0,
            }
        }
        // A session whose connection is gone is gone, too.
        let _ = receiver.close().await;
    }

    fn renewal_failed(&self, error: Error) {
        if let Some(figures) = self.figures() {
            figures.locks_lost.add_one();
        }
        (self.surroundings.on_problem)(&Problem::Renew { entity: self.entity().to_owned(), error });
    }

    /// Handles one message; none if the session cannot be gone on with.
    async fn handle(
        &self,
        receiver: &SessionReceiver,
        session: &Session,
        message: Received,
        mut lost: Pin<&mut impl Future<Output = Error>>,
    ) -> Option<Verdict> {
        let Surroundings { options, figures: pool, replies, handler, .. } = &*self.surroundings;
        let figures = self.figures()?;
        figures.received.add_one();
        if let Some(enqueued) = message.enqueued_time() {
            figures.wait.add(SystemTime::now().duration_since(enqueued).unwrap_or_default());
        }
        let checkpoint =
            message.property(CHECKPOINT).and_then(|value| Some(Checkpoint(value.as_binary()?.clone())));
        let (level, settler) = (message.level(), Some(receiver.settler()));
        let context =
            Context::new(Arc::from(self.entity()), level, checkpoint, message, settler, options, replies)
                .in_session(session.clone());
        let _counted = pool.running.hold();
        let started = Instant::now();
        let mut running =
            Running { context: context.clone(), task: begin(Arc::clone(handler), context.clone()) };
        let (ended, holds) = self.until_ended(&mut running, lost.as_mut()).await;
        figures.service.add(started.elapsed());
        let Some(ended) = ended.filter(|_| holds) else {
            // It was told to end, and did not or need not be heard. If the session is lost, so is the message.
            if holds {
                self.settled(match settle(&context, Settlement::Suspend(None)).await {
                    Settled::Suspended => Settled::GivenBack,
                    other => other,
                });
            }
            return None;
        };
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(panic) => {
                figures.panicked.add_one();
                Outcome::Failed(format!("the handler panicked: {}", panic.0))
            }
        };
        let (settlement, verdict) = context.settlement(outcome);
        match verdict {
            Verdict::Failed => figures.failed.add_one(),
            Verdict::Unavailable => figures.unavailable.add_one(),
            Verdict::Done | Verdict::Suspended => {}
        }
        let settlement = match settlement {
            Settlement::Abandon { delay, error } => {
                let mut wish = self.wish.clone();
                tokio::select! {
                    () = sleep(delay) => {}
                    () = unwanted(&mut wish, self.number) => {}
                    error = &mut lost => { self.renewal_failed(error); return None }
                }
                Settlement::Abandon { delay: Duration::ZERO, error }
            }
            other => other,
        };
        self.settled(settle(&context, settlement).await).then_some(verdict)
    }

    /// Waits for a handler's end, and says whether the session is still ours. Cancels it when the pool stops or the session
    /// is lost, and gives up on it some time after that.
    async fn until_ended(
        &self,
        running: &mut Running,
        mut lost: Pin<&mut impl Future<Output = Error>>,
    ) -> (Option<Result<Outcome, Panicked>>, bool) {
        let mut wish = self.wish.clone();
        let options = &self.surroundings.options;
        let longest = Instant::now() + options.renew_for;
        let (mut holds, mut dropped_at) = (true, None);
        loop {
            let cancel_at = wish.borrow_and_update().cancel_at.unwrap_or(longest).min(longest);
            tokio::select! {
                // The task does not panic: what a handler does is caught inside.
                ended = &mut running.task => return (ended.ok(), holds),
                () = sleep_until(dropped_at.unwrap_or(cancel_at)) => {
                    if dropped_at.is_some() {
                        return (None, holds);
                    }
                }
                error = &mut lost, if holds => {
                    self.renewal_failed(error);
                    holds = false;
                    running.context.forget_lock();
                }
                // The pool stops, or its size has changed; only the time to cancel matters here.
                Ok(()) = wish.changed(), if dropped_at.is_none() => continue,
            }
            running.context.cancel();
            dropped_at.get_or_insert_with(|| Instant::now() + options.grace);
        }
    }

    /// Counts what became of a message; whether the session can be gone on with.
    fn settled(&self, settled: Settled) -> bool {
        let Some(figures) = self.figures() else { return false };
        let refused = figures.count(&settled);
        if let Settled::Refused(error) = settled {
            (self.surroundings.on_problem)(&Problem::Settle { entity: self.entity().to_owned(), error });
        }
        !refused
    }
}

/// A handler at work. Dropping it ends the work.
struct Running {
    context: Context,
    task: task::JoinHandle<Result<Outcome, Panicked>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.context.cancel();
        self.task.abort();
    }
}

/// Starts a handler as a task of its own, so that one that computes for long does not keep its session from being renewed.
fn begin<H: Handler>(handler: Arc<H>, context: Context) -> task::JoinHandle<Result<Outcome, Panicked>> {
    tokio::spawn(async move {
        let work = pin!(async { handler.handle(context.clone(), context.message().clone()).await });
        Gated::new(context.gate(), work).await
    })
}

/// Waits until slot `number` has to end.
async fn unwanted(wish: &mut watch::Receiver<Wish>, number: u32) {
    // An error means that the pool is gone, which is the same.
    let _ = wish.wait_for(|wish| wish.slots <= number).await;
}

/// Renews a session's lock at half of its time, again and again; returns why that is over.
async fn keep_locked(session: &Session, mut until: Option<SystemTime>, renewed: impl Fn()) -> Error {
    loop {
        let Some(end) = until else { return std::future::pending().await };
        let Ok(left) = end.duration_since(SystemTime::now()) else {
            return Error::SessionLockLost("its time was over before it was renewed".into());
        };
        sleep((left / 2).max(RENEW_APART_MIN)).await;
        match session.renew_lock().await {
            Ok(end) => {
                renewed();
                until = Some(end);
            }
            Err(error @ (Error::SessionLockLost(_) | Error::LockLost(_))) => return error,
            // Tried again at half of the rest.
            Err(_) => {}
        }
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
