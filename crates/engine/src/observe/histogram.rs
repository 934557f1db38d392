//! A histogram of durations: exact counts in buckets whose width grows with the value.
//!
//! Values below 32 have a bucket each; above, every doubling is divided into 32 buckets, so a value is
//! known to within 1 part in 32 and a bucket's middle is off by at most 1.6 %. A doubling's buckets
//! are allocated when the first value falls into them: an empty histogram is a few hundred bytes and a
//! full one 11 KiB, whatever comes in.

use std::fmt;

/// Buckets for each doubling, as a power of two.
const BITS: u32 = 5;
const PER_OCTAVE: usize = 1 << BITS;
/// Values of this many bits and more share the last bucket: in milliseconds, over 17 years.
const VALUE_BITS_MAX: u32 = 39;

/// Counts of values, by size.
#[derive(Clone, Default)]
pub struct Histogram {
    octaves: Vec<Option<Box<[u64; PER_OCTAVE]>>>,
    count: u64,
    sum: u64,
    max: u64,
}

/// A bucket that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The smallest value that falls in.
    pub low: u64,
    /// The largest value that falls in.
    pub high: u64,
    /// How many did.
    pub count: u64,
}

impl Histogram {
    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        let (octave, slot) = place(value);
        let counts = match self.octaves.get_mut(octave) {
            Some(Some(counts)) => counts,
            _ => self.open(octave),
        };
        if let Some(count) = counts.get_mut(slot) {
            *count = count.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    #[cold]
    fn open(&mut self, octave: usize) -> &mut [u64; PER_OCTAVE] {
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, None);
        }
        let counts = self.octaves.get_mut(octave).expect("there are so many now");
        counts.get_or_insert_default()
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, exactly.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest, exactly.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The buckets that are not empty, smallest values first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let octaves = self.octaves.iter().enumerate();
        let octaves = octaves.filter_map(|(octave, counts)| Some((octave, counts.as_deref()?)));
        octaves
            .flat_map(|(octave, counts)| {
                counts.iter().enumerate().map(move |(slot, count)| (octave, slot, *count))
            })
            .filter(|(.., count)| *count > 0)
            .map(|(octave, slot, count)| {
                let (low, high) = range(octave, slot);
                Bucket { low, high, count }
            })
    }

    /// The value that `per_mille` thousandths of all values do not exceed, to within a bucket: the
    /// largest value of its bucket, but never more than the largest counted. `None` if there are none.
    #[must_use]
    pub fn quantile(&self, per_mille: u16) -> Option<u64> {
        let wanted =
            u128::from(self.count).saturating_mul(u128::from(per_mille.min(1_000))).div_ceil(1_000).max(1);
        let mut seen = 0_u128;
        for bucket in self.buckets() {
            seen += u128::from(bucket.count);
            if seen >= wanted {
                return Some(bucket.high.min(self.max));
            }
        }
        None
    }

    /// How many values were at most `bound`, where a bucket that straddles it counts by its low end.
    #[must_use]
    pub fn at_most(&self, bound: u64) -> u64 {
        self.buckets().take_while(|bucket| bucket.low <= bound).map(|bucket| bucket.count).sum()
    }

    /// Counts the other's values in.
    pub fn merge(&mut self, other: &Histogram) {
        if self.octaves.len() < other.octaves.len() {
            self.octaves.resize(other.octaves.len(), None);
        }
        for (mine, theirs) in self.octaves.iter_mut().zip(&other.octaves) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert_default();
            for (count, more) in mine.iter_mut().zip(theirs.iter()) {
                *count = count.saturating_add(*more);
            }
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("sum", &self.sum)
            .field("max", &self.max)
            .field("median", &self.quantile(500))
            .finish_non_exhaustive()
    }
}

/// The octave and slot a value falls into.
fn place(value: u64) -> (usize, usize) {
    let value = value.min((1 << VALUE_BITS_MAX) - 1);
    let bits = u64::BITS - value.leading_zeros();
    let shift = bits.saturating_sub(BITS + 1);
    let slot = (value >> shift) & ((1 << BITS) - 1);
    // Values below 32 have no leading bit to drop and fill octave 0; those of 6 bits fill octave 1.
    let octave = bits.saturating_sub(BITS);
    let narrow = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    (narrow(u64::from(octave)), narrow(slot))
}

/// The smallest and largest value of a bucket; the last one has no upper end.
fn range(octave: usize, slot: usize) -> (u64, u64) {
    let octave = u32::try_from(octave).unwrap_or(0);
    let slot = u64::try_from(slot).unwrap_or(0);
    if octave == 0 {
        return (slot, slot);
    }
    let shift = octave - 1;
    let low = (slot + (1 << BITS)) << shift;
    let last = octave == VALUE_BITS_MAX - BITS && slot == (1 << BITS) - 1;
    (low, if last { u64::MAX } else { low + ((1 << shift) - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OCTAVES: usize = 35;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    #[test]
    fn every_bucket_begins_where_the_one_before_ends() {
        let mut next = 0;
        for octave in 0..OCTAVES {
            for slot in 0..PER_OCTAVE {
                let (low, high) = range(octave, slot);
                assert_eq!(low, next, "{octave} {slot}");
                assert_eq!(place(low), (octave, slot));
                assert_eq!(place(high), (octave, slot));
                next = high.wrapping_add(1);
            }
        }
        assert_eq!(next, 0, "the last bucket ends with the last value");
    }

    #[test]
    fn memory_is_bounded_whatever_comes_in() {
        let mut histogram = Histogram::default();
        for bit in 0..64 {
            for value in [1_u64 << bit, (1 << bit) - 1, u64::MAX] {
                histogram.record(value);
            }
        }
        assert_eq!(histogram.octaves.len(), OCTAVES);
        assert_eq!(histogram.count(), 192);
        assert_eq!(histogram.max(), u64::MAX);
    }

    #[test]
    fn an_empty_histogram_has_no_quantiles() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantile(500), None);
        assert_eq!(histogram.buckets().count(), 0);
        assert_eq!(histogram.at_most(u64::MAX), 0);
    }

    proptest! {
        #[test]
        fn quantiles_are_right_to_within_a_bucket(
            mut values in proptest::collection::vec(prop_oneof![0..100_u64, 0..100_000_u64, 0..1_u64 << 38], 1..200),
            per_mille in 0..=1_000_u16,
        ) {
            let histogram = of(&values);
            values.sort_unstable();
            let rank = (values.len() * usize::from(per_mille)).div_ceil(1_000).max(1);
            let exact = values[rank - 1];
            let found = histogram.quantile(per_mille).unwrap();
            prop_assert!(found >= exact);
            prop_assert!(found - exact <= exact / 32, "{} instead of {}", found, exact);
            prop_assert_eq!(histogram.sum(), values.iter().sum::<u64>());
            prop_assert_eq!(histogram.at_most(u64::MAX), histogram.count());
        }

        #[test]
        fn merging_is_counting_both(
            left in proptest::collection::vec(0..1_000_000_u64, 0..50),
            right in proptest::collection::vec(0..1_000_000_u64, 0..50),
        ) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let both = of(&[left, right].concat());
            prop_assert!(merged.buckets().eq(both.buckets()));
            prop_assert_eq!((merged.count(), merged.sum(), merged.max()), (both.count(), both.sum(), both.max()));
        }
    }
}
