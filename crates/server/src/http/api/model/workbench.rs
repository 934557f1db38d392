//! Work on waiting messages by hand: group, replay, purge, re-prioritise.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{MessageBody, PropertyValue};

/// Dead letters by why they are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Groups {
    /// The groups, largest first.
    pub groups: Vec<Group>,
    /// How many messages were looked at.
    pub looked_at: u64,
    /// Whether there are more messages, or more reasons, than were looked at.
    pub incomplete: bool,
}

/// Messages with the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Why they were dead-lettered; absent if nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// One of their descriptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many there are.
    pub count: u64,
    /// When the first of them was enqueued.
    pub oldest_enqueued_at: String,
    /// When the last of them was enqueued.
    pub newest_enqueued_at: String,
    /// The numbers of a few of them.
    pub examples: Vec<u64>,
}

/// Which messages are meant. At least one of the three is needed, so that nothing is emptied by an empty
/// body.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selection {
    /// These numbers, at most 1000.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sequence_numbers: Vec<u64>,
    /// Those for which this Service Bus SQL condition holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Everything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Sends dead letters again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReplayRequest {
    /// Which messages.
    pub select: Selection,
    /// The queue or topic they go to. Absent: back to the queue or subscription they came from, and to no
    /// other subscription of the topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Only the first so many, such as a canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// At most so many in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_second: Option<u32>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// What to change in each message on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
}

/// Changes to a message that is sent again. What is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Edit {
    /// Another body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<MessageBody>,
    /// Another content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Another id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Another correlation id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Another session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Another subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Another life, counted from now; without this it gets the one its sender gave it, once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<String>,
    /// Another precedence; without this the message keeps the one it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Application properties to set, or to remove with null.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, PropertyValue>,
}

/// Deletes messages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PurgeRequest {
    /// Which messages.
    pub select: Selection,
    /// Only the first so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// One line of the answer to a replay or purge (`application/x-ndjson`): how far it has come. The last line
/// has `done: true`; if the connection ends before it, what was counted so far was done and the rest was
/// not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkReport {
    /// Messages replayed or deleted so far, or that would have been.
    pub count: u64,
    /// Messages looked at so far.
    pub looked_at: u64,
    /// Messages that could not be handled and are where they were, so far.
    pub failed: u64,
    /// The numbers of some of those, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// Whether this is the last line.
    pub done: bool,
    /// Why the work ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<super::Problem>,
}

/// A message that could not be handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Its number.
    pub sequence_number: u64,
    /// Why.
    pub detail: String,
}

/// Gives waiting messages another level.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReprioritiseRequest {
    /// Which messages.
    pub select: Selection,
    /// Their new level; this or `class`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Their new class; this or `level`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Only the first so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Only say what would change.
    pub dry_run: bool,
}

/// What a change of level came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReprioritiseReport {
    /// Messages that have the level now and had another before, or would have.
    pub count: u64,
    /// The level.
    pub level: u8,
    /// Whether there is more to look at; ask again to go on.
    pub incomplete: bool,
}
