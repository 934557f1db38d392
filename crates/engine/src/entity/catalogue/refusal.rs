//! Why the catalogue says no.

use crate::entity::name::{EntityName, RuleName};
use crate::entity::path::EntityPath;
use crate::entity::setting::{Problem, Property};

/// A request that is not possible. It names what was asked for and the bound it met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such queue, topic or subscription. Service Bus: 404, `amqp:not-found`.
    #[error("the messaging entity '{path}' could not be found")]
    NotFound {
        /// What was asked for.
        path: EntityPath,
    },
    /// There is no such rule. Service Bus: 404, `amqp:not-found`.
    #[error("the rule '{rule}' of '{path}' could not be found")]
    RuleNotFound {
        /// The subscription.
        path: EntityPath,
        /// The rule asked for.
        rule: RuleName,
    },
    /// The name is taken, by a queue or a topic. Service Bus: 409, `entity-already-exists`.
    #[error("'{path}' exists already")]
    AlreadyExists {
        /// What was to be created.
        path: EntityPath,
    },
    /// The rule's name is taken. Service Bus: 409, `entity-already-exists`.
    #[error("the rule '{rule}' of '{path}' exists already")]
    RuleAlreadyExists {
        /// The subscription.
        path: EntityPath,
        /// The rule that was to be created.
        rule: RuleName,
    },
    /// Subscriptions belong to topics, and this is a queue. Service Bus: 400.
    #[error("'{name}' is a queue and has no subscriptions")]
    NotATopic {
        /// The queue.
        name: EntityName,
    },
    /// Properties out of bounds, all of them. Service Bus: 400.
    #[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid {
        /// Each with its bound.
        problems: Vec<Problem>,
    },
    /// The namespace is full. Service Bus: 403.
    #[error("the namespace holds {limit} queues and topics, which is its limit")]
    TooManyEntities {
        /// How many there may be.
        limit: usize,
    },
    /// Every number has been given away. No practical namespace gets here.
    #[error("the namespace has created {limit} entities, which is as many as it ever can")]
    NumbersExhausted {
        /// How many there can be.
        limit: u32,
    },
    /// The topic is full. Service Bus: 403.
    #[error("the topic '{topic}' has {limit} subscriptions, which is its limit")]
    TooManySubscriptions {
        /// The topic.
        topic: EntityName,
        /// How many there may be.
        limit: usize,
    },
    /// The topic's subscriptions have too many filters of one kind. Service Bus: 403.
    #[error("the topic '{topic}' has {limit} {kind} filters, which is its limit")]
    TooManyFilters {
        /// The topic.
        topic: EntityName,
        /// `SQL` or `correlation`.
        kind: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// A forward target must exist when it is set. Service Bus: 400.
    #[error("{property} of '{path}' cannot be '{target}': there is no such queue or topic")]
    TargetMissing {
        /// Who was to forward.
        path: EntityPath,
        /// Which forwarding.
        property: Property,
        /// Where to.
        target: EntityName,
    },
    /// An entity cannot forward to itself, a subscription not to its own topic. Service Bus: 400.
    #[error("{property} of '{path}' cannot be '{target}': messages would come back to where they left")]
    TargetIsSource {
        /// Who was to forward.
        path: EntityPath,
        /// Which forwarding.
        property: Property,
        /// Where to.
        target: EntityName,
    },
    /// Messages would go round in a circle. Service Bus: 400.
    #[error(
        "ForwardTo of '{path}' cannot be '{target}': '{target}' forwards back to it, perhaps through others"
    )]
    ForwardLoop {
        /// Who was to forward.
        path: EntityPath,
        /// Where to.
        target: EntityName,
    },
}
