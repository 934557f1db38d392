//! S5: the delivery count grows by one for each failed delivery, and only then; past the maximum a
//! message is dead-lettered, not before, and with the right reason.
//!
//! Deliveries to connections that ended before they were told are not in the history, nor are those
//! whose bytes the disk did not give. Where one may have been, the count may be that much higher.

use super::Digest;
use super::Fate;
use super::digest::Settled;
use crate::history::{History, How, Seen, What};
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::{LockToken, MailboxId, Sequence};

/// The reason Service Bus gives for too many deliveries.
const REASON: &str = "MaxDeliveryCountExceeded";

struct Last {
    place: usize,
    count: u32,
    token: LockToken,
    endings: u32,
}

pub(super) fn check(history: &History, digest: &Digest) -> Vec<String> {
    let mut settlements: BTreeMap<LockToken, Vec<&Settled>> = BTreeMap::new();
    for settled in &digest.settled {
        settlements.entry(settled.target.token).or_default().push(settled);
    }
    let deferred: BTreeSet<(MailboxId, Sequence)> = digest
        .settled
        .iter()
        .filter(|settled| settled.how == How::Defer && settled.fate.perhaps())
        .map(|settled| (settled.target.mailbox, settled.target.sequence))
        .collect();
    let mut last: BTreeMap<(MailboxId, Sequence), Last> = BTreeMap::new();
    let mut endings = 0;
    let mut broken = Vec::new();
    for (place, entry) in history.entries.iter().enumerate() {
        let seen = match &entry.what {
            What::Crash | What::Closed { .. } | What::LinkEnded { .. } | What::Unread => {
                endings += 1;
                continue;
            }
            What::Deliver { seen, .. } => seen,
            _ => continue,
        };
        let Some(rules) = history.rules(seen.mailbox) else { continue };
        let name = format!("{}/{}", seen.mailbox.0, seen.sequence);
        let key = (seen.mailbox, seen.sequence);
        if let Some(text) = wrongly_buried(seen, rules.deliveries_max, deferred.contains(&key)) {
            broken.push(format!("{name} {text}"));
        }
        if !seen.mailbox.is_main() {
            continue;
        }
        if let Some(before) = last.get(&key) {
            let attempts = settlements.get(&before.token).map_or(&[][..], Vec::as_slice);
            let (least, most) = grows(attempts, place, rules.sessions);
            let least = if digest.survived(before.place, place) { before.count + least } else { 0 };
            let most = before.count + most + (endings - before.endings);
            if seen.deliveries < least || seen.deliveries > most {
                broken.push(format!(
                    "{name} was delivered with count {} where {least} to {most} was possible",
                    seen.deliveries
                ));
            }
        } else if seen.deliveries > endings {
            broken.push(format!("{name} was first delivered with count {}", seen.deliveries));
        }
        if let Some((token, _)) = seen.lock {
            last.insert(key, Last { place, count: seen.deliveries, token, endings });
        }
    }
    broken
}

/// By how much the count may grow until the next delivery, at least and at most.
fn grows(settlements: &[&Settled], before: usize, sessions: bool) -> (u32, u32) {
    let asked = || settlements.iter().filter(|settled| settled.place < before && settled.fate.perhaps());
    if sessions || asked().any(|settled| settled.fate == Fate::Either) {
        return (0, 1);
    }
    match asked().next().map(|settled| settled.how) {
        None | Some(How::Abandon) => (1, 1),
        Some(How::Release | How::Suspend | How::Defer) => (0, 0),
        Some(How::Complete | How::DeadLetter) => (0, 1),
    }
}

fn wrongly_buried(seen: &Seen, max: u32, deferred: bool) -> Option<String> {
    let count = seen.deliveries;
    let exceeded = seen.reason.as_deref() == Some(REASON);
    if seen.mailbox.is_main() {
        (count >= max && !deferred)
            .then(|| format!("was delivered for the {}th time of at most {max}", count + 1))
    } else {
        (exceeded && count < max).then(|| format!("was dead-lettered after {count} of {max} deliveries"))
    }
}

#[cfg(test)]
mod tests {
    use crate::check::forge::{Forge, QUEUE};
    use crate::history::How;
    use vorrang_engine::MailboxId;

    #[test]
    fn an_abandoned_delivery_is_not_counted() {
        let mut forge = Forge::new();
        forge.sent(1);
        let target = forge.delivered(1, 0);
        forge.settled(How::Abandon, target);
        forge.delivered(1, 0);
        forge.breaks("S5");
    }

    #[test]
    fn a_released_delivery_is_counted() {
        let mut forge = Forge::new();
        forge.sent(1);
        let target = forge.delivered(1, 0);
        forge.settled(How::Release, target);
        forge.delivered(1, 1);
        forge.breaks("S5");
    }

    #[test]
    fn a_delivery_that_nobody_could_read_explains_one_count_and_no_more() {
        for (count, explained) in [(1, true), (2, false)] {
            let mut forge = Forge::new();
            forge.sent(1);
            let target = forge.delivered(1, 0);
            forge.settled(How::Release, target);
            forge.unread();
            forge.delivered(1, count);
            if explained { forge.keeps("S5") } else { forge.breaks("S5") }
        }
    }

    #[test]
    fn a_message_is_delivered_once_too_often() {
        let mut forge = Forge::new();
        forge.sent(1);
        for count in 0..=3 {
            let target = forge.delivered(1, count);
            forge.settled(How::Abandon, target);
        }
        forge.breaks("S5");
    }

    #[test]
    fn a_message_is_dead_lettered_too_early() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.delivered_with(1, 2, |seen| {
            seen.mailbox = MailboxId::dead_letter(QUEUE);
            seen.reason = Some("MaxDeliveryCountExceeded".to_owned());
        });
        forge.breaks("S5");
    }
}
