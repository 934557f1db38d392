//! Why is this message waiting, and what is ahead of it?
//!
//! The answer comes from the code that picks: the same ranks, the same choice, the same switches. It
//! counts what is ahead as far as a bounded look allows and says so when there is more.

use crate::browse::ColdReader;
use crate::entity::promise::{Promise, promise};
use crate::entity::{Entity, SubQueue};
use crate::id::{MailboxId, RunId, Sequence, SessionId};
use crate::lane::Head;
use crate::level::{Level, LevelOrigin};
use crate::mailbox::Mailbox;
use crate::order::{Rank, choose};
use crate::payloads::Payloads;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::state::State;
use crate::store::{Handle, Place, Record};
use crate::time::{Span, Timestamp};

/// The span over which the rate of deliveries is taken for an estimate.
const RATE_OVER: Span = Span::minutes(1);

/// Everything that says when a message will be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What it is doing.
    pub activity: Activity,
    /// Its level.
    pub level: Level,
    /// Who decided that.
    pub origin: LevelOrigin,
    /// The class of that level, if it has a name.
    pub class: Option<String>,
    /// Since when it could have been delivered.
    pub eligible: Timestamp,
    /// How long that is.
    pub waited: Span,
    /// Where it stands under the policy: the smaller, the earlier. Ties go by number.
    pub key: (u8, Timestamp),
    /// Whether it is the very next one.
    pub next: bool,
    /// Whether it has waited long enough to be rescued.
    pub starving: bool,
    /// How many are ahead of it, by level, highest first.
    pub ahead: Vec<Ahead>,
    /// What holds it back, other than those ahead.
    pub blockers: Vec<Blocker>,
    /// When it will be delivered at the rate of the last minute, if there was one.
    pub estimate: Option<Span>,
    /// What its entity promises to messages of its level.
    pub promise: Promise,
}

/// What a message is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// Waiting for its turn.
    Waiting,
    /// Being worked on.
    Locked {
        /// Until then, unless renewed or settled.
        until: Timestamp,
    },
    /// Put aside; received by its number alone.
    Deferred,
    /// Waiting for its scheduled time.
    Scheduled {
        /// That time.
        due: Timestamp,
    },
    /// Waiting for its retry delay to pass.
    Delayed {
        /// When that is.
        until: Timestamp,
    },
}

/// Messages of one level that come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// Their level.
    pub level: Level,
    /// How many.
    pub count: u64,
    /// Whether there may be more: not everything was looked at.
    pub at_least: bool,
}

/// What holds a message back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// Deliveries of its entity are paused.
    Paused,
    /// Its entity does not give messages out.
    ReceiveDisabled,
    /// Its entity is a topic, or hands its messages on.
    Forwards,
    /// Nobody receives from its entity.
    NoReceiver,
    /// Nobody who receives has credit for a message of this level.
    NoCredit,
    /// Another receiver has its session.
    SessionLocked {
        /// The session.
        session: SessionId,
        /// Until then, unless renewed or closed.
        until: Timestamp,
    },
    /// Earlier messages of its session must be delivered first.
    BehindInSession {
        /// The session.
        session: SessionId,
        /// How many.
        count: u64,
    },
    /// What comes before it lies on disk and is being read.
    OnDisk,
}

impl State {
    /// Explains why a message waits.
    pub fn explain(
        &self,
        now: Timestamp,
        mailbox: MailboxId,
        sequence: Sequence,
        payloads: &dyn Payloads,
    ) -> Result<Explanation, Refusal> {
        let now = now.max(self.now);
        let entity = self.owner(mailbox)?;
        let missing = Refusal::MessageNotFound { sequence };
        let place = self.mailboxes.get(&mailbox).ok_or(missing.clone())?;
        let hot =
            place.index.get(sequence).and_then(|handle| Some((handle, *self.records.get(handle)?, None)));
        let (handle, record, cold) =
            hot.or_else(|| find_cold(place, mailbox, sequence, payloads)).ok_or(missing)?;
        let inquiry = Inquiry { state: self, now, entity, mailbox: place, handle, record, cold };
        Ok(inquiry.explanation())
    }
}

/// A message, and if it lies on disk its run and how many of that come first.
type Found = (Handle, Record, Option<(RunId, u64)>);

/// A message on disk as it would be in memory, with its run and how many of that come first.
fn find_cold(mailbox: &Mailbox, id: MailboxId, sequence: Sequence, payloads: &dyn Payloads) -> Option<Found> {
    let runs = mailbox.lanes.iter().flat_map(|(level, lane)| lane.runs().map(move |run| (level, run)));
    runs.filter(|(_, run)| run.from.1 <= sequence && sequence <= run.last.1).find_map(|(level, run)| {
        let mut reader = ColdReader::new(run, level, sequence, payloads);
        let ahead = u64::from(reader.passed());
        let (cold, _) = reader.take(sequence)?;
        let key = (cold.eligible, cold.sequence);
        let mut record = Record::new(id, key, (cold.location, cold.size), (level, LevelOrigin::Default));
        record.set_place(Place::Listed);
        Some((Handle::NONE, record, Some((run.id, ahead))))
    })
}

struct Inquiry<'a> {
    state: &'a State,
    now: Timestamp,
    entity: &'a Entity,
    mailbox: &'a Mailbox,
    handle: Handle,
    record: Record,
    /// The run it lies in, and how many of that come first.
    cold: Option<(RunId, u64)>,
}

impl Inquiry<'_> {
    fn explanation(&self) -> Explanation {
        let activity = self.activity();
        let waiting = activity == Activity::Waiting;
        let session = self.session();
        let ahead = match session {
            _ if !waiting => Vec::new(),
            Some(session) => self.ahead_in_session(session),
            None => self.ahead(),
        };
        let (level, eligible) = (self.record.level, self.record.eligible);
        let settings = self.entity.outlet().map(|outlet| outlet.priority.clone()).unwrap_or_default();
        let rescue = self.mailbox.ordering.rescue;
        Explanation {
            level,
            origin: self.record.origin(),
            class: settings.class_of(level).map(str::to_owned),
            eligible,
            waited: self.now.since(eligible),
            key: self.rank(),
            next: waiting && self.is_next(),
            starving: waiting
                && self.mailbox.ordering.is_strict()
                && rescue.share.thousandths() > 0
                && self.now.since(eligible) > rescue.after,
            estimate: if waiting { self.estimate(&ahead) } else { None },
            blockers: if waiting { self.blockers(session, &ahead) } else { Vec::new() },
            promise: promise(&settings, level),
            activity,
            ahead,
        }
    }

    fn activity(&self) -> Activity {
        let due = self.state.extras.get(self.record.extra).map_or(Timestamp::NEVER, |extra| extra.due);
        match self.record.place() {
            Place::Listed | Place::Returned | Place::Dated | Place::Transit | Place::Nowhere => {
                Activity::Waiting
            }
            Place::Deferred => Activity::Deferred,
            Place::Scheduled => Activity::Scheduled { due },
            Place::Delayed => Activity::Delayed { until: due },
            Place::Locked | Place::LockedDeferred => {
                let lock = self.state.locks.get(self.record.next);
                let session = lock.and_then(|lock| self.state.sessions.get(lock.session)?.lock);
                let until = session.map(|held| held.until).or(lock.map(|lock| lock.until));
                Activity::Locked { until: until.unwrap_or(self.now) }
            }
        }
    }

    fn session(&self) -> Option<&Session> {
        self.mailbox.sessions.as_ref()?;
        let extra = self.state.extras.get(self.record.extra)?;
        self.state.sessions.get(extra.session)
    }

    fn rank(&self) -> Rank {
        let extra = self.state.extras.get(self.record.extra);
        let deadline = extra.map(|extra| extra.deadline).filter(|deadline| *deadline != Timestamp::NEVER);
        self.mailbox.ordering.rank(self.record.level, self.record.eligible, deadline)
    }

    /// Whether the choice would fall on this message.
    fn is_next(&self) -> bool {
        if let Some(session) = self.session() {
            let first = self.mailbox.sessions.as_ref().and_then(|table| table.ranked.first());
            let best = first.is_some_and(|(_, best)| {
                self.state.extras.get(self.record.extra).is_some_and(|extra| extra.session == *best)
            });
            return session.head(&self.state.records) == Some(self.handle)
                && (best || session.lock.is_some());
        }
        let Mailbox { lanes, dated, ordering, rescue, .. } = self.mailbox;
        let choice = choose(lanes, dated, ordering, &self.state.records, self.now, Level(0), *rescue);
        choice.is_some_and(|choice| matches!(choice.head, Head::Hot(_, chosen) if chosen == self.handle))
    }

    /// Those ahead in the lanes, and of those with a deadline of their own.
    fn ahead(&self) -> Vec<Ahead> {
        let own = (self.rank(), self.record.sequence);
        let ordering = &self.mailbox.ordering;
        let mut budget = self.state.limits.scan_max;
        let mut ahead = Vec::new();
        for (level, lane) in self.mailbox.lanes.iter() {
            if ordering.is_strict() && level != self.record.level {
                if level > self.record.level && lane.len() > 0 {
                    ahead.push(Ahead { level, count: lane.len(), at_least: false });
                }
                continue;
            }
            let before = |eligible, sequence| (ordering.rank(level, eligible, None), sequence) < own;
            let runs = lane.runs().filter(|run| before(run.last.0, run.last.1));
            let mut found =
                Ahead { level, count: runs.map(|run| u64::from(run.remaining())).sum(), at_least: false };
            let own_run = |id| self.cold.filter(|(own, _)| *own == id);
            let within = lane.runs().filter_map(|run| own_run(run.id)).map(|(_, ahead)| ahead).sum();
            found.count = found.count.saturating_add(within);
            found.at_least = lane.runs().any(|run| {
                own_run(run.id).is_none() && before(run.from.0, run.from.1) && !before(run.last.0, run.last.1)
            });
            for (_, record) in lane.iter(&self.state.records) {
                if !before(record.eligible, record.sequence) {
                    break;
                }
                let Some(left) = budget.checked_sub(1) else {
                    found.at_least = true;
                    break;
                };
                budget = left;
                found.count = found.count.saturating_add(1);
            }
            if found.count > 0 || found.at_least {
                ahead.push(found);
            }
        }
        self.add_dated(own, budget, &mut ahead);
        ahead
    }

    fn add_dated(&self, own: (Rank, Sequence), budget: usize, ahead: &mut Vec<Ahead>) {
        let dated = self.mailbox.dated.range(..((own.0).1, own.1));
        for (_, (_, level)) in dated.take(budget) {
            match ahead.iter_mut().find(|known| known.level == *level) {
                Some(known) => known.count = known.count.saturating_add(1),
                None => ahead.push(Ahead { level: *level, count: 1, at_least: false }),
            }
        }
        ahead.sort_unstable_by_key(|known| std::cmp::Reverse(known.level));
    }

    /// Those ahead in the same session, in order whatever their level.
    fn ahead_in_session(&self, session: &Session) -> Vec<Ahead> {
        let mut ahead: Vec<Ahead> = Vec::new();
        let mut looked = 0_usize;
        for (_, record) in session.iter(&self.state.records) {
            if record.sequence >= self.record.sequence {
                break;
            }
            looked = looked.saturating_add(1);
            let full = looked > self.state.limits.scan_max;
            match ahead.iter_mut().find(|known| known.level == record.level) {
                Some(known) if full => known.at_least = true,
                Some(known) => known.count = known.count.saturating_add(1),
                None => ahead.push(Ahead { level: record.level, count: 1, at_least: full }),
            }
            if full {
                break;
            }
        }
        ahead.sort_unstable_by_key(|known| std::cmp::Reverse(known.level));
        ahead
    }

    fn blockers(&self, session: Option<&Session>, ahead: &[Ahead]) -> Vec<Blocker> {
        let mut blockers = Vec::new();
        let outlet = self.entity.outlet();
        let main = self.record.mailbox.part() == SubQueue::Main;
        if self.mailbox.forwards || outlet.is_none() {
            blockers.push(Blocker::Forwards);
        }
        if main && outlet.is_some_and(|outlet| outlet.priority.paused) {
            blockers.push(Blocker::Paused);
        }
        if !self.entity.shared().status.allows_receive() {
            blockers.push(Blocker::ReceiveDisabled);
        }
        match session {
            Some(session) => self.session_blockers(session, ahead, &mut blockers),
            None if self.mailbox.ring.attached.is_empty() => blockers.push(Blocker::NoReceiver),
            None if self.nobody_accepts() => {
                blockers.push(Blocker::NoCredit);
            }
            None => {}
        }
        if self.mailbox.chilly {
            blockers.push(Blocker::OnDisk);
        }
        blockers
    }

    /// Whether no receiver with credit takes messages of this level, or looks into messages to see.
    fn nobody_accepts(&self) -> bool {
        let ring = &self.mailbox.ring;
        ring.floor().is_none_or(|floor| floor > self.record.level) && ring.choosy().next().is_none()
    }

    fn session_blockers(&self, session: &Session, ahead: &[Ahead], blockers: &mut Vec<Blocker>) {
        match session.lock {
            Some(lock) => {
                blockers.push(Blocker::SessionLocked { session: session.name.clone(), until: lock.until });
            }
            None if self.mailbox.sessions.as_ref().is_none_or(|table| table.waiting.is_empty()) => {
                blockers.push(Blocker::NoReceiver);
            }
            None => {}
        }
        let count = ahead.iter().map(|known| known.count).sum();
        if count > 0 {
            blockers.push(Blocker::BehindInSession { session: session.name.clone(), count });
        }
    }

    /// How long those ahead will take at the rate of the last minute. What arrives meanwhile at a higher
    /// level comes first under the strict policy, so its share of the rate does not count.
    fn estimate(&self, ahead: &[Ahead]) -> Option<Span> {
        let now = self.now;
        let mut delivered = 0_u64;
        let mut arriving = 0_u64;
        for (level, series) in self.mailbox.observations.all() {
            delivered = delivered.saturating_add(series.delivery_rate.per_kilosecond(now, RATE_OVER));
            if level > self.record.level && self.mailbox.ordering.is_strict() {
                arriving = arriving.saturating_add(series.arrival_rate.per_kilosecond(now, RATE_OVER));
            }
        }
        let rate = delivered.checked_sub(arriving).filter(|rate| *rate > 0)?;
        let count: u64 = ahead.iter().map(|known| known.count).sum();
        Some(Span(count.saturating_add(1).saturating_mul(1_000_000) / rate))
    }
}

#[cfg(test)]
mod tests;
