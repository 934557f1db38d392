//! Reading choices from bytes. At the end every choice is the first one.

/// Bytes to choose by.
#[derive(Debug)]
pub(super) struct Bytes<'a> {
    left: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(super) fn new(left: &'a [u8]) -> Bytes<'a> {
        Bytes { left }
    }

    pub(super) fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        match self.left.split_first() {
            Some((first, rest)) => {
                self.left = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()).checked_rem(bound).unwrap_or(0)
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times.saturating_sub(1)
    }

    /// One of the choices.
    pub(super) fn pick<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        let index = self.below(choices.len());
        choices.get(index).cloned()
    }
}
