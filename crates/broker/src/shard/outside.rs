//! How much is still alive of what lies outside the ring: extents, and segments that rest.
//!
//! A file is given back when nothing in it lives any more. Messages leave in the order of their levels,
//! not in the order they lie in, so many files could stay for a few survivors each. When what is dead
//! outweighs its share, the survivors of the file with the most of it move to a new extent.

use std::collections::BTreeMap;
use vorrang_engine::{Span, Timestamp};
use vorrang_log::Region;
use vorrang_log::extent::Footer;

/// How often to look.
const LOOK_EVERY: Span = Span::seconds(1);
/// Dead bytes are let be up to this part of the living ones. A smaller part means that more is copied to
/// gain less.
const DEAD_PART: u64 = 4;

/// What is known of the files outside the ring.
#[derive(Debug, Default)]
pub(super) struct Outside {
    known: BTreeMap<Region, Known>,
    looked: Timestamp,
}

/// A file as it was written.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// How many messages went into it; none if it does not say, and is let be.
    messages: Option<u64>,
    bytes: u64,
}

/// What an extent says about itself in its footer: how many messages it was written with.
pub(super) fn summary(messages: usize) -> [u8; 4] {
    u32::try_from(messages).unwrap_or(u32::MAX).to_le_bytes()
}

impl Outside {
    /// Whether it is time to look again; from now on it is not for a while.
    pub(super) fn is_due(&mut self, now: Timestamp) -> bool {
        let due = now.since(self.looked) >= LOOK_EVERY;
        if due {
            self.looked = now;
        }
        due
    }

    /// Takes note of a segment that rests: how many messages it has when it is full, and its length.
    pub(super) fn rest(&mut self, segment: Region, messages: u64, bytes: u64) {
        self.known.insert(segment, Known { messages: Some(messages), bytes });
    }

    /// Whether a region is outside the ring.
    pub(super) fn has(&self, region: Region) -> bool {
        region.is_extent() || self.known.contains_key(&region)
    }

    /// Takes note of which regions there are; `footer` tells of extents not known yet.
    pub(super) fn meet(&mut self, there: &[Region], footer: impl Fn(Region) -> Option<Footer>) {
        self.known.retain(|region, _| there.binary_search(region).is_ok());
        for region in there.iter().filter(|region| region.is_extent()) {
            self.known.entry(*region).or_insert_with(|| footer(*region).map_or(Known::SILENT, Known::from));
        }
    }

    /// The file to empty, if too much of them all is dead; `living` tells how many messages live in one.
    /// Less than `slack` is not worth the while.
    pub(super) fn to_empty(&self, slack: u64, living: impl Fn(Region) -> u64) -> Option<Region> {
        let alive = |region: &Region, known: &Known| -> Option<u64> {
            let messages = known.messages.filter(|messages| *messages > 0)?;
            let share = u128::from(living(*region).min(messages)) * u128::from(known.bytes);
            u64::try_from(share / u128::from(messages)).ok()
        };
        let (mut all_alive, mut all_dead, mut worst) = (0_u64, 0_u64, (0, None));
        for (region, known) in &self.known {
            let Some(alive) = alive(region, known) else { continue };
            let dead = known.bytes.saturating_sub(alive);
            all_alive = all_alive.saturating_add(alive);
            all_dead = all_dead.saturating_add(dead);
            if alive > 0 && dead > worst.0 {
                worst = (dead, Some(*region));
            }
        }
        let too_much = all_dead > all_alive / DEAD_PART && all_dead > slack;
        worst.1.filter(|_| too_much)
    }
}

impl Known {
    const SILENT: Known = Known { messages: None, bytes: 0 };
}

impl From<Footer> for Known {
    fn from(footer: Footer) -> Known {
        let bytes = u64::from(footer.records_end).saturating_add(u64::from(footer.index_bytes));
        let messages = footer.summary.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        Known { messages, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside(sizes: &[(u32, Option<u64>, u64)]) -> Outside {
        let known = sizes
            .iter()
            .map(|(number, messages, bytes)| {
                (Region::extent(*number), Known { messages: *messages, bytes: *bytes })
            })
            .collect();
        Outside { known, looked: Timestamp::default() }
    }

    #[test]
    fn the_extent_with_the_most_dead_bytes_is_emptied_once_a_quarter_is_dead() {
        let outside = outside(&[(1, Some(100), 1_000), (2, Some(100), 1_000), (3, None, 9_000)]);
        let cases = [
            ("all alive", [100, 100], 0, None),
            ("a fifth dead", [80, 80], 0, None),
            ("more than that", [80, 79], 0, Some(2)),
            ("not worth it", [80, 79], 500, None),
            ("copies count more than once", [300, 10], 0, Some(2)),
            ("an empty one is given back as it is", [0, 50], 0, Some(2)),
        ];
        for (case, living, slack, expected) in cases {
            let living = |region: Region| match region.number() {
                1 => living[0],
                2 => living[1],
                _ => 0,
            };
            assert_eq!(outside.to_empty(slack, living), expected.map(Region::extent), "{case}");
        }
    }

    #[test]
    fn a_segment_that_rests_is_looked_at_like_an_extent_until_it_is_gone() {
        let mut outside = outside(&[(1, Some(100), 1_000)]);
        let (extent, segment) = (Region::extent(1), Region::segment(5));
        assert!(outside.has(extent) && !outside.has(segment));
        outside.rest(segment, 100, 1_000);
        let living = |region: Region| if region == segment { 40 } else { 100 };
        assert_eq!(outside.to_empty(0, living), Some(segment));
        let mut there = vec![Region::segment(4), segment, extent];
        there.sort_unstable();
        outside.meet(&there, |_| None);
        assert!(outside.has(segment) && !outside.has(Region::segment(4)));
        outside.meet(&[extent], |_| None);
        assert!(!outside.has(segment));
    }

    #[test]
    fn looking_has_its_time() {
        let mut outside = Outside::default();
        let seen: Vec<bool> =
            [5_000, 5_001, 5_999, 6_000].into_iter().map(|at| outside.is_due(Timestamp(at))).collect();
        assert_eq!(seen, [true, false, false, true]);
    }
}
