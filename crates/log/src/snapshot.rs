//! Snapshots: the caller's state at one position, so that replay need not start at the beginning.
//!
//! The log does not know what a snapshot holds. It is written under a temporary name in blocks
//! with a checksum each, by any thread, at its own pace; then synced, renamed, and the directory
//! synced. Two are kept: should the newest not verify, recovery falls back to the one before, and
//! what that one needs (segments, extents) is kept for as long as it is. A snapshot lists the
//! extents in use at its position, so that one that goes missing is missed at start.

use crate::disk::{Disk, DiskError, FileName};
use crate::entry::ChainHash;
use crate::extent::Extents;
use crate::frame::{self, FRAME_BYTES as HEADER_BYTES};
use crate::location::{Epoch, Location, Position};
use crate::options::{Options, Planted};
use crate::pace::Pace;
use crate::recovery::Damage;
use crate::shared::Shared;
use crate::supply::Supply;
use crate::units::{in_memory, on_disk, put, u32_at, u64_at};
use std::sync::{Arc, Mutex, PoisonError};

/// The version of snapshots written by this release.
pub const VERSION: u16 = 1;

const MAGIC: u32 = u32::from_le_bytes(*b"VoSn");
const CRC_OFFSET: usize = 64;
const BLOCK_HEADER_BYTES: usize = 8;
/// Bytes of content in a block; only the last may have fewer.
const BLOCK_BYTES: usize = 256 << 10;
/// Bytes written between syncs, so that the last sync has little left to do and commits on the
/// same disk are not held up by it.
const SYNC_BYTES: u64 = 4 << 20;

/// What a snapshot says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its number; later ones have greater numbers.
    pub number: u32,
    /// Everything up to this batch is in it.
    pub position: Position,
    /// The epoch of that batch.
    pub epoch: Epoch,
    /// The hash the next batch carries.
    pub chain: ChainHash,
    /// Where the next batch lies.
    pub next: Location,
    /// Bytes of content.
    pub bytes: u64,
    extents: u32,
}

fn encode(about: &About, shard: u32) -> Vec<u8> {
    let mut block = frame::begin(MAGIC, VERSION, about.number, shard);
    put(&mut block, 16, &about.position.0.to_le_bytes());
    put(&mut block, 24, &about.epoch.0.to_le_bytes());
    put(&mut block, 32, &about.chain.0.to_le_bytes());
    put(&mut block, 40, &about.next.raw().to_le_bytes());
    put(&mut block, 48, &about.bytes.to_le_bytes());
    put(&mut block, 56, &about.extents.to_le_bytes());
    frame::seal(&mut block, CRC_OFFSET);
    block
}

fn decode(block: &[u8], number: u32, shard: u32) -> Result<About, String> {
    frame::check(block, MAGIC, VERSION, CRC_OFFSET, "header of a snapshot")?;
    if (u32_at(block, 8), u32_at(block, 12)) != (Some(number), Some(shard)) {
        return Err("the header is that of another snapshot or shard".to_owned());
    }
    let fields = || {
        Some(About {
            number,
            position: Position(u64_at(block, 16)?),
            epoch: Epoch(u64_at(block, 24)?),
            chain: ChainHash(u64_at(block, 32)?),
            next: Location::from_raw(u64_at(block, 40)?),
            bytes: u64_at(block, 48)?,
            extents: u32_at(block, 56)?,
        })
    };
    fields().ok_or_else(|| "the header is short".to_owned())
}

fn block_checksum(number: u32, index: u64, content: &[u8]) -> u32 {
    let place = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &index.to_le_bytes());
    crc32c::crc32c_append(place, content)
}

/// Opens a snapshot and verifies all of it, so that loading it cannot fail half way.
pub(crate) fn open(
    disk: &Arc<dyn Disk>,
    number: u32,
    shard: u32,
) -> Result<Result<SnapshotReader, Damage>, DiskError> {
    let file = FileName::Snapshot(number);
    let mut block = vec![0; HEADER_BYTES];
    let count = disk.read_at(file, 0, &mut block)?;
    block.truncate(count);
    let about = match decode(&block, number, shard) {
        Ok(about) => about,
        Err(what) => return Ok(Err(Damage { file, offset: 0, what })),
    };
    let mut reader = SnapshotReader { disk: Arc::clone(disk), about, index: 0, read: 0, extents: Vec::new() };
    loop {
        match reader.next_block() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(Error::Damaged(damage)) => return Ok(Err(damage)),
            Err(Error::Disk(error)) => return Err(error),
            Err(Error::NotDurable { .. }) => unreachable!("reading waits for nothing"),
        }
    }
    match read_extents(&**disk, &about)? {
        Ok(extents) => reader.extents = extents,
        Err(damage) => return Ok(Err(damage)),
    }
    (reader.index, reader.read) = (0, 0);
    Ok(Ok(reader))
}

/// Reads the list of extents behind the last block.
fn read_extents(disk: &dyn Disk, about: &About) -> Result<Result<Vec<u32>, Damage>, DiskError> {
    let (file, offset) = (FileName::Snapshot(about.number), blocks_end(about.bytes));
    let damaged = |what: &str| Ok(Err(Damage { file, offset, what: what.to_owned() }));
    let length = u64::from(about.extents).saturating_mul(4).saturating_add(4);
    if disk.len(file)? < offset.saturating_add(length) {
        return damaged("the list of extents is cut");
    }
    let mut list = vec![0; in_memory(length)];
    let count = disk.read_at(file, offset, &mut list)?;
    let numbers = list.get(..list.len() - 4).unwrap_or_default();
    let computed = block_checksum(about.number, u64::MAX, numbers);
    if count < list.len() || u32_at(&list, numbers.len()) != Some(computed) {
        return damaged("the list of extents does not match its checksum");
    }
    Ok(Ok(numbers.chunks_exact(4).filter_map(|number| u32_at(number, 0)).collect()))
}

/// Why a snapshot was not read or finished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The disk refused a call.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file is not as it was written.
    #[error("the snapshot is damaged: {0}")]
    Damaged(Damage),
    /// The log must first be durable up to the snapshot's position; try again then.
    #[error("the snapshot of {position} must wait until that batch is durable")]
    NotDurable {
        /// The snapshot's position.
        position: Position,
    },
}

/// Reads a snapshot's content block by block.
#[derive(Debug)]
pub struct SnapshotReader {
    disk: Arc<dyn Disk>,
    about: About,
    index: u64,
    read: u64,
    extents: Vec<u32>,
}

impl SnapshotReader {
    /// The extents that were in use at its position.
    pub(crate) fn extents(&self) -> &[u32] {
        &self.extents
    }

    /// What the snapshot says about itself.
    pub fn about(&self) -> About {
        self.about
    }

    /// The next piece of content, verified; `None` after the last. Pieces follow one another as
    /// written, but are cut elsewhere than the writer's calls.
    pub fn next_block(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let left = self.about.bytes.saturating_sub(self.read);
        if left == 0 {
            return Ok(None);
        }
        let length = in_memory(left.min(on_disk(BLOCK_BYTES)));
        let file = FileName::Snapshot(self.about.number);
        let offset = block_offset(self.index);
        let damaged = |what: String| Error::Damaged(Damage { file, offset, what });
        let mut block = vec![0; BLOCK_HEADER_BYTES + length];
        let count = self.disk.read_at(file, offset, &mut block)?;
        if count < block.len() {
            return Err(damaged(format!("block {} ends after {count} bytes", self.index)));
        }
        let content = block.split_off(BLOCK_HEADER_BYTES);
        let claimed = u32_at(&block, 0).map(u64::from);
        if claimed != Some(on_disk(length)) {
            return Err(damaged(format!("block {} has another length than it should", self.index)));
        }
        let computed = block_checksum(self.about.number, self.index, &content);
        if u32_at(&block, 4) != Some(computed) {
            return Err(damaged(format!("block {} does not match its checksum", self.index)));
        }
        self.index += 1;
        self.read += on_disk(length);
        Ok(Some(content))
    }
}

fn block_offset(index: u64) -> u64 {
    on_disk(HEADER_BYTES).saturating_add(index.saturating_mul(on_disk(BLOCK_HEADER_BYTES + BLOCK_BYTES)))
}

/// Where the blocks of `bytes` of content end: all are full but the last.
fn blocks_end(bytes: u64) -> u64 {
    let blocks = bytes.div_ceil(on_disk(BLOCK_BYTES));
    let headers = blocks.saturating_mul(on_disk(BLOCK_HEADER_BYTES));
    on_disk(HEADER_BYTES).saturating_add(bytes).saturating_add(headers)
}

/// The snapshots a log keeps, and what hangs on them.
#[derive(Debug)]
pub(crate) struct Snapshots {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) shared: Arc<Shared>,
    pub(crate) supply: Arc<Supply>,
    pub(crate) extents: Arc<Extents>,
    /// All snapshot files, and the newest known to be valid.
    pub(crate) state: Mutex<Kept>,
}

#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) files: Vec<u32>,
    pub(crate) newest: Option<About>,
    pub(crate) next_number: u32,
}

impl Snapshots {
    /// Starts a snapshot of everything up to `position`.
    pub(crate) fn begin(
        self: &Arc<Self>,
        position: Position,
        epoch: Epoch,
        next: Location,
        pace: Pace,
    ) -> Result<SnapshotWriter, Error> {
        let number = {
            let mut kept = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let number = kept.next_number;
            kept.next_number = number.wrapping_add(1);
            number
        };
        self.disk.create(FileName::SnapshotTemp(number), 0)?;
        let extents = self.extents.in_use();
        let count = u32::try_from(extents.len()).expect("extent numbers have 31 bits");
        let about = About { number, position, epoch, chain: ChainHash(0), next, bytes: 0, extents: count };
        Ok(SnapshotWriter {
            extents,
            snapshots: Arc::clone(self),
            about,
            pace,
            pending: Vec::new(),
            index: 0,
            unsynced: 0,
            finished: false,
        })
    }

    /// Keeps the new snapshot and the one before; lets go of older ones and of what only they needed.
    fn keep(&self, newest: About) -> Result<(), DiskError> {
        let mut kept = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = kept.newest.replace(newest);
        kept.files.push(newest.number);
        let Some(previous) = previous else { return Ok(()) };
        let (keep, obsolete) = kept.files.iter().partition(|number| **number >= previous.number);
        kept.files = keep;
        let obsolete: Vec<u32> = obsolete;
        for number in &obsolete {
            self.disk.remove(FileName::Snapshot(*number))?;
        }
        if !obsolete.is_empty() {
            self.disk.sync_directory()?;
        }
        self.supply.cover_below(previous.next.region().number());
        self.extents.cover(previous.position);
        self.shared.kick();
        Ok(())
    }
}

/// Writes a snapshot; may be handed to another thread.
#[derive(Debug)]
pub struct SnapshotWriter {
    snapshots: Arc<Snapshots>,
    about: About,
    extents: Vec<u32>,
    pace: Pace,
    pending: Vec<u8>,
    index: u64,
    unsynced: u64,
    finished: bool,
}

impl SnapshotWriter {
    /// The batch up to which the content must hold everything.
    pub fn position(&self) -> Position {
        self.about.position
    }

    /// Appends content.
    pub fn write(&mut self, mut content: &[u8]) -> Result<(), Error> {
        while !content.is_empty() {
            let room = BLOCK_BYTES - self.pending.len();
            let (now, later) = content.split_at_checked(room).unwrap_or((content, &[]));
            self.pending.extend_from_slice(now);
            content = later;
            if self.pending.len() == BLOCK_BYTES {
                self.write_block()?;
            }
        }
        Ok(())
    }

    fn write_block(&mut self) -> Result<(), DiskError> {
        let length = u32::try_from(self.pending.len()).expect("a block is 256 KiB");
        let checksum = block_checksum(self.about.number, self.index, &self.pending);
        let parts: [&[u8]; 3] = [&length.to_le_bytes(), &checksum.to_le_bytes(), &self.pending];
        let disk = &self.snapshots.disk;
        let file = FileName::SnapshotTemp(self.about.number);
        disk.write_at(file, block_offset(self.index), &parts)?;
        self.index += 1;
        self.about.bytes += u64::from(length);
        self.unsynced += u64::from(length);
        self.pending.clear();
        if self.unsynced >= SYNC_BYTES {
            disk.sync(file)?;
            self.unsynced = 0;
        }
        self.pace.rest(u64::from(length));
        Ok(())
    }

    /// Makes the snapshot the newest one. Fails with [`Error::NotDurable`] while the log is not
    /// durable up to its position: recovering to a state the log never reached would be worse
    /// than having no snapshot. May be called again then.
    pub fn finish(&mut self) -> Result<About, Error> {
        let snapshots = Arc::clone(&self.snapshots);
        let position = self.about.position;
        self.about.chain = snapshots.shared.chain_at(position).ok_or(Error::NotDurable { position })?;
        if !self.pending.is_empty() {
            self.write_block()?;
        }
        let disk = &snapshots.disk;
        let (unfinished, file) =
            (FileName::SnapshotTemp(self.about.number), FileName::Snapshot(self.about.number));
        let list: Vec<u8> = self.extents.iter().flat_map(|number| number.to_le_bytes()).collect();
        let checksum = block_checksum(self.about.number, u64::MAX, &list);
        disk.write_at(unfinished, blocks_end(self.about.bytes), &[&list, &checksum.to_le_bytes()])?;
        disk.write_at(unfinished, 0, &[&encode(&self.about, snapshots.options.shard)])?;
        if !snapshots.options.has(Planted::SnapshotNameBeforeSync) {
            disk.sync(unfinished)?;
        }
        disk.rename(unfinished, file)?;
        self.finished = true;
        disk.sync_directory()?;
        snapshots.keep(self.about)?;
        Ok(self.about)
    }
}

impl Drop for SnapshotWriter {
    /// Gives the space back. What cannot be removed now is removed at the next start.
    fn drop(&mut self) {
        self.snapshots.shared.forget_chain(self.about.position);
        if !self.finished {
            self.snapshots.disk.remove(FileName::SnapshotTemp(self.about.number)).unwrap_or_default();
        }
    }
}
