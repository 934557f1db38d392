//! Work that goes on beside the shard's thread: one piece at a time, each on a thread of its own.

use super::core::Core;
use super::inbox::Inbox;
use super::snapshot::Snapshot;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use vorrang_log::disk::Trouble;
use vorrang_log::snapshot::Error;

/// The piece of work under way.
#[derive(Debug)]
pub(super) struct Chores {
    inbox: Arc<Inbox>,
    snapshot: Option<JoinHandle<Result<(), Error>>>,
    over: Arc<AtomicBool>,
}

impl Chores {
    pub(super) fn new(inbox: &Arc<Inbox>) -> Chores {
        Chores { inbox: Arc::clone(inbox), snapshot: None, over: Arc::new(AtomicBool::new(false)) }
    }

    /// Takes in what was finished, and begins what is due.
    pub(super) fn look_after(&mut self, core: &mut Core) {
        if self.snapshot.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(thread) = self.snapshot.take()
        {
            let outcome = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Err(error) = outcome {
                stop_unless_full(core, &error);
            }
        }
        if self.snapshot.is_none() {
            match core.snapshot_if_due() {
                Some(Ok(snapshot)) => self.begin(snapshot, core),
                Some(Err(error)) => stop_unless_full(core, &error),
                None => {}
            }
        }
    }

    fn begin(&mut self, snapshot: Snapshot, core: &mut Core) {
        let (inbox, over) = (Arc::clone(&self.inbox), Arc::clone(&self.over));
        let work = move || {
            let written = snapshot.write();
            let outcome = written.and_then(|unfinished| {
                unfinished.finish_when_durable(|| over.load(Ordering::Acquire) || inbox.closed().is_some())
            });
            inbox.log_has_news();
            outcome
        };
        match std::thread::Builder::new().name("snapshot".to_owned()).spawn(work) {
            Ok(thread) => self.snapshot = Some(thread),
            Err(error) => core.give_up(&format!("cannot start the snapshot's thread: {error}")),
        }
    }

    /// Waits for what is under way, without waiting for the log.
    pub(super) fn end(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.snapshot.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// A full disk is no reason to stop: the log goes on in the segments it has, and the next snapshot may
/// find room. Any other trouble means that the disk cannot be trusted.
fn stop_unless_full(core: &mut Core, error: &Error) {
    let full = matches!(error, Error::Disk(error) if error.trouble == Trouble::NoSpace);
    if !full {
        core.give_up(&format!("cannot write a snapshot: {error}"));
    }
}
