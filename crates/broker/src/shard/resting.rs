//! Which segments stay as they are when the ring runs short.
//!
//! Messages are moved out of the ring so that those of one lane lie together: a backlog is read lane by lane, and what is
//! scattered over a segment is read at a twentieth of the speed. Where a lane already has a segment to itself, or shares
//! it with one or two others, moving it would gain nothing. Such a segment *rests*: it keeps its messages, does not count
//! for the ring any more, and the log goes on with other files. What lies scattered among them moves all the same.

use super::evacuation::Tenant;
use super::regions::{named, region_of};
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::fact::RestoredRun;
use vorrang_engine::{Fact, FrozenState, Level, MailboxId};
use vorrang_log::Region;

/// What a message takes in the log beside its payload, about.
const RECORD_BYTES: u64 = 64;
/// A lane lies close together in a segment if it has at least this part of it. [`vorrang_log::Sweep`] reads whole
/// stretches down to that.
const CLOSE_PART: u64 = 3;
/// A segment rests if lanes that lie close together have at least this part of it.
const RESTING_PART: u64 = 2;

type Lane = (MailboxId, Level);

/// Who lives in which segment.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Bytes of each lane in each segment.
    bytes: BTreeMap<(Region, Lane), u64>,
    messages: BTreeMap<Region, u64>,
}

/// The segments that rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Resting {
    lanes: BTreeSet<(Region, Lane)>,
    /// With how many messages lie in each, or would if it were full.
    pub(super) segments: Vec<(Region, u64)>,
}

impl Census {
    /// Counts everybody in these segments.
    pub(super) fn of(frozen: &FrozenState, segments: &BTreeSet<Region>) -> Census {
        let mut census = Census::default();
        if segments.is_empty() {
            return census;
        }
        frozen.facts().for_each(|fact| match fact {
            Fact::RestoredRun(run) => census.count_run(&run, segments),
            Fact::RestoredMessage(message) => {
                let tenant = Tenant::of(&message);
                let region = region_of(tenant.record.location);
                if segments.contains(&region) {
                    census.count(region, (tenant.mailbox, tenant.level), 1, u64::from(tenant.record.size));
                }
            }
            _ => {}
        });
        census
    }

    /// What a run has in each segment: its bytes are known only as a whole.
    fn count_run(&mut self, run: &RestoredRun, segments: &BTreeSet<Region>) {
        let all: u64 = run.regions.iter().map(|(_, count)| u64::from(*count)).sum();
        let mean = run.bytes.checked_div(all).unwrap_or(0);
        for (region, count) in &run.regions {
            let (region, count) = (named(*region), u64::from(*count));
            if segments.contains(&region) {
                self.count(region, (run.mailbox, run.level), count, count.saturating_mul(mean));
            }
        }
    }

    fn count(&mut self, region: Region, lane: Lane, messages: u64, payload_bytes: u64) {
        let bytes = self.bytes.entry((region, lane)).or_default();
        *bytes = bytes.saturating_add(payload_bytes).saturating_add(messages.saturating_mul(RECORD_BYTES));
        let count = self.messages.entry(region).or_default();
        *count = count.saturating_add(messages);
    }

    /// The segments in which lanes lie close together, given how long a segment is.
    pub(super) fn resting(&self, segment_bytes: u64) -> Resting {
        let mut resting = Resting::default();
        for region in self.messages.keys() {
            let close = || self.lanes(*region).filter(|(_, bytes)| *bytes >= segment_bytes / CLOSE_PART);
            let bytes = close().map(|(_, bytes)| bytes).fold(0, u64::saturating_add);
            if bytes >= segment_bytes / RESTING_PART {
                resting.lanes.extend(close().map(|(lane, _)| (*region, lane)));
                resting.segments.push((*region, self.messages_if_full(*region, segment_bytes)));
            }
        }
        resting
    }

    /// How many messages lie in a segment, or would if it were as full as one that rests: what is missing is dead.
    pub(super) fn messages_if_full(&self, region: Region, segment_bytes: u64) -> u64 {
        let messages = self.messages.get(&region).copied().unwrap_or(0);
        let bytes = self.lanes(region).map(|(_, bytes)| bytes).fold(0, u64::saturating_add).max(1);
        let full = bytes.max(segment_bytes / RESTING_PART);
        u64::try_from(u128::from(messages) * u128::from(full) / u128::from(bytes)).unwrap_or(u64::MAX)
    }

    fn lanes(&self, region: Region) -> impl Iterator<Item = (Lane, u64)> {
        let lanes = (region, (MailboxId(0), Level(0)))..=(region, (MailboxId(u32::MAX), Level(u8::MAX)));
        self.bytes.range(lanes).map(|((_, lane), bytes)| (*lane, *bytes))
    }
}

impl Resting {
    /// Whether the messages of a lane stay in a segment.
    pub(super) fn stays(&self, region: Region, lane: Lane) -> bool {
        self.lanes.contains(&(region, lane))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 90_000;

    fn lane(number: u32) -> Lane {
        (MailboxId(number), Level(4))
    }

    /// A segment in which each lane has so many kilobytes.
    fn census(kilobytes: &[u64]) -> Census {
        let mut census = Census::default();
        for (number, kilobytes) in (1..).zip(kilobytes) {
            census.count(Region::segment(7), lane(number), *kilobytes, kilobytes * (1_000 - RECORD_BYTES));
        }
        census
    }

    #[test]
    fn a_segment_rests_when_half_of_it_belongs_to_lanes_with_a_third_each() {
        let cases: [(&str, &[u64], &[u32]); 9] = [
            ("one lane", &[90], &[1]),
            ("half of it", &[45], &[1]),
            ("less", &[44], &[]),
            ("two that share it", &[44, 44], &[1, 2]),
            ("three", &[30, 30, 30], &[1, 2, 3]),
            ("four", &[22, 22, 22, 22], &[]),
            ("one, and strangers", &[60, 20, 5], &[1]),
            ("one that is not enough, and strangers", &[40, 29, 20], &[]),
            ("nobody", &[], &[]),
        ];
        for (case, kilobytes, staying) in cases {
            let resting = census(kilobytes).resting(SEGMENT);
            let stays: Vec<u32> =
                (1..5).filter(|number| resting.stays(Region::segment(7), lane(*number))).collect();
            assert_eq!(stays, staying, "{case}");
            assert_eq!(resting.segments.len(), usize::from(!staying.is_empty()), "{case}");
            assert!(!resting.stays(Region::segment(8), lane(1)), "{case}");
        }
    }

    #[test]
    fn what_is_missing_in_a_segment_is_told_by_how_full_it_is() {
        let full = |kilobytes: &[u64]| census(kilobytes).messages_if_full(Region::segment(7), SEGMENT);
        assert_eq!(full(&[90]), 90);
        assert_eq!(full(&[46]), 46, "there is more in a segment than messages");
        assert_eq!(full(&[30]), 45);
        assert_eq!(full(&[9, 1]), 45);
        assert_eq!(full(&[90, 90]), 180, "copies of one payload count each");
        assert_eq!(full(&[]), 0);
    }

    #[test]
    fn a_run_counts_in_each_segment_for_its_part() {
        let run = RestoredRun {
            mailbox: MailboxId(1),
            level: Level(4),
            run: vorrang_engine::RunId(1),
            count: 100,
            consumed: 10,
            from: Default::default(),
            last: Default::default(),
            bytes: 90 * (1_000 - RECORD_BYTES),
            regions: vec![(vorrang_engine::Region(7), 60), (vorrang_engine::Region(8), 30)],
        };
        let mut counted = Census::default();
        counted.count_run(&run, &BTreeSet::from([Region::segment(7), Region::segment(9)]));
        let mut expected = Census::default();
        expected.count(Region::segment(7), lane(1), 60, 60 * (1_000 - RECORD_BYTES));
        assert_eq!((counted.bytes, counted.messages), (expected.bytes, expected.messages));
    }
}
