//! Who runs the shard: its own thread, or, while that sleeps, whoever brings it something small.
//!
//! A sleeping thread takes 20 to 50 µs to wake, on a virtual machine more. A client that waits for each answer would pay
//! for that twice, once on the way to the shard and once on the way back, while the disk takes 100 µs. So a connection
//! that finds the shard asleep carries out what it brings itself, and finds the answer when it is back. There is one core
//! behind one lock: what is decided, and in which order, is the same whoever does it.
//!
//! What takes longer is the thread's: large batches, which it works off while the connection reads on, everything that
//! may hand out many messages, and the [chores](super::chores).

use super::core::Core;
use super::inbox::{Inbox, Mail};
use super::spares::Spares;
use super::thread::Clock;
use crate::api::Event;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use vorrang_engine::Timestamp;

/// Steps that a connection takes at most: one for what it brings, one for what the log then has to tell, and some for
/// what comes up meanwhile.
const STEPS_MAX: usize = 4;

/// The place from which a shard is run.
pub(super) struct Helm {
    pub(super) inbox: Arc<Inbox>,
    /// Buffers for events, to be given back.
    pub(super) buffers: Arc<Spares<Event>>,
    crew: Mutex<Crew>,
    pub(super) clock: Clock,
}

/// What running a shard takes.
#[derive(Debug)]
pub(super) struct Crew {
    /// None once the shard has stopped.
    pub(super) core: Option<Core>,
    /// What was taken from the inbox and is not yet carried out.
    pub(super) mail: Mail,
}

impl fmt::Debug for Helm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helm").field("inbox", &self.inbox).finish_non_exhaustive()
    }
}

/// Closes the inbox if whoever runs the shard ends by a broken invariant, so that nobody waits for it in vain.
struct LastWord<'a>(&'a Inbox);

impl Drop for LastWord<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close(&Arc::from("the shard broke an invariant and ended; restart to recover"));
        }
    }
}

impl Helm {
    pub(super) fn new(inbox: Arc<Inbox>, core: Core, clock: Clock) -> Helm {
        let buffers = Arc::clone(core.buffers());
        Helm { inbox, buffers, crew: Mutex::new(Crew { core: Some(core), mail: Mail::default() }), clock }
    }

    /// Does `work` with the shard. `None` if it broke an invariant, now or before.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Crew) -> T) -> Option<T> {
        let _last_word = LastWord(&self.inbox);
        let mut crew: MutexGuard<'_, Crew> = self.crew.lock().ok()?;
        Some(work(&mut crew))
    }

    /// Takes a step, and notes whether somebody had to wait for it because of the disk.
    pub(super) fn step(&self, core: &mut Core, mail: &mut Mail) {
        core.step((self.clock)(), &mut mail.items);
        if core.has_committed() && self.inbox.filling().0 > 0 {
            core.kept_waiting();
        }
    }

    /// Runs the shard in place of its thread, which sleeps: carries out what is in the inbox, and tells what comes of it.
    pub(super) fn take_over(&self) {
        let due = self.with(|crew| {
            let Crew { core: Some(core), mail } = crew else { return None };
            self.inbox.take(mail);
            self.step(core, mail);
            for _ in 1..STEPS_MAX {
                if core.over().is_some() || !self.inbox.take_news() {
                    break;
                }
                self.step(core, mail);
            }
            let done = mail.items.is_empty() && !core.is_behind() && core.over().is_none();
            done.then(|| core.next_wake().unwrap_or(Timestamp::NEVER))
        });
        self.inbox.hand_back(due.flatten(), (self.clock)());
    }
}
