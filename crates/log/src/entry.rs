//! Entries: one committed batch each, chained to the one before.
//!
//! ```text
//!  0 magic u32               16 shard u32       32 batch u64            56 zero u32
//!  4 version u16             20 count u32       40 previous hash u64    60 crc32c of the header u32
//!  6 flags u16               24 epoch u64       48 time in ms u64       64 records …
//!  8 length u32
//! 12 crc32c of the records u32
//! ```
//!
//! Both checksums start from the segment's salt, a random number that changes each time a file is
//! reused, so bytes a file held before never pass for new ones, and a sender cannot craft a
//! payload that does. The header has its own, so that looking for an entry where there is none
//! costs the same whatever length the bytes there claim. Each entry carries the hash of the header of the entry before it: with the
//! dense batch number this makes truncation, forks and leftovers something that is *detected*.

use crate::checksum::{behind, combine};
use crate::location::{Epoch, Location, Position};
use crate::record::{self, RecordError, RecordView, Sum};
use crate::units::{on_disk, put, u16_at, u32_at, u64_at};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes before an entry's first record.
pub const HEADER_BYTES: usize = 64;
/// Entries start at multiples of this and are padded to it, so that a commit never rewrites a
/// block holding acknowledged bytes, and the kernel never has to read a block before writing it.
pub const BLOCK_BYTES: usize = 4096;
/// The version of entries written by this release.
pub const VERSION: u16 = 1;

const MAGIC: u32 = u32::from_le_bytes(*b"VoEn");
const RECORDS_CRC_OFFSET: usize = 12;
const HEADER_CRC_OFFSET: usize = 60;

/// The log goes on in the next segment after this entry.
pub(crate) const FLAG_LAST: u16 = 1;
/// Opens an epoch; carries no records.
pub(crate) const FLAG_EPOCH: u16 = 1 << 1;
/// Written at an orderly stop, so that damage to the entry before it cannot pass for a torn tail.
pub(crate) const FLAG_CLOSED: u16 = 1 << 2;
/// Written after an append of unknown outcome, to fix what came before it.
pub(crate) const FLAG_BARRIER: u16 = 1 << 3;
const FLAGS_KNOWN: u16 = FLAG_LAST | FLAG_EPOCH | FLAG_CLOSED | FLAG_BARRIER;

/// A record of so many bytes is long: to derive its part of the entry's checksum is quicker than to compute it.
const LONG_BYTES: usize = 512;

/// Hash of an entry's header, carried by its successor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ChainHash(pub u64);

/// What an entry says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub(crate) flags: u16,
    pub(crate) length: u32,
    pub(crate) shard: u32,
    pub(crate) count: u32,
    pub(crate) epoch: Epoch,
    pub(crate) position: Position,
    pub(crate) previous: ChainHash,
    pub(crate) now_ms: u64,
}

/// Why bytes are not a whole entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// No entry starts here.
    #[error("no entry starts here")]
    Absent,
    /// A version this release does not read.
    #[error("entry version {0} is not one of those this release reads (1)")]
    Version(u16),
    /// Flags of a later version.
    #[error("entry carries unknown flags {0:#06x}")]
    Flags(u16),
    /// The entry claims more bytes than its place has.
    #[error("entry claims {claimed} bytes where {room} are left")]
    Length {
        /// Bytes the entry says it has.
        claimed: u64,
        /// Bytes there are.
        room: u64,
    },
    /// The header's checksum does not match its bytes: no entry, or a damaged one.
    #[error("entry header checksum is {found:08x}, its bytes give {computed:08x}")]
    HeaderChecksum {
        /// As stored.
        found: u32,
        /// As computed.
        computed: u32,
    },
    /// The header verifies, but not the records behind it.
    #[error("checksum of the entry's records is {found:08x}, their bytes give {computed:08x}")]
    RecordsChecksum {
        /// As stored.
        found: u32,
        /// As computed.
        computed: u32,
    },
    /// A record in it does not verify although the entry does.
    #[error("record {index} of the entry: {error}")]
    Record {
        /// Which record, from zero.
        index: u32,
        /// What is wrong with it.
        error: RecordError,
    },
    /// The records do not add up to the entry.
    #[error("entry claims {claimed} records and holds {found}")]
    Count {
        /// As stored.
        claimed: u32,
        /// As found.
        found: u32,
    },
}

/// The checksum of an entry's records, gathered as they are submitted: their bytes are at hand then, and the commit
/// has nothing left to compute between two writes. The salt, which only the commit knows, comes in at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecordsChecksum {
    crc: u32,
    /// How many bytes it covers.
    bytes: usize,
}

impl RecordsChecksum {
    /// Takes in those of an entry's records that came since it was last asked to.
    pub(crate) fn catch_up(&mut self, records: &[u8]) {
        self.crc = crc32c::crc32c_append(self.crc, records.get(self.bytes..).unwrap_or_default());
        self.bytes = records.len();
    }

    /// Takes in the record that begins at `start` and ends with `records`, whose own checksum is known. If it is long,
    /// its bytes are not looked at again.
    pub(crate) fn take_in(&mut self, records: &[u8], start: usize, sum: Sum) {
        let from = start.saturating_add(record::SUMMED_FROM);
        let bytes = records.len().saturating_sub(from);
        if bytes < LONG_BYTES {
            return;
        }
        self.catch_up(records.get(..from).unwrap_or_default());
        self.crc = behind(self.crc, (sum.place, sum.checksum), bytes);
        self.bytes = records.len();
    }

    fn salted(self, salt: u64) -> u32 {
        combine(start(salt), self.crc, self.bytes)
    }
}

/// Builds the header that goes in front of records with this checksum, sealing both, and the hash the next entry
/// must carry.
pub(crate) fn seal(header: &Header, records: RecordsChecksum, salt: u64) -> ([u8; HEADER_BYTES], ChainHash) {
    let mut bytes = [0; HEADER_BYTES];
    put(&mut bytes, 0, &MAGIC.to_le_bytes());
    put(&mut bytes, 4, &VERSION.to_le_bytes());
    put(&mut bytes, 6, &header.flags.to_le_bytes());
    put(&mut bytes, 8, &header.length.to_le_bytes());
    put(&mut bytes, 16, &header.shard.to_le_bytes());
    put(&mut bytes, 20, &header.count.to_le_bytes());
    put(&mut bytes, 24, &header.epoch.0.to_le_bytes());
    put(&mut bytes, 32, &header.position.0.to_le_bytes());
    put(&mut bytes, 40, &header.previous.0.to_le_bytes());
    put(&mut bytes, 48, &header.now_ms.to_le_bytes());
    put(&mut bytes, RECORDS_CRC_OFFSET, &records.salted(salt).to_le_bytes());
    let checksum = header_checksum(&bytes, salt);
    put(&mut bytes, HEADER_CRC_OFFSET, &checksum.to_le_bytes());
    let hash = hash(&bytes, salt);
    (bytes, hash)
}

/// The length in bytes of the entry whose header stands at the start of `bytes`, if that header
/// verifies.
pub(crate) fn claimed_bytes(bytes: &[u8], salt: u64) -> Result<usize, EntryError> {
    let header = bytes.get(..HEADER_BYTES).ok_or(EntryError::Absent)?;
    if u32_at(header, 0) != Some(MAGIC) {
        return Err(EntryError::Absent);
    }
    let found = u32_at(header, HEADER_CRC_OFFSET).ok_or(EntryError::Absent)?;
    let computed = header_checksum(header, salt);
    if found != computed {
        return Err(EntryError::HeaderChecksum { found, computed });
    }
    match u16_at(header, 4) {
        Some(VERSION) => {}
        version => return Err(EntryError::Version(version.unwrap_or_default())),
    }
    let length = u32_at(header, 8).ok_or(EntryError::Absent)?;
    Ok(usize::try_from(length).map_or(usize::MAX, |length| HEADER_BYTES.saturating_add(length)))
}

/// Reads and verifies the entry at the start of `bytes`, which lies at `location`.
pub(crate) fn open(bytes: &[u8], location: Location, salt: u64) -> Result<Entry<'_>, EntryError> {
    let end = claimed_bytes(bytes, salt)?;
    let room = on_disk(bytes.len());
    let short = EntryError::Length { claimed: on_disk(end), room };
    let entry = bytes.get(..end).ok_or(short)?;
    let header = peek(entry).ok_or(short)?;
    if header.flags & !FLAGS_KNOWN != 0 {
        return Err(EntryError::Flags(header.flags));
    }
    let records = entry.get(HEADER_BYTES..).unwrap_or_default();
    let found = u32_at(entry, RECORDS_CRC_OFFSET).unwrap_or_default();
    let computed = salted(salt, records);
    if found != computed {
        return Err(EntryError::RecordsChecksum { found, computed });
    }
    Ok(Entry { header, records, location, hash: hash(entry, salt) })
}

/// What the header at the start of `bytes` says, unverified.
pub(crate) fn peek(entry: &[u8]) -> Option<Header> {
    Some(Header {
        flags: u16_at(entry, 6)?,
        length: u32_at(entry, 8)?,
        shard: u32_at(entry, 16)?,
        count: u32_at(entry, 20)?,
        epoch: Epoch(u64_at(entry, 24)?),
        position: Position(u64_at(entry, 32)?),
        previous: ChainHash(u64_at(entry, 40)?),
        now_ms: u64_at(entry, 48)?,
    })
}

fn header_checksum(header: &[u8], salt: u64) -> u32 {
    salted(salt, header.get(..HEADER_CRC_OFFSET).unwrap_or_default())
}

fn salted(salt: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(start(salt), bytes)
}

/// What a checksum starts from.
fn start(salt: u64) -> u32 {
    crc32c::crc32c(&salt.to_le_bytes())
}

fn hash(entry: &[u8], salt: u64) -> ChainHash {
    ChainHash(xxh3_64_with_seed(entry.get(..HEADER_BYTES).unwrap_or_default(), salt))
}

/// A verified entry: one committed batch.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub(crate) header: Header,
    pub(crate) records: &'a [u8],
    pub(crate) location: Location,
    pub(crate) hash: ChainHash,
}

impl<'a> Entry<'a> {
    /// Its number in the log.
    pub fn position(&self) -> Position {
        self.header.position
    }

    /// The epoch of the owner that wrote it.
    pub fn epoch(&self) -> Epoch {
        self.header.epoch
    }

    /// The owner's clock when it was submitted.
    pub fn now_ms(&self) -> u64 {
        self.header.now_ms
    }

    /// How many records it holds.
    pub fn count(&self) -> u32 {
        self.header.count
    }

    /// The hash its successor carries.
    pub fn chain(&self) -> ChainHash {
        self.hash
    }

    /// Its records in the order they were encoded, each verified.
    pub fn records(&self) -> Records<'a> {
        let header = u32::try_from(HEADER_BYTES).expect("the header is 64 bytes");
        Records { rest: self.records, next: self.location.plus(header), index: 0, count: self.header.count }
    }
}

/// The records of an entry, in order.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    next: Location,
    index: u32,
    count: u32,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, EntryError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            if self.index == self.count {
                return None;
            }
            let error = EntryError::Count { claimed: self.count, found: self.index };
            self.index = self.count;
            return Some(Err(error));
        }
        match record::decode(self.next, self.rest) {
            Ok((view, taken)) => {
                self.rest = self.rest.get(taken..).unwrap_or_default();
                self.next = self.next.plus(u32::try_from(taken).unwrap_or(u32::MAX));
                self.index = self.index.saturating_add(1);
                Some(Ok(view))
            }
            Err(error) => {
                let index = self.index;
                (self.rest, self.index) = (&[], self.count);
                Some(Err(EntryError::Record { index, error }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::Region;

    const SALT: u64 = 0x5a17;

    fn entry_with(payloads: &[&[u8]]) -> (Vec<u8>, Location) {
        let location = Location::new(Region::segment(1), 4096);
        let (mut records, mut checksum) = (Vec::new(), RecordsChecksum::default());
        for payload in payloads {
            let place = location.plus(u32::try_from(HEADER_BYTES + records.len()).unwrap());
            let start = records.len();
            let sum = record::encode(&mut records, place, 1, b"", &[payload]);
            let end = start + record::HEADER_BYTES + payload.len();
            checksum.take_in(&records[..end], start, sum);
        }
        checksum.catch_up(&records);
        let header = Header {
            flags: FLAG_LAST,
            length: u32::try_from(records.len()).unwrap(),
            shard: 2,
            count: u32::try_from(payloads.len()).unwrap(),
            epoch: Epoch(3),
            position: Position(4),
            previous: ChainHash(5),
            now_ms: 6,
        };
        let (header, _) = seal(&header, checksum, SALT);
        ([&header[..], &records].concat(), location)
    }

    #[test]
    fn an_entry_comes_back_with_its_records_and_their_places() {
        let (buffer, location) = entry_with(&[b"first", b"second"]);
        let entry = open(&buffer, location, SALT).unwrap();
        assert_eq!((entry.position(), entry.epoch(), entry.now_ms()), (Position(4), Epoch(3), 6));
        let records: Vec<_> = entry.records().map(Result::unwrap).collect();
        assert_eq!(
            records.iter().map(|record| record.payload).collect::<Vec<_>>(),
            [&b"first"[..], b"second"]
        );
        assert_eq!(records[0].location, location.plus(64));
        assert_eq!(records[1].location, location.plus(64 + 24));
    }

    #[test]
    fn long_and_short_records_in_any_order_make_an_entry_that_verifies() {
        let edge = LONG_BYTES - (record::HEADER_BYTES - record::SUMMED_FROM);
        let lengths = [0, edge - 1, edge, edge, 7, 3, edge + 1, 100_000, 5_003, 1];
        for first in 0..lengths.len() {
            for last in first..lengths.len() {
                let payloads: Vec<Vec<u8>> =
                    lengths[first..=last].iter().map(|length| vec![171; *length]).collect();
                let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
                let (buffer, location) = entry_with(&payloads);
                let entry = open(&buffer, location, SALT).unwrap();
                let found: Vec<_> = entry.records().map(|record| record.unwrap().payload).collect();
                assert_eq!(found, payloads, "records {first} to {last}");
            }
        }
    }

    #[test]
    fn an_entry_under_another_salt_does_not_verify() {
        let (buffer, location) = entry_with(&[b"payload"]);
        assert!(matches!(open(&buffer, location, SALT + 1), Err(EntryError::HeaderChecksum { .. })));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let (buffer, location) = entry_with(&[b"some payload"]);
        for bit in 0..buffer.len() * 8 {
            let mut flipped = buffer.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&flipped, location, SALT).is_err(), "bit {bit}");
        }
        for cut in 0..buffer.len() {
            assert!(open(&buffer[..cut], location, SALT).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn hashes_differ_between_entries_that_differ_only_in_a_payload() {
        let (left, location) = entry_with(&[b"a"]);
        let (right, _) = entry_with(&[b"b"]);
        let hash_of = |bytes: &[u8]| open(bytes, location, SALT).unwrap().chain();
        assert_ne!(hash_of(&left), hash_of(&right));
    }
}
