//! S4: the locks of one message, or of one session, never overlap.
//!
//! When a lock was granted follows from its end, because locks of an entity all last equally long. A
//! lock that was not yet durable when the broker died may be forgotten: that is an early redelivery,
//! which at-least-once allows. Session locks always end with their connections.

use super::Digest;
use crate::history::{Call, CallId, History, LinkId, Outcome, What};
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::{LockToken, MailboxId, Sequence, Timestamp};

struct Lock {
    token: LockToken,
    until: Timestamp,
    place: usize,
}

pub(super) fn check(history: &History, digest: &Digest) -> Vec<String> {
    let mut broken = messages(history, digest);
    broken.extend(sessions(history, digest));
    broken
}

fn messages(history: &History, digest: &Digest) -> Vec<String> {
    let settlements: BTreeMap<LockToken, usize> = digest
        .settled
        .iter()
        .rev()
        .filter(|settled| settled.fate.perhaps())
        .map(|settled| (settled.target.token, settled.place))
        .collect();
    let mut locks: BTreeMap<(MailboxId, Sequence), Lock> = BTreeMap::new();
    let mut broken = Vec::new();
    for (place, entry) in history.entries.iter().enumerate() {
        match &entry.what {
            What::Return { id, outcome: Outcome::Until(until) } => {
                if let Some(Call::Renew { target }) = digest.calls.get(id).map(|asked| &asked.call)
                    && let Some(lock) = locks.get_mut(&(target.mailbox, target.sequence))
                    && lock.token == target.token
                {
                    lock.until = lock.until.max(*until);
                }
            }
            What::Deliver { seen, .. } => {
                let Some(rules) = history.rules(seen.mailbox).filter(|rules| !rules.sessions) else {
                    continue;
                };
                let key = (seen.mailbox, seen.sequence);
                let granted = seen.lock.map_or(entry.clock, |(_, until)| until.before(rules.lock));
                if let Some(lock) = locks.get(&key)
                    && granted < lock.until
                    && settlements.get(&lock.token).is_none_or(|settled| *settled > place)
                    && digest.survived(lock.place, place)
                {
                    broken.push(format!(
                        "{}/{} was locked until {} and given out again at {}",
                        seen.mailbox.0, seen.sequence, lock.until.0, granted.0
                    ));
                }
                match seen.lock {
                    Some((token, until)) => drop(locks.insert(key, Lock { token, until, place })),
                    None => drop(locks.remove(&key)),
                }
            }
            _ => {}
        }
    }
    broken
}

fn sessions(history: &History, digest: &Digest) -> Vec<String> {
    let mut held: BTreeMap<(MailboxId, String), (LinkId, Timestamp)> = BTreeMap::new();
    let mut ended: BTreeSet<LinkId> = BTreeSet::new();
    let mut gone = BTreeSet::new();
    let mut broken = Vec::new();
    let asked = |id: &CallId| digest.calls.get(id).map(|asked| (asked.peer, &asked.call));
    for entry in &history.entries {
        match &entry.what {
            What::Crash => held.clear(),
            What::LinkEnded { link } => {
                ended.insert(*link);
                held.retain(|_, (holder, _)| holder != link);
            }
            What::Closed { peer } => {
                gone.insert(*peer);
                held.retain(|_, ((holder, _), _)| holder != peer);
            }
            What::Return { id, outcome: Outcome::Until(until) } => {
                if let Some((_, Call::RenewSession { mailbox, session })) = asked(id)
                    && let Some((_, known)) = held.get_mut(&(*mailbox, session.clone()))
                {
                    *known = (*known).max(*until);
                }
            }
            What::Return { id, outcome: Outcome::Session { session, until } } => {
                let Some((peer, Call::Accept { mailbox, link })) = asked(id) else { continue };
                let (Some(rules), link) = (history.rules(*mailbox), (peer, *link)) else { continue };
                // Given up before the answer was out: whoever is told first may hold it by now.
                if ended.contains(&link) || gone.contains(&peer) {
                    continue;
                }
                let key = (*mailbox, session.clone());
                let granted = until.before(rules.lock);
                if let Some((holder, known)) = held.get(&key)
                    && *holder != link
                    && granted < *known
                {
                    broken.push(format!(
                        "session {session} is held by {holder:?} until {} and given to {link:?} at {}",
                        known.0, granted.0
                    ));
                }
                held.insert(key, (link, *until));
            }
            _ => {}
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;

    #[test]
    fn a_locked_message_is_handed_to_somebody_else() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.delivered(1, 0);
        forge.tick(1_000);
        forge.delivered(1, 1);
        forge.breaks("S4");
    }

    #[test]
    fn a_durable_lock_is_forgotten_in_a_crash() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.delivered(1, 0);
        forge.sent(2);
        forge.crash();
        forge.delivered(1, 1);
        forge.breaks("S4");
    }

    #[test]
    fn two_receivers_hold_one_session() {
        let mut forge = Forge::new();
        forge.accepted(1, "a");
        forge.tick(1_000);
        forge.accepted(2, "a");
        forge.breaks("S4");
    }

    #[test]
    fn a_lock_may_follow_one_that_ran_out_or_was_lost_with_the_disk() {
        let mut forge = Forge::new();
        forge.send_unanswered(1);
        forge.delivered(1, 0);
        forge.crash();
        forge.delivered(1, 0);
        forge.tick(30_000);
        forge.delivered(1, 1);
        forge.accepted(1, "a");
        forge.tick(30_000);
        forge.accepted(2, "a");
        forge.link_ended(3);
        forge.accepted(3, "a");
        forge.keeps("S4");
    }

    #[test]
    fn a_session_told_to_a_connection_that_has_closed_is_free_for_others_and_for_one_of_them_only() {
        let mut forge = Forge::new();
        forge.closed(1);
        forge.accepted(1, "a");
        forge.accepted(2, "a");
        forge.keeps("S4");
        forge.accepted(3, "a");
        forge.breaks("S4");
    }
}
