//! A gate in front of a task: while it is shut the task is not polled, so it does not run.
//!
//! The task keeps its memory, its connections and its message's lock; it costs nothing until the gate opens.
//! What runs outside of the future, such as a child process, is told through a hook.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Called with true when the gate shuts and with false when it opens.
pub type Hook = Box<dyn Fn(bool) + Send + Sync>;

/// Shuts and opens.
#[derive(Default)]
pub struct Gate {
    shut: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: Option<Waker>,
    hook: Option<Hook>,
}

impl Gate {
    /// Stops the task at its next poll, and what the hook stands for at once.
    pub fn shut(&self) {
        let inner = self.lock();
        self.shut.store(true, Ordering::Release);
        if let Some(hook) = &inner.hook {
            hook(true);
        }
    }

    /// Lets the task go on.
    pub fn open(&self) {
        let waker = {
            let mut inner = self.lock();
            self.shut.store(false, Ordering::Release);
            if let Some(hook) = &inner.hook {
                hook(false);
            }
            inner.waiting.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the task is stopped.
    pub fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Acquire)
    }

    /// Has `hook` told about every change from now on; and at once, if the gate is shut already.
    pub fn set_hook(&self, hook: Option<Hook>) {
        let mut inner = self.lock();
        if let (Some(hook), true) = (&hook, self.is_shut()) {
            hook(true);
        }
        inner.hook = hook;
    }

    /// Whether the task must wait; its waker is kept for when it need not.
    fn waits(&self, waker: &Waker) -> bool {
        if !self.is_shut() {
            return false;
        }
        let mut inner = self.lock();
        // Opened in between: nobody would wake us.
        let waits = self.is_shut();
        inner.waiting = waits.then(|| waker.clone());
        waits
    }

    /// A hook that panicked leaves nothing half-done here.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("shut", &self.is_shut()).finish_non_exhaustive()
    }
}

/// Why a task has no outcome: it panicked, with this text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked(pub String);

/// A future behind a gate, whose panics are an outcome and not the end of the world.
pub struct Gated<'g, F> {
    gate: &'g Gate,
    task: Pin<&'g mut F>,
}

impl<'g, F: Future> Gated<'g, F> {
    /// Puts `task` behind `gate`.
    pub fn new(gate: &'g Gate, task: Pin<&'g mut F>) -> Gated<'g, F> {
        Gated { gate, task }
    }
}

impl<F> fmt::Debug for Gated<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gated").field("gate", self.gate).finish_non_exhaustive()
    }
}

impl<F: Future> Future for Gated<'_, F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.gate.waits(context.waker()) {
            return Poll::Pending;
        }
        // After a panic the task is never polled again, so no broken state is seen.
        let polled = catch_unwind(AssertUnwindSafe(|| self.task.as_mut().poll(context)));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(Panicked(text_of(&*panic)))),
        }
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_task_behind_a_shut_gate_does_not_run_and_goes_on_where_it_was() {
        let gate = Arc::new(Gate::default());
        let (steps, mut seen) = mpsc::unbounded_channel();
        let (go, mut may) = mpsc::unbounded_channel::<()>();
        let task = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move {
                let inner = async {
                    let mut count = 0;
                    while may.recv().await.is_some() {
                        count += 1;
                        steps.send(count).unwrap();
                    }
                    count
                };
                Gated::new(&gate, pin!(inner)).await
            }
        });
        go.send(()).unwrap();
        assert_eq!(seen.recv().await, Some(1));
        gate.shut();
        go.send(()).unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(seen.try_recv().is_err(), "it was woken, but not polled");
        gate.open();
        assert_eq!(seen.recv().await, Some(2));
        drop(go);
        assert_eq!(task.await.unwrap(), Ok(2));
    }

    #[tokio::test]
    async fn a_panic_is_an_outcome_with_its_text() {
        let gate = Gate::default();
        let task = pin!(async { if gate.is_shut() { 1 } else { panic!("no {}", "luck") } });
        let outcome = Gated::new(&gate, task).await;
        assert_eq!(outcome, Err(Panicked("no luck".to_owned())));
    }

    #[test]
    fn a_hook_is_told_of_every_change_and_of_the_state_it_finds() {
        let gate = Gate::default();
        let stops = Arc::new(AtomicUsize::new(0));
        let hook = |stops: &Arc<AtomicUsize>| -> Option<Hook> {
            let stops = Arc::clone(stops);
            Some(Box::new(move |shut| {
                stops.fetch_add(if shut { 1 } else { 100 }, Ordering::Relaxed);
            }))
        };
        gate.shut();
        gate.set_hook(hook(&stops));
        assert_eq!(stops.load(Ordering::Relaxed), 1, "the child started while the task was stopped");
        gate.open();
        gate.shut();
        assert_eq!(stops.load(Ordering::Relaxed), 102);
        gate.set_hook(None);
        gate.open();
        assert_eq!(stops.load(Ordering::Relaxed), 102);
    }
}
