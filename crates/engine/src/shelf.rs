//! Moving messages about in memory: the small steps that every fact is applied by.
//!
//! A message is in exactly one place at a time, and everything that counts or orders messages by their
//! place is kept true here and nowhere else. Between two places, within one fact, it is in transit.

use crate::fact::Arrival;
use crate::id::{Location, MailboxId};
use crate::mailbox::Mailbox;
use crate::order::Ordering;
use crate::session::Session;
use crate::state::{State, open};
use crate::store::{Extra, Handle, Place, Record, Slab};
use crate::time::Timestamp;

impl State {
    /// Takes a message in; it is in transit then. Gives the mailbox it is in too. `None` if its number is taken or
    /// memory's numbers are.
    pub(crate) fn admit(
        &mut self,
        arrival: &Arrival,
        location: Location,
        size: u32,
    ) -> Option<(Handle, &mut Mailbox)> {
        if !self.records.has_room() || !self.extras.has_room() {
            return None;
        }
        let Arrival { mailbox: id, sequence, eligible, level, origin, details } = arrival;
        let session = match details.as_ref().and_then(|details| details.session.as_ref()) {
            // No session is begun for a message whose number is taken.
            Some(_) if self.find(*id, *sequence).is_some() => return None,
            Some(name) => self.open_session(*id, name)?,
            None => Handle::NONE,
        };
        let mailbox = open(&mut self.mailboxes, &self.catalogue, *id)?;
        let record = Record::new(*id, (*eligible, *sequence), (location, size), (*level, *origin));
        let handle = self.records.insert(record);
        if !mailbox.index.insert(*sequence, handle) {
            self.records.remove(handle);
            return None;
        }
        if id.is_main() {
            mailbox.next_sequence = mailbox.next_sequence.max(sequence.next());
        }
        mailbox.counts.bytes = mailbox.counts.bytes.saturating_add(u64::from(size));
        if let Some(details) = details
            && let Some(record) = self.records.get_mut(handle)
        {
            record.extra = self.extras.insert(Extra::from_details(details, session));
        }
        if let Some(session) = self.sessions.get_mut(session) {
            session.messages = session.messages.saturating_add(1);
        }
        self.regions.add(location.region(), 1);
        let size = u64::from(size);
        let total = self.sizes.entry(mailbox.account).or_default();
        *total = total.saturating_add(size);
        Some((handle, mailbox))
    }

    /// Makes a message in transit ready: in its lane, its session, or among the dated.
    pub(crate) fn make_ready(&mut self, handle: Handle) -> Option<()> {
        let record = *self.records.get(handle)?;
        let id = record.mailbox;
        let (expires, deadline, session) = self.expiry_of(&record);
        let mailbox = self.mailboxes.get_mut(&id)?;
        mailbox.count_in(Place::Listed, record.level);
        mailbox.chilly = false;
        mailbox.ring.arrived(record.sequence);
        if session.is_some() {
            let ordering = mailbox.ordering.clone();
            put_in_session(self.sessions.get_mut(session)?, &mut self.records, handle, deadline, &ordering);
            self.rank_session(session);
            self.touch_session(session);
            self.touch(id);
        } else if deadline != Timestamp::NEVER && mailbox.ordering.by_deadline() {
            mailbox.dated.insert((deadline, record.sequence), (handle, record.level));
            let count = mailbox.dated_levels.entry(record.level).or_default();
            *count = count.saturating_add(1);
            self.records.get_mut(handle)?.set_place(Place::Dated);
            mailbox.line_up(id, &mut self.line);
        } else {
            mailbox.lanes.put(&mut self.records, handle);
            mailbox.line_up(id, &mut self.line);
        }
        if expires != Timestamp::NEVER {
            self.timers.expiry.insert((expires, id, record.sequence));
        }
        Some(())
    }

    /// Puts a message in transit aside.
    pub(crate) fn make_deferred(&mut self, handle: Handle) -> Option<()> {
        let (mailbox, record) = self.enter(handle, Place::Deferred)?;
        mailbox.count_in(Place::Deferred, record.level);
        let (expires, ..) = self.expiry_of(&record);
        if expires != Timestamp::NEVER {
            self.timers.expiry.insert((expires, record.mailbox, record.sequence));
        }
        Some(())
    }

    /// Lets a message in transit wait: for its schedule, or for its retry.
    pub(crate) fn make_wait(&mut self, handle: Handle, place: Place, due: Timestamp) -> Option<()> {
        let (mailbox, record) = self.enter(handle, place)?;
        mailbox.count_in(place, record.level);
        let extra = self.extra_mut(handle)?;
        extra.due = due;
        let session = extra.session;
        if place == Place::Scheduled
            && let Some(session) = self.sessions.get_mut(session)
        {
            session.scheduled = session.scheduled.saturating_add(1);
        }
        self.timers.due.insert((due, record.mailbox, record.sequence));
        let (expires, ..) = self.expiry_of(&record);
        if place == Place::Delayed && expires != Timestamp::NEVER {
            self.timers.expiry.insert((expires, record.mailbox, record.sequence));
        }
        Some(())
    }

    /// Puts a message in transit under a lock that is held already.
    pub(crate) fn make_locked(&mut self, handle: Handle, place: Place, lock: Handle) -> Option<()> {
        let record = self.records.get(handle)?;
        self.mailboxes.get_mut(&record.mailbox)?.count_in(place, record.level);
        self.stand_locked(handle, place, lock)
    }

    /// The same for one that counts as locked already.
    pub(crate) fn stand_locked(&mut self, handle: Handle, place: Place, lock: Handle) -> Option<()> {
        let record = self.records.get_mut(handle)?;
        record.prev = Handle::NONE;
        record.next = lock;
        record.set_place(place);
        if let Some(extra) = self.extras.get(record.extra)
            && let Some(session) = self.sessions.get_mut(extra.session)
        {
            session.locked.insert(record.sequence);
        }
        Some(())
    }

    /// Takes a message out of its place, leaving it in transit.
    pub(crate) fn withdraw(&mut self, handle: Handle) -> Option<()> {
        let record = *self.records.get(handle)?;
        self.pull(handle, &record, Place::Transit)?;
        let record = self.records.get_mut(handle)?;
        record.prev = Handle::NONE;
        record.next = Handle::NONE;
        record.set_place(Place::Transit);
        Some(())
    }

    /// Takes a message out of its place and counts it to another. Its record still tells the old one: the caller
    /// writes the new one there, or frees it.
    pub(crate) fn pull(&mut self, handle: Handle, record: &Record, to: Place) -> Option<()> {
        let id = record.mailbox;
        let (expires, deadline, session) = self.expiry_of(record);
        let mailbox = self.mailboxes.get_mut(&id)?;
        let place = record.place();
        mailbox.recount(place, to, record.level);
        mailbox.stalled = None;
        if mailbox.ring.is_watched() {
            mailbox.ring.left(standing(record, deadline, &mailbox.ordering));
        }
        match place {
            Place::Listed | Place::Returned => {
                if session.is_some() {
                    let ordering = mailbox.ordering.clone();
                    take_from_session(
                        self.sessions.get_mut(session)?,
                        &mut self.records,
                        handle,
                        deadline,
                        &ordering,
                    );
                    self.rank_session(session);
                } else {
                    mailbox.lanes.take(&mut self.records, handle);
                }
            }
            Place::Dated => {
                mailbox.dated.remove(&(deadline, record.sequence));
                if let Some(count) = mailbox.dated_levels.get_mut(&record.level) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        mailbox.dated_levels.remove(&record.level);
                    }
                }
            }
            Place::Scheduled | Place::Delayed => {
                let due = self.extras.get(record.extra).map_or(Timestamp::NEVER, |extra| extra.due);
                self.timers.due.remove(&(due, id, record.sequence));
                if place == Place::Scheduled
                    && let Some(session) = self.sessions.get_mut(session)
                {
                    session.scheduled = session.scheduled.saturating_sub(1);
                }
            }
            Place::Locked | Place::LockedDeferred => {
                self.locks.remove(record.next);
                if let Some(session) = self.sessions.get_mut(session) {
                    session.locked.remove(&record.sequence);
                }
            }
            Place::Deferred | Place::Transit | Place::Nowhere => {}
        }
        let watched = !matches!(place, Place::Locked | Place::LockedDeferred | Place::Scheduled);
        if watched && expires != Timestamp::NEVER {
            self.timers.expiry.remove(&(expires, id, record.sequence));
        }
        Some(())
    }

    /// Forgets a message altogether. Gives what was known of it, and the mailbox it was in.
    pub(crate) fn erase(&mut self, handle: Handle) -> Option<(Record, &mut Mailbox)> {
        let record = *self.records.get(handle)?;
        self.pull(handle, &record, Place::Transit)?;
        self.records.remove(handle);
        self.regions.release(record.location.region(), 1);
        if let Some(extra) = self.extras.remove(record.extra)
            && let Some(session) = self.sessions.get_mut(extra.session)
        {
            session.messages = session.messages.saturating_sub(1);
            self.close_session_if_over(extra.session);
        }
        let mailbox = self.mailboxes.get_mut(&record.mailbox)?;
        mailbox.index.remove(record.sequence);
        let size = u64::from(record.size);
        mailbox.counts.bytes = mailbox.counts.bytes.saturating_sub(size);
        if let Some(total) = self.sizes.get_mut(&mailbox.account) {
            *total = total.saturating_sub(size);
        }
        Some((record, mailbox))
    }

    /// The unusual part of a message, made if it has none.
    pub(crate) fn extra_mut(&mut self, handle: Handle) -> Option<&mut Extra> {
        let record = self.records.get(handle)?;
        let (extra, enqueued) = (record.extra, record.eligible);
        if self.extras.get(extra).is_some() {
            return self.extras.get_mut(extra);
        }
        let extra = self.extras.insert(Extra::new(enqueued));
        self.records.get_mut(handle)?.extra = extra;
        self.extras.get_mut(extra)
    }

    /// When a message expires, its own deadline, and its session.
    pub(crate) fn expiry_of(&self, record: &Record) -> (Timestamp, Timestamp, Handle) {
        self.extras.get(record.extra).map_or((Timestamp::NEVER, Timestamp::NEVER, Handle::NONE), |extra| {
            (extra.expires, extra.deadline, extra.session)
        })
    }

    /// Puts a mailbox in line if it can be served and is not in line yet.
    pub(crate) fn touch(&mut self, id: MailboxId) {
        if let Some(mailbox) = self.mailboxes.get_mut(&id) {
            mailbox.line_up(id, &mut self.line);
        }
    }

    fn enter(&mut self, handle: Handle, place: Place) -> Option<(&mut Mailbox, Record)> {
        let record = self.records.get_mut(handle)?;
        record.set_place(place);
        let record = *record;
        Some((self.mailboxes.get_mut(&record.mailbox)?, record))
    }
}

/// Where a message stands among others of its session or mailbox.
pub(crate) fn standing(
    record: &Record,
    deadline: Timestamp,
    ordering: &Ordering,
) -> (crate::order::Rank, crate::id::Sequence) {
    let deadline = (deadline != Timestamp::NEVER).then_some(deadline);
    (ordering.rank(record.level, record.eligible, deadline), record.sequence)
}

fn put_in_session(
    session: &mut Session,
    records: &mut Slab<Record>,
    handle: Handle,
    deadline: Timestamp,
    ordering: &Ordering,
) {
    let Some(&record) = records.get(handle) else { return };
    let sequence = record.sequence;
    if records.get(session.list.tail).is_none_or(|last| last.sequence < sequence) {
        session.list.push_back(records, handle);
    } else if records.get(session.list.head).is_some_and(|first| sequence < first.sequence) {
        session.list.push_front(records, handle);
    } else {
        session.returned.insert(sequence, handle);
        if let Some(record) = records.get_mut(handle) {
            record.set_place(Place::Returned);
        }
    }
    if ordering.lift {
        session.best.insert(standing(&record, deadline, ordering));
    }
}

fn take_from_session(
    session: &mut Session,
    records: &mut Slab<Record>,
    handle: Handle,
    deadline: Timestamp,
    ordering: &Ordering,
) {
    let Some(&record) = records.get(handle) else { return };
    if record.place() == Place::Returned {
        session.returned.remove(&record.sequence);
    } else {
        session.list.unlink(records, handle);
    }
    if ordering.lift {
        session.best.remove(&standing(&record, deadline, ordering));
    }
}

impl State {
    /// Keeps a session's place among the free ones true.
    pub(crate) fn rank_session(&mut self, handle: Handle) -> Option<()> {
        let session = self.sessions.get(handle)?;
        let id = session.mailbox;
        let mailbox = self.mailboxes.get_mut(&id)?;
        let head = session.head(&self.records).filter(|_| session.lock.is_none());
        let new = head.and_then(|head| {
            let record = self.records.get(head)?;
            let deadline = self.extras.get(record.extra).map_or(Timestamp::NEVER, |extra| extra.deadline);
            let own = standing(record, deadline, &mailbox.ordering);
            let rank = if mailbox.ordering.lift { session.best.first().copied().unwrap_or(own) } else { own };
            Some((rank, record.key()))
        });
        let old = session.rank;
        if old != new {
            mailbox.sessions.as_mut()?.rank(handle, old, new);
            self.sessions.get_mut(handle)?.rank = new;
            self.touch(id);
        }
        Some(())
    }

    /// Puts the receiver that holds a session in line, if there is something for it.
    pub(crate) fn touch_session(&mut self, handle: Handle) {
        let lock = self.sessions.get(handle).and_then(|session| session.lock);
        if let Some(receiver) = lock.and_then(|lock| lock.receiver) {
            self.touch_receiver(receiver);
        }
    }

    /// The session of that name, begun if need be.
    pub(crate) fn open_session(&mut self, id: MailboxId, name: &crate::id::SessionId) -> Option<Handle> {
        if let Some(handle) = self.mailbox_mut(id)?.sessions.as_ref()?.names.get(name) {
            return Some(*handle);
        }
        if !self.sessions.has_room() {
            return None;
        }
        let handle = self.sessions.insert(Session::new(id, name.clone()));
        self.mailbox_mut(id)?.sessions.as_mut()?.names.insert(name.clone(), handle);
        Some(handle)
    }

    /// Forgets a session that nothing is left of.
    pub(crate) fn close_session_if_over(&mut self, handle: Handle) {
        if let Some(session) = self.sessions.get(handle)
            && session.is_over()
        {
            let (id, name) = (session.mailbox, session.name.clone());
            self.rank_session(handle);
            self.sessions.remove(handle);
            if let Some(table) = self.mailboxes.get_mut(&id).and_then(|mailbox| mailbox.sessions.as_mut()) {
                table.names.remove(&name);
            }
        }
    }
}
