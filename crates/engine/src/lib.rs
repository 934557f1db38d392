//! The deterministic heart of the broker: one namespace, and every decision about it.
//!
//! `decide` looks and says what should happen; `apply` makes it so.
//! There is no clock, file, socket, thread or random number in here: time is an argument, and the
//! same commands at the same times give the same facts, live and after a restart.

pub mod command;
pub mod effect;
pub mod entity;
pub mod fact;
pub mod id;
pub mod level;
pub mod limits;
pub mod message;
pub mod observe;
pub mod payloads;
pub mod refusal;
mod store;
pub mod text;
pub mod time;

pub use command::Command;
pub use effect::{Effect, Outcome, Reply};
pub use fact::{Durability, Fact};
pub use id::{
    EntityId, Location, LockToken, MailboxId, ReceiverId, Region, RequestTag, RunId, Sequence, SessionId,
    TransactionId,
};
pub use level::{Level, LevelOrigin};
pub use limits::Limits;
pub use message::{Delivery, Incoming, MessageState, Overlay};
pub use payloads::{ColdRecord, NoPayloads, Payloads};
pub use refusal::Refusal;
pub use text::Text;
pub use time::{Span, Timestamp};
