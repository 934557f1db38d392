//! What an administrator may ask of the catalogue.

use crate::entity::name::{EntityName, RuleName, SubscriptionName};
use crate::entity::path::EntityPath;
use crate::entity::rule::RuleDescription;
use crate::entity::setting::Setting;

/// A wish to create, change or delete something.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// A new queue.
    CreateQueue {
        /// Its name.
        name: EntityName,
        /// What differs from the defaults.
        settings: Vec<Setting>,
    },
    /// A new topic.
    CreateTopic {
        /// Its name.
        name: EntityName,
        /// What differs from the defaults.
        settings: Vec<Setting>,
    },
    /// A new subscription.
    CreateSubscription {
        /// The topic to subscribe to.
        topic: EntityName,
        /// Its name.
        name: SubscriptionName,
        /// What differs from the defaults.
        settings: Vec<Setting>,
        /// Its first rule, instead of one that takes every message.
        first_rule: Option<RuleDescription>,
    },
    /// A new rule.
    CreateRule {
        /// The topic of the subscription.
        topic: EntityName,
        /// The subscription.
        subscription: SubscriptionName,
        /// The rule.
        rule: RuleDescription,
    },
    /// Other properties for a queue, topic or subscription.
    Update {
        /// Which one.
        path: EntityPath,
        /// What shall differ from now on.
        settings: Vec<Setting>,
    },
    /// Another filter and action for a rule, in its old place.
    UpdateRule {
        /// The topic of the subscription.
        topic: EntityName,
        /// The subscription.
        subscription: SubscriptionName,
        /// The rule, found by its name.
        rule: RuleDescription,
    },
    /// The end of a queue, topic or subscription with everything in it.
    Delete {
        /// Which one.
        path: EntityPath,
    },
    /// The end of a rule.
    DeleteRule {
        /// The topic of the subscription.
        topic: EntityName,
        /// The subscription.
        subscription: SubscriptionName,
        /// The rule.
        rule: RuleName,
    },
}
