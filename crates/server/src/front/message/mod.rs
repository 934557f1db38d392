//! Messages between the wire and the engine.
//!
//! Coming in, the few things the engine needs are taken out of the payload, and the payload is kept
//! as it came. Going out, header and annotations are written anew and the rest follows as one slice.
//! The body is never looked at in either direction.

pub(crate) mod annotation;
mod content;
mod incoming;
mod outgoing;
mod plain;
mod value;

pub(crate) use annotation::OWNED as OWNED_ANNOTATIONS;
pub use content::StoredMessages;
pub(crate) use incoming::id_text;
pub use incoming::{Error as IncomingError, read as read_incoming};
pub use outgoing::{EncodedValue, Purpose, write as write_outgoing, write_stored, write_without_body};
pub use value::{encoded_value, to_filter};
