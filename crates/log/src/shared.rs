//! What the shard, the commit thread and readers share: the queue of batches and how far the log
//! is durable.
//!
//! Two buffers, one in flight: while one batch is being written the shard fills the next, taking
//! it back out of the queue for as long as the disk is busy, and no longer: an idle disk gets what
//! there is. So commits are as large as the disk is slow, without a timer, and never larger than
//! the cap.

use crate::batch::{Batch, Limits};
use crate::blocks;
use crate::entry::ChainHash;
use crate::location::{Location, Position};
use crate::ring::{Failure, Ring, Tail};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Buffers kept for reuse.
const BUFFERS_MAX: usize = 3;

/// What the log has to tell its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Everything up to here is durable.
    Durable(Position),
    /// The log has stopped for good. Said once; nothing further becomes durable.
    Failed(Failure),
}

/// How the log tells its owner. Called from the commit thread; must be quick.
pub type Notify = Arc<dyn Fn(Notice) + Send + Sync>;

pub(crate) struct Shared {
    queue: Mutex<Queue>,
    /// Signals the commit thread: there is work, or it is to stop.
    work: Condvar,
    /// Signals those waiting for durability.
    progress: Condvar,
    durable: AtomicU64,
    /// Everything in the ring below this location is on file.
    written: AtomicU64,
    failed: OnceLock<Failure>,
    /// Held while telling the owner something, so that nothing durable follows a failure.
    telling: Mutex<()>,
    chains: Mutex<Chains>,
    upkeep: Mutex<Upkeep>,
    upkeep_wanted: Condvar,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Batch>,
    flying: Option<Arc<Batch>>,
    buffers: Vec<Vec<u8>>,
    /// The commit thread waits for a batch: what is queued now is its, and must not grow.
    idle: bool,
    /// How many wait for progress. To call for nobody costs as much as to wake somebody.
    awaited: usize,
    stop: bool,
}

/// The hash at the durable end, and at positions snapshots asked for.
#[derive(Debug, Default)]
struct Chains {
    last: (Position, ChainHash),
    wanted: BTreeMap<Position, Option<ChainHash>>,
}

#[derive(Debug, Default)]
struct Upkeep {
    wanted: bool,
    stop: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").field("durable", &self.durable).finish_non_exhaustive()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(notify: Notify, tail: Tail, written: Location) -> Self {
        let chains = Chains { last: (tail.position, tail.chain), wanted: BTreeMap::new() };
        Self {
            queue: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            durable: AtomicU64::new(tail.position.0),
            written: AtomicU64::new(written.raw()),
            failed: OnceLock::new(),
            telling: Mutex::new(()),
            chains: Mutex::new(chains),
            upkeep: Mutex::default(),
            upkeep_wanted: Condvar::new(),
            notify,
        }
    }

    pub(crate) fn durable(&self) -> Position {
        Position(self.durable.load(Ordering::Acquire))
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failed.get()
    }

    /// Whether records at this place of the ring can be read from the file.
    pub(crate) fn is_written(&self, location: Location) -> bool {
        location.raw() < self.written.load(Ordering::Acquire)
    }

    /// Looks at the queued batches, newest last.
    pub(crate) fn with_queued<T>(&self, mut look: impl FnMut(&Batch) -> Option<T>) -> Option<T> {
        let queue = lock(&self.queue);
        let flying = queue.flying.as_deref();
        flying.into_iter().chain(&queue.waiting).find_map(&mut look)
    }

    /// Queues a batch for the commit thread.
    pub(crate) fn push(&self, batch: Batch) {
        let idle = {
            let mut queue = lock(&self.queue);
            queue.waiting.push_back(batch);
            queue.idle
        };
        // If it is not, it looks into the queue before it waits.
        if idle {
            self.work.notify_one();
        }
    }

    /// Commits a batch here and now if the commit thread has nothing to do, else queues it.
    pub(crate) fn commit_or_push(&self, batch: Batch, ring: &Mutex<Ring>) -> Result<(), Failure> {
        let idle = {
            let mut queue = lock(&self.queue);
            let idle = queue.idle && queue.waiting.is_empty() && queue.flying.is_none();
            queue.waiting.push_back(batch);
            idle
        };
        match ring.try_lock() {
            Ok(mut ring) if idle => self.commit_next(&mut ring).map_or(Ok(()), |outcome| outcome.map(drop)),
            _ => {
                self.work.notify_one();
                Ok(())
            }
        }
    }

    /// Takes back the newest queued batch if it may still grow.
    pub(crate) fn take_back(&self) -> Option<Batch> {
        let mut queue = lock(&self.queue);
        let open = queue.waiting.back().is_some_and(|batch| !batch.closed && !batch.is_full());
        if open && !queue.idle { queue.waiting.pop_back() } else { None }
    }

    /// Fixes the content of everything queued.
    pub(crate) fn close_queued(&self) {
        for batch in &mut lock(&self.queue).waiting {
            batch.closed = true;
        }
    }

    /// A buffer for a new batch, and whether the queue has room for one.
    pub(crate) fn buffer(&self, limits: &Limits) -> Option<Vec<u8>> {
        let mut queue = lock(&self.queue);
        let queued: usize = queue.waiting.iter().map(Batch::bytes).sum();
        let new = || blocks::buffer(limits.entry_bytes());
        (queued < limits.batch_bytes).then(|| queue.buffers.pop().unwrap_or_else(new))
    }

    /// Gives up the buffers that are kept for reuse.
    pub(crate) fn drop_buffers(&self) {
        lock(&self.queue).buffers.clear();
    }

    /// Commits the oldest queued batch, if there is one.
    pub(crate) fn commit_next(&self, ring: &mut Ring) -> Option<Result<Position, Failure>> {
        if let Some(failure) = self.failure() {
            return Some(Err(failure.clone()));
        }
        let batch = {
            let mut queue = lock(&self.queue);
            let batch = Arc::new(queue.waiting.pop_front()?);
            queue.flying = Some(Arc::clone(&batch));
            batch
        };
        let outcome = ring.commit(&batch, || self.publish_position(batch.position));
        match outcome {
            Ok(tail) => {
                let place = ring.place();
                let end = Location::new(
                    crate::location::Region::segment(place.segment),
                    u32::try_from(place.offset).expect("a segment is shorter than 4 GiB"),
                );
                self.publish(tail, end);
                if ring.take_advanced() {
                    self.kick();
                }
                let mut queue = lock(&self.queue);
                queue.flying = None;
                if let (Some(batch), true) = (Arc::into_inner(batch), queue.buffers.len() < BUFFERS_MAX) {
                    queue.buffers.push(batch.into_buffer());
                }
                Some(Ok(tail.position))
            }
            Err(failure) => {
                self.fail(failure.clone());
                Some(Err(failure))
            }
        }
    }

    fn publish(&self, tail: Tail, end: Location) {
        {
            let mut chains = lock(&self.chains);
            chains.last = (tail.position, tail.chain);
            if let Some(wanted) = chains.wanted.get_mut(&tail.position) {
                *wanted = Some(tail.chain);
            }
        }
        self.written.store(end.raw(), Ordering::Release);
        self.publish_position(tail.position);
    }

    fn publish_position(&self, position: Position) {
        {
            let _telling = lock(&self.telling);
            if self.failed.get().is_some() {
                return;
            }
            self.durable.store(position.0, Ordering::Release);
            (self.notify)(Notice::Durable(position));
        }
        // Waiters check under the queue's lock; taking it here means none misses the signal.
        if lock(&self.queue).awaited > 0 {
            self.progress.notify_all();
        }
    }

    /// Stops the log for good, and says so once.
    pub(crate) fn fail(&self, failure: Failure) {
        {
            let _telling = lock(&self.telling);
            if self.failed.set(failure.clone()).is_ok() {
                (self.notify)(Notice::Failed(failure));
            }
        }
        drop(lock(&self.queue));
        self.progress.notify_all();
        self.work.notify_all();
    }

    /// Waits until `position` is durable or the log has stopped.
    pub(crate) fn wait(&self, position: Position) -> Result<(), Failure> {
        let mut queue = lock(&self.queue);
        loop {
            if self.durable() >= position {
                return Ok(());
            }
            if let Some(failure) = self.failure() {
                return Err(failure.clone());
            }
            queue.awaited = queue.awaited.saturating_add(1);
            queue = self.progress.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.awaited = queue.awaited.saturating_sub(1);
        }
    }

    /// The commit thread's wait: true when there is a batch, false when it is to end.
    pub(crate) fn wait_for_work(&self) -> bool {
        let mut queue = lock(&self.queue);
        loop {
            if self.failed.get().is_some() {
                return false;
            }
            if !queue.waiting.is_empty() {
                queue.idle = false;
                return true;
            }
            if queue.stop {
                return false;
            }
            queue.idle = true;
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells both threads to end once the queue is empty.
    pub(crate) fn stop(&self) {
        lock(&self.queue).stop = true;
        self.work.notify_all();
        lock(&self.upkeep).stop = true;
        self.upkeep_wanted.notify_all();
    }

    /// Asks for upkeep.
    pub(crate) fn kick(&self) {
        lock(&self.upkeep).wanted = true;
        self.upkeep_wanted.notify_all();
    }

    /// The upkeep thread's wait: false when it is to end.
    pub(crate) fn wait_for_upkeep(&self) -> bool {
        let mut upkeep = lock(&self.upkeep);
        loop {
            if upkeep.stop {
                return false;
            }
            if std::mem::take(&mut upkeep.wanted) {
                return true;
            }
            upkeep = self.upkeep_wanted.wait(upkeep).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the upkeep thread is to end, asked between long steps.
    pub(crate) fn is_stopping(&self) -> bool {
        lock(&self.upkeep).stop
    }

    /// Remembers the chain hash at `position` for a snapshot, now or when it becomes durable.
    pub(crate) fn want_chain(&self, position: Position) {
        let mut chains = lock(&self.chains);
        let known = (chains.last.0 == position).then_some(chains.last.1);
        chains.wanted.insert(position, known);
    }

    pub(crate) fn chain_at(&self, position: Position) -> Option<ChainHash> {
        lock(&self.chains).wanted.get(&position).copied().flatten()
    }

    pub(crate) fn forget_chain(&self, position: Position) {
        lock(&self.chains).wanted.remove(&position);
    }
}
