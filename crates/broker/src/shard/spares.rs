//! Buffers that go round between threads instead of being made by one and freed by another.
//!
//! What the system's allocator is given back by another thread than it gave it to costs both of them a lock. A buffer of
//! many events is large enough for that to be noticed, and would grow anew each time.

use std::sync::{Mutex, PoisonError};

/// Buffers kept; further ones are freed.
const COUNT_MAX: usize = 16;
/// Bytes of a buffer that is kept; a larger one is freed. Room for what a client with a credit of a thousand is told at once:
/// one that had to grow to it each time would be copied as often.
const BYTES_MAX: usize = 512 * 1024;

/// Empty buffers to be filled.
#[derive(Debug)]
pub(super) struct Spares<T>(Mutex<Vec<Vec<T>>>);

impl<T> Default for Spares<T> {
    fn default() -> Self {
        Spares(Mutex::new(Vec::with_capacity(COUNT_MAX)))
    }
}

impl<T> Spares<T> {
    /// An empty buffer, used before if there is one.
    pub(super) fn take(&self) -> Vec<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Frees all that are kept.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes a buffer that is no longer needed.
    pub(super) fn give(&self, mut buffer: Vec<T>) {
        buffer.clear();
        let bytes = buffer.capacity().saturating_mul(size_of::<T>());
        if bytes == 0 || bytes > BYTES_MAX {
            return;
        }
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spares.len() < COUNT_MAX {
            spares.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty_unless_it_is_too_large_or_there_are_enough() {
        let spares = Spares::<u64>::default();
        assert_eq!(spares.take().capacity(), 0);
        let cases = [
            ("none", 0, 0),
            ("small", 10, 10),
            ("at the bound", BYTES_MAX / 8, BYTES_MAX / 8),
            ("beyond", BYTES_MAX / 8 + 1, 0),
        ];
        for (case, capacity, kept) in cases {
            let mut buffer = Vec::with_capacity(capacity);
            buffer.extend((capacity > 0).then_some(7));
            spares.give(buffer);
            let again = spares.take();
            assert_eq!((again.len(), again.capacity()), (0, kept), "{case}");
        }
        for _ in 0..=COUNT_MAX {
            spares.give(Vec::with_capacity(1));
        }
        assert_eq!(spares.0.lock().unwrap().len(), COUNT_MAX);
        spares.clear();
        assert_eq!(spares.take().capacity(), 0);
    }
}
