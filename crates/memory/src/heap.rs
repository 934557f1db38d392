//! How much memory the allocator keeps for itself, and how it gives that back to the system.
//!
//! The GNU allocator learns from what is freed: once a buffer of eight megabytes was, it keeps twice as much at the end
//! of each of its heaps, of which every thread may have one. After a burst of work that is tens of megabytes that nobody
//! uses. [`keep_little`] fixes the limits, and [`give_back`] returns what lies between things that are still in use.
//!
//! With another allocator both do nothing. The allocator has no other door than foreign functions; everything it is told
//! is a number.

/// Bytes kept at the end of a heap before they are given back: some buffers of connections, which come and go. To give memory
/// back, every processor is told to forget where it was, and to get it again is a page fault for every four kilobytes.
const KEPT_BYTES: i32 = 2 << 20;
/// From so many bytes on, memory is asked of the system for each use and given back after it. More than a buffer of a
/// connection, which would be paid for with a page fault for every four kilobytes.
const APART_BYTES: i32 = 1 << 20;

/// Lets the allocator keep little of what is freed. To be said once, before there are threads.
pub fn keep_little() {
    system::set(system::TRIM_THRESHOLD, KEPT_BYTES);
    system::set(system::MMAP_THRESHOLD, APART_BYTES);
}

/// Gives back to the system what was freed and is still kept. Takes a millisecond for some megabytes, in which other threads
/// may have to wait for memory.
pub fn give_back() {
    system::trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
mod system {
    use std::ffi::c_int;

    // From <malloc.h>.
    pub(crate) const TRIM_THRESHOLD: c_int = -1;
    pub(crate) const MMAP_THRESHOLD: c_int = -3;

    pub(crate) fn set(parameter: c_int, value: c_int) {
        // It refuses what it does not know, and goes on as before.
        let _ = mallopt(parameter, value);
    }

    pub(crate) fn trim() {
        // Whether there was anything to give back does not matter.
        let _ = malloc_trim(0);
    }

    // SAFETY: both are declared as the C library declares them, take plain numbers, may be called at any time from any
    // thread, and touch no memory that is in use.
    #[allow(unsafe_code, reason = "the allocator's own functions; see the note above")]
    unsafe extern "C" {
        safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
        safe fn malloc_trim(pad: usize) -> c_int;
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
mod system {
    pub(crate) const TRIM_THRESHOLD: i32 = 0;
    pub(crate) const MMAP_THRESHOLD: i32 = 0;

    pub(crate) fn set(_parameter: i32, _value: i32) {}

    pub(crate) fn trim() {}
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Bytes of this process that are in memory.
    fn resident() -> u64 {
        let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
    }

    #[test]
    fn what_was_freed_between_things_in_use_is_given_back() {
        keep_little();
        let mut blocks: Vec<Option<Vec<u8>>> = (0..4_000).map(|_| Some(vec![7; 16 << 10])).collect();
        let full = resident();
        for (number, block) in blocks.iter_mut().enumerate() {
            if number % 100 != 99 {
                *block = None;
            }
        }
        give_back();
        let left = resident();
        assert!(full - left > 40 << 20, "{left} of {full} bytes are still there");
        assert!(blocks.iter().flatten().all(|block| block.iter().all(|byte| *byte == 7)));
    }
}
