//! What a connection's peer may do: its grants, each with a place and an end.
//!
//! A principal is a value: presenting a token makes a new one, and everything asked after that is
//! asked with the new one. It dies with its connection.

use super::action::Need;
use super::keys::{KeyNumber, KeyRing};
use super::scope::Scope;
use std::collections::BTreeMap;
use vorrang_engine::Timestamp;
use vorrang_engine::entity::authorization::Rights;

/// Grants on one connection. At the limit those that have ended make room; if none has, the token is
/// refused, and the grants there are stay.
pub const GRANTS_MAX: usize = 4_096;

/// Permission for a place, for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Where it holds: here and within.
    pub scope: Scope,
    /// What it permits.
    pub rights: Rights,
    /// When it no longer holds.
    pub until: Timestamp,
    /// The key it rests on; none if it rests on nothing that could be taken away.
    pub key: Option<KeyNumber>,
}

/// A grant at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    rights: Rights,
    until: Timestamp,
    key: Option<KeyNumber>,
}

impl Grant {
    fn held(self) -> (Scope, Held) {
        let Grant { scope, rights, until, key } = self;
        (scope, Held { rights, until, key })
    }
}

/// The sum of a peer's grants.
#[derive(Debug, Clone, Default)]
pub struct Principal {
    grants: BTreeMap<Scope, Held>,
}

/// What a principal has for one need at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Permitted until then.
    Holds(Timestamp),
    /// It was permitted, and has ended.
    Ended(Timestamp),
    /// Never permitted.
    Missing,
}

/// No room for another grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a connection holds at most {GRANTS_MAX} claims")]
pub struct TooManyGrants;

impl Principal {
    /// A peer that may do nothing.
    #[must_use]
    pub fn anonymous() -> Principal {
        Principal::default()
    }

    /// A peer with these grants, such as one that logged in with a key.
    #[must_use]
    pub fn with_grants(grants: impl IntoIterator<Item = Grant>) -> Principal {
        let grants = grants.into_iter().take(GRANTS_MAX);
        Principal { grants: grants.map(Grant::held).collect() }
    }

    /// The broker itself, for its own chores: everything, for ever.
    #[must_use]
    pub fn operator() -> Principal {
        let rights = Rights { send: true, listen: true, manage: true };
        let (scope, until) = (Scope::namespace(), Timestamp::NEVER);
        Principal::with_grants([Grant { scope, rights, until, key: None }])
    }

    /// This principal with one more grant, in place of an earlier one for the same place.
    pub fn and(&self, grant: Grant, now: Timestamp) -> Result<Principal, TooManyGrants> {
        let mut grants = self.grants.clone();
        if grants.len() >= GRANTS_MAX && !grants.contains_key(&grant.scope) {
            grants.retain(|_, held| now < held.until);
            if grants.len() >= GRANTS_MAX {
                return Err(TooManyGrants);
            }
        }
        grants.extend([grant.held()]);
        Ok(Principal { grants })
    }

    /// What is left of this principal with the keys that are in force now; none if all of it is.
    #[must_use]
    pub fn left_by(&self, keys: &KeyRing) -> Option<Principal> {
        let rights = |held: &Held| held.key.map_or(Some(held.rights), |key| keys.rights(key));
        if self.grants.values().all(|held| rights(held) == Some(held.rights)) {
            return None;
        }
        let left =
            |(scope, held): (&Scope, &Held)| Some((scope.clone(), Held { rights: rights(held)?, ..*held }));
        Some(Principal { grants: self.grants.iter().filter_map(left).collect() })
    }

    /// How this principal stands for a need at a place: the grant that lasts longest counts.
    #[must_use]
    pub fn standing(&self, need: Need, place: &Scope, now: Timestamp) -> Standing {
        let meets = |held: &Held| need.is_met_by(held.rights).then_some(held.until);
        let until = match need {
            Need::AnyWhere => self.grants.values().filter_map(meets).max(),
            _ => place.ancestors().filter_map(|path| self.grants.get(path)).filter_map(meets).max(),
        };
        match until {
            Some(until) if now < until => Standing::Holds(until),
            Some(until) => Standing::Ended(until),
            None => Standing::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(path: &str, until: u64) -> Grant {
        let rights = Rights { listen: true, ..Rights::default() };
        Grant { scope: Scope::of_address(path).unwrap(), rights, until: Timestamp(until), key: None }
    }

    fn standing(principal: &Principal, path: &str, now: u64) -> Standing {
        principal.standing(Need::Listen, &Scope::of_address(path).unwrap(), Timestamp(now))
    }

    #[test]
    fn a_grant_holds_until_its_end_and_for_everything_within() {
        let principal = Principal::anonymous().and(grant("topic", 30), Timestamp(0)).unwrap();
        let cases = [
            ("topic", 29, Standing::Holds(Timestamp(30))),
            ("topic", 30, Standing::Ended(Timestamp(30))),
            ("topic/subscriptions/s", 29, Standing::Holds(Timestamp(30))),
            ("topics", 29, Standing::Missing),
            ("", 29, Standing::Missing),
        ];
        for (path, now, expected) in cases {
            assert_eq!(standing(&principal, path, now), expected, "{path} at {now}");
        }
    }

    #[test]
    fn a_new_grant_replaces_the_old_one_for_its_place_only() {
        let first = Principal::with_grants([grant("a", 30), grant("b", 30)]);
        let second = first.and(grant("a", 60), Timestamp(0)).unwrap();
        assert_eq!(standing(&second, "a", 45), Standing::Holds(Timestamp(60)));
        assert_eq!(standing(&second, "b", 45), Standing::Ended(Timestamp(30)));
        assert_eq!(standing(&first, "a", 45), Standing::Ended(Timestamp(30)));
    }

    #[test]
    fn grants_are_bounded_and_the_ended_ones_make_room() {
        let full = Principal::with_grants((0..GRANTS_MAX).map(|n| grant(&format!("q{n}"), 30)));
        assert_eq!(full.and(grant("new", 60), Timestamp(29)).unwrap_err(), TooManyGrants);
        assert!(full.and(grant("q7", 60), Timestamp(29)).is_ok(), "replacing needs no room");
        let renewed = full.and(grant("new", 60), Timestamp(30)).unwrap();
        assert_eq!(standing(&renewed, "new", 30), Standing::Holds(Timestamp(60)));
    }
}
