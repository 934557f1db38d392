//! Numbers that many tasks count and anybody reads, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How many so far.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram with fixed bounds.
#[derive(Debug)]
pub struct Meter {
    /// The largest value of each bucket, ascending; larger ones count beside.
    bounds: &'static [u64],
    counts: Box<[Counter]>,
    beyond: Counter,
    sum: Counter,
}

impl Meter {
    /// An empty histogram with these bounds.
    #[must_use]
    pub fn new(bounds: &'static [u64]) -> Meter {
        let counts = bounds.iter().map(|_| Counter::default()).collect();
        Meter { bounds, counts, beyond: Counter::default(), sum: Counter::default() }
    }

    /// Counts a value.
    pub fn record(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts.get(bucket).unwrap_or(&self.beyond).add(1);
        self.sum.add(value);
    }

    /// The bounds, each with how many values were at most that; then how many there were, and their sum.
    #[must_use]
    pub fn read(&self) -> (Vec<(u64, u64)>, u64, u64) {
        let mut total = 0_u64;
        let buckets = self.bounds.iter().zip(&self.counts).map(|(bound, count)| {
            total = total.saturating_add(count.read());
            (*bound, total)
        });
        let buckets = buckets.collect();
        (buckets, total.saturating_add(self.beyond.read()), self.sum.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_in_every_bucket_whose_bound_it_does_not_exceed() {
        let meter = Meter::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, 1_000] {
            meter.record(value);
        }
        assert_eq!(meter.read(), (vec![(10, 2), (20, 4)], 6, 1_062));
    }
}
