//! The shard's thread: waits, looks at the clock, steps.

use super::chores::Chores;
use super::core::Core;
use super::inbox::{Inbox, Mail};
use super::keys::Keys;
use super::open::{self, Commits, OpenError, Settings};
use super::payload::PayloadReader;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;
use vorrang_engine::Timestamp;
use vorrang_log::Findings;
use vorrang_log::disk::Disk;

/// Tells the time. The only clock a shard has.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The longest the thread sleeps, so that a clock that was set forward is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A shard at work.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) inbox: Arc<Inbox>,
    pub(super) reader: PayloadReader,
    pub(super) keys: Arc<Keys>,
    pub(super) findings: Findings,
    /// How far the shard's clock is ahead, in milliseconds.
    pub(super) ahead: Arc<AtomicU64>,
    pub(super) thread: JoinHandle<()>,
}

/// Opens the shard and starts its thread.
pub(super) fn start(disk: &Arc<dyn Disk>, settings: Settings, clock: Clock) -> Result<Running, OpenError> {
    let inbox = Arc::new(Inbox::default());
    let notify = {
        let inbox = Arc::clone(&inbox);
        Arc::new(move |_| inbox.log_has_news())
    };
    let (core, findings) = open::open(disk, settings, Commits::Threads, notify, clock())?;
    let (reader, keys, ahead) = (core.reader().clone(), Arc::clone(core.keys()), Arc::clone(core.ahead()));
    let thread = {
        let inbox = Arc::clone(&inbox);
        std::thread::Builder::new().name("shard".to_owned()).spawn(move || run(core, &inbox, &clock))
    };
    Ok(Running { inbox, reader, keys, findings, ahead, thread: thread.map_err(OpenError::Thread)? })
}

/// Closes the inbox if the thread ends by a broken invariant, so that nobody waits for it in vain.
struct LastWord<'a>(&'a Inbox);

impl Drop for LastWord<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close(&Arc::from("the shard broke an invariant and ended; restart to recover"));
        }
    }
}

fn run(mut core: Core, inbox: &Arc<Inbox>, clock: &Clock) {
    let _last_word = LastWord(inbox);
    let mut mail = Mail::default();
    let mut chores = Chores::new(inbox);
    loop {
        core.step(clock(), &mut mail.items);
        chores.look_after(&mut core);
        if let Some(reason) = core.over() {
            inbox.close(reason);
            return;
        }
        let at_hand = !mail.items.is_empty() && !core.is_choked();
        let patience = patience(&core, core.time(clock()), at_hand);
        inbox.wait(&mut mail, Some(patience));
        if mail.stop && (mail.items.is_empty() || core.is_choked()) {
            chores.end();
            let reason = match core.stop() {
                Ok(()) => Arc::from("the broker has stopped"),
                Err(failure) => Arc::from(failure.to_string()),
            };
            inbox.close(&reason);
            return;
        }
    }
}

/// How long to wait for something to come in: not at all while there is something at hand, else until
/// the next deadline; if the disk is behind, until it has news.
fn patience(core: &Core, now: Timestamp, at_hand: bool) -> Duration {
    if core.is_behind() {
        return SLEEP_MAX;
    }
    if at_hand {
        return Duration::ZERO;
    }
    let left = core.next_wake().map(|wake| Duration::from_millis(wake.since(now).0));
    left.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
}
