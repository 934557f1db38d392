//! Queues, topics and subscriptions: what they are told to be.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::{Class, Policy, PriorityRule, Rescue, RuleDefinition, Runtime};

/// The namespace as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// The broker's version.
    pub version: String,
    /// The namespace's name.
    pub name: String,
    /// How many queues and topics there are.
    pub entity_count: u64,
    /// When the process began to serve.
    pub started_at: String,
    /// The broker's clock.
    pub now: String,
}

/// The kinds of entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum EntityKind {
    /// Messages wait here for receivers.
    Queue,
    /// Messages are copied from here to subscriptions.
    Topic,
    /// A topic's copies wait here for receivers.
    Subscription,
}

/// A queue, topic or subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entity {
    /// Its name.
    pub name: String,
    /// Which kind it is.
    pub kind: EntityKind,
    /// The topic, if it is a subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Its path as AMQP clients write it.
    pub path: String,
    /// What it was told to be; the same object is the body of a `PUT` or `PATCH`.
    pub properties: Properties,
    /// What is known of it now.
    pub runtime: Runtime,
}

/// What an entity is told to be. In a body, what is absent keeps its value or gets the default; a
/// property that the kind of entity does not have is refused.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Properties {
    /// How long a lock lasts without renewal: more than nothing, at most `PT5M`. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "PT1M")]
    pub lock_duration: Option<String>,
    /// The quota, 1 to 81920; at it, sends are refused. Queues and topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size_in_megabytes: Option<u64>,
    /// The largest message, 1 to 102400. Queues and topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_message_size_in_kilobytes: Option<u64>,
    /// Whether a message id is accepted once only within the window. Fixed at creation. Queues and topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_duplicate_detection: Option<bool>,
    /// How long a message id is remembered, `PT5S` to `P7D`. Queues and topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "PT10M")]
    pub duplicate_detection_history_time_window: Option<String>,
    /// Whether messages belong to sessions. Fixed at creation. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_session: Option<bool>,
    /// How long messages live that do not say, and the longest they may say: `PT1S` or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "P14D")]
    pub default_message_time_to_live: Option<String>,
    /// Whether expired messages are dead-lettered instead of deleted. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_lettering_on_message_expiration: Option<bool>,
    /// Whether a message whose filter or action fails is dead-lettered. Subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_lettering_on_filter_evaluation_exceptions: Option<bool>,
    /// The attempt after which a message is dead-lettered, 1 or more. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_delivery_count: Option<u32>,
    /// Kept and reported; operations are always batched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_batched_operations: Option<bool>,
    /// How long an unused entity is kept, `PT5M` or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "P1D")]
    pub auto_delete_on_idle: Option<String>,
    /// Whether messages go in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Where messages go instead of waiting here; null or an empty text ends it. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "mentioned")]
    pub forward_to: Option<String>,
    /// Where dead-lettered messages go instead of waiting here; null or an empty text ends it. Queues and
    /// subscriptions.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "mentioned")]
    pub forward_dead_lettered_messages_to: Option<String>,
    /// Kept and reported. Fixed at creation. Queues and topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support_ordering: Option<bool>,
    /// A note of at most 1024 characters; null or an empty text removes it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "mentioned")]
    pub user_metadata: Option<String>,
    /// Keys that open this entity alone, at most 12. Answers show names and rights, never keys. In a
    /// body, a rule without keys keeps the ones it has, and a new one gets random ones. Queues and topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_rules: Option<Vec<AuthorizationRule>>,
    /// Whether a message that no subscription wants is refused instead of dropped. Topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filtering_messages_before_publishing: Option<bool>,
    /// Named levels beside, or instead of, the built-in `low` 1, `normal` 4, `high` 7, `urgent` 9. At most
    /// 32. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<Class>>,
    /// In which order messages leave. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Under the policy `aged`: the head start that one level is worth. Only together with `policy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "PT10S")]
    pub aged_step: Option<String>,
    /// What keeps the policy `strict` from starving anybody. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescue: Option<Rescue>,
    /// Rules that give a message its class by what it is; the first match counts. At most 64. Queues and
    /// subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_rules: Option<Vec<PriorityRule>>,
    /// The level of a message about which nobody says anything. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_level: Option<u8>,
    /// Whether a session ranks by its best waiting message instead of its first. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lift: Option<bool>,
    /// How much of a link's credit, 0 to 1, lower messages may fill while higher ones are expected. Queues
    /// and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub prefetch_share: Option<f64>,
    /// Whether deliveries are held back; sending goes on. Queues and subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// A subscription's rules by name. When it is created: the rules it begins with, instead of one that
    /// takes every message. Afterwards: the rules it has from now on; others are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<BTreeMap<String, RuleDefinition>>,
}

/// Tells null from absent: null was mentioned, and means the empty text.
fn mentioned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(deserializer).map(|text| Some(text.unwrap_or_default()))
}

/// Whether messages go in and out. The words are those of Service Bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Status {
    /// Sends and receives are allowed.
    Active,
    /// Neither is allowed.
    Disabled,
    /// Receives only.
    SendDisabled,
    /// Sends only.
    ReceiveDisabled,
}

/// A key name and what it permits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuthorizationRule {
    /// The name a token refers to.
    pub key_name: String,
    /// What its keys permit.
    pub rights: Vec<Right>,
    /// The key in use; never part of an answer.
    #[serde(default, skip_serializing)]
    #[schema(write_only)]
    pub primary_key: Option<String>,
    /// The key to change over to; never part of an answer.
    #[serde(default, skip_serializing)]
    #[schema(write_only)]
    pub secondary_key: Option<String>,
}

impl std::fmt::Debug for AuthorizationRule {
    /// Without the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthorizationRule")
            .field("key_name", &self.key_name)
            .field("rights", &self.rights)
            .finish_non_exhaustive()
    }
}

/// What a key permits. The words are those of Service Bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub enum Right {
    /// Sending messages.
    Send,
    /// Receiving messages.
    Listen,
    /// Changing the entity; includes the other two.
    Manage,
}
