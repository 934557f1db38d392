//! A subscription's rule: which messages it takes, and what it does to its copy.

use super::name::RuleName;
use crate::time::Timestamp;
use std::sync::Arc;
use vorrang_filter::{Action, Filter};

/// A rule, as the catalogue numbers it. Never used again, so that a fact about a removed rule cannot
/// touch a later one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

/// A rule as it was given: parsed, so nothing is left to check.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleDescription {
    /// Its name within the subscription.
    pub name: RuleName,
    /// Which messages it takes.
    pub filter: Filter,
    /// What it changes in its own copy. Rules without one share a copy.
    pub action: Option<Arc<Action>>,
}

/// A rule in its subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its number.
    pub id: RuleId,
    /// When it was created.
    pub created: Timestamp,
    /// What it does.
    pub description: RuleDescription,
}

/// How many filters of each kind there are; Service Bus limits and reports the two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilterCounts {
    /// SQL filters, with the true and false filters, which are SQL to Service Bus.
    pub sql: usize,
    /// Correlation filters.
    pub correlation: usize,
}

impl RuleDescription {
    /// The rule of a subscription whose creator brings none: every message, unchanged.
    #[must_use]
    pub fn first() -> RuleDescription {
        RuleDescription { name: RuleName::first(), filter: Filter::True, action: None }
    }

    /// This rule alone, as a count.
    #[must_use]
    pub fn counts(&self) -> FilterCounts {
        match self.filter {
            Filter::Correlation(_) => FilterCounts { sql: 0, correlation: 1 },
            _ => FilterCounts { sql: 1, correlation: 0 },
        }
    }
}

impl FilterCounts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: FilterCounts) -> FilterCounts {
        FilterCounts {
            sql: self.sql.saturating_add(other.sql),
            correlation: self.correlation.saturating_add(other.correlation),
        }
    }

    /// Without the others, which were counted in before.
    #[must_use]
    pub fn minus(self, other: FilterCounts) -> FilterCounts {
        FilterCounts {
            sql: self.sql.saturating_sub(other.sql),
            correlation: self.correlation.saturating_sub(other.correlation),
        }
    }
}
