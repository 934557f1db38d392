use super::*;
use crate::batch::Batch;
use crate::disk::RealDisk;
use crate::location::Epoch;
use crate::log::Log;
use crate::memory::{MemoryLog, MemoryMedium};
use crate::options::Options;
use crate::reader::ReadError;
use crate::record::Record;
use crate::recovery::Opening;
use crate::store::Visit;
use std::sync::Arc;

#[derive(Debug)]
struct Directory(tempfile::TempDir);

impl Medium for Directory {
    type Store = Log;

    fn take_over(&self) -> Result<Log, StoreError> {
        let disk = RealDisk::open(self.0.path()).map_err(crate::OpenError::Disk)?;
        let opening = Opening::begin(Arc::new(disk), Options::tiny())?;
        let recovered = opening.replay(|_| Ok::<_, String>(()))?;
        Ok(recovered.start(Arc::new(|_| ()), 1)?)
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn inject(&self, _: AppendFault) -> bool {
        false
    }
}

#[test]
fn the_ring_conforms() {
    let report = run(|| Directory(tempfile::tempdir().unwrap())).unwrap();
    assert_eq!((report.passed.len(), report.skipped.len()), (6, 5), "{report:?}");
}

#[test]
fn the_log_in_memory_conforms_in_everything() {
    let report = run(MemoryMedium::default).unwrap();
    assert_eq!((report.passed.len(), report.skipped.len()), (11, 0), "{report:?}");
}

/// A log with one mistake, to see that the suite notices it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// Reports a batch durable when it is submitted.
    AckAtSubmit,
    /// Takes an append without an answer for done.
    UnknownIsFine,
    /// Keeps on reporting after it was deposed.
    FencedIsFine,
    /// Leaves the last entry out when reading back.
    ForgetsTheLast,
    /// Comes back under the epoch of the owner before.
    SameEpoch,
    /// Serves the snapshot before the newest.
    StaleSnapshot,
}

#[derive(Debug)]
struct Careless {
    log: MemoryLog,
    mistake: Mistake,
    submitted: Position,
    first_snapshot: Option<(Position, Vec<u8>)>,
}

#[derive(Debug)]
struct CarelessMedium(MemoryMedium, Mistake);

impl Medium for CarelessMedium {
    type Store = Careless;

    fn take_over(&self) -> Result<Careless, StoreError> {
        let log = self.0.take_over()?;
        Ok(Careless { log, mistake: self.1, submitted: Position::START, first_snapshot: None })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn inject(&self, fault: AppendFault) -> bool {
        self.0.inject(fault)
    }
}

impl LogStore for Careless {
    fn epoch(&self) -> Epoch {
        if self.mistake == Mistake::SameEpoch { Epoch(1) } else { self.log.epoch() }
    }

    fn batch(&mut self) -> Option<Batch> {
        self.log.batch()
    }

    fn submit(&mut self, batch: Batch, now_ms: u64) -> Result<Position, StoreError> {
        self.submitted = self.log.submit(batch, now_ms)?;
        Ok(self.submitted)
    }

    fn durable(&self) -> Position {
        match self.mistake {
            Mistake::AckAtSubmit => self.submitted.max(self.log.durable()),
            _ => self.log.durable(),
        }
    }

    fn flush(&mut self) -> Result<Position, StoreError> {
        match (self.log.flush(), self.mistake) {
            (Err(StoreError::Unknown { .. }), Mistake::UnknownIsFine) => Ok(self.submitted),
            (other, _) => other,
        }
    }

    fn resync(&mut self) -> Result<Position, StoreError> {
        match (self.log.resync(), self.mistake) {
            (Err(StoreError::Fenced { .. }), Mistake::FencedIsFine) => Ok(self.submitted),
            (other, _) => other,
        }
    }

    fn read(&self, location: Location, payload_bytes: usize) -> Result<Record, ReadError> {
        self.log.read(location, payload_bytes)
    }

    fn replay(&mut self, after: Position, visit: Visit<'_>) -> Result<(), StoreError> {
        let last = self.log.durable();
        let forgets = self.mistake == Mistake::ForgetsTheLast;
        self.log.replay(after, &mut |entry| {
            if forgets && entry.position() == last { Ok(()) } else { visit(entry) }
        })
    }

    fn trim(&mut self, through: Position) -> Result<(), StoreError> {
        self.log.trim(through)
    }

    fn put_snapshot(&mut self, content: &[u8]) -> Result<Position, StoreError> {
        let position = self.log.put_snapshot(content)?;
        self.first_snapshot.get_or_insert((position, content.to_vec()));
        Ok(position)
    }

    fn newest_snapshot(&mut self) -> Result<Option<(Position, Vec<u8>)>, StoreError> {
        match self.mistake {
            Mistake::StaleSnapshot => Ok(self.first_snapshot.clone()),
            _ => self.log.newest_snapshot(),
        }
    }
}

#[test]
fn every_mistake_is_noticed() {
    let mistakes = [
        Mistake::AckAtSubmit,
        Mistake::UnknownIsFine,
        Mistake::FencedIsFine,
        Mistake::ForgetsTheLast,
        Mistake::SameEpoch,
        Mistake::StaleSnapshot,
    ];
    for mistake in mistakes {
        let noticed = run(|| CarelessMedium(MemoryMedium::default(), mistake)).unwrap_err();
        println!("{mistake:?}: {noticed}");
    }
}
