//! S9: a transaction happens completely or not at all.
//!
//! That committed sends are kept and committed completions final is S1 and S3, which know of
//! transactions. Here: what was rolled back never shows, and of a transaction that nobody knows the end
//! of either all shows or nothing.

use super::digest::removed;
use super::{Digest, Fate};
use crate::history::{History, How};
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::EntityId;

/// What can be seen of a transaction's parts.
#[derive(Default)]
struct Parts {
    shown: Vec<String>,
    missing: Vec<String>,
}

pub(super) fn check(history: &History, digest: &Digest) -> Vec<String> {
    let mut seen: BTreeMap<u64, BTreeSet<EntityId>> = BTreeMap::new();
    for (_, _, _, _, delivered) in history.deliveries() {
        if let Some(mail) = delivered.mail {
            seen.entry(mail).or_default().insert(delivered.mailbox.entity());
        }
    }
    let mut parts: BTreeMap<u128, Parts> = BTreeMap::new();
    for (mail, (transaction, taken)) in &digest.joined {
        let Some(sent) = history.mails.get(mail).filter(|sent| sent.time_to_live.is_none() && *taken) else {
            continue;
        };
        let parts = parts.entry(*transaction).or_default();
        for entity in &sent.targets {
            let text = format!("message {mail} in {}", entity.0);
            let shown = seen.get(mail).is_some_and(|places| places.contains(entity));
            if shown { parts.shown.push(text) } else { parts.missing.push(text) }
        }
    }
    completions(history, digest, &mut parts);
    let mut broken = Vec::new();
    for (transaction, parts) in &parts {
        let fate = digest.transactions.get(transaction).copied().unwrap_or(Fate::Not);
        let wrong = match fate {
            Fate::Not => !parts.shown.is_empty(),
            Fate::Done(_) => !parts.missing.is_empty(),
            Fate::Either => !parts.shown.is_empty() && !parts.missing.is_empty(),
        };
        if wrong {
            broken.push(format!(
                "transaction {transaction:x} ({fate:?}): happened {:?}, did not happen {:?}",
                parts.shown, parts.missing
            ));
        }
    }
    broken
}

/// Completions in transactions: one shows if the message has no other possible end.
fn completions(history: &History, digest: &Digest, parts: &mut BTreeMap<u128, Parts>) {
    let enlisted = |settled: &&super::digest::Settled| {
        settled.how == How::Complete && settled.taken && settled.transaction.is_some()
    };
    let place_of = |settled: &super::digest::Settled| (settled.target.mailbox.entity(), settled.target.mail);
    let mut completed: BTreeMap<(EntityId, u64), usize> = BTreeMap::new();
    for other in digest.settled.iter().filter(|other| other.how == How::Complete && other.fate.perhaps()) {
        *completed.entry(place_of(other)).or_default() += 1;
    }
    let mut last: BTreeMap<(EntityId, u64), usize> = BTreeMap::new();
    for (place, _, _, _, seen) in history.deliveries() {
        last.extend(seen.mail.map(|mail| ((seen.mailbox.entity(), mail), place)));
    }
    let removed: BTreeSet<(EntityId, u64)> = removed(digest).collect();
    for settled in digest.settled.iter().filter(enlisted) {
        let Some(transaction) = settled.transaction else { continue };
        let key = place_of(settled);
        let mortal = history.mails.get(&key.1).is_none_or(|mail| mail.time_to_live.is_some());
        if mortal || history.boxes.get(&key.0).is_none_or(|rules| rules.lossy) {
            continue;
        }
        // The same completion may be asked for again, inside a transaction or outside.
        let others = completed.get(&key).copied().unwrap_or_default() - usize::from(settled.fate.perhaps());
        let otherwise = others > 0 || removed.contains(&key);
        let again = last.get(&key).is_some_and(|place| *place > settled.place);
        let text = format!("completion of {} in {}", key.1, key.0.0);
        let parts = parts.entry(transaction).or_default();
        match (again, otherwise) {
            (true, _) => parts.missing.push(text),
            (false, false) => parts.shown.push(text),
            (false, true) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;
    use crate::history::How;

    #[test]
    fn a_message_of_a_rolled_back_transaction_is_delivered() {
        let mut forge = Forge::new();
        forge.declared(5);
        forge.sent_in(1, 5);
        forge.discharged(5, true);
        forge.delivered(1, 0);
        forge.breaks("S9");
    }

    #[test]
    fn half_of_a_transaction_of_unknown_end_happened() {
        let mut forge = Forge::new();
        forge.declared(5);
        forge.sent_in(1, 5);
        forge.sent_in(2, 5);
        forge.discharge_unanswered(5);
        forge.delivered(1, 0);
        forge.breaks("S9");
    }

    #[test]
    fn a_completion_was_rolled_back_and_happened() {
        let mut forge = Forge::new();
        forge.sent(1);
        let target = forge.delivered(1, 0);
        forge.declared(5);
        forge.settled_in(How::Complete, target, 5);
        forge.discharged(5, true);
        forge.breaks("S9");
    }
}
