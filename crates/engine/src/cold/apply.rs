//! Making it so.

use crate::command::Relocation;
use crate::fact::{Arrival, Details};
use crate::id::{MailboxId, Region, RunId};
use crate::lane::{Gaps, Head, Run};
use crate::level::{Level, LevelOrigin};
use crate::payloads::ColdRecord;
use crate::shelf::standing;
use crate::state::{Pump, State};
use crate::store::Handle;
use crate::time::{Span, Timestamp};

impl State {
    pub(crate) fn apply_moved(&mut self, moves: &[Relocation]) -> Option<()> {
        for relocation in moves {
            let Some(handle) = self.find(relocation.mailbox, relocation.sequence) else { continue };
            let record = self.records.get_mut(handle)?;
            if record.location == relocation.from {
                record.location = relocation.to;
                self.regions.add(relocation.to.region(), 1);
                self.regions.release(relocation.from.region(), 1);
            }
        }
        Some(())
    }

    pub(crate) fn apply_chilled(
        &mut self,
        id: MailboxId,
        level: Level,
        run: RunId,
        records: &[ColdRecord],
    ) -> Option<()> {
        let (first, last) = (records.first()?, records.last()?);
        let handles: Vec<Handle> =
            records.iter().map(|record| self.find(id, record.sequence)).collect::<Option<_>>()?;
        let same = |(handle, cold): (&Handle, &ColdRecord)| {
            self.records
                .get(*handle)
                .is_some_and(|record| (record.location, record.size) == (cold.location, cold.size))
        };
        // A state made from a snapshot has messages in the list that were beside it when this was
        // decided, because they had come back from a receiver. They stay, beside it again. And what came back to the
        // front of the list then may have found one of those in front of it now, and lie beside the list itself.
        let lane = self.mailboxes.get(&id)?.lanes.lane(level)?;
        let listed = |handle: &&Handle| !lane.is_beside(&self.records, **handle);
        let mut expected = handles.iter().filter(listed).peekable();
        let mut others: Vec<Handle> = Vec::new();
        for (handle, record) in lane.chillable(&self.records) {
            if record.key() > (last.eligible, last.sequence) {
                break;
            }
            if expected.next_if(|next| **next == handle).is_none() {
                others.push(handle);
            }
        }
        let all_there = expected.peek().is_none();
        if self.runs.contains(run) || !all_there || !handles.iter().zip(records).all(same) {
            return None;
        }
        let mut regions: Vec<(Region, u32)> = Vec::new();
        for record in records {
            let region = record.location.region();
            match regions.iter_mut().find(|(known, _)| *known == region) {
                Some((_, count)) => *count = count.saturating_add(1),
                None => regions.push((region, 1)),
            }
        }
        let descriptor = Run {
            id: run,
            count: u32::try_from(records.len()).ok()?,
            consumed: 0,
            asked: 0,
            from: (first.eligible, first.sequence),
            last: (last.eligible, last.sequence),
            bytes: records.iter().map(|record| u64::from(record.size)).sum(),
            regions,
            soonest: records.iter().map(|record| record.expires).min()?,
            gaps: Gaps::default(),
        };
        self.timers.watch_run(&descriptor);
        let mailbox = self.mailboxes.get_mut(&id)?;
        mailbox.lanes.chill(level, &mut self.records, (&handles, &others), descriptor);
        for (handle, cold) in handles.iter().zip(records) {
            mailbox.index.remove(cold.sequence);
            if let Some(record) = self.records.get(*handle).filter(|_| mailbox.ring.is_watched()) {
                mailbox.ring.left(standing(record, Timestamp::NEVER, &mailbox.ordering));
            }
            if cold.expires != Timestamp::NEVER {
                self.timers.expiry.remove(&(cold.expires, id, cold.sequence));
            }
            if let Some(record) = self.records.remove(*handle) {
                self.extras.remove(record.extra);
            }
        }
        self.runs.insert(run, (id, level));
        Some(())
    }

    pub(crate) fn apply_warmed(&mut self, run: RunId, records: &[ColdRecord]) -> Option<()> {
        let (id, level) = self.runs.get(run)?;
        for cold in records {
            let mailbox = self.mailboxes.get_mut(&id)?;
            let (_, first) = mailbox.lanes.lane(level)?.before_first_run()?;
            let region = cold.location.region();
            let known = first.regions.iter().any(|(known, _)| *known == region);
            if first.id != run || !known || mailbox.index.get(cold.sequence).is_some() {
                return None;
            }
            let over = (first.remaining() <= 1).then_some(first.soonest);
            let handle = self.take_back(id, level, cold)?;
            let mailbox = self.mailboxes.get_mut(&id)?;
            mailbox.lanes.warm(&mut self.records, handle);
            if let Some(soonest) = over {
                self.forget_run(run, soonest);
            }
        }
        let mailbox = self.mailboxes.get_mut(&id)?;
        mailbox.chilly = false;
        if let Some(run) = mailbox.lanes.run_mut(level, run) {
            // An answer is the whole answer: what it left out may be asked for again.
            run.asked = run.consumed;
        }
        self.touch(id);
        Some(())
    }

    pub(crate) fn apply_rehoused(&mut self, run: RunId, to: RunId, region: Region) -> Option<()> {
        if self.runs.contains(to) {
            return None;
        }
        let (id, level) = self.runs.get(run)?;
        let mailbox = self.mailboxes.get_mut(&id)?;
        let known = mailbox.lanes.run_mut(level, run)?;
        let left = known.remaining();
        let regions = std::mem::replace(&mut known.regions, vec![(region, left)]);
        (known.id, known.count) = (to, left);
        (known.consumed, known.asked, known.gaps) = (0, 0, Gaps::default());
        let soonest = known.soonest;
        // What was asked for under the old number never comes.
        mailbox.chilly = false;
        self.regions.add(region, u64::from(left));
        for (region, count) in regions {
            self.regions.release(region, u64::from(count));
        }
        self.forget_run(run, soonest);
        self.runs.insert(to, (id, level));
        if soonest != Timestamp::NEVER {
            self.timers.cold.insert((soonest, to));
        }
        self.touch(id);
        Some(())
    }

    pub(crate) fn apply_plucked(
        &mut self,
        run: RunId,
        records: &[(u32, ColdRecord)],
        soonest: Timestamp,
    ) -> Option<()> {
        let (id, level) = self.runs.get(run)?;
        let mailbox = self.mailboxes.get_mut(&id)?;
        let known = mailbox.lanes.run_mut(level, run)?;
        let in_run = |(position, cold): &(u32, ColdRecord)| {
            let region = cold.location.region();
            (known.consumed..known.count).contains(position)
                && !known.gaps.contains(*position)
                && known.regions.iter().any(|(known, _)| *known == region)
        };
        let taken = |(_, cold): &(u32, ColdRecord)| mailbox.index.get(cold.sequence).is_some();
        let left = u64::from(known.remaining());
        let more = u64::try_from(records.len()).ok()?;
        if more > left || !records.iter().all(in_run) || records.iter().any(taken) {
            return None;
        }
        let before = std::mem::replace(&mut known.soonest, soonest);
        self.timers.cold.remove(&(before, run));
        let mut plucked = Vec::with_capacity(records.len());
        for (position, cold) in records {
            plucked.push((*position, self.take_back(id, level, cold)?));
        }
        if more == left {
            self.runs.remove(run);
        } else {
            let mailbox = self.mailboxes.get_mut(&id)?;
            self.timers.watch_run(mailbox.lanes.run_mut(level, run)?);
        }
        let mailbox = self.mailboxes.get_mut(&id)?;
        mailbox.lanes.pluck(level, &mut self.records, run, &plucked);
        self.touch(id);
        Some(())
    }

    /// Takes a message of a run into memory again, in transit. It was counted all the time: taking it in
    /// counts it again, so it is first taken off.
    fn take_back(&mut self, id: MailboxId, level: Level, cold: &ColdRecord) -> Option<Handle> {
        let mailbox = self.mailboxes.get_mut(&id)?;
        let size = u64::from(cold.size);
        mailbox.counts.bytes = mailbox.counts.bytes.saturating_sub(size);
        let account = mailbox.account;
        if let Some(total) = self.sizes.get_mut(&account) {
            *total = total.saturating_sub(size);
        }
        self.regions.uncount(cold.location.region());
        let (handle, mailbox) = self.admit(&arrival(id, level, cold), cold.location, cold.size)?;
        mailbox.ring.arrived(cold.sequence);
        if cold.expires != Timestamp::NEVER {
            self.timers.expiry.insert((cold.expires, id, cold.sequence));
        }
        Some(handle)
    }

    /// Forgets a run that nothing is left of.
    pub(crate) fn forget_run(&mut self, run: RunId, soonest: Timestamp) {
        self.runs.remove(run);
        self.timers.cold.remove(&(soonest, run));
    }

    pub(crate) fn apply_warm_asked(&mut self, run: RunId, upto: u32) -> Option<()> {
        let (id, level) = self.runs.get(run)?;
        let mailbox = self.mailboxes.get_mut(&id)?;
        mailbox.lanes.run_mut(level, run)?.asked = upto;
        if matches!(mailbox.lanes.head(level, &self.records), Some(Head::Cold(..))) {
            mailbox.chilly = true;
            self.served(Pump::Mailbox(id));
        }
        Some(())
    }
}

/// A message of a run as it came in. What set its level is no longer known, but that it stands.
pub(crate) fn arrival(mailbox: MailboxId, level: Level, cold: &ColdRecord) -> Arrival {
    let mut details = Details::new(cold.eligible);
    if cold.expires != Timestamp::NEVER {
        details.expires = cold.expires;
        details.time_to_live = Span(cold.expires.since(cold.eligible).0);
    }
    Arrival {
        mailbox,
        sequence: cold.sequence,
        eligible: cold.eligible,
        level,
        origin: LevelOrigin::Default,
        details: (cold.expires != Timestamp::NEVER).then(|| Box::new(details)),
    }
}
