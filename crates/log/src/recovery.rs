//! Recovery: from the files on disk back to the last durable batch.
//!
//! The newest snapshot that verifies, then every entry after it, in order, each checked for
//! salt, checksum, number, chain and epoch. The first place that holds no valid entry is the end
//! of the log, *provided nothing valid follows anywhere*: only one entry is ever being written,
//! so a crash can tear the last one and no other. Anything else is damage: the log refuses to
//! open, names the file and the offset, and touches nothing. Files are removed only for what
//! their names say (unfinished, spare), never because they could not be read.

use crate::closing::Closing;
use crate::disk::{Disk, DiskError, FileName};
use crate::entry::{self, ChainHash, Entry, EntryError, FLAG_CLOSED, FLAG_EPOCH, FLAG_LAST};
use crate::location::{Epoch, Position};
use crate::options::{Options, OptionsError, Planted};
use crate::ring::Tail;
use crate::segment::{FIRST_ENTRY, Segment, Window};
use crate::snapshot::{self, SnapshotReader};
use crate::units::{on_disk, round_up};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Something on disk that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// In which file.
    pub file: FileName,
    /// How far into it.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at offset {}: {}", self.file, self.offset, self.what)
    }
}

/// Why a log does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The layout asked for cannot work.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The disk refused a call.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The files are damaged. Nothing was changed; restore a backup or ask `vorrang doctor`.
    #[error("the log is damaged: {0}")]
    Damaged(Damage),
    /// The caller could not take an entry or a snapshot.
    #[error("cannot replay {position}: {source}")]
    Replay {
        /// The batch it happened at.
        position: Position,
        /// What the caller said.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// What recovery found out of the ordinary, for the operator's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// An entry that was being written when the log stopped; it was never acknowledged.
    pub torn: Option<Damage>,
    /// Snapshots that do not verify and were passed over.
    pub bad_snapshots: Vec<Damage>,
    /// Whether the log was closed in good order.
    pub closed: bool,
    /// Entries replayed.
    pub entries: u64,
    /// Bytes of entries replayed.
    pub bytes: u64,
}

/// The files of a data directory, by what their names say.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) segments: BTreeMap<u32, Segment>,
    pub(crate) spares: Vec<u32>,
    pub(crate) extents: Vec<u32>,
    pub(crate) snapshots: Vec<u32>,
    /// What is removed before anything is written.
    pub(crate) passing: Vec<FileName>,
    /// Where the log ended, if it was closed in good order.
    closing: Option<Closing>,
}

impl Inventory {
    /// Lists the directory and reads the segment headers.
    fn take(disk: &dyn Disk, options: &Options) -> Result<Self, OpenError> {
        let mut inventory = Self { closing: Closing::read(disk, options.shard), ..Self::default() };
        for file in disk.list()? {
            match file {
                FileName::Segment(number) => {
                    let segment = read_header(disk, number, options)?;
                    inventory.segments.insert(number, segment);
                }
                FileName::Spare(number) if inventory.is_whole(disk, file, options)? => {
                    inventory.spares.push(number);
                }
                FileName::Extent(number) => inventory.extents.push(number),
                FileName::Snapshot(number) => inventory.snapshots.push(number),
                FileName::Spare(_)
                | FileName::SpareTemp(_)
                | FileName::ExtentTemp(_)
                | FileName::SnapshotTemp(_)
                | FileName::Closed(_) => inventory.passing.push(file),
            }
        }
        Ok(inventory)
    }

    /// Whether a spare has the length of a segment on the device, not only in memory: the sync that
    /// should have stored it may be what stopped the log.
    fn is_whole(&self, disk: &dyn Disk, file: FileName, options: &Options) -> Result<bool, DiskError> {
        self.store(disk, file)?;
        Ok(disk.len(file)? == options.segment_bytes)
    }

    /// Makes sure that what is read from a file is on the device. After a log that was closed in good order it is.
    fn store(&self, disk: &dyn Disk, file: FileName) -> Result<(), DiskError> {
        if self.closing.is_some() {
            return Ok(());
        }
        disk.sync(file)?;
        disk.forget(file)
    }
}

fn damaged(file: FileName, offset: u64, what: impl Into<String>) -> OpenError {
    OpenError::Damaged(Damage { file, offset, what: what.into() })
}

/// Reads and checks the header of a segment.
pub(crate) fn read_header(disk: &dyn Disk, number: u32, options: &Options) -> Result<Segment, OpenError> {
    let file = FileName::Segment(number);
    let mut block = vec![0; entry::BLOCK_BYTES];
    let count = disk.read_at(file, 0, &mut block)?;
    block.truncate(count);
    let segment = Segment::decode(&block).map_err(|what| damaged(file, 0, what))?;
    if segment.number != number {
        return Err(damaged(file, 8, format!("the header is that of segment {}", segment.number)));
    }
    if segment.shard != options.shard {
        let what = format!("the segment belongs to shard {}, not {}", segment.shard, options.shard);
        return Err(damaged(file, 12, what));
    }
    let length = disk.len(file)?;
    if length < segment.bytes {
        return Err(damaged(file, length, format!("the file ends here instead of at {}", segment.bytes)));
    }
    Ok(segment)
}

/// A data directory being opened: the snapshot is chosen, nothing is replayed yet.
#[derive(Debug)]
pub struct Opening {
    disk: Arc<dyn Disk>,
    options: Options,
    inventory: Inventory,
    snapshot: Option<SnapshotReader>,
    findings: Findings,
}

impl Opening {
    /// Takes stock of the directory and picks the newest snapshot that verifies.
    pub fn begin(disk: Arc<dyn Disk>, options: Options) -> Result<Self, OpenError> {
        options.check()?;
        // A killed process leaves names and bytes that the kernel shows but has not stored. What
        // recovery builds on must be on the device first. On an empty directory it builds on nothing.
        if !disk.list()?.is_empty() {
            disk.sync_directory()?;
        }
        let inventory = Inventory::take(&*disk, &options)?;
        for number in inventory.segments.keys().rev().take(3) {
            inventory.store(&*disk, FileName::Segment(*number))?;
        }
        let mut findings = Findings::default();
        let mut chosen = None;
        for number in inventory.snapshots.iter().rev() {
            match snapshot::open(&disk, *number, options.shard)? {
                Ok(reader) => {
                    chosen = Some(reader);
                    break;
                }
                Err(damage) => findings.bad_snapshots.push(damage),
            }
        }
        for number in chosen.iter().flat_map(SnapshotReader::extents) {
            if !inventory.extents.contains(number) {
                let what = "the file is missing; the snapshot in use refers to it";
                return Err(damaged(FileName::Extent(*number), 0, what));
            }
        }
        Ok(Self { disk, options, inventory, snapshot: chosen, findings })
    }

    /// The snapshot to load before replaying, if there is one.
    pub fn snapshot(&mut self) -> Option<&mut SnapshotReader> {
        self.snapshot.as_mut()
    }

    /// Passes every entry after the snapshot to `visit`, in order, and finds the end of the log.
    pub fn replay<E>(
        mut self,
        mut visit: impl FnMut(&Entry<'_>) -> Result<(), E>,
    ) -> Result<Recovered, OpenError>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        if self.is_new()? {
            return Ok(Recovered {
                disk: self.disk,
                options: self.options,
                inventory: self.inventory,
                end: None,
                kept: Vec::new(),
                findings: self.findings,
            });
        }
        let mut walk = Walk::start(&self.inventory, self.snapshot.as_ref(), &self.findings)?;
        loop {
            let segment = self.segment(walk.segment, &walk)?;
            let mut window = Window::new(&*self.disk, &segment);
            let verdict = loop {
                let found = window.entry(&segment, walk.offset)?;
                let entry = match walk.judge(&segment, &found, &self.options) {
                    Verdict::Next => found.expect("only a verified entry is next"),
                    verdict => break verdict,
                };
                visit(&entry).map_err(|error| OpenError::Replay {
                    position: entry.position(),
                    source: error.into(),
                })?;
                walk.pass(&entry, &mut self.findings);
                if entry.header.flags & FLAG_LAST != 0 {
                    break Verdict::Leave;
                }
            };
            match verdict {
                Verdict::Leave => {
                    walk.segment = walk.segment.saturating_add(1);
                    walk.offset = FIRST_ENTRY;
                }
                Verdict::Damaged(what) => return Err(damaged(segment.file(), walk.offset, what)),
                Verdict::Next | Verdict::End(_) => {
                    let reason = if let Verdict::End(reason) = verdict { reason } else { String::new() };
                    if !self.inventory.closing.is_some_and(|closing| closing.is_at(&walk.tail)) {
                        self.check_nothing_follows(&segment, &walk, &mut window, &reason)?;
                    }
                    self.findings.torn = walk.torn(&segment, &mut window, &reason)?;
                    drop(window);
                    let kept = self.snapshot.iter().map(SnapshotReader::about).collect();
                    return Ok(Recovered {
                        end: Some(End { segment, offset: walk.offset, tail: walk.tail }),
                        disk: self.disk,
                        options: self.options,
                        inventory: self.inventory,
                        kept,
                        findings: self.findings,
                    });
                }
            }
        }
    }

    /// A directory without segments is new, unless something else says it should have some.
    fn is_new(&self) -> Result<bool, OpenError> {
        if !self.inventory.segments.is_empty() {
            return Ok(false);
        }
        let witness = self.inventory.snapshots.first().map(|number| FileName::Snapshot(*number));
        let witness = witness.or(self.inventory.extents.first().map(|number| FileName::Extent(*number)));
        match witness {
            Some(file) => Err(damaged(file, 0, "this file exists, but every segment of the log is missing")),
            None => Ok(true),
        }
    }

    fn segment(&self, number: u32, walk: &Walk) -> Result<Segment, OpenError> {
        self.inventory.segments.get(&number).copied().ok_or_else(|| {
            let what = format!("the file is missing; the log goes on in it after {}", walk.tail.position);
            damaged(FileName::Segment(number), 0, what)
        })
    }

    /// The end of the log must be the end of everything: a valid entry beyond it means that the
    /// place where the walk stopped is damaged, not torn.
    fn check_nothing_follows(
        &self,
        segment: &Segment,
        walk: &Walk,
        window: &mut Window<'_>,
        reason: &str,
    ) -> Result<(), OpenError> {
        if self.options.has(Planted::CutBeforeVerify) {
            return Ok(());
        }
        let broken = |follower: FileName, offset: u64| {
            let next = walk.tail.position.next();
            let what =
                format!("{next} does not verify ({reason}), yet {follower} goes on at offset {offset}");
            damaged(segment.file(), walk.offset, what)
        };
        if let Some(offset) = window.search(segment, walk.offset)? {
            return Err(broken(segment.file(), offset));
        }
        let later = self.inventory.segments.range(segment.number.saturating_add(1)..);
        for (index, (_, other)) in later.enumerate() {
            if index > 0 {
                return Err(broken(other.file(), 0));
            }
            if let Some(offset) = Window::new(&*self.disk, other).search(other, FIRST_ENTRY)? {
                return Err(broken(other.file(), offset));
            }
        }
        Ok(())
    }
}

/// What the next entry means for the walk.
enum Verdict {
    /// It is the one that follows.
    Next,
    /// The log goes on in the next segment.
    Leave,
    /// No valid entry is here.
    End(String),
    /// A valid entry is here that cannot be.
    Damaged(String),
}

/// The walk through the log: where it is and what must come next.
#[derive(Debug)]
struct Walk {
    segment: u32,
    offset: u64,
    tail: Tail,
}

impl Walk {
    fn start(
        inventory: &Inventory,
        snapshot: Option<&SnapshotReader>,
        findings: &Findings,
    ) -> Result<Self, OpenError> {
        if let Some(snapshot) = snapshot {
            let about = snapshot.about();
            let (segment, offset) = (about.next.region().number(), u64::from(about.next.offset()));
            let tail = Tail { position: about.position, chain: about.chain, epoch: about.epoch };
            return Ok(Self { segment, offset, tail });
        }
        if let Some(bad) = findings.bad_snapshots.first() {
            return Err(OpenError::Damaged(bad.clone()));
        }
        let first = inventory.segments.keys().next().copied().unwrap_or(1);
        if first != 1 {
            let what = "the log starts here, and no snapshot says what came before";
            return Err(damaged(FileName::Segment(first), 0, what));
        }
        let tail = Tail { position: Position::START, chain: ChainHash(0), epoch: Epoch(0) };
        Ok(Self { segment: 1, offset: FIRST_ENTRY, tail })
    }

    fn judge(&self, segment: &Segment, found: &Result<Entry<'_>, EntryError>, options: &Options) -> Verdict {
        let entry = match found {
            Ok(entry) => entry,
            Err(error @ (EntryError::Version(_) | EntryError::Flags(_) | EntryError::Record { .. })) => {
                return Verdict::Damaged(error.to_string());
            }
            Err(error) => return Verdict::End(error.to_string()),
        };
        let header = &entry.header;
        if options.has(Planted::NoChain) {
            return Verdict::Next;
        }
        let expected = self.tail.position.next();
        if header.position != expected {
            return Verdict::Damaged(format!("{} stands where {expected} belongs", header.position));
        }
        if header.previous != self.tail.chain {
            let what = format!("{expected} does not continue the batch before it");
            return Verdict::Damaged(what);
        }
        if header.shard != segment.shard {
            return Verdict::Damaged(format!("{expected} belongs to shard {}", header.shard));
        }
        let opens = header.flags & FLAG_EPOCH != 0;
        let rises = header.epoch > self.tail.epoch;
        if rises != opens || header.epoch < self.tail.epoch {
            let what = format!("{expected} carries {} after {}", header.epoch, self.tail.epoch);
            return Verdict::Damaged(what);
        }
        Verdict::Next
    }

    /// Moves past a verified entry and returns its length in the segment.
    fn pass(&mut self, entry: &Entry<'_>, findings: &mut Findings) -> usize {
        let length = round_up(entry::HEADER_BYTES + entry.records.len(), entry::BLOCK_BYTES);
        self.offset += on_disk(length);
        self.tail = Tail { position: entry.position(), chain: entry.chain(), epoch: entry.epoch() };
        findings.entries += 1;
        findings.bytes += on_disk(length);
        findings.closed = entry.header.flags & FLAG_CLOSED != 0;
        length
    }

    /// Whether what stands at the end looks like the entry that was being written.
    fn torn(
        &self,
        segment: &Segment,
        window: &mut Window<'_>,
        reason: &str,
    ) -> Result<Option<Damage>, DiskError> {
        let claims = entry::peek(window.at(self.offset, entry::HEADER_BYTES)?);
        let next = self.tail.position.next();
        let began = claims.is_some_and(|header| {
            header.position == next || header.previous == self.tail.chain && header.length != 0
        });
        let what = || format!("{next} was being written and is cut: {reason}");
        Ok(began.then(|| Damage { file: segment.file(), offset: self.offset, what: what() }))
    }
}

/// Where the log ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) segment: Segment,
    pub(crate) offset: u64,
    pub(crate) tail: Tail,
}

/// A log whose end is known, ready to be written to. Nothing on disk has changed so far.
#[derive(Debug)]
pub struct Recovered {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) inventory: Inventory,
    /// `None` for a new directory.
    pub(crate) end: Option<End>,
    pub(crate) kept: Vec<snapshot::About>,
    pub(crate) findings: Findings,
}

impl Recovered {
    /// What recovery found out of the ordinary.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The last batch of the log.
    pub fn position(&self) -> Position {
        self.end.map_or(Position::START, |end| end.tail.position)
    }
}
