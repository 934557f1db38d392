//! Queues, topics and subscriptions as their properties: what was read, with what was changed.
//!
//! A new one says only what is set; the rest is the service's default. One that was read keeps everything the service
//! showed, also elements nobody here knows, so that an update changes what was changed and nothing else.

use std::time::{Duration, SystemTime};

use super::fields::{Fields, Status, Target};
use super::priority::Priority;
use super::xml::Element;
use super::{iso, rule};
use crate::rules::Rule;
use crate::sas::escape;

/// The elements of a queue, in the order of the schema.
const QUEUE: [&str; 27] = [
    "LockDuration",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DuplicateDetectionHistoryTimeWindow",
    "MaxDeliveryCount",
    "EnableBatchedOperations",
    "SizeInBytes",
    "MessageCount",
    "IsAnonymousAccessible",
    "AuthorizationRules",
    "Status",
    "ForwardTo",
    "UserMetadata",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "SupportOrdering",
    "CountDetails",
    "AutoDeleteOnIdle",
    "EnablePartitioning",
    "ForwardDeadLetteredMessagesTo",
    "EntityAvailabilityStatus",
    "EnableExpress",
    "MaxMessageSizeInKilobytes",
];

/// Those of a topic.
const TOPIC: [&str; 25] = [
    "DefaultMessageTimeToLive",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "DuplicateDetectionHistoryTimeWindow",
    "EnableBatchedOperations",
    "SizeInBytes",
    "FilteringMessagesBeforePublishing",
    "IsAnonymousAccessible",
    "AuthorizationRules",
    "Status",
    "UserMetadata",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "SupportOrdering",
    "CountDetails",
    "SubscriptionCount",
    "SqlFilterCount",
    "CorrelationFilterCount",
    "AutoDeleteOnIdle",
    "EnablePartitioning",
    "EntityAvailabilityStatus",
    "EnableSubscriptionPartitioning",
    "EnableExpress",
    "MaxMessageSizeInKilobytes",
];

/// Those of a subscription.
const SUBSCRIPTION: [&str; 19] = [
    "LockDuration",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DeadLetteringOnFilterEvaluationExceptions",
    "DefaultRuleDescription",
    "MessageCount",
    "MaxDeliveryCount",
    "EnableBatchedOperations",
    "Status",
    "ForwardTo",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "UserMetadata",
    "CountDetails",
    "AutoDeleteOnIdle",
    "ForwardDeadLetteredMessagesTo",
    "EntityAvailabilityStatus",
];

/// How an entity is found and described.
pub(super) trait Described: Sized {
    /// The element that describes it.
    const ROOT: &'static str;

    /// The path it is at.
    fn place(&self) -> String;

    /// The description as it is sent to the service at `host`.
    fn described(&self, host: &str) -> Element;

    /// The same entity, as the service describes it.
    fn read_as(&self, fields: Fields) -> Self;
}

/// Getters and setters of simple elements.
macro_rules! settings {
    ($type:ident, $order:ident; $($(#[$doc:meta])* $get:ident, $set:ident: $value:ty = $name:literal;)*) => {
        impl $type {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $get(&self) -> Option<$value> {
                    self.fields.get($name)
                }

                $(#[$doc])*
                #[must_use]
                pub fn $set(mut self, value: $value) -> Self {
                    self.fields.set(&$order, $name, &value);
                    self
                }
            )*
        }
    };
}

/// What all three have.
macro_rules! shared {
    ($type:ident, $order:ident) => {
        settings! { $type, $order;
            /// How long messages live that do not say it themselves.
            default_time_to_live, with_default_time_to_live: Duration = "DefaultMessageTimeToLive";
            /// After how long without use the entity is deleted.
            auto_delete_on_idle, with_auto_delete_on_idle: Duration = "AutoDeleteOnIdle";
            /// Whether the service may store in batches.
            enable_batched_operations, with_enable_batched_operations: bool = "EnableBatchedOperations";
            /// Whether messages go in and out.
            status, with_status: Status = "Status";
        }

        impl $type {
            /// A text of your own that is kept with the entity.
            #[must_use]
            pub fn user_metadata(&self) -> Option<String> {
                self.fields.get("UserMetadata")
            }

            /// A text of your own that is kept with the entity.
            #[must_use]
            pub fn with_user_metadata(mut self, text: impl Into<String>) -> Self {
                self.fields.set(&$order, "UserMetadata", &text.into());
                self
            }

            /// Takes the text away.
            #[must_use]
            pub fn without_user_metadata(mut self) -> Self {
                self.fields.remove("UserMetadata");
                self
            }

            /// What is known of it now: counts, sizes, times.
            #[must_use]
            pub fn runtime(&self) -> Runtime {
                Runtime::of(&self.fields)
            }

            /// The text of an element by the name the service has for it.
            #[must_use]
            pub fn element(&self, name: &str) -> Option<&str> {
                self.fields.element(name).and_then(Element::value)
            }
        }
    };
}

/// What takes messages in.
macro_rules! intake {
    ($type:ident, $order:ident) => {
        settings! { $type, $order;
            /// How much it holds.
            max_size_megabytes, with_max_size_megabytes: u64 = "MaxSizeInMegabytes";
            /// How large a message may be.
            max_message_kilobytes, with_max_message_kilobytes: u64 = "MaxMessageSizeInKilobytes";
            /// Whether a message id is taken once only. It cannot change later.
            requires_duplicate_detection, with_requires_duplicate_detection: bool = "RequiresDuplicateDetection";
            /// For how long ids are remembered.
            duplicate_window, with_duplicate_window: Duration = "DuplicateDetectionHistoryTimeWindow";
            /// Whether it is spread over several stores. It cannot change later.
            enable_partitioning, with_enable_partitioning: bool = "EnablePartitioning";
        }

        impl $type {
            /// A message id is taken once within this time.
            #[must_use]
            pub fn with_duplicate_detection(self, window: Duration) -> Self {
                self.with_requires_duplicate_detection(true).with_duplicate_window(window)
            }
        }
    };
}

/// What gives messages out.
macro_rules! outlet {
    ($type:ident, $order:ident) => {
        settings! { $type, $order;
            /// How long a received message stays locked.
            lock_duration, with_lock_duration: Duration = "LockDuration";
            /// Whether messages belong to sessions. It cannot change later.
            requires_session, with_requires_session: bool = "RequiresSession";
            /// After how many tries a message is dead-lettered.
            max_delivery_count, with_max_delivery_count: u32 = "MaxDeliveryCount";
            /// Whether messages that expire are dead-lettered, not dropped.
            dead_lettering_on_expiration, with_dead_lettering_on_expiration: bool = "DeadLetteringOnMessageExpiration";
        }

        impl $type {
            /// Messages belong to sessions.
            #[must_use]
            pub fn with_sessions(self) -> Self {
                self.with_requires_session(true)
            }

            /// The entity all messages go on to.
            #[must_use]
            pub fn forward_to(&self) -> Option<String> {
                self.fields.get("ForwardTo").map(|Target(name)| name)
            }

            /// All messages go on to this entity.
            #[must_use]
            pub fn with_forward_to(mut self, name: impl Into<String>) -> Self {
                self.fields.set(&$order, "ForwardTo", &Target(name.into()));
                self
            }

            /// Messages stay.
            #[must_use]
            pub fn without_forward_to(mut self) -> Self {
                self.fields.remove("ForwardTo");
                self
            }

            /// The entity dead letters go to.
            #[must_use]
            pub fn forward_dead_letters_to(&self) -> Option<String> {
                self.fields.get("ForwardDeadLetteredMessagesTo").map(|Target(name)| name)
            }

            /// Dead letters go to this entity.
            #[must_use]
            pub fn with_forward_dead_letters_to(mut self, name: impl Into<String>) -> Self {
                self.fields.set(&$order, "ForwardDeadLetteredMessagesTo", &Target(name.into()));
                self
            }

            /// Dead letters stay in the entity's own dead-letter queue.
            #[must_use]
            pub fn without_forward_dead_letters_to(mut self) -> Self {
                self.fields.remove("ForwardDeadLetteredMessagesTo");
                self
            }

            /// The priority settings, where they differ from Vorrang's defaults. Service Bus has none.
            #[must_use]
            pub fn priority(&self) -> Option<Priority> {
                self.fields.element("Priority").map(Priority::read)
            }

            /// Sets what `priority` mentions and nothing else. An extension of Vorrang; Service Bus passes over it.
            #[must_use]
            pub fn with_priority(mut self, priority: &Priority) -> Self {
                self.fields.put(&$order, priority.element());
                self
            }
        }
    };
}

/// A queue.
///
/// ```
/// use std::time::Duration;
/// use vorrang_client::admin::QueueProperties;
///
/// let queue = QueueProperties::new("orders").with_max_delivery_count(3).with_lock_duration(Duration::from_secs(30));
/// assert_eq!((queue.name(), queue.max_delivery_count()), ("orders", Some(3)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueProperties {
    name: String,
    fields: Fields,
}

shared!(QueueProperties, QUEUE);
intake!(QueueProperties, QUEUE);
outlet!(QueueProperties, QUEUE);

impl QueueProperties {
    /// A queue of this name with the service's defaults.
    pub fn new(name: impl Into<String>) -> Self {
        QueueProperties { name: name.into(), fields: Fields::default() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Described for QueueProperties {
    const ROOT: &'static str = "QueueDescription";

    fn place(&self) -> String {
        escape(&self.name)
    }

    fn described(&self, host: &str) -> Element {
        self.fields.description(Self::ROOT, host)
    }

    fn read_as(&self, fields: Fields) -> Self {
        QueueProperties { name: self.name.clone(), fields }
    }
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicProperties {
    name: String,
    fields: Fields,
}

shared!(TopicProperties, TOPIC);
intake!(TopicProperties, TOPIC);
settings! { TopicProperties, TOPIC;
    /// Whether messages are received in the order they were sent.
    support_ordering, with_support_ordering: bool = "SupportOrdering";
}

impl TopicProperties {
    /// A topic of this name with the service's defaults.
    pub fn new(name: impl Into<String>) -> Self {
        TopicProperties { name: name.into(), fields: Fields::default() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Described for TopicProperties {
    const ROOT: &'static str = "TopicDescription";

    fn place(&self) -> String {
        escape(&self.name)
    }

    fn described(&self, host: &str) -> Element {
        self.fields.description(Self::ROOT, host)
    }

    fn read_as(&self, fields: Fields) -> Self {
        TopicProperties { name: self.name.clone(), fields }
    }
}

/// A subscription of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionProperties {
    topic: String,
    name: String,
    fields: Fields,
}

shared!(SubscriptionProperties, SUBSCRIPTION);
outlet!(SubscriptionProperties, SUBSCRIPTION);
settings! { SubscriptionProperties, SUBSCRIPTION;
    /// Whether messages whose filter cannot be evaluated are dead-lettered.
    dead_lettering_on_filter_errors, with_dead_lettering_on_filter_errors: bool = "DeadLetteringOnFilterEvaluationExceptions";
}

impl SubscriptionProperties {
    /// A subscription of this name with the service's defaults: it gets every message of its topic.
    pub fn new(topic: impl Into<String>, name: impl Into<String>) -> Self {
        SubscriptionProperties { topic: topic.into(), name: name.into(), fields: Fields::default() }
    }

    /// Begins with this rule in place of the one that takes every message. It counts when the subscription is created.
    #[must_use]
    pub fn with_first_rule(mut self, first: &Rule) -> Self {
        self.fields.put(&SUBSCRIPTION, rule::write(first, "DefaultRuleDescription"));
        self
    }

    /// Whose subscription it is.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Described for SubscriptionProperties {
    const ROOT: &'static str = "SubscriptionDescription";

    fn place(&self) -> String {
        subscription_place(&self.topic, &self.name)
    }

    fn described(&self, host: &str) -> Element {
        self.fields.description(Self::ROOT, host)
    }

    fn read_as(&self, fields: Fields) -> Self {
        SubscriptionProperties { topic: self.topic.clone(), name: self.name.clone(), fields }
    }
}

/// The path of a subscription.
pub(super) fn subscription_place(topic: &str, name: &str) -> String {
    format!("{}/Subscriptions/{}", escape(topic), escape(name))
}

/// What is known of an entity now. What it does not have is zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runtime {
    /// Messages in all.
    pub messages: u64,
    /// Messages that can be received, are locked or deferred.
    pub active: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Messages that wait for their time.
    pub scheduled: u64,
    /// Messages on their way to another entity.
    pub transfers: u64,
    /// Messages that could not go to another entity.
    pub transfer_dead_letters: u64,
    /// What it holds, in bytes.
    pub size_bytes: u64,
    /// Subscriptions of a topic.
    pub subscriptions: u64,
    /// When it was made.
    pub created: Option<SystemTime>,
    /// When its settings last changed.
    pub updated: Option<SystemTime>,
    /// When it was last used.
    pub accessed: Option<SystemTime>,
}

impl Runtime {
    fn of(fields: &Fields) -> Self {
        let details = fields.element("CountDetails");
        let count = |name: &str| {
            let text = details.and_then(|details| details.value_of(name));
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let number = |name: &str| fields.get(name).unwrap_or(0);
        let time = |name: &str| fields.element(name).and_then(Element::value).and_then(iso::read_time);
        Runtime {
            messages: number("MessageCount"),
            active: count("ActiveMessageCount"),
            dead_letters: count("DeadLetterMessageCount"),
            scheduled: count("ScheduledMessageCount"),
            transfers: count("TransferMessageCount"),
            transfer_dead_letters: count("TransferDeadLetterMessageCount"),
            size_bytes: number("SizeInBytes"),
            subscriptions: number("SubscriptionCount"),
            created: time("CreatedAt"),
            updated: time("UpdatedAt"),
            accessed: time("AccessedAt"),
        }
    }
}
