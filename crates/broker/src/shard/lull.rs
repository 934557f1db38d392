//! When a shard has had nothing to do for a while, it gives up what it only kept for its work.
//!
//! Buffers that are used again and again, and payloads that somebody may ask for at once, are worth their memory while
//! there is work. A backlog that lies there for hours would keep them for as long. So a second after the last request
//! they go, once for each burst of work; the next burst makes them anew within a millisecond, and reads back what it
//! is asked for.

use vorrang_engine::{Span, Timestamp};

/// How long nothing has come in. Longer than a client waits that does one thing after the other.
const AFTER: Span = Span::seconds(1);
/// Fewer items leave little behind.
const ITEMS_MIN: usize = 1_024;
/// As few bytes of payloads.
const BYTES_MIN: usize = 1 << 20;

/// What was done since the last lull.
#[derive(Debug, Default)]
pub(super) struct Lull {
    busy_at: Timestamp,
    items: usize,
}

impl Lull {
    /// Notes that so much is at hand at `now`.
    pub(super) fn work(&mut self, now: Timestamp, items: usize) {
        if items > 0 {
            self.busy_at = now;
            self.items = self.items.saturating_add(items);
        }
    }

    /// Whether there is one to be used, with so many bytes of payloads kept.
    pub(super) fn is_due(&self, now: Timestamp, bytes: usize) -> bool {
        now.since(self.busy_at) >= AFTER && (self.items >= ITEMS_MIN || bytes >= BYTES_MIN)
    }

    /// Notes that it was used, and begins anew.
    pub(super) fn over(&mut self) {
        self.items = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_a_second_after_work_that_left_something_behind_and_once() {
        let mut lull = Lull::default();
        lull.work(Timestamp(5_000), ITEMS_MIN - 1);
        assert!(!lull.is_due(Timestamp(9_000), BYTES_MIN - 1), "little was done");
        assert!(lull.is_due(Timestamp(9_000), BYTES_MIN), "but it was large");
        lull.work(Timestamp(9_000), 1);
        assert!(!lull.is_due(Timestamp(9_999), 0));
        lull.work(Timestamp(9_999), 0);
        assert!(lull.is_due(Timestamp(10_000), 0), "a step without anything at hand is no work");
        lull.over();
        assert!(!lull.is_due(Timestamp(20_000), 0));
    }
}
