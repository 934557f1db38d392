//! The commit: one entry written, synced, and only then part of the log.
//!
//! This is the whole write path, without threads: the commit thread and the simulator call the
//! same [`Ring::commit`]. Entries follow one another without gaps; the last of a segment says so,
//! and the segment that follows exists durably before that entry is written, so a missing file
//! can always be told from the end of the log. Any error is final: the ring refuses everything
//! afterwards, because after a failed sync nobody knows what the disk holds.

use crate::batch::Batch;
use crate::blocks::Ends;
use crate::disk::{Disk, DiskError, Trouble};
use crate::entry::{self, BLOCK_BYTES, ChainHash, FLAG_LAST, Header};
use crate::location::{Epoch, Position};
use crate::options::{Options, Planted};
use crate::segment::{FIRST_ENTRY, Segment};
use crate::supply::{AHEAD_BYTES, Supply};
use crate::units::{in_memory, on_disk};
use std::sync::Arc;

/// A segment at whose end commits have this part of the cap on average, in eighths, was filled in bulk. Below that, the file
/// system's notes about blocks that are written for the first time cost more than zeros before them: with a cap of 1 MiB,
/// commits of 256 KiB about as much, those of 64 KiB a third.
const BULK_EIGHTHS: usize = 3;
/// Commits of less than this part of the cap on average end the filling in bulk.
const CALM_PART: usize = 16;
/// How many commits the average is over, about.
const AVERAGED: usize = 8;

static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// The log stopped for good: what was not durable by now never will be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the log has stopped at {position}: {error}; restart to recover from what is on disk")]
pub struct Failure {
    /// The commit that failed.
    pub position: Position,
    /// What the disk said.
    pub error: DiskError,
}

/// Where the next entry goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) segment_bytes: u64,
    pub(crate) offset: u64,
}

impl Place {
    /// Whether the largest entry fits here. It does not in a segment made for smaller ones.
    pub(crate) fn fits_largest(&self, options: &Options) -> bool {
        self.segment_bytes.saturating_sub(self.offset) >= on_disk(options.limits.entry_bytes())
    }

    /// Whether the log leaves this segment after an entry of `bytes` here: what remains could
    /// not take the largest entry.
    pub(crate) fn is_last(&self, bytes: usize, options: &Options) -> bool {
        let end = self.offset.saturating_add(on_disk(bytes));
        self.segment_bytes.saturating_sub(end) < on_disk(options.limits.entry_bytes())
    }

    /// Where the entry after one of `bytes` here goes. `next_bytes` tells a segment's length.
    pub(crate) fn after(&self, bytes: usize, options: &Options, next_bytes: impl Fn(u32) -> u64) -> Self {
        if self.is_last(bytes, options) {
            let segment = self.segment.checked_add(1).expect("segment numbers last for centuries");
            Self { segment, segment_bytes: next_bytes(segment), offset: FIRST_ENTRY }
        } else {
            Self { offset: self.offset + on_disk(bytes), ..*self }
        }
    }
}

/// The end of the log, as a commit leaves it or recovery finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) position: Position,
    pub(crate) chain: ChainHash,
    pub(crate) epoch: Epoch,
}

/// The writing end of the log.
#[derive(Debug)]
pub(crate) struct Ring {
    disk: Arc<dyn Disk>,
    options: Options,
    supply: Arc<Supply>,
    segment: Segment,
    place: Place,
    tail: Tail,
    /// The log is new: its first segment has no file before the first commit.
    unborn: bool,
    /// A segment was begun since someone last asked, or something else that upkeep should look at.
    advanced: bool,
    /// Bytes of the newest commits on average.
    average: usize,
    /// Whether the last segment was filled in bulk, and commits have not become small since.
    bulk: bool,
    failure: Option<Failure>,
    ends: Ends,
}

impl Ring {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: Options,
        supply: Arc<Supply>,
        segment: Segment,
        offset: u64,
        tail: Tail,
    ) -> Self {
        let place = Place { segment: segment.number, segment_bytes: segment.bytes, offset };
        Self {
            disk,
            options,
            supply,
            segment,
            place,
            tail,
            unborn: false,
            // The first commit is a reason to look.
            advanced: true,
            average: 0,
            bulk: false,
            failure: None,
            ends: Ends::new(),
        }
    }

    pub(crate) fn tail(&self) -> Tail {
        self.tail
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Whether a segment was begun since this was last asked, or small commits came after large ones: the next one should be
    /// prepared, or this one filled ahead.
    pub(crate) fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// From here on entries carry this epoch.
    pub(crate) fn set_epoch(&mut self, epoch: Epoch) {
        self.tail.epoch = epoch;
    }

    /// Notes whether the log is new, and its first segment is to be made.
    pub(crate) fn set_unborn(&mut self, unborn: bool) {
        self.unborn = unborn;
    }

    /// Whether there is no segment yet.
    pub(crate) fn is_unborn(&self) -> bool {
        self.unborn
    }

    /// Writes and syncs one batch. When this returns, the batch is in the log for good.
    /// `early` is called where a careless log would already acknowledge.
    pub(crate) fn commit(&mut self, batch: &Batch, early: impl FnOnce()) -> Result<Tail, Failure> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match self.write(batch, early) {
            Ok(()) => Ok(self.tail),
            Err(error) => {
                let failure = Failure { position: batch.position(), error };
                self.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    fn write(&mut self, batch: &Batch, early: impl FnOnce()) -> Result<(), DiskError> {
        if self.unborn {
            self.supply.make_first(&self.segment)?;
            self.unborn = false;
        }
        if self.place.segment != self.segment.number {
            self.go_on()?;
        }
        let location = self.segment.location(self.place.offset);
        assert_eq!(batch.base, location, "a batch is committed where its records were told they lie");
        assert_eq!(batch.position, self.tail.position.next(), "batches are committed in order");
        let bytes = batch.padded_bytes();
        self.average = self.average - self.average / AVERAGED + batch.bytes() / AVERAGED;
        if self.bulk && self.average < self.options.limits.batch_bytes / CALM_PART {
            self.set_bulk(false);
        }
        let last = self.place.is_last(bytes, &self.options);
        if last {
            self.supply.prepare()?;
        }
        let header = Header {
            flags: batch.flags | if last { FLAG_LAST } else { 0 },
            length: u32::try_from(batch.bytes()).expect("a batch is a few megabytes"),
            shard: self.options.shard,
            count: batch.count,
            epoch: self.tail.epoch,
            position: batch.position,
            previous: self.tail.chain,
            now_ms: batch.now_ms,
        };
        let (sealed, chain) = entry::seal(&header, batch.checksum(), self.segment.salt);
        let file = self.segment.file();
        if batch.goes_past_cache()
            && let Some(blocks) = self.ends.lay_out(&sealed, batch.records())
        {
            self.disk.write_past(file, self.place.offset, &blocks)?;
        } else {
            let padding = bytes - sealed.len() - batch.bytes();
            let parts: [&[u8]; 3] = [&sealed, batch.records(), ZEROS.get(..padding).unwrap_or_default()];
            self.disk.write_at(file, self.place.offset, &parts)?;
        }
        if self.options.has(Planted::AckBeforeSync) {
            early();
        }
        let synced = self.disk.sync(file);
        if !self.options.has(Planted::SyncErrorIgnored) {
            synced?;
        }
        self.tail = Tail { position: batch.position, chain, epoch: self.tail.epoch };
        self.place = self.place.after(bytes, &self.options, |number| self.supply.bytes_of(number));
        Ok(())
    }

    /// Goes on in the next segment.
    fn go_on(&mut self) -> Result<(), DiskError> {
        self.set_bulk(self.average >= self.options.limits.batch_bytes / 8 * BULK_EIGHTHS);
        self.segment = self.supply.advance()?;
        self.advanced = true;
        Ok(())
    }

    fn set_bulk(&mut self, bulk: bool) {
        if self.bulk != bulk {
            (self.bulk, self.advanced) = (bulk, true);
            self.supply.set_bulk(bulk);
        }
    }

    /// Writes zeros to the next blocks of the segment that were never written, if there are any that small commits will need.
    /// Whether there were.
    pub(crate) fn fill_ahead(&mut self) -> Result<bool, DiskError> {
        let number = self.segment.number;
        let Some(fresh) = self.supply.fresh(number).filter(|_| self.failure.is_none()) else {
            return Ok(false);
        };
        // A segment that the log has left has no place for another entry.
        let here = if self.place.segment == number { self.place.offset } else { fresh.end };
        let start = fresh.start.max(here);
        let bytes = in_memory(fresh.end.saturating_sub(start)).min(AHEAD_BYTES);
        if bytes > 0 {
            let file = self.segment.file();
            match self.disk.zero(file, start, bytes) {
                // Where space could not be set aside, it is asked for here, and nothing needs it yet.
                Err(error) if error.trouble == Trouble::NoSpace => return Ok(false),
                other => other?,
            }
            self.disk.sync(file)?;
        }
        self.supply.note_written(number, start.saturating_add(on_disk(bytes)));
        Ok(true)
    }

    /// Bytes left in the active segment for further entries.
    pub(crate) fn left_bytes(place: &Place) -> usize {
        in_memory(place.segment_bytes.saturating_sub(place.offset))
    }
}
