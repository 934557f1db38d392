//! Taking a state apart.

use std::sync::Arc;

use crate::dedup::History;
use crate::entity::Entity;
use crate::fact::{
    Arrival, Fact, RestoredGaps, RestoredMailbox, RestoredMessage, RestoredRun, RestoredSession, Standing,
};
use crate::id::{MailboxId, Sequence};
use crate::lane::{Lanes, Run};
use crate::level::Level;
use crate::lock::Lock;
use crate::order::Dated;
use crate::session::Session;
use crate::state::{Identity, State};
use crate::store::{Extra, Handle, Place, Record, Slab};
use crate::time::{Span, Timestamp};

/// A state at one instant. Cheap to take, and independent of what happens afterwards.
#[derive(Debug, Clone)]
pub struct FrozenState {
    identity: Identity,
    now: Timestamp,
    /// How far the clock was set ahead.
    ahead: Span,
    numbers: (u32, u32),
    entities: Vec<(Arc<Entity>, Timestamp)>,
    mailboxes: Vec<FrozenMailbox>,
    records: Slab<Record>,
    extras: Slab<Extra>,
    sessions: Slab<Session>,
    locks: Slab<Lock>,
}

#[derive(Debug, Clone)]
struct FrozenMailbox {
    id: MailboxId,
    next_sequence: Sequence,
    rescue: u16,
    lanes: Lanes,
    dated: Dated,
    sessions: Vec<Handle>,
    history: Option<History>,
}

impl State {
    /// The state as it is now, to be written down while this one goes on.
    #[must_use]
    pub fn freeze(&mut self) -> FrozenState {
        let entities = self.catalogue.parts();
        let ids = entities.iter().flat_map(|(entity, _)| crate::namespace::parts(entity.id));
        let mailboxes = ids.filter_map(|id| {
            let mailbox = self.mailboxes.get(&id)?;
            let names = mailbox.sessions.iter().flat_map(|sessions| sessions.names.values());
            Some(FrozenMailbox {
                id,
                next_sequence: mailbox.next_sequence,
                rescue: mailbox.rescue,
                lanes: mailbox.lanes.clone(),
                dated: mailbox.dated.clone(),
                sessions: names.copied().collect(),
                history: self.histories.get(&id.entity()).filter(|_| id.is_main()).cloned(),
            })
        });
        FrozenState {
            identity: self.identity,
            now: self.now,
            ahead: self.ahead,
            numbers: self.catalogue.next_numbers(),
            mailboxes: mailboxes.collect(),
            entities,
            records: self.records.freeze(),
            extras: self.extras.freeze(),
            sessions: self.sessions.freeze(),
            locks: self.locks.freeze(),
        }
    }
}

impl FrozenState {
    /// How many messages are in memory, and so in the list of facts.
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.records.len()
    }

    /// The facts that lead an empty state to this one, in order.
    pub fn facts(&self) -> impl Iterator<Item = Fact> + '_ {
        let (next_entity, next_rule) = self.numbers;
        let namespace = self.identity.seed.map(|seed| Fact::RestoredNamespace {
            seed,
            generation: self.identity.generation,
            tokens: self.identity.made,
            next_entity,
            next_rule,
            now: self.now,
        });
        let clock = (self.ahead > Span::default()).then_some(Fact::ClockAdvanced { ahead: self.ahead });
        let entities = self.entities.iter().map(|(entity, accessed)| Fact::RestoredEntity {
            entity: Arc::clone(entity),
            accessed: *accessed,
        });
        let mailboxes = self.mailboxes.iter().flat_map(|mailbox| self.mailbox_facts(mailbox));
        // Ready messages were told lane by lane, in order; all others are found by looking at every one.
        let others = self.records.iter().filter_map(|(_, record)| {
            let standing = self.standing(record).filter(|standing| *standing != Standing::Ready)?;
            Some(self.message(record, standing))
        });
        namespace.into_iter().chain(clock).chain(entities).chain(mailboxes).chain(others)
    }

    fn mailbox_facts<'a>(&'a self, mailbox: &'a FrozenMailbox) -> impl Iterator<Item = Fact> + 'a {
        let itself = RestoredMailbox {
            mailbox: mailbox.id,
            next_sequence: mailbox.next_sequence,
            rescue: mailbox.rescue,
            ids_seen: mailbox.history.iter().flat_map(History::iter).collect(),
        };
        let sessions = mailbox.sessions.iter().filter_map(|handle| self.sessions.get(*handle));
        let session_facts = sessions.clone().map(|session| {
            Fact::RestoredSession(Box::new(RestoredSession {
                mailbox: session.mailbox,
                session: session.name.clone(),
                state: session.state.clone(),
                updated: session.updated,
                locked_until: session.lock.map(|lock| lock.until),
            }))
        });
        let in_sessions = sessions.flat_map(|session| session.iter(&self.records));
        let dated =
            mailbox.dated.values().filter_map(|(handle, _)| Some((*handle, self.records.get(*handle)?)));
        let ready = in_sessions.chain(dated).map(|(_, record)| self.message(record, Standing::Ready));
        let lanes = mailbox.lanes.iter().flat_map(move |(level, lane)| {
            let first_run = lane.runs().next().map(|run| run.from);
            let before = lane
                .iter(&self.records)
                .take_while(move |(_, record)| first_run.is_some_and(|from| record.key() <= from));
            let after = lane
                .iter(&self.records)
                .skip_while(move |(_, record)| first_run.is_some_and(|from| record.key() <= from));
            let runs = lane.runs().flat_map(move |run| [run_fact(mailbox.id, level, run), gaps_fact(run)]);
            let before = before.map(|(_, record)| self.message(record, Standing::Ready));
            let after = after.map(|(_, record)| self.message(record, Standing::Ready));
            before.chain(runs).chain(after)
        });
        // One that somebody merely attached to has nothing to tell.
        let new = itself.next_sequence == Sequence(1) && itself.rescue == 0 && itself.ids_seen.is_empty();
        let itself = (!new).then(|| Fact::RestoredMailbox(Box::new(itself)));
        itself.into_iter().chain(session_facts).chain(ready).chain(lanes)
    }

    fn standing(&self, record: &Record) -> Option<Standing> {
        let due = || self.extras.get(record.extra).map_or(Timestamp::NEVER, |extra| extra.due);
        let lock = |deferred| {
            let lock = self.locks.get(record.next)?;
            Some(Standing::Locked { token: lock.token, since: lock.since, until: lock.until, deferred })
        };
        match record.place() {
            Place::Listed | Place::Returned | Place::Dated => Some(Standing::Ready),
            Place::Deferred => Some(Standing::Deferred),
            Place::Scheduled => Some(Standing::Scheduled { due: due() }),
            Place::Delayed => Some(Standing::Delayed { until: due() }),
            Place::Locked => lock(false),
            Place::LockedDeferred => lock(true),
            Place::Transit | Place::Nowhere => None,
        }
    }

    fn message(&self, record: &Record, standing: Standing) -> Fact {
        let session = |handle| self.sessions.get(handle).map(|session| session.name.clone());
        let details = self.extras.get(record.extra).map(|extra| extra.to_details(session(extra.session)));
        let arrival = Arrival {
            mailbox: record.mailbox,
            sequence: record.sequence,
            eligible: record.eligible,
            level: record.level,
            origin: record.origin(),
            details: details.filter(|details| !details.is_plain(record.eligible)).map(Box::new),
        };
        Fact::RestoredMessage(Box::new(RestoredMessage {
            arrival,
            location: record.location,
            size: record.size,
            deliveries: record.deliveries,
            standing,
        }))
    }
}

fn gaps_fact(run: &Run) -> Fact {
    let (soonest, gaps) = (run.soonest, run.gaps.bits().to_vec());
    Fact::RestoredGaps(Box::new(RestoredGaps { run: run.id, soonest, gaps }))
}

fn run_fact(mailbox: MailboxId, level: Level, run: &Run) -> Fact {
    Fact::RestoredRun(Box::new(RestoredRun {
        mailbox,
        level,
        run: run.id,
        count: run.count,
        consumed: run.consumed,
        from: run.from,
        last: run.last,
        bytes: run.bytes,
        regions: run.regions.clone(),
    }))
}
