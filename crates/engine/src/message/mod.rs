//! Messages as the engine handles them: coming in, changed on the way, and going out.
//!
//! The payload is bytes that are stored once and never changed. What happens to a message in its life
//! (properties changed by an abandon, a dead-letter reason, a rule's action) is an [`Overlay`] beside
//! it, which the front lays over the payload when it writes a delivery.

mod delivery;
mod incoming;
mod overlay;

pub use delivery::{Delivery, MessageState};
pub use incoming::{Content, Incoming, OUTLINE_WORDS, Outline, Show};
pub use overlay::{Overlay, PropertyChange, PropertyValue};
