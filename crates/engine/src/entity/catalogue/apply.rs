//! Making changes. Nothing here checks anything but that the change fits at all.

use super::{Catalogue, Change, Entity, Kind, Removed, RuleKey, Subscription, Topic};
use crate::entity::name::EntityName;
use crate::entity::path::EntityPath;
use crate::entity::rule::{Rule, RuleDescription, RuleId};
use crate::id::EntityId;
use crate::time::{Span, Timestamp};
use std::sync::Arc;

impl Catalogue {
    /// Makes a change and says which entities it took away; `None` if the change does not fit what is
    /// here, in which case nothing happened.
    pub fn apply(&mut self, change: &Change, at: Timestamp) -> Option<Removed> {
        let removed = match change {
            Change::QueueCreated { entity, name, description } => {
                self.put(*entity, name, at, Kind::Queue((**description).clone()))
            }
            Change::TopicCreated { entity, name, description } => {
                self.put(*entity, name, at, Kind::Topic(Topic::new((**description).clone())))
            }
            Change::SubscriptionCreated { .. } => self.put_subscription(change, at),
            Change::QueueUpdated { entity, description } => self.alter(*entity, at, |kind| match kind {
                Kind::Queue(queue) => {
                    queue.clone_from(description);
                    Some(())
                }
                Kind::Topic(_) | Kind::Subscription(_) => None,
            }),
            Change::TopicUpdated { entity, description } => self.alter(*entity, at, |kind| match kind {
                Kind::Topic(topic) => {
                    topic.description.clone_from(description);
                    Some(())
                }
                Kind::Queue(_) | Kind::Subscription(_) => None,
            }),
            Change::SubscriptionUpdated { entity, description } => {
                self.alter_subscription(*entity, at, |subscription| {
                    subscription.description.clone_from(description);
                    Some(())
                })
            }
            Change::RuleCreated { subscription, rule, description } => {
                self.put_rule(*subscription, *rule, description, at)
            }
            Change::RuleUpdated { subscription, rule, description } => {
                self.replace_rule(*subscription, *rule, description, at)
            }
            Change::RuleDeleted { subscription, rule } => self.remove_rule(*subscription, *rule, at),
            Change::Deleted { entity } => return self.remove(*entity),
        };
        removed.map(|()| Removed::new())
    }

    fn put(&mut self, id: EntityId, name: &EntityName, at: Timestamp, kind: Kind) -> Option<()> {
        if self.names.contains_key(name) {
            return None;
        }
        self.insert(id, EntityPath::of(name.clone()), at, kind)?;
        self.names.insert(name.clone(), id);
        Some(())
    }

    /// Files a new entity under its number. Numbers only grow, so one that was given before is no fit.
    fn insert(&mut self, id: EntityId, path: EntityPath, at: Timestamp, kind: Kind) -> Option<()> {
        if id.0 < self.next_entity {
            return None;
        }
        self.next_entity = id.0.checked_add(1)?;
        let entity = Entity { id, path, created: at, updated: at, kind };
        self.idle.watch(id, at, idle_after(&entity));
        self.by_id.insert(id, Arc::new(entity));
        Some(())
    }

    fn put_subscription(&mut self, change: &Change, at: Timestamp) -> Option<()> {
        let Change::SubscriptionCreated { entity, topic, name, description, rule, first_rule } = change
        else {
            return None;
        };
        let parent = self.entity(*topic)?;
        let path = EntityPath::of_subscription(parent.path.name.clone(), name.clone());
        if rule.0 < self.next_rule || parent.topic()?.subscriptions.contains_key(name) {
            return None;
        }
        let subscription = Subscription::new((**description).clone(), *topic, []);
        self.insert(*entity, path, at, Kind::Subscription(subscription))?;
        self.topic_mut(*topic)?.subscriptions.insert(name.clone(), *entity);
        self.put_rule(*entity, *rule, first_rule, at)
    }

    fn put_rule(
        &mut self,
        subscription: EntityId,
        rule: RuleId,
        description: &RuleDescription,
        at: Timestamp,
    ) -> Option<()> {
        if rule.0 < self.next_rule {
            return None;
        }
        self.alter_subscription(subscription, at, |subscription| {
            if subscription.rule_names.contains_key(&description.name) {
                return None;
            }
            subscription.rule_names.insert(description.name.clone(), rule);
            let new = Rule { id: rule, created: at, description: description.clone() };
            subscription.rules.insert(rule, Arc::new(new));
            Some(())
        })?;
        self.next_rule = rule.0.checked_add(1)?;
        self.topic_of(subscription)?.admit((subscription, rule), description);
        Some(())
    }

    fn replace_rule(
        &mut self,
        subscription: EntityId,
        rule: RuleId,
        description: &RuleDescription,
        at: Timestamp,
    ) -> Option<()> {
        let mut before = None;
        self.alter_subscription(subscription, at, |subscription| {
            let existing = Arc::make_mut(subscription.rules.get_mut(&rule)?);
            // The name stays as it is: it is what the rule was found by.
            let after = RuleDescription { name: existing.description.name.clone(), ..description.clone() };
            before = Some(std::mem::replace(&mut existing.description, after));
            Some(())
        })?;
        let topic = self.topic_of(subscription)?;
        topic.dismiss((subscription, rule), &before?);
        topic.admit((subscription, rule), description);
        Some(())
    }

    fn remove_rule(&mut self, subscription: EntityId, rule: RuleId, at: Timestamp) -> Option<()> {
        let mut gone = None;
        self.alter_subscription(subscription, at, |subscription| {
            let removed = subscription.rules.remove(&rule)?;
            subscription.rule_names.remove(&removed.description.name);
            gone = Some(removed.description.clone());
            Some(())
        })?;
        self.topic_of(subscription)?.dismiss((subscription, rule), &gone?);
        Some(())
    }

    fn topic_of(&mut self, subscription: EntityId) -> Option<&mut Topic> {
        let topic = self.entity(subscription)?.subscription()?.topic;
        self.topic_mut(topic)
    }

    pub(super) fn topic_mut(&mut self, topic: EntityId) -> Option<&mut Topic> {
        match &mut Arc::make_mut(self.by_id.get_mut(&topic)?).kind {
            Kind::Topic(topic) => Some(topic),
            Kind::Queue(_) | Kind::Subscription(_) => None,
        }
    }

    fn alter(
        &mut self,
        id: EntityId,
        at: Timestamp,
        change: impl FnOnce(&mut Kind) -> Option<()>,
    ) -> Option<()> {
        let entity = Arc::make_mut(self.by_id.get_mut(&id)?);
        change(&mut entity.kind)?;
        entity.updated = at;
        self.idle.watch(id, at, idle_after(entity));
        Some(())
    }

    fn alter_subscription(
        &mut self,
        id: EntityId,
        at: Timestamp,
        change: impl FnOnce(&mut Subscription) -> Option<()>,
    ) -> Option<()> {
        self.alter(id, at, |kind| match kind {
            Kind::Subscription(subscription) => change(subscription),
            Kind::Queue(_) | Kind::Topic(_) => None,
        })
    }

    /// Takes an entity away, and with a topic its subscriptions.
    fn remove(&mut self, id: EntityId) -> Option<Removed> {
        let entity = self.by_id.remove(&id)?;
        let mut removed = vec![id];
        match &entity.kind {
            Kind::Queue(_) => {
                self.names.remove(&entity.path.name);
            }
            Kind::Topic(topic) => {
                self.names.remove(&entity.path.name);
                removed.extend(topic.subscriptions.values());
            }
            Kind::Subscription(subscription) => {
                if let (Some(topic), Some(name)) =
                    (self.topic_mut(subscription.topic), &entity.path.subscription)
                {
                    topic.subscriptions.remove(name);
                    for rule in subscription.rules.values() {
                        topic.dismiss((id, rule.id), &rule.description);
                    }
                }
            }
        }
        for gone in &removed {
            self.by_id.remove(gone);
            self.idle.forget(*gone);
        }
        Some(removed)
    }
}

impl Topic {
    /// Counts a rule of one of the subscriptions and makes it findable.
    pub(super) fn admit(&mut self, key: RuleKey, rule: &RuleDescription) {
        self.filters = self.filters.plus(rule.counts());
        Arc::make_mut(&mut self.index).insert(key, &rule.filter);
    }

    /// Forgets a rule that was admitted as this.
    fn dismiss(&mut self, key: RuleKey, rule: &RuleDescription) {
        self.filters = self.filters.minus(rule.counts());
        Arc::make_mut(&mut self.index).remove(&key);
    }
}

/// After how long without use an entity deletes itself. One that forwards is used by nobody but its
/// senders and is kept for ever, as in Service Bus.
pub(super) fn idle_after(entity: &Entity) -> Span {
    match entity.outlet() {
        Some(outlet) if outlet.forward_to.is_some() => Span::FOREVER,
        _ => entity.shared().auto_delete_on_idle,
    }
}
