//! The keys in force: those of the namespace, and those of its entities as they come and go.

use crate::access::{Grant, KeyRing, Rejected, Scope, Token};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use vorrang_engine::Timestamp;
use vorrang_engine::entity::authorization::AuthorizationRule;
use vorrang_engine::entity::{Catalogue, Change, Entity};

/// A key ring that follows the catalogue. Read by the doors, written by the shard.
#[derive(Debug)]
pub struct Keys {
    namespace: Vec<AuthorizationRule>,
    ring: RwLock<KeyRing>,
}

impl Keys {
    pub(super) fn new(namespace: &[AuthorizationRule], catalogue: &Catalogue) -> Keys {
        let keys = Keys { namespace: namespace.to_vec(), ring: RwLock::new(KeyRing::default()) };
        keys.gather(catalogue);
        keys
    }

    /// Checks a token for an audience.
    pub fn verify(&self, token: &Token<'_>, audience: &Scope, now: Timestamp) -> Result<Grant, Rejected> {
        self.read().verify(token, audience, now)
    }

    /// Checks a key name and key given as user and password.
    pub fn log_in(&self, key_name: &str, password: &str) -> Result<Vec<Grant>, Rejected> {
        self.read().log_in(key_name, password)
    }

    /// Takes over what a change did to the keys, after it was made.
    pub(super) fn follow(&self, change: &Change, catalogue: &Catalogue) {
        match change {
            Change::QueueCreated { entity, .. }
            | Change::TopicCreated { entity, .. }
            | Change::QueueUpdated { entity, .. }
            | Change::TopicUpdated { entity, .. } => {
                if let Some(entity) = catalogue.entity(*entity) {
                    let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
                    ring.replace(&Scope::of_entity(&entity.path), rules(entity));
                }
            }
            Change::Deleted { .. } => self.gather(catalogue),
            Change::SubscriptionCreated { .. }
            | Change::SubscriptionUpdated { .. }
            | Change::RuleCreated { .. }
            | Change::RuleUpdated { .. }
            | Change::RuleDeleted { .. } => {}
        }
    }

    fn gather(&self, catalogue: &Catalogue) {
        let mut ring = KeyRing::of_namespace(&self.namespace);
        for entity in catalogue.entities().filter(|entity| !rules(entity).is_empty()) {
            ring.replace(&Scope::of_entity(&entity.path), rules(entity));
        }
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = ring;
    }

    fn read(&self) -> RwLockReadGuard<'_, KeyRing> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rules(entity: &Entity) -> &[AuthorizationRule] {
    entity.intake().map_or(&[], |intake| &intake.authorization_rules)
}
