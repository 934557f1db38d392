//! A shard: engine and log on one thread, and the connections it serves.

mod broker;
mod chilling;
mod chores;
mod cold;
mod company;
mod core;
mod evacuation;
mod faults;
mod helm;
mod hold;
mod inbox;
mod keys;
mod open;
mod outside;
mod payload;
mod peer;
mod question;
mod recent;
mod regions;
mod resting;
mod snapshot;
mod staging;
mod thread;
mod withheld;
mod writer;

pub use self::core::{Core, Item};
pub use broker::{Broker, Connection, NotTaken, Push, Stopped};
pub use chilling::Chilling;
pub use evacuation::{Evacuated, Evacuation};
pub use keys::Keys;
pub use open::{Commits, OpenError, Settings, open};
pub use payload::{Decode, Opaque, PayloadReader, Unreadable};
pub use peer::PeerId;
pub use recent::Body;
pub use snapshot::{Schedule, Snapshot, Unfinished};
pub use thread::Clock;
