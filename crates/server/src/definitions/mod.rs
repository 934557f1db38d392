//! Entities that should exist, as a file describes them: created at start where they are missing.

pub mod apply;
pub mod emulator;
pub mod fuzzing;

use vorrang_engine::entity::{EntityName, RuleDescription, Setting, SubscriptionName};

/// Everything a definitions file asks for, in the order it is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Definitions {
    /// Queues to have.
    pub queues: Vec<QueueDefinition>,
    /// Topics to have, with their subscriptions.
    pub topics: Vec<TopicDefinition>,
}

/// A queue to have.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueDefinition {
    /// Its name.
    pub name: EntityName,
    /// What differs from the defaults.
    pub settings: Vec<Setting>,
}

/// A topic to have.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicDefinition {
    /// Its name.
    pub name: EntityName,
    /// What differs from the defaults.
    pub settings: Vec<Setting>,
    /// Its subscriptions.
    pub subscriptions: Vec<SubscriptionDefinition>,
}

/// A subscription to have.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionDefinition {
    /// Its name.
    pub name: SubscriptionName,
    /// What differs from the defaults.
    pub settings: Vec<Setting>,
    /// Its rules; none means the default rule that lets everything through.
    pub rules: Vec<RuleDescription>,
}
