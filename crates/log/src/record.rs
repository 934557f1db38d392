//! Records: what a batch is made of and what a location points at.
//!
//! ```text
//! crc32c u32 | length u32 | fixed length u16 | kind u8 | flags u8 | fixed bytes | payload | pad to 8
//! ```
//!
//! The checksum is taken over the record's own location before its bytes, so a record read from
//! the wrong place, or left behind in a recycled segment, never verifies. It is checked on every
//! read, not only at start.

use crate::location::Location;
use crate::units::{on_disk, put, round_up, u16_at, u32_at};
use bytes::Bytes;

/// Bytes before a record's fixed part.
pub const HEADER_BYTES: usize = 12;
const LENGTH_OFFSET: usize = 4;
const FIXED_LENGTH_OFFSET: usize = 8;
const KIND_OFFSET: usize = 10;
/// Records start at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

/// Why bytes are not the record they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes end before the record does.
    #[error("record ends after {present} of {needed} bytes")]
    Short {
        /// Bytes there are.
        present: u64,
        /// Bytes the record says it has.
        needed: u64,
    },
    /// The fixed part is said to be longer than the record.
    #[error("record of {length} bytes claims {fixed} fixed bytes")]
    FixedTooLong {
        /// Bytes the record says it has after its header.
        length: u32,
        /// Bytes its fixed part is said to have.
        fixed: u16,
    },
    /// The checksum does not match the bytes.
    #[error("record checksum is {found:08x}, its bytes give {computed:08x}")]
    Checksum {
        /// As stored.
        found: u32,
        /// As computed.
        computed: u32,
    },
    /// Flags of a later version.
    #[error("record carries unknown flags {0:#04x}")]
    Flags(u8),
}

/// A record, borrowed from the batch it was read with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Where it lies.
    pub location: Location,
    /// What it is; the log does not know.
    pub kind: u8,
    /// The caller's fixed fields.
    pub fixed: &'a [u8],
    /// The caller's payload.
    pub payload: &'a [u8],
}

/// A record read from its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What it is; the log does not know.
    pub kind: u8,
    /// The caller's fixed fields.
    pub fixed: Bytes,
    /// The caller's payload.
    pub payload: Bytes,
}

/// The bytes a record of this size takes in a batch, padding included.
pub(crate) fn encoded_bytes(fixed: usize, payload: usize) -> usize {
    round_up(HEADER_BYTES.saturating_add(fixed).saturating_add(payload), ALIGNMENT)
}

/// A record's checksum, and what it was computed behind: that of its location.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum {
    pub(crate) place: u32,
    pub(crate) checksum: u32,
}

/// Where the bytes begin that a record's checksum is over.
pub(crate) const SUMMED_FROM: usize = 4;

/// Appends a record to `buffer`, where it will lie at `location`, and says its checksum.
///
/// The caller has checked the sizes against its limits; they fit their fields.
pub(crate) fn encode(
    buffer: &mut Vec<u8>,
    location: Location,
    kind: u8,
    fixed: &[u8],
    payload_parts: &[&[u8]],
) -> Sum {
    let start = buffer.len();
    begin(buffer, kind);
    buffer.extend_from_slice(fixed);
    for part in payload_parts {
        buffer.extend_from_slice(part);
    }
    finish(buffer, start, location, fixed.len())
}

/// Appends the header of a record whose bytes follow, to be [finished](finish) behind them.
pub(crate) fn begin(buffer: &mut Vec<u8>, kind: u8) {
    let mut header = [0; HEADER_BYTES];
    put(&mut header, KIND_OFFSET, &[kind]);
    buffer.extend_from_slice(&header);
}

/// Finishes the record that begins at `start` and ends with `buffer`, and says its checksum.
pub(crate) fn finish(buffer: &mut Vec<u8>, start: usize, location: Location, fixed_bytes: usize) -> Sum {
    let record = buffer.get_mut(start..).expect("the record was begun here");
    let length = record.len().saturating_sub(HEADER_BYTES);
    let length = u32::try_from(length).expect("the batch limits records to far below 4 GiB");
    let fixed_length = u16::try_from(fixed_bytes).expect("the batch limits fixed parts to 64 KiB");
    put(record, LENGTH_OFFSET, &length.to_le_bytes());
    put(record, FIXED_LENGTH_OFFSET, &fixed_length.to_le_bytes());
    let sum = sum(location, record);
    put(record, 0, &sum.checksum.to_le_bytes());
    buffer.resize(round_up(buffer.len(), ALIGNMENT), 0);
    sum
}

/// The length of a record after its header, as its header says.
pub(crate) fn claimed_length(header: &[u8]) -> Option<u32> {
    u32_at(header, 4)
}

/// Reads the record at the start of `bytes`, which lies at `location`, and verifies it.
/// Returns the bytes it takes, padding included.
pub(crate) fn decode(location: Location, bytes: &[u8]) -> Result<(RecordView<'_>, usize), RecordError> {
    let short = |needed: usize| RecordError::Short { present: on_disk(bytes.len()), needed: on_disk(needed) };
    let header = bytes.get(..HEADER_BYTES).ok_or(short(HEADER_BYTES))?;
    let (Some(found), Some(length), Some(fixed), &[.., kind, flags]) =
        (u32_at(header, 0), u32_at(header, 4), u16_at(header, 8), header)
    else {
        return Err(short(HEADER_BYTES));
    };
    let end = usize::try_from(length).map_or(usize::MAX, |length| HEADER_BYTES.saturating_add(length));
    let record = bytes.get(..end).ok_or(short(end))?;
    let computed = sum(location, record).checksum;
    if found != computed {
        return Err(RecordError::Checksum { found, computed });
    }
    if flags != 0 {
        return Err(RecordError::Flags(flags));
    }
    let data = record.get(HEADER_BYTES..).unwrap_or_default();
    let (fixed_part, payload) =
        data.split_at_checked(usize::from(fixed)).ok_or(RecordError::FixedTooLong { length, fixed })?;
    Ok((RecordView { location, kind, fixed: fixed_part, payload }, round_up(end, ALIGNMENT)))
}

fn sum(location: Location, record: &[u8]) -> Sum {
    let place = crc32c::crc32c(&location.raw().to_le_bytes());
    let checksum = crc32c::crc32c_append(place, record.get(SUMMED_FROM..).unwrap_or_default());
    Sum { place, checksum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::Region;

    fn at(offset: u32) -> Location {
        Location::new(Region::segment(3), offset)
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let cases: [(&[u8], &[&[u8]]); 4] =
            [(b"", &[]), (b"fixed", &[]), (b"", &[b"one ", b"payload"]), (b"12345678", &[b"x"])];
        for (fixed, parts) in cases {
            let mut buffer = Vec::new();
            encode(&mut buffer, at(64), 9, fixed, parts);
            let (record, taken) = decode(at(64), &buffer).unwrap();
            assert_eq!((record.kind, record.fixed, record.payload), (9, fixed, parts.concat().as_slice()));
            assert_eq!(taken, buffer.len());
            assert_eq!(taken, encoded_bytes(fixed.len(), parts.concat().len()));
        }
    }

    #[test]
    fn a_record_read_from_another_place_does_not_verify() {
        let mut buffer = Vec::new();
        encode(&mut buffer, at(64), 1, b"a", &[b"b"]);
        assert!(matches!(decode(at(72), &buffer), Err(RecordError::Checksum { .. })));
        let next_segment = Location::new(Region::segment(4), 64);
        assert!(matches!(decode(next_segment, &buffer), Err(RecordError::Checksum { .. })));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let mut buffer = Vec::new();
        encode(&mut buffer, at(8), 1, b"fix", &[b"payload"]);
        let used = HEADER_BYTES + 3 + 7;
        for bit in 0..used * 8 {
            let mut flipped = buffer.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(at(8), &flipped).is_err(), "bit {bit}");
        }
        for cut in 0..used {
            assert!(decode(at(8), &buffer[..cut]).is_err(), "cut at {cut}");
        }
    }
}
