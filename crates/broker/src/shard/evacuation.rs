//! Moving house: live messages of the oldest segments go into an extent, in the order they will be read;
//! and the survivors of an extent that is mostly dead into another.
//!
//! One old message must not keep a whole segment, and a deep backlog must not fill memory. So when the
//! ring runs short, the messages that still lie in its oldest segments are copied, sorted by mailbox,
//! level and place in the lane, into an extent. After that their records point there, and long stretches
//! of plain waiting messages leave memory altogether; the extent's index knows them.
//!
//! Where the messages of a lane already lie close together, nothing is gained by that: such a segment [rests](super::resting).
//!
//! This happens beside the shard, on a frozen state. What has changed meanwhile the engine finds out by
//! itself: a message that is gone or has moved is left alone.

use super::cold::Index;
use super::outside;
use super::payload::PayloadReader;
use super::recent::Body;
use super::regions::{counted, named, region_of};
use super::resting::{Census, Resting};
use crate::journal::record;
use std::collections::BTreeSet;
use vorrang_engine::command::{Chill, Rehouse, Relocation};
use vorrang_engine::fact::{Details, RestoredGaps, RestoredMessage, RestoredRun, Standing};
use vorrang_engine::{
    ColdRecord, Command, Fact, FrozenState, Level, Location, MailboxId, Sequence, Timestamp,
};
use vorrang_log::extent::{Error, ExtentWriter};
use vorrang_log::{Pace, Region, Sweep};

/// Records in one command: a few hundred kilobytes of log.
const RECORDS_MAX: usize = 8_192;
/// Records of a run read at a time.
const READ_AT_ONCE: u32 = 2_048;
/// A shorter stretch is not worth leaving memory.
const RUN_MIN: usize = 64;

/// Messages to be moved.
#[derive(Debug)]
pub struct Evacuation {
    pub(super) frozen: FrozenState,
    /// The segments to be emptied, or the extent.
    pub(super) regions: BTreeSet<Region>,
    /// Those of them that may stay as they are, and how long a segment is.
    pub(super) may_rest: BTreeSet<Region>,
    pub(super) segment_bytes: u64,
    /// Segments that large messages end in which begin in one of those.
    pub(super) spanned: BTreeSet<Region>,
    pub(super) reader: PayloadReader,
    pub(super) sweep: Sweep,
    pub(super) writer: ExtentWriter,
    pub(super) record_bytes_max: usize,
    /// More than this is not worth moving.
    pub(super) bytes_max: u64,
    pub(super) pace: Pace,
}

/// What came of an evacuation.
#[derive(Debug, Default)]
pub struct Evacuated {
    /// What is to be done now that the copies are safe.
    pub commands: Vec<Command>,
    /// Segments that rest, and how many messages each has when it is full.
    pub(super) resting: Vec<(Region, u64)>,
}

/// A message to be moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tenant {
    pub(super) mailbox: MailboxId,
    pub(super) level: Level,
    pub(super) record: ColdRecord,
    /// Whether nothing is known about it but what an index keeps.
    pub(super) plain: bool,
}

/// What is to be moved.
#[derive(Debug, Default)]
struct Household {
    tenants: Vec<Tenant>,
    /// Runs on disk, and which of their records left them out of turn.
    runs: Vec<(Box<RestoredRun>, Option<Box<RestoredGaps>>)>,
}

/// Where payloads were copied to: copies of one message share their payload.
type Copies = hashbrown::HashMap<Location, Location, foldhash::fast::FixedState>;

impl Evacuated {
    /// Whether segments stay as they are.
    pub fn rests(&self) -> bool {
        !self.resting.is_empty()
    }
}

impl Evacuation {
    /// Copies the messages, and says what is to be done once they are safe. Nothing if there were none.
    pub fn run(self) -> Result<Evacuated, Error> {
        let resting = Census::of(&self.frozen, &self.may_rest).resting(self.segment_bytes);
        let commands = self.empty(&resting)?;
        Ok(Evacuated { commands, resting: resting.segments })
    }

    fn empty(mut self, resting: &Resting) -> Result<Vec<Command>, Error> {
        let Household { mut tenants, runs: old_runs } = self.household(resting);
        let bytes: u64 = tenants.iter().map(|tenant| u64::from(tenant.record.size)).sum();
        let in_runs: u64 = old_runs.iter().map(|(run, _)| run.bytes).sum();
        if bytes.saturating_add(in_runs) > self.bytes_max {
            return Ok(Vec::new());
        }
        tenants.sort_unstable_by_key(Tenant::place);
        let mut moves = Vec::new();
        let mut moved: Vec<Tenant> = Vec::new();
        let mut copies = Copies::default();
        for tenant in tenants {
            let from = tenant.record.location;
            let Some(to) = self.copied(&tenant.record, &mut copies)? else { continue };
            moves.push(Relocation { mailbox: tenant.mailbox, sequence: tenant.record.sequence, from, to });
            moved.push(Tenant { record: ColdRecord { location: to, ..tenant.record }, ..tenant });
        }
        if moves.is_empty() && old_runs.is_empty() {
            return Ok(Vec::new());
        }
        let mut commands: Vec<Command> =
            moves.chunks(RECORDS_MAX).map(|moves| Command::Move { moves: moves.to_vec() }).collect();
        let mut index = Index::default();
        commands.extend(runs(&moved, self.writer.region(), &mut index));
        let mut messages = moves.len();
        for (run, gaps) in old_runs {
            if let Some(rehouse) = self.rehouse(&run, gaps.as_deref(), &mut index, &mut copies)? {
                messages = messages.saturating_add(usize::try_from(rehouse.left).unwrap_or(usize::MAX));
                commands.push(Command::Rehouse(rehouse));
            }
        }
        self.writer.finish(index.as_bytes(), &outside::summary(messages))?;
        Ok(commands)
    }

    /// Copies what is left of a run, in its order; none if not all of it can be read.
    fn rehouse(
        &mut self,
        run: &RestoredRun,
        gaps: Option<&RestoredGaps>,
        index: &mut Index,
        copies: &mut Copies,
    ) -> Result<Option<Rehouse>, Error> {
        let extent = self.writer.region();
        let to = index.run(extent);
        let (mut position, mut left) = (run.consumed, 0_u32);
        while position < run.count {
            let wanted = READ_AT_ONCE.min(run.count.saturating_sub(position));
            let Ok(records) = self.reader.cold_records(run.run, position, wanted) else { return Ok(None) };
            if records.is_empty() {
                return Ok(None);
            }
            for record in records {
                if !gaps.is_some_and(|gaps| gaps.has(position)) {
                    let Some(location) = self.copied(&record, copies)? else { return Ok(None) };
                    index.push(&ColdRecord { location, ..record });
                    left = left.saturating_add(1);
                }
                position = position.saturating_add(1);
            }
        }
        let (run, consumed, region) = (run.run, run.consumed, counted(extent));
        Ok((left > 0).then_some(Rehouse { run, consumed, left, to, region }))
    }

    /// Who is to move: everybody in the regions but those who stay where they lie close together, and on the way whoever
    /// already lies in an extent but would part a stretch that could leave memory.
    fn household(&self, resting: &Resting) -> Household {
        let large = self.record_bytes_max / 2;
        let Household { mut tenants, mut runs } = Household::default();
        let mut walk = Walk::default();
        self.frozen.facts().for_each(|fact| match fact {
            Fact::RestoredRun(run) => {
                let lane = (run.mailbox, run.level);
                walk.pass_run(lane, &mut tenants);
                let moves = |region| self.regions.contains(&region) && !resting.stays(region, lane);
                if run.regions.iter().any(|(region, _)| moves(named(*region))) {
                    runs.push((run, None));
                }
            }
            Fact::RestoredGaps(gaps) => {
                if let Some((_, known)) = runs.last_mut().filter(|(run, _)| run.run == gaps.run) {
                    *known = Some(gaps);
                }
            }
            Fact::RestoredMessage(message) => {
                let region = region_of(message.location);
                let is_large = usize::try_from(message.size).is_ok_and(|size| size >= large);
                let stays = resting.stays(region, (message.arrival.mailbox, message.arrival.level));
                let moves =
                    self.regions.contains(&region) && !stays || is_large && self.spanned.contains(&region);
                walk.pass(&message, moves, region.is_extent(), &mut tenants);
            }
            _ => {}
        });
        Household { tenants, runs }
    }

    /// Where a message's payload is now, copied if it was not yet. What cannot be read is gone already, or
    /// stays for whoever asks for it to be told.
    fn copied(&mut self, record: &ColdRecord, copies: &mut Copies) -> Result<Option<Location>, Error> {
        if let Some(known) = copies.get(&record.location) {
            return Ok(Some(*known));
        }
        let Ok(body) = self.reader.sweep(&mut self.sweep, record.location, record.size) else {
            return Ok(None);
        };
        let to = self.copy(&body)?;
        copies.insert(record.location, to);
        Ok(Some(to))
    }

    fn copy(&mut self, body: &Body) -> Result<Location, Error> {
        let before = self.writer.bytes();
        let mut sink = Extent { writer: &mut self.writer, record_bytes_max: self.record_bytes_max };
        let location = record::write_payload(&body.bytes, body.assigned_id, &mut sink)?.location;
        // Rest once for every megabyte, not for every message.
        let after = self.writer.bytes();
        if after >> 20 > before >> 20 {
            self.pace.rest(1 << 20);
        }
        Ok(location)
    }
}

/// The way along one lane after the other. Only what follows the runs of a lane can leave memory, up to the
/// first message that stays where it is. Unusual messages on the way stay in memory, beside the others.
#[derive(Debug, Default)]
struct Walk {
    lane: Option<(MailboxId, Level)>,
    /// Whether something stays in memory before here.
    broken: bool,
    /// Messages in extents that would go along if the stretch goes on.
    between: Vec<Tenant>,
    /// How many move that were met before this lane.
    before: usize,
}

impl Walk {
    fn enter(&mut self, lane: (MailboxId, Level), before: usize) {
        if self.lane != Some(lane) {
            *self = Walk { lane: Some(lane), before, ..Walk::default() };
        }
    }

    /// What came before a run in its lane was brought back from it: it moves, but does not leave again.
    fn pass_run(&mut self, lane: (MailboxId, Level), tenants: &mut [Tenant]) {
        self.enter(lane, tenants.len());
        self.broken = false;
        self.between.clear();
        for tenant in tenants.iter_mut().skip(self.before) {
            tenant.plain = false;
        }
    }

    fn pass(&mut self, message: &RestoredMessage, moves: bool, in_extent: bool, tenants: &mut Vec<Tenant>) {
        let mut tenant = Tenant::of(message);
        if message.standing != Standing::Ready || message.deliveries > 0 {
            // Not in the line of its lane.
            if moves {
                tenants.push(tenant);
            }
            return;
        }
        self.enter((tenant.mailbox, tenant.level), tenants.len());
        self.broken |= !(moves || in_extent);
        if self.broken {
            self.between.clear();
        }
        // What moves from one extent to another had come back to memory and does not leave again.
        tenant.plain &= !(self.broken || moves && in_extent);
        if moves {
            tenants.append(&mut self.between);
            tenants.push(tenant);
        } else if tenant.plain {
            self.between.push(tenant);
        }
    }
}

impl Tenant {
    /// Where it is in the order things are read in.
    pub(super) fn place(&self) -> (MailboxId, Level, Timestamp, Sequence) {
        (self.mailbox, self.level, self.record.eligible, self.record.sequence)
    }

    pub(super) fn of(message: &RestoredMessage) -> Tenant {
        let RestoredMessage { arrival, location, size, deliveries, standing } = message;
        let details = arrival.details.as_deref();
        let usual = details.is_none_or(|details| {
            let mut usual = Details::new(arrival.eligible);
            (usual.time_to_live, usual.expires) = (details.time_to_live, details.expires);
            *details == usual && details.expires == arrival.eligible.after(details.time_to_live)
        });
        Tenant {
            mailbox: arrival.mailbox,
            level: arrival.level,
            record: ColdRecord {
                sequence: arrival.sequence,
                eligible: arrival.eligible,
                expires: details.map_or(Timestamp::NEVER, |details| details.expires),
                location: *location,
                size: *size,
            },
            plain: usual && *standing == Standing::Ready && *deliveries == 0,
        }
    }
}

/// The stretches of plain messages that are worth leaving memory, written to the index.
pub(super) fn runs(tenants: &[Tenant], extent: Region, index: &mut Index) -> Vec<Command> {
    let plain: Vec<&Tenant> = tenants.iter().filter(|tenant| tenant.plain).collect();
    let same_lane =
        |left: &&Tenant, right: &&Tenant| (left.mailbox, left.level) == (right.mailbox, right.level);
    let mut chills = Vec::new();
    for stretch in plain.chunk_by(same_lane).flat_map(|stretch| stretch.chunks(RECORDS_MAX)) {
        let Some(Tenant { mailbox, level, .. }) = stretch.first() else { continue };
        if stretch.len() < RUN_MIN {
            continue;
        }
        let run = index.run(extent);
        let records: Vec<ColdRecord> = stretch.iter().map(|tenant| tenant.record).collect();
        for record in &records {
            index.push(record);
        }
        chills.push(Command::Chill(Box::new(Chill { mailbox: *mailbox, level: *level, run, records })));
    }
    chills
}

/// An extent as a place for records.
struct Extent<'a> {
    writer: &'a mut ExtentWriter,
    record_bytes_max: usize,
}

impl record::Sink for Extent<'_> {
    type Failure = Error;

    fn append(&mut self, kind: u8, fixed: &[u8], payload: &[u8]) -> Result<Location, Error> {
        self.writer.append(kind, fixed, &[payload]).map(|location| Location(location.raw()))
    }

    fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }
}
