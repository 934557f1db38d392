//! S1: an acknowledged message ends completed, dead-lettered, expired or still there after the drain.
//!
//! The drain completes whatever it finds, so at the end every copy must have had an end that somebody
//! asked for. Receive-and-delete may lose a message on its way to a receiver that is gone: no more of
//! them than there was credit outstanding.

use super::digest::removed;
use super::{Digest, Fate};
use crate::history::{History, How, What};
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::EntityId;

pub(super) fn check(history: &History, digest: &Digest) -> Vec<String> {
    let mut ended: BTreeSet<(EntityId, u64)> = BTreeSet::new();
    let mut deferred = BTreeSet::new();
    for settled in &digest.settled {
        let key = (settled.target.mailbox.entity(), settled.target.mail);
        match settled.how {
            How::Complete if settled.fate.perhaps() => drop(ended.insert(key)),
            How::Defer if settled.fate.perhaps() => drop(deferred.insert(key)),
            _ => {}
        }
    }
    for (_, _, _, _, seen) in history.deliveries() {
        if let (None, Some(mail)) = (seen.lock, seen.mail) {
            ended.insert((seen.mailbox.entity(), mail));
        }
    }
    ended.extend(removed(digest));
    let mut allowance = allowance(history);
    let mut broken = Vec::new();
    for (mail, fate) in &digest.sends {
        let (Fate::Done(step), Some(sent)) = (fate, history.mails.get(mail)) else { continue };
        if digest.dropped.contains(mail) || digest.cancelled.get(mail).is_some_and(|fate| fate.perhaps()) {
            continue;
        }
        for entity in &sent.targets {
            let key = (*entity, *mail);
            let Some(rules) = history.boxes.get(entity) else { continue };
            let expires = sent.time_to_live.is_some() && (!rules.keeps_expired || deferred.contains(&key));
            if ended.contains(&key) || expires {
                continue;
            }
            let left = allowance.entry(*entity).or_default();
            if *left > 0 {
                *left -= 1;
                continue;
            }
            broken.push(format!("message {mail}, acknowledged in step {step}, is gone from {}", entity.0));
        }
    }
    broken
}

/// How many messages may have been lost on their way out, for each entity.
fn allowance(history: &History) -> BTreeMap<EntityId, u64> {
    let mut links = BTreeMap::new();
    for entry in &history.entries {
        match &entry.what {
            What::Allow { link, entity, limit } => {
                links.entry(*link).or_insert((*entity, 0, 0)).1 = *limit;
            }
            What::Deliver { link, .. } => {
                if let Some((_, _, received)) = links.get_mut(link) {
                    *received += 1;
                }
            }
            _ => {}
        }
    }
    let mut allowance = BTreeMap::new();
    for (entity, limit, received) in links.into_values() {
        *allowance.entry(entity).or_default() += u64::from(limit.saturating_sub(received));
    }
    allowance
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;
    use crate::history::How;

    #[test]
    fn an_acknowledged_message_that_is_never_seen_again_is_lost() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.breaks("S1");
    }

    #[test]
    fn a_message_that_was_only_abandoned_is_lost_too() {
        let mut forge = Forge::new();
        forge.sent(1);
        let target = forge.delivered(1, 0);
        forge.settled(How::Abandon, target);
        forge.breaks("S1");
    }

    #[test]
    fn completion_unanswered_sends_and_refused_sends_are_fine() {
        let mut forge = Forge::new();
        forge.sent(1);
        let target = forge.delivered(1, 0);
        forge.settled(How::Complete, target);
        forge.send_unanswered(2);
        forge.send_refused(3);
        forge.keeps("S1");
    }
}
