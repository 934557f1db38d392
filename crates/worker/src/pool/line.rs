//! Where handlers begin: jobs in a line, and runners that take from it.
//!
//! Most handlers of a busy pool end the first time they are polled; a task for each would cost more than the handler
//! does. So a runner takes one job after the other and polls each once, and only what has not ended by then becomes a task
//! of its own.
//!
//! What must stay true: **nobody waits behind a handler that blocks.** There are as many runners as the runtime has threads,
//! so handlers that compute for long use every thread, as tasks of their own would. If all runners are held up and nothing
//! has left the line for [`STUCK`], which a runtime can only notice if it made another thread (`block_in_place`), each
//! job in the line gets a runner.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::task::Job;
use crate::handler::Handler;
use crate::moment::Moment;

/// Jobs a runner begins before others on its thread get their turn.
const AT_ONCE: usize = 32;
/// How long the line may stand still before more runners come.
const STUCK: Duration = Duration::from_millis(1);

/// The pump's end of the line.
#[derive(Debug)]
pub(super) struct Line<H> {
    shared: Arc<Shared<H>>,
    /// As many runners as can run at once.
    runners: usize,
    /// How many jobs had been taken when the line was last seen to move, and when that was.
    seen: (u64, Moment),
}

#[derive(Debug)]
struct Shared<H> {
    handler: Arc<H>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    runners: usize,
    taken: u64,
}

impl<H: Handler> Line<H> {
    pub(super) fn new(handler: Arc<H>) -> Line<H> {
        Line {
            shared: Arc::new(Shared { handler, state: Mutex::default() }),
            runners: Handle::current().metrics().num_workers().max(1),
            seen: (0, Moment::START),
        }
    }

    /// Puts a job at the end; [`Line::attend`] sees to it that somebody takes it.
    pub(super) fn push(&self, job: Job) {
        self.shared.lock().jobs.push_back(job);
    }

    /// Whether jobs wait to be begun.
    pub(super) fn has_jobs(&self) -> bool {
        !self.shared.lock().jobs.is_empty()
    }

    /// Sends for the runners that the line needs; when to look again, if it may be stuck then.
    pub(super) fn attend(&mut self, now: Moment) -> Option<Moment> {
        let mut state = self.shared.lock();
        let waiting = state.jobs.len();
        if waiting == 0 {
            return None;
        }
        if state.taken != self.seen.0 {
            self.seen = (state.taken, now);
        }
        let again = self.seen.1.after(STUCK);
        let stuck = state.runners >= self.runners && again <= now;
        let wanted = if stuck {
            self.seen.1 = now;
            waiting
        } else {
            waiting.min(self.runners.saturating_sub(state.runners))
        };
        state.runners = state.runners.saturating_add(wanted);
        drop(state);
        for _ in 0..wanted {
            // A runner ends when the line is empty; the jobs it begins answer to the pump.
            tokio::spawn(Arc::clone(&self.shared).run());
        }
        Some(self.seen.1.after(STUCK))
    }
}

impl<H: Handler> Shared<H> {
    async fn run(self: Arc<Self>) {
        loop {
            for _ in 0..AT_ONCE {
                let Some(job) = self.take() else { return };
                self.begin(job).await;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The next job; none ends the runner.
    fn take(&self) -> Option<Job> {
        let mut state = self.lock();
        let job = state.jobs.pop_front();
        match job {
            Some(_) => state.taken = state.taken.wrapping_add(1),
            None => state.runners = state.runners.saturating_sub(1),
        }
        job
    }

    /// Polls a job once; what has not ended then becomes a task.
    async fn begin(&self, job: Job) {
        if job.context.reins().is_dropped() {
            return;
        }
        let context = job.context.clone();
        let mut task = Box::pin(job.run(Arc::clone(&self.handler)));
        if Once(task.as_mut()).await.is_pending() {
            context.reins().hold(tokio::spawn(task).abort_handle());
        }
    }

    /// Nothing in here panics while the lock is held.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls a future once.
struct Once<'f, F>(Pin<&'f mut F>);

impl<F: Future> Future for Once<'_, F> {
    type Output = Poll<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        Poll::Ready(self.0.as_mut().poll(context))
    }
}

/// Ends a job wherever it is: in the line, before its second poll, or as a task.
#[derive(Debug, Default)]
pub(crate) struct Reins {
    dropped: AtomicBool,
    task: OnceLock<AbortHandle>,
}

impl Reins {
    /// The job is not polled any more.
    pub(crate) fn drop_job(&self) {
        // Whoever comes second, this or `hold`, sees what the first one wrote.
        self.dropped.store(true, Ordering::SeqCst);
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::SeqCst)
    }

    fn hold(&self, task: AbortHandle) {
        let task = self.task.get_or_init(|| task);
        if self.is_dropped() {
            task.abort();
        }
    }
}
