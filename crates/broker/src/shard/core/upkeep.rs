//! Snapshots, evacuations and what comes back from disk.

use super::Core;
use crate::api::Condition;
use crate::journal::record::Scratch;
use crate::shard::chilling::Chilling;
use crate::shard::evacuation::{Evacuated, Evacuation};
use crate::shard::regions::counted;
use crate::shard::resting::Census;
use crate::shard::snapshot::{Snapshot, Unfinished};
use std::collections::BTreeSet;
use vorrang_engine::{Command, Outcome, Span};
use vorrang_log::{Failure, Pace, Region, Sweep, extent, snapshot};

/// Segments emptied by one evacuation: finding what lies in them is the greater part of the work.
const SEGMENTS_AT_ONCE: usize = 4;
/// How long a segment that could not be emptied is left alone. A run that is being read while it moves stays behind, and
/// may be left alone the next time.
const EVACUATION_PAUSE: Span = Span::seconds(2);

/// With more messages in memory, looking at all of them would hold up the stop.
const STOP_MESSAGES_MAX: u32 = 2_000_000;

impl Core {
    /// Makes everything that was handed to the log durable, and does the log's background work: for
    /// shards whose log has no threads.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.writer.log_mut().flush()?;
        self.writer.log().upkeep();
        Ok(())
    }

    /// How the shard is doing.
    pub(super) fn condition(&self) -> Condition {
        let log = self.writer.log();
        Condition {
            now: self.now,
            connections: self.peers.len(),
            locks: self.state.lock_count(),
            held_events: self.hold.len(),
            ring: log.pressure(),
            extents: log.regions().iter().filter(|region| region.is_extent()).count(),
            bytes_since_snapshot: self.writer.bytes(),
            snapshot_at: self.snapshot_at,
            commits: self.hold.durable().0,
            room: self.room,
        }
    }

    /// Begins a snapshot if one is due and the shard is not over.
    pub fn snapshot_if_due(&mut self) -> Option<Result<Snapshot, snapshot::Error>> {
        let wanted = self.writer.log().pressure().snapshot_wanted;
        let waited = self.now.since(self.snapshot_at);
        let due = self.snapshots.is_due(self.writer.bytes(), waited, wanted);
        (due && self.over.is_none()).then(|| self.snapshot())
    }

    /// Begins a snapshot of everything decided so far.
    pub fn snapshot(&mut self) -> Result<Snapshot, snapshot::Error> {
        let writer = self.writer.log_mut().snapshot(self.snapshots.pace)?;
        self.writer.mark();
        self.snapshot_at = self.now;
        Ok(Snapshot::new(writer, self.state.freeze(), self.writer.regions().spans()))
    }

    /// Before the log is closed: takes out of memory what only waits, and writes a snapshot, so that the next start has
    /// little to read. Nothing hangs on it: if it cannot be done, that start takes longer.
    pub(super) fn tidy_to_stop(&mut self) -> Result<(), Failure> {
        let quick = self.state.messages_in_memory() <= STOP_MESSAGES_MAX;
        if !quick || self.writer.bytes() < self.snapshots.bytes_at_stop {
            return Ok(());
        }
        self.chill_to_stop()?;
        self.snapshots.pace = Pace::UNLIMITED;
        let _ = self.snapshot().and_then(Snapshot::write).and_then(Unfinished::finish);
        Ok(())
    }

    fn chill_to_stop(&mut self) -> Result<(), Failure> {
        self.own.clear();
        let begun = self.writer.log().extent();
        let chilled = begun.and_then(|writer| Chilling::new(&mut self.state, writer).run());
        self.own.extend(chilled.unwrap_or_default());
        while !self.own.is_empty() {
            self.writer.begin(self.now);
            while !self.writer.is_full()
                && let Some(command) = self.own.pop_front()
            {
                self.carry_out(&command, None)?;
            }
            self.writer.end()?;
            self.writer.log_mut().flush()?;
        }
        Ok(())
    }

    /// Begins to empty the oldest segments if the ring runs short, or an extent of which too much is dead.
    pub fn evacuation_if_due(&mut self) -> Option<Result<Evacuation, extent::Error>> {
        if self.over.is_some() || !self.own.is_empty() {
            return None;
        }
        let mut may_rest = BTreeSet::new();
        let (regions, bytes_max) = if let Some(segments) = self.segments_to_empty() {
            may_rest
                .extend(segments.iter().copied().filter(|region| !self.writer.regions().is_crossed(*region)));
            (segments, u64::MAX)
        } else {
            self.sparse_segment_to_empty().or_else(|| Some((self.outsider_to_empty()?, u64::MAX)))?
        };
        let segment_bytes = self.writer.log().pressure().segment_bytes;
        let (reader, pace) = (self.reader.clone(), self.evacuation_pace());
        let begun = self.writer.log().extent().map(|writer| Evacuation {
            frozen: self.state.freeze(),
            spanned: self.writer.regions().spanning(&regions),
            regions,
            may_rest,
            segment_bytes,
            reader,
            sweep: Sweep::default(),
            writer,
            record_bytes_max: self.record_bytes_max,
            bytes_max,
            pace,
        });
        Some(begun)
    }

    /// Begins to take plain waiting messages out of memory, if there are many.
    pub fn chilling_if_due(&mut self) -> Option<Result<Chilling, extent::Error>> {
        let in_memory = self.state.messages_in_memory();
        let limit = self.state.limits().hot_records;
        if self.over.is_some() || !self.own.is_empty() || !self.heat.is_due(in_memory, limit) {
            return None;
        }
        self.heat.tried(in_memory);
        let begun = self.writer.log().extent();
        Some(begun.map(|writer| Chilling::new(&mut self.state, writer)))
    }

    /// Gives up what is kept for work, if there was much of it and has been none for a while. Says whether it did.
    pub fn slacken_if_due(&mut self) -> bool {
        let busy = self.over.is_some() || !self.own.is_empty() || self.hold.len() > 0 || self.behind;
        let due = !busy && self.lull.is_due(self.now, self.recent.bytes());
        if due {
            self.slacken();
        }
        due
    }

    /// Gives up what is kept for work. Nothing that anybody can see hangs on it.
    pub fn slacken(&mut self) {
        self.lull.over();
        self.recent.clear();
        self.hold.drop_spare();
        self.outcome = Outcome::default();
        self.own.shrink_to_fit();
        self.scratch = Scratch::default();
        self.writer.drop_buffers();
    }

    /// As snapshots are written, so that commits keep the disk; as fast as it goes once the ring is nearly full, when
    /// senders would have to wait for room otherwise.
    fn evacuation_pace(&self) -> Pace {
        let pressure = self.writer.log().pressure();
        let nearly_full = pressure.used_segments > pressure.ring_segments / 4 * 3;
        if nearly_full { Pace::UNLIMITED } else { self.snapshots.pace }
    }

    fn segments_to_empty(&mut self) -> Option<BTreeSet<Region>> {
        let oldest = self.oldest_segment_in_need()?;
        let durable = self.writer.durable_region()?;
        if oldest >= durable || self.was_emptied_lately(oldest) {
            return None;
        }
        self.evacuated = Some((oldest, self.now));
        let segments = (oldest.number()..).map(Region::segment).take(SEGMENTS_AT_ONCE);
        Some(segments.filter(|segment| *segment < durable && !self.outside.has(*segment)).collect())
    }

    /// When the disk is full, the segment with the fewest messages, and how much it may hold: moving them gives the
    /// segment back. A segment that is mostly alive would only take what is kept free for such moves.
    fn sparse_segment_to_empty(&mut self) -> Option<(BTreeSet<Region>, u64)> {
        let pressure = self.writer.log().pressure();
        if !pressure.disk_short {
            return None;
        }
        let durable = self.writer.durable_region()?;
        let (state, segments) = (&self.state, self.writer.log().regions());
        let sparsest = segments
            .into_iter()
            .filter(|region| !region.is_extent() && *region < durable)
            .map(|region| (state.region_count(counted(region)), region))
            .filter(|(messages, _)| *messages > 0)
            .min()
            .map(|(_, region)| region)?;
        if self.was_emptied_lately(sparsest) {
            return None;
        }
        self.evacuated = Some((sparsest, self.now));
        Some((BTreeSet::from([sparsest]), pressure.segment_bytes / 2))
    }

    /// Whether an attempt to empty this segment was made a moment ago.
    fn was_emptied_lately(&self, region: Region) -> bool {
        self.evacuated.is_some_and(|(last, at)| last == region && self.now.since(at) < EVACUATION_PAUSE)
    }

    /// An extent, or a segment that rests, of which too much is dead.
    fn outsider_to_empty(&mut self) -> Option<BTreeSet<Region>> {
        if !self.outside.is_due(self.now) {
            return None;
        }
        let mut there = self.writer.log().regions();
        there.sort_unstable();
        let reader = &self.reader;
        self.outside.meet(&there, |region| reader.footer(region));
        let state = &self.state;
        let slack = self.writer.log().pressure().segment_bytes;
        let region = self.outside.to_empty(slack, |region| state.region_count(counted(region)))?;
        Some(BTreeSet::from([region]))
    }

    /// The oldest segment with messages in it, if it should be emptied: half the ring is taken by segments
    /// that hold messages. The log itself asks only when the ring is nearly full; then there would be no time
    /// left to finish before sends have to be refused. Segments that only wait for a snapshot do not count:
    /// under a steady load they are most of the ring, and messages that are about to be received would be
    /// copied for nothing.
    fn oldest_segment_in_need(&self) -> Option<Region> {
        let log = self.writer.log();
        let pressure = log.pressure();
        if pressure.evacuate.is_some() || pressure.live_segments <= pressure.ring_segments / 2 {
            return pressure.evacuate;
        }
        let segments = log.regions().into_iter().filter(|region| !self.outside.has(*region));
        segments.filter(|region| self.state.region_count(counted(*region)) > 0).min()
    }

    /// Takes over what came of an evacuation.
    pub fn evacuated(&mut self, evacuated: Evacuated) {
        self.take_over(evacuated.commands);
        for (segment, messages) in evacuated.resting {
            self.rest(segment, messages);
        }
    }

    /// Takes over what was found to do beside the shard.
    pub fn take_over(&mut self, commands: Vec<Command>) {
        self.own.extend(commands);
    }

    fn rest(&mut self, segment: Region, messages: u64) {
        let log = self.writer.log();
        log.rest(segment);
        self.outside.rest(segment, messages, log.pressure().segment_bytes);
    }

    /// After a start: old segments with messages in them go on resting, if there are more of them than fit into the ring.
    /// Which of them did is not written down. One that did not, because messages lie scattered in it, is among them, and
    /// is emptied once enough of it is dead.
    pub(in crate::shard) fn rest_again(&mut self) {
        let pressure = self.writer.log().pressure();
        if pressure.live_segments <= pressure.ring_segments / 2 {
            return;
        }
        let (state, regions) = (&self.state, self.writer.regions());
        let mut segments: BTreeSet<Region> = self.writer.log().regions().into_iter().collect();
        segments.retain(|region| {
            !region.is_extent() && state.region_count(counted(*region)) > 0 && !regions.is_crossed(*region)
        });
        for _ in 0..pressure.ring_segments / 4 {
            segments.pop_last();
        }
        let census = Census::of(&self.state.freeze(), &segments);
        for segment in segments {
            self.rest(segment, census.messages_if_full(segment, pressure.segment_bytes));
        }
    }

    /// Brings records of runs back to memory.
    pub(super) fn warm(&mut self) -> Result<(), Failure> {
        while let Some((run, from, count)) = self.cold.pop() {
            match self.reader.cold_records(run, from, count) {
                Ok(records) => self.carry_out(&Command::Warm { run, from, records }, None)?,
                Err(error) => {
                    // Messages that cannot be found any more must not look like messages never sent.
                    self.end(&format!("cannot read messages back from disk: {error}"));
                }
            }
        }
        Ok(())
    }
}
