//! The note a log leaves behind when it is closed in good order: where it ended.
//!
//! Who opens a log walks along it until an entry does not verify, and must then read on: a valid entry further on would
//! mean that this place is damaged and not the end. With a note that names the end, up to two segments need not be read,
//! and nothing that is in memory needs to be doubted. The note is written when the closing entry is durable, and is gone,
//! durably, before the next entry is written.

use crate::disk::{Disk, DiskError, FileName};
use crate::entry::ChainHash;
use crate::frame::{self, FRAME_BYTES};
use crate::location::Position;
use crate::ring::Tail;
use crate::units::{put, u32_at, u64_at};

/// The version of notes written by this release.
const VERSION: u16 = 1;
const MAGIC: u32 = u32::from_le_bytes(*b"VoCl");
const CRC_OFFSET: usize = 60;
/// There is only one.
const FILE: FileName = FileName::Closed(1);

/// Where a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closing {
    position: Position,
    chain: ChainHash,
}

impl Closing {
    /// Whether the log still ends there.
    pub(crate) fn is_at(&self, tail: &Tail) -> bool {
        (self.position, self.chain) == (tail.position, tail.chain)
    }

    /// Leaves the note.
    pub(crate) fn write(disk: &dyn Disk, shard: u32, tail: &Tail) -> Result<(), DiskError> {
        let mut block = frame::begin(MAGIC, VERSION, 1, shard);
        put(&mut block, 16, &tail.position.0.to_le_bytes());
        put(&mut block, 24, &tail.chain.0.to_le_bytes());
        frame::seal(&mut block, CRC_OFFSET);
        disk.create(FILE, 0)?;
        disk.write_at(FILE, 0, &[&block])?;
        disk.sync(FILE)?;
        disk.sync_directory()
    }

    /// Reads the note. One that is not whole says nothing.
    pub(crate) fn read(disk: &dyn Disk, shard: u32) -> Option<Closing> {
        let mut block = vec![0; FRAME_BYTES];
        let count = disk.read_at(FILE, 0, &mut block).ok()?;
        block.truncate(count);
        frame::check(&block, MAGIC, VERSION, CRC_OFFSET, "note of a closed log").ok()?;
        let closing =
            Closing { position: Position(u64_at(&block, 16)?), chain: ChainHash(u64_at(&block, 24)?) };
        (u32_at(&block, 12) == Some(shard)).then_some(closing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;
    use crate::location::Epoch;

    #[test]
    fn a_note_is_read_as_it_was_written_or_not_at_all() {
        let tail = Tail { position: Position(7), chain: ChainHash(9), epoch: Epoch(1) };
        let disk = SimDisk::new(1);
        assert_eq!(Closing::read(&disk, 3), None);
        Closing::write(&disk, 3, &tail).unwrap();
        let note = Closing::read(&disk, 3).unwrap();
        assert!(note.is_at(&tail));
        assert!(!note.is_at(&Tail { position: Position(8), ..tail }));
        assert!(!note.is_at(&Tail { chain: ChainHash(8), ..tail }));
        assert_eq!(Closing::read(&disk, 4), None, "that of another shard");
        disk.write_at(FILE, 16, &[&[8]]).unwrap();
        assert_eq!(Closing::read(&disk, 3), None);
    }
}
