//! How claims lie in a file: frames with checksums, one per write.
//!
//! ```text
//! file   = magic (8) frame*
//! frame  = length u32 | crc of payload u32 | crc of those eight bytes u32 | payload
//! payload = record*
//! record = kind u8 | expires, ms since 1970 u64 | key length u16 | result length u32 | key | result
//! ```
//!
//! All numbers are big-endian, checksums CRC-32C. One write is one frame, so a torn write is a broken frame at
//! the end of the file and is cut. A broken frame with anything behind it is damage, and is named.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// What a file begins with.
pub(super) const MAGIC: &[u8; 8] = b"VRGONCE1";
pub(super) const HEAD_BYTES: usize = 12;
const RECORD_BYTES: usize = 15;
/// The largest frame anybody writes.
pub(super) const FRAME_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// One thing that happened to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    /// It was claimed.
    Claimed { key: Box<str>, expires: u64 },
    /// Its effect happened.
    Done { key: Box<str>, expires: u64, result: Bytes },
    /// Its claim was given back.
    Released { key: Box<str> },
}

/// What a part of a file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A frame with its records, and how many bytes it takes.
    Frame { records: Vec<Record>, bytes: usize },
    /// Nothing more.
    End,
    /// A write that did not get done: to be cut.
    Torn,
    /// Damage.
    Damaged(&'static str),
}

impl Record {
    /// How many bytes it takes in a frame.
    pub(super) fn size(&self) -> usize {
        let (key, result) = match self {
            Record::Claimed { key, .. } | Record::Released { key } => (key, 0),
            Record::Done { key, result, .. } => (key, result.len()),
        };
        RECORD_BYTES + key.len() + result
    }

    fn put(&self, out: &mut BytesMut) {
        let (kind, key, expires, result) = match self {
            Record::Claimed { key, expires } => (1, key, *expires, &[][..]),
            Record::Done { key, expires, result } => (2, key, *expires, &result[..]),
            Record::Released { key } => (3, key, 0, &[][..]),
        };
        out.put_u8(kind);
        out.put_u64(expires);
        out.put_u16(u16::try_from(key.len()).expect("keys are bounded"));
        out.put_u32(u32::try_from(result.len()).expect("results are bounded"));
        out.put_slice(key.as_bytes());
        out.put_slice(result);
    }

    fn take(payload: &mut Bytes) -> Option<Record> {
        let kind = payload.try_get_u8().ok()?;
        let expires = payload.try_get_u64().ok()?;
        let key_bytes = usize::from(payload.try_get_u16().ok()?);
        let result_bytes = usize::try_from(payload.try_get_u32().ok()?).ok()?;
        if payload.len() < key_bytes.checked_add(result_bytes)? {
            return None;
        }
        let key = Box::from(std::str::from_utf8(&payload.split_to(key_bytes)).ok()?);
        let result = payload.split_to(result_bytes);
        match kind {
            1 => Some(Record::Claimed { key, expires }),
            2 => Some(Record::Done { key, expires, result }),
            3 => Some(Record::Released { key }),
            _ => None,
        }
    }
}

/// Appends one frame with all `records`.
pub(super) fn put(out: &mut BytesMut, records: &[Record]) {
    let mut payload = BytesMut::with_capacity(records.iter().map(Record::size).sum());
    for record in records {
        record.put(&mut payload);
    }
    let mut head = BytesMut::with_capacity(HEAD_BYTES);
    head.put_u32(u32::try_from(payload.len()).expect("frames are bounded"));
    head.put_u32(crc32c::crc32c(&payload));
    let check = crc32c::crc32c(&head);
    head.put_u32(check);
    out.extend_from_slice(&head);
    out.extend_from_slice(&payload);
}

/// Reads the frame at the beginning of `rest`, which reaches to the end of the file.
pub(super) fn read(rest: &Bytes) -> Read {
    if rest.is_empty() {
        return Read::End;
    }
    let mut head = rest.clone();
    let (Ok(length), Ok(sum), Ok(check)) = (head.try_get_u32(), head.try_get_u32(), head.try_get_u32())
    else {
        return Read::Torn;
    };
    if crc32c::crc32c(rest.get(..8).unwrap_or_default()) != check {
        // A file that grew before its bytes came is zeros.
        let zeros = rest.iter().all(|byte| *byte == 0);
        return if zeros {
            Read::Torn
        } else {
            Read::Damaged("the head of a frame does not match its checksum")
        };
    }
    let Ok(length) = usize::try_from(length) else {
        return Read::Damaged("a frame is larger than any can be");
    };
    if length > FRAME_BYTES_MAX {
        return Read::Damaged("a frame is larger than any can be");
    }
    if head.len() < length {
        return Read::Torn;
    }
    let last = head.len() == length;
    let mut payload = head.split_to(length);
    if crc32c::crc32c(&payload) != sum {
        return if last { Read::Torn } else { Read::Damaged("a frame does not match its checksum") };
    }
    let mut records = Vec::new();
    while !payload.is_empty() {
        match Record::take(&mut payload) {
            Some(record) => records.push(record),
            None => return Read::Damaged("a frame holds something unknown"),
        }
    }
    Read::Frame { records, bytes: HEAD_BYTES + length }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        vec![
            Record::Claimed { key: "a".into(), expires: 7 },
            Record::Done { key: "a".into(), expires: 8, result: Bytes::from_static(b"paid") },
            Record::Released { key: "b".into() },
        ]
    }

    fn frame() -> BytesMut {
        let mut bytes = BytesMut::new();
        put(&mut bytes, &records());
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let frame = frame();
        let bytes = frame.len();
        assert_eq!(read(&frame.freeze()), Read::Frame { records: records(), bytes });
        assert_eq!(read(&Bytes::new()), Read::End);
    }

    #[test]
    fn a_write_torn_at_any_byte_is_cut_and_never_read_as_something_else() {
        let whole = frame().freeze();
        for cut in 1..whole.len() {
            assert_eq!(read(&whole.slice(..cut)), Read::Torn, "cut at {cut}");
            let mut zeros = BytesMut::from(&whole[..cut]);
            zeros.resize(whole.len(), 0);
            let outcome = read(&zeros.freeze());
            assert!(!matches!(outcome, Read::End), "zeros from {cut}: {outcome:?}");
            if let Read::Frame { records: found, .. } = outcome {
                assert_eq!(found, records(), "zeros from {cut}");
            }
        }
        assert_eq!(read(&Bytes::from(vec![0; 40])), Read::Torn);
    }

    #[test]
    fn a_flipped_bit_before_the_end_is_damage() {
        let whole = frame();
        for byte in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[byte] ^= 0x10;
            bytes.extend_from_slice(&whole);
            let outcome = read(&bytes.freeze());
            assert!(matches!(outcome, Read::Damaged(_)), "byte {byte}: {outcome:?}");
        }
    }
}
