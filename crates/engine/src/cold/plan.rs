//! Deciding what may leave memory, and asking for what must come back.

use crate::command::{Chill, Relocation};
use crate::effect::{Effect, Outcome};
use crate::fact::Fact;
use crate::id::{MailboxId, RunId};
use crate::lane::Head;
use crate::level::Level;
use crate::mailbox::Mailbox;
use crate::payloads::ColdRecord;
use crate::refusal::{Countable, Refusal};
use crate::state::State;
use crate::store::Record;
use crate::time::Timestamp;

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
        let Some(lane) = lane.filter(|_| !records.is_empty() && !self.runs.contains_key(run)) else {
            return Err(Refusal::RecordsDoNotFit);
        };
        let mut waiting = lane.chillable(&self.records);
        for cold in records {
            if !waiting.next().is_some_and(|(_, record)| self.is_same(record, cold)) {
                return Err(Refusal::RecordsDoNotFit);
            }
        }
        let (mailbox, level, run, records) = (*mailbox, *level, *run, records.clone());
        outcome.facts.push(Fact::Chilled { mailbox, level, run, records });
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
            self.runs.get(&run).and_then(|(mailbox, level)| self.mailboxes.get(mailbox)?.lanes.lane(*level));
        let Some((_, first)) = lane.and_then(|lane| lane.before_first_run()) else {
            return Err(Refusal::RecordsDoNotFit);
        };
        let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
        let keys = records.iter().map(|record| (record.eligible, record.sequence));
        let after = |key| if first.consumed == 0 { first.from <= key } else { first.from < key };
        let fits = first.id == run
            && first.consumed == from
            && count <= first.remaining()
            && keys.clone().next().is_some_and(after)
            && keys.clone().all(|key| key <= first.last)
            && keys.is_sorted_by(|left, right| left < right);
        if !fits {
            return Err(Refusal::RecordsDoNotFit);
        }
        outcome.facts.push(Fact::Warmed { run, records: records.to_vec() });
        Ok(())
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
        if ready >= self.limits.warm_below {
            return;
        }
        let from = run.consumed;
        let count = run.remaining().min(self.limits.warm_batch);
        outcome.facts.push(Fact::WarmAsked { run: run.id, upto: from.saturating_add(count) });
        outcome.effects.push(Effect::Warm { mailbox: id, level, run: run.id, from, count });
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
