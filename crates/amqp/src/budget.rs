//! How much work and memory one piece of input may cause.
//!
//! A budget belongs to the *frame* (or message) and not to one value in it, so that many small values cannot add
//! up to what one large value may not do. It is charged before anything is done for the items it counts.
//!
//! There is no count of allocated bytes because decoding allocates nothing that grows with the input: compound
//! values stay slices of the read buffer.

use crate::error::DecodeError;

/// The deepest nesting of described, list, map and array values that is read.
///
/// The deepest legal structure in practice is a filter or an error info inside an attach, below ten levels.
pub const DEPTH_MAX: u8 = 32;

/// Items allowed beyond one per input byte, so that short frames may hold arrays of zero-width items.
const ITEMS_ALLOWANCE: u32 = 1024;

/// What is left of the items and levels that one frame may use.
///
/// Every item outside an array takes at least one byte, so honest input never has more items than bytes. Items of
/// an array can be zero bytes wide; without a bound, ten bytes could ask for four billion of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    items_left: u32,
    depth_left: u8,
}

impl Budget {
    /// The budget of an input of `length` bytes.
    #[inline]
    pub fn for_input(length: usize) -> Self {
        let items = u32::try_from(length).unwrap_or(u32::MAX).saturating_add(ITEMS_ALLOWANCE);
        Self { items_left: items, depth_left: DEPTH_MAX }
    }

    /// The budget for looking again at what was checked and paid for.
    pub(crate) fn of_checked() -> Self {
        Self { items_left: u32::MAX, depth_left: DEPTH_MAX }
    }

    /// Items that may still be read.
    pub fn items_left(&self) -> u32 {
        self.items_left
    }

    /// Takes `claimed` items, or refuses all of them.
    #[inline]
    pub(crate) fn charge(&mut self, claimed: u32) -> Result<(), DecodeError> {
        let allowed = self.items_left;
        match self.try_charge(claimed) {
            Some(()) => Ok(()),
            None => Err(DecodeError::TooManyItems { claimed, allowed }),
        }
    }

    /// Takes `claimed` items, or none.
    #[inline]
    pub(crate) fn try_charge(&mut self, claimed: u32) -> Option<()> {
        self.items_left = self.items_left.checked_sub(claimed)?;
        Some(())
    }

    /// Goes one level down if there is one.
    #[inline]
    pub(crate) fn try_descend(&mut self) -> Option<()> {
        self.depth_left = self.depth_left.checked_sub(1)?;
        Some(())
    }

    /// Goes one level down; undone by [`Budget::ascend`].
    #[inline]
    pub(crate) fn descend(&mut self) -> Result<(), DecodeError> {
        match self.try_descend() {
            Some(()) => Ok(()),
            None => Err(DecodeError::TooDeep { limit: DEPTH_MAX }),
        }
    }

    /// Comes back from a level that was entered with [`Budget::descend`].
    #[inline]
    pub(crate) fn ascend(&mut self) {
        self.depth_left = self.depth_left.saturating_add(1).min(DEPTH_MAX);
    }

    /// Comes back to the level at which `earlier` was taken.
    pub(crate) fn restore_depth(&mut self, earlier: &Self) {
        self.depth_left = earlier.depth_left;
    }
}
