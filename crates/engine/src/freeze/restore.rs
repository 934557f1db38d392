//! Putting a state together again.

use std::sync::Arc;

use crate::command::ReceiveMode;
use crate::entity::Entity;
use crate::fact::{
    Fact, RestoredGaps, RestoredMailbox, RestoredMessage, RestoredRun, RestoredSession, Standing,
};
use crate::lane::{Gaps, Run};
use crate::lock::Lock;
use crate::session::SessionLock;
use crate::state::State;
use crate::store::Place;
use crate::time::{Span, Timestamp};

impl State {
    pub(crate) fn apply_restored(&mut self, fact: &Fact) -> Option<()> {
        match fact {
            Fact::RestoredNamespace { seed, generation, tokens, next_entity, next_rule, now } => {
                if self.identity.seed.is_some() {
                    return None;
                }
                self.identity.seed = Some(*seed);
                self.identity.generation = *generation;
                self.identity.made = *tokens;
                self.catalogue.restore_numbers(*next_entity, *next_rule);
                self.advance(*now);
                Some(())
            }
            Fact::RestoredEntity { entity, accessed } => self.restore_entity(entity, *accessed),
            Fact::RestoredMailbox(mailbox) => self.restore_mailbox(mailbox),
            Fact::RestoredSession(session) => self.restore_session(session),
            Fact::RestoredMessage(message) => self.restore_message(message),
            Fact::RestoredRun(run) => self.restore_run(run),
            Fact::RestoredGaps(gaps) => self.restore_gaps(gaps),
            _ => None,
        }
    }

    fn restore_entity(&mut self, entity: &Arc<Entity>, accessed: Timestamp) -> Option<()> {
        self.catalogue.restore(entity, accessed)
    }

    fn restore_mailbox(&mut self, restored: &RestoredMailbox) -> Option<()> {
        let mailbox = self.mailbox_mut(restored.mailbox)?;
        mailbox.next_sequence = mailbox.next_sequence.max(restored.next_sequence);
        mailbox.rescue = restored.rescue;
        if !restored.ids_seen.is_empty() {
            let history = self.histories.entry(restored.mailbox.entity()).or_default();
            for (key, at) in &restored.ids_seen {
                history.insert(*key, *at, Span::FOREVER);
            }
        }
        Some(())
    }

    fn restore_session(&mut self, restored: &RestoredSession) -> Option<()> {
        let RestoredSession { mailbox, session, state, updated, locked_until } = restored;
        let handle = self.open_session(*mailbox, session)?;
        if let Some(until) = *locked_until {
            let lock = SessionLock { receiver: None, mode: ReceiveMode::PeekLock, until };
            self.sessions.get_mut(handle)?.lock = Some(lock);
            self.timers.session_locks.insert((until, handle));
        }
        self.sessions.get_mut(handle)?.updated = *updated;
        match state {
            Some(state) => self.apply_session_state(*mailbox, session, Some(state), *updated),
            None => Some(()),
        }
    }

    fn restore_message(&mut self, restored: &RestoredMessage) -> Option<()> {
        let RestoredMessage { arrival, location, size, deliveries, standing } = restored;
        let (handle, _) = self.admit(arrival, *location, *size)?;
        self.records.get_mut(handle)?.deliveries = *deliveries;
        match *standing {
            Standing::Ready => self.make_ready(handle),
            Standing::Deferred => self.make_deferred(handle),
            Standing::Scheduled { due } => self.make_wait(handle, Place::Scheduled, due),
            Standing::Delayed { until } => self.make_wait(handle, Place::Delayed, until),
            Standing::Locked { token, since, until, deferred } => {
                let mut lock = Lock::new(token, arrival.mailbox, arrival.sequence, handle);
                let (_, _, session) = self.expiry_of(self.records.get(handle)?);
                (lock.since, lock.until, lock.session) = (since, until, session);
                let lock = self.locks.insert(lock);
                self.make_locked(handle, if deferred { Place::LockedDeferred } else { Place::Locked }, lock)
            }
        }
    }

    fn restore_run(&mut self, restored: &RestoredRun) -> Option<()> {
        let RestoredRun { mailbox: id, level, run, count, consumed, from, last, bytes, regions } = restored;
        if self.runs.contains(*run) {
            return None;
        }
        self.mailbox_mut(*id)?;
        let mailbox = self.mailboxes.get_mut(id)?;
        let descriptor = Run {
            id: *run,
            count: *count,
            consumed: *consumed,
            asked: *consumed,
            from: *from,
            last: *last,
            bytes: *bytes,
            regions: regions.clone(),
            // Not known before its gaps are told; a snapshot that does not tell them has the run looked
            // through.
            soonest: Timestamp::default(),
            gaps: Gaps::default(),
        };
        self.timers.watch_run(&descriptor);
        let remaining = u64::from(descriptor.remaining());
        mailbox.lanes.push_run(*level, &mut self.records, descriptor);
        mailbox.counts.ready = mailbox.counts.ready.saturating_add(remaining);
        let own = mailbox.tally.at(*level);
        own.ready = own.ready.saturating_add(remaining);
        mailbox.counts.bytes = mailbox.counts.bytes.saturating_add(*bytes);
        let account = mailbox.account;
        let total = self.sizes.entry(account).or_default();
        *total = total.saturating_add(*bytes);
        for (region, count) in regions {
            self.regions.add(*region, u64::from(*count));
        }
        self.runs.insert(*run, (*id, *level));
        Some(())
    }

    fn restore_gaps(&mut self, restored: &RestoredGaps) -> Option<()> {
        let (id, level) = self.runs.get(restored.run)?;
        let mailbox = self.mailboxes.get_mut(&id)?;
        let run = mailbox.lanes.run_mut(level, restored.run)?;
        let gaps = Gaps::restore(&restored.gaps, run.consumed, run.count);
        let missing = u64::from(gaps.ahead());
        if run.gaps != Gaps::default() || missing >= u64::from(run.remaining()).max(1) {
            return None;
        }
        self.timers.cold.remove(&(run.soonest, run.id));
        (run.gaps, run.soonest) = (gaps, restored.soonest);
        self.timers.watch_run(run);
        // When the run was told it counted as whole.
        mailbox.counts.ready = mailbox.counts.ready.saturating_sub(missing);
        let own = mailbox.tally.at(level);
        own.ready = own.ready.saturating_sub(missing);
        Some(())
    }
}
