//! Between the words of the API and those of the engine.
//!
//! Pure functions. What comes in is checked field by field, and every mistake is noted with its place;
//! what the engine checks for itself (bounds of properties, forward targets) is left to it.

pub(super) mod explanation;
pub(super) mod filter;
pub(super) mod live;
pub(super) mod message;
pub(super) mod outgoing;
pub(super) mod properties;
pub(super) mod value;
