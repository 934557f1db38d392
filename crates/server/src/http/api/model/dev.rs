//! What only developers do: the clock, whole namespaces kept by name, faults.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The broker's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Clock {
    /// The time by which locks end, messages expire and schedules are due.
    pub now: String,
    /// How far it runs ahead of the wall clock.
    pub ahead: String,
}

/// Sets the clock ahead.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AdvanceRequest {
    /// By so much more than it is.
    pub by: String,
}

/// Takes every message away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResetRequest {
    /// The entities go too, and those of the configuration are made anew.
    pub entities: bool,
}

/// A namespace that was kept, with every message in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// When it was taken, by the broker's clock.
    pub taken_at: String,
    /// How many messages it holds.
    pub messages: u64,
    /// How large it is.
    pub bytes: u64,
}

/// Makes something go wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewFault {
    /// What.
    pub kind: FaultKind,
    /// The queue, topic or subscription.
    pub entity: String,
    /// How late settlements are, at most an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// How often; without this and without `for` once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub count: Option<u32>,
    /// For how long by the broker's clock, at most a day.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// Sends are refused with `com.microsoft:server-busy`.
    ServerBusy,
    /// Settlements are carried out late.
    DelaySettles,
}

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// Its number.
    pub id: u64,
    /// What.
    pub kind: FaultKind,
    /// Where.
    pub entity: String,
    /// How late settlements are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// How often more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
    /// Until when, by the broker's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Holds the whole broker up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StallRequest {
    /// How long it takes no request, by its clock; at most a minute.
    #[serde(rename = "for")]
    pub lasts: String,
}

/// Ends links or connections at once. At least one of `entity` and `link` says which.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DropRequest {
    /// Links to this entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Links of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Cut the whole connection without a word, as a network does that fails.
    pub connection: bool,
}

/// What was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// Links that were told to detach, or lost their connection.
    pub links: u64,
    /// Connections that were cut.
    pub connections: u64,
}
