//! Segments: the files the ring is made of, and how to read through one.
//!
//! A segment starts with one block that names it and carries its salt; entries follow, each at a
//! block boundary. The header is written and synced *before* the file gets its segment name, so
//! a segment with a bad header or a short file is damage, never the trace of a crash.

use crate::disk::{Disk, DiskError, FileName};
use crate::entry::{self, BLOCK_BYTES, Entry, EntryError};
use crate::frame;
use crate::location::{Location, Region};
use crate::units::{in_memory, on_disk, put, u32_at, u64_at};

/// The version of segments written by this release.
pub const VERSION: u16 = 1;
/// Where the first entry of a segment lies.
pub(crate) const FIRST_ENTRY: u64 = 4096;

const MAGIC: u32 = u32::from_le_bytes(*b"VoSg");
const CRC_OFFSET: usize = 32;
/// How much is read at once when going through a segment.
const WINDOW_BYTES: usize = 1 << 20;

/// What a segment says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) shard: u32,
    pub(crate) bytes: u64,
    pub(crate) salt: u64,
}

impl Segment {
    pub(crate) fn file(&self) -> FileName {
        FileName::Segment(self.number)
    }

    pub(crate) fn location(&self, offset: u64) -> Location {
        let offset = u32::try_from(offset).expect("a segment is shorter than 4 GiB");
        Location::new(Region::segment(self.number), offset)
    }

    /// The first block of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = frame::begin(MAGIC, VERSION, self.number, self.shard);
        put(&mut block, 16, &self.bytes.to_le_bytes());
        put(&mut block, 24, &self.salt.to_le_bytes());
        frame::seal(&mut block, CRC_OFFSET);
        block
    }

    /// Reads a first block back; the text says what is wrong with it.
    pub(crate) fn decode(block: &[u8]) -> Result<Self, String> {
        frame::check(block, MAGIC, VERSION, CRC_OFFSET, "header of a segment")?;
        let fields = || {
            Some(Self {
                number: u32_at(block, 8)?,
                shard: u32_at(block, 12)?,
                bytes: u64_at(block, 16)?,
                salt: u64_at(block, 24)?,
            })
        };
        fields().ok_or_else(|| "the header is short".to_owned())
    }
}

/// A view that slides over a file, reading ahead.
#[derive(Debug)]
pub(crate) struct Window<'d> {
    disk: &'d dyn Disk,
    file: FileName,
    /// How much to read at once.
    ahead: usize,
    start: u64,
    bytes: Vec<u8>,
}

impl<'d> Window<'d> {
    pub(crate) fn new(disk: &'d dyn Disk, segment: &Segment) -> Self {
        let ahead = in_memory(segment.bytes).min(WINDOW_BYTES);
        Self { disk, file: segment.file(), ahead, start: 0, bytes: Vec::new() }
    }

    /// The bytes at `offset`: as many as asked for, fewer only at the end of the file.
    pub(crate) fn at(&mut self, offset: u64, length: usize) -> Result<&[u8], DiskError> {
        let skip = offset.checked_sub(self.start).map_or(usize::MAX, in_memory);
        let held = skip.checked_add(length).is_some_and(|end| end <= self.bytes.len());
        let skip = if held {
            skip
        } else {
            self.bytes.resize(length.max(self.ahead), 0);
            let count = self.disk.read_at(self.file, offset, &mut self.bytes)?;
            self.bytes.truncate(count);
            self.start = offset;
            0
        };
        let end = self.bytes.len().min(skip.saturating_add(length));
        Ok(self.bytes.get(skip..end).unwrap_or_default())
    }

    /// The entry at `offset` of `segment`, verified.
    pub(crate) fn entry(
        &mut self,
        segment: &Segment,
        offset: u64,
    ) -> Result<Result<Entry<'_>, EntryError>, DiskError> {
        let room = segment.bytes.saturating_sub(offset);
        let claimed = match entry::claimed_bytes(self.at(offset, entry::HEADER_BYTES)?, segment.salt) {
            Ok(claimed) if on_disk(claimed) <= room => claimed,
            Ok(claimed) => return Ok(Err(EntryError::Length { claimed: on_disk(claimed), room })),
            Err(error) => return Ok(Err(error)),
        };
        let bytes = self.at(offset, claimed)?;
        Ok(entry::open(bytes, segment.location(offset), segment.salt))
    }

    /// The first verified entry at or after `offset`, wherever it lies, and its offset.
    pub(crate) fn search(&mut self, segment: &Segment, mut offset: u64) -> Result<Option<u64>, DiskError> {
        while offset < segment.bytes {
            match self.entry(segment, offset)? {
                Ok(_) | Err(EntryError::Version(_) | EntryError::Flags(_)) => return Ok(Some(offset)),
                Err(_) => offset = offset.saturating_add(on_disk(BLOCK_BYTES)),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_any_flipped_bit_is_noticed() {
        let segment = Segment { number: 3, shard: 1, bytes: 1 << 16, salt: 99 };
        let block = segment.encode();
        assert_eq!(Segment::decode(&block).unwrap(), segment);
        for bit in 0..block.len() * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Segment::decode(&flipped).is_err(), "bit {bit}");
        }
    }
}
