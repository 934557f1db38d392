//! S2: nothing is delivered that was never sent, was sent elsewhere, or whose sending was refused; and
//! nobody gets what it did not want.

use super::{Digest, Fate};
use crate::history::{Call, History, Outcome};
use std::collections::BTreeMap;

pub(super) fn check(history: &History, digest: &Digest) -> Vec<String> {
    let mut refused: BTreeMap<u64, u64> = BTreeMap::new();
    for asked in digest.calls.values() {
        if let (Call::Send { mails, transaction: None }, Some((_, step, Outcome::Refused(_)))) =
            (&asked.call, &asked.answer)
        {
            refused.extend(mails.iter().map(|mail| (*mail, *step)));
        }
    }
    let mut broken = Vec::new();
    for (_, entry, link, _, seen) in history.deliveries() {
        let place = (seen.mailbox.entity().0, seen.sequence);
        let Some((mail, sent)) = seen.mail.and_then(|mail| Some((mail, history.mails.get(&mail)?))) else {
            broken.push(format!("{}/{} is not what anybody sent", place.0, place.1));
            continue;
        };
        if !sent.targets.contains(&seen.mailbox.entity()) {
            broken.push(format!("message {mail} came to {}, where it was not sent", place.0));
        }
        let wish = history.wishes.get(&link).copied().unwrap_or_default();
        if wish.kind.is_some_and(|kind| kind != sent.kind) || seen.level < wish.min_level {
            broken.push(format!("message {mail} of kind {} went to {wish:?}", sent.kind));
        }
        let asked = digest.sends.get(&mail).copied();
        if asked.is_none() {
            broken.push(format!("message {mail} was delivered before it was sent"));
        }
        if asked == Some(Fate::Not) && refused.get(&mail).is_some_and(|step| *step <= entry.step) {
            broken.push(format!("message {mail} was delivered although its sending was refused"));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;
    use crate::history::Wish;

    #[test]
    fn a_message_that_was_not_wanted() {
        for (wish, broken) in [
            (Wish { kind: Some(1), ..Wish::default() }, true),
            (Wish { min_level: 5, ..Wish::default() }, true),
            (Wish { kind: Some(0), min_level: 4, ordered: true }, false),
        ] {
            let mut forge = Forge::new();
            forge.sent(1);
            forge.wishes(wish);
            forge.delivered(1, 0);
            if broken { forge.breaks("S2") } else { forge.keeps("S2") }
        }
    }

    #[test]
    fn bytes_that_nobody_sent() {
        let mut forge = Forge::new();
        forge.delivered_with(1, 0, |seen| seen.mail = None);
        forge.breaks("S2");
    }

    #[test]
    fn a_message_that_was_refused() {
        let mut forge = Forge::new();
        forge.send_refused(1);
        forge.delivered(1, 0);
        forge.breaks("S2");
    }

    #[test]
    fn a_message_in_another_queue() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.mails(1, |mail| mail.targets.clear());
        forge.delivered(1, 0);
        forge.breaks("S2");
    }
}
