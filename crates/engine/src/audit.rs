//! Counting everything again: whether what the state believes adds up to what is in it.
//!
//! Slow, and meant for tests, fuzzing and `doctor`. Everything that is kept twice for speed is compared
//! with the thing itself here.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{EntityId, MailboxId, Region, Sequence};
use crate::level::Level;
use crate::mailbox::{Counts, Mailbox};
use crate::observe::LevelCounts;
use crate::state::{Pump, State};
use crate::store::{Handle, Place, Record};
use crate::time::Timestamp;

impl State {
    /// Everything that does not add up, in words; nothing if all is well.
    #[must_use]
    pub fn audit(&self) -> Vec<String> {
        let mut audit = Audit { state: self, problems: Vec::new() };
        audit.mailboxes();
        audit.tallies();
        audit.places();
        audit.regions_and_sizes();
        audit.timers();
        audit.line();
        audit.problems
    }
}

struct Audit<'a> {
    state: &'a State,
    problems: Vec<String>,
}

impl Audit<'_> {
    fn expect(&mut self, holds: bool, problem: impl FnOnce() -> String) {
        if !holds {
            self.problems.push(problem());
        }
    }

    /// Counts by place, and that every message is in the index of its mailbox.
    fn mailboxes(&mut self) {
        let mut counted: BTreeMap<MailboxId, Counts> = BTreeMap::new();
        for (handle, record) in self.state.records.iter() {
            let counts = counted.entry(record.mailbox).or_default();
            counts.bytes = counts.bytes.saturating_add(u64::from(record.size));
            let count = match record.place() {
                Place::Listed | Place::Returned | Place::Dated => &mut counts.ready,
                Place::Deferred => &mut counts.deferred,
                Place::Scheduled => &mut counts.scheduled,
                Place::Delayed => &mut counts.delayed,
                Place::Locked | Place::LockedDeferred => &mut counts.locked,
                Place::Transit | Place::Nowhere => {
                    self.problems.push(format!("message {} is nowhere", record.sequence));
                    continue;
                }
            };
            *count = count.saturating_add(1);
            let filed = self.state.find(record.mailbox, record.sequence) == Some(handle);
            self.expect(filed, || format!("message {} is not in the index", record.sequence));
        }
        for (id, mailbox) in self.state.mailboxes.iter() {
            let mut counts = counted.remove(id).unwrap_or_default();
            for run in mailbox.lanes.iter().flat_map(|(_, lane)| lane.runs()) {
                counts.ready = counts.ready.saturating_add(u64::from(run.remaining()));
                counts.bytes = counts.bytes.saturating_add(run.bytes);
            }
            self.expect(counts == mailbox.counts, || {
                format!("mailbox {}: counted {counts:?}, believed {:?}", id.0, mailbox.counts)
            });
            self.lanes(*id, mailbox);
            self.sessions(*id, mailbox);
        }
        self.expect(counted.is_empty(), || format!("messages without a mailbox: {counted:?}"));
    }

    /// Counts by level and place.
    fn tallies(&mut self) {
        let mut counted: BTreeMap<(MailboxId, Level), LevelCounts> = BTreeMap::new();
        for (_, record) in self.state.records.iter() {
            let counts = counted.entry((record.mailbox, record.level)).or_default();
            let count = match record.place() {
                Place::Listed | Place::Returned | Place::Dated => &mut counts.ready,
                Place::Deferred => &mut counts.deferred,
                Place::Scheduled => &mut counts.scheduled,
                Place::Delayed => &mut counts.delayed,
                Place::Locked | Place::LockedDeferred => &mut counts.locked,
                Place::Transit | Place::Nowhere => continue,
            };
            *count = count.saturating_add(1);
        }
        for (id, mailbox) in self.state.mailboxes.iter() {
            for (level, lane) in mailbox.lanes.iter() {
                let cold: u64 = lane.runs().map(|run| u64::from(run.remaining())).sum();
                if cold > 0 {
                    let counts = counted.entry((*id, level)).or_default();
                    counts.ready = counts.ready.saturating_add(cold);
                }
            }
            for (level, believed) in mailbox.tally.iter() {
                let counts = counted.remove(&(*id, level)).unwrap_or_default();
                self.expect(counts == believed, || {
                    format!("mailbox {} level {level}: counted {counts:?}, believed {believed:?}", id.0)
                });
            }
        }
        self.expect(counted.is_empty(), || format!("messages of levels not counted: {counted:?}"));
    }

    /// Lanes in order, their heads known, and together as many as are ready.
    fn lanes(&mut self, id: MailboxId, mailbox: &Mailbox) {
        let records = &self.state.records;
        let mut ready = mailbox.dated.len();
        for (level, lane) in mailbox.lanes.iter() {
            let keys: Vec<_> = lane.iter(records).map(|(_, record)| record.key()).collect();
            ready = ready.saturating_add(keys.len());
            let sorted = keys.windows(2).all(|pair| matches!(pair, [left, right] if left < right));
            self.expect(sorted, || format!("mailbox {} level {level}: out of order", id.0));
            let alike = lane.iter(records).all(|(_, record)| record.level == level && record.mailbox == id);
            self.expect(alike, || format!("mailbox {} level {level}: a stranger in the lane", id.0));
            let shown = mailbox.lanes.heads(level).next().map(|(_, key)| key);
            let head = lane.head(records).map_or(crate::lane::lanes::NOBODY, crate::lane::Head::key);
            self.expect(shown == Some(head), || format!("mailbox {} level {level}: another head", id.0));
            let runs: Vec<_> = lane.runs().map(|run| (run.from, run.last)).collect();
            let apart = runs.windows(2).all(|pair| matches!(pair, [(_, last), (from, _)] if last < from));
            self.expect(apart, || format!("mailbox {} level {level}: runs overlap", id.0));
        }
        for handle in mailbox.sessions.iter().flat_map(|sessions| sessions.names.values()) {
            let session = self.state.sessions.get(*handle);
            ready = ready.saturating_add(session.map_or(0, |session| session.iter(records).count()));
        }
        let runs = mailbox.lanes.iter().flat_map(|(_, lane)| lane.runs());
        let cold: u64 = runs.map(|run| u64::from(run.remaining())).sum();
        let ready = u64::try_from(ready).unwrap_or(u64::MAX).saturating_add(cold);
        self.expect(ready == mailbox.counts.ready, || {
            format!("mailbox {}: {ready} in lanes, {} believed ready", id.0, mailbox.counts.ready)
        });
        let mut levels = BTreeMap::new();
        for (_, level) in mailbox.dated.values() {
            let count: &mut u64 = levels.entry(*level).or_default();
            *count = count.saturating_add(1);
        }
        self.expect(levels == mailbox.dated_levels, || format!("mailbox {}: dated levels", id.0));
    }

    /// Sessions in order, ranked if free, and none that is over.
    fn sessions(&mut self, id: MailboxId, mailbox: &Mailbox) {
        let Some(table) = &mailbox.sessions else { return };
        let mut ranked: usize = 0;
        for (name, handle) in &table.names {
            let Some(session) = self.state.sessions.get(*handle) else {
                self.problems.push(format!("session {name} is lost"));
                continue;
            };
            let records = &self.state.records;
            let numbers: Vec<_> = session.iter(records).map(|(_, record)| record.sequence).collect();
            let sorted = numbers.windows(2).all(|pair| matches!(pair, [left, right] if left < right));
            self.expect(sorted, || format!("session {name}: out of order"));
            self.expect(!session.is_over(), || format!("session {name} is over and still there"));
            let free = session.lock.is_none() && !numbers.is_empty();
            self.expect(free == session.rank.is_some(), || format!("session {name}: ranked wrongly"));
            if let Some((rank, age)) = session.rank {
                ranked = ranked.saturating_add(1);
                let listed = table.ranked.contains(&(rank, *handle)) && table.aged.contains(&(age, *handle));
                self.expect(listed, || format!("session {name}: not where it is ranked"));
            }
            let watched = session
                .lock
                .is_none_or(|lock| self.state.timers.session_locks.contains(&(lock.until, *handle)));
            self.expect(watched, || format!("session {name}: its lock is not watched"));
        }
        let alike = ranked == table.ranked.len() && ranked == table.aged.len();
        self.expect(alike, || format!("mailbox {}: {ranked} free sessions", id.0));
    }

    /// Locks and messages name each other, and session messages are counted by their session.
    fn places(&mut self) {
        let mut locked: u32 = 0;
        let mut members: BTreeMap<Handle, (u64, u64, u64)> = BTreeMap::new();
        for (handle, record) in self.state.records.iter() {
            let (_, _, session) = self.state.expiry_of(record);
            if session.is_some() {
                let (all, scheduled, under_lock) = members.entry(session).or_default();
                *all = all.saturating_add(1);
                *scheduled = scheduled.saturating_add(u64::from(record.place() == Place::Scheduled));
                let held = matches!(record.place(), Place::Locked | Place::LockedDeferred);
                *under_lock = under_lock.saturating_add(u64::from(held));
            }
            if matches!(record.place(), Place::Locked | Place::LockedDeferred) {
                locked = locked.saturating_add(1);
                let lock = self.state.locks.get(record.next);
                let mutual = lock.is_some_and(|lock| {
                    lock.message == handle
                        && lock.sequence == record.sequence
                        && lock.mailbox == record.mailbox
                });
                self.expect(mutual, || format!("message {} has no lock", record.sequence));
                let token = self.state.token_of(handle);
                let found = token.is_some_and(|token| self.state.locks.handle(token) == Some(record.next));
                self.expect(found, || format!("the lock of {} is not found by its token", record.sequence));
            }
        }
        let held = self.state.locks.len();
        self.expect(locked == held, || format!("{locked} messages locked, {held} locks held"));
        for (handle, session) in self.state.sessions.iter() {
            let counted = members.remove(&handle).unwrap_or_default();
            let locked = u64::try_from(session.locked.len()).unwrap_or(u64::MAX);
            let believed = (session.messages, session.scheduled, locked);
            self.expect(counted == believed, || {
                format!("session {}: counted {counted:?}, believed {believed:?}", session.name)
            });
        }
        self.expect(members.is_empty(), || "messages of sessions that are not there".to_owned());
    }

    fn regions_and_sizes(&mut self) {
        let mut regions: BTreeMap<Region, u64> = BTreeMap::new();
        let mut sizes: BTreeMap<EntityId, u64> = BTreeMap::new();
        for (_, record) in self.state.records.iter() {
            let count = regions.entry(record.location.region()).or_default();
            *count = count.saturating_add(1);
        }
        for (_, mailbox) in self.state.mailboxes.iter() {
            let states = mailbox.sessions.iter().flat_map(|sessions| sessions.names.values());
            let states = states.filter_map(|handle| self.state.sessions.get(*handle)?.state.as_ref());
            let states: u64 = states.map(|state| u64::try_from(state.len()).unwrap_or(u64::MAX)).sum();
            let size = sizes.entry(mailbox.account).or_default();
            *size = size.saturating_add(mailbox.counts.bytes).saturating_add(states);
            for (region, count) in
                mailbox.lanes.iter().flat_map(|(_, lane)| lane.runs()).flat_map(|run| &run.regions)
            {
                let total = regions.entry(*region).or_default();
                *total = total.saturating_add(u64::from(*count));
            }
        }
        let believed: BTreeMap<_, _> = self.state.regions.iter().collect();
        self.expect(regions == believed, || format!("regions: counted {regions:?}, believed {believed:?}"));
        sizes.retain(|_, size| *size > 0);
        for (entity, size) in &sizes {
            let believed = self.state.sizes.get(entity).copied().unwrap_or(0);
            self.expect(*size == believed, || {
                format!("entity {}: {size} bytes, believed {believed}", entity.0)
            });
        }
        let total: u64 = self.state.sizes.values().sum();
        self.expect(total == sizes.values().sum(), || "bytes of entities that hold none".to_owned());
    }

    /// Every message that can expire or become due is watched, and nothing else.
    fn timers(&mut self) {
        let mut expiry: usize = 0;
        let mut due: usize = 0;
        for (_, record) in self.state.records.iter() {
            let (expires, _, _) = self.state.expiry_of(record);
            let place = record.place();
            let watched = !matches!(place, Place::Locked | Place::LockedDeferred | Place::Scheduled);
            if expires != Timestamp::NEVER && watched {
                expiry = expiry.saturating_add(1);
                self.watched(record, expires, &self.state.timers.expiry);
            }
            if matches!(place, Place::Scheduled | Place::Delayed) {
                due = due.saturating_add(1);
                let at = self.state.extras.get(record.extra).map_or(Timestamp::NEVER, |extra| extra.due);
                self.watched(record, at, &self.state.timers.due);
            }
        }
        let timers = &self.state.timers;
        let runs = self.state.mailboxes.iter().flat_map(|(_, mailbox)| mailbox.lanes.iter());
        let runs = runs.flat_map(|(_, lane)| lane.runs());
        let cold: BTreeSet<_> =
            runs.filter(|run| run.soonest != Timestamp::NEVER).map(|run| (run.soonest, run.id)).collect();
        self.expect(timers.cold == cold, || format!("runs watched: {:?}, not {cold:?}", timers.cold));
        let counts = (timers.expiry.len(), timers.due.len());
        self.expect(counts == (expiry, due), || format!("{counts:?} timers for {:?}", (expiry, due)));
    }

    fn watched(
        &mut self,
        record: &Record,
        at: Timestamp,
        timers: &std::collections::BTreeSet<(Timestamp, MailboxId, Sequence)>,
    ) {
        let watched = timers.contains(&(at, record.mailbox, record.sequence));
        self.expect(watched, || format!("message {} is not watched", record.sequence));
    }

    /// Whoever can be served is in line, and whoever is in line knows it.
    fn line(&mut self) {
        for (id, mailbox) in self.state.mailboxes.iter() {
            let places = self.state.line.iter().filter(|pump| **pump == Pump::Mailbox(*id)).count();
            self.expect(places == usize::from(mailbox.in_line), || {
                format!("mailbox {}: {places} times in line", id.0)
            });
            self.expect(mailbox.in_line || !mailbox.is_servable(), || {
                format!("mailbox {} is forgotten", id.0)
            });
        }
        for (id, receiver) in &self.state.receivers {
            let places = self.state.line.iter().filter(|pump| **pump == Pump::Receiver(*id)).count();
            self.expect(places == usize::from(receiver.in_line), || {
                format!("receiver {}: {places} times in line", id.0)
            });
            let session = self.state.sessions.get(receiver.session);
            let waiting = receiver.credit > 0
                && session.is_some_and(|session| {
                    let held = self.state.mailboxes.get(&session.mailbox).is_none_or(|mailbox| mailbox.held);
                    !held && session.head(&self.state.records).is_some()
                });
            self.expect(receiver.in_line || !waiting, || format!("receiver {} is forgotten", id.0));
        }
    }
}
