//! The deterministic heart of the broker: one namespace, and every decision about it.
//!
//! `decide` looks and says what should happen; `apply` makes it so.
//! There is no clock, file, socket, thread or random number in here: time is an argument, and the
//! same commands at the same times give the same facts, live and after a restart.

mod audit;
pub mod browse;
pub mod clock;
mod cold;
pub mod command;
mod dedup;
pub mod effect;
pub mod entity;
pub mod explain;
pub mod fact;
mod forward;
pub mod freeze;
pub mod fuzzing;
pub mod id;
mod lane;
pub mod level;
pub mod limits;
mod lock;
mod mailbox;
mod mailboxes;
pub mod message;
mod namespace;
pub mod observe;
mod order;
pub mod payloads;
mod receive;
pub mod refusal;
mod replace;
mod schedule;
mod send;
mod session;
mod settle;
mod shelf;
mod state;
mod store;
pub mod survey;
pub mod text;
mod tick;
pub mod time;
mod transaction;
#[cfg(test)]
mod trial;

pub use command::Command;
pub use effect::{Effect, Outcome, Reply};
pub use fact::{Durability, Fact};
pub use freeze::FrozenState;
pub use id::{
    EntityId, Location, LockToken, MailboxId, ReceiverId, Region, RequestTag, RunId, Sequence, SessionId,
    TransactionId,
};
pub use level::{Level, LevelOrigin};
pub use limits::Limits;
pub use mailbox::Counts;
pub use message::{Delivery, Incoming, MessageState, Overlay};
pub use payloads::{ColdRecord, NoPayloads, Payloads};
pub use refusal::Refusal;
pub use state::State;
pub use text::Text;
pub use time::{Span, Timestamp};
