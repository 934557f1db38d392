//! Latencies in buckets of about 1.6 %, in constant memory.

use std::time::Duration;

/// Buckets per power of two.
const STEPS: u64 = 64;

/// A histogram of durations.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max: u64,
}

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram { buckets: vec![0; usize::try_from(STEPS * 64).unwrap_or(4_096)], count: 0, max: 0 }
    }

    /// Adds one duration.
    pub(crate) fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) =
            usize::try_from(bucket_of(micros)).ok().and_then(|place| self.buckets.get_mut(place))
        {
            *bucket += 1;
        }
        self.count += 1;
        self.max = self.max.max(micros);
    }

    /// Adds all of another's.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// The duration that `per_mille` of a thousand do not exceed, in milliseconds.
    pub(crate) fn quantile_ms(&self, per_mille: u64) -> f64 {
        let wanted = (self.count * per_mille).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (place, count) in (0_u64..).zip(&self.buckets) {
            seen += count;
            if seen >= wanted {
                return milliseconds(upper_of(place).min(self.max));
            }
        }
        milliseconds(self.max)
    }

    pub(crate) fn max_ms(&self) -> f64 {
        milliseconds(self.max)
    }
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a figure for people")]
fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

fn bucket_of(value: u64) -> u64 {
    if value < STEPS {
        return value;
    }
    let power = u64::from(value.ilog2());
    let shift = power - u64::from(STEPS.ilog2());
    (shift + 1) * STEPS + (value >> shift) - STEPS
}

fn upper_of(bucket: u64) -> u64 {
    if bucket < STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    ((bucket % STEPS + STEPS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_two_percent() {
        let mut histogram = Histogram::new();
        for micros in 1..=100_000 {
            histogram.record(Duration::from_micros(micros));
        }
        for (per_mille, expected) in [(500, 50.0), (990, 99.0), (999, 99.9), (1_000, 100.0)] {
            let found = histogram.quantile_ms(per_mille);
            assert!((found - expected).abs() <= expected * 0.02, "{per_mille}: {found} for {expected}");
        }
    }

    #[test]
    fn every_value_lies_in_its_bucket() {
        for value in (0..10_000).chain([1 << 20, (1 << 33) + 7, u64::MAX / 2]) {
            let bucket = bucket_of(value);
            assert!(value <= upper_of(bucket), "{value}");
            assert!(bucket == 0 || value > upper_of(bucket - 1), "{value}");
        }
    }
}
