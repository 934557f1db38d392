//! What watchers are told: changes to entities as they happen, dead letters as a count for each step.
//!
//! Without watchers this costs a look at an empty set for each fact.

use super::Core;
use crate::api::{Event, News};
use crate::shard::peer::PeerId;
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::entity::{Change, EntityPath};
use vorrang_engine::{EntityId, Fact, MailboxId};

/// Who watches, and what they have not been told yet.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    ids: BTreeSet<PeerId>,
    dead_lettered: BTreeMap<EntityId, u64>,
}

impl Watchers {
    pub(super) fn add(&mut self, id: PeerId) {
        self.ids.insert(id);
    }

    pub(super) fn remove(&mut self, id: PeerId) {
        self.ids.remove(&id);
    }
}

impl Core {
    /// The path of an entity that a fact is about to delete; afterwards nobody knows it.
    pub(super) fn path_to_go(&self, fact: &Fact) -> Option<EntityPath> {
        match fact {
            Fact::Administered { change, .. } if !self.watchers.ids.is_empty() => match **change {
                Change::Deleted { entity } => self.path_of(entity),
                _ => None,
            },
            _ => None,
        }
    }

    /// Tells the watchers of a fact that was applied.
    pub(super) fn spread(&mut self, fact: &Fact, gone: Option<EntityPath>) {
        if self.watchers.ids.is_empty() {
            return;
        }
        match fact {
            Fact::Administered { change, .. } => {
                let news = match **change {
                    Change::QueueCreated { entity, .. }
                    | Change::TopicCreated { entity, .. }
                    | Change::SubscriptionCreated { entity, .. } => self.path_of(entity).map(News::Created),
                    Change::QueueUpdated { entity, .. }
                    | Change::TopicUpdated { entity, .. }
                    | Change::SubscriptionUpdated { entity, .. }
                    | Change::RuleCreated { subscription: entity, .. }
                    | Change::RuleUpdated { subscription: entity, .. }
                    | Change::RuleDeleted { subscription: entity, .. } => {
                        self.path_of(entity).map(News::Changed)
                    }
                    Change::Deleted { .. } => gone.map(News::Deleted),
                };
                if let Some(news) = news {
                    self.tell_watchers(&news);
                }
            }
            Fact::DeadLettered { mailbox, .. } => self.count_dead_letter(*mailbox),
            // A copy may go from its topic straight to the dead-letter queue.
            Fact::Published { copies, .. } | Fact::Relayed { copies, .. } => {
                for copy in copies {
                    if copy.mailbox == MailboxId::dead_letter(copy.mailbox.entity()) {
                        self.count_dead_letter(copy.mailbox);
                    }
                }
            }
            _ => {}
        }
    }

    fn count_dead_letter(&mut self, mailbox: MailboxId) {
        let count = self.watchers.dead_lettered.entry(mailbox.entity()).or_default();
        *count = count.saturating_add(1);
    }

    /// Tells the watchers of the dead letters of this step.
    pub(super) fn tell_dead_letters(&mut self) {
        for (entity, count) in std::mem::take(&mut self.watchers.dead_lettered) {
            if let Some(path) = self.path_of(entity) {
                self.tell_watchers(&News::DeadLettered(path, count));
            }
        }
    }

    fn tell_watchers(&mut self, news: &News) {
        let ids: Vec<PeerId> = self.watchers.ids.iter().copied().collect();
        for id in ids {
            let event = Event::News { news: news.clone(), at: self.now };
            self.tell_after(self.writer.newest(), id, event);
        }
    }

    fn path_of(&self, entity: EntityId) -> Option<EntityPath> {
        self.state.catalogue().entity(entity).map(|entity| entity.path.clone())
    }
}
