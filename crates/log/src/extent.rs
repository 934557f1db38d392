//! Extents: where live records go when their segment of the ring is needed again.
//!
//! The caller appends records in the order it will read them back (by entity, level, sequence),
//! and an index of its own at the end. An extent is written under a temporary name, synced,
//! renamed and the directory synced: it exists whole or not at all. It is never changed
//! afterwards, and freed whole.
//!
//! ```text
//! header (one block) | records … | index pieces, each a record | footer (one block)
//! ```

use crate::batch::BatchError;
use crate::disk::{Disk, DiskError, FileName};
use crate::frame::{self, FRAME_BYTES};
use crate::location::{Location, Position, Region};
use crate::options::{Options, Planted};
use crate::reader::ReadError;
use crate::record;
use crate::recovery::Damage;
use crate::units::{in_memory, on_disk, put, u32_at};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The version of extents written by this release.
pub const VERSION: u16 = 1;

const HEADER_MAGIC: u32 = u32::from_le_bytes(*b"VoXh");
const FOOTER_MAGIC: u32 = u32::from_le_bytes(*b"VoXf");
/// Bytes of the header and of the footer.
const FRAME_CRC_OFFSET: usize = 60;
/// Bytes of index in one piece; only the last may have fewer.
pub const INDEX_PIECE_BYTES: usize = 64 << 10;
/// Bytes of the caller's summary, kept in the footer.
pub const SUMMARY_BYTES_MAX: usize = 1024;
const SUMMARY_OFFSET: usize = 64;
/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes written between syncs, so that the last one does not hold up commits on the same disk.
const SYNC_BYTES: u64 = 4 << 20;
/// An extent takes no record beyond this many bytes; callers end theirs far earlier.
const EXTENT_BYTES_MAX: u64 = 1 << 31;

/// What an extent says about itself, from its footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Which extent.
    pub region: Region,
    /// How many records it holds.
    pub records: u32,
    /// Where the records end.
    pub records_end: u32,
    /// Bytes of the caller's index.
    pub index_bytes: u32,
    /// The caller's summary: ranges, earliest expiry, what it likes.
    pub summary: Bytes,
}

impl Footer {
    /// How many pieces the index has.
    pub fn index_pieces(&self) -> u32 {
        let piece = u32::try_from(INDEX_PIECE_BYTES).expect("a piece is 64 KiB");
        self.index_bytes.div_ceil(piece)
    }

    fn encode(&self, shard: u32) -> Vec<u8> {
        let mut block = frame::begin(FOOTER_MAGIC, VERSION, self.region.number(), shard);
        put(&mut block, 16, &self.records.to_le_bytes());
        put(&mut block, 20, &self.records_end.to_le_bytes());
        put(&mut block, 24, &self.index_bytes.to_le_bytes());
        let summary = u32::try_from(self.summary.len()).expect("the summary was checked to be short");
        put(&mut block, 28, &summary.to_le_bytes());
        put(&mut block, SUMMARY_OFFSET, &self.summary);
        frame::seal(&mut block, FRAME_CRC_OFFSET);
        block
    }

    fn decode(block: &[u8], region: Region) -> Result<Self, String> {
        check_frame(block, FOOTER_MAGIC, region)?;
        let fields = || {
            let summary = usize::try_from(u32_at(block, 28)?).ok()?;
            let end = SUMMARY_OFFSET.checked_add(summary)?;
            Some(Self {
                region,
                records: u32_at(block, 16)?,
                records_end: u32_at(block, 20)?,
                index_bytes: u32_at(block, 24)?,
                summary: Bytes::copy_from_slice(block.get(SUMMARY_OFFSET..end)?),
            })
        };
        fields().ok_or_else(|| "the footer is short".to_owned())
    }

    /// Where a piece of the index lies, and its length.
    fn piece(&self, index: u32) -> Option<(Location, usize)> {
        let before = u64::from(index).checked_mul(on_disk(INDEX_PIECE_BYTES))?;
        let left = u64::from(self.index_bytes).checked_sub(before).filter(|left| *left > 0)?;
        let step = on_disk(record::encoded_bytes(0, INDEX_PIECE_BYTES));
        let offset = u64::from(self.records_end).checked_add(u64::from(index).checked_mul(step)?)?;
        let length = in_memory(left.min(on_disk(INDEX_PIECE_BYTES)));
        Some((Location::new(self.region, u32::try_from(offset).ok()?), length))
    }
}

fn check_frame(block: &[u8], magic: u32, region: Region) -> Result<(), String> {
    frame::check(block, magic, VERSION, FRAME_CRC_OFFSET, "header or footer of an extent")?;
    if u32_at(block, 8) != Some(region.number()) {
        return Err("the header or footer is that of another extent".to_owned());
    }
    Ok(())
}

/// The extents of a log.
#[derive(Debug)]
pub(crate) struct Extents {
    disk: Arc<dyn Disk>,
    options: Options,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    present: BTreeSet<u32>,
    next_number: u32,
    /// Freed, and the position at which: a snapshot from before may still refer to them.
    freed: BTreeMap<u32, Position>,
    /// Every kept snapshot is at or beyond this position.
    covered: Position,
}

impl Extents {
    pub(crate) fn new(disk: Arc<dyn Disk>, options: Options, present: &[u32]) -> Self {
        let next_number = present.iter().max().map_or(1, |newest| newest.saturating_add(1));
        let present = present.iter().copied().collect();
        let state = State { present, next_number, ..State::default() };
        Self { disk, options, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.state().present.iter().copied().collect()
    }

    /// The extents not released so far.
    pub(crate) fn in_use(&self) -> Vec<u32> {
        let state = self.state();
        state.present.iter().filter(|number| !state.freed.contains_key(number)).copied().collect()
    }

    /// Starts a new extent.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<ExtentWriter, DiskError> {
        let number = {
            let mut state = self.state();
            let number = state.next_number;
            state.next_number = number.checked_add(1).expect("extent numbers last for centuries");
            number
        };
        self.disk.create(FileName::ExtentTemp(number), 0)?;
        let region = Region::extent(number);
        let mut header = frame::begin(HEADER_MAGIC, VERSION, region.number(), self.options.shard);
        frame::seal(&mut header, FRAME_CRC_OFFSET);
        Ok(ExtentWriter {
            extents: Arc::clone(self),
            region,
            pending: header,
            written: 0,
            synced: 0,
            records: 0,
            finished: false,
        })
    }

    /// Notes that nothing in the extent is needed from `position` on.
    pub(crate) fn release(&self, number: u32, position: Position) {
        let mut state = self.state();
        if state.present.contains(&number) {
            state.freed.entry(number).or_insert(position);
        }
    }

    /// Notes that every kept snapshot is at or beyond `position`.
    pub(crate) fn cover(&self, position: Position) {
        let mut state = self.state();
        state.covered = state.covered.max(position);
    }

    /// Removes one freed extent that no kept snapshot refers to. Returns whether there was one.
    pub(crate) fn upkeep(&self) -> Result<bool, DiskError> {
        let number = {
            let state = self.state();
            let free = state.freed.iter().find(|(_, position)| **position <= state.covered);
            let Some((number, _)) = free else { return Ok(false) };
            *number
        };
        self.disk.remove(FileName::Extent(number))?;
        self.disk.sync_directory()?;
        let mut state = self.state();
        state.present.remove(&number);
        state.freed.remove(&number);
        Ok(true)
    }
}

/// Writes an extent; may be handed to another thread.
#[derive(Debug)]
pub struct ExtentWriter {
    extents: Arc<Extents>,
    region: Region,
    pending: Vec<u8>,
    written: u64,
    synced: u64,
    records: u32,
    finished: bool,
}

/// Why an extent was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The disk refused a call.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The record exceeds its limits.
    #[error(transparent)]
    Record(#[from] BatchError),
    /// The extent has reached its greatest length; finish it and begin another.
    #[error("extent holds {bytes} bytes and its limit is {limit}")]
    Full {
        /// Bytes it holds.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The summary exceeds its limit.
    #[error("summary of {bytes} bytes exceeds the limit of {SUMMARY_BYTES_MAX}")]
    SummaryTooLarge {
        /// Bytes it has.
        bytes: usize,
    },
}

impl ExtentWriter {
    /// The extent being written.
    pub fn region(&self) -> Region {
        self.region
    }

    /// Bytes in it so far.
    pub fn bytes(&self) -> u64 {
        self.written + on_disk(self.pending.len())
    }

    /// Appends a record and says where it will lie once the extent is finished.
    pub fn append(&mut self, kind: u8, fixed: &[u8], payload: &[&[u8]]) -> Result<Location, Error> {
        if fixed.len() > usize::from(u16::MAX) {
            return Err(BatchError::FixedTooLarge { bytes: fixed.len() }.into());
        }
        let limit = self.extents.options.limits.record_bytes;
        let bytes = payload.iter().fold(fixed.len(), |sum, part| sum.saturating_add(part.len()));
        if bytes > limit {
            return Err(BatchError::RecordTooLarge { bytes, limit }.into());
        }
        let location = self.encode(kind, fixed, payload)?;
        self.records += 1;
        Ok(location)
    }

    fn encode(&mut self, kind: u8, fixed: &[u8], payload: &[&[u8]]) -> Result<Location, Error> {
        let bytes = self.bytes();
        if bytes > EXTENT_BYTES_MAX {
            return Err(Error::Full { bytes, limit: EXTENT_BYTES_MAX });
        }
        let offset = u32::try_from(bytes).expect("the limit is below 4 GiB");
        let location = Location::new(self.region, offset);
        record::encode(&mut self.pending, location, kind, fixed, payload);
        if self.pending.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(location)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        let file = FileName::ExtentTemp(self.region.number());
        self.extents.disk.write_at(file, self.written, &[&self.pending])?;
        self.written += on_disk(self.pending.len());
        self.pending.clear();
        if self.written - self.synced >= SYNC_BYTES {
            self.extents.disk.sync(file)?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Appends the caller's index and summary, and makes the extent durable and visible.
    pub fn finish(mut self, index: &[u8], summary: &[u8]) -> Result<Footer, Error> {
        if summary.len() > SUMMARY_BYTES_MAX {
            return Err(Error::SummaryTooLarge { bytes: summary.len() });
        }
        let index_bytes = u32::try_from(index.len()).unwrap_or(u32::MAX);
        let total = self.bytes().saturating_add(u64::from(index_bytes));
        if total > EXTENT_BYTES_MAX {
            return Err(Error::Full { bytes: total, limit: EXTENT_BYTES_MAX });
        }
        let records_end = u32::try_from(self.bytes()).expect("the limit is below 4 GiB");
        for piece in index.chunks(INDEX_PIECE_BYTES) {
            self.encode(0, &[], &[piece])?;
        }
        let footer = Footer {
            region: self.region,
            records: self.records,
            records_end,
            index_bytes,
            summary: Bytes::copy_from_slice(summary),
        };
        let extents = Arc::clone(&self.extents);
        self.pending.extend_from_slice(&footer.encode(extents.options.shard));
        self.flush()?;
        let number = self.region.number();
        let (unfinished, file) = (FileName::ExtentTemp(number), FileName::Extent(number));
        if !extents.options.has(Planted::ExtentNameBeforeSync) {
            extents.disk.sync(unfinished)?;
        }
        extents.disk.rename(unfinished, file)?;
        self.finished = true;
        extents.disk.sync_directory()?;
        extents.state().present.insert(number);
        Ok(footer)
    }
}

impl Drop for ExtentWriter {
    /// Gives the space back. What cannot be removed now is removed at the next start.
    fn drop(&mut self) {
        if !self.finished {
            self.extents.disk.remove(FileName::ExtentTemp(self.region.number())).unwrap_or_default();
        }
    }
}

/// Reads and verifies the footer of an extent.
pub(crate) fn read_footer(disk: &dyn Disk, region: Region) -> Result<Footer, ReadError> {
    let file = FileName::Extent(region.number());
    let length = disk.len(file)?;
    let offset = length.saturating_sub(on_disk(FRAME_BYTES));
    let mut block = vec![0; FRAME_BYTES];
    let count = disk.read_at(file, offset, &mut block)?;
    block.truncate(count);
    let footer =
        Footer::decode(&block, region).map_err(|what| ReadError::Damaged(Damage { file, offset, what }))?;
    let mut header = vec![0; FRAME_BYTES];
    let count = disk.read_at(file, 0, &mut header)?;
    header.truncate(count);
    check_frame(&header, HEADER_MAGIC, region)
        .map_err(|what| ReadError::Damaged(Damage { file, offset: 0, what }))?;
    Ok(footer)
}

/// Where a piece of an extent's index lies, and its length. `None` beyond the last.
pub(crate) fn index_piece(footer: &Footer, index: u32) -> Option<(Location, usize)> {
    footer.piece(index)
}
