//! The index of an extent: what is known about messages whose records have left memory.
//!
//! A run of a lane is a stretch of an extent's index; its number says which extent and where in the
//! index it begins, so that no table has to be kept or recovered.

use std::ops::RangeInclusive;
use vorrang_engine::{ColdRecord, Location, RunId, Sequence, Timestamp};
use vorrang_log::{ReadError, Reader, Region};

/// Bytes of one record in an index.
const ENTRY_BYTES: usize = 36;
/// Bytes of an index in one piece, as the log cuts it.
const PIECE_BYTES: usize = vorrang_log::extent::INDEX_PIECE_BYTES;

/// The index of an extent being written.
#[derive(Debug, Default)]
pub(super) struct Index {
    bytes: Vec<u8>,
}

impl Index {
    /// The number of a run that begins here.
    pub(super) fn run(&self, extent: Region) -> RunId {
        let ordinal = u32::try_from(self.bytes.len() / ENTRY_BYTES).unwrap_or(u32::MAX);
        RunId(u64::from(extent.number()) << 32 | u64::from(ordinal))
    }

    pub(super) fn push(&mut self, record: &ColdRecord) {
        let ColdRecord { sequence, eligible, expires, location, size } = record;
        for number in [sequence.0, eligible.0, expires.0, location.0] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.bytes.extend_from_slice(&size.to_le_bytes());
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The extent whose index a run's records are in.
pub(super) fn extent_of(run: RunId) -> Region {
    Region::extent(u32::try_from(run.0 >> 32).unwrap_or_default())
}

/// The numbers of all runs there can be in an extent's index.
pub(super) fn runs_of(extent: Region) -> RangeInclusive<RunId> {
    let first = u64::from(extent.number()) << 32;
    RunId(first)..=RunId(first | u64::from(u32::MAX))
}

/// Reads records of a run, from the `from`-th on, at most `max`; fewer at the end of the index.
pub(super) fn read(log: &Reader, run: RunId, from: u32, max: u32) -> Result<Vec<ColdRecord>, ReadError> {
    let extent = extent_of(run);
    let ordinal = usize::try_from(run.0 & u64::from(u32::MAX)).unwrap_or(usize::MAX);
    let entries = |count: u32| usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(ENTRY_BYTES);
    let start = ordinal.saturating_mul(ENTRY_BYTES).saturating_add(entries(from));
    let footer = log.footer(extent)?;
    let mut bytes = Vec::new();
    let mut piece = start / PIECE_BYTES;
    let mut skip = start % PIECE_BYTES;
    while bytes.len() < entries(max)
        && let Some(found) = log.index_piece(&footer, u32::try_from(piece).unwrap_or(u32::MAX))?
    {
        bytes.extend_from_slice(found.get(skip..).unwrap_or_default());
        (piece, skip) = (piece.saturating_add(1), 0);
    }
    bytes.truncate(entries(max));
    Ok(bytes.chunks_exact(ENTRY_BYTES).filter_map(record).collect())
}

fn record(bytes: &[u8]) -> Option<ColdRecord> {
    let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    Some(ColdRecord {
        sequence: Sequence(number(0)?),
        eligible: Timestamp(number(8)?),
        expires: Timestamp(number(16)?),
        location: Location(number(24)?),
        size: u32::from_le_bytes(*bytes.get(32..)?.first_chunk()?),
    })
}
