//! Why a message is waiting, and what is ahead of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Everything that says when a message will be delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Its number.
    pub sequence_number: u64,
    /// All of it in a sentence.
    pub summary: String,
    /// What it is doing.
    pub activity: Activity,
    /// When that ends: the lock, the scheduled time, the retry delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Its level.
    pub level: u8,
    /// What gave it that: `rule`, `property`, `header`, `default` or `operator`.
    pub level_origin: String,
    /// The class of that level, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Since when it could have been delivered.
    pub eligible_since: String,
    /// How long that is.
    pub waited_seconds: f64,
    /// Whether it is the very next one.
    pub next: bool,
    /// Whether it has waited long enough to be rescued.
    pub starving: bool,
    /// How many are ahead of it, by level, highest first.
    pub ahead: Vec<Ahead>,
    /// What holds it back, other than those ahead.
    pub blockers: Vec<Blocker>,
    /// When it will be delivered at the rate of the last minute, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_seconds: Option<f64>,
    /// What its entity promises to messages of its level.
    pub promise: String,
}

/// What a message is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum Activity {
    /// Waiting for its turn.
    Waiting,
    /// Being worked on.
    Locked,
    /// Put aside; received by its number alone.
    Deferred,
    /// Waiting for its scheduled time.
    Scheduled,
    /// Waiting for its retry delay to pass.
    Delayed,
}

/// Messages of one level that come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ahead {
    /// Their level.
    pub level: u8,
    /// How many.
    pub count: u64,
    /// Whether there may be more: not everything was looked at.
    pub at_least: bool,
}

/// What holds a message back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// A word for programs, such as `paused` or `noReceiver`.
    pub kind: String,
    /// A sentence for people, with what to do.
    pub detail: String,
}
