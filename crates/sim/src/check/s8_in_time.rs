//! S8: no message is given out before its schedule or after its expiry.

use super::Digest;
use crate::history::History;

pub(super) fn check(history: &History, _: &Digest) -> Vec<String> {
    let mut broken = Vec::new();
    for (_, entry, _, _, seen) in history.deliveries() {
        let (Some(rules), Some(mail)) =
            (history.rules(seen.mailbox), seen.mail.and_then(|mail| history.mails.get(&mail)))
        else {
            continue;
        };
        if let Some(due) = mail.scheduled
            && (entry.clock < due || seen.enqueued < due)
        {
            let (enqueued, told) = (seen.enqueued.0, entry.clock.0);
            broken.push(format!(
                "message {:?}, due at {}, came in at {enqueued} and out at {told}",
                seen.mail, due.0
            ));
        }
        if let (Some(life), Some((_, until)), true, false) =
            (mail.time_to_live, seen.lock, seen.mailbox.is_main(), rules.sessions)
        {
            let (granted, expires) = (until.before(rules.lock), seen.enqueued.after(life));
            if granted >= expires {
                broken.push(format!(
                    "message {:?} expired at {} and was given out at {}",
                    seen.mail, expires.0, granted.0
                ));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use crate::check::forge::Forge;
    use vorrang_engine::{Span, Timestamp};

    #[test]
    fn a_message_comes_before_its_time() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.mails(1, |mail| mail.scheduled = Some(Timestamp(1_500_000)));
        forge.delivered(1, 0);
        forge.breaks("S8");
    }

    #[test]
    fn a_message_comes_after_its_end() {
        let mut forge = Forge::new();
        forge.sent(1);
        forge.mails(1, |mail| mail.time_to_live = Some(Span::seconds(5)));
        let enqueued = forge.now();
        forge.tick(5_000);
        forge.delivered_with(1, 0, |seen| seen.enqueued = enqueued);
        forge.breaks("S8");
    }
}
