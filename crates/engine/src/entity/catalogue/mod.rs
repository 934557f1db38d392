//! Every entity of a namespace, by number and by name.
//!
//! A [`Request`] asks for something to be created, changed or deleted; [`Catalogue::decide`] checks it
//! and answers with a [`Change`]; [`Catalogue::apply`] makes the change, live and at recovery alike.
//!
//! What must stay true: queues and topics share one name space; numbers are never used again, so a
//! deleted and re-created entity is another one; a subscription belongs to a topic that exists; the
//! filter counts of a topic are those of its subscriptions' rules. Forward targets exist when they are
//! set, but may be deleted later: they are kept by name, and mean whoever bears it.

mod apply;
mod change;
mod decide;
mod forwarding;
mod refusal;
mod request;
mod restore;

pub use change::{Change, Removed};
pub use refusal::Refusal;
pub use request::Request;

use super::description::{
    Intake, Outlet, QueueDescription, Shared, SubscriptionDescription, TopicDescription,
};
use super::idle::Idle;
use super::name::{EntityName, RuleName, SubscriptionName};
use super::path::EntityPath;
use super::rule::{FilterCounts, Rule, RuleId};
use crate::id::EntityId;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use vorrang_filter::RuleIndex;

/// By number, for the hot path. Never iterated: its order would mean nothing.
type ById = hashbrown::HashMap<EntityId, Arc<Entity>, foldhash::fast::FixedState>;

/// All entities.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    by_id: ById,
    /// Queues and topics.
    names: BTreeMap<EntityName, EntityId>,
    idle: Idle,
    next_entity: u32,
    next_rule: u32,
}

/// A queue, topic or subscription with what is known about it beside its messages.
#[derive(Debug, Clone)]
pub struct Entity {
    /// Its number.
    pub id: EntityId,
    /// Its path, spelled as it was created.
    pub path: EntityPath,
    /// When it was created.
    pub created: Timestamp,
    /// When its description or rules last changed.
    pub updated: Timestamp,
    /// Which kind it is, with what only that kind has.
    pub kind: Kind,
}

/// The kinds of entities.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A queue.
    Queue(QueueDescription),
    /// A topic.
    Topic(Topic),
    /// A subscription.
    Subscription(Subscription),
}

/// A topic and who has subscribed.
#[derive(Debug, Clone)]
pub struct Topic {
    /// What it was told to be.
    pub description: TopicDescription,
    /// Its subscriptions by name.
    pub subscriptions: BTreeMap<SubscriptionName, EntityId>,
    /// The filters of all their rules.
    pub filters: FilterCounts,
    /// The same rules, found by what a message has.
    pub(crate) index: Arc<RuleIndex<RuleKey>>,
}

/// A rule among those of a topic: by subscription, and there in the order of creation.
pub(crate) type RuleKey = (EntityId, RuleId);

/// A subscription and its rules.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// What it was told to be.
    pub description: SubscriptionDescription,
    /// The topic that feeds it.
    pub topic: EntityId,
    /// Its rules in the order of their creation, which is that of their numbers.
    pub rules: BTreeMap<RuleId, Arc<Rule>>,
    /// The same by name.
    pub rule_names: BTreeMap<RuleName, RuleId>,
}

impl Catalogue {
    /// The entity with this number.
    #[must_use]
    pub fn entity(&self, id: EntityId) -> Option<&Entity> {
        self.by_id.get(&id).map(|entity| &**entity)
    }

    /// The entity a path leads to, whichever of its mailboxes the path means.
    #[must_use]
    pub fn find(&self, path: &EntityPath) -> Option<&Entity> {
        let entity = self.find_name(&path.name)?;
        match &path.subscription {
            None => Some(entity),
            Some(name) => self.entity(*entity.topic()?.subscriptions.get(name)?),
        }
    }

    /// The queue or topic of this name.
    #[must_use]
    pub fn find_name(&self, name: &EntityName) -> Option<&Entity> {
        self.entity(*self.names.get(name)?)
    }

    /// Queues and topics in the order of their names.
    pub fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.names.values().filter_map(|id| self.entity(*id))
    }

    /// A topic's subscriptions in the order of their names; none for anything else.
    pub fn subscriptions(&self, topic: EntityId) -> impl Iterator<Item = &Entity> {
        let ids = self.entity(topic).and_then(Entity::topic).map(|topic| topic.subscriptions.values());
        ids.into_iter().flatten().filter_map(|id| self.entity(*id))
    }

    /// Every entity after a path: queues and topics in the order of their names, each topic followed by
    /// its subscriptions. Costs what is looked at, wherever it begins.
    pub fn walk(&self, after: Option<&EntityPath>) -> impl Iterator<Item = &Arc<Entity>> {
        let whole = |id: EntityId| {
            let entity = self.by_id.get(&id).into_iter();
            entity.chain(self.subscriptions_after(id, None))
        };
        let begun = after.and_then(|path| Some((*self.names.get(&path.name)?, path.subscription.as_ref())));
        let begun = begun.into_iter().flat_map(|(id, name)| self.subscriptions_after(id, name));
        let from = after.map_or(Bound::Unbounded, |path| Bound::Excluded(&path.name));
        let rest = self.names.range((from, Bound::Unbounded));
        begun.chain(rest.flat_map(move |(_, id)| whole(*id)))
    }

    fn subscriptions_after(
        &self,
        topic: EntityId,
        after: Option<&SubscriptionName>,
    ) -> impl Iterator<Item = &Arc<Entity>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let topic = self.entity(topic).and_then(Entity::topic);
        let ids = topic.map(|topic| topic.subscriptions.range((from, Bound::Unbounded)));
        ids.into_iter().flatten().filter_map(|(_, id)| self.by_id.get(id))
    }

    /// The entity with this number, to be kept: later changes are made to a copy.
    #[must_use]
    pub fn shared(&self, id: EntityId) -> Option<&Arc<Entity>> {
        self.by_id.get(&id)
    }

    /// How many queues and topics there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no entity at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Who has been used when, and who is due to be deleted for not having been.
    #[must_use]
    pub fn idle(&self) -> &Idle {
        &self.idle
    }

    /// Notes that an entity was used. Cheap enough for every message.
    pub fn touch(&mut self, id: EntityId, now: Timestamp) {
        self.idle.touch(id, now);
    }
}

impl Entity {
    /// What every entity has.
    #[must_use]
    pub fn shared(&self) -> &Shared {
        match &self.kind {
            Kind::Queue(queue) => &queue.shared,
            Kind::Topic(topic) => &topic.description.shared,
            Kind::Subscription(subscription) => &subscription.description.shared,
        }
    }

    /// How messages come in; a subscription takes them from its topic alone.
    #[must_use]
    pub fn intake(&self) -> Option<&Intake> {
        match &self.kind {
            Kind::Queue(queue) => Some(&queue.intake),
            Kind::Topic(topic) => Some(&topic.description.intake),
            Kind::Subscription(_) => None,
        }
    }

    /// How messages leave; a topic keeps none.
    #[must_use]
    pub fn outlet(&self) -> Option<&Outlet> {
        match &self.kind {
            Kind::Queue(queue) => Some(&queue.outlet),
            Kind::Topic(_) => None,
            Kind::Subscription(subscription) => Some(&subscription.description.outlet),
        }
    }

    /// The topic, if it is one.
    #[must_use]
    pub fn topic(&self) -> Option<&Topic> {
        match &self.kind {
            Kind::Topic(topic) => Some(topic),
            Kind::Queue(_) | Kind::Subscription(_) => None,
        }
    }

    /// The subscription, if it is one.
    #[must_use]
    pub fn subscription(&self) -> Option<&Subscription> {
        match &self.kind {
            Kind::Subscription(subscription) => Some(subscription),
            Kind::Queue(_) | Kind::Topic(_) => None,
        }
    }
}

impl Topic {
    /// A topic that nobody has subscribed to.
    #[must_use]
    pub fn new(description: TopicDescription) -> Topic {
        Topic {
            description,
            subscriptions: BTreeMap::new(),
            filters: FilterCounts::default(),
            index: Arc::default(),
        }
    }
}

impl Subscription {
    /// A subscription to `topic` with these rules.
    #[must_use]
    pub fn new(
        description: SubscriptionDescription,
        topic: EntityId,
        rules: impl IntoIterator<Item = Rule>,
    ) -> Subscription {
        let rules: BTreeMap<_, _> = rules.into_iter().map(|rule| (rule.id, Arc::new(rule))).collect();
        let rule_names = rules.values().map(|rule| (rule.description.name.clone(), rule.id)).collect();
        Subscription { description, topic, rules, rule_names }
    }

    /// The rule of this name.
    #[must_use]
    pub fn rule(&self, name: &RuleName) -> Option<&Rule> {
        self.rules.get(self.rule_names.get(name)?).map(|rule| &**rule)
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
