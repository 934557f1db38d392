//! The dead-letter workbench: group, replay, purge; and other work on waiting messages by hand.
//!
//! Replay and purge can take long, so they answer with lines that say how far they have come. Each message
//! is moved or deleted by one decision of the broker: closing the connection stops the work between two
//! messages and loses nothing.

pub(super) mod groups;
pub(super) mod progress;
pub(super) mod purge;
pub(super) mod replay;
pub(super) mod reprioritise;
pub(super) mod selection;
