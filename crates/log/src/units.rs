//! Conversions between the sizes memory uses and the sizes files use.
//!
//! The log runs on 64-bit machines; both directions are total there, and saying so once keeps
//! unchecked casts out of everything else.

/// A size in memory as a size on disk.
pub(crate) fn on_disk(bytes: usize) -> u64 {
    u64::try_from(bytes).expect("a memory size fits 64 bits")
}

/// A size on disk as a size in memory.
pub(crate) fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a file range being held in memory fits the address space")
}

/// `bytes` rounded up to a multiple of `step`, a power of two.
pub(crate) fn round_up(bytes: usize, step: usize) -> usize {
    bytes.saturating_add(step - 1) & !(step - 1)
}

/// A little-endian `u16` at `offset`, if the bytes reach that far.
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// A little-endian `u32` at `offset`, if the bytes reach that far.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// A little-endian `u64` at `offset`, if the bytes reach that far.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Writes `field` over the bytes at `offset`.
///
/// Callers lay out fixed headers whose length they own, so running over the end is a bug.
pub(crate) fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes
        .get_mut(offset..offset + field.len())
        .expect("a header field lies inside its header")
        .copy_from_slice(field);
}
