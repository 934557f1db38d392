//! A simulated disk that forgets, tears and reorders as much as a real one may.
//!
//! Each file has its durable bytes, the bytes a reader sees, and the operations between them in
//! order. A crash picks a fate for every unsynced operation, so an explorer can enumerate the
//! images a power failure may leave. A failed sync behaves as kernels do: what was unsynced may
//! or may not have reached the device, readers still see it, and no later sync will help it.

use super::{Disk, DiskError, FileName, Trouble};
use crate::dice::Dice;
use crate::entry::BLOCK_BYTES;
use crate::units::{in_memory, on_disk};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The unit a device writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// What becomes of one unsynced operation in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It reached the device.
    Kept,
    /// It did not.
    Lost,
    /// A write reached it in part; anything else is lost.
    Torn(Torn),
    /// Each sector of a write is kept, lost or garbage by this seed; anything else is kept.
    Scattered(u64),
}

/// A write that stopped part of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Bytes that arrived.
    pub kept_bytes: usize,
    /// What stands where the rest should be.
    pub rest: Pattern,
}

/// What stands where a torn write did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// What the file held before; nothing, if it was shorter.
    Stale,
    /// Zeros.
    Zeros,
    /// Noise.
    Garbage,
}

/// The fates of all unsynced operations, in the order of [`SimDisk::unsynced`]; operations past
/// the end of the list are lost.
pub type CrashPlan<'a> = &'a [Fate];

/// An error to inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails as with an I/O error.
    Fail,
    /// The call fails for lack of space.
    NoSpace,
    /// A write stores half its bytes, then fails; other calls fail.
    Short,
}

/// A call that changed the disk, as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A file was created with this length.
    Create(FileName, u64),
    /// Bytes were written at an offset.
    Write(FileName, u64, Arc<[u8]>),
    /// A file was synced.
    Sync(FileName),
    /// The directory was synced.
    SyncDirectory,
    /// A file was renamed.
    Rename(FileName, FileName),
    /// A file was removed.
    Remove(FileName),
    /// Something the recorder wanted to remember here.
    Mark(u64),
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(file, bytes) => write!(out, "create {file} of {bytes} bytes"),
            Self::Write(file, offset, bytes) => {
                write!(out, "write {} bytes to {file} at {offset}", bytes.len())
            }
            Self::Sync(file) => write!(out, "sync {file}"),
            Self::SyncDirectory => write!(out, "sync the directory"),
            Self::Rename(from, to) => write!(out, "rename {from} to {to}"),
            Self::Remove(file) => write!(out, "remove {file}"),
            Self::Mark(mark) => write!(out, "mark {mark}"),
        }
    }
}

#[derive(Debug, Clone)]
enum DataChange {
    Length(u64),
    Write(u64, Arc<[u8]>),
}

#[derive(Debug, Clone)]
enum NameChange {
    Link(FileName, usize),
    Unlink(FileName),
    Rename(FileName, FileName),
}

#[derive(Debug, Clone, Default)]
struct Inode {
    durable: Arc<Vec<u8>>,
    seen: Arc<Vec<u8>>,
    unsynced: Vec<DataChange>,
}

#[derive(Debug, Clone)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<FileName, usize>,
    durable_names: BTreeMap<FileName, usize>,
    unsynced_names: Vec<NameChange>,
    calls: u64,
    faults: BTreeMap<u64, Fault>,
    fault_from: Option<(u64, Fault)>,
    steps: Option<Vec<Step>>,
    free_bytes: u64,
    dice: Dice,
    ignores_sync: bool,
    constant_entropy: bool,
    written_past: u64,
    zeroed_bytes: usize,
}

/// A simulated disk; clones share it.
#[derive(Debug, Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// An empty disk with plenty of space.
    pub fn new(seed: u64) -> Self {
        Self::from_state(State {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            calls: 0,
            faults: BTreeMap::new(),
            fault_from: None,
            steps: None,
            free_bytes: 1 << 40,
            dice: Dice::new(seed),
            ignores_sync: false,
            constant_entropy: false,
            written_past: 0,
            zeroed_bytes: 0,
        })
    }

    fn from_state(state: State) -> Self {
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A disk of its own with the same content, nothing shared.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::from_state(self.state().clone())
    }

    /// Starts recording the calls that change the disk.
    pub fn record(&self) {
        self.state().steps = Some(Vec::new());
    }

    /// Adds a mark to the recording.
    pub fn mark(&self, mark: u64) {
        self.state().step(|| Step::Mark(mark));
    }

    /// Ends the recording and returns it.
    pub fn recorded(&self) -> Vec<Step> {
        self.state().steps.take().unwrap_or_default()
    }

    /// Repeats a recorded call.
    pub fn repeat(&self, step: &Step) -> Result<(), DiskError> {
        match step {
            Step::Create(file, bytes) => self.create(*file, *bytes),
            Step::Write(file, offset, bytes) => self.write_at(*file, *offset, &[bytes]),
            Step::Sync(file) => self.sync(*file),
            Step::SyncDirectory => self.sync_directory(),
            Step::Rename(from, to) => self.rename(*from, *to),
            Step::Remove(file) => self.remove(*file),
            Step::Mark(_) => Ok(()),
        }
    }

    /// The sizes of the unsynced operations a crash decides on: bytes for a write, zero for
    /// anything else. Name changes come first, then the data of each file.
    pub fn unsynced(&self) -> Vec<usize> {
        let state = self.state();
        let names = state.unsynced_names.iter().map(|_| 0);
        let data = state.inodes.iter().flat_map(|inode| &inode.unsynced).map(|change| match change {
            DataChange::Length(_) => 0,
            DataChange::Write(_, bytes) => bytes.len(),
        });
        names.chain(data).collect()
    }

    /// The disk after a power failure with these fates.
    #[must_use]
    pub fn crash(&self, plan: CrashPlan<'_>) -> Self {
        let mut state = self.state().clone();
        let mut fates = plan.iter().copied().chain(std::iter::repeat(Fate::Lost));
        for change in std::mem::take(&mut state.unsynced_names) {
            if matches!(fates.next(), Some(Fate::Kept | Fate::Scattered(_))) {
                change_names(&mut state.durable_names, &change);
            }
        }
        for inode in &mut state.inodes {
            for change in std::mem::take(&mut inode.unsynced) {
                let fate = fates.next().unwrap_or(Fate::Lost);
                survive(Arc::make_mut(&mut inode.durable), &change, fate);
            }
            inode.seen = Arc::clone(&inode.durable);
        }
        state.names = state.durable_names.clone();
        state.faults.clear();
        (state.fault_from, state.steps) = (None, None);
        // Random numbers never repeat across a restart.
        let fresh = state.dice.roll() ^ state.calls.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state.dice = Dice::new(fresh);
        Self::from_state(state)
    }

    /// How many calls were made so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Makes one call fail; calls count from zero.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        self.state().faults.insert(call, fault);
    }

    /// Makes this call and all later ones fail.
    pub fn fail_from(&self, call: u64, fault: Fault) {
        self.state().fault_from = Some((call, fault));
    }

    /// Heals the disk: no further injected errors.
    pub fn heal(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.fault_from = None;
    }

    /// Sets how much space is left.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.state().free_bytes = bytes;
    }

    /// How many zeros were written.
    pub fn zeroed_bytes(&self) -> usize {
        self.state().zeroed_bytes
    }

    /// How many writes went past the system's cache.
    pub fn written_past(&self) -> u64 {
        self.state().written_past
    }

    /// Makes the disk claim to sync without doing so, as some do.
    pub fn ignore_syncs(&self) {
        self.state().ignores_sync = true;
    }

    /// Makes every random number the same.
    pub fn fix_entropy(&self) {
        self.state().constant_entropy = true;
    }

    /// A file's bytes as a reader sees them.
    pub fn contents(&self, file: FileName) -> Option<Vec<u8>> {
        let state = self.state();
        let inode = state.inodes.get(*state.names.get(&file)?)?;
        Some(inode.seen.to_vec())
    }

    /// Damages a file behind the log's back: `change` gets its bytes, durable and seen alike.
    pub fn damage(&self, file: FileName, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        if let Some(inode) = state.names.get(&file).copied().and_then(|index| state.inodes.get_mut(index)) {
            let mut bytes = inode.seen.to_vec();
            change(&mut bytes);
            inode.seen = Arc::new(bytes);
            inode.durable = Arc::clone(&inode.seen);
            inode.unsynced.clear();
        }
    }
}

impl State {
    fn step(&mut self, step: impl FnOnce() -> Step) {
        if let Some(steps) = &mut self.steps {
            steps.push(step());
        }
    }

    /// Counts a call and returns the fault injected into it.
    fn call(&mut self, action: &'static str, target: String) -> Result<(), (Fault, DiskError)> {
        let call = self.calls;
        self.calls = call.wrapping_add(1);
        let lasting = self.fault_from.filter(|(from, _)| call >= *from).map(|(_, fault)| fault);
        let Some(fault) = self.faults.get(&call).copied().or(lasting) else { return Ok(()) };
        let (trouble, text) = match fault {
            Fault::NoSpace => (Trouble::NoSpace, "no space left on device"),
            Fault::Fail | Fault::Short => (Trouble::Other, "input/output error"),
        };
        Err((fault, DiskError { action, target, trouble, text: text.to_owned() }))
    }

    fn inode(&mut self, action: &'static str, file: FileName) -> Result<&mut Inode, DiskError> {
        let index = self.names.get(&file).copied();
        index.and_then(|index| self.inodes.get_mut(index)).ok_or_else(|| DiskError {
            action,
            target: file.to_string(),
            trouble: Trouble::Missing,
            text: "no such file".to_owned(),
        })
    }

    fn take_space(&mut self, action: &'static str, file: FileName, bytes: u64) -> Result<(), DiskError> {
        match self.free_bytes.checked_sub(bytes) {
            Some(left) => {
                self.free_bytes = left;
                Ok(())
            }
            None => Err(DiskError {
                action,
                target: file.to_string(),
                trouble: Trouble::NoSpace,
                text: "no space left on device".to_owned(),
            }),
        }
    }

    fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let end = offset.saturating_add(on_disk(bytes.len()));
        let growth = end.saturating_sub(on_disk(self.inode("write", file)?.seen.len()));
        self.take_space("write", file, growth)?;
        let data: Arc<[u8]> = bytes.into();
        let inode = self.inode("write", file)?;
        overwrite(Arc::make_mut(&mut inode.seen), offset, bytes);
        inode.unsynced.push(DataChange::Write(offset, Arc::clone(&data)));
        self.step(|| Step::Write(file, offset, data));
        Ok(())
    }
}

fn overwrite(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let start = in_memory(offset);
    let end = start + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content.get_mut(start..end).expect("the content was just made long enough").copy_from_slice(bytes);
}

fn change_names(names: &mut BTreeMap<FileName, usize>, change: &NameChange) {
    match *change {
        NameChange::Link(name, inode) => {
            names.insert(name, inode);
        }
        NameChange::Unlink(name) => {
            names.remove(&name);
        }
        NameChange::Rename(from, to) => {
            if let Some(inode) = names.remove(&from) {
                names.insert(to, inode);
            }
        }
    }
}

/// Applies what survives of one change.
fn survive(content: &mut Vec<u8>, change: &DataChange, fate: Fate) {
    let (offset, bytes) = match (change, fate) {
        (_, Fate::Lost) | (DataChange::Length(_), Fate::Torn(_)) => return,
        (DataChange::Length(length), Fate::Kept | Fate::Scattered(_)) => {
            return content.resize(in_memory(*length), 0);
        }
        (DataChange::Write(offset, bytes), _) => (*offset, bytes),
    };
    match fate {
        Fate::Lost => {}
        Fate::Kept => overwrite(content, offset, bytes),
        Fate::Torn(Torn { kept_bytes, rest }) => {
            let (kept, missing) = bytes.split_at_checked(kept_bytes).unwrap_or((bytes, &[]));
            overwrite(content, offset, kept);
            let rest_offset = offset + on_disk(kept.len());
            match rest {
                Pattern::Stale => {}
                Pattern::Zeros => overwrite(content, rest_offset, &vec![0; missing.len()]),
                Pattern::Garbage => overwrite(content, rest_offset, &noise(rest_offset, missing.len())),
            }
        }
        Fate::Scattered(seed) => {
            let mut dice = Dice::new(seed);
            for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                let place = offset + on_disk(index * SECTOR_BYTES);
                match dice.below(8) {
                    0..=3 => overwrite(content, place, sector),
                    4..=6 => {}
                    _ => overwrite(content, place, &noise(seed ^ place, sector.len())),
                }
            }
        }
    }
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Dice::new(seed).fill(&mut bytes);
    bytes
}

impl Disk for SimDisk {
    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        let mut state = self.state();
        state.call("list", "the directory".to_owned()).map_err(|(_, error)| error)?;
        Ok(state.names.keys().copied().collect())
    }

    fn create(&self, file: FileName, bytes: u64) -> Result<(), DiskError> {
        let mut state = self.state();
        state.call("create", file.to_string()).map_err(|(_, error)| error)?;
        if state.names.contains_key(&file) {
            return Err(taken("create", file));
        }
        state.take_space("create", file, bytes)?;
        let index = state.inodes.len();
        let mut inode = Inode::default();
        if bytes > 0 {
            inode.seen = Arc::new(vec![0; in_memory(bytes)]);
            inode.unsynced.push(DataChange::Length(bytes));
        }
        state.inodes.push(inode);
        state.names.insert(file, index);
        state.unsynced_names.push(NameChange::Link(file, index));
        state.step(|| Step::Create(file, bytes));
        Ok(())
    }

    fn len(&self, file: FileName) -> Result<u64, DiskError> {
        let mut state = self.state();
        state.call("measure", file.to_string()).map_err(|(_, error)| error)?;
        Ok(on_disk(state.inode("measure", file)?.seen.len()))
    }

    fn read_at(&self, file: FileName, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let mut state = self.state();
        state.call("read", file.to_string()).map_err(|(_, error)| error)?;
        let seen = &state.inode("read", file)?.seen;
        let available = seen.get(in_memory(offset)..).unwrap_or_default();
        let count = available.len().min(buffer.len());
        if let (Some(target), Some(source)) = (buffer.get_mut(..count), available.get(..count)) {
            target.copy_from_slice(source);
        }
        Ok(count)
    }

    fn write_at(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        let mut state = self.state();
        let bytes = parts.concat();
        match state.call("write", file.to_string()) {
            Ok(()) => state.write(file, offset, &bytes),
            Err((Fault::Short, error)) => {
                let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
                state.write(file, offset, half)?;
                Err(error)
            }
            Err((Fault::Fail | Fault::NoSpace, error)) => Err(error),
        }
    }

    fn write_past(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        let whole = |part: &&&[u8]| {
            part.len().is_multiple_of(BLOCK_BYTES)
                && (part.is_empty() || part.as_ptr().align_offset(BLOCK_BYTES) == 0)
        };
        assert!(
            offset.is_multiple_of(on_disk(BLOCK_BYTES)) && parts.iter().all(|part| whole(&part)),
            "a device takes whole blocks from whole addresses"
        );
        self.state().written_past += 1;
        self.write_at(file, offset, parts)
    }

    fn zero(&self, file: FileName, offset: u64, bytes: usize) -> Result<(), DiskError> {
        self.state().zeroed_bytes += bytes;
        self.write_at(file, offset, &[&vec![0; bytes]])
    }

    fn sync(&self, file: FileName) -> Result<(), DiskError> {
        let mut state = self.state();
        if let Err((_, error)) = state.call("sync", file.to_string()) {
            let mut dice = Dice::new(state.dice.roll() ^ state.calls);
            let inode = state.inode("sync", file)?;
            for change in std::mem::take(&mut inode.unsynced) {
                let fate = if dice.below(2) == 0 { Fate::Kept } else { Fate::Lost };
                survive(Arc::make_mut(&mut inode.durable), &change, fate);
            }
            return Err(error);
        }
        let ignored = state.ignores_sync;
        let inode = state.inode("sync", file)?;
        if !ignored {
            for change in std::mem::take(&mut inode.unsynced) {
                survive(Arc::make_mut(&mut inode.durable), &change, Fate::Kept);
            }
        }
        state.step(|| Step::Sync(file));
        Ok(())
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        let mut state = self.state();
        state.call("sync", "the directory".to_owned()).map_err(|(_, error)| error)?;
        if !state.ignores_sync {
            let changes = std::mem::take(&mut state.unsynced_names);
            for change in &changes {
                change_names(&mut state.durable_names, change);
            }
        }
        state.step(|| Step::SyncDirectory);
        Ok(())
    }

    fn rename(&self, from: FileName, to: FileName) -> Result<(), DiskError> {
        let mut state = self.state();
        state.call("rename", from.to_string()).map_err(|(_, error)| error)?;
        state.inode("rename", from)?;
        if state.names.contains_key(&to) {
            return Err(taken("rename", to));
        }
        let change = NameChange::Rename(from, to);
        change_names(&mut state.names, &change);
        state.unsynced_names.push(change);
        state.step(|| Step::Rename(from, to));
        Ok(())
    }

    fn remove(&self, file: FileName) -> Result<(), DiskError> {
        let mut state = self.state();
        state.call("remove", file.to_string()).map_err(|(_, error)| error)?;
        let bytes = on_disk(state.inode("remove", file)?.seen.len());
        state.free_bytes = state.free_bytes.saturating_add(bytes);
        let change = NameChange::Unlink(file);
        change_names(&mut state.names, &change);
        state.unsynced_names.push(change);
        state.step(|| Step::Remove(file));
        Ok(())
    }

    fn forget(&self, file: FileName) -> Result<(), DiskError> {
        let mut state = self.state();
        state.call("drop the cache of", file.to_string()).map_err(|(_, error)| error)?;
        let inode = state.inode("drop the cache of", file)?;
        if inode.unsynced.is_empty() {
            inode.seen = Arc::clone(&inode.durable);
        }
        Ok(())
    }

    fn free_bytes(&self) -> Result<u64, DiskError> {
        let mut state = self.state();
        state.call("measure free space of", "the disk".to_owned()).map_err(|(_, error)| error)?;
        Ok(state.free_bytes)
    }

    fn entropy(&self) -> Result<u64, DiskError> {
        let mut state = self.state();
        state.call("draw", "random bytes".to_owned()).map_err(|(_, error)| error)?;
        Ok(if state.constant_entropy { 7 } else { state.dice.roll() })
    }
}

fn taken(action: &'static str, file: FileName) -> DiskError {
    DiskError {
        action,
        target: file.to_string(),
        trouble: Trouble::Exists,
        text: "a file of that name exists".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileName = FileName::Segment(1);

    fn disk_with_durable(bytes: &[u8]) -> SimDisk {
        let disk = SimDisk::new(1);
        disk.create(FILE, 0).unwrap();
        disk.write_at(FILE, 0, &[bytes]).unwrap();
        disk.sync(FILE).unwrap();
        disk.sync_directory().unwrap();
        disk
    }

    #[test]
    fn what_is_synced_survives_and_what_is_not_has_the_fate_it_is_given() {
        let disk = disk_with_durable(b"old bytes");
        disk.write_at(FILE, 0, &[b"NEW"]).unwrap();
        let torn = |rest| Fate::Torn(Torn { kept_bytes: 1, rest });
        let cases: [(Fate, &[u8]); 4] = [
            (Fate::Lost, b"old bytes"),
            (Fate::Kept, b"NEW bytes"),
            (torn(Pattern::Stale), b"Nld bytes"),
            (torn(Pattern::Zeros), b"N\0\0 bytes"),
        ];
        assert_eq!(disk.unsynced(), [3]);
        for (fate, expected) in cases {
            assert_eq!(disk.crash(&[fate]).contents(FILE).unwrap(), expected, "{fate:?}");
        }
        assert_eq!(disk.contents(FILE).unwrap(), b"NEW bytes");
    }

    #[test]
    fn names_survive_only_with_the_directory() {
        let disk = disk_with_durable(b"x");
        disk.rename(FILE, FileName::Spare(1)).unwrap();
        assert_eq!(disk.crash(&[Fate::Lost]).list().unwrap(), [FILE]);
        assert_eq!(disk.crash(&[Fate::Kept]).list().unwrap(), [FileName::Spare(1)]);
        disk.sync_directory().unwrap();
        assert_eq!(disk.crash(&[]).list().unwrap(), [FileName::Spare(1)]);
    }

    #[test]
    fn after_a_failed_sync_readers_see_bytes_that_no_later_sync_makes_durable() {
        let disk = disk_with_durable(b"old");
        for number in 0..40 {
            disk.write_at(FILE, 0, &[b"new"]).unwrap();
            disk.fail_at(disk.calls(), Fault::Fail);
            assert!(disk.sync(FILE).is_err());
            assert_eq!(disk.contents(FILE).unwrap(), b"new");
            disk.sync(FILE).unwrap();
            if disk.crash(&[]).contents(FILE).unwrap() == b"old" {
                disk.forget(FILE).unwrap();
                assert_eq!(disk.contents(FILE).unwrap(), b"old", "round {number}");
                return;
            }
            disk.write_at(FILE, 0, &[b"old"]).unwrap();
            disk.sync(FILE).unwrap();
        }
        panic!("a failed sync never lost anything");
    }

    #[test]
    fn a_recording_repeats_to_the_same_disk() {
        let disk = SimDisk::new(1);
        disk.record();
        disk.create(FILE, 4).unwrap();
        disk.write_at(FILE, 2, &[b"abcd"]).unwrap();
        disk.sync(FILE).unwrap();
        disk.rename(FILE, FileName::Spare(3)).unwrap();
        let copy = SimDisk::new(1);
        disk.recorded().iter().for_each(|step| copy.repeat(step).unwrap());
        assert_eq!(copy.contents(FileName::Spare(3)), disk.contents(FileName::Spare(3)));
        assert_eq!(copy.unsynced(), disk.unsynced());
    }

    #[test]
    fn space_runs_out_and_comes_back() {
        let disk = SimDisk::new(1);
        disk.set_free_bytes(10);
        assert_eq!(disk.create(FILE, 11).unwrap_err().trouble, Trouble::NoSpace);
        disk.create(FILE, 10).unwrap();
        assert_eq!(disk.free_bytes().unwrap(), 0);
        disk.remove(FILE).unwrap();
        assert_eq!(disk.free_bytes().unwrap(), 10);
    }
}
