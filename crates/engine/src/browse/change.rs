//! Deleting and re-prioritising messages by hand.
//!
//! Messages that somebody has locked are left alone: they are being worked on. A request that meets
//! messages on disk asks for them to be read and ends there; asked again, it goes on. Messages named by
//! their numbers are taken out of what lies on disk at once, however deep they lie there.

use std::collections::{BTreeMap, BTreeSet};

use super::cold::ColdReader;
use super::peek::matches_stored;
use super::ready::Next;
use crate::command::Selection;
use crate::effect::{Effect, Outcome, Reply};
use crate::fact::{Fact, RemovalCause};
use crate::id::{MailboxId, RequestTag, RunId, Sequence};
use crate::lane::Run;
use crate::level::Level;
use crate::mailbox::Mailbox;
use crate::payloads::{ColdRecord, Payloads};
use crate::refusal::{Countable, Refusal};
use crate::state::State;
use crate::store::{Place, Record};
use crate::time::Timestamp;

/// What an operation by hand is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) request: RequestTag,
    pub(crate) mailbox: MailboxId,
    pub(crate) selection: &'a Selection,
    pub(crate) max: u32,
}

/// What a selection came to.
#[derive(Debug, Default)]
struct Selected<'a> {
    sequences: Vec<Sequence>,
    next: Option<Sequence>,
    cold: Option<(Level, &'a Run)>,
    /// Messages on disk that are among them, to be brought back first.
    plucked: BTreeMap<RunId, Plucked>,
}

/// Messages of a run on disk with their positions, and what may expire first in it.
#[derive(Debug)]
struct Plucked {
    records: Vec<(u32, ColdRecord)>,
    soonest: Timestamp,
}

impl State {
    pub(crate) fn decide_delete_messages(
        &self,
        now: Timestamp,
        target: Target<'_>,
        before: Timestamp,
        payloads: &dyn Payloads,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let old_enough = |record: &Record| self.enqueued(record) < before;
        // Plain messages alone lie on disk: enqueued when they could be received.
        let cold_old_enough = |_: Level, record: &ColdRecord| record.eligible < before;
        let selected = self.select(target, payloads, old_enough, cold_old_enough)?;
        let mailbox = target.mailbox;
        let removed = |sequence: &Sequence| Fact::Removed {
            mailbox,
            sequence: *sequence,
            cause: RemovalCause::Deleted,
            at: now,
        };
        bring_back(&selected.plucked, outcome);
        outcome.facts.extend(selected.sequences.iter().map(removed));
        self.ask_for_cold(mailbox, selected.cold, outcome);
        let reply = Reply::Deleted { count: count(&selected.sequences), next: selected.next };
        outcome.effects.push(Effect::Reply { request: target.request, reply });
        Ok(())
    }

    pub(crate) fn decide_reprioritise(
        &self,
        target: Target<'_>,
        level: Level,
        dry_run: bool,
        payloads: &dyn Payloads,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let another = |of: Level, _: &ColdRecord| of != level;
        let selected = self.select(target, payloads, |record| record.level != level, another)?;
        let mailbox = target.mailbox;
        if !dry_run {
            let moved = |sequence: &Sequence| Fact::Reprioritised { mailbox, sequence: *sequence, level };
            bring_back(&selected.plucked, outcome);
            outcome.facts.extend(selected.sequences.iter().map(moved));
            self.ask_for_cold(mailbox, selected.cold, outcome);
        }
        let reply = Reply::Reprioritised { count: count(&selected.sequences), next: selected.next };
        outcome.effects.push(Effect::Reply { request: target.request, reply });
        Ok(())
    }

    /// The messages a selection means, of those that are `wanted`: at most as many as asked for, and
    /// found by looking at a bounded number.
    fn select<'a>(
        &'a self,
        target: Target<'_>,
        payloads: &dyn Payloads,
        wanted: impl Fn(&Record) -> bool,
        wanted_cold: impl Fn(Level, &ColdRecord) -> bool,
    ) -> Result<Selected<'a>, Refusal> {
        self.owner(target.mailbox)?;
        let limit = self.limits.batch_delete_max;
        if target.max == 0 || target.max > limit {
            let (count, limit) = (u64::from(target.max), u64::from(limit));
            return Err(Refusal::RequestSize { what: Countable::Messages, count, limit });
        }
        let max = usize::try_from(target.max).unwrap_or(usize::MAX);
        let Some(mailbox) = self.mailboxes.get(&target.mailbox) else { return Ok(Selected::default()) };
        match target.selection {
            Selection::All => Ok(self.select_ready(self.ready(mailbox), max, wanted)),
            Selection::Session(session) => {
                let handle = mailbox.sessions.as_ref().and_then(|table| table.names.get(session));
                let session = handle.and_then(|handle| self.sessions.get(*handle));
                let ready = session.into_iter().flat_map(|session| self.ready_in(session));
                Ok(self.select_ready(ready, max, wanted))
            }
            Selection::Sequences(sequences) => {
                let cold = |sequence| find_cold(mailbox, sequence, payloads, &wanted_cold);
                self.select_numbers(mailbox, sequences, max, wanted, cold)
            }
            Selection::Filter { filter, from } => {
                let matches = |record: &Record| matches_stored(filter, &self.delivery_of(record), payloads);
                Ok(self.select_from(mailbox, *from, max, |record| wanted(record) && matches(record)))
            }
        }
    }

    fn select_ready<'a>(
        &self,
        ready: impl Iterator<Item = Next<'a>>,
        max: usize,
        wanted: impl Fn(&Record) -> bool,
    ) -> Selected<'a> {
        let mut selected = Selected::default();
        for next in ready.take(self.limits.scan_max) {
            if selected.sequences.len() >= max {
                break;
            }
            match next {
                Next::Message(record) if wanted(record) => selected.sequences.push(record.sequence),
                Next::Message(_) => {}
                Next::Cold(level, run) => {
                    selected.next = Some(run.from.1);
                    selected.cold = Some((level, run));
                    break;
                }
            }
        }
        selected
    }

    fn select_numbers(
        &self,
        mailbox: &Mailbox,
        sequences: &[Sequence],
        max: usize,
        wanted: impl Fn(&Record) -> bool,
        cold: impl Fn(Sequence) -> Option<(RunId, Timestamp, (u32, ColdRecord))>,
    ) -> Result<Selected<'static>, Refusal> {
        let limit = self.limits.numbers_per_request_max;
        if sequences.is_empty() || sequences.len() > limit {
            let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            return Err(Refusal::RequestSize {
                what: Countable::Sequences,
                count: wide(sequences.len()),
                limit: wide(limit),
            });
        }
        let named: BTreeSet<Sequence> = sequences.iter().copied().collect();
        let mut selected = Selected::default();
        for sequence in named {
            if selected.sequences.len() >= max {
                break;
            }
            let known = mailbox.index.get(sequence).and_then(|handle| self.records.get(handle));
            match known {
                Some(record) if is_at_rest(record) && wanted(record) => selected.sequences.push(sequence),
                Some(_) => {}
                None => {
                    let Some((run, soonest, found)) = cold(sequence) else { continue };
                    let plucked = selected.plucked.entry(run);
                    let plucked = plucked.or_insert_with(|| Plucked { records: Vec::new(), soonest });
                    plucked.records.push(found);
                    selected.sequences.push(sequence);
                }
            }
        }
        Ok(selected)
    }

    fn select_from<'a>(
        &'a self,
        mailbox: &'a Mailbox,
        from: Sequence,
        max: usize,
        wanted: impl Fn(&Record) -> bool,
    ) -> Selected<'a> {
        let mut selected = Selected::default();
        let mut looked = 0_usize;
        for (sequence, handle) in mailbox.index.from(from) {
            if selected.sequences.len() >= max || looked >= self.limits.scan_max {
                selected.next = Some(sequence);
                return selected;
            }
            looked = looked.saturating_add(1);
            if self.records.get(handle).is_some_and(|record| is_at_rest(record) && wanted(record)) {
                selected.sequences.push(sequence);
            }
        }
        let runs = mailbox.lanes.iter().flat_map(|(level, lane)| lane.runs().map(move |run| (level, run)));
        let first_cold = runs.min_by_key(|(_, run)| run.from);
        selected.next = first_cold.map(|(_, run)| run.from.1);
        selected.cold = first_cold;
        selected
    }

    /// Asks the shard for the next records of a run, unless it was asked already.
    fn ask_for_cold(&self, mailbox: MailboxId, cold: Option<(Level, &Run)>, outcome: &mut Outcome) {
        let Some((level, run)) = cold.filter(|(_, run)| run.asked <= run.consumed) else { return };
        let from = run.consumed;
        let count = self.limits.warm_batch.min(run.unread());
        outcome.facts.push(Fact::WarmAsked { run: run.id, upto: from.saturating_add(count) });
        outcome.effects.push(Effect::Warm { mailbox, level, run: run.id, from, count });
    }

    /// A message that is in memory and that nobody is working on.
    pub(crate) fn resting(&self, mailbox: MailboxId, sequence: Sequence) -> Option<&Record> {
        let handle = self.mailboxes.get(&mailbox)?.index.get(sequence)?;
        self.records.get(handle).filter(|record| is_at_rest(record))
    }

    /// Asks the shard for the next records of the run that a number may be in; false if there is none.
    pub(crate) fn ask_for_cold_number(
        &self,
        mailbox: MailboxId,
        sequence: Sequence,
        outcome: &mut Outcome,
    ) -> bool {
        let Some(place) = self.mailboxes.get(&mailbox) else { return false };
        let mut runs = place.lanes.iter().flat_map(|(level, lane)| lane.runs().map(move |run| (level, run)));
        let found = runs.find(|(_, run)| run.from.1 <= sequence && sequence <= run.last.1);
        self.ask_for_cold(mailbox, found, outcome);
        found.is_some()
    }

    /// When a message became part of its entity.
    pub(crate) fn enqueued(&self, record: &Record) -> Timestamp {
        self.extras.get(record.extra).map_or(record.eligible, |extra| extra.enqueued)
    }
}

/// Brings messages back from disk, for what follows to be done with them.
fn bring_back(plucked: &BTreeMap<RunId, Plucked>, outcome: &mut Outcome) {
    for (run, Plucked { records, soonest }) in plucked {
        outcome.facts.push(Fact::Plucked { run: *run, records: records.clone(), soonest: *soonest });
    }
}

/// A message on disk by its number, if it is wanted: its run, what may expire first there, and its place.
fn find_cold(
    mailbox: &Mailbox,
    sequence: Sequence,
    payloads: &dyn Payloads,
    wanted: impl Fn(Level, &ColdRecord) -> bool,
) -> Option<(RunId, Timestamp, (u32, ColdRecord))> {
    let runs = mailbox.lanes.iter().flat_map(|(level, lane)| lane.runs().map(move |run| (level, run)));
    let mut covering = runs.filter(|(_, run)| run.from.1 <= sequence && sequence <= run.last.1);
    covering.find_map(|(level, run)| {
        let (position, record) = ColdReader::new(run, level, sequence, payloads).ahead()?;
        let found = record.sequence == sequence && wanted(level, &record);
        found.then_some((run.id, run.soonest, (position, record)))
    })
}

/// Whether nobody is working on a message.
fn is_at_rest(record: &Record) -> bool {
    match record.place() {
        Place::Listed
        | Place::Returned
        | Place::Dated
        | Place::Deferred
        | Place::Scheduled
        | Place::Delayed => true,
        Place::Locked | Place::LockedDeferred | Place::Transit | Place::Nowhere => false,
    }
}

fn count(sequences: &[Sequence]) -> u32 {
    u32::try_from(sequences.len()).unwrap_or(u32::MAX)
}
