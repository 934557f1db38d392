//! AMQP 1.0 as values, frames, message sections and state machines; no sockets, no clock, no threads.
//!
//! The crate has two halves. The *codec* turns bytes into typed frames and message sections and back:
//! [`value`], [`performative`], [`frame`], [`message`]. The *engine* in [`connection`] keeps connections, sessions,
//! links and credit on top of it. Neither knows what a queue is.
//!
//! What must stay true of the codec:
//!
//! - **Nothing is copied on the way in.** Text, binaries, compound values and payloads are slices of the read
//!   buffer, kept alive by its reference count. A claim on the wire (a count, a size) never sizes an allocation.
//! - **Liberal in, exact out.** Readers accept every legal encoding and the deviations real clients show: text
//!   keys where symbols belong, any integer width, symbolic descriptors, shortened field lists. Writers produce
//!   the one form every client is known to read: `00 53 xx` descriptors and complete field lists.
//! - **Every input ends in a value or a typed error**, within a [`budget::Budget`] that belongs to the frame.

pub mod budget;
pub mod connection;
mod constructor;
pub mod decode;
pub mod descriptor;
pub mod encode;
pub mod error;
pub mod frame;
pub mod fuzzing;
pub mod message;
pub mod performative;
pub mod protocol_header;
pub mod sasl_plain;
pub mod text;
pub mod ticks;
pub mod uuid;
pub mod value;

pub use error::DecodeError;
pub use frame::{Frame, FrameBody, SaslFrame};
pub use message::Message;
pub use text::{Symbol, Text};
pub use uuid::Uuid;
pub use value::{Array, Described, List, Map, Timestamp, Value};
