//! The shard's thread: waits, looks at the clock, steps.

use super::chores::Chores;
use super::core::{Core, Phase};
use super::helm::{Crew, Helm};
use super::inbox::Inbox;
use super::keys::Keys;
use super::open::{self, Commits, OpenError, Settings};
use super::payload::PayloadReader;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;
use vorrang_engine::{Span, Timestamp};
use vorrang_log::Findings;
use vorrang_log::disk::Disk;

/// Tells the time. The only clock a shard has.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The longest the thread sleeps, so that a clock that was set forward is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A shard at work.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) helm: Arc<Helm>,
    pub(super) reader: PayloadReader,
    pub(super) keys: Arc<Keys>,
    pub(super) findings: Findings,
    /// How far the shard's clock is ahead, in milliseconds.
    pub(super) ahead: Arc<AtomicU64>,
    pub(super) thread: JoinHandle<()>,
}

/// Opens the shard and starts its thread. It is being prepared.
pub(super) fn start(disk: &Arc<dyn Disk>, settings: Settings, clock: Clock) -> Result<Running, OpenError> {
    let inbox = Arc::new(Inbox::default());
    let notify = {
        let inbox = Arc::clone(&inbox);
        Arc::new(move |_| inbox.log_has_news())
    };
    let (mut core, findings) = open::open(disk, settings, Commits::Threads, notify, clock())?;
    core.set_phase(Phase::Preparing);
    let (reader, keys, ahead) = (core.reader().clone(), Arc::clone(core.keys()), Arc::clone(core.ahead()));
    let helm = Arc::new(Helm::new(inbox, core, clock));
    let thread = {
        let helm = Arc::clone(&helm);
        std::thread::Builder::new().name("shard".to_owned()).spawn(move || run(&helm))
    };
    Ok(Running { helm, reader, keys, findings, ahead, thread: thread.map_err(OpenError::Thread)? })
}

/// What the thread does after a step.
enum Next {
    Wait { at_hand: bool, patience: Duration, until: Timestamp },
    End(Arc<str>),
}

fn run(helm: &Helm) {
    let mut chores = Chores::new(&helm.inbox);
    loop {
        let next = helm.with(|crew| step(crew, &mut chores, helm));
        match next {
            Some(Next::Wait { at_hand, patience, until }) => helm.inbox.wait(at_hand, patience, until),
            Some(Next::End(reason)) => return helm.inbox.close(&reason),
            None => return,
        }
    }
}

/// Takes what came in, carries it out, and looks after the chores.
fn step(crew: &mut Crew, chores: &mut Chores, helm: &Helm) -> Next {
    let Some(core) = &mut crew.core else { return Next::End(Arc::from("the broker has stopped")) };
    let mail = &mut crew.mail;
    helm.inbox.take(mail);
    if mail.stop && (mail.items.is_empty() || core.is_choked()) {
        chores.end();
        return Next::End(match crew.core.take().map_or(Ok(()), Core::stop) {
            Ok(()) => Arc::from("the broker has stopped"),
            Err(failure) => Arc::from(failure.to_string()),
        });
    }
    helm.step(core, mail);
    chores.look_after(core);
    chores.slacken(core);
    if let Some(reason) = core.over() {
        return Next::End(Arc::clone(reason));
    }
    let at_hand = !mail.items.is_empty() && !core.is_choked();
    let now = core.time((helm.clock)());
    let patience = patience(core, now, at_hand);
    let until = now.after(Span(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX)));
    Next::Wait { at_hand: !mail.items.is_empty() || core.is_behind(), patience, until }
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
