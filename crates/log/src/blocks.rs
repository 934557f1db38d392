//! Entries as whole blocks, at addresses from which a device can fetch them itself.
//!
//! A write past the system's cache takes whole blocks whose addresses are multiples of a block. Records are encoded
//! into a buffer that begins as far behind such an address as an entry's header is long, so that all blocks of an entry
//! but the first and the last go out from where they are. Those two, with the header and the padding, are put together
//! here.

use crate::entry::{BLOCK_BYTES, HEADER_BYTES};
use crate::units::put;

/// What the first block of an entry holds beside its header.
const FIRST_BYTES: usize = BLOCK_BYTES - HEADER_BYTES;

/// A buffer in which records of so many bytes have room without moving.
pub(crate) fn buffer(bytes: usize) -> Vec<u8> {
    Vec::with_capacity(bytes.saturating_add(BLOCK_BYTES + HEADER_BYTES))
}

/// Where in a buffer the first record belongs.
pub(crate) fn lead(buffer: &Vec<u8>) -> usize {
    // One without room for two blocks will move when it grows.
    if buffer.capacity() < 2 * BLOCK_BYTES { 0 } else { to_block(buffer).saturating_add(HEADER_BYTES) }
}

/// How far it is to the next address that is a multiple of a block.
fn to_block(bytes: &[u8]) -> usize {
    bytes.as_ptr().align_offset(BLOCK_BYTES)
}

/// Room for the first and the last block of an entry.
#[derive(Debug)]
pub(crate) struct Ends(Vec<u8>);

impl Ends {
    pub(crate) fn new() -> Self {
        Self(vec![0; 3 * BLOCK_BYTES])
    }

    /// An entry as whole blocks. `None` if its records do not lie where they should.
    pub(crate) fn lay_out<'a>(
        &'a mut self,
        header: &[u8; HEADER_BYTES],
        records: &'a [u8],
    ) -> Option<[&'a [u8]; 3]> {
        let start = to_block(&self.0);
        let (first, rest) = self.0.get_mut(start..)?.split_first_chunk_mut::<BLOCK_BYTES>()?;
        let last = rest.first_chunk_mut::<BLOCK_BYTES>()?;
        let (beginning, records) = records.split_at(records.len().min(FIRST_BYTES));
        let whole = records.len() - records.len() % BLOCK_BYTES;
        let (middle, end) = records.split_at(whole);
        if !middle.is_empty() && to_block(middle) != 0 {
            return None;
        }
        first.fill(0);
        put(first, 0, header);
        put(first, HEADER_BYTES, beginning);
        last.fill(0);
        put(last, 0, end);
        Some([first, middle, if end.is_empty() { &[] } else { last }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::round_up;

    #[test]
    fn an_entry_of_any_length_is_whole_blocks_at_whole_addresses() {
        let header = [7; HEADER_BYTES];
        let mut ends = Ends::new();
        for bytes in [0, 1, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 1, 8_128, 8_129, 100_000] {
            let mut records = buffer(bytes);
            let lead = lead(&records);
            records.resize(lead, 1);
            records.extend((0..bytes).map(|place| u8::try_from(place % 251).unwrap()));
            let parts = ends.lay_out(&header, &records[lead..]).unwrap();
            for part in parts.iter().filter(|part| !part.is_empty()) {
                assert_eq!((to_block(part), part.len() % BLOCK_BYTES), (0, 0), "{bytes}");
            }
            let mut expected = [&header, &records[lead..]].concat();
            expected.resize(round_up(expected.len(), BLOCK_BYTES), 0);
            assert!(parts.concat() == expected, "{bytes}");
        }
    }

    #[test]
    fn records_that_lie_elsewhere_are_not_whole_blocks() {
        let records = vec![1; 100_001];
        let elsewhere = usize::from(to_block(&records[FIRST_BYTES..]) == 0);
        assert!(Ends::new().lay_out(&[7; HEADER_BYTES], &records[elsewhere..]).is_none());
    }
}
