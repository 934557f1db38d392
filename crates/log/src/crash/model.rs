//! The smallest store worth crashing: things are put, done, and moved to extents.
//!
//! It uses the log as the broker does and remembers what its state was after every batch. After
//! any crash the recovered state must be *exactly* the state after some batch, not before the
//! last acknowledged one, and everything in it must be readable.

use crate::batch::{Batch, ReadBack};
use crate::dice::Dice;
use crate::disk::{Disk, FileName, SimDisk};
use crate::entry::Entry;
use crate::location::{Location, Position, Region};
use crate::log::Log;
use crate::options::Options;
use crate::pace::Pace;
use crate::reader;
use crate::recovery::{Findings, OpenError, Opening, Recovered};
use crate::ring::Failure;
use crate::shared::{Notice, Notify};
use crate::units::{on_disk, u32_at, u64_at};
use std::collections::BTreeMap;
use std::sync::Arc;

const PUT: u8 = 1;
const DONE: u8 = 2;
const MOVED: u8 = 3;
const ITEM_BYTES: usize = 20;

/// What is in the store: where each thing lies and how long it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    things: BTreeMap<u64, (Location, u32)>,
}

impl State {
    fn apply(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        for record in entry.records() {
            let record = record.map_err(|error| error.to_string())?;
            let id = u64_at(record.fixed, 0).unwrap_or_default();
            match record.kind {
                PUT => {
                    let length = u32::try_from(record.payload.len()).unwrap_or(u32::MAX);
                    self.things.insert(id, (record.location, length));
                }
                DONE => {
                    self.things.remove(&id);
                }
                MOVED => self.load(record.payload),
                kind => return Err(format!("record of unknown kind {kind}")),
            }
        }
        Ok(())
    }

    fn load(&mut self, items: &[u8]) {
        for item in items.chunks_exact(ITEM_BYTES) {
            if let (Some(id), Some(location), Some(length)) =
                (u64_at(item, 0), u64_at(item, 8), u32_at(item, 16))
            {
                self.things.insert(id, (Location::from_raw(location), length));
            }
        }
    }

    fn save<'a>(things: impl IntoIterator<Item = (&'a u64, &'a (Location, u32))>) -> Vec<u8> {
        let mut items = Vec::new();
        for (id, (location, length)) in things {
            items.extend_from_slice(&id.to_le_bytes());
            items.extend_from_slice(&location.raw().to_le_bytes());
            items.extend_from_slice(&length.to_le_bytes());
        }
        items
    }

    /// The ids in the store and the lengths of their contents, wherever they lie.
    fn outline(&self) -> Outline {
        self.things.iter().map(|(id, (_, length))| (*id, *length)).collect()
    }

    /// Reads everything and compares it with what was put.
    fn check_contents(&self, disk: &dyn Disk) -> Result<(), String> {
        for (id, (location, length)) in &self.things {
            let hint = usize::try_from(*length).unwrap_or_default();
            let record =
                reader::read_from(disk, *location, hint).map_err(|error| format!("thing {id}: {error}"))?;
            if record.payload != contents(*id, hint) {
                return Err(format!("thing {id} at {location} has other contents than were put"));
            }
        }
        Ok(())
    }
}

type Outline = BTreeMap<u64, u32>;

fn contents(id: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Dice::new(id).fill(&mut bytes);
    bytes
}

/// What the store held after each batch that was submitted.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    after: BTreeMap<Position, Arc<Outline>>,
}

impl History {
    /// What was in the store after `position`: batches that hold nothing change nothing.
    fn at(&self, position: Position) -> Outline {
        self.after
            .range(..=position)
            .next_back()
            .map(|(_, outline)| Outline::clone(outline))
            .unwrap_or_default()
    }

    /// The history of a store that recovered to `position`: what came after never was.
    pub(super) fn up_to(&self, position: Position) -> Self {
        Self {
            after: self.after.range(..=position).map(|(at, outline)| (*at, Arc::clone(outline))).collect(),
        }
    }

    fn newest(&self) -> Position {
        self.after.keys().next_back().copied().unwrap_or_default()
    }
}

/// What a recovery came back with.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) state: State,
    pub(super) position: Position,
    pub(super) findings: Findings,
    recovered: Recovered,
}

/// Recovers from what is on `disk`, changing nothing there.
pub(super) fn recover(disk: &SimDisk, options: &Options) -> Result<Found, OpenError> {
    let mut opening = Opening::begin(Arc::new(disk.clone()), options.clone())?;
    let mut state = State::default();
    if let Some(snapshot) = opening.snapshot() {
        let position = snapshot.about().position;
        let mut items = Vec::new();
        loop {
            match snapshot.next_block() {
                Ok(Some(block)) => items.extend_from_slice(&block),
                Ok(None) => break,
                Err(error) => return Err(OpenError::Replay { position, source: error.into() }),
            }
        }
        state.load(&items);
    }
    let recovered = opening.replay(|entry| state.apply(entry))?;
    let (position, findings) = (recovered.position(), recovered.findings().clone());
    Ok(Found { state, position, findings, recovered })
}

/// Checks a recovery against the promise: exactly the state after some submitted batch, not
/// before the last acknowledged one, and every byte of it readable.
pub(super) fn check(found: &Found, disk: &SimDisk, history: &History, acked: Position) -> Result<(), String> {
    if found.position < acked {
        return Err(format!("recovered to {}, but {acked} was acknowledged", found.position));
    }
    if found.state.outline() != history.at(found.position) {
        return Err(format!("recovered state is not what {} left", found.position));
    }
    found.state.check_contents(disk)
}

/// The store, running.
#[derive(Debug)]
pub(super) struct Store {
    disk: SimDisk,
    log: Log,
    state: State,
    pub(super) history: History,
    dice: Dice,
    next_id: u64,
    now_ms: u64,
}

impl Store {
    /// Opens the store. Every acknowledgement leaves a mark in the disk's recording.
    pub(super) fn open(disk: &SimDisk, options: &Options, seed: u64) -> Result<Self, OpenError> {
        let found = recover(disk, options)?;
        Self::resume(disk, found, &History::default(), seed)
    }

    /// Goes on from a recovery.
    pub(super) fn resume(
        disk: &SimDisk,
        found: Found,
        history: &History,
        seed: u64,
    ) -> Result<Self, OpenError> {
        let Found { state, position, recovered, .. } = found;
        let history = history.up_to(position);
        let marker = disk.clone();
        let notify: Notify = Arc::new(move |notice| {
            if let Notice::Durable(position) = notice {
                marker.mark(position.0);
            }
        });
        let log = recovered.start_manual(notify, 1)?;
        disk.mark(log.durable().0);
        let next_id = history.after.values().flat_map(|outline| outline.keys()).max().map_or(1, |id| id + 1);
        let mut store =
            Self { disk: disk.clone(), log, state, history, dice: Dice::new(seed), next_id, now_ms: 1 };
        for region in store.log.regions() {
            store.release_if_empty(region);
        }
        Ok(store)
    }

    pub(super) fn durable(&self) -> Position {
        self.log.durable()
    }

    /// The newest batch the store has submitted.
    pub(super) fn newest(&self) -> Position {
        self.history.newest()
    }

    /// Ends in good order.
    pub(super) fn close(self) -> Result<History, Failure> {
        self.log.close(self.now_ms)?;
        Ok(self.history)
    }

    /// One random thing a broker would do. Errors of the log end the store, as they would a broker.
    pub(super) fn step(&mut self) -> Result<(), String> {
        self.now_ms += 1;
        match self.dice.below(32) {
            0..=14 => self.put_some(),
            15..=20 => self.complete_some(),
            21..=25 => self.flush(),
            26 | 27 => self.upkeep(),
            28 => self.snapshot(),
            29 => self.evacuate(),
            30 => self.log.confirm(self.now_ms).map(drop).map_err(|error| error.to_string()),
            _ => {
                self.flush()?;
                self.snapshot()?;
                self.evacuate()?;
                self.upkeep()
            }
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), String> {
        self.log.flush().map(drop).map_err(|error| error.to_string())
    }

    fn upkeep(&mut self) -> Result<(), String> {
        self.log.upkeep();
        self.log.failure().map_or(Ok(()), |failure| Err(failure.to_string()))
    }

    fn batch(&mut self) -> Result<Batch, String> {
        if let Some(batch) = self.log.batch() {
            return Ok(batch);
        }
        self.flush()?;
        self.log.batch().ok_or_else(|| "no batch although everything is flushed".to_owned())
    }

    fn submit(&mut self, mut batch: Batch) -> Result<(), String> {
        batch.set_read_back(if batch.count() % 2 == 1 { ReadBack::Never } else { ReadBack::Stretches });
        let position = self.log.submit(batch, self.now_ms).map_err(|error| error.to_string())?;
        self.history.after.insert(position, Arc::new(self.state.outline()));
        Ok(())
    }

    pub(super) fn put_some(&mut self) -> Result<(), String> {
        let mut batch = self.batch()?;
        for _ in 0..=self.dice.below(3) {
            let id = self.next_id;
            let length = if self.dice.below(4) == 0 { 0 } else { self.dice.index(1500) };
            let payload = contents(id, length);
            let (head, rest) = payload.split_at(length / 2);
            let Ok(location) = batch.record(PUT, &id.to_le_bytes(), &[head, rest]) else { break };
            self.next_id += 1;
            self.state.things.insert(id, (location, u32::try_from(length).unwrap_or_default()));
        }
        self.submit(batch)
    }

    /// Fills a batch to its cap.
    pub(super) fn fill_batch(&mut self) -> Result<(), String> {
        let mut batch = self.batch()?;
        while !batch.is_full() {
            let id = self.next_id;
            let length = 700 + self.dice.index(500);
            let location = batch
                .record(PUT, &id.to_le_bytes(), &[&contents(id, length)])
                .map_err(|error| error.to_string())?;
            self.next_id += 1;
            self.state.things.insert(id, (location, u32::try_from(length).unwrap_or_default()));
        }
        self.submit(batch)
    }

    /// Whether the log has stopped.
    pub(super) fn has_failed(&self) -> bool {
        self.log.failure().is_some()
    }

    fn complete_some(&mut self) -> Result<(), String> {
        let mut batch = self.batch()?;
        for _ in 0..=self.dice.below(6) {
            let index = self.dice.index(self.state.things.len().min(12));
            let Some(id) = self.state.things.keys().nth(index).copied() else { break };
            if batch.record(DONE, &id.to_le_bytes(), &[]).is_err() {
                break;
            }
            self.state.things.remove(&id);
        }
        self.submit(batch)?;
        for region in self.log.regions() {
            self.release_if_empty(region);
        }
        Ok(())
    }

    fn release_if_empty(&mut self, region: Region) {
        let live = self.state.things.values().any(|(location, _)| location.region() == region);
        if !live {
            self.log.release(region);
        }
    }

    fn snapshot(&mut self) -> Result<(), String> {
        let mut snapshot = self.log.snapshot(Pace::UNLIMITED).map_err(|error| error.to_string())?;
        let items = State::save(&self.state.things);
        snapshot.write(&items).map_err(|error| error.to_string())?;
        self.flush()?;
        snapshot.finish().map(drop).map_err(|error| error.to_string())
    }

    /// Moves what lives in the oldest region to a new extent.
    fn evacuate(&mut self) -> Result<(), String> {
        let oldest = self.state.things.values().map(|(location, _)| location.region()).min();
        let Some(region) = oldest.filter(|region| !region.is_extent()) else { return Ok(()) };
        let moving: Vec<_> = self
            .state
            .things
            .iter()
            .filter(|(_, (location, _))| location.region() == region)
            .map(|(id, (location, length))| (*id, *location, *length))
            .take(60)
            .collect();
        let reader = self.log.reader();
        let mut extent = self.log.extent().map_err(|error| error.to_string())?;
        let mut moved = BTreeMap::new();
        for (id, location, length) in moving {
            let record = reader
                .read(location, usize::try_from(length).unwrap_or_default())
                .map_err(|error| error.to_string())?;
            let place =
                extent.append(PUT, &record.fixed, &[&record.payload]).map_err(|error| error.to_string())?;
            moved.insert(id, (place, length));
        }
        let list = State::save(&moved);
        extent.finish(&list, b"moved").map_err(|error| error.to_string())?;
        let mut batch = self.batch()?;
        if batch.record(MOVED, b"", &[&list]).is_err() {
            self.submit(batch)?;
            self.flush()?;
            batch = self.batch()?;
            batch.record(MOVED, b"", &[&list]).map_err(|error| error.to_string())?;
        }
        self.state.things.extend(moved);
        self.submit(batch)?;
        self.release_if_empty(region);
        Ok(())
    }

    /// Every file that means something, and its length: what damage can aim at.
    pub(super) fn targets(disk: &SimDisk) -> Vec<(FileName, u64)> {
        let files = disk.list().unwrap_or_default().into_iter();
        let meaningful = files.filter(|file| !matches!(file, FileName::Spare(_) | FileName::SpareTemp(_)));
        meaningful.filter_map(|file| disk.contents(file).map(|bytes| (file, on_disk(bytes.len())))).collect()
    }

    /// The disk it runs on.
    pub(super) fn disk(&self) -> &SimDisk {
        &self.disk
    }
}
