//! All definitions as one file, and what applying one came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Properties;

/// Every queue, topic, subscription and rule, without messages and keys.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Definitions {
    /// Queues by name.
    pub queues: BTreeMap<String, Properties>,
    /// Topics by name.
    pub topics: BTreeMap<String, TopicDefinition>,
}

/// A topic with its subscriptions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TopicDefinition {
    /// What the topic is told to be.
    pub properties: Properties,
    /// Its subscriptions by name; their rules are among the properties.
    pub subscriptions: BTreeMap<String, Properties>,
}

/// What applying definitions came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplyReport {
    /// Whether nothing was done, only looked at.
    pub dry_run: bool,
    /// How many were created.
    pub created: u64,
    /// How many were changed.
    pub changed: u64,
    /// How many were as they should be.
    pub unchanged: u64,
    /// How many were deleted because the definitions do not have them.
    pub deleted: u64,
    /// How many the definitions do not have, which were left alone: `prune=true` deletes them.
    pub would_delete: u64,
    /// How many could not be brought to what is wanted.
    pub failed: u64,
    /// One by one, in the order it was done.
    pub entities: Vec<Applied>,
}

/// What became of one entity or rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// Its path.
    pub path: String,
    /// What became of it.
    pub outcome: Outcome,
    /// The properties that differed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Why it could not be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What became of an entity or rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It did not exist.
    Created,
    /// It was another.
    Changed,
    /// It was as it should be.
    Unchanged,
    /// The definitions do not have it, and it is gone.
    Deleted,
    /// The definitions do not have it; it was left alone.
    WouldDelete,
    /// It could not be done.
    Failed,
}
