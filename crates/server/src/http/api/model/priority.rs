//! How an entity orders its messages.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Filter;

/// A named level, and how long its messages should wait at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Class {
    /// A letter, then letters, digits, `-`, `_` and `.`; at most 50 characters, in any case.
    #[schema(example = "gold")]
    pub name: String,
    /// Where its messages queue; higher first.
    pub level: u8,
    /// The wait that is promised: measured, alarmed, and the deadline under that policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "PT10S")]
    pub target_wait: Option<String>,
}

/// In which order messages leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum Policy {
    /// Higher levels first, whatever the time; rescue keeps it from starving anybody.
    Strict,
    /// A level is worth a head start of level × `agedStep`.
    Aged,
    /// The earliest deadline first.
    Deadline,
    /// Levels do not count.
    Fifo,
}

/// Who is helped when a strict order starves them, and how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rescue {
    /// The wait after which a message joins the rescue line.
    #[schema(example = "PT5M")]
    pub after: String,
    /// The part of deliveries, 0 to 1, that goes to that line while it is not empty; 0 switches it off.
    #[schema(minimum = 0, maximum = 1)]
    pub share: f64,
}

/// Messages that match are of a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PriorityRule {
    /// Which messages.
    pub filter: Filter,
    /// One of the entity's classes.
    pub class: String,
}
