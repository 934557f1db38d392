//! The log as its owner uses it: one shard, one writer.
//!
//! ```text
//! let mut batch = log.batch()?;                    // None: the disk is behind, come back later
//! let location = batch.record(kind, fixed, &[payload])?;
//! let position = log.submit(batch, now_ms)?;       // not durable yet
//! … notice Durable(position) …                     // now it is
//! ```
//!
//! With [`Recovered::start`] a commit thread writes and syncs, and an upkeep thread prepares and
//! recycles segments. A small batch that finds the disk idle is committed by whoever submits it: waking
//! a thread and being woken by it would take as long as the disk itself. With [`Recovered::start_manual`] nothing happens by itself: [`Log::flush`]
//! commits and [`Log::upkeep`] does the rest, in the caller's order, so a simulator can drive the
//! same code deterministically.

use crate::batch::Batch;
use crate::closing::Closing;
use crate::disk::{Disk, DiskError, Trouble};
use crate::entry::{ChainHash, FLAG_CLOSED, FLAG_EPOCH};
use crate::extent::{self, ExtentWriter, Extents};
use crate::location::{Epoch, Location, Position, Region};
use crate::options::Options;
use crate::pace::Pace;
use crate::reader::Reader;
use crate::recovery::{OpenError, Opening, Recovered};
use crate::ring::{Failure, Place, Ring, Tail};
use crate::room::{Appending, Gauge, NoRoom};
use crate::segment::FIRST_ENTRY;
use crate::shared::{Notify, Shared, lock};
use crate::snapshot::{self, Kept, SnapshotWriter, Snapshots};
use crate::store::StoreError;
use crate::supply::{Pressure, Supply, Upkeep};
use crate::units::on_disk;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A shard's log, open for writing.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    options: Options,
    shared: Arc<Shared>,
    supply: Arc<Supply>,
    extents: Arc<Extents>,
    snapshots: Arc<Snapshots>,
    epoch: Epoch,
    /// Where the newest submitted batch lies, and what it takes there.
    newest: (Position, Place, usize),
    /// A batch handed out and given back empty.
    unused: Option<Batch>,
    /// Whether a batch is out with the caller.
    in_hand: bool,
    /// The first batch of each segment begun since the log was opened.
    starts: BTreeMap<u32, Position>,
    gauge: Gauge,
    /// Held while a batch is committed.
    ring: Arc<Mutex<Ring>>,
    /// Those that commit and keep up; with none, the owner does both.
    threads: Vec<JoinHandle<()>>,
}

/// Something that was submitted, and may not be durable yet.
#[derive(Debug)]
pub struct Commit {
    shared: Arc<Shared>,
    position: Position,
}

impl Commit {
    /// Waits until it is durable, or never will be.
    pub fn wait(&self) -> Result<(), Failure> {
        self.shared.wait(self.position)
    }
}

/// A batch of at most this part of the cap is small: what its owner could decide while it is written is little
/// against the write.
const SMALL_PART: usize = 128;

impl Recovered {
    /// Takes ownership of the log under a new epoch and starts its threads. `notify` hears about
    /// durability and failure.
    pub fn start(self, notify: Notify, now_ms: u64) -> Result<Log, OpenError> {
        let mut log = self.take_over(notify, now_ms)?;
        let rate = Pace::bytes_per_second(log.options.fill_bytes_per_second);
        let shard = log.options.shard;
        log.threads = vec![
            spawn(format!("log-commit-{shard}"), {
                let (shared, ring) = (Arc::clone(&log.shared), Arc::clone(&log.ring));
                move || {
                    while shared.wait_for_work() {
                        shared.commit_next(&mut lock(&ring));
                    }
                }
            })?,
            spawn(format!("log-upkeep-{shard}"), {
                let (shared, supply) = (Arc::clone(&log.shared), Arc::clone(&log.supply));
                let (extents, ring) = (Arc::clone(&log.extents), Arc::clone(&log.ring));
                move || {
                    while shared.wait_for_upkeep() {
                        keep_up(&shared, &supply, &extents, &ring, rate);
                    }
                }
            })?,
        ];
        Ok(log)
    }

    /// Takes ownership of the log under a new epoch, durably; after that nothing happens by itself.
    pub fn start_manual(self, notify: Notify, now_ms: u64) -> Result<Log, OpenError> {
        let mut log = self.take_over(notify, now_ms)?;
        log.flush().map_err(|failure| OpenError::Disk(failure.error))?;
        Ok(log)
    }

    /// Clears away what was unfinished. The entry that opens the new epoch, and in a new log the first segment, are the
    /// first commit's: whatever waits to be durable waits for them, and nothing else does.
    fn take_over(self, notify: Notify, now_ms: u64) -> Result<Log, OpenError> {
        let Self { disk, options, inventory, end, kept, .. } = self;
        for file in &inventory.passing {
            disk.remove(*file)?;
        }
        if !inventory.passing.is_empty() {
            disk.sync_directory()?;
        }
        let active = end.map_or(0, |end| end.segment.number);
        let segments = inventory.segments.into_values();
        let supply =
            Arc::new(Supply::new(Arc::clone(&disk), options.clone(), segments, active, inventory.spares));
        let is_new = end.is_none();
        let (segment, offset, tail) = if let Some(end) = end {
            (end.segment, end.offset, end.tail)
        } else {
            let tail = Tail { position: Position::START, chain: ChainHash(0), epoch: Epoch(0) };
            (supply.first()?, FIRST_ENTRY, tail)
        };
        let mut ring =
            Ring::new(Arc::clone(&disk), options.clone(), Arc::clone(&supply), segment, offset, tail);
        let epoch = tail.epoch.next();
        ring.set_epoch(epoch);
        ring.set_unborn(is_new);
        let shared = Arc::new(Shared::new(notify, tail, location(&ring.place())));
        let newest = open_epoch(&shared, &supply, &options, ring.place(), tail.position, now_ms);
        let extents = Arc::new(Extents::new(Arc::clone(&disk), options.clone(), &inventory.extents));
        let snapshots = Arc::new(Snapshots {
            disk: Arc::clone(&disk),
            options: options.clone(),
            shared: Arc::clone(&shared),
            supply: Arc::clone(&supply),
            extents: Arc::clone(&extents),
            state: Mutex::new(Kept {
                next_number: inventory.snapshots.last().map_or(1, |newest| newest.saturating_add(1)),
                files: inventory.snapshots,
                newest: kept.first().copied(),
            }),
        });
        Ok(Log {
            disk,
            options,
            shared,
            supply,
            extents,
            snapshots,
            epoch,
            newest,
            unused: None,
            in_hand: false,
            starts: BTreeMap::new(),
            gauge: Gauge::new(),
            ring: Arc::new(Mutex::new(ring)),
            threads: Vec::new(),
        })
    }
}

/// Queues the entry that opens the epoch, before anything else. Where it lies, and what it takes there.
fn open_epoch(
    shared: &Shared,
    supply: &Supply,
    options: &Options,
    mut place: Place,
    mut position: Position,
    now_ms: u64,
) -> (Position, Place, usize) {
    let mut flags = FLAG_EPOCH;
    loop {
        position = position.next();
        let mut opening = Batch::new(Vec::new(), location(&place), position, options.limits);
        (opening.flags, opening.now_ms, opening.closed) = (flags, now_ms, true);
        let bytes = opening.padded_bytes();
        shared.push(opening);
        let next = place.after(bytes, options, |number| supply.bytes_of(number));
        // A segment prepared when entries were smaller is left at once.
        if next.fits_largest(options) {
            return (position, place, bytes);
        }
        (place, flags) = (next, 0);
    }
}

fn location(place: &Place) -> Location {
    let offset = u32::try_from(place.offset).expect("a segment is shorter than 4 GiB");
    Location::new(Region::segment(place.segment), offset)
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    std::thread::Builder::new().name(name.clone()).spawn(work).map_err(|error| {
        OpenError::Disk(DiskError {
            action: "start thread",
            target: name,
            trouble: Trouble::Other,
            text: error.to_string(),
        })
    })
}

/// Does all upkeep there is. Trouble with background files is final too: a disk that fails there
/// cannot be trusted with the next commit.
fn keep_up(shared: &Shared, supply: &Supply, extents: &Extents, ring: &Mutex<Ring>, pace: Pace) {
    while !shared.is_stopping() && shared.failure().is_none() {
        let rest = |bytes| {
            if !shared.is_stopping() {
                pace.rest(bytes);
            }
        };
        match keep_up_once(shared.durable(), supply, extents, ring, &rest) {
            Ok(Upkeep::Worked) => {}
            Ok(Upkeep::Idle | Upkeep::NoSpace) => return,
            Err(error) => {
                return shared.fail(Failure { position: shared.durable().next(), error });
            }
        }
    }
}

/// One step of upkeep: what small commits will need first.
fn keep_up_once(
    durable: Position,
    supply: &Supply,
    extents: &Extents,
    ring: &Mutex<Ring>,
    rest: &dyn Fn(u64),
) -> Result<Upkeep, DiskError> {
    if lock(ring).is_unborn() {
        return Ok(Upkeep::Idle);
    }
    if extents.upkeep()? {
        return Ok(Upkeep::Worked);
    }
    if let Some(bytes) = supply.rest_before_filling_ahead() {
        rest(bytes);
        if lock(ring).fill_ahead()? {
            return Ok(Upkeep::Worked);
        }
    }
    supply.upkeep(durable, rest)
}

impl Log {
    /// The batch to encode into: the one still waiting for the disk if it may grow, else a new
    /// one. `None` while a full batch waits behind the one in flight: the disk is behind. Every
    /// batch handed out must come back through [`Log::submit`] before the next is asked for.
    pub fn batch(&mut self) -> Option<Batch> {
        assert!(!self.in_hand, "one batch is filled at a time, and always submitted");
        let mut batch = self.unused.take().or_else(|| self.shared.take_back());
        if batch.is_none() {
            let buffer = self.shared.buffer(&self.options.limits)?;
            let place = self.next_place();
            batch = Some(Batch::new(buffer, location(&place), self.newest.0.next(), self.options.limits));
        }
        self.in_hand = true;
        batch
    }

    /// Hands a batch to the disk. It may be taken back and grow until the disk is ready for it.
    /// An empty batch is kept for the next call and is no commit.
    pub fn submit(&mut self, mut batch: Batch, now_ms: u64) -> Result<Position, Failure> {
        self.in_hand = false;
        if let Some(failure) = self.shared.failure() {
            return Err(failure.clone());
        }
        if batch.is_empty() {
            let before = Position(batch.position.0.saturating_sub(1));
            self.unused = Some(batch);
            return Ok(before);
        }
        batch.now_ms = now_ms;
        batch.sum_up();
        let position = self.account(&batch);
        let small = batch.bytes() <= self.options.limits.batch_bytes / SMALL_PART;
        if small && batch.commit_here && !self.threads.is_empty() {
            self.shared.commit_or_push(batch, &self.ring)?;
        } else {
            self.shared.push(batch);
        }
        Ok(position)
    }

    fn enqueue(&mut self, batch: Batch) -> Position {
        let position = self.account(&batch);
        self.shared.push(batch);
        position
    }

    /// Notes where a batch lies that is now the newest.
    fn account(&mut self, batch: &Batch) -> Position {
        let position = batch.position;
        let place = if position == self.newest.0 { self.newest.1 } else { self.next_place() };
        self.newest = (position, place, batch.padded_bytes());
        if place.offset == FIRST_ENTRY {
            self.starts.insert(place.segment, position);
        }
        position
    }

    fn next_place(&self) -> Place {
        let (_, place, bytes) = &self.newest;
        place.after(*bytes, &self.options, |number| self.supply.bytes_of(number))
    }

    /// The greatest position known durable. Cheap; only grows.
    pub fn durable(&self) -> Position {
        self.shared.durable()
    }

    /// The position of the newest submitted batch.
    pub fn submitted(&self) -> Position {
        self.newest.0
    }

    /// Everything submitted so far, to wait for elsewhere.
    pub fn newest_commit(&self) -> Commit {
        Commit { shared: Arc::clone(&self.shared), position: self.newest.0 }
    }

    /// The epoch this owner writes under.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Why the log has stopped, if it has.
    pub fn failure(&self) -> Option<&Failure> {
        self.shared.failure()
    }

    /// Waits until everything submitted is durable; without threads, commits it here and now.
    pub fn flush(&mut self) -> Result<Position, Failure> {
        if self.threads.is_empty() {
            let mut ring = lock(&self.ring);
            while let Some(outcome) = self.shared.commit_next(&mut ring) {
                outcome?;
            }
        } else {
            self.shared.wait(self.newest.0)?;
        }
        if let Some(failure) = self.shared.failure() {
            return Err(failure.clone());
        }
        Ok(self.durable())
    }

    /// Writes an empty entry behind the newest one, so that damage to it can no longer pass for a
    /// torn tail. Worth doing when the log falls idle.
    pub fn confirm(&mut self, now_ms: u64) -> Result<Position, Failure> {
        self.append_empty(0, now_ms)
    }

    fn append_empty(&mut self, flags: u16, now_ms: u64) -> Result<Position, Failure> {
        if let Some(failure) = self.shared.failure() {
            return Err(failure.clone());
        }
        self.close_queued();
        self.unused = None;
        let place = self.next_place();
        let next = self.newest.0.next();
        let mut batch = Batch::new(Vec::new(), location(&place), next, self.options.limits);
        (batch.flags, batch.now_ms, batch.closed) = (flags, now_ms, true);
        Ok(self.enqueue(batch))
    }

    /// Gives up the buffers that are kept for the next batches: it may be long until there are any.
    pub fn drop_buffers(&mut self) {
        self.unused = None;
        self.shared.drop_buffers();
    }

    /// Fixes the content of everything submitted.
    fn close_queued(&self) {
        assert!(!self.in_hand, "a batch in hand is submitted before the log is asked for more");
        self.shared.close_queued();
    }

    /// Ends the log in good order: everything submitted becomes durable, then a closing entry, then a note about it.
    /// Nothing hangs on the note: without it, the next start reads more.
    pub fn close(mut self, now_ms: u64) -> Result<Position, Failure> {
        self.append_empty(FLAG_CLOSED, now_ms)?;
        let position = self.flush()?;
        self.stop();
        let tail = lock(&self.ring).tail();
        if self.shared.failure().is_none() {
            Closing::write(&*self.disk, self.options.shard, &tail).unwrap_or_default();
        }
        Ok(position)
    }

    fn stop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() && !std::thread::panicking() {
                panic_again();
            }
        }
    }

    /// A reader of records, for any thread.
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.disk), Arc::clone(&self.shared))
    }

    /// Starts a snapshot of everything submitted so far; the content must be the state as of
    /// [`SnapshotWriter::position`].
    pub fn snapshot(&mut self, pace: Pace) -> Result<SnapshotWriter, snapshot::Error> {
        self.close_queued();
        let position = self.newest.0;
        self.shared.want_chain(position);
        self.snapshots.begin(position, self.epoch, location(&self.next_place()), pace)
    }

    /// Starts an extent, to move live records of old segments into.
    pub fn extent(&self) -> Result<ExtentWriter, extent::Error> {
        Ok(self.extents.begin()?)
    }

    /// Notes that nothing live lies in a region any more, by records already encoded. Its space is
    /// used again once those records are durable and no kept snapshot can lead back to it.
    pub fn release(&self, region: Region) {
        let emptied_by = if self.in_hand { self.newest.0.next() } else { self.newest.0 };
        if region.is_extent() {
            self.extents.release(region.number(), emptied_by);
        } else {
            self.supply.release(region.number(), emptied_by);
        }
        self.shared.kick();
    }

    /// Notes that a segment is full of records that stay where they are. From now on it does not count for the ring; it
    /// is released like any other. Not written down: after a start, its owner says so again.
    pub fn rest(&self, region: Region) {
        if !region.is_extent() {
            self.supply.rest(region.number());
            self.shared.kick();
        }
    }

    /// Releases every segment that holds nothing after `position`, for owners that keep nothing
    /// live in the log.
    pub fn release_through(&mut self, position: Position) {
        let later = self.starts.iter().find(|(_, first)| first.0 > position.0.saturating_add(1));
        let end = later.map_or(self.newest.1.segment, |(segment, _)| segment.saturating_sub(1));
        for number in self.supply.numbers().into_iter().filter(|number| *number < end) {
            self.release(Region::segment(number));
        }
        self.starts = self.starts.split_off(&end);
    }

    /// Reads the log from disk again while it is open, with its files held still.
    pub(crate) fn reopened<T>(
        &self,
        read: impl FnOnce(Opening) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _files = self.supply.files();
        read(Opening::begin(Arc::clone(&self.disk), self.options.clone())?)
    }

    /// Every region there is. After recovery, those nothing refers to are to be released.
    pub fn regions(&self) -> Vec<Region> {
        let segments = self.supply.numbers().into_iter().map(Region::segment);
        segments.chain(self.extents.numbers().into_iter().map(Region::extent)).collect()
    }

    /// How full the ring is, and what would help.
    pub fn pressure(&self) -> Pressure {
        self.supply.pressure()
    }

    /// Asks, before an append, whether there is room for it. `now_ms` decides when the free
    /// space is looked at again.
    pub fn permit(&mut self, appending: Appending, now_ms: u64) -> Result<(), NoRoom> {
        if self.gauge.is_stale(now_ms) {
            // Not knowing counts as no free space: what is set aside in files still is.
            let free = self.disk.free_bytes().unwrap_or_default();
            self.gauge.see(free, now_ms);
            self.shared.kick();
        }
        let left = on_disk(Ring::left_bytes(&self.next_place()));
        let set_aside = self.supply.set_aside_bytes().saturating_add(left);
        let used = on_disk(self.supply.in_ring()).saturating_mul(self.options.segment_bytes);
        let permitted = self.gauge.permit(appending, &self.options, set_aside, used);
        if appending == Appending::Growing {
            self.supply.note_disk(matches!(permitted, Err(NoRoom::Disk { .. })));
        }
        permitted
    }

    /// Does the background work here and now; for logs without threads.
    pub fn upkeep(&self) {
        keep_up(&self.shared, &self.supply, &self.extents, &self.ring, Pace::UNLIMITED);
    }
}

/// A panic of a log thread is a bug in the log; its owner must not carry on without it.
#[expect(clippy::panic, reason = "the thread's own panic was already a broken invariant")]
fn panic_again() -> ! {
    panic!("a thread of the log panicked")
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests;
