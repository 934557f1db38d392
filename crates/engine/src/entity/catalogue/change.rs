//! What happens to the catalogue, as it is written down.

use crate::entity::description::{QueueDescription, SubscriptionDescription, TopicDescription};
use crate::entity::name::{EntityName, SubscriptionName};
use crate::entity::rule::{RuleDescription, RuleId};
use crate::id::EntityId;

/// One change. It says everything: making it needs no limits, no checks and no choice.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A queue came to be.
    QueueCreated {
        /// Its number.
        entity: EntityId,
        /// Its name.
        name: EntityName,
        /// What it is told to be.
        description: Box<QueueDescription>,
    },
    /// A topic came to be.
    TopicCreated {
        /// Its number.
        entity: EntityId,
        /// Its name.
        name: EntityName,
        /// What it is told to be.
        description: Box<TopicDescription>,
    },
    /// A subscription came to be, with its first rule.
    SubscriptionCreated {
        /// Its number.
        entity: EntityId,
        /// Its topic.
        topic: EntityId,
        /// Its name.
        name: SubscriptionName,
        /// What it is told to be.
        description: Box<SubscriptionDescription>,
        /// The number of its first rule.
        rule: RuleId,
        /// Its first rule.
        first_rule: Box<RuleDescription>,
    },
    /// A queue is told to be something else.
    QueueUpdated {
        /// Which.
        entity: EntityId,
        /// What it is from now on.
        description: Box<QueueDescription>,
    },
    /// A topic is told to be something else.
    TopicUpdated {
        /// Which.
        entity: EntityId,
        /// What it is from now on.
        description: Box<TopicDescription>,
    },
    /// A subscription is told to be something else.
    SubscriptionUpdated {
        /// Which.
        entity: EntityId,
        /// What it is from now on.
        description: Box<SubscriptionDescription>,
    },
    /// A rule was added behind the others.
    RuleCreated {
        /// Of which subscription.
        subscription: EntityId,
        /// Its number.
        rule: RuleId,
        /// What it does.
        description: Box<RuleDescription>,
    },
    /// A rule does something else from now on, in its old place and under its old number.
    RuleUpdated {
        /// Of which subscription.
        subscription: EntityId,
        /// Which.
        rule: RuleId,
        /// What it does.
        description: Box<RuleDescription>,
    },
    /// A rule is gone.
    RuleDeleted {
        /// Of which subscription.
        subscription: EntityId,
        /// Which.
        rule: RuleId,
    },
    /// An entity is gone, a topic with its subscriptions.
    Deleted {
        /// Which.
        entity: EntityId,
    },
}

/// The entities a change took away: their messages, sessions and links go too.
pub type Removed = Vec<EntityId>;
