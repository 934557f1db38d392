//! The batch being built: records encoded into the buffer that will be written.
//!
//! A batch knows where it will lie before anything is written, so every record has its location
//! as soon as it is encoded. It is capped: once it holds [`Limits::batch_bytes`] it takes no more
//! records, so one commit is never larger than the cap plus one record and never stalls others
//! for longer. Payloads beyond [`Limits::record_bytes`] are written as several records
//! ([`chunks`]) over as many batches as it takes, and a last record that lists them ([`Part`]).

use crate::blocks;
use crate::entry::{self, RecordsChecksum};
use crate::location::{Location, Position};
use crate::record::{self, RecordError, RecordView};
use crate::units::{round_up, u32_at, u64_at};

/// Sizes that bound every commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A batch that holds this many bytes takes no further record.
    pub batch_bytes: usize,
    /// The most bytes, fixed part and payload together, one record may have.
    pub record_bytes: usize,
}

impl Default for Limits {
    /// One megabyte keeps a commit near the disk's best rate at under a millisecond; 256 KiB
    /// records keep even the largest message from holding up others.
    fn default() -> Self {
        Self { batch_bytes: 1 << 20, record_bytes: (256 << 10) + 512 }
    }
}

impl Limits {
    /// The most bytes an entry can take in a segment.
    pub(crate) fn entry_bytes(&self) -> usize {
        let record = record::encoded_bytes(0, self.record_bytes);
        round_up(entry::HEADER_BYTES + self.batch_bytes + record, entry::BLOCK_BYTES)
    }
}

/// Why a record was not taken into a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The record exceeds the limit; split it with [`chunks`].
    #[error("record of {bytes} bytes exceeds the limit of {limit}")]
    RecordTooLarge {
        /// Bytes of fixed part and payload.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The fixed part exceeds its length field.
    #[error("fixed part of {bytes} bytes exceeds the limit of 65535")]
    FixedTooLarge {
        /// Bytes of the fixed part.
        bytes: usize,
    },
    /// The batch has reached its cap; submit it and go on with the next.
    #[error("batch holds {bytes} bytes and its cap is {limit}")]
    Full {
        /// Bytes it holds.
        bytes: usize,
        /// The cap.
        limit: usize,
    },
}

/// A batch of at least this part of the cap is large: one of the long stretches that a disk gives about as fast as they
/// can be sent. A device that answers in 0.1 ms gives 64 KiB at a time at 600 MB/s.
const LARGE_PART: usize = 16;

/// How the records of a batch will be read back, apart from a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBack {
    /// One here, one there: worth a copy in the system's cache.
    Scattered,
    /// With those around them: a disk gives long stretches about as fast as they can be sent.
    Stretches,
    /// Not at all: nobody waits for them any more.
    Never,
}

/// Records on their way to the log, in the buffer that will be written.
#[derive(Debug)]
pub struct Batch {
    buffer: Vec<u8>,
    /// Where in the buffer its records begin.
    lead: usize,
    checksum: RecordsChecksum,
    pub(crate) base: Location,
    pub(crate) position: Position,
    pub(crate) count: u32,
    pub(crate) flags: u16,
    pub(crate) now_ms: u64,
    /// Set once its content is promised to a snapshot: nothing may be added.
    pub(crate) closed: bool,
    read_back: ReadBack,
    /// Whether who hands it over may commit it on the spot if it is small.
    pub(crate) commit_here: bool,
    /// The record at its end that gathers small ones, if the newest of them may be followed by others.
    gathering: Option<Gathering>,
    limits: Limits,
}

/// A record that is not finished.
#[derive(Debug, Clone, Copy)]
struct Gathering {
    kind: u8,
    /// Where among the batch's records it begins.
    start: usize,
    location: Location,
}

impl Batch {
    /// An empty batch whose entry will lie at `base`, built in `buffer`.
    pub fn new(mut buffer: Vec<u8>, base: Location, position: Position, limits: Limits) -> Self {
        let lead = blocks::lead(&buffer);
        buffer.clear();
        buffer.resize(lead, 0);
        Self {
            buffer,
            lead,
            checksum: RecordsChecksum::default(),
            base,
            position,
            count: 0,
            flags: 0,
            now_ms: 0,
            closed: false,
            read_back: ReadBack::Scattered,
            commit_here: true,
            gathering: None,
            limits,
        }
    }

    /// Encodes a record and says where it will lie. The payload may come in parts.
    pub fn record(&mut self, kind: u8, fixed: &[u8], payload: &[&[u8]]) -> Result<Location, BatchError> {
        let payload_bytes = payload.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        let bytes = fixed.len().saturating_add(payload_bytes);
        self.check(bytes)?;
        if fixed.len() > usize::from(u16::MAX) {
            return Err(BatchError::FixedTooLarge { bytes: fixed.len() });
        }
        self.finish_gathering();
        let location = self.here();
        let start = self.bytes();
        let sum = record::encode(&mut self.buffer, location, kind, fixed, payload);
        self.take_in(start, start.saturating_add(record::HEADER_BYTES).saturating_add(bytes), sum);
        self.count = self.count.checked_add(1).expect("a batch of a few megabytes holds fewer records");
        Ok(location)
    }

    /// Adds an item, which comes in parts, to the payload of a record of this kind, and says where that record lies. As
    /// long as nothing else is added to the batch, items of a kind share one record, and its header and checksum.
    /// How long each item is, the items themselves have to say.
    pub fn gather(&mut self, kind: u8, item: &[&[u8]]) -> Result<Location, BatchError> {
        let bytes = item.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        self.check(bytes)?;
        let location = self.gathering_with_room(kind, bytes);
        for part in item {
            self.buffer.extend_from_slice(part);
        }
        Ok(location)
    }

    /// Whether it takes so many bytes more, as one record.
    fn check(&self, bytes: usize) -> Result<(), BatchError> {
        if self.is_full() {
            return Err(BatchError::Full { bytes: self.bytes(), limit: self.limits.batch_bytes });
        }
        if bytes > self.limits.record_bytes {
            return Err(BatchError::RecordTooLarge { bytes, limit: self.limits.record_bytes });
        }
        Ok(())
    }

    /// Where the unfinished record of this kind lies that has so much room; one is begun if there is none.
    fn gathering_with_room(&mut self, kind: u8, bytes: usize) -> Location {
        if let Some(gathering) = self.gathering {
            let held = self.bytes().saturating_sub(gathering.start).saturating_sub(record::HEADER_BYTES);
            if gathering.kind == kind && held.saturating_add(bytes) <= self.limits.record_bytes {
                return gathering.location;
            }
        }
        self.finish_gathering();
        let (location, start) = (self.here(), self.bytes());
        record::begin(&mut self.buffer, kind);
        self.gathering = Some(Gathering { kind, start, location });
        self.count = self.count.checked_add(1).expect("a batch of a few megabytes holds fewer records");
        location
    }

    /// Finishes the record that gathers small ones, if there is one.
    fn finish_gathering(&mut self) {
        if let Some(Gathering { start, location, .. }) = self.gathering.take() {
            let end = self.bytes();
            let begin = self.lead.saturating_add(start);
            let sum = record::finish(&mut self.buffer, begin, location, 0);
            self.take_in(start, end, sum);
        }
    }

    /// Tells the batch's checksum that of the record between these places.
    fn take_in(&mut self, start: usize, end: usize, sum: record::Sum) {
        let records = self.buffer.get(self.lead..).unwrap_or_default();
        self.checksum.take_in(records.get(..end).unwrap_or_default(), start, sum);
    }

    /// Finishes what was begun and brings the checksum up to date, when what was added is still at hand.
    pub(crate) fn sum_up(&mut self) {
        self.finish_gathering();
        let records = self.buffer.get(self.lead..).unwrap_or_default();
        self.checksum.catch_up(records);
    }

    /// The checksum of its records.
    pub(crate) fn checksum(&self) -> RecordsChecksum {
        assert!(self.gathering.is_none(), "a batch is summed up before it is committed");
        let mut checksum = self.checksum;
        checksum.catch_up(self.records());
        checksum
    }

    /// The commit it will be.
    pub fn position(&self) -> Position {
        self.position
    }

    /// How many records it holds.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Tells how its records will be read back, which decides whether it is written past the system's cache.
    pub fn set_read_back(&mut self, read_back: ReadBack) {
        self.read_back = read_back;
    }

    /// Tells whether who hands it over may wait for the disk, if the batch is small and that is sooner; else it is left to
    /// the commit thread.
    pub fn set_commit_here(&mut self, here: bool) {
        self.commit_here = here;
    }

    /// Whether it is not worth a copy in the system's cache.
    pub(crate) fn goes_past_cache(&self) -> bool {
        match self.read_back {
            ReadBack::Scattered => false,
            ReadBack::Stretches => self.bytes() >= self.limits.batch_bytes / LARGE_PART,
            ReadBack::Never => true,
        }
    }

    /// Whether it holds no records.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of records in it.
    pub fn bytes(&self) -> usize {
        self.buffer.len().saturating_sub(self.lead)
    }

    /// Its records as they will lie in a segment, behind the header.
    pub(crate) fn records(&self) -> &[u8] {
        self.buffer.get(self.lead..).unwrap_or_default()
    }

    /// The buffer, for the next batch.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Whether it takes no further record.
    pub fn is_full(&self) -> bool {
        self.bytes() >= self.limits.batch_bytes
    }

    /// Reads back a record it holds. `None` if the location lies elsewhere.
    pub fn read(&self, location: Location) -> Option<Result<RecordView<'_>, RecordError>> {
        let offset = self.offset_of(location)?;
        let bytes = self.records().get(offset..)?;
        Some(record::decode(location, bytes).map(|(view, _)| view))
    }

    /// The bytes its entry takes in a segment, padding included.
    pub(crate) fn padded_bytes(&self) -> usize {
        round_up(entry::HEADER_BYTES + self.bytes(), entry::BLOCK_BYTES)
    }

    fn here(&self) -> Location {
        let offset = entry::HEADER_BYTES + self.bytes();
        self.base.plus(u32::try_from(offset).expect("a batch is a few megabytes"))
    }

    fn offset_of(&self, location: Location) -> Option<usize> {
        let offset = usize::try_from(location.raw().checked_sub(self.base.raw())?).ok()?;
        offset.checked_sub(entry::HEADER_BYTES).filter(|offset| *offset < self.bytes())
    }
}

/// One record of a payload that was too large for a single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Where the record lies.
    pub location: Location,
    /// Bytes of its payload.
    pub bytes: u32,
}

/// Bytes a part takes in a list of parts.
pub const PART_BYTES: usize = 12;

impl Part {
    /// Writes the part into a list, to be kept in the record that follows the parts.
    pub fn encode(self, list: &mut Vec<u8>) {
        list.extend_from_slice(&self.location.raw().to_le_bytes());
        list.extend_from_slice(&self.bytes.to_le_bytes());
    }

    /// Reads a list of parts back. `None` if its length is not a whole number of parts.
    pub fn decode_list(list: &[u8]) -> Option<Vec<Self>> {
        if !list.len().is_multiple_of(PART_BYTES) {
            return None;
        }
        list.chunks_exact(PART_BYTES)
            .map(|part| {
                Some(Self { location: Location::from_raw(u64_at(part, 0)?), bytes: u32_at(part, 8)? })
            })
            .collect()
    }
}

/// Splits a large payload into pieces of at most `record_bytes`, each fit for one record.
pub fn chunks(payload: &[u8], record_bytes: usize) -> impl Iterator<Item = &[u8]> {
    payload.chunks(record_bytes.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::Region;

    const LIMITS: Limits = Limits { batch_bytes: 100, record_bytes: 40 };

    fn batch() -> Batch {
        Batch::new(Vec::new(), Location::new(Region::segment(2), 8192), Position(1), LIMITS)
    }

    #[test]
    fn a_record_is_readable_from_the_moment_it_is_encoded() {
        let mut batch = batch();
        let first = batch.record(1, b"f", &[b"one"]).unwrap();
        let second = batch.record(2, b"", &[b"tw", b"o"]).unwrap();
        assert_eq!(batch.read(first).unwrap().unwrap().payload, b"one");
        assert_eq!(batch.read(second).unwrap().unwrap().payload, b"two");
        assert!(batch.read(Location::new(Region::segment(2), 8192)).is_none());
        assert!(batch.read(Location::new(Region::segment(3), 0)).is_none());
    }

    #[test]
    fn a_record_is_taken_up_to_its_limit_and_not_beyond() {
        let cases = [("below", 39, true), ("at", 40, true), ("above", 41, false)];
        for (case, bytes, taken) in cases {
            let outcome = batch().record(1, b"", &[&vec![7; bytes]]);
            assert_eq!(outcome.is_ok(), taken, "{case}");
        }
    }

    #[test]
    fn a_batch_exceeds_its_cap_by_less_than_one_record() {
        let mut batch = batch();
        while batch.record(1, b"", &[&[7; 40]]).is_ok() {}
        assert!(batch.is_full());
        assert!(batch.bytes() < LIMITS.batch_bytes + record::encoded_bytes(0, 40));
        assert!(batch.padded_bytes() <= LIMITS.entry_bytes());
        assert!(matches!(batch.record(1, b"", &[]), Err(BatchError::Full { .. })));
    }

    #[test]
    fn items_of_a_kind_share_a_record_until_another_comes_or_it_is_long_enough() {
        let limits = Limits { batch_bytes: 400, record_bytes: 40 };
        let base = Location::new(Region::segment(2), 8192);
        let mut batch = Batch::new(Vec::new(), base, Position(1), limits);
        let first = batch.gather(7, &[b"one", b" two"]).unwrap();
        assert_eq!(batch.gather(7, &[b" three"]).unwrap(), first);
        let payload = batch.record(1, b"fixed", &[b"payload"]).unwrap();
        let second = batch.gather(7, &[&[4; 30]]).unwrap();
        let third = batch.gather(7, &[&[5; 11]]).unwrap();
        let other = batch.gather(8, &[b"x"]).unwrap();
        assert!(matches!(
            batch.gather(8, &[&[6; 41]]),
            Err(BatchError::RecordTooLarge { bytes: 41, limit: 40 })
        ));
        batch.sum_up();
        let after = batch.gather(8, &[b"y"]).unwrap();
        assert!(after > other, "what was summed up is finished");
        batch.sum_up();
        assert_eq!(batch.count(), 6);
        for (location, kind, bytes) in [
            (first, 7, &b"one two three"[..]),
            (payload, 1, b"payload"),
            (second, 7, &[4; 30]),
            (third, 7, &[5; 11]),
            (other, 8, b"x"),
            (after, 8, b"y"),
        ] {
            let view = batch.read(location).unwrap().unwrap();
            assert_eq!((view.kind, view.payload), (kind, bytes));
        }
        let mut whole = RecordsChecksum::default();
        whole.catch_up(batch.records());
        let sealed = |checksum| {
            let header = entry::Header {
                flags: 0,
                length: 0,
                shard: 0,
                count: 0,
                epoch: crate::location::Epoch(1),
                position: Position(1),
                previous: entry::ChainHash(0),
                now_ms: 0,
            };
            entry::seal(&header, checksum, 9)
        };
        assert_eq!(sealed(batch.checksum()), sealed(whole), "the batch's checksum is that of its bytes");
    }

    #[test]
    fn a_full_batch_takes_no_further_item() {
        let mut batch = batch();
        while batch.gather(1, &[&[7; 9]]).is_ok() {}
        assert!(batch.is_full());
        assert!(batch.padded_bytes() <= LIMITS.entry_bytes());
        assert!(matches!(batch.gather(1, &[]), Err(BatchError::Full { .. })));
    }

    #[test]
    fn a_batch_goes_past_the_cache_if_it_is_read_never_or_in_long_stretches() {
        let limits = Limits { batch_bytes: 160, record_bytes: 40 };
        for (case, count, read_back, past) in [
            ("small", 0, ReadBack::Stretches, false),
            ("large", 1, ReadBack::Stretches, true),
            ("scattered", 9, ReadBack::Scattered, false),
            ("small, for nobody", 0, ReadBack::Never, true),
        ] {
            let mut batch =
                Batch::new(Vec::new(), Location::new(Region::segment(2), 8192), Position(1), limits);
            for _ in 0..count {
                batch.record(1, b"", &[]).unwrap();
            }
            batch.set_read_back(read_back);
            assert_eq!(batch.goes_past_cache(), past, "{case}");
        }
    }

    #[test]
    fn a_list_of_parts_comes_back_and_a_torn_list_does_not() {
        let parts: Vec<_> =
            (1..4).map(|n| Part { location: Location::new(Region::segment(n), n), bytes: n }).collect();
        let mut list = Vec::new();
        for part in &parts {
            part.encode(&mut list);
        }
        assert_eq!(Part::decode_list(&list).unwrap(), parts);
        assert!(Part::decode_list(&list[1..]).is_none());
    }
}
