//! Snapshots: the state at one instant, written down by somebody else while it goes on.
//!
//! Freezing copies page pointers and what is small; the first write to a page after that copies the
//! page. The frozen state turns itself into a list of facts, so that restoring is applying, and so that
//! there is one set of bytes to keep readable for ever. Indexes, lists and timers are not written: they
//! follow from what is.

mod frozen;
mod restore;
#[cfg(test)]
mod tests;

pub use frozen::FrozenState;
