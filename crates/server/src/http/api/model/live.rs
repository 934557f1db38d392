//! What is going on in an entity now, by class.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is known of an entity beside what it was told to be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Runtime {
    /// When it was created.
    pub created_at: String,
    /// When its description or rules last changed.
    pub updated_at: String,
    /// When it was last used, to the second.
    pub accessed_at: String,
    /// Bytes that count against the quota; a subscription's count against its topic's.
    pub size_in_bytes: u64,
    /// Messages waiting to be received.
    pub active_message_count: u64,
    /// Messages locked by a receiver.
    pub locked_message_count: u64,
    /// Messages put aside.
    pub deferred_message_count: u64,
    /// Messages waiting for their time: scheduled, or delayed after a failure.
    pub scheduled_message_count: u64,
    /// Messages in the dead-letter queue.
    pub dead_letter_message_count: u64,
    /// Messages in the transfer dead-letter queue.
    pub transfer_dead_letter_message_count: u64,
    /// Receivers attached.
    pub receiver_count: u64,
    /// A topic's subscriptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription_count: Option<u64>,
}

/// An entity's mailboxes, each class by class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    /// When this was so.
    pub at: String,
    /// How many workers would start what waits within its targets: the number for an autoscaler.
    pub desired_workers: u32,
    /// `main`, `deadletter` and `transferdeadletter`, as far as they are in use.
    pub mailboxes: Vec<MailboxReport>,
}

/// One mailbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MailboxReport {
    /// Which.
    pub mailbox: super::Mailbox,
    /// All its messages by state.
    pub counts: Counts,
    /// Receivers attached.
    pub receiver_count: u64,
    /// Its levels, highest first: those with a class, with messages, or with a past.
    pub classes: Vec<ClassReport>,
}

/// How many messages are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Waiting to be received, on disk or not.
    pub active: u64,
    /// Locked by a receiver.
    pub locked: u64,
    /// Put aside.
    pub deferred: u64,
    /// Waiting for their scheduled time.
    pub scheduled: u64,
    /// Waiting for their retry delay to pass.
    pub delayed: u64,
}

/// One level of a mailbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassReport {
    /// The level.
    pub level: u8,
    /// Its class, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The wait its messages are promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_wait: Option<String>,
    /// What the entity's settings promise its messages, in words.
    pub promise: String,
    /// Its messages by state.
    pub counts: Counts,
    /// How long the oldest waiting message has waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_age_seconds: Option<f64>,
    /// What was counted since the process began; absent if nothing came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Totals>,
    /// Messages per second over the last minute.
    pub rates: Rates,
    /// From being visible to the first delivery.
    pub wait: Distribution,
    /// From a delivery to its settlement.
    pub processing: Distribution,
    /// From being visible to being completed.
    pub end_to_end: Distribution,
}

/// What was counted since the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Messages that came in.
    pub enqueued: u64,
    /// Deliveries, repeated ones too.
    pub delivered: u64,
    /// Messages completed.
    pub completed: u64,
    /// Deliveries that ended with the message going back.
    pub returned: u64,
    /// Messages dead-lettered.
    pub dead_lettered: u64,
    /// Messages that outlived their time.
    pub expired: u64,
    /// First deliveries within the class's target.
    pub in_target: u64,
    /// First deliveries later than that.
    pub past_target: u64,
}

/// Messages per second over the last minute.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rates {
    /// Coming in.
    pub enqueued: f64,
    /// Delivered.
    pub delivered: f64,
    /// Completed.
    pub completed: f64,
}

/// How long something took: counts by duration since the process began, known to 1 part in 32.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Distribution {
    /// How many were measured.
    pub count: u64,
    /// Their sum.
    pub sum_seconds: f64,
    /// The half that took least took at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_seconds: Option<f64>,
    /// 95 of 100 took at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_seconds: Option<f64>,
    /// 99 of 100 took at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_seconds: Option<f64>,
    /// The longest.
    pub max_seconds: f64,
    /// The buckets that are not empty, shortest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<Bucket>,
}

/// One bucket of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// The longest duration that falls in.
    pub to_seconds: f64,
    /// How many did.
    pub count: u64,
}
