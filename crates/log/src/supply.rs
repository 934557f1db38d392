//! The supply of segments: which are in use, which come next, which can be used again.
//!
//! A file passes through three names. As a *spare* it has written blocks and no meaning. It
//! becomes a *segment* in this order: new header with a new salt, sync, rename, directory sync;
//! only then may an entry go into it. When nothing in it is needed any more it becomes a spare
//! again: rename, directory sync; only then may its header be overwritten. At every point a crash
//! leaves either the old meaning or the new one.
//!
//! Blocks that were written before are several times faster to overwrite durably than fresh
//! ones, which is why spares are zero-filled once, in the background, and then kept.
//!
//! Large commits gain little by that: they take long whatever was in their blocks, and zeros would double what goes to the
//! disk. So while segments are filled [in bulk](Supply::set_bulk), new files are made without; and of the very first
//! segment only a beginning has zeros when the log starts. What is left of an active segment is filled up
//! [ahead](crate::ring::Ring::fill_ahead) of small commits.
//!
//! A segment can [rest](Supply::rest): it is full of records that stay where they are for long. Then it does not count
//! for the ring, which goes on with other files.

use crate::disk::{Disk, DiskError, FileName, Trouble};
use crate::entry::BLOCK_BYTES;
use crate::location::{Position, Region};
use crate::options::{Options, Planted};
use crate::segment::Segment;
use crate::units::{in_memory, on_disk};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Zero-filling goes in steps of this size, each synced, so that it never floods the disk.
const FILL_BYTES: usize = 1 << 20;
/// The active segment is filled ahead in steps of this size, since no commit goes on meanwhile.
pub(crate) const AHEAD_BYTES: usize = 256 << 10;
/// The rest before a file, as for so many bytes: a start should not share the disk with it.
const LEAD_BYTES: u64 = 16 << 20;
/// The number of the very first segment.
const FIRST: u32 = 1;
/// The part of the very first segment that is zero-filled before the log starts, 256 KiB: enough for the first commits.
const FIRST_FILL_PART: u64 = 11;
/// Evacuation is asked for while this many segments of the ring are still free.
const HEADROOM_SEGMENTS: usize = 4;

/// All segment files of a log.
#[derive(Debug)]
pub(crate) struct Supply {
    disk: Arc<dyn Disk>,
    options: Options,
    /// Held while files change, which takes as long as the disk takes. Taken before `state`.
    files: Mutex<()>,
    /// Held only to look or to note; the shard asks often and must never wait for the disk.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The segments of the ring, by number; the last may be the prepared one.
    segments: BTreeMap<u32, Held>,
    /// Those that rest.
    resting: BTreeMap<u32, Held>,
    /// The segment after the active one, if it is prepared.
    ready: Option<Segment>,
    /// The segment being written to, and which one that was at the start.
    active: u32,
    first_active: u32,
    spares: Vec<u32>,
    next_spare: u32,
    /// Segments below this number are not needed by any kept snapshot.
    covered_below: u32,
    /// Whether the disk was too full for the backlog to grow when last asked.
    disk_short: bool,
    /// Whether segments are filled by large commits.
    bulk: bool,
}

impl State {
    /// Every segment with a name.
    fn all(&self) -> impl Iterator<Item = (&u32, &Held)> {
        self.resting.iter().chain(&self.segments)
    }

    /// Whether the log will soon need a file that is not there yet. Not before it has gone on to another segment since it
    /// was started: its owner has better things to do then.
    fn is_hard_pressed(&self) -> bool {
        self.active > self.first_active && self.ready.is_none() && self.spares.is_empty()
    }
}

#[derive(Debug)]
struct Held {
    bytes: u64,
    /// The batch after which nothing in it is needed.
    released: Option<Position>,
    /// Where blocks begin that were never written; at its end for one that has been in use before.
    fresh_from: u64,
}

impl Held {
    fn new(bytes: u64) -> Held {
        Held { bytes, released: None, fresh_from: bytes }
    }
}

/// How full the ring is, and what would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// Segments in use, the prepared one included and those that rest left out.
    pub used_segments: usize,
    /// Those of them that hold live records or may get some. The others are free as soon as snapshots cover them.
    pub live_segments: usize,
    /// Segments full of records that stay where they are.
    pub resting_segments: usize,
    /// Segments the ring may have.
    pub ring_segments: usize,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// The oldest segment still holding live records, when the ring runs short: move them.
    pub evacuate: Option<Region>,
    /// Released segments wait only for a newer snapshot to cover them, and the ring or the disk runs short.
    pub snapshot_wanted: bool,
    /// The disk is too full for the backlog to grow: segments that hold little should be emptied.
    pub disk_short: bool,
}

/// What a step of upkeep found to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upkeep {
    /// Something was done; there may be more.
    Worked,
    /// Nothing is left to do.
    Idle,
    /// The disk has no room for more spare segments now.
    NoSpace,
}

impl Supply {
    /// Takes over the segment files found at start. `ready` is the empty one after the active.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: Options,
        segments: impl IntoIterator<Item = Segment>,
        active: u32,
        spares: Vec<u32>,
    ) -> Self {
        let mut state = State { active, first_active: active.max(1), ..State::default() };
        for segment in segments {
            state.segments.insert(segment.number, Held::new(segment.bytes));
            if segment.number == active.saturating_add(1) {
                state.ready = Some(segment);
            }
        }
        state.next_spare = spares.iter().max().map_or(1, |newest| newest.saturating_add(1));
        state.spares = spares;
        Self { disk, options, files: Mutex::new(()), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps segment files from changing their names for as long as the guard lives.
    pub(crate) fn files(&self) -> MutexGuard<'_, ()> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure the segment after the active one exists, durably.
    pub(crate) fn prepare(&self) -> Result<Segment, DiskError> {
        let _files = self.files();
        let (ready, active) = {
            let state = self.state();
            (state.ready, state.active)
        };
        if let Some(ready) = ready {
            return Ok(ready);
        }
        let number = active.checked_add(1).expect("segment numbers last for centuries");
        let segment = self.name_segment(number, self.options.segment_bytes)?;
        self.state().ready = Some(segment);
        Ok(segment)
    }

    /// Moves on to the prepared segment.
    pub(crate) fn advance(&self) -> Result<Segment, DiskError> {
        let segment = self.prepare()?;
        let mut state = self.state();
        state.active = segment.number;
        state.ready = None;
        Ok(segment)
    }

    /// What the first segment of a new log will be; its file comes with the first commit.
    pub(crate) fn first(&self) -> Result<Segment, DiskError> {
        let segment = self.segment(FIRST, self.options.first_segment_bytes)?;
        let mut state = self.state();
        state.active = FIRST;
        state
            .segments
            .insert(FIRST, Held { fresh_from: self.first_fill_bytes(), ..Held::new(segment.bytes) });
        Ok(segment)
    }

    /// Makes the file of the first segment, with zeros where its first entries go.
    pub(crate) fn make_first(&self, segment: &Segment) -> Result<(), DiskError> {
        let _files = self.files();
        let file = self.fresh_file(segment.bytes)?;
        self.disk.zero(file, 0, in_memory(self.first_fill_bytes()))?;
        self.name(file, segment)
    }

    fn first_fill_bytes(&self) -> u64 {
        let blocks = self.options.first_segment_bytes / FIRST_FILL_PART / on_disk(BLOCK_BYTES);
        blocks.saturating_mul(on_disk(BLOCK_BYTES))
    }

    /// Turns a spare, or failing that a fresh file, into segment `number`.
    fn name_segment(&self, number: u32, bytes: u64) -> Result<Segment, DiskError> {
        let segment = self.segment(number, bytes)?;
        let kept = self.state().spares.pop();
        let (file, fresh_from) = match kept {
            Some(spare) => (FileName::Spare(spare), bytes),
            None => (self.fresh_file(bytes)?, 0),
        };
        self.name(file, &segment)?;
        self.state().segments.insert(number, Held { fresh_from, ..Held::new(bytes) });
        Ok(segment)
    }

    /// A segment that is none yet.
    fn segment(&self, number: u32, bytes: u64) -> Result<Segment, DiskError> {
        Ok(Segment { number, shard: self.options.shard, bytes, salt: self.disk.entropy()? })
    }

    /// A spare whose blocks were never written.
    fn fresh_file(&self, bytes: u64) -> Result<FileName, DiskError> {
        let file = FileName::Spare(self.new_spare());
        self.disk.create(file, bytes)?;
        Ok(file)
    }

    /// Turns a spare into a segment.
    fn name(&self, file: FileName, segment: &Segment) -> Result<(), DiskError> {
        let name = segment.file();
        if self.options.has(Planted::NameBeforeHeader) {
            self.disk.rename(file, name)?;
            self.disk.sync_directory()?;
            self.disk.write_at(name, 0, &[&segment.encode()])?;
            self.disk.sync(name)?;
        } else {
            self.disk.write_at(file, 0, &[&segment.encode()])?;
            self.disk.sync(file)?;
            self.disk.rename(file, name)?;
            if !self.options.has(Planted::NoDirectorySync) {
                self.disk.sync_directory()?;
            }
        }
        Ok(())
    }

    /// Notes whether segments are filled by large commits.
    pub(crate) fn set_bulk(&self, bulk: bool) {
        self.state().bulk = bulk;
    }

    /// The stretch of a segment that small commits should find written, and that was not yet; none while commits are large.
    pub(crate) fn fresh(&self, number: u32) -> Option<Range<u64>> {
        let state = self.state();
        let held = state.segments.get(&number).filter(|_| !state.bulk)?;
        // Where an entry can begin. What is behind that only a large one reaches.
        let end = held.bytes.saturating_sub(on_disk(self.options.limits.entry_bytes()));
        Some(held.fresh_from..end).filter(|fresh| !fresh.is_empty())
    }

    /// Notes that the blocks of a segment were written up to here.
    pub(crate) fn note_written(&self, number: u32, to: u64) {
        if let Some(held) = self.state().segments.get_mut(&number) {
            held.fresh_from = held.fresh_from.max(to);
        }
    }

    /// The rest before the active segment is filled ahead, as for so many bytes; none if nothing of it is to be.
    pub(crate) fn rest_before_filling_ahead(&self) -> Option<u64> {
        let active = self.state().active;
        let fresh = self.fresh(active)?;
        let at_start = active == FIRST && fresh.start <= self.first_fill_bytes();
        Some(if at_start { LEAD_BYTES } else { on_disk(AHEAD_BYTES) })
    }

    fn new_spare(&self) -> u32 {
        let mut state = self.state();
        let spare = state.next_spare;
        state.next_spare = spare.wrapping_add(1);
        spare
    }

    /// Notes that a segment holds nothing live after `position`. It is used again once that batch
    /// is durable and the snapshots allow.
    pub(crate) fn release(&self, number: u32, position: Position) {
        let mut state = self.state();
        if number >= state.active {
            return;
        }
        let state = &mut *state;
        if let Some(held) = state.segments.get_mut(&number).or_else(|| state.resting.get_mut(&number)) {
            held.released.get_or_insert(position);
        }
    }

    /// Notes that a segment is full of records that stay where they are, and does not count for the ring.
    pub(crate) fn rest(&self, number: u32) {
        let mut state = self.state();
        if number < state.active
            && let Some(held) = state.segments.remove(&number)
        {
            state.resting.insert(number, held);
        }
    }

    /// Notes that no kept snapshot needs segments below `number`.
    pub(crate) fn cover_below(&self, number: u32) {
        let mut state = self.state();
        state.covered_below = state.covered_below.max(number);
    }

    /// Notes whether the disk is too full for the backlog to grow.
    pub(crate) fn note_disk(&self, is_short: bool) {
        self.state().disk_short = is_short;
    }

    /// Does one piece of background work: takes back a released segment, prepares the next one,
    /// or fills a spare. `pause` is called with the number of bytes about to be filled.
    pub(crate) fn upkeep(&self, durable: Position, pause: &dyn Fn(u64)) -> Result<Upkeep, DiskError> {
        match self.plan(durable) {
            Task::TakeBack(number, bytes) => self.take_back(number, bytes)?,
            Task::Prepare if !self.may_prepare()? => return Ok(Upkeep::NoSpace),
            Task::Prepare => match self.prepare() {
                Err(error) if error.trouble == Trouble::NoSpace => return Ok(Upkeep::NoSpace),
                other => drop(other?),
            },
            Task::Fill => return self.fill(pause),
            Task::Nothing => return Ok(Upkeep::Idle),
        }
        Ok(Upkeep::Worked)
    }

    /// Whether there is a spare to prepare, or room for a file of its own.
    fn may_prepare(&self) -> Result<bool, DiskError> {
        let has_spare = !self.state().spares.is_empty();
        Ok(has_spare || self.has_room_for_segment()?)
    }

    /// Whether the disk has room for another segment beside what is never taken.
    fn has_room_for_segment(&self) -> Result<bool, DiskError> {
        let wanted = self.options.segment_bytes.saturating_add(self.options.disk_reserve_bytes);
        Ok(self.disk.free_bytes()? >= wanted)
    }

    fn plan(&self, durable: Position) -> Task {
        let state = self.state();
        let covered =
            |number: u32| number < state.covered_below || self.options.has(Planted::ReleaseBeforeSnapshot);
        let settled =
            |position: Position| position <= durable || self.options.has(Planted::ReleaseBeforeDurable);
        let back = state.all().find(|(number, held)| held.released.is_some_and(settled) && covered(**number));
        if let Some((number, held)) = back {
            return Task::TakeBack(*number, held.bytes);
        }
        if state.ready.is_none() && (state.bulk || !state.spares.is_empty()) {
            return Task::Prepare;
        }
        let spares = state.spares.len();
        let wanted = in_memory(u64::from(self.options.spare_segments));
        let within = state.segments.len() + spares < self.options.ring_segments().max(wanted);
        if spares < wanted && within && !state.bulk { Task::Fill } else { Task::Nothing }
    }

    fn take_back(&self, number: u32, bytes: u64) -> Result<(), DiskError> {
        let _files = self.files();
        let total = {
            let state = self.state();
            state.segments.len() + state.spares.len()
        };
        if bytes == self.options.segment_bytes && total <= self.options.ring_segments() {
            let spare = self.new_spare();
            self.disk.rename(FileName::Segment(number), FileName::Spare(spare))?;
            if !self.options.has(Planted::ReuseBeforeDirectorySync) {
                self.disk.sync_directory()?;
            }
            self.state().spares.push(spare);
        } else {
            self.disk.remove(FileName::Segment(number))?;
            self.disk.sync_directory()?;
        }
        let mut state = self.state();
        state.segments.remove(&number);
        state.resting.remove(&number);
        Ok(())
    }

    /// Writes a spare full of zeros under a temporary name. Nobody waits for this: the file is
    /// nobody else's until it has its name.
    fn fill(&self, pause: &dyn Fn(u64)) -> Result<Upkeep, DiskError> {
        let bytes = self.options.segment_bytes;
        if !self.has_room_for_segment()? {
            return Ok(Upkeep::NoSpace);
        }
        let spare = self.new_spare();
        let file = FileName::SpareTemp(spare);
        match self.disk.create(file, bytes) {
            Err(error) if error.trouble == Trouble::NoSpace => return Ok(Upkeep::NoSpace),
            other => other?,
        }
        let mut offset = 0;
        while offset < bytes {
            let left = in_memory(bytes - offset).min(FILL_BYTES);
            if !self.state().is_hard_pressed() {
                pause(if offset == 0 { LEAD_BYTES } else { on_disk(left) });
            }
            self.disk.zero(file, offset, left)?;
            self.disk.sync(file)?;
            offset += on_disk(left);
        }
        self.disk.rename(file, FileName::Spare(spare))?;
        self.disk.sync_directory()?;
        self.state().spares.push(spare);
        Ok(Upkeep::Worked)
    }

    pub(crate) fn pressure(&self) -> Pressure {
        let state = self.state();
        let ring = self.options.ring_segments();
        let used = state.segments.len();
        let short = used + HEADROOM_SEGMENTS > ring;
        let mut live =
            state.segments.iter().filter(|(number, held)| held.released.is_none() && **number < state.active);
        let released = state.segments.values().filter(|held| held.released.is_some()).count();
        let waits = |(number, held): (&u32, &Held)| held.released.is_some() && *number >= state.covered_below;
        let waiting = state.segments.iter().any(waits) || state.disk_short && state.resting.iter().any(waits);
        Pressure {
            used_segments: used,
            live_segments: used.saturating_sub(released),
            resting_segments: state.resting.len(),
            ring_segments: ring,
            segment_bytes: self.options.segment_bytes,
            evacuate: live.next().filter(|_| short).map(|(number, _)| Region::segment(*number)),
            snapshot_wanted: (short || state.disk_short) && waiting,
            disk_short: state.disk_short,
        }
    }

    /// Bytes of segments that exist beyond the active one: they can be written without asking
    /// the file system for anything.
    pub(crate) fn set_aside_bytes(&self) -> u64 {
        let state = self.state();
        let ready = state.ready.map_or(0, |segment| segment.bytes);
        on_disk(state.spares.len()).saturating_mul(self.options.segment_bytes).saturating_add(ready)
    }

    /// The numbers of all segments with a name.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.state().all().map(|(number, _)| *number).collect()
    }

    /// How many segments count for the ring.
    pub(crate) fn in_ring(&self) -> usize {
        self.state().segments.len()
    }

    /// The prepared segment's length, or the length the next one will have.
    pub(crate) fn bytes_of(&self, number: u32) -> u64 {
        self.state().segments.get(&number).map_or(self.options.segment_bytes, |held| held.bytes)
    }
}

#[derive(Debug)]
enum Task {
    TakeBack(u32, u64),
    Prepare,
    Fill,
    Nothing,
}
