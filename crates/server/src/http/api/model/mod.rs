//! The words of the JSON API: what bodies and answers consist of.
//!
//! Plain data with public fields, so that the command line and the console's tests speak with the same
//! types the server answers with, and the `OpenAPI` document is made from them. Names are camelCase in
//! JSON. Bodies refuse fields they do not know; answers may grow fields in later versions.
//!
//! Durations are text: written as ISO 8601 (`PT30S`), read as that or as `30s`, `5m`, `2h`, `1d`.
//! Points in time are RFC 3339 in UTC with milliseconds. Keys are never part of an answer.

mod connection;
mod definitions;
mod dev;
mod entity;
mod event;
mod explanation;
mod live;
mod message;
mod page;
mod priority;
mod problem;
mod rule;
mod session;
mod target;
mod value;
mod workbench;

pub use connection::{Connection, Link, LinkRole};
pub use definitions::{Applied, ApplyReport, Definitions, Outcome, TopicDefinition};
pub use dev::{
    AdvanceRequest, Clock, DropRequest, Dropped, Fault, FaultKind, NewFault, ResetRequest, Snapshot,
    StallRequest,
};
pub use entity::{AuthorizationRule, Entity, EntityKind, Namespace, Properties, Right, Status};
pub use event::{Event, EventKind};
pub use explanation::{Activity, Ahead, Blocker, Explanation};
pub use live::{Bucket, ClassReport, Counts, Distribution, Live, MailboxReport, Rates, Runtime, Totals};
pub use message::{Mailbox, Message, MessageBody, MessageState, NewMessage, Sent};
pub use page::Page;
pub use priority::{Class, Policy, PriorityRule, Rescue};
pub use problem::{FieldProblem, Problem};
pub use rule::{Correlation, Filter, Rule, RuleDefinition, SqlText};
pub use session::Session;
pub use target::{Target, TargetState, TargetWindow};
pub use value::{PropertyValue, TypedValue, ValueType};
pub use workbench::{
    Edit, Failure, Group, Groups, PurgeRequest, ReplayRequest, ReprioritiseReport, ReprioritiseRequest,
    Selection, WorkReport,
};
