//! Priority inversion: a message waits while a lower one is in somebody's hands.
//!
//! Receivers with credit are sent what is there; when a higher message comes, the places it could have
//! had may be taken by lower ones that were prefetched. How long it then waited is measured when it is
//! first delivered: the last stretch of its wait during which a lower level of the same mailbox was held
//! without a break. A wait before the first of those was handed out is not an inversion, and neither is
//! one behind equals or betters.

use crate::mailbox::Mailbox;
use crate::store::Record;
use crate::time::{Span, Timestamp};

impl Mailbox {
    /// Notes a delivery, before the message counts as locked.
    pub(crate) fn observe_delivered(&mut self, record: &Record, at: Timestamp, target: Option<Span>) {
        let first = record.deliveries == 0;
        let inversion = if first && record.eligible < at { self.inversion(record, at) } else { Span(0) };
        let idle = self.tally.locked(record.level) == 0;
        let series = self.observations.at(record.level, at);
        series.delivered(at, record.eligible, first, target);
        if inversion > Span(0) {
            series.inversion.record(inversion.0);
        }
        if idle {
            series.held_since = at;
        }
    }

    fn inversion(&self, record: &Record, at: Timestamp) -> Span {
        let held = self.tally.locked_below(record.level);
        let held = held.filter_map(|lower| Some(self.observations.get(lower)?.held_since));
        held.min().map_or(Span(0), |since| at.since(since.max(record.eligible)))
    }
}

#[cfg(test)]
mod tests {
    use crate::command::Settlement;
    use crate::level::Level;
    use crate::message::Incoming;
    use crate::time::Span;
    use crate::trial::{Trial, message};

    fn inversions(trial: &Trial, level: u8) -> (u64, u64) {
        let reports = trial.state.levels(trial.mailbox("q"));
        let report = reports.into_iter().find(|report| report.level == Level(level)).unwrap();
        let inversion = report.series.map(|series| (series.inversion.count(), series.inversion.sum()));
        inversion.unwrap_or_default()
    }

    fn send(trial: &mut Trial, id: &str, level: u8) {
        trial.send_all("q", vec![Incoming { priority: Some(level), ..message(id) }]).unwrap();
    }

    #[test]
    fn a_wait_behind_a_lower_message_that_is_held_is_measured() {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        send(&mut trial, "low", 1);
        trial.attach("q", 1, 1);
        let low = trial.receive().remove(0);
        trial.advance(Span::seconds(5));
        send(&mut trial, "high", 9);
        trial.advance(Span::seconds(3));
        // Whoever holds the low one has no credit; another comes for the high one.
        trial.attach("q", 2, 1);
        assert_eq!(trial.receive().len(), 1);
        assert_eq!(inversions(&trial, 9), (1, 3_000), "since it could have been delivered");
        assert_eq!(inversions(&trial, 1), (0, 0));
        trial.settle(&low, Settlement::Complete).unwrap();
        send(&mut trial, "late", 9);
        trial.advance(Span::seconds(2));
        trial.attach("q", 3, 1);
        assert_eq!(trial.receive().len(), 1);
        assert_eq!(inversions(&trial, 9), (1, 3_000), "nothing lower was held");
    }

    #[test]
    fn a_wait_behind_equals_is_not_an_inversion() {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        send(&mut trial, "equal", 9);
        trial.attach("q", 1, 1);
        trial.receive();
        send(&mut trial, "high", 9);
        trial.advance(Span::seconds(4));
        trial.attach("q", 2, 1);
        assert_eq!(trial.receive().len(), 1);
        assert_eq!(inversions(&trial, 9), (0, 0), "an equal is not lower");
    }
}
