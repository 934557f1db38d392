//! Work that goes on beside the shard's thread: snapshots, evacuations, chillings and giving memory back, one of each at a
//! time, each on a thread of its own.

use super::core::Core;
use super::evacuation::Evacuated;
use super::inbox::Inbox;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use vorrang_engine::Command;
use vorrang_log::disk::Trouble;
use vorrang_log::{extent, snapshot};

/// Work under way, and what becomes of it.
type Work<T, E> = Option<JoinHandle<Result<T, E>>>;

/// What is under way.
#[derive(Debug)]
pub(super) struct Chores {
    inbox: Arc<Inbox>,
    snapshot: Work<(), snapshot::Error>,
    evacuation: Work<Evacuated, extent::Error>,
    chilling: Work<Vec<Command>, extent::Error>,
    giving_back: Work<(), Infallible>,
    /// Whether nothing should be waited for any more.
    over: Arc<AtomicBool>,
}

impl Chores {
    pub(super) fn new(inbox: &Arc<Inbox>) -> Chores {
        let over = Arc::new(AtomicBool::new(false));
        Chores {
            inbox: Arc::clone(inbox),
            snapshot: None,
            evacuation: None,
            chilling: None,
            giving_back: None,
            over,
        }
    }

    /// Takes in what was finished, and begins what is due.
    pub(super) fn look_after(&mut self, core: &mut Core) {
        match finished(&mut self.evacuation) {
            Some(Ok(evacuated)) => core.evacuated(evacuated),
            Some(Err(error)) => stop_unless_full(core, evacuation_trouble(&error), &error),
            None => {}
        }
        match finished(&mut self.chilling) {
            Some(Ok(commands)) => core.take_over(commands),
            Some(Err(error)) => stop_unless_full(core, evacuation_trouble(&error), &error),
            None => {}
        }
        if let Some(Err(error)) = finished(&mut self.snapshot) {
            stop_unless_full(core, snapshot_trouble(&error), &error);
        }
        if self.snapshot.is_none() {
            self.begin_snapshot(core);
        }
        if self.chilling.is_none() {
            self.begin_chilling(core);
        }
        if self.evacuation.is_none() {
            self.begin_evacuation(core);
        }
    }

    fn begin_snapshot(&mut self, core: &mut Core) {
        let snapshot = match core.snapshot_if_due() {
            Some(Ok(snapshot)) => snapshot,
            Some(Err(error)) => return stop_unless_full(core, snapshot_trouble(&error), &error),
            None => return,
        };
        let (inbox, over) = (Arc::clone(&self.inbox), Arc::clone(&self.over));
        let is_over = move || over.load(Ordering::Acquire) || inbox.closed().is_some();
        let write = move || snapshot.write().and_then(|written| written.finish_when_durable(is_over));
        self.snapshot = spawn("snapshot", &self.inbox, write, core);
    }

    fn begin_evacuation(&mut self, core: &mut Core) {
        match core.evacuation_if_due() {
            Some(Ok(evacuation)) => {
                self.evacuation = spawn("evacuation", &self.inbox, || evacuation.run(), core);
            }
            Some(Err(error)) => stop_unless_full(core, evacuation_trouble(&error), &error),
            None => {}
        }
    }

    fn begin_chilling(&mut self, core: &mut Core) {
        match core.chilling_if_due() {
            Some(Ok(chilling)) => {
                self.chilling = spawn("chilling", &self.inbox, || chilling.run(), core);
            }
            Some(Err(error)) => stop_unless_full(core, evacuation_trouble(&error), &error),
            None => {}
        }
    }

    /// Lets the shard slacken if it has nothing to do, and gives what it does not need any more back to the system.
    pub(super) fn slacken(&mut self, core: &mut Core) {
        let under_way = self.snapshot.is_some() || self.evacuation.is_some() || self.chilling.is_some();
        finished(&mut self.giving_back);
        if under_way || self.giving_back.is_some() || !core.slacken_if_due() {
            return;
        }
        let give_back = || -> Result<(), Infallible> {
            vorrang_memory::give_back();
            Ok(())
        };
        self.giving_back = spawn("giving-back", &self.inbox, give_back, core);
    }

    /// Waits for what is under way, which itself waits for nothing more.
    pub(super) fn end(&mut self) {
        self.over.store(true, Ordering::Release);
        join(self.snapshot.take());
        join(self.evacuation.take());
        join(self.chilling.take());
        join(self.giving_back.take());
    }
}

fn spawn<T: Send + 'static, E: Send + 'static>(
    name: &str,
    inbox: &Arc<Inbox>,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    core: &mut Core,
) -> Work<T, E> {
    let inbox = Arc::clone(inbox);
    let work = move || {
        let outcome = work();
        inbox.chore_is_done();
        outcome
    };
    match std::thread::Builder::new().name(name.to_owned()).spawn(work) {
        Ok(thread) => Some(thread),
        Err(error) => {
            core.give_up(&format!("cannot start the {name} thread: {error}"));
            None
        }
    }
}

fn finished<T, E>(work: &mut Work<T, E>) -> Option<Result<T, E>> {
    if work.as_ref().is_some_and(JoinHandle::is_finished) { join(work.take()) } else { None }
}

fn join<T>(thread: Option<JoinHandle<T>>) -> Option<T> {
    thread.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

fn snapshot_trouble(error: &snapshot::Error) -> Trouble {
    if let snapshot::Error::Disk(error) = error { error.trouble } else { Trouble::Other }
}

fn evacuation_trouble(error: &extent::Error) -> Trouble {
    match error {
        extent::Error::Disk(error) => error.trouble,
        // An extent has a greatest length: what did not fit goes with the next.
        extent::Error::Full { .. } => Trouble::NoSpace,
        _ => Trouble::Other,
    }
}

/// A full disk is no reason to stop: the log goes on in the segments it has, and the next attempt may
/// find room. Any other trouble means that the disk cannot be trusted.
fn stop_unless_full(core: &mut Core, trouble: Trouble, error: &dyn std::fmt::Display) {
    if trouble != Trouble::NoSpace {
        core.give_up(&format!("cannot write beside the log: {error}"));
    }
}
