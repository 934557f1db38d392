//! What a namespace holds: queues, topics, subscriptions and their rules.
//!
//! Everything here is parsed and checked once, on the way in. Inside, a name is known to be safe, a
//! description is known to be within its limits, and a forward target is known to exist.

pub mod authorization;
pub mod catalogue;
pub mod description;
pub mod fan_out;
pub mod idle;
pub mod level;
pub mod limits;
pub mod name;
pub mod path;
pub mod priority;
pub mod promise;
pub mod rule;
pub mod setting;
pub mod status;

pub use catalogue::{Catalogue, Change, Entity, Kind, Refusal, Request};
pub use description::{Description, QueueDescription, SubscriptionDescription, TopicDescription};
pub use limits::EntityLimits;
pub use name::{EntityName, RuleName, SubscriptionName};
pub use path::{EntityPath, SubQueue};
pub use rule::{Rule, RuleDescription, RuleId};
pub use setting::{Problem, Property, Setting};
pub use status::Status;
