//! Checking requests. Nothing here changes anything.

use super::{Catalogue, Change, Entity, Kind, Refusal, Request, Subscription, Topic};
use crate::entity::description::{
    Description, Outlet, QueueDescription, SubscriptionDescription, TopicDescription,
};
use crate::entity::limits::EntityLimits;
use crate::entity::name::{EntityName, RuleName, SubscriptionName};
use crate::entity::path::EntityPath;
use crate::entity::rule::{FilterCounts, Rule, RuleDescription, RuleId};
use crate::entity::setting::{Problem, Setting};
use crate::id::{ENTITIES_EVER_MAX, EntityId};

impl Catalogue {
    /// What a request would change, or why it cannot be.
    pub fn decide(&self, request: &Request, limits: &EntityLimits) -> Result<Change, Refusal> {
        match request {
            Request::CreateQueue { name, settings } => self.create_queue(name, settings, limits),
            Request::CreateTopic { name, settings } => self.create_topic(name, settings, limits),
            Request::CreateSubscription { topic, name, settings, first_rule } => {
                self.create_subscription(topic, name, settings, first_rule.as_ref(), limits)
            }
            Request::CreateRule { topic, subscription, rule } => {
                self.create_rule(topic, subscription, rule, limits)
            }
            Request::Update { path, settings } => self.update(path, settings, limits),
            Request::UpdateRule { topic, subscription, rule } => {
                self.update_rule(topic, subscription, rule, limits)
            }
            Request::Delete { path } => {
                let entity = self.find(path).ok_or_else(|| Refusal::NotFound { path: path.clone() })?;
                Ok(Change::Deleted { entity: entity.id })
            }
            Request::DeleteRule { topic, subscription, rule } => {
                let (entity, _, subscription) = self.subscription(topic, subscription)?;
                let found = existing_rule(entity, subscription, rule)?;
                Ok(Change::RuleDeleted { subscription: entity.id, rule: found.id })
            }
        }
    }

    fn create_queue(
        &self,
        name: &EntityName,
        settings: &[Setting],
        limits: &EntityLimits,
    ) -> Result<Change, Refusal> {
        let path = EntityPath::of(name.clone());
        let entity = self.number_for(&path, limits)?;
        let description = QueueDescription::create(settings, limits).map_err(invalid)?;
        self.check_targets(&path, &description.outlet)?;
        Ok(Change::QueueCreated { entity, name: name.clone(), description: Box::new(description) })
    }

    fn create_topic(
        &self,
        name: &EntityName,
        settings: &[Setting],
        limits: &EntityLimits,
    ) -> Result<Change, Refusal> {
        let path = EntityPath::of(name.clone());
        let entity = self.number_for(&path, limits)?;
        let description = TopicDescription::create(settings, limits).map_err(invalid)?;
        Ok(Change::TopicCreated { entity, name: name.clone(), description: Box::new(description) })
    }

    fn create_subscription(
        &self,
        topic: &EntityName,
        name: &SubscriptionName,
        settings: &[Setting],
        first_rule: Option<&RuleDescription>,
        limits: &EntityLimits,
    ) -> Result<Change, Refusal> {
        let (parent, parts) = self.topic(topic)?;
        let path = EntityPath::of_subscription(parent.path.name.clone(), name.clone());
        if parts.subscriptions.contains_key(name) {
            return Err(Refusal::AlreadyExists { path });
        }
        if parts.subscriptions.len() >= limits.subscriptions_per_topic_max {
            return Err(Refusal::TooManySubscriptions {
                topic: parent.path.name.clone(),
                limit: limits.subscriptions_per_topic_max,
            });
        }
        let entity = self.next_number()?;
        let description = SubscriptionDescription::create(settings, limits).map_err(invalid)?;
        self.check_targets(&path, &description.outlet)?;
        let first_rule = first_rule.cloned().unwrap_or_else(RuleDescription::first);
        check_filters(parent, parts, first_rule.counts(), limits)?;
        Ok(Change::SubscriptionCreated {
            entity,
            topic: parent.id,
            name: name.clone(),
            description: Box::new(description),
            rule: self.next_rule()?,
            first_rule: Box::new(first_rule),
        })
    }

    fn create_rule(
        &self,
        topic: &EntityName,
        subscription: &SubscriptionName,
        rule: &RuleDescription,
        limits: &EntityLimits,
    ) -> Result<Change, Refusal> {
        let (entity, parent, subscription) = self.subscription(topic, subscription)?;
        if subscription.rule_names.contains_key(&rule.name) {
            return Err(Refusal::RuleAlreadyExists { path: entity.path.clone(), rule: rule.name.clone() });
        }
        check_filters(entity, parent, rule.counts(), limits)?;
        Ok(Change::RuleCreated {
            subscription: entity.id,
            rule: self.next_rule()?,
            description: Box::new(rule.clone()),
        })
    }

    fn update_rule(
        &self,
        topic: &EntityName,
        subscription: &SubscriptionName,
        rule: &RuleDescription,
        limits: &EntityLimits,
    ) -> Result<Change, Refusal> {
        let (entity, parent, subscription) = self.subscription(topic, subscription)?;
        let existing = existing_rule(entity, subscription, &rule.name)?;
        if existing.description.counts() != rule.counts() {
            check_filters(entity, parent, rule.counts(), limits)?;
        }
        // The name stays as it was spelled at creation.
        let description = RuleDescription { name: existing.description.name.clone(), ..rule.clone() };
        Ok(Change::RuleUpdated {
            subscription: entity.id,
            rule: existing.id,
            description: Box::new(description),
        })
    }

    fn update(
        &self,
        path: &EntityPath,
        settings: &[Setting],
        limits: &EntityLimits,
    ) -> Result<Change, Refusal> {
        let entity = self.find(path).ok_or_else(|| Refusal::NotFound { path: path.clone() })?;
        let id = entity.id;
        match &entity.kind {
            Kind::Queue(old) => {
                let new = old.update(settings, limits).map_err(invalid)?;
                self.check_new_targets(entity, &old.outlet, &new.outlet)?;
                Ok(Change::QueueUpdated { entity: id, description: Box::new(new) })
            }
            Kind::Topic(topic) => Ok(Change::TopicUpdated {
                entity: id,
                description: Box::new(topic.description.update(settings, limits).map_err(invalid)?),
            }),
            Kind::Subscription(subscription) => {
                let old = &subscription.description;
                let new = old.update(settings, limits).map_err(invalid)?;
                self.check_new_targets(entity, &old.outlet, &new.outlet)?;
                Ok(Change::SubscriptionUpdated { entity: id, description: Box::new(new) })
            }
        }
    }

    /// Checks the targets of an update, but only if it changes them: an entity whose target was
    /// deleted must still be able to change its lock duration.
    fn check_new_targets(&self, entity: &Entity, old: &Outlet, new: &Outlet) -> Result<(), Refusal> {
        let unchanged =
            old.forward_to == new.forward_to && old.forward_dead_lettered_to == new.forward_dead_lettered_to;
        if unchanged { Ok(()) } else { self.check_targets(&entity.path, new) }
    }

    /// A number for a new queue or topic of this name.
    fn number_for(&self, path: &EntityPath, limits: &EntityLimits) -> Result<EntityId, Refusal> {
        if self.names.contains_key(&path.name) {
            return Err(Refusal::AlreadyExists { path: path.clone() });
        }
        if self.names.len() >= limits.entities_max {
            return Err(Refusal::TooManyEntities { limit: limits.entities_max });
        }
        self.next_number()
    }

    fn next_number(&self) -> Result<EntityId, Refusal> {
        if self.next_entity >= ENTITIES_EVER_MAX {
            return Err(Refusal::NumbersExhausted { limit: ENTITIES_EVER_MAX });
        }
        Ok(EntityId(self.next_entity))
    }

    fn next_rule(&self) -> Result<RuleId, Refusal> {
        if self.next_rule == u32::MAX {
            return Err(Refusal::NumbersExhausted { limit: u32::MAX });
        }
        Ok(RuleId(self.next_rule))
    }

    fn topic(&self, name: &EntityName) -> Result<(&Entity, &Topic), Refusal> {
        let Some(entity) = self.find_name(name) else {
            return Err(Refusal::NotFound { path: EntityPath::of(name.clone()) });
        };
        let topic = entity.topic().ok_or_else(|| Refusal::NotATopic { name: name.clone() })?;
        Ok((entity, topic))
    }

    fn subscription(
        &self,
        topic: &EntityName,
        name: &SubscriptionName,
    ) -> Result<(&Entity, &Topic, &Subscription), Refusal> {
        let (_, parent) = self.topic(topic)?;
        let found = parent.subscriptions.get(name).and_then(|id| self.entity(*id));
        let found = found.and_then(|entity| Some((entity, parent, entity.subscription()?)));
        found.ok_or_else(|| Refusal::NotFound {
            path: EntityPath::of_subscription(topic.clone(), name.clone()),
        })
    }
}

fn existing_rule<'a>(
    entity: &Entity,
    subscription: &'a Subscription,
    name: &RuleName,
) -> Result<&'a Rule, Refusal> {
    subscription
        .rule(name)
        .ok_or_else(|| Refusal::RuleNotFound { path: entity.path.clone(), rule: name.clone() })
}

/// Whether a topic has room for one more filter of the kind that `added` counts.
fn check_filters(
    entity: &Entity,
    topic: &Topic,
    added: FilterCounts,
    limits: &EntityLimits,
) -> Result<(), Refusal> {
    let counts = topic.filters.plus(added);
    let bounds = [
        ("SQL", added.sql, counts.sql, limits.sql_filters_per_topic_max),
        ("correlation", added.correlation, counts.correlation, limits.correlation_filters_per_topic_max),
    ];
    for (kind, added, count, limit) in bounds {
        if added > 0 && count > limit {
            return Err(Refusal::TooManyFilters { topic: entity.path.name.clone(), kind, limit });
        }
    }
    Ok(())
}

fn invalid(problems: Vec<Problem>) -> Refusal {
    Refusal::Invalid { problems }
}
