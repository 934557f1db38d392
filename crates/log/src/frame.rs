//! The block that names a file: first in a segment, a snapshot and an extent, last in an extent too.
//!
//! All have the same beginning (magic, version, number, shard) and a checksum over the whole block, taken
//! with zero in its own place; where that place is differs.

use crate::units::{put, u16_at, u32_at};

/// Bytes of a naming block.
pub(crate) const FRAME_BYTES: usize = 4096;

/// A block that begins so, with zeros after it.
pub(crate) fn begin(magic: u32, version: u16, number: u32, shard: u32) -> Vec<u8> {
    let mut block = vec![0; FRAME_BYTES];
    put(&mut block, 0, &magic.to_le_bytes());
    put(&mut block, 4, &version.to_le_bytes());
    put(&mut block, 8, &number.to_le_bytes());
    put(&mut block, 12, &shard.to_le_bytes());
    block
}

/// Puts the checksum of the whole block at `place`.
pub(crate) fn seal(block: &mut [u8], place: usize) {
    let checksum = checksum(block, place);
    put(block, place, &checksum.to_le_bytes());
}

/// Checks that a block is whole, of this kind and version. `what` is the kind, for people.
pub(crate) fn check(block: &[u8], magic: u32, version: u16, place: usize, what: &str) -> Result<(), String> {
    if u32_at(block, 0) != Some(magic) {
        return Err(format!("this is not the {what}"));
    }
    if block.len() != FRAME_BYTES {
        return Err(format!("the {what} has {} of {FRAME_BYTES} bytes", block.len()));
    }
    let (found, computed) = (u32_at(block, place).unwrap_or_default(), checksum(block, place));
    if found != computed {
        return Err(format!("the checksum of the {what} is {found:08x}, its bytes give {computed:08x}"));
    }
    match u16_at(block, 4) {
        Some(found) if found == version => Ok(()),
        found => Err(format!("version {found:?} is not one of those this release reads ({version})")),
    }
}

fn checksum(block: &[u8], place: usize) -> u32 {
    let mut zeroed = block.to_vec();
    put(&mut zeroed, place, &[0; 4]);
    crc32c::crc32c(&zeroed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: u32 = u32::from_le_bytes(*b"Test");

    #[test]
    fn every_changed_bit_and_every_other_length_is_named() {
        let mut block = begin(MAGIC, 3, 7, 1);
        seal(&mut block, 60);
        assert_eq!(check(&block, MAGIC, 3, 60, "test"), Ok(()));
        for place in 0..FRAME_BYTES {
            let mut bad = block.clone();
            bad[place] ^= 1;
            assert!(check(&bad, MAGIC, 3, 60, "test").is_err(), "byte {place}");
        }
        for length in [0, 3, 64, FRAME_BYTES - 1] {
            assert!(check(&block[..length], MAGIC, 3, 60, "test").is_err(), "{length} bytes");
        }
        let newer = check(&block, MAGIC, 2, 60, "test").unwrap_err();
        assert!(newer.contains("version"), "{newer}");
    }
}
