//! The real disk with a watch beside it: how long syncs take, and how much is written.
//!
//! The log knows no clock, so it is measured from outside, at the one door through which it reaches files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use vorrang_log::disk::{Disk, DiskError, FileName};

use crate::count::{Counter, Meter};

/// In microseconds: from what a drive with a protected cache takes to what makes people call.
const SYNC_MICROS: &[u64] = &[
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000,
];
/// In bytes, by powers of four: a commit is one write.
const WRITE_BYTES: &[u64] = &[4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

/// What the disk was seen doing.
#[derive(Debug)]
pub struct Figures {
    /// How long each sync of the ring took, with the write before it if that went past the system's cache, in
    /// microseconds.
    pub sync_micros: Meter,
    /// How large each write to the ring was.
    pub commit_bytes: Meter,
    /// Bytes written to snapshots and extents.
    pub other_bytes: Counter,
    /// Calls that failed.
    pub errors: Counter,
}

impl Default for Figures {
    fn default() -> Self {
        Figures {
            sync_micros: Meter::new(SYNC_MICROS),
            commit_bytes: Meter::new(WRITE_BYTES),
            other_bytes: Counter::default(),
            errors: Counter::default(),
        }
    }
}

/// A disk that is watched.
#[derive(Debug)]
pub struct MeasuredDisk {
    disk: Arc<dyn Disk>,
    figures: Arc<Figures>,
    /// What writes to the ring took that did the work of a sync, which follows.
    past_micros: AtomicU64,
}

impl MeasuredDisk {
    /// Watches `disk`.
    pub fn new(disk: Arc<dyn Disk>, figures: Arc<Figures>) -> MeasuredDisk {
        MeasuredDisk { disk, figures, past_micros: AtomicU64::new(0) }
    }

    fn seen<T>(&self, outcome: Result<T, DiskError>) -> Result<T, DiskError> {
        if outcome.is_err() {
            self.figures.errors.add(1);
        }
        outcome
    }

    fn count(&self, file: FileName, parts: &[&[u8]]) {
        let bytes = parts.iter().map(|part| u64::try_from(part.len()).unwrap_or(u64::MAX));
        let bytes = bytes.fold(0, u64::saturating_add);
        if is_ring(file) {
            self.figures.commit_bytes.record(bytes);
        } else {
            self.figures.other_bytes.add(bytes);
        }
    }
}

fn micros(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn is_ring(file: FileName) -> bool {
    matches!(file, FileName::Segment(_))
}

impl Disk for MeasuredDisk {
    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        self.seen(self.disk.list())
    }

    fn create(&self, file: FileName, bytes: u64) -> Result<(), DiskError> {
        self.seen(self.disk.create(file, bytes))
    }

    fn len(&self, file: FileName) -> Result<u64, DiskError> {
        self.seen(self.disk.len(file))
    }

    fn read_at(&self, file: FileName, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.seen(self.disk.read_at(file, offset, buffer))
    }

    fn write_at(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        self.count(file, parts);
        self.seen(self.disk.write_at(file, offset, parts))
    }

    fn write_past(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        self.count(file, parts);
        let begun = Instant::now();
        let outcome = self.seen(self.disk.write_past(file, offset, parts));
        self.past_micros.fetch_add(micros(begun), Ordering::Relaxed);
        outcome
    }

    fn zero(&self, file: FileName, offset: u64, bytes: usize) -> Result<(), DiskError> {
        self.figures.other_bytes.add(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.seen(self.disk.zero(file, offset, bytes))
    }

    fn sync(&self, file: FileName) -> Result<(), DiskError> {
        let begun = Instant::now();
        let outcome = self.seen(self.disk.sync(file));
        if is_ring(file) {
            let past = self.past_micros.swap(0, Ordering::Relaxed);
            self.figures.sync_micros.record(micros(begun).saturating_add(past));
        }
        outcome
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.seen(self.disk.sync_directory())
    }

    fn rename(&self, from: FileName, to: FileName) -> Result<(), DiskError> {
        self.seen(self.disk.rename(from, to))
    }

    fn remove(&self, file: FileName) -> Result<(), DiskError> {
        self.seen(self.disk.remove(file))
    }

    fn forget(&self, file: FileName) -> Result<(), DiskError> {
        self.seen(self.disk.forget(file))
    }

    fn free_bytes(&self) -> Result<u64, DiskError> {
        self.seen(self.disk.free_bytes())
    }

    fn entropy(&self) -> Result<u64, DiskError> {
        self.seen(self.disk.entropy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vorrang_log::disk::SimDisk;

    #[test]
    fn writes_and_syncs_of_the_ring_are_measured_and_others_are_told_apart() {
        let figures = Arc::new(Figures::default());
        let disk = MeasuredDisk::new(Arc::new(SimDisk::new(1)), Arc::clone(&figures));
        let (segment, snapshot) = (FileName::Segment(1), FileName::SnapshotTemp(1));
        for file in [segment, snapshot] {
            disk.create(file, 8_192).unwrap();
            disk.write_at(file, 0, &[&[0; 4_000], &[0; 96]]).unwrap();
            disk.sync(file).unwrap();
        }
        let (buckets, count, sum) = figures.commit_bytes.read();
        assert_eq!((buckets[0], count, sum), ((4_096, 1), 1, 4_096));
        assert_eq!(figures.sync_micros.read().1, 1);
        assert_eq!(figures.other_bytes.read(), 4_096);
        assert_eq!(figures.errors.read(), 0);
        assert!(disk.len(FileName::Extent(7)).is_err());
        assert_eq!(figures.errors.read(), 1);
    }

    #[test]
    fn a_write_past_the_cache_counts_with_the_sync_that_follows_it() {
        let figures = Arc::new(Figures::default());
        let disk = MeasuredDisk::new(Arc::new(SimDisk::new(1)), Arc::clone(&figures));
        let segment = FileName::Segment(1);
        disk.create(segment, 8_192).unwrap();
        disk.write_past(segment, 4_096, &[]).unwrap();
        assert_eq!(figures.commit_bytes.read().1, 1);
        disk.past_micros.store(5_000_000, Ordering::Relaxed);
        disk.sync(segment).unwrap();
        assert!(figures.sync_micros.read().2 >= 5_000_000);
        assert_eq!(disk.past_micros.load(Ordering::Relaxed), 0);
    }
}
