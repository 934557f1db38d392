//! The door to the disk: everything the log does to files goes through [`Disk`].
//!
//! Files are named by kind and number, never by text from outside. The contract is the weakest
//! one a POSIX file system gives: written bytes survive a crash only after [`Disk::sync`] of
//! that file, names only after [`Disk::sync_directory`], and until then any subset may survive
//! in any order, torn anywhere. Two implementations exist: [`RealDisk`] and [`SimDisk`], which
//! uses that freedom in full.

mod real;
mod sim;

pub use real::RealDisk;
pub use sim::{CrashPlan, Fate, Fault, Pattern, SimDisk, Step, Torn};

use std::fmt;

/// A file of the data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// A segment of the ring.
    Segment(u32),
    /// A file with written blocks, waiting to become a segment.
    Spare(u32),
    /// A file whose blocks are still being written, to become a spare.
    SpareTemp(u32),
    /// A finished extent.
    Extent(u32),
    /// An extent being written.
    ExtentTemp(u32),
    /// A finished snapshot.
    Snapshot(u32),
    /// A snapshot being written.
    SnapshotTemp(u32),
    /// A note that the log was closed in good order.
    Closed(u32),
}

impl FileName {
    /// Reads a name back from a directory listing. `None` for files that are not ours.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, digits) = text.rsplit_once('-')?;
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() != 8 || !digits.bytes().all(lower) {
            return None;
        }
        let number = u32::from_str_radix(digits, 16).ok()?;
        match kind {
            "segment" => Some(Self::Segment(number)),
            "spare" => Some(Self::Spare(number)),
            "spare-temp" => Some(Self::SpareTemp(number)),
            "extent" => Some(Self::Extent(number)),
            "extent-temp" => Some(Self::ExtentTemp(number)),
            "snapshot" => Some(Self::Snapshot(number)),
            "snapshot-temp" => Some(Self::SnapshotTemp(number)),
            "closed" => Some(Self::Closed(number)),
            _ => None,
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, number) = match self {
            Self::Segment(number) => ("segment", number),
            Self::Spare(number) => ("spare", number),
            Self::SpareTemp(number) => ("spare-temp", number),
            Self::Extent(number) => ("extent", number),
            Self::ExtentTemp(number) => ("extent-temp", number),
            Self::Snapshot(number) => ("snapshot", number),
            Self::SnapshotTemp(number) => ("snapshot-temp", number),
            Self::Closed(number) => ("closed", number),
        };
        write!(out, "{kind}-{number:08x}")
    }
}

/// What kind of trouble the disk reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No space, or over quota.
    NoSpace,
    /// The file is not there.
    Missing,
    /// The file is already there.
    Exists,
    /// Another process holds the directory.
    Locked,
    /// Anything else.
    Other,
}

/// A disk call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action} {target}: {text}")]
pub struct DiskError {
    /// What was tried.
    pub action: &'static str,
    /// On what.
    pub target: String,
    /// What kind of trouble it was.
    pub trouble: Trouble,
    /// What the system said.
    pub text: String,
}

/// A directory of numbered files, as the log needs it.
pub trait Disk: Send + Sync + fmt::Debug {
    /// The files there are, in order of name.
    fn list(&self) -> Result<Vec<FileName>, DiskError>;
    /// Creates a file of `bytes` zeros whose space is set aside. Fails if it exists.
    fn create(&self, file: FileName, bytes: u64) -> Result<(), DiskError>;
    /// The length of a file.
    fn len(&self, file: FileName) -> Result<u64, DiskError>;
    /// Reads into `buffer` and returns how much there was; less than asked only at the end.
    fn read_at(&self, file: FileName, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError>;
    /// Writes all of `parts`, one after the other, growing the file if needed.
    fn write_at(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError>;
    /// Writes whole blocks past the system's cache where that is possible: what is going to be read late, and in long
    /// stretches, is not worth a copy.
    fn write_past(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError>;
    /// Writes zeros: past the system's cache where that is possible, since nobody is going to read them.
    fn zero(&self, file: FileName, offset: u64, bytes: usize) -> Result<(), DiskError>;
    /// Makes the file's bytes and length durable.
    fn sync(&self, file: FileName) -> Result<(), DiskError>;
    /// Makes creations, renames and removals durable.
    fn sync_directory(&self) -> Result<(), DiskError>;
    /// Gives a file a name that is not taken.
    fn rename(&self, from: FileName, to: FileName) -> Result<(), DiskError>;
    /// Removes a file.
    fn remove(&self, file: FileName) -> Result<(), DiskError>;
    /// Makes the next reads come from the device rather than from memory, as far as possible.
    ///
    /// After a failed sync the kernel may keep pages that never reached the device and call
    /// them clean; recovery must not take those for durable.
    fn forget(&self, file: FileName) -> Result<(), DiskError>;
    /// Bytes an unprivileged writer can still use.
    fn free_bytes(&self) -> Result<u64, DiskError>;
    /// An unpredictable number, to salt checksums with.
    fn entropy(&self) -> Result<u64, DiskError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back_and_foreign_names_do_not() {
        let names = [
            FileName::Segment(1),
            FileName::Spare(2),
            FileName::SpareTemp(3),
            FileName::Extent(u32::MAX),
            FileName::ExtentTemp(0xab),
            FileName::Snapshot(0),
            FileName::SnapshotTemp(9),
            FileName::Closed(1),
        ];
        for name in names {
            assert_eq!(FileName::parse(&name.to_string()), Some(name), "{name}");
        }
        for foreign in [
            "",
            "lock",
            "segment-1",
            "segment-0000000g",
            "SEGMENT-00000001",
            "segment-0000000A",
            "lost+found",
        ] {
            assert_eq!(FileName::parse(foreign), None, "{foreign}");
        }
    }
}
