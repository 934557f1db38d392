//! What evaluation needs beside the message: fresh ids and a bound on its work.

use std::fmt;

use crate::error::FilterError;

/// Steps one evaluation may take unless set otherwise.
///
/// A step is one node of the expression, one byte looked at by LIKE or copied by `+`, or up to 64
/// bytes compared. The longest filter has about a thousand nodes and the properties of a message
/// are at most 64 KiB, so honest rules stay far below; at the limit evaluation ends with
/// [`FilterError::Budget`] after about a millisecond.
pub const STEPS_MAX: u32 = 1_000_000;

/// Passed to every evaluation. Reused from message to message.
pub struct Environment<'e> {
    new_id: &'e mut dyn FnMut() -> u128,
    steps_max: u32,
    steps_left: u32,
    /// By the evaluations before this one.
    steps_before: u64,
}

impl<'e> Environment<'e> {
    /// An environment whose `newid()` takes its GUIDs from `new_id`, so that evaluation itself is
    /// deterministic.
    pub fn new(new_id: &'e mut dyn FnMut() -> u128) -> Self {
        Self { new_id, steps_max: STEPS_MAX, steps_left: STEPS_MAX, steps_before: 0 }
    }

    /// Sets how many steps each evaluation may take.
    #[must_use]
    pub fn with_steps_max(mut self, steps_max: u32) -> Self {
        self.steps_max = steps_max;
        self.steps_left = steps_max;
        self
    }

    /// Steps taken by all evaluations so far.
    pub fn steps_taken(&self) -> u64 {
        self.steps_before.saturating_add(u64::from(self.steps_max - self.steps_left))
    }

    /// Starts an evaluation with a full budget: one rule's cost is never another one's error.
    pub(crate) fn begin(&mut self) {
        self.steps_before = self.steps_taken();
        self.steps_left = self.steps_max;
    }

    pub(crate) fn charge(&mut self, steps: usize) -> Result<(), FilterError> {
        if let Some(left) = u32::try_from(steps).ok().and_then(|steps| self.steps_left.checked_sub(steps)) {
            self.steps_left = left;
            return Ok(());
        }
        self.steps_left = 0;
        Err(FilterError::Budget { limit: self.steps_max })
    }

    pub(crate) fn new_id(&mut self) -> u128 {
        (self.new_id)()
    }
}

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Environment")
            .field("steps_max", &self.steps_max)
            .field("steps_left", &self.steps_left)
            .field("steps_taken", &self.steps_taken())
            .finish_non_exhaustive()
    }
}
