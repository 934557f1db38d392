//! The keys a namespace knows, and what a token or password signed with one of them grants.
//!
//! A key belongs to the namespace or to one entity, and grants nothing outside of where it belongs,
//! whatever the token says. An unknown key name costs the same work and gives the same answer as a
//! wrong signature, so that key names and entities cannot be found by asking.
//!
//! Every key has a number of its own, which a grant remembers: when the key is taken away or what it permits
//! is changed, the grants that rest on it are found by that number.

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
    #[error("the token is not for the audience {}", audience.shown())]
    Audience {
        /// The place asked for.
        audience: Scope,
    },
    /// No such name with this password.
    #[error("the key name or key is wrong")]
    Password,
}

/// One key, numbered when it came into force. Numbers are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyNumber(u64);

/// A key in force.
#[derive(Debug, Clone)]
struct Key {
    number: KeyNumber,
    secret: Secret,
}

/// One rule: its keys, what they permit and where.
#[derive(Debug, Clone)]
struct Entry {
    scope: Scope,
    primary: Key,
    secondary: Key,
    rights: Rights,
}

impl Entry {
    /// The key that fits, with the same work whichever it is.
    fn key(&self, fits: impl Fn(&Secret) -> bool) -> Option<KeyNumber> {
        let (primary, secondary) = (fits(&self.primary.secret), fits(&self.secondary.secret));
        match (primary, secondary) {
            (true, _) => Some(self.primary.number),
            (false, true) => Some(self.secondary.number),
            (false, false) => None,
        }
    }
}

/// All keys of a namespace, by name. Cheap to clone rarely; shared as a snapshot.
#[derive(Debug, Clone, Default)]
pub struct KeyRing {
    by_name: BTreeMap<Arc<str>, Vec<Entry>>,
    in_force: BTreeMap<KeyNumber, Rights>,
    next_number: u64,
}

impl KeyRing {
    /// A ring with the keys of the namespace itself.
    #[must_use]
    pub fn of_namespace(rules: &[AuthorizationRule]) -> KeyRing {
        let mut ring = KeyRing::default();
        ring.replace(&Scope::namespace(), rules);
        ring
    }

    /// Puts `rules` in place of all that belong to `scope`. A key that stays under its name keeps its number.
    /// True if a key that was in force is so no longer, or permits something else.
    pub fn replace(&mut self, scope: &Scope, rules: &[AuthorizationRule]) -> bool {
        let before = self.take(|owner| owner == scope);
        for rule in rules {
            let known = before.iter().filter(|(name, _)| *name == rule.key_name).map(|(_, entry)| entry);
            let mut number_of = |secret: &Secret| {
                let same = |key: &&Key| key.secret.expose() == secret.expose();
                let known = known.clone().flat_map(|entry| [&entry.primary, &entry.secondary]).find(same);
                let number = known.map_or(KeyNumber(self.next_number), |key| key.number);
                self.next_number = self.next_number.max(number.0.saturating_add(1));
                self.in_force.insert(number, rule.rights);
                Key { number, secret: secret.clone() }
            };
            let (primary, secondary) = (number_of(&rule.primary_key), number_of(&rule.secondary_key));
            let entry = Entry { scope: scope.clone(), primary, secondary, rights: rule.rights };
            self.by_name.entry(Arc::clone(&rule.key_name)).or_default().push(entry);
        }
        let changed = |entry: &Entry| {
            [&entry.primary, &entry.secondary].iter().any(|key| self.rights(key.number) != Some(entry.rights))
        };
        before.iter().any(|(_, entry)| changed(entry))
    }

    /// Forgets the keys of every place that is not kept. True if there were any.
    pub fn retain(&mut self, keeps: impl Fn(&Scope) -> bool) -> bool {
        !self.take(|owner| !keeps(owner)).is_empty()
    }

    /// What a key permits; none if it is no longer in force.
    #[must_use]
    pub fn rights(&self, key: KeyNumber) -> Option<Rights> {
        self.in_force.get(&key).copied()
    }

    /// Takes out the rules of some places.
    fn take(&mut self, mut taken: impl FnMut(&Scope) -> bool) -> Vec<(Arc<str>, Entry)> {
        let mut out = Vec::new();
        self.by_name.retain(|name, entries| {
            for entry in entries.extract_if(.., |entry| taken(&entry.scope)) {
                self.in_force.remove(&entry.primary.number);
                self.in_force.remove(&entry.secondary.number);
                out.push((Arc::clone(name), entry));
            }
            !entries.is_empty()
        });
        out
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
        let (entry, key) = signed.find(|(entry, _)| entry.scope.covers(audience)).ok_or_else(elsewhere)?;
        Ok(Grant { scope: audience.clone(), rights: entry.rights, until, key: Some(key) })
    }

    /// Checks a key name and key given as user and password: the whole of what that rule permits.
    pub fn log_in(&self, key_name: &str, password: &str) -> Result<Vec<Grant>, Rejected> {
        let matches = |key: &Secret| bool::from(key.expose().as_bytes().ct_eq(password.as_bytes()));
        let until = Timestamp::NEVER;
        let granted = |entry: &Entry| {
            let key = Some(entry.key(matches)?);
            Some(Grant { scope: entry.scope.clone(), rights: entry.rights, until, key })
        };
        let grants: Vec<Grant> = self.entries(key_name).filter_map(granted).collect();
        if grants.is_empty() { Err(Rejected::Password) } else { Ok(grants) }
    }

    /// The rules whose key made the token's signature, and which key. Does at least one signature's worth of
    /// work.
    fn signers<'a>(&'a self, token: &'a Token<'_>) -> impl Iterator<Item = (&'a Entry, KeyNumber)> {
        let names = token.key_names();
        if names.iter().all(|name| !self.by_name.contains_key(name.as_str())) {
            let decoy = Secret::new("a key that nobody has, for the time it takes");
            let _ = token.is_signed_by(&decoy) | token.is_signed_by(&decoy);
        }
        names
            .into_iter()
            .flat_map(|name| self.entries(&name))
            .filter_map(|entry| Some((entry, entry.key(|secret| token.is_signed_by(secret))?)))
    }

    fn entries(&self, key_name: &str) -> impl Iterator<Item = &Entry> + use<'_> {
        self.by_name.get(key_name).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests;
