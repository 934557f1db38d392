//! Deciding what may leave memory, and asking for what must come back.

use crate::command::{Chill, Rehouse, Relocation};
use crate::effect::{Effect, Outcome};
use crate::fact::Fact;
use crate::id::{MailboxId, RunId};
use crate::lane::{Head, Run};
use crate::level::Level;
use crate::mailbox::Mailbox;
use crate::payloads::{ColdRecord, Payloads};
use crate::refusal::{Countable, Refusal};
use crate::state::State;
use crate::store::Record;
use crate::time::{Span, Timestamp};

/// Messages on disk come back so long before they expire, if others expire then.
const EXPIRY_AHEAD: Span = Span::seconds(30);
/// Records read at a time while looking for expired ones.
const READ_AT_ONCE: u32 = 2_048;

impl State {
    pub(crate) fn decide_move(&self, moves: &[Relocation], outcome: &mut Outcome) -> Result<(), Refusal> {
        self.check_record_count(moves.len())?;
        let still = |relocation: &Relocation| {
            let found = self.find(relocation.mailbox, relocation.sequence);
            found
                .and_then(|handle| self.records.get(handle))
                .is_some_and(|record| record.location == relocation.from)
        };
        let moves: Vec<_> = moves.iter().copied().filter(still).collect();
        if !moves.is_empty() {
            outcome.facts.push(Fact::Moved { moves });
        }
        Ok(())
    }

    pub(crate) fn decide_chill(&self, chill: &Chill, outcome: &mut Outcome) -> Result<(), Refusal> {
        let Chill { mailbox, level, run, records } = chill;
        self.check_record_count(records.len())?;
        let lane = self.mailboxes.get(mailbox).and_then(|mailbox| mailbox.lanes.lane(*level));
        let Some(lane) = lane.filter(|_| !records.is_empty() && !self.runs.contains(*run)) else {
            return Err(Refusal::RecordsDoNotFit);
        };
        let key = |cold: &ColdRecord| (cold.eligible, cold.sequence);
        let mut waiting = lane.chillable(&self.records).map(|(_, record)| record).peekable();
        let still = records.iter().map(|cold| {
            while waiting.next_if(|record| record.key() < key(cold)).is_some() {}
            waiting.next_if(|record| self.is_same(record, cold)).is_some()
        });
        let still: Vec<bool> = still.collect();
        let before = outcome.facts.len();
        // What changed meanwhile stays in memory and parts the others into runs of their own, each named
        // after the place of its first record.
        let mut offset = 0_u64;
        for stretch in records.iter().zip(still).collect::<Vec<_>>().chunk_by(|left, right| left.1 == right.1)
        {
            let length = u64::try_from(stretch.len()).unwrap_or(u64::MAX);
            let here = RunId(run.0.saturating_add(offset));
            offset = offset.saturating_add(length);
            let there = stretch.first().is_some_and(|(_, still)| *still);
            let worth_it = stretch.len() == records.len() || stretch.len() >= self.limits.cold_run_min;
            if there && worth_it && !self.runs.contains(here) {
                let records = stretch.iter().map(|(record, _)| **record).collect();
                outcome.facts.push(Fact::Chilled { mailbox: *mailbox, level: *level, run: here, records });
            }
        }
        if outcome.facts.len() == before { Err(Refusal::RecordsDoNotFit) } else { Ok(()) }
    }

    pub(crate) fn decide_rehouse(&self, rehouse: &Rehouse, outcome: &mut Outcome) -> Result<(), Refusal> {
        let Rehouse { run, consumed, left, to, region } = *rehouse;
        let lane =
            self.runs.get(run).and_then(|(mailbox, level)| self.mailboxes.get(&mailbox)?.lanes.lane(level));
        let known = lane.and_then(|lane| lane.runs().find(|known| known.id == run));
        let same = known.is_some_and(|known| (known.consumed, known.remaining()) == (consumed, left));
        if !same || self.runs.contains(to) {
            return Err(Refusal::RecordsDoNotFit);
        }
        outcome.facts.push(Fact::Rehoused { run, to, region });
        Ok(())
    }

    /// Whether a message in memory is plain, and the one that was written to disk.
    fn is_same(&self, record: &Record, cold: &ColdRecord) -> bool {
        let plain = match self.extras.get(record.extra) {
            None => cold.expires == Timestamp::NEVER,
            Some(extra) => {
                let mut usual = crate::fact::Details::new(record.eligible);
                usual.time_to_live = extra.time_to_live;
                usual.expires = extra.expires;
                !extra.session.is_some()
                    && extra.to_details(None) == usual
                    && extra.expires == cold.expires
                    && extra.expires == record.eligible.after(extra.time_to_live)
            }
        };
        plain
            && record.deliveries == 0
            && record.sequence == cold.sequence
            && record.eligible == cold.eligible
            && record.location == cold.location
            && record.size == cold.size
    }

    pub(crate) fn decide_warm(
        &self,
        run: RunId,
        from: u32,
        records: &[ColdRecord],
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        self.check_record_count(records.len())?;
        let lane =
            self.runs.get(run).and_then(|(mailbox, level)| self.mailboxes.get(&mailbox)?.lanes.lane(level));
        let Some((_, first)) = lane.and_then(|lane| lane.before_first_run()) else {
            return Err(Refusal::RecordsDoNotFit);
        };
        let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
        // What left out of turn is still in the file.
        let there = records.iter().zip(from..).filter(|(_, position)| !first.gaps.contains(*position));
        let records: Vec<ColdRecord> = there.map(|(record, _)| *record).collect();
        let keys = records.iter().map(|record| (record.eligible, record.sequence));
        let after = |key| if first.consumed == 0 { first.from <= key } else { first.from < key };
        let fits = first.id == run
            && first.consumed == from
            && count <= first.unread()
            && keys.clone().next().is_some_and(after)
            && keys.clone().all(|key| key <= first.last)
            && keys.is_sorted_by(|left, right| left < right);
        if !fits {
            return Err(Refusal::RecordsDoNotFit);
        }
        outcome.facts.push(Fact::Warmed { run, records });
        Ok(())
    }

    /// Brings those messages of a run back that have expired, and those that soon will: reading through a
    /// run for each message that expires in it would be too much, keeping them all in memory too.
    pub(crate) fn pluck_expired(
        &self,
        now: Timestamp,
        id: RunId,
        payloads: &dyn Payloads,
        outcome: &mut Outcome,
    ) {
        let lane =
            self.runs.get(id).and_then(|(mailbox, level)| self.mailboxes.get(&mailbox)?.lanes.lane(level));
        let Some(run) = lane.and_then(|lane| lane.runs().find(|run| run.id == id)) else { return };
        let soon = now.after(EXPIRY_AHEAD);
        let most = usize::try_from(self.limits.warm_batch).unwrap_or(usize::MAX);
        let mut records: Vec<(u32, ColdRecord)> = Vec::new();
        let mut soonest = Timestamp::NEVER;
        let mut position = run.consumed;
        while position < run.count {
            let read =
                payloads.cold_records(id, position, READ_AT_ONCE.min(run.count.saturating_sub(position)));
            if read.is_empty() {
                // It cannot be read now. Whoever receives or looks hears of it; here it is tried again.
                soonest = soonest.min(soon);
                break;
            }
            for record in read {
                if !run.gaps.contains(position) {
                    if record.expires <= soon && records.len() < most {
                        records.push((position, record));
                    } else {
                        soonest = soonest.min(record.expires);
                    }
                }
                position = position.saturating_add(1);
            }
        }
        outcome.facts.push(Fact::Plucked { run: id, records, soonest });
    }

    /// Asks for the next records of a lane's first run, if few are left before it.
    pub(crate) fn ask_ahead(&self, id: MailboxId, mailbox: &Mailbox, level: Level, outcome: &mut Outcome) {
        let Some(lane) = mailbox.lanes.lane(level) else { return };
        let Some((ready, run)) = lane.before_first_run() else { return };
        if run.asked > run.consumed {
            // Asked for already. If nothing can be done before they are here, the mailbox must wait, or
            // it would be served in vain over and over.
            if matches!(lane.head(&self.records), Some(Head::Cold(..))) {
                outcome.facts.push(Fact::WarmAsked { run: run.id, upto: run.asked });
            }
            return;
        }
        if ready < self.limits.warm_below {
            self.ask(id, level, run, outcome);
        }
    }

    /// Asks for messages on disk that a receiver with a selector has not seen, as long as memory may grow by them.
    pub(crate) fn ask_for_choosy(
        &self,
        id: MailboxId,
        mailbox: &Mailbox,
        floor: Level,
        outcome: &mut Outcome,
    ) {
        if self.records.len() >= self.limits.choosy_records {
            return;
        }
        let mut lanes = mailbox.lanes.iter().filter(|(level, _)| *level >= floor);
        let first = lanes.find_map(|(level, lane)| Some((level, lane.before_first_run()?.1)));
        if let Some((level, run)) = first.filter(|(_, run)| run.asked <= run.consumed) {
            self.ask(id, level, run, outcome);
        }
    }

    /// Asks for the next records of a run.
    fn ask(&self, mailbox: MailboxId, level: Level, run: &Run, outcome: &mut Outcome) {
        let from = run.consumed;
        let count = run.unread().min(self.limits.warm_batch);
        outcome.facts.push(Fact::WarmAsked { run: run.id, upto: from.saturating_add(count) });
        outcome.effects.push(Effect::Warm { mailbox, level, run: run.id, from, count });
    }

    fn check_record_count(&self, count: usize) -> Result<(), Refusal> {
        let limit = self.limits.cold_records_max;
        if count > limit {
            return Err(Refusal::RequestSize {
                what: Countable::Records,
                count: u64::try_from(count).unwrap_or(u64::MAX),
                limit: u64::try_from(limit).unwrap_or(u64::MAX),
            });
        }
        Ok(())
    }
}
