//! The keys in force: those of the namespace, and those of its entities as they come and go.

use crate::access::{Grant, KeyRing, Principal, Rejected, Scope, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vorrang_engine::Timestamp;
use vorrang_engine::entity::authorization::AuthorizationRule;
use vorrang_engine::entity::{Catalogue, Change, Entity};

/// A key ring that follows the catalogue. Read by the doors, written by the shard.
#[derive(Debug)]
pub struct Keys {
    ring: RwLock<KeyRing>,
}

impl Keys {
    pub(super) fn new(namespace: &[AuthorizationRule], catalogue: &Catalogue) -> Keys {
        let mut ring = KeyRing::of_namespace(namespace);
        for entity in catalogue.entities().filter(|entity| !rules(entity).is_empty()) {
            ring.replace(&Scope::of_entity(&entity.path), rules(entity));
        }
        Keys { ring: RwLock::new(ring) }
    }

    /// Checks a token for an audience.
    pub fn verify(&self, token: &Token<'_>, audience: &Scope, now: Timestamp) -> Result<Grant, Rejected> {
        self.read().verify(token, audience, now)
    }

    /// Checks a key name and key given as user and password.
    pub fn log_in(&self, key_name: &str, password: &str) -> Result<Vec<Grant>, Rejected> {
        self.read().log_in(key_name, password)
    }

    /// What is left of a principal with the keys in force; none if all of it is.
    pub fn left_of(&self, principal: &Principal) -> Option<Principal> {
        principal.left_by(&self.read())
    }

    /// Takes over what a change did to the keys, after it was made. True if rights may have ended by it.
    pub(super) fn follow(&self, change: &Change, catalogue: &Catalogue) -> bool {
        match change {
            Change::QueueCreated { entity, .. }
            | Change::TopicCreated { entity, .. }
            | Change::QueueUpdated { entity, .. }
            | Change::TopicUpdated { entity, .. } => {
                let Some(entity) = catalogue.entity(*entity) else { return false };
                self.write().replace(&Scope::of_entity(&entity.path), rules(entity))
            }
            Change::Deleted { .. } => {
                let with_keys = catalogue.entities().filter(|entity| !rules(entity).is_empty());
                let left: BTreeSet<Scope> = with_keys.map(|entity| Scope::of_entity(&entity.path)).collect();
                self.write().retain(|scope| *scope == Scope::namespace() || left.contains(scope))
            }
            Change::SubscriptionCreated { .. }
            | Change::SubscriptionUpdated { .. }
            | Change::RuleCreated { .. }
            | Change::RuleUpdated { .. }
            | Change::RuleDeleted { .. } => false,
        }
    }

    /// Takes over every key there is in a catalogue that took the place of another. Rights may have ended by it.
    pub(super) fn gather(&self, catalogue: &Catalogue) {
        let with_keys: BTreeMap<Scope, &Entity> = catalogue
            .entities()
            .filter(|entity| !rules(entity).is_empty())
            .map(|entity| (Scope::of_entity(&entity.path), entity))
            .collect();
        let mut ring = self.write();
        ring.retain(|scope| *scope == Scope::namespace() || with_keys.contains_key(scope));
        for (scope, entity) in with_keys {
            ring.replace(&scope, rules(entity));
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, KeyRing> {
        self.ring.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, KeyRing> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rules(entity: &Entity) -> &[AuthorizationRule] {
    entity.intake().map_or(&[], |intake| &intake.authorization_rules)
}
