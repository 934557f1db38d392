//! Making changes. Nothing here checks anything but that the change fits at all.

use super::{Catalogue, Change, Entity, Kind, Removed, Subscription, Topic};
use crate::entity::name::EntityName;
use crate::entity::path::EntityPath;
use crate::entity::rule::{FilterCounts, Rule, RuleDescription, RuleId};
use crate::id::EntityId;
use crate::time::{Span, Timestamp};
use std::collections::BTreeMap;
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
                let topic = Topic {
                    description: (**description).clone(),
                    subscriptions: BTreeMap::new(),
                    filters: FilterCounts::default(),
                };
                self.put(*entity, name, at, Kind::Topic(topic))
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
        let kind = Kind::Subscription(Subscription {
            description: (**description).clone(),
            topic: *topic,
            rules: BTreeMap::new(),
            rule_names: BTreeMap::new(),
        });
        self.insert(*entity, path, at, kind)?;
        let parent = Arc::make_mut(self.by_id.get_mut(topic)?);
        if let Kind::Topic(parts) = &mut parent.kind {
            parts.subscriptions.insert(name.clone(), *entity);
        }
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
        let counts = description.counts();
        self.alter_subscription(subscription, at, |subscription| {
            if subscription.rule_names.contains_key(&description.name) {
                return None;
            }
            subscription.rule_names.insert(description.name.clone(), rule);
            let new = Rule { id: rule, created: at, description: description.clone() };
            subscription.rules.insert(rule, new);
            Some(())
        })?;
        self.next_rule = rule.0.checked_add(1)?;
        self.recount(subscription, FilterCounts::default(), counts)
    }

    fn replace_rule(
        &mut self,
        subscription: EntityId,
        rule: RuleId,
        description: &RuleDescription,
        at: Timestamp,
    ) -> Option<()> {
        let mut before = FilterCounts::default();
        self.alter_subscription(subscription, at, |subscription| {
            let existing = subscription.rules.get_mut(&rule)?;
            before = existing.description.counts();
            existing.description.filter.clone_from(&description.filter);
            Some(())
        })?;
        self.recount(subscription, before, description.counts())
    }

    fn remove_rule(&mut self, subscription: EntityId, rule: RuleId, at: Timestamp) -> Option<()> {
        let mut before = FilterCounts::default();
        self.alter_subscription(subscription, at, |subscription| {
            let gone = subscription.rules.remove(&rule)?;
            subscription.rule_names.remove(&gone.description.name);
            before = gone.description.counts();
            Some(())
        })?;
        self.recount(subscription, before, FilterCounts::default())
    }

    /// Keeps a topic's filter counts equal to what its subscriptions have.
    fn recount(&mut self, subscription: EntityId, before: FilterCounts, after: FilterCounts) -> Option<()> {
        let topic = self.entity(subscription)?.subscription()?.topic;
        let topic = Arc::make_mut(self.by_id.get_mut(&topic)?);
        if let Kind::Topic(topic) = &mut topic.kind {
            topic.filters = topic.filters.minus(before).plus(after);
        }
        Some(())
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
                let counts = subscription.rules.values().map(|rule| rule.description.counts());
                let counts = counts.fold(FilterCounts::default(), FilterCounts::plus);
                let parent = self.by_id.get_mut(&subscription.topic).map(Arc::make_mut);
                if let (Some(Entity { kind: Kind::Topic(topic), .. }), Some(name)) =
                    (parent, &entity.path.subscription)
                {
                    topic.subscriptions.remove(name);
                    topic.filters = topic.filters.minus(counts);
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

/// After how long without use an entity deletes itself. One that forwards is used by nobody but its
/// senders and is kept for ever, as in Service Bus.
pub(super) fn idle_after(entity: &Entity) -> Span {
    match entity.outlet() {
        Some(outlet) if outlet.forward_to.is_some() => Span::FOREVER,
        _ => entity.shared().auto_delete_on_idle,
    }
}
