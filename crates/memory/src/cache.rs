//! Telling the processor what will be needed soon.
//!
//! A message's bytes are written by one thread and read by another some milliseconds later, so that they are in no cache
//! near it: the first look at each waits for memory. Who works through many of them says a little ahead which come next,
//! and finds them there.

/// What a cache has as a whole, or has not.
const LINE_BYTES: usize = 64;
/// The most bytes asked for. Behind them the processor has noticed by itself what is being read.
const FETCHED_BYTES_MAX: usize = 2 << 10;

/// Has the beginning of `bytes` brought into the cache, without waiting for it. Nothing is different without, but slower.
#[inline]
pub fn fetch(bytes: &[u8]) {
    for byte in in_each_line(bytes) {
        processor::fetch(byte);
    }
}

/// A byte in every line that the beginning of `bytes` lies in. Bytes seldom begin where a line does: so they end in one more
/// than they would fill, and copying them begins at both ends.
#[inline]
fn in_each_line(bytes: &[u8]) -> impl Iterator<Item = &u8> {
    let fetched = bytes.get(..FETCHED_BYTES_MAX).unwrap_or(bytes);
    fetched.iter().step_by(LINE_BYTES).chain(fetched.last())
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod processor {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    #[inline]
    #[allow(unsafe_code, reason = "the instruction takes an address; see the note")]
    pub(super) fn fetch(byte: &u8) {
        // SAFETY: every processor of this kind has the instruction. It is a hint: it changes nothing that a program could
        // see and never faults, and the address is that of a byte that is borrowed here.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod processor {
    #[inline]
    pub(super) fn fetch(_byte: &u8) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The lines that these bytes lie in.
    fn lines<'a>(bytes: impl Iterator<Item = &'a u8>) -> BTreeSet<usize> {
        bytes.map(|byte| std::ptr::from_ref(byte).addr() / LINE_BYTES).collect()
    }

    #[test]
    fn every_line_of_the_beginning_is_asked_for_and_no_other_wherever_it_begins() {
        let memory = vec![0; 3 * FETCHED_BYTES_MAX];
        for length in [0, 1, 63, 64, 65, 1_084, FETCHED_BYTES_MAX, FETCHED_BYTES_MAX + 1] {
            for start in 0..LINE_BYTES {
                let bytes = &memory[start..start + length];
                fetch(bytes);
                let beginning = bytes.iter().take(FETCHED_BYTES_MAX);
                assert_eq!(lines(in_each_line(bytes)), lines(beginning), "{length} bytes from {start}");
            }
        }
    }
}
