//! S6: first deliveries come in order: within a session, and within one level of a queue; and no lower
//! level first while a higher one was there all the time.
//!
//! Order is judged on one link within one life of the broker: between links, what was decided first
//! need not be told first. A link with a selector passes over messages that lie on disk, which come back
//! to memory in their own time; nothing is promised about its order.

use super::{Digest, Fate};
use crate::history::{History, LinkId, Seen, What};
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{EntityId, MailboxId, Sequence, Timestamp};

/// What must come in order: what one link gets, in one life of the broker, from one mailbox, of one level.
type Line = (LinkId, u64, MailboxId, Option<u8>);

struct First<'a> {
    seen: &'a Seen,
    life: u64,
    granted: Timestamp,
}

pub(super) fn check(history: &History, digest: &Digest) -> Vec<String> {
    let mut broken = Vec::new();
    let mut newest: BTreeMap<Line, (Timestamp, Sequence)> = BTreeMap::new();
    let mut known: BTreeSet<(MailboxId, Sequence)> = BTreeSet::new();
    let mut firsts: BTreeMap<EntityId, Vec<First<'_>>> = BTreeMap::new();
    let mut life = 0;
    for entry in &history.entries {
        let (link, mode, seen) = match &entry.what {
            What::Crash => {
                life += 1;
                continue;
            }
            What::Deliver { link, mode, seen } => (*link, *mode, seen),
            _ => continue,
        };
        let (Some(rules), Some(mail)) =
            (history.rules(seen.mailbox), seen.mail.and_then(|mail| history.mails.get(&mail)))
        else {
            continue;
        };
        if seen.level != mail.level {
            broken.push(format!("message {:?} of level {} has level {}", seen.mail, mail.level, seen.level));
        }
        let first = known.insert((seen.mailbox, seen.sequence)) && seen.deliveries == 0;
        let selects = history.wishes.get(&link).is_some_and(|wish| wish.kind.is_some());
        if !first || seen.deferred || !seen.mailbox.is_main() || !rules.in_line || selects {
            continue;
        }
        // Inside a session levels do not count; between the messages of one level their time does.
        let (level, time) =
            if rules.sessions { (None, Timestamp(0)) } else { (Some(seen.level), seen.enqueued) };
        let key = (time, seen.sequence);
        let before = newest.insert((link, life, seen.mailbox, level), key);
        if let Some(before) = before.filter(|before| *before > key) {
            broken.push(format!(
                "{}/{} was first delivered after {} of the same line",
                seen.mailbox.0, seen.sequence, before.1
            ));
        }
        if rules.strict && mode == ReceiveMode::PeekLock {
            let granted = seen.lock.map_or(entry.clock, |(_, until)| until.before(rules.lock));
            firsts.entry(seen.mailbox.entity()).or_default().push(First { seen, life, granted });
        }
    }
    let accepted = accepted(history, digest);
    for firsts in firsts.values() {
        broken.extend(inversions(firsts, &accepted));
    }
    broken
}

/// When each message was acknowledged, and in which life of the broker.
fn accepted(history: &History, digest: &Digest) -> BTreeMap<u64, (Timestamp, u64)> {
    let mut times = BTreeMap::new();
    let mut life = 0;
    for entry in &history.entries {
        if matches!(entry.what, What::Crash) {
            life += 1;
        }
        times.entry(entry.step).or_insert((entry.clock, life));
    }
    let acked = digest.sends.iter().filter_map(|(mail, fate)| match fate {
        Fate::Done(step) => Some((*mail, *times.get(step)?)),
        _ => None,
    });
    acked.collect()
}

/// Deliveries of lower levels while a higher one had been acknowledged before and was not yet out.
fn inversions(firsts: &[First<'_>], accepted: &BTreeMap<u64, (Timestamp, u64)>) -> Vec<String> {
    let mut granted: BTreeMap<(u64, u8), Vec<Timestamp>> = BTreeMap::new();
    for first in firsts {
        granted.entry((first.life, first.seen.level)).or_default().push(first.granted);
    }
    for times in granted.values_mut() {
        times.sort_unstable();
    }
    let mut broken = Vec::new();
    for high in firsts {
        let Some(&(since, life)) = high.seen.mail.and_then(|mail| accepted.get(&mail)) else { continue };
        if life != high.life {
            continue;
        }
        let since = since.max(high.seen.enqueued);
        let lower = granted.range((life, 0)..(life, high.seen.level));
        let overtaken = lower.filter_map(|((_, level), times)| {
            let next = times.get(times.partition_point(|at| *at <= since))?;
            (*next < high.granted).then_some((level, next))
        });
        if let Some((level, at)) = overtaken.min_by_key(|(_, at)| **at) {
            broken.push(format!(
                "level {level} was given out at {} while {}/{} of level {} waited from {} to {}",
                at.0, high.seen.mailbox.0, high.seen.sequence, high.seen.level, since.0, high.granted.0
            ));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;
    use crate::history::Wish;

    #[test]
    fn a_selector_may_pass_over_what_lies_on_disk_but_levels_stay_what_they_are() {
        let mut forge = Forge::new();
        forge.wishes(Wish { kind: Some(1), ..Wish::default() });
        forge.sent(1);
        forge.sent(2);
        forge.delivered(2, 0);
        forge.delivered(1, 0);
        forge.keeps("S6");
        forge.sent(3);
        forge.delivered_with(3, 0, |seen| seen.level = 9);
        forge.breaks("S6");
    }

    #[test]
    fn the_second_message_comes_before_the_first() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.sent(2);
        forge.delivered(2, 0);
        forge.delivered(1, 0);
        forge.breaks("S6");
    }

    #[test]
    fn a_message_changes_its_level() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.delivered_with(1, 0, |seen| seen.level = 9);
        forge.breaks("S6");
    }

    #[test]
    fn a_lower_level_goes_first() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.sent(2);
        forge.mails(2, |mail| mail.level = 9);
        let enqueued = forge.now();
        forge.tick(10);
        forge.delivered(1, 0);
        forge.tick(10);
        forge.delivered_with(2, 0, |seen| (seen.level, seen.enqueued) = (9, enqueued));
        forge.breaks("S6");
    }
}
