//! The real disk: the only file that touches the file system.
//!
//! A directory is held by one process at a time, by an advisory lock on its `lock` file. File
//! descriptors are kept open up to a bound, since a backlog can lie in thousands of extents.

use super::{Disk, DiskError, FileName, Trouble};
use crate::units::on_disk;
use rustix::fd::OwnedFd;
use rustix::fs::{self, Advice, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Descriptors kept open; beyond this the least recently opened is closed.
const OPEN_FILES_MAX: usize = 256;

/// What writes past the system's cache have to be aligned to: the largest block of common devices.
const DIRECT_BYTES: usize = 4096;
/// Zeros at hand; longer stretches are made of them.
const ZERO_BYTES: usize = 64 << 10;

/// The files of one data directory.
#[derive(Debug)]
pub struct RealDisk {
    path: PathBuf,
    directory: OwnedFd,
    open: Mutex<OpenFiles>,
    /// The file that was last written past the system's cache.
    direct: Mutex<Direct>,
    /// Held for as long as this value lives.
    _lock: OwnedFd,
}

#[derive(Debug, Default)]
struct OpenFiles {
    by_name: BTreeMap<FileName, (u64, Arc<OwnedFd>)>,
    opened: u64,
}

/// A descriptor for writes past the system's cache.
#[derive(Debug, Default)]
enum Direct {
    #[default]
    Closed,
    Open(FileName, Arc<OwnedFd>),
    /// This file system has no such thing.
    Never,
}

impl RealDisk {
    /// Opens a data directory, creating it if needed, and locks it against other processes.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let failed = |action: &'static str| {
            let target = path.display().to_string();
            move |error: Errno| trouble(action, target, error)
        };
        create_durably(path).map_err(|error| DiskError {
            action: "create",
            target: path.display().to_string(),
            trouble: Trouble::Other,
            text: error.to_string(),
        })?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = fs::open(path, flags, Mode::empty()).map_err(failed("open"))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let lock =
            fs::openat(&directory, "lock", flags, Mode::from_raw_mode(0o600)).map_err(failed("lock"))?;
        match fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(DiskError {
                    action: "lock",
                    target: path.display().to_string(),
                    trouble: Trouble::Locked,
                    text: "another process is using this data directory; stop it, or use another directory"
                        .to_owned(),
                });
            }
            Err(error) => return Err(failed("lock")(error)),
        }
        Ok(Self {
            path: path.to_owned(),
            directory,
            open: Mutex::default(),
            direct: Mutex::default(),
            _lock: lock,
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, file: FileName) -> Result<Arc<OwnedFd>, DiskError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, descriptor)) = open.by_name.get(&file) {
            return Ok(Arc::clone(descriptor));
        }
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let descriptor = fs::openat(&self.directory, file.to_string(), flags, Mode::empty())
            .map_err(|error| self.trouble("open", file, error))?;
        Ok(open.keep(file, descriptor))
    }

    /// A descriptor of its own for writes past the system's cache.
    fn direct(&self, file: FileName) -> Result<OwnedFd, Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::DIRECT;
        fs::openat(&self.directory, file.to_string(), flags, Mode::empty())
    }

    /// The descriptor for writes to a file past the system's cache, kept for the next one.
    fn kept_direct(&self, file: FileName) -> Option<Arc<OwnedFd>> {
        let mut kept = self.direct.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Direct::Open(name, descriptor) if *name == file => return Some(Arc::clone(descriptor)),
            Direct::Never => return None,
            Direct::Open(..) | Direct::Closed => {}
        }
        *kept = match self.direct(file) {
            Ok(descriptor) => Direct::Open(file, Arc::new(descriptor)),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Direct::Never,
            Err(_) => Direct::Closed,
        };
        match &*kept {
            Direct::Open(_, descriptor) => Some(Arc::clone(descriptor)),
            Direct::Never | Direct::Closed => None,
        }
    }

    fn close(&self, file: FileName) {
        self.close_direct(file);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).by_name.remove(&file);
    }

    fn close_direct(&self, file: FileName) {
        let mut kept = self.direct.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(&*kept, Direct::Open(name, _) if *name == file) {
            *kept = Direct::Closed;
        }
    }

    fn trouble(&self, action: &'static str, file: FileName, error: Errno) -> DiskError {
        trouble(action, self.path.join(file.to_string()).display().to_string(), error)
    }
}

/// Creates a directory and those above it, and syncs the directory each new one lies in: a store
/// must not vanish with its own name.
fn create_durably(path: &Path) -> std::io::Result<()> {
    let path = std::path::absolute(path)?;
    let new: Vec<_> = path.ancestors().take_while(|level| !level.exists()).map(Path::to_owned).collect();
    std::fs::create_dir_all(&path)?;
    for parent in new.iter().filter_map(|level| level.parent()) {
        std::fs::File::open(parent)?.sync_all()?;
    }
    Ok(())
}

impl OpenFiles {
    fn keep(&mut self, file: FileName, descriptor: OwnedFd) -> Arc<OwnedFd> {
        if self.by_name.len() >= OPEN_FILES_MAX {
            let oldest = self.by_name.iter().min_by_key(|(_, (opened, _))| *opened).map(|(name, _)| *name);
            if let Some(oldest) = oldest {
                self.by_name.remove(&oldest);
            }
        }
        self.opened = self.opened.wrapping_add(1);
        let descriptor = Arc::new(descriptor);
        self.by_name.insert(file, (self.opened, Arc::clone(&descriptor)));
        descriptor
    }
}

fn trouble(action: &'static str, target: String, error: Errno) -> DiskError {
    let trouble = match error {
        Errno::NOSPC | Errno::DQUOT => Trouble::NoSpace,
        Errno::NOENT => Trouble::Missing,
        Errno::EXIST => Trouble::Exists,
        _ => Trouble::Other,
    };
    DiskError { action, target, trouble, text: error.to_string() }
}

impl Disk for RealDisk {
    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        let failed = |error: std::io::Error| DiskError {
            action: "list",
            target: self.path.display().to_string(),
            trouble: Trouble::Other,
            text: error.to_string(),
        };
        let mut files = Vec::new();
        for item in std::fs::read_dir(&self.path).map_err(failed)? {
            let name = item.map_err(failed)?.file_name();
            files.extend(name.to_str().and_then(FileName::parse));
        }
        files.sort_unstable();
        Ok(files)
    }

    fn create(&self, file: FileName, bytes: u64) -> Result<(), DiskError> {
        let failed = |error| self.trouble("create", file, error);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let descriptor = fs::openat(&self.directory, file.to_string(), flags, Mode::from_raw_mode(0o600))
            .map_err(failed)?;
        let set_aside = if bytes == 0 {
            Ok(())
        } else {
            match fs::fallocate(&descriptor, FallocateFlags::empty(), 0, bytes) {
                // Not every file system can set space aside; a length is the next best thing.
                Err(Errno::OPNOTSUPP | Errno::INVAL) => fs::ftruncate(&descriptor, bytes),
                other => other,
            }
        };
        if let Err(error) = set_aside {
            // The file is ours and empty; leaving it would block the next attempt.
            fs::unlinkat(&self.directory, file.to_string(), fs::AtFlags::empty()).map_err(failed)?;
            return Err(failed(error));
        }
        self.open.lock().unwrap_or_else(PoisonError::into_inner).keep(file, descriptor);
        Ok(())
    }

    fn len(&self, file: FileName) -> Result<u64, DiskError> {
        let descriptor = self.file(file)?;
        let status = fs::fstat(&*descriptor).map_err(|error| self.trouble("measure", file, error))?;
        Ok(u64::try_from(status.st_size).unwrap_or_default())
    }

    fn read_at(&self, file: FileName, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let descriptor = self.file(file)?;
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(&*descriptor, rest, offset.saturating_add(on_disk(filled))) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.trouble("read", file, error)),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        let descriptor = self.file(file)?;
        let mut slices: Vec<_> =
            parts.iter().filter(|part| !part.is_empty()).map(|part| IoSlice::new(part)).collect();
        let (mut rest, mut place) = (slices.as_mut_slice(), offset);
        while !rest.is_empty() {
            match rustix::io::pwritev(&*descriptor, rest, place) {
                Ok(0) => return Err(self.trouble("write", file, Errno::IO)),
                Ok(count) => {
                    IoSlice::advance_slices(&mut rest, count);
                    place = place.saturating_add(on_disk(count));
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.trouble("write", file, error)),
            }
        }
        Ok(())
    }

    fn write_past(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        if let Some(descriptor) = self.kept_direct(file) {
            let slices: Vec<_> =
                parts.iter().filter(|part| !part.is_empty()).map(|part| IoSlice::new(part)).collect();
            let bytes = parts.iter().map(|part| part.len()).sum();
            match rustix::io::pwritev(&*descriptor, &slices, offset) {
                Ok(count) if count == bytes => return Ok(()),
                // Written in part, or blocks that this device does not take: the usual way takes all of it.
                Ok(_) | Err(Errno::INTR | Errno::INVAL | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(self.trouble("write", file, error)),
            }
        }
        self.write_at(file, offset, parts)
    }

    fn zero(&self, file: FileName, offset: u64, bytes: usize) -> Result<(), DiskError> {
        let zeros = vec![0; ZERO_BYTES + DIRECT_BYTES];
        let start = zeros.as_ptr().align_offset(DIRECT_BYTES);
        let aligned = zeros.get(start..).and_then(|rest| rest.get(..ZERO_BYTES)).unwrap_or_default();
        let parts: Vec<&[u8]> = (0..bytes)
            .step_by(ZERO_BYTES)
            .map(|from| aligned.get(..bytes.saturating_sub(from).min(ZERO_BYTES)).unwrap_or_default())
            .collect();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let written =
            self.direct(file).and_then(|descriptor| rustix::io::pwritev(&descriptor, &slices, offset));
        if written == Ok(bytes) {
            return Ok(());
        }
        // Whatever was in the way, the usual path meets it again, and names it.
        self.write_at(file, offset, &parts)
    }

    fn sync(&self, file: FileName) -> Result<(), DiskError> {
        let descriptor = self.file(file)?;
        fs::fdatasync(&*descriptor).map_err(|error| self.trouble("sync", file, error))
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        let target = || self.path.display().to_string();
        fs::fsync(&self.directory).map_err(|error| trouble("sync", target(), error))
    }

    fn rename(&self, from: FileName, to: FileName) -> Result<(), DiskError> {
        let (source, target) = (from.to_string(), to.to_string());
        let directory = &self.directory;
        match fs::renameat_with(directory, &source, directory, &target, RenameFlags::NOREPLACE) {
            // Not every file system can promise not to overwrite; nobody else writes here, so
            // looking first is as good.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                match fs::statat(directory, &target, fs::AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => fs::renameat(directory, &source, directory, &target),
                    Ok(_) => Err(Errno::EXIST),
                    Err(error) => Err(error),
                }
            }
            other => other,
        }
        .map_err(|error| self.trouble("rename", from, error))?;
        self.close_direct(from);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = open.by_name.remove(&from) {
            open.by_name.insert(to, kept);
        }
        Ok(())
    }

    fn remove(&self, file: FileName) -> Result<(), DiskError> {
        self.close(file);
        fs::unlinkat(&self.directory, file.to_string(), fs::AtFlags::empty())
            .map_err(|error| self.trouble("remove", file, error))
    }

    fn forget(&self, file: FileName) -> Result<(), DiskError> {
        let descriptor = self.file(file)?;
        fs::fadvise(&*descriptor, 0, None, Advice::DontNeed)
            .map_err(|error| self.trouble("drop the cache of", file, error))
    }

    fn free_bytes(&self) -> Result<u64, DiskError> {
        let target = || self.path.display().to_string();
        let status = fs::fstatvfs(&self.directory)
            .map_err(|error| trouble("measure free space of", target(), error))?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }

    fn entropy(&self) -> Result<u64, DiskError> {
        let mut bytes = [0; 8];
        match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
            Ok(8) => Ok(u64::from_le_bytes(bytes)),
            Ok(_) => Err(trouble("draw", "random bytes".to_owned(), Errno::IO)),
            Err(error) => Err(trouble("draw", "random bytes".to_owned(), error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_what_was_written_under_the_names_they_were_given() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(directory.path()).unwrap();
        disk.create(FileName::Spare(1), 8192).unwrap();
        disk.write_at(FileName::Spare(1), 8190, &[b"fo", b"", b"ur"]).unwrap();
        disk.sync(FileName::Spare(1)).unwrap();
        disk.rename(FileName::Spare(1), FileName::Segment(1)).unwrap();
        disk.sync_directory().unwrap();
        disk.forget(FileName::Segment(1)).unwrap();
        assert_eq!(disk.list().unwrap(), [FileName::Segment(1)]);
        assert_eq!(disk.len(FileName::Segment(1)).unwrap(), 8194);
        let mut buffer = [9; 8];
        assert_eq!(disk.read_at(FileName::Segment(1), 8188, &mut buffer).unwrap(), 6);
        assert_eq!(&buffer[..6], b"\0\0four");
        disk.remove(FileName::Segment(1)).unwrap();
        assert_eq!(disk.len(FileName::Segment(1)).unwrap_err().trouble, Trouble::Missing);
        assert!(disk.free_bytes().unwrap() > 0);
    }

    #[test]
    fn zeros_take_the_place_of_what_was_there_whatever_their_length() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(directory.path()).unwrap();
        let file = FileName::Spare(1);
        // Two that can go past the cache, two that cannot.
        for (offset, bytes) in [(4_096, 8_192), (0, 139_264), (4_096, 100), (1, 70_000)] {
            disk.create(file, 0).unwrap();
            disk.write_at(file, 0, &[&vec![7; 147_456]]).unwrap();
            disk.zero(file, offset, bytes).unwrap();
            disk.sync(file).unwrap();
            let mut content = vec![9; 147_456];
            assert_eq!(disk.read_at(file, 0, &mut content).unwrap(), content.len());
            let first = usize::try_from(offset).unwrap();
            for (place, byte) in content.into_iter().enumerate() {
                let expected = if (first..first + bytes).contains(&place) { 0 } else { 7 };
                assert_eq!(byte, expected, "{offset} {bytes}: at {place}");
            }
            disk.remove(file).unwrap();
        }
    }

    #[test]
    fn what_is_written_past_the_cache_is_found_by_those_who_read_through_it() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(directory.path()).unwrap();
        let block = DIRECT_BYTES;
        let memory: Vec<u8> = (0..5 * block).map(|place| u8::try_from(place % 251).unwrap()).collect();
        let aligned = memory.as_ptr().align_offset(block);
        let content = |file| {
            let mut bytes = vec![9; 8 * block];
            assert_eq!(disk.read_at(file, 0, &mut bytes).unwrap(), bytes.len());
            bytes
        };
        let mut expected = vec![0; 8 * block];
        let mut file = FileName::Spare(1);
        disk.create(file, 0).unwrap();
        disk.zero(file, 0, 8 * block).unwrap();
        // Whole blocks at whole addresses, then what only the usual way takes: an address, a length, a place.
        let cases =
            [(aligned, 2 * block, block), (aligned, block, 3 * block), (aligned + 1, block, 4 * block)];
        for (number, (from, bytes, place)) in
            (2..).zip(cases.into_iter().chain([(aligned, 100, 5 * block), (aligned, block, 6 * block + 1)]))
        {
            assert!(content(file) == expected, "the cache holds it as it was");
            let part = &memory[from..from + bytes];
            disk.write_past(file, on_disk(place), &[&[], part, &[]]).unwrap();
            expected[place..place + bytes].copy_from_slice(part);
            assert!(content(file) == expected, "{from} {bytes} {place}");
            disk.sync(file).unwrap();
            disk.forget(file).unwrap();
            assert!(content(file) == expected, "{from} {bytes} {place}: on the device");
            disk.rename(file, FileName::Spare(number)).unwrap();
            assert_eq!(disk.write_past(file, 0, &[part]).unwrap_err().trouble, Trouble::Missing);
            file = FileName::Spare(number);
        }
    }

    #[test]
    fn a_directory_is_made_with_those_above_it() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b/c");
        drop(RealDisk::open(&path).unwrap());
        assert!(path.is_dir());
    }

    #[test]
    fn a_name_that_is_taken_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(directory.path()).unwrap();
        disk.create(FileName::Spare(1), 0).unwrap();
        disk.create(FileName::Segment(1), 0).unwrap();
        assert_eq!(disk.create(FileName::Segment(1), 0).unwrap_err().trouble, Trouble::Exists);
        assert_eq!(
            disk.rename(FileName::Spare(1), FileName::Segment(1)).unwrap_err().trouble,
            Trouble::Exists
        );
    }

    #[test]
    fn a_second_owner_of_the_directory_is_refused_until_the_first_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let first = RealDisk::open(directory.path()).unwrap();
        let refused = RealDisk::open(directory.path()).unwrap_err();
        assert_eq!(refused.trouble, Trouble::Locked);
        assert!(refused.to_string().contains("another process is using this data directory"));
        drop(first);
        RealDisk::open(directory.path()).unwrap();
    }

    #[test]
    fn more_files_than_descriptors_stay_readable() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(directory.path()).unwrap();
        let count = u32::try_from(OPEN_FILES_MAX).unwrap() + 10;
        for number in 0..count {
            disk.create(FileName::Extent(number), 0).unwrap();
            disk.write_at(FileName::Extent(number), 0, &[&number.to_le_bytes()]).unwrap();
        }
        for number in 0..count {
            let mut bytes = [0; 4];
            assert_eq!(disk.read_at(FileName::Extent(number), 0, &mut bytes).unwrap(), 4);
            assert_eq!(u32::from_le_bytes(bytes), number);
        }
    }
}
