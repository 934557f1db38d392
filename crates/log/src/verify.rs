//! Verifying a data directory offline: every byte that has a checksum is read, and whatever is
//! wrong is named by file and offset. Nothing is changed.

use crate::disk::{Disk, DiskError, FileName, RealDisk, Trouble};
use crate::entry::{BLOCK_BYTES, ChainHash, EntryError, FLAG_LAST, HEADER_BYTES};
use crate::extent;
use crate::location::{Location, Position, Region};
use crate::options::Options;
use crate::reader::{self, ReadError};
use crate::record;
use crate::recovery::{self, Damage, OpenError, Opening};
use crate::segment::{FIRST_ENTRY, Segment, Window};
use crate::snapshot;
use crate::units::{on_disk, round_up};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What a data directory holds, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Everything that does not verify.
    pub damage: Vec<Damage>,
    /// Why the log would not open, if it would not.
    pub refusal: Option<String>,
    /// Segments read.
    pub segments: u64,
    /// Entries that verify.
    pub entries: u64,
    /// Records in them that verify.
    pub records: u64,
    /// Extents read.
    pub extents: u64,
    /// Records in them that verify.
    pub extent_records: u64,
    /// Snapshots that verify.
    pub snapshots: u64,
    /// The last batch of the log, if it opens.
    pub last_batch: Option<u64>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.refusal.is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} segments with {} entries and {} records; {} extents with {} records; {} snapshots",
            self.segments, self.entries, self.records, self.extents, self.extent_records, self.snapshots
        )?;
        for damage in &self.damage {
            writeln!(out, "damaged: {damage}")?;
        }
        if let Some(refusal) = &self.refusal {
            writeln!(out, "the log would not open: {refusal}")?;
        }
        Ok(())
    }
}

/// Verifies the data directory at `path`, which must not be in use.
pub fn verify(path: &Path, options: &Options) -> Result<Report, DiskError> {
    if !path.is_dir() {
        let target = path.display().to_string();
        let text = "no such directory".to_owned();
        return Err(DiskError { action: "verify", target, trouble: Trouble::Missing, text });
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(path)?);
    verify_disk(&disk, options)
}

/// Verifies everything on `disk`.
pub fn verify_disk(disk: &Arc<dyn Disk>, options: &Options) -> Result<Report, DiskError> {
    let mut report = Report::default();
    // Where the log seems to end, while no later segment shows that it goes on.
    let mut open_end: Option<Damage> = None;
    for file in disk.list()? {
        match file {
            FileName::Segment(number) => {
                let before = report.entries;
                let end = verify_segment(&**disk, number, options, &mut report)?;
                if report.entries > before {
                    report.damage.extend(open_end.take());
                }
                open_end = open_end.or(end);
            }
            FileName::Extent(number) => verify_extent(&**disk, number, &mut report)?,
            FileName::Snapshot(number) => match snapshot::open(disk, number, options.shard)? {
                Ok(_) => report.snapshots += 1,
                Err(damage) => report.damage.push(damage),
            },
            FileName::Spare(_)
            | FileName::SpareTemp(_)
            | FileName::ExtentTemp(_)
            | FileName::SnapshotTemp(_)
            | FileName::Closed(_) => {}
        }
    }
    let opened = Opening::begin(Arc::clone(disk), options.clone())
        .and_then(|opening| opening.replay(|_| Ok::<_, String>(())));
    match opened {
        Ok(recovered) => report.last_batch = Some(recovered.position().0),
        Err(OpenError::Disk(error)) => return Err(error),
        Err(error) => report.refusal = Some(error.to_string()),
    }
    Ok(report)
}

/// Walks a segment entry by entry. Where the entries end, nothing valid may follow in it; the
/// place is returned if the last of them does not say that the log goes on elsewhere.
fn verify_segment(
    disk: &dyn Disk,
    number: u32,
    options: &Options,
    report: &mut Report,
) -> Result<Option<Damage>, DiskError> {
    let segment = match recovery::read_header(disk, number, options) {
        Ok(segment) => segment,
        Err(OpenError::Disk(error)) => return Err(error),
        Err(OpenError::Damaged(damage)) => {
            report.damage.push(damage);
            return Ok(None);
        }
        Err(error) => {
            report.damage.push(Damage {
                file: FileName::Segment(number),
                offset: 0,
                what: error.to_string(),
            });
            return Ok(None);
        }
    };
    report.segments += 1;
    let mut window = Window::new(disk, &segment);
    let mut offset = FIRST_ENTRY;
    let mut before: Option<(Position, ChainHash)> = None;
    while offset < segment.bytes {
        let (length, last) = match window.entry(&segment, offset)? {
            Ok(entry) => {
                report.entries += 1;
                let (position, previous) = (entry.position(), entry.header.previous);
                if before.is_some_and(|(last, hash)| (last.next(), hash) != (position, previous)) {
                    let what = format!("{position} does not continue the entry before it");
                    report.damage.push(at(&segment, offset, what));
                }
                before = Some((position, entry.chain()));
                for found in entry.records() {
                    match found {
                        Ok(_) => report.records += 1,
                        Err(error) => report.damage.push(at(&segment, offset, error.to_string())),
                    }
                }
                (HEADER_BYTES + entry.records.len(), entry.header.flags & FLAG_LAST != 0)
            }
            Err(error) => {
                let Some(next) = window.search(&segment, offset)? else { break };
                report.damage.push(at(&segment, offset, describe(&error, next)));
                offset = next;
                continue;
            }
        };
        if last {
            return Ok(None);
        }
        offset += on_disk(round_up(length, BLOCK_BYTES));
    }
    let what = "no valid entry here, yet the log goes on in a later segment".to_owned();
    Ok(Some(at(&segment, offset, what)))
}

fn at(segment: &Segment, offset: u64, what: String) -> Damage {
    Damage { file: segment.file(), offset, what }
}

fn describe(error: &EntryError, next: u64) -> String {
    format!("no valid entry here ({error}), yet the segment goes on at offset {next}")
}

/// Reads an extent from its header to its footer.
fn verify_extent(disk: &dyn Disk, number: u32, report: &mut Report) -> Result<(), DiskError> {
    let region = Region::extent(number);
    let footer = match extent::read_footer(disk, region) {
        Ok(footer) => footer,
        Err(ReadError::Disk(error)) => return Err(error),
        Err(ReadError::Damaged(damage)) => {
            report.damage.push(damage);
            return Ok(());
        }
    };
    report.extents += 1;
    let mut offset = u32::try_from(BLOCK_BYTES).expect("a block is 4096 bytes");
    for _ in 0..footer.records {
        match read_record(disk, Location::new(region, offset), report)? {
            Some(length) => offset = offset.saturating_add(length),
            None => return Ok(()),
        }
        report.extent_records += 1;
    }
    for piece in 0..footer.index_pieces() {
        if let Some((location, _)) = extent::index_piece(&footer, piece) {
            read_record(disk, location, report)?;
        }
    }
    Ok(())
}

/// Reads one record and returns the bytes it takes; `None` if it is damaged.
fn read_record(disk: &dyn Disk, location: Location, report: &mut Report) -> Result<Option<u32>, DiskError> {
    match reader::read_from(disk, location, 0) {
        Ok(found) => {
            let length = record::encoded_bytes(found.fixed.len(), found.payload.len());
            Ok(Some(u32::try_from(length).unwrap_or(u32::MAX)))
        }
        Err(ReadError::Disk(error)) => Err(error),
        Err(ReadError::Damaged(damage)) => {
            report.damage.push(damage);
            Ok(None)
        }
    }
}
