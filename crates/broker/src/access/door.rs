//! The one door: nothing happens for a peer without passing here.

use super::action::{Action, Need};
use super::principal::{Principal, Standing};
use super::scope::Scope;
use vorrang_engine::Timestamp;

/// The asker does not hold what the action needs. Says nothing about whether the place exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' claim(s) are required to perform this operation on '{place}'", .need.as_str())]
pub struct Denied {
    /// What was asked.
    pub action: Action,
    /// The right it needs.
    pub need: Need,
    /// Where.
    pub place: Scope,
    /// When the right ended, if the asker once had it.
    pub ended: Option<Timestamp>,
}

/// Permits `action` at `place`, and says until when, or denies it.
///
/// Looks at the path alone, never at what exists there: who lacks the right gets the same answer for
/// an entity that is absent and for one that is not theirs.
pub fn authorise(
    principal: &Principal,
    action: Action,
    place: &Scope,
    now: Timestamp,
) -> Result<Timestamp, Denied> {
    let need = action.need();
    let denied = |ended| Denied { action, need, place: place.clone(), ended };
    match principal.standing(need, place, now) {
        Standing::Holds(until) => Ok(until),
        Standing::Ended(at) => Err(denied(Some(at))),
        Standing::Missing => Err(denied(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Grant;
    use vorrang_engine::entity::authorization::Rights;

    const PLACES: [&str; 6] = ["", "a", "a/$deadletterqueue", "t", "t/subscriptions/s", "b"];

    fn scope(path: &str) -> Scope {
        Scope::of_address(path).unwrap()
    }

    /// Every action × every set of rights × every place granted × every place asked × before and after.
    #[test]
    fn the_whole_matrix_of_actions_rights_and_places() {
        let now = Timestamp(100);
        let mut checked = 0;
        for &action in Action::ALL {
            for bits in 0..8_u8 {
                let rights = Rights { send: bits & 1 > 0, listen: bits & 2 > 0, manage: bits & 4 > 0 };
                let holds = match action.need() {
                    Need::Send => bits & 0b101 > 0,
                    Need::Listen => bits & 0b110 > 0,
                    Need::Manage => bits & 0b100 > 0,
                    Need::AnyHere | Need::AnyWhere => bits > 0,
                };
                for granted in PLACES {
                    for asked in PLACES {
                        for (until, live) in [(99, false), (100, false), (101, true)] {
                            let (scope_granted, until) = (scope(granted), Timestamp(until));
                            let grant = Grant { scope: scope_granted, rights, until, key: None };
                            let principal = Principal::with_grants([grant]);
                            let covered = granted.is_empty()
                                || asked == granted
                                || asked.starts_with(&format!("{granted}/"))
                                || action.need() == Need::AnyWhere;
                            let outcome = authorise(&principal, action, &scope(asked), now);
                            let expected = holds && covered && live;
                            let case = format!("{action:?} {rights:?} granted {granted:?} asked {asked:?}");
                            assert_eq!(outcome.is_ok(), expected, "{case}");
                            let ended = outcome.err().is_some_and(|denied| denied.ended.is_some());
                            assert_eq!(ended, holds && covered && !live, "{case}");
                            checked += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(checked, Action::ALL.len() * 8 * 36 * 3);
    }

    #[test]
    fn anonymous_may_do_nothing_at_all() {
        for &action in Action::ALL {
            for place in PLACES {
                let principal = Principal::anonymous();
                let denied = authorise(&principal, action, &scope(place), Timestamp(0)).unwrap_err();
                assert_eq!((denied.action, denied.ended), (action, None));
            }
        }
    }

    #[test]
    fn a_denial_names_the_right_and_the_place() {
        let denied =
            authorise(&Principal::anonymous(), Action::Receive, &scope("q"), Timestamp(0)).unwrap_err();
        assert_eq!(denied.to_string(), "'Listen' claim(s) are required to perform this operation on 'q'");
    }
}
