//! The plain properties of entities, one row each: the key in the file, the flag of `queue create`, the
//! schema and the setting it makes come from this table.

use vorrang_engine::entity::priority::Policy;
use vorrang_engine::entity::{EntityName, Setting, Status};
use vorrang_engine::level::Level;

use super::shape::{Given, Shape};
use crate::duration;

/// One property.
#[derive(Debug, Clone, Copy)]
pub struct Property {
    /// Its name in the file: the name Service Bus has for it, in snake case.
    pub name: &'static str,
    /// Which kinds of entities have it.
    pub on: On,
    /// What it is for, in one line.
    pub help: &'static str,
    /// What it may be.
    pub shape: Shape,
    pub(super) read: fn(Given<'_>) -> Option<Setting>,
}

impl Property {
    /// Whether this text, as somebody types it, is among what the property may be.
    #[must_use]
    pub fn allows(&self, text: &str) -> bool {
        (self.read)(Given::Typed(text)).is_some()
    }
}

/// Kinds of entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct On {
    /// Queues have it.
    pub queue: bool,
    /// Topics have it.
    pub topic: bool,
    /// Subscriptions have it.
    pub subscription: bool,
}

/// The kinds of entities that have properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityKind {
    /// A queue.
    Queue,
    /// A topic.
    Topic,
    /// A subscription.
    Subscription,
}

impl On {
    /// Whether this kind is among them.
    #[must_use]
    pub fn includes(self, kind: EntityKind) -> bool {
        match kind {
            EntityKind::Queue => self.queue,
            EntityKind::Topic => self.topic,
            EntityKind::Subscription => self.subscription,
        }
    }
}

pub(super) const EVERY: On = On { queue: true, topic: true, subscription: true };
pub(super) const INTAKE: On = On { queue: true, topic: true, subscription: false };
pub(super) const OUTLET: On = On { queue: true, topic: false, subscription: true };
const TOPIC: On = On { queue: false, topic: true, subscription: false };
const SUBSCRIPTION: On = On { queue: false, topic: false, subscription: true };

const STATUS: Shape = Shape::Word(&["Active", "Disabled", "SendDisabled", "ReceiveDisabled"]);
const LEVEL: Shape = Shape::Number(0, 255);
const ANY_COUNT: Shape = Shape::Number(0, i64::MAX.unsigned_abs());
const DELIVERIES: Shape = Shape::Number(1, 2_147_483_647);
const TARGET: Shape = Shape::Text("the name of a queue or topic, or \"\" for none");
const POLICY: Shape = Shape::Text("strict, deadline, fifo, or aged with the worth of a level like aged:10s");

/// Every plain property there is.
pub const PROPERTIES: &[Property] = &[
    Property {
        name: "lock_duration",
        on: OUTLET,
        help: "How long a received message stays locked without renewal",
        shape: Shape::Span,
        read: |given| given.span().map(Setting::LockDuration),
    },
    Property {
        name: "max_delivery_count",
        on: OUTLET,
        help: "Attempts after which a message is dead-lettered",
        shape: DELIVERIES,
        read: |given| given.number(DELIVERIES).map(Setting::MaxDeliveryCount),
    },
    Property {
        name: "requires_session",
        on: OUTLET,
        help: "Messages belong to sessions, each received by one receiver in order",
        shape: Shape::Switch,
        read: |given| given.switch().map(Setting::RequiresSession),
    },
    Property {
        name: "dead_lettering_on_message_expiration",
        on: OUTLET,
        help: "Dead-letter expired messages instead of deleting them",
        shape: Shape::Switch,
        read: |given| given.switch().map(Setting::DeadLetteringOnMessageExpiration),
    },
    Property {
        name: "dead_lettering_on_filter_evaluation_exceptions",
        on: SUBSCRIPTION,
        help: "Dead-letter messages whose filter or action fails",
        shape: Shape::Switch,
        read: |given| given.switch().map(Setting::DeadLetteringOnFilterEvaluationExceptions),
    },
    Property {
        name: "forward_to",
        on: OUTLET,
        help: "Send every message on to this queue or topic",
        shape: TARGET,
        read: |given| target(given, Setting::ForwardTo),
    },
    Property {
        name: "forward_dead_lettered_messages_to",
        on: OUTLET,
        help: "Send dead-lettered messages on to this queue or topic",
        shape: TARGET,
        read: |given| target(given, Setting::ForwardDeadLetteredMessagesTo),
    },
    Property {
        name: "requires_duplicate_detection",
        on: INTAKE,
        help: "Accept each message id once within the window",
        shape: Shape::Switch,
        read: |given| given.switch().map(Setting::RequiresDuplicateDetection),
    },
    Property {
        name: "duplicate_detection_history_time_window",
        on: INTAKE,
        help: "How long message ids are remembered",
        shape: Shape::Span,
        read: |given| given.span().map(Setting::DuplicateDetectionHistoryTimeWindow),
    },
    Property {
        name: "max_size_in_megabytes",
        on: INTAKE,
        help: "The quota; at it, sends are refused",
        shape: ANY_COUNT,
        read: |given| given.number(ANY_COUNT).map(Setting::MaxSizeInMegabytes),
    },
    Property {
        name: "max_message_size_in_kilobytes",
        on: INTAKE,
        help: "The largest message",
        shape: ANY_COUNT,
        read: |given| given.number(ANY_COUNT).map(Setting::MaxMessageSizeInKilobytes),
    },
    Property {
        name: "support_ordering",
        on: INTAKE,
        help: "Kept and reported",
        shape: Shape::Switch,
        read: |given| given.switch().map(Setting::SupportOrdering),
    },
    Property {
        name: "filtering_messages_before_publishing",
        on: TOPIC,
        help: "Refuse a message that no subscription wants",
        shape: Shape::Switch,
        read: |given| given.switch().map(Setting::FilteringMessagesBeforePublishing),
    },
    Property {
        name: "default_message_time_to_live",
        on: EVERY,
        help: "How long messages live that do not say",
        shape: Shape::Span,
        read: |given| given.span().map(Setting::DefaultMessageTimeToLive),
    },
    Property {
        name: "auto_delete_on_idle",
        on: EVERY,
        help: "Delete the entity when it has been unused for so long",
        shape: Shape::Span,
        read: |given| given.span().map(Setting::AutoDeleteOnIdle),
    },
    Property {
        name: "status",
        on: EVERY,
        help: "Whether messages go in and out",
        shape: STATUS,
        read: |given| given.text().and_then(Status::parse).map(Setting::Status),
    },
    Property {
        name: "enable_batched_operations",
        on: EVERY,
        help: "Kept and reported; operations are always batched",
        shape: Shape::Switch,
        read: |given| given.switch().map(Setting::EnableBatchedOperations),
    },
    Property {
        name: "user_metadata",
        on: EVERY,
        help: "A note of yours",
        shape: Shape::Text("a text"),
        read: |given| Some(Setting::UserMetadata(Some(given.text()?.into()))),
    },
    Property {
        name: "policy",
        on: OUTLET,
        help: "In which order messages leave: strict, deadline, fifo or aged:STEP",
        shape: POLICY,
        read: |given| given.text().and_then(policy).map(Setting::Policy),
    },
    Property {
        name: "default_level",
        on: OUTLET,
        help: "The level of messages that do not say",
        shape: LEVEL,
        read: |given| given.number(LEVEL).map(|level| Setting::DefaultLevel(Level(level))),
    },
    Property {
        name: "lift",
        on: OUTLET,
        help: "A session ranks by its best waiting message instead of its first",
        shape: Shape::Switch,
        read: |given| given.switch().map(Setting::Lift),
    },
    Property {
        name: "prefetch_share",
        on: OUTLET,
        help: "How much of a link's credit lower messages may fill while higher ones are expected",
        shape: Shape::Share,
        read: |given| given.share().map(Setting::PrefetchShare),
    },
    Property {
        name: "paused",
        on: OUTLET,
        help: "Hold deliveries back; sending goes on",
        shape: Shape::Switch,
        read: |given| given.switch().map(Setting::Paused),
    },
];

/// The keys of an entity that are tables or lists of them, with the kinds that have them.
pub(super) const TABLES: [(&str, On); 4] =
    [("class", OUTLET), ("rescue", OUTLET), ("priority_rule", OUTLET), ("authorization_rule", INTAKE)];

/// Reads a policy: its word, and behind a colon its step.
#[must_use]
pub fn policy(text: &str) -> Option<Policy> {
    match text.split_once(':') {
        Some((word, step)) if word.eq_ignore_ascii_case("aged") => {
            duration::parse(step).ok().map(|step| Policy::Aged { step })
        }
        Some(_) => None,
        None => [Policy::Strict, Policy::Deadline, Policy::Fifo]
            .into_iter()
            .find(|policy| policy.as_str().eq_ignore_ascii_case(text)),
    }
}

/// A forward target; the empty text means none.
fn target(given: Given<'_>, setting: fn(Option<EntityName>) -> Setting) -> Option<Setting> {
    match given.text()? {
        "" => Some(setting(None)),
        name => EntityName::parse(name).ok().map(|name| setting(Some(name))),
    }
}

/// The key in the file that sets an engine's property.
pub(super) fn key_of(property: vorrang_engine::entity::Property) -> String {
    use vorrang_engine::entity::Property as P;
    match property {
        P::Classes => "class".to_owned(),
        P::PriorityRules => "priority_rule".to_owned(),
        P::AuthorizationRules => "authorization_rule".to_owned(),
        other => snake(other.name()),
    }
}

/// `LockDuration` as `lock_duration`.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use vorrang_engine::Span;

    use super::*;

    #[test]
    fn every_row_sets_the_property_it_is_named_after() {
        for property in PROPERTIES {
            let texts = ["true", "1", "10s", "Active", "fifo"];
            let setting = texts.iter().find_map(|text| (property.read)(Given::Typed(text))).unwrap();
            assert_eq!(key_of(setting.property()), property.name);
        }
    }

    #[test]
    fn every_property_of_the_engine_has_a_row_or_a_table() {
        // `Lift` to `Paused` and back: the list of the engine, by its own names.
        let rows = PROPERTIES.len() + TABLES.len();
        assert_eq!(rows, 27, "a property was added to the engine or here: give it a row");
    }

    #[test]
    fn policies_are_words_and_one_has_a_step() {
        let cases = [
            ("strict", Some(Policy::Strict)),
            ("FIFO", Some(Policy::Fifo)),
            ("deadline", Some(Policy::Deadline)),
            ("aged:10s", Some(Policy::Aged { step: Span::seconds(10) })),
            ("aged:PT1M", Some(Policy::Aged { step: Span::minutes(1) })),
            ("aged", None),
            ("aged:", None),
            ("strict:1s", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(policy(text), expected, "{text}");
        }
    }
}
