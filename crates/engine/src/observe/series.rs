//! What is known about the messages of one level in one mailbox.

use super::histogram::Histogram;
use super::rate::Rate;
use crate::fact::DeadLetterCause;
use crate::time::{Span, Timestamp};

/// Everything counted about one level. Allocated when the first message of the level comes in.
#[derive(Debug, Clone)]
pub struct Series {
    /// Messages that came in.
    pub arrivals: u64,
    /// Deliveries, repeated ones too.
    pub deliveries: u64,
    /// Messages completed, or sent to a receiver that does not settle.
    pub completions: u64,
    /// Deliveries that ended with the message going back.
    pub returns: u64,
    /// Messages dead-lettered, by why.
    pub dead_lettered: DeadLetters,
    /// Messages that outlived their time, dead-lettered for it or not.
    pub expired: u64,
    /// First deliveries within the class's target, if it had one then.
    pub in_target: u64,
    /// First deliveries later than the class's target.
    pub past_target: u64,
    /// From eligible to the first delivery, in milliseconds.
    pub wait: Histogram,
    /// From a delivery to its end by settlement, in milliseconds.
    pub processing: Histogram,
    /// From eligible to completed, in milliseconds.
    pub end_to_end: Histogram,
    /// How long messages waited, up to their first delivery, while lower ones of the same mailbox were
    /// held by receivers without a break, in milliseconds. Those that did not are not counted.
    pub inversion: Histogram,
    /// Arrivals lately.
    pub arrival_rate: Rate,
    /// Deliveries lately.
    pub delivery_rate: Rate,
    /// Completions lately.
    pub completion_rate: Rate,
    /// First deliveries within the target lately.
    pub in_target_rate: Rate,
    /// First deliveries past the target lately.
    pub past_target_rate: Rate,
    /// Since when some message of the level has been held, while one is.
    pub(crate) held_since: Timestamp,
}

/// Messages dead-lettered, by why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeadLetters {
    counts: [u64; DeadLetterCause::ALL.len()],
}

impl DeadLetters {
    fn count(&mut self, cause: DeadLetterCause) {
        for (count, known) in self.counts.iter_mut().zip(DeadLetterCause::ALL) {
            if known == cause {
                *count = count.saturating_add(1);
            }
        }
    }

    /// How many there were for each cause, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (DeadLetterCause, u64)> {
        DeadLetterCause::ALL.into_iter().zip(self.counts)
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl Series {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(now: Timestamp) -> Series {
        Series {
            arrivals: 0,
            deliveries: 0,
            completions: 0,
            returns: 0,
            dead_lettered: DeadLetters::default(),
            expired: 0,
            in_target: 0,
            past_target: 0,
            wait: Histogram::default(),
            processing: Histogram::default(),
            end_to_end: Histogram::default(),
            inversion: Histogram::default(),
            arrival_rate: Rate::new(now),
            delivery_rate: Rate::new(now),
            completion_rate: Rate::new(now),
            in_target_rate: Rate::new(now),
            past_target_rate: Rate::new(now),
            held_since: now,
        }
    }

    /// A message came in.
    pub fn arrived(&mut self, now: Timestamp) {
        self.arrivals = self.arrivals.saturating_add(1);
        self.arrival_rate.count(now, 1);
    }

    /// A message that has been `eligible` since then was delivered. Only its first delivery says how
    /// long it waited; `target` is what its class was promised.
    pub fn delivered(&mut self, now: Timestamp, eligible: Timestamp, first: bool, target: Option<Span>) {
        self.deliveries = self.deliveries.saturating_add(1);
        self.delivery_rate.count(now, 1);
        if !first {
            return;
        }
        let waited = now.since(eligible);
        self.wait.record(waited.0);
        match target {
            Some(target) if waited <= target => {
                self.in_target = self.in_target.saturating_add(1);
                self.in_target_rate.count(now, 1);
            }
            Some(_) => {
                self.past_target = self.past_target.saturating_add(1);
                self.past_target_rate.count(now, 1);
            }
            None => {}
        }
    }

    /// A message was completed. One that is deleted as it is delivered was never `locked`.
    pub fn completed(&mut self, now: Timestamp, eligible: Timestamp, locked: Option<Timestamp>) {
        self.completions = self.completions.saturating_add(1);
        self.completion_rate.count(now, 1);
        self.end_to_end.record(now.since(eligible).0);
        if let Some(locked) = locked {
            self.processing.record(now.since(locked).0);
        }
    }

    /// A delivery ended by settlement, but the message stays: abandoned, deferred, dead-lettered.
    pub fn settled(&mut self, now: Timestamp, locked: Timestamp) {
        self.processing.record(now.since(locked).0);
    }

    /// A message went back to its place.
    pub fn returned(&mut self) {
        self.returns = self.returns.saturating_add(1);
    }

    /// A message was dead-lettered.
    pub fn dead_lettered(&mut self, cause: DeadLetterCause) {
        self.dead_lettered.count(cause);
    }

    /// A message outlived its time.
    pub fn expired(&mut self) {
        self.expired = self.expired.saturating_add(1);
    }

    /// Which part of the last five minutes' first deliveries met their target, in thousandths; `None`
    /// if there were none with a target.
    #[must_use]
    pub fn attainment(&self, now: Timestamp) -> Option<u16> {
        let (met, _) = self.in_target_rate.within(now, Span::FOREVER);
        let (missed, _) = self.past_target_rate.within(now, Span::FOREVER);
        let share = met.saturating_mul(1_000).checked_div(met.saturating_add(missed))?;
        u16::try_from(share).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_delivery_tells_the_wait_and_meets_or_misses_the_target() {
        let mut series = Series::new(Timestamp(0));
        let target = Some(Span(10_000));
        assert_eq!(series.attainment(Timestamp(0)), None);
        series.delivered(Timestamp(10_000), Timestamp(0), true, target);
        series.delivered(Timestamp(10_001), Timestamp(0), true, target);
        series.delivered(Timestamp(99_000), Timestamp(0), false, target);
        series.delivered(Timestamp(99_000), Timestamp(0), true, None);
        assert_eq!((series.in_target, series.past_target, series.deliveries), (1, 1, 4));
        assert_eq!(series.wait.count(), 3);
        assert_eq!(series.attainment(Timestamp(99_000)), Some(500));
    }

    #[test]
    fn completion_closes_both_clocks() {
        let mut series = Series::new(Timestamp(0));
        series.completed(Timestamp(900), Timestamp(100), Some(Timestamp(700)));
        series.completed(Timestamp(900), Timestamp(100), None);
        series.settled(Timestamp(950), Timestamp(900));
        assert_eq!((series.end_to_end.count(), series.end_to_end.sum()), (2, 1_600));
        assert_eq!((series.processing.count(), series.processing.sum()), (2, 250));
        assert_eq!(series.completions, 2);
    }
}
