//! A log in memory, shared like a remote one, in which every append can go wrong.
//!
//! The medium behaves like the worst of the engines we mean to build on: an append names the
//! address it expects to follow, which guards order but identifies no predecessor, so a deposed
//! owner's *later* appends can be accepted; answers get lost; appends land late. What makes it
//! safe is above the medium: the [`Chain`] and the rule to report only the contiguous prefix.

use crate::batch::{Batch, Limits};
use crate::chain::{Chain, Meaning};
use crate::entry::{self, ChainHash, Entry, FLAG_BARRIER, FLAG_EPOCH, Header};
use crate::location::{Epoch, Location, Position, Region};
use crate::reader::ReadError;
use crate::record::{self, Record};
use crate::recovery::Damage;
use crate::store::{AppendFault, LogStore, Medium, StoreError, Visit};
use crate::units::in_memory;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Appends on the way at once, as on a remote log.
const WINDOW: usize = 4;

/// What a log in memory is kept in; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryMedium {
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    /// Entries by address, from one. Trimmed ones are gone.
    entries: BTreeMap<u64, Bytes>,
    last: u64,
    late: Vec<Bytes>,
    snapshots: VecDeque<(Chain, u64, Vec<u8>)>,
    faults: VecDeque<AppendFault>,
    refusing: bool,
}

/// What came back from an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Accepted(u64),
    Conflict,
    Refused,
    /// None yet; this many more looks until it comes.
    Coming(u32, u64),
    Never,
}

/// Whether the owner would still wait for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    Left,
    AtAnEnd,
}

impl Content {
    /// Appends if the last address is the expected one, or in any case without an expectation.
    fn append(&mut self, expected: Option<u64>, bytes: Bytes) -> Answer {
        let fault = self.faults.pop_front();
        if self.refusing || fault == Some(AppendFault::Refused) {
            self.refusing = true;
            return Answer::Refused;
        }
        match fault {
            Some(AppendFault::Lost) => return Answer::Never,
            Some(AppendFault::Late) => {
                self.late.push(bytes);
                return Answer::Never;
            }
            _ => {}
        }
        if expected.is_some_and(|expected| expected != self.last) {
            return Answer::Conflict;
        }
        let address = self.store(bytes);
        for late in std::mem::take(&mut self.late) {
            self.store(late);
        }
        match fault {
            Some(AppendFault::LostAnswer) => Answer::Never,
            Some(AppendFault::Slow) => Answer::Coming(3, address),
            _ => Answer::Accepted(address),
        }
    }

    fn store(&mut self, bytes: Bytes) -> u64 {
        self.last += 1;
        self.entries.insert(self.last, bytes);
        self.last
    }
}

impl MemoryMedium {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads every entry from `address` on.
    fn entries_from(&self, address: u64) -> Vec<(u64, Bytes)> {
        self.content().entries.range(address..).map(|(address, bytes)| (*address, bytes.clone())).collect()
    }
}

impl Medium for MemoryMedium {
    type Store = MemoryLog;

    fn take_over(&self) -> Result<MemoryLog, StoreError> {
        let mut log = MemoryLog::before(self.clone());
        log.catch_up(&mut |_, _| Ok(()))?;
        let epoch = log.chain.epoch.next();
        // Unconditional: a live zombie's pipeline could starve a conditional append for ever.
        loop {
            let header = Header { flags: FLAG_EPOCH, epoch, ..log.header() };
            let (bytes, _) = entry::seal(&header, entry::RecordsChecksum::default(), 0);
            let answer = self.content().append(None, Bytes::copy_from_slice(&bytes));
            if answer == Answer::Refused {
                return Err(StoreError::Stopped("the medium refuses appends".to_owned()));
            }
            log.catch_up(&mut |_, _| Ok(()))?;
            if log.chain.epoch > epoch {
                return Err(StoreError::Fenced { by: log.chain.epoch });
            }
            if log.chain.epoch == epoch {
                break;
            }
        }
        log.own(epoch);
        Ok(log)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn inject(&self, fault: AppendFault) -> bool {
        self.content().faults.push_back(fault);
        true
    }
}

/// An append on the way.
#[derive(Debug)]
struct Sent {
    position: Position,
    hash: ChainHash,
    bytes: Bytes,
    answer: Answer,
}

/// One owner's log in memory.
#[derive(Debug)]
pub struct MemoryLog {
    medium: MemoryMedium,
    epoch: Epoch,
    /// What has been read back or acknowledged in order.
    chain: Chain,
    /// The address of the last entry the chain has seen.
    seen: u64,
    /// Where counted entries lie.
    places: BTreeMap<Position, u64>,
    durable: Position,
    /// Position and hash of the newest submitted batch, and the address it should get.
    newest: (Position, ChainHash, u64),
    on_the_way: VecDeque<Sent>,
    barriers: u64,
    trouble: Option<StoreError>,
}

impl MemoryLog {
    fn before(medium: MemoryMedium) -> Self {
        let start = medium.content().snapshots.back().map(|(chain, address, _)| (*chain, *address));
        let (chain, seen) = start.unwrap_or_default();
        Self {
            medium,
            epoch: Epoch(0),
            chain,
            seen,
            places: BTreeMap::new(),
            durable: chain.position,
            newest: (chain.position, chain.hash, seen),
            on_the_way: VecDeque::new(),
            barriers: 0,
            trouble: None,
        }
    }

    /// Starts to write from what has been read.
    fn own(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.durable = self.chain.position;
        self.newest = (self.chain.position, self.chain.hash, self.seen);
    }

    fn header(&self) -> Header {
        Header {
            flags: 0,
            length: 0,
            shard: 0,
            count: 0,
            epoch: self.epoch,
            position: self.chain.position.next(),
            previous: self.chain.hash,
            now_ms: 0,
        }
    }

    /// Reads and judges everything not seen yet.
    fn catch_up(
        &mut self,
        visit: &mut dyn FnMut(&Entry<'_>, Meaning) -> Result<(), String>,
    ) -> Result<(), StoreError> {
        for (address, bytes) in self.medium.entries_from(self.seen + 1) {
            let place = base(self.chain.position.next());
            let entry = entry::open(&bytes, place, 0)
                .map_err(|error| StoreError::Stopped(format!("entry at address {address}: {error}")))?;
            let meaning = self.chain.judge(&entry);
            self.seen = address;
            if meaning != Meaning::Void {
                self.places.insert(self.chain.position, address);
                visit(&entry, meaning).map_err(StoreError::Stopped)?;
            }
        }
        Ok(())
    }

    /// Takes the answers that have come, in order. Only `patience` at an end tells an answer that
    /// never comes from one that is late.
    fn look(&mut self, patience: Patience) {
        while let Some(sent) = self.on_the_way.front_mut() {
            match &mut sent.answer {
                Answer::Accepted(address) => {
                    (self.chain.position, self.chain.hash) = (sent.position, sent.hash);
                    (self.durable, self.seen) = (sent.position, *address);
                    self.places.insert(sent.position, *address);
                    self.on_the_way.pop_front();
                }
                Answer::Coming(0, address) => sent.answer = Answer::Accepted(*address),
                Answer::Coming(looks, _) => {
                    *looks -= 1;
                    return;
                }
                Answer::Refused => {
                    return self.trouble(StoreError::Stopped("the medium refuses appends".to_owned()));
                }
                Answer::Never if patience == Patience::Left => return,
                Answer::Conflict | Answer::Never => {
                    return self.trouble(StoreError::Unknown { after: self.durable });
                }
            }
        }
    }

    fn trouble(&mut self, trouble: StoreError) {
        self.trouble.get_or_insert(trouble);
    }

    fn check(&self) -> Result<(), StoreError> {
        self.trouble.clone().map_or(Ok(()), Err)
    }

    /// The entry that holds `location`.
    fn entry_of(&self, location: Location) -> Option<Bytes> {
        let position = Position(u64::from(location.region().number()));
        if let Some(sent) = self.on_the_way.iter().find(|sent| sent.position == position) {
            return Some(sent.bytes.clone());
        }
        let address = *self.places.get(&position)?;
        self.medium.content().entries.get(&address).cloned()
    }
}

/// Where the records of a batch lie: its position is the region.
fn base(position: Position) -> Location {
    let number = u32::try_from(position.0).expect("a log in memory holds fewer batches");
    Location::new(Region::segment(number), 0)
}

impl LogStore for MemoryLog {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn batch(&mut self) -> Option<Batch> {
        self.look(Patience::Left);
        let room = self.on_the_way.len() < WINDOW;
        let position = self.newest.0.next();
        room.then(|| Batch::new(Vec::new(), base(position), position, Limits::default()))
    }

    fn submit(&mut self, batch: Batch, now_ms: u64) -> Result<Position, StoreError> {
        self.check()?;
        if batch.is_empty() {
            return Ok(self.newest.0);
        }
        let (last, previous, address) = self.newest;
        let header = Header {
            length: u32::try_from(batch.bytes()).expect("a batch is a few megabytes"),
            count: batch.count(),
            position: last.next(),
            previous,
            now_ms,
            ..self.header()
        };
        let (sealed, hash) = entry::seal(&header, batch.checksum(), 0);
        let bytes = Bytes::from([&sealed[..], batch.records()].concat());
        let answer = self.medium.content().append(Some(address), bytes.clone());
        self.newest = (last.next(), hash, address + 1);
        self.on_the_way.push_back(Sent { position: last.next(), hash, bytes, answer });
        Ok(last.next())
    }

    fn durable(&self) -> Position {
        self.durable
    }

    fn flush(&mut self) -> Result<Position, StoreError> {
        while !self.on_the_way.is_empty() && self.trouble.is_none() {
            self.look(Patience::AtAnEnd);
        }
        self.check()?;
        Ok(self.durable)
    }

    fn resync(&mut self) -> Result<Position, StoreError> {
        match self.flush() {
            Err(StoreError::Unknown { .. }) => {}
            other => return other,
        }
        loop {
            self.barriers += 1;
            let serial = self.barriers;
            let header = Header { flags: FLAG_BARRIER, previous: ChainHash(serial), ..self.header() };
            let (bytes, _) = entry::seal(&header, entry::RecordsChecksum::default(), 0);
            let answer = self.medium.content().append(None, Bytes::copy_from_slice(&bytes));
            if answer == Answer::Refused {
                return Err(StoreError::Stopped("the medium refuses appends".to_owned()));
            }
            let mut landed = self.durable;
            let mut fixed = false;
            let epoch = self.epoch;
            self.catch_up(&mut |entry, meaning| {
                match meaning {
                    Meaning::Batch(position) if !fixed && entry.epoch() == epoch => landed = position,
                    Meaning::Barrier(_) if entry.header.previous == ChainHash(serial) => fixed = true,
                    _ => {}
                }
                Ok(())
            })?;
            self.durable = landed;
            if self.chain.epoch != self.epoch {
                let fenced = StoreError::Fenced { by: self.chain.epoch };
                self.trouble = Some(fenced.clone());
                return Err(fenced);
            }
            if fixed {
                self.on_the_way.clear();
                self.trouble = None;
                self.newest = (self.chain.position, self.chain.hash, self.seen);
                self.durable = self.chain.position;
                return Ok(landed);
            }
        }
    }

    fn read(&self, location: Location, _payload_bytes: usize) -> Result<Record, ReadError> {
        let damaged = |what: String| {
            let file = crate::reader::file_of(location.region());
            ReadError::Damaged(Damage { file, offset: u64::from(location.offset()), what })
        };
        let entry = self.entry_of(location).ok_or_else(|| damaged("no such entry".to_owned()))?;
        let from = in_memory(u64::from(location.offset()));
        let bytes = entry.get(from..).unwrap_or_default();
        let (view, _) = record::decode(location, bytes).map_err(|error| damaged(error.to_string()))?;
        Ok(Record {
            kind: view.kind,
            fixed: Bytes::copy_from_slice(view.fixed),
            payload: Bytes::copy_from_slice(view.payload),
        })
    }

    fn replay(&mut self, after: Position, visit: Visit<'_>) -> Result<(), StoreError> {
        let mut reader = Self::before(self.medium.clone());
        if reader.chain.position > after {
            return Err(StoreError::Trimmed { after });
        }
        let durable = self.durable;
        reader.catch_up(&mut |entry, meaning| match meaning {
            Meaning::Batch(position) if position > after && position <= durable => visit(entry),
            _ => Ok(()),
        })
    }

    fn trim(&mut self, through: Position) -> Result<(), StoreError> {
        let mut content = self.medium.content();
        // Never beyond what the older of two snapshots needs.
        let older = content.snapshots.front().filter(|_| content.snapshots.len() > 1);
        let covered = older.map_or(0, |(_, address, _)| *address);
        let asked = self.places.range(..=through).next_back().map_or(0, |(_, address)| *address);
        let keep = content.entries.split_off(&(covered.min(asked) + 1));
        content.entries = keep;
        Ok(())
    }

    fn put_snapshot(&mut self, content: &[u8]) -> Result<Position, StoreError> {
        self.flush()?;
        let mut medium = self.medium.content();
        medium.snapshots.push_back((self.chain, self.seen, content.to_vec()));
        if medium.snapshots.len() > 2 {
            medium.snapshots.pop_front();
        }
        Ok(self.chain.position)
    }

    fn newest_snapshot(&mut self) -> Result<Option<(Position, Vec<u8>)>, StoreError> {
        let content = self.medium.content();
        Ok(content.snapshots.back().map(|(chain, _, bytes)| (chain.position, bytes.clone())))
    }
}
