//! The keys a namespace knows, and what a token or password signed with one of them grants.
//!
//! A key belongs to the namespace or to one entity, and grants nothing outside of where it belongs,
//! whatever the token says. An unknown key name costs the same work and gives the same answer as a
//! wrong signature, so that key names and entities cannot be found by asking.

use super::principal::Grant;
use super::scope::Scope;
use super::token::{SKEW, Token};
use std::collections::BTreeMap;
use std::sync::Arc;
use subtle::ConstantTimeEq as _;
use vorrang_engine::Timestamp;
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};

/// Why a token or password grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The key is unknown or the signature was not made with it.
    #[error("the token has an invalid signature")]
    Signature,
    /// The token has ended.
    #[error("the token is expired since {expired}, it is now {now}")]
    Expired {
        /// When it ended, without the allowance for differing clocks.
        expired: Timestamp,
        /// The time of asking.
        now: Timestamp,
    },
    /// The token, or its key, is for another place.
    #[error("the token is not for the audience {audience:?}")]
    Audience {
        /// The place asked for.
        audience: Scope,
    },
    /// No such name with this password.
    #[error("the key name or key is wrong")]
    Password,
}

/// One rule: its keys, what they permit and where.
#[derive(Debug, Clone)]
struct Entry {
    scope: Scope,
    primary: Secret,
    secondary: Secret,
    rights: Rights,
}

/// All keys of a namespace, by name. Cheap to clone rarely; shared as a snapshot.
#[derive(Debug, Clone, Default)]
pub struct KeyRing {
    by_name: BTreeMap<Arc<str>, Vec<Entry>>,
}

impl KeyRing {
    /// A ring with the keys of the namespace itself.
    #[must_use]
    pub fn of_namespace(rules: &[AuthorizationRule]) -> KeyRing {
        let mut ring = KeyRing::default();
        ring.replace(&Scope::namespace(), rules);
        ring
    }

    /// Puts `rules` in place of all that belong to `scope`.
    pub fn replace(&mut self, scope: &Scope, rules: &[AuthorizationRule]) {
        self.by_name.retain(|_, entries| {
            entries.retain(|entry| entry.scope != *scope);
            !entries.is_empty()
        });
        for rule in rules {
            self.by_name.entry(Arc::clone(&rule.key_name)).or_default().push(Entry {
                scope: scope.clone(),
                primary: rule.primary_key.clone(),
                secondary: rule.secondary_key.clone(),
                rights: rule.rights,
            });
        }
    }

    /// Checks a token for an audience. The grant is for the audience, not for all the token could reach.
    pub fn verify(&self, token: &Token<'_>, audience: &Scope, now: Timestamp) -> Result<Grant, Rejected> {
        let mut signed = self.signers(token).peekable();
        if signed.peek().is_none() {
            return Err(Rejected::Signature);
        }
        let until = token.expires().after(SKEW);
        if now >= until {
            return Err(Rejected::Expired { expired: token.expires(), now });
        }
        let elsewhere = || Rejected::Audience { audience: audience.clone() };
        if !token.resource().covers(audience) {
            return Err(elsewhere());
        }
        let entry = signed.find(|entry| entry.scope.covers(audience)).ok_or_else(elsewhere)?;
        Ok(Grant { scope: audience.clone(), rights: entry.rights, until })
    }

    /// Checks a key name and key given as user and password: the whole of what that rule permits.
    pub fn log_in(&self, key_name: &str, password: &str) -> Result<Vec<Grant>, Rejected> {
        let matches = |key: &Secret| bool::from(key.expose().as_bytes().ct_eq(password.as_bytes()));
        let grants: Vec<Grant> = self
            .entries(key_name)
            .filter(|entry| matches(&entry.primary) | matches(&entry.secondary))
            .map(|entry| Grant { scope: entry.scope.clone(), rights: entry.rights, until: Timestamp::NEVER })
            .collect();
        if grants.is_empty() { Err(Rejected::Password) } else { Ok(grants) }
    }

    /// The rules whose key made the token's signature. Does at least one signature's worth of work.
    fn signers<'a>(&'a self, token: &'a Token<'_>) -> impl Iterator<Item = &'a Entry> {
        let names = token.key_names();
        if names.iter().all(|name| !self.by_name.contains_key(name.as_str())) {
            let decoy = Secret::new("a key that nobody has, for the time it takes");
            let _ = token.is_signed_by(&decoy) | token.is_signed_by(&decoy);
        }
        names
            .into_iter()
            .flat_map(|name| self.entries(&name))
            .filter(|entry| token.is_signed_by(&entry.primary) | token.is_signed_by(&entry.secondary))
    }

    fn entries(&self, key_name: &str) -> impl Iterator<Item = &Entry> + use<'_> {
        self.by_name.get(key_name).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests;
