//! Entities that should exist, as a file describes them: created at start where they are missing.

pub mod emulator;

use vorrang_engine::entity::{EntityName, RuleName, Setting, SubscriptionName};
use vorrang_filter::Correlation;

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
    pub rules: Vec<RuleDefinition>,
}

/// A rule to have.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleDefinition {
    /// Its name.
    pub name: RuleName,
    /// Which messages it lets through.
    pub filter: FilterDefinition,
    /// What it changes on its copy, as SQL.
    pub action: Option<String>,
}

/// A filter as it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum FilterDefinition {
    /// Lets every message through.
    True,
    /// Lets none through.
    False,
    /// SQL text, checked when the rule is created.
    Sql(String),
    /// Equal fields.
    Correlation(Correlation),
}
