//! S7: one message for each message id in the window of duplicate detection; and none dropped that is
//! not a duplicate.

use super::{Digest, Fate};
use crate::history::History;
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::{EntityId, Timestamp};

pub(super) fn check(history: &History, digest: &Digest) -> Vec<String> {
    let mut kept: BTreeMap<(EntityId, u64), BTreeSet<(Timestamp, u64)>> = BTreeMap::new();
    let mut broken = Vec::new();
    for (_, _, _, _, seen) in history.deliveries() {
        let Some((mail, sent)) = seen.mail.and_then(|mail| Some((mail, history.mails.get(&mail)?))) else {
            continue;
        };
        if digest.dropped.contains(&mail) {
            broken.push(format!("message {mail} was dropped as a duplicate and delivered all the same"));
        }
        if let (Some(id), None, true) = (sent.message_id, sent.scheduled, seen.mailbox.is_main()) {
            kept.entry((seen.mailbox.entity(), id)).or_default().insert((seen.enqueued, mail));
        }
    }
    for ((entity, id), times) in &kept {
        let Some(window) = history.boxes.get(entity).and_then(|rules| rules.window) else { continue };
        for ((first, mail), (second, other)) in times.iter().zip(times.iter().skip(1)) {
            if second.since(*first) < window && mail != other {
                broken.push(format!(
                    "messages {mail} and {other} both have the id {id} and came at {} and {}",
                    first.0, second.0
                ));
            }
        }
    }
    broken.extend(digest.dropped.iter().filter_map(|mail| dropped_alone(history, digest, *mail)));
    broken
}

fn dropped_alone(history: &History, digest: &Digest, mail: u64) -> Option<String> {
    let dropped = history.mails.get(&mail)?;
    let twin = history.mails.iter().any(|(other, sent)| {
        *other != mail
            && sent.targets == dropped.targets
            && sent.message_id == dropped.message_id
            && !digest.dropped.contains(other)
            && digest.sends.get(other).is_some_and(|fate: &Fate| fate.perhaps())
    });
    let known = dropped.message_id.is_some() && twin;
    (!known).then(|| format!("message {mail} was dropped as a duplicate of nothing"))
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;

    #[test]
    fn two_messages_of_one_id() {
        let mut forge = Forge::new();
        for mail in [1, 2] {
            forge.sent(mail);
            forge.mails(mail, |mail| mail.message_id = Some(7));
            forge.delivered(mail, 0);
            forge.tick(100);
        }
        forge.breaks("S7");
    }

    #[test]
    fn a_message_is_dropped_for_nothing() {
        let mut forge = Forge::new();
        forge.dropped(1);
        forge.mails(1, |mail| mail.message_id = Some(7));
        forge.breaks("S7");
    }

    #[test]
    fn a_message_is_dropped_and_delivered() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.dropped(2);
        for mail in [1, 2] {
            forge.mails(mail, |mail| mail.message_id = Some(7));
        }
        forge.delivered(2, 0);
        forge.breaks("S7");
    }
}
