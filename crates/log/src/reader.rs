//! Reading records back: from batches still in memory, from segments, from extents.
//!
//! A reader can be cloned and sent anywhere. It reads through the page cache and verifies the
//! checksum of everything it returns, so damage that happens after start is found when it is
//! met, and named.

use crate::batch::Part;
use crate::disk::{Disk, DiskError, FileName};
use crate::extent::{self, Footer};
use crate::location::{Location, Region};
use crate::record::{self, HEADER_BYTES, Record, RecordError};
use crate::recovery::Damage;
use crate::shared::Shared;
use bytes::Bytes;
use std::sync::Arc;

/// Room for the fixed part when only the payload's length is known, so that one call suffices.
const FIXED_GUESS: usize = 116;
/// A claimed length beyond this is damage: no limit allows such a record, and a damaged length
/// must not size an allocation.
const RECORD_BYTES_MAX: u32 = 64 << 20;

/// Why a record could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The disk refused a call.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// What lies there is not what was written.
    #[error("stored data is damaged: {0}")]
    Damaged(Damage),
}

/// Reads records by their locations.
#[derive(Debug, Clone)]
pub struct Reader {
    disk: Arc<dyn Disk>,
    shared: Arc<Shared>,
}

impl Reader {
    pub(crate) fn new(disk: Arc<dyn Disk>, shared: Arc<Shared>) -> Self {
        Self { disk, shared }
    }

    /// Reads the record at `location`. `payload_bytes` is how long its payload is expected to be:
    /// right, and one call to the disk suffices; wrong, and the answer is still right.
    pub fn read(&self, location: Location, payload_bytes: usize) -> Result<Record, ReadError> {
        if !location.region().is_extent() && !self.shared.is_written(location) {
            let queued = self.shared.with_queued(|batch| {
                batch.read(location).map(|found| {
                    found.map(|view| Record {
                        kind: view.kind,
                        fixed: Bytes::copy_from_slice(view.fixed),
                        payload: Bytes::copy_from_slice(view.payload),
                    })
                })
            });
            if let Some(found) = queued {
                return found.map_err(|error| damaged(location, error));
            }
        }
        read_from(&*self.disk, location, payload_bytes)
    }

    /// The bytes of a region from `location` on, unverified: as many as there are, at most `bytes`.
    pub(crate) fn stretch(&self, location: Location, bytes: usize) -> Result<Bytes, ReadError> {
        let mut buffer = vec![0; bytes];
        let count =
            self.disk.read_at(file_of(location.region()), u64::from(location.offset()), &mut buffer)?;
        buffer.truncate(count);
        Ok(Bytes::from(buffer))
    }

    /// Reads the pieces of a payload that was split.
    pub fn read_parts(&self, parts: &[Part]) -> Result<Vec<Bytes>, ReadError> {
        let one = |part: &Part| {
            let bytes = usize::try_from(part.bytes).unwrap_or_default();
            self.read(part.location, bytes).map(|record| record.payload)
        };
        parts.iter().map(one).collect()
    }

    /// What an extent says about itself.
    pub fn footer(&self, extent: Region) -> Result<Footer, ReadError> {
        extent::read_footer(&*self.disk, extent)
    }

    /// A piece of the index of an extent; `None` beyond the last.
    pub fn index_piece(&self, footer: &Footer, piece: u32) -> Result<Option<Bytes>, ReadError> {
        let Some((location, length)) = extent::index_piece(footer, piece) else { return Ok(None) };
        let record = read_from(&*self.disk, location, length)?;
        if record.payload.len() != length {
            let what = format!("piece {piece} of the index has {} of {length} bytes", record.payload.len());
            return Err(ReadError::Damaged(place(location, what)));
        }
        Ok(Some(record.payload))
    }
}

/// The file a region lies in.
pub(crate) fn file_of(region: Region) -> FileName {
    if region.is_extent() { FileName::Extent(region.number()) } else { FileName::Segment(region.number()) }
}

fn place(location: Location, what: String) -> Damage {
    Damage { file: file_of(location.region()), offset: u64::from(location.offset()), what }
}

fn damaged(location: Location, error: RecordError) -> ReadError {
    ReadError::Damaged(place(location, error.to_string()))
}

/// Reads a record from its file and verifies it.
pub(crate) fn read_from(
    disk: &dyn Disk,
    location: Location,
    payload_bytes: usize,
) -> Result<Record, ReadError> {
    let file = file_of(location.region());
    let guess = HEADER_BYTES.saturating_add(FIXED_GUESS).saturating_add(payload_bytes);
    let mut buffer = vec![0; guess];
    let count = disk.read_at(file, u64::from(location.offset()), &mut buffer)?;
    buffer.truncate(count);
    let claimed = record::claimed_length(&buffer).unwrap_or_default();
    let needed = HEADER_BYTES.saturating_add(usize::try_from(claimed).unwrap_or(usize::MAX));
    if claimed <= RECORD_BYTES_MAX && needed > buffer.len() && buffer.len() == guess {
        buffer.resize(needed, 0);
        let count = disk.read_at(file, u64::from(location.offset()), &mut buffer)?;
        buffer.truncate(count);
    }
    let (view, _) = record::decode(location, &buffer).map_err(|error| damaged(location, error))?;
    let (kind, fixed, payload) = (view.kind, view.fixed.len(), view.payload.len());
    let mut bytes = Bytes::from(buffer);
    bytes.truncate(HEADER_BYTES + fixed + payload);
    let mut fixed_and_payload = bytes.split_off(HEADER_BYTES);
    let payload = fixed_and_payload.split_off(fixed);
    Ok(Record { kind, fixed: fixed_and_payload, payload })
}
