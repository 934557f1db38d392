//! Taking a catalogue apart for a snapshot, and putting it together again.

use super::{Catalogue, Entity, Kind, Topic};
use crate::entity::catalogue::apply::idle_after;
use crate::id::EntityId;
use crate::time::Timestamp;
use std::sync::Arc;

impl Catalogue {
    /// Every entity with the time it was last used, in the order of numbers: a topic before its
    /// subscriptions.
    #[must_use]
    pub fn parts(&self) -> Vec<(Arc<Entity>, Timestamp)> {
        let topics = self.names.values();
        let subscriptions = topics.clone().filter_map(|id| self.entity(*id)?.topic());
        let subscriptions = subscriptions.flat_map(|topic| topic.subscriptions.values());
        let mut ids: Vec<EntityId> = topics.chain(subscriptions).copied().collect();
        ids.sort_unstable();
        let part = |id| Some((Arc::clone(self.by_id.get(&id)?), self.idle.accessed(id)?));
        ids.into_iter().filter_map(part).collect()
    }

    /// The numbers that the next entity and the next rule will have.
    #[must_use]
    pub fn next_numbers(&self) -> (u32, u32) {
        (self.next_entity, self.next_rule)
    }

    /// Goes on counting where another catalogue left off; never backwards.
    pub fn restore_numbers(&mut self, next_entity: u32, next_rule: u32) {
        self.next_entity = self.next_entity.max(next_entity);
        self.next_rule = self.next_rule.max(next_rule);
    }

    /// Puts back one of the [`parts`](Catalogue::parts); `None` if there is something in its place or
    /// nothing where its topic should be. What a topic knows of its subscriptions is not taken over: it
    /// comes back with them.
    pub fn restore(&mut self, entity: &Arc<Entity>, accessed: Timestamp) -> Option<()> {
        let id = entity.id;
        if self.by_id.contains_key(&id) {
            return None;
        }
        let mut entity = Arc::clone(entity);
        match &entity.kind {
            Kind::Queue(_) => self.restore_name(&entity)?,
            Kind::Topic(topic) => {
                let alone = Topic::new(topic.description.clone());
                self.restore_name(&entity)?;
                Arc::make_mut(&mut entity).kind = Kind::Topic(alone);
            }
            Kind::Subscription(subscription) => {
                let name = entity.path.subscription.clone()?;
                let topic = self.topic_mut(subscription.topic)?;
                if topic.subscriptions.contains_key(&name) {
                    return None;
                }
                topic.subscriptions.insert(name, id);
                for rule in subscription.rules.values() {
                    topic.admit((id, rule.id), &rule.description);
                }
                let highest =
                    subscription.rules.keys().next_back().map_or(0, |rule| rule.0.saturating_add(1));
                self.next_rule = self.next_rule.max(highest);
            }
        }
        self.next_entity = self.next_entity.max(id.0.saturating_add(1));
        self.idle.watch(id, accessed, idle_after(&entity));
        self.by_id.insert(id, entity);
        Some(())
    }

    fn restore_name(&mut self, entity: &Entity) -> Option<()> {
        if self.names.contains_key(&entity.path.name) {
            return None;
        }
        self.names.insert(entity.path.name.clone(), entity.id);
        Some(())
    }
}
