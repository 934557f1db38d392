//! The handles that doors hold: one for the broker, one for each connection.

use super::core::{Item, Phase};
use super::helm::Helm;
use super::inbox::{Pushed, Rejected};
use super::keys::Keys;
use super::open::{OpenError, Settings};
use super::payload::PayloadReader;
use super::peer::PeerId;
use super::thread::{self, Clock};
use crate::access::Principal;
use crate::api::{Event, Outlet, Request};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use vorrang_engine::{Span, Timestamp};
use vorrang_log::disk::Disk;
use vorrang_log::{Commit, Findings};

/// A broker at work. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Broker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    helm: Arc<Helm>,
    reader: PayloadReader,
    keys: Arc<Keys>,
    findings: Findings,
    ahead: Arc<AtomicU64>,
    next_peer: AtomicU32,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A broker before its first client. Whoever asks it now is answered at once, and not when the answer is durable: a hundred
/// entities to be made take one sync, and not a hundred.
#[derive(Debug)]
pub struct Preparing {
    broker: Broker,
}

impl Preparing {
    /// To connect to; not for clients.
    #[must_use]
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// The broker, whose answers are durable from now on, and everything that was arranged, to wait for.
    pub fn finish(self) -> Result<(Broker, Commit), Stopped> {
        let commit = self.broker.shared.helm.with(|crew| {
            let core = crew.core.as_mut()?;
            core.set_phase(Phase::Serving);
            Some(core.newest_commit())
        });
        match commit.flatten() {
            Some(commit) => Ok((self.broker, commit)),
            None => Err(self
                .broker
                .stopped()
                .unwrap_or_else(|| Stopped { reason: Arc::from("the broker has stopped") })),
        }
    }
}

/// The shard has stopped and takes nothing more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Stopped {
    /// Why.
    pub reason: Arc<str>,
}

/// Why a batch was not taken.
#[derive(Debug)]
pub enum NotTaken {
    /// There is no room now. The batch comes back, and the waker given is called when there may be.
    Full(Vec<Request>),
    /// There never will be.
    Stopped(Stopped),
}

/// What became of requests that the shard took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// It will see to them.
    Over,
    /// They were carried out on the spot, and their answers given, but for those that take longer.
    Done,
}

impl Broker {
    /// Opens the data on `disk`, recovering what is there, and starts to work. Waits until what that takes is durable.
    pub fn open(disk: &Arc<dyn Disk>, settings: Settings, clock: Clock) -> Result<Broker, OpenError> {
        let (broker, prepared) = Broker::prepare(disk, settings, clock)?.finish()?;
        prepared.wait()?;
        Ok(broker)
    }

    /// The same without waiting for the disk, for somebody who has something to arrange before the first client comes.
    pub fn prepare(disk: &Arc<dyn Disk>, settings: Settings, clock: Clock) -> Result<Preparing, OpenError> {
        let running = thread::start(disk, settings, clock)?;
        let broker = Broker {
            shared: Arc::new(Shared {
                helm: running.helm,
                reader: running.reader,
                keys: running.keys,
                findings: running.findings,
                ahead: running.ahead,
                next_peer: AtomicU32::new(1),
                thread: Mutex::new(Some(running.thread)),
            }),
        };
        Ok(Preparing { broker })
    }

    /// Begins a connection, which may do nothing until it [becomes](Connection::become_principal)
    /// somebody. Its events go to `outlet`.
    pub fn connect(&self, outlet: Arc<dyn Outlet>) -> Result<Connection, Stopped> {
        let id = PeerId(self.shared.next_peer.fetch_add(1, Ordering::Relaxed));
        let connection = Connection { id, helm: Arc::clone(&self.shared.helm) };
        connection.insist(Item::Open(outlet))?;
        Ok(connection)
    }

    /// Reads stored payloads.
    #[must_use]
    pub fn payloads(&self) -> &PayloadReader {
        &self.shared.reader
    }

    /// The keys that are valid now, to check tokens and passwords against.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.shared.keys
    }

    /// What opening found out of the ordinary.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.shared.findings
    }

    /// The shard's time at a time of the wall clock: later, if its clock was set ahead.
    #[must_use]
    pub fn time(&self, wall: Timestamp) -> Timestamp {
        wall.after(Span(self.shared.ahead.load(Ordering::Relaxed)))
    }

    /// How many requests wait to be taken by the shard, and how many may before their senders wait.
    #[must_use]
    pub fn filling(&self) -> (usize, usize) {
        self.shared.helm.inbox.filling()
    }

    /// Why the shard has stopped, if it has.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.shared.helm.inbox.closed().map(|reason| Stopped { reason })
    }

    /// Stops in good order: finishes what was asked, makes it durable, tells the connections, and waits
    /// for the thread to end.
    pub fn stop(&self) {
        self.shared.helm.inbox.stop();
        let thread = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// A door's connection to the shard. Dropping it ends the connection: its receivers are closed and its
/// transactions rolled back.
#[derive(Debug)]
pub struct Connection {
    id: PeerId,
    helm: Arc<Helm>,
}

impl Connection {
    /// Says what the connection may do from now on. Never waits.
    pub fn become_principal(&self, principal: Arc<Principal>) -> Result<(), Stopped> {
        self.insist(Item::Become(principal))
    }

    /// Hands requests to the shard, in order. If there is no room the batch comes back, and `waker` is
    /// called when there may be. If they are few and the shard has nothing to do, they are carried out here and now.
    pub fn try_push(&self, batch: Vec<Request>, waker: Option<&Waker>) -> Result<Handed, NotTaken> {
        match self.helm.inbox.push(self.id, batch, waker, || (self.helm.clock)()) {
            Ok(Pushed::Taken) => Ok(Handed::Over),
            Ok(Pushed::Asleep) => {
                self.helm.take_over();
                Ok(Handed::Done)
            }
            Err(Rejected::Closed(reason)) => Err(NotTaken::Stopped(Stopped { reason })),
            Err(Rejected::Full(batch)) => Err(NotTaken::Full(batch)),
        }
    }

    /// Hands requests to the shard, in order, waiting for room without holding up a thread.
    pub fn push(&self, batch: Vec<Request>) -> Push<'_> {
        Push { connection: self, batch: Some(batch) }
    }

    /// Gives back the buffer of events that were taken: the shard fills it again.
    pub fn give_back(&self, events: Vec<Event>) {
        self.helm.buffers.give(events);
    }

    /// Adds an item though the inbox may be full; a connection has few of these.
    fn insist(&self, item: Item) -> Result<(), Stopped> {
        self.helm.inbox.insist(self.id, item).map_err(|reason| Stopped { reason })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.helm.inbox.insist(self.id, Item::Close);
    }
}

/// Waits for room in the inbox.
#[derive(Debug)]
pub struct Push<'a> {
    connection: &'a Connection,
    batch: Option<Vec<Request>>,
}

impl Future for Push<'_> {
    type Output = Result<Handed, Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(batch) = self.batch.take() else { return Poll::Ready(Ok(Handed::Over)) };
        match self.connection.try_push(batch, Some(context.waker())) {
            Ok(handed) => Poll::Ready(Ok(handed)),
            Err(NotTaken::Stopped(stopped)) => Poll::Ready(Err(stopped)),
            Err(NotTaken::Full(batch)) => {
                self.batch = Some(batch);
                Poll::Pending
            }
        }
    }
}
