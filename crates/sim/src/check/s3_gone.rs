//! S3: no delivery after an acknowledged completion, removal or cancellation.

use super::{Digest, Fate};
use crate::history::{History, How};
use std::collections::BTreeMap;
use vorrang_engine::EntityId;

pub(super) fn check(history: &History, digest: &Digest) -> Vec<String> {
    let mut gone: BTreeMap<(EntityId, u64), (u64, &str)> = BTreeMap::new();
    for settled in digest.settled.iter().filter(|settled| settled.how == How::Complete) {
        if let Fate::Done(step) = settled.fate {
            let key = (settled.target.mailbox.entity(), settled.target.mail);
            let known = gone.entry(key).or_insert((step, "completed"));
            known.0 = known.0.min(step);
        }
    }
    for (mail, fate) in &digest.cancelled {
        if let (Fate::Done(step), Some(sent)) = (fate, history.mails.get(mail)) {
            gone.extend(sent.targets.iter().map(|entity| ((*entity, *mail), (*step, "cancelled"))));
        }
    }
    let mut broken = Vec::new();
    for (_, entry, _, _, seen) in history.deliveries() {
        let Some(mail) = seen.mail else { continue };
        let key = (seen.mailbox.entity(), mail);
        if let Some((step, how)) = gone.get(&key).filter(|(step, _)| entry.step > *step) {
            broken.push(format!(
                "message {mail} was {how} in step {step} and delivered in step {}",
                entry.step
            ));
        }
        if seen.lock.is_none() {
            gone.entry(key).or_insert((entry.step, "received and deleted"));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;
    use crate::history::How;

    #[test]
    fn a_completed_message_comes_back() {
        let mut forge = Forge::new();
        forge.sent(1);
        let target = forge.delivered(1, 0);
        forge.settled(How::Complete, target);
        forge.tick(60_000);
        forge.delivered(1, 1);
        forge.breaks("S3");
    }

    #[test]
    fn a_message_that_was_received_and_deleted_comes_back() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.delivered_with(1, 0, |seen| seen.lock = None);
        forge.tick(60_000);
        forge.delivered(1, 0);
        forge.breaks("S3");
    }

    #[test]
    fn a_cancelled_message_is_delivered() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.cancelled(1);
        forge.tick(1);
        forge.delivered(1, 0);
        forge.breaks("S3");
    }
}
