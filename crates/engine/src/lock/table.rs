//! The locks that are held, by token and in the order in which they end.
//!
//! A lock lasts as long as its entity says, and time does not run backwards, so the locks of one duration
//! end in the order in which they were taken: each duration has a list through its locks, and taking,
//! renewing or settling one is O(1). Locks within a session are in no list: they end with their session.

use std::collections::BTreeMap;

use hashbrown::HashTable;

use crate::id::{LockToken, MailboxId, Sequence, TransactionId};
use crate::store::Handle;
use crate::store::slab::{Slab, Slot};
use crate::time::{Span, Timestamp};

/// One lock: as much as the processor fetches from memory at once.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct Lock {
    pub(crate) token: LockToken,
    pub(crate) mailbox: MailboxId,
    pub(crate) sequence: Sequence,
    /// The locked message; none if the slot is free.
    pub(crate) message: Handle,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    /// The session it lives and dies with.
    pub(crate) session: Handle,
    prev: Handle,
    next: Handle,
}

const _: () = assert!(size_of::<Lock>() == 64, "a lock is 64 bytes");

impl Lock {
    pub(crate) fn new(token: LockToken, mailbox: MailboxId, sequence: Sequence, message: Handle) -> Lock {
        Lock {
            token,
            mailbox,
            sequence,
            message,
            since: Timestamp(0),
            until: Timestamp::NEVER,
            session: Handle::NONE,
            prev: Handle::NONE,
            next: Handle::NONE,
        }
    }

    /// How long it lasts, which says in which list it is.
    fn duration(&self) -> Span {
        self.until.since(self.since)
    }
}

impl Slot for Lock {
    fn freed(next: Handle) -> Self {
        let nothing = Lock::new(LockToken(0), MailboxId(0), Sequence(0), Handle::NONE);
        Lock { next, ..nothing }
    }

    fn next_free(&self) -> Option<Handle> {
        (!self.message.is_some()).then_some(self.next)
    }
}

/// All locks of the namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockTable {
    locks: Slab<Lock>,
    by_token: HashTable<Handle>,
    lists: BTreeMap<Span, Ends>,
    /// Locks that an open transaction will settle. Most namespaces have none.
    enlisted: BTreeMap<LockToken, TransactionId>,
}

/// The first and the last lock of a list.
#[derive(Debug, Clone, Copy)]
struct Ends {
    first: Handle,
    last: Handle,
}

/// Tokens are hashes already.
fn hash(token: LockToken) -> u64 {
    u64::try_from(token.0 & u128::from(u64::MAX)).unwrap_or(0)
}

impl LockTable {
    pub(crate) fn len(&self) -> u32 {
        self.locks.len()
    }

    pub(crate) fn get(&self, handle: Handle) -> Option<&Lock> {
        self.locks.get(handle)
    }

    /// The open transaction that will settle a lock.
    pub(crate) fn transaction(&self, lock: &Lock) -> Option<TransactionId> {
        if self.enlisted.is_empty() {
            return None;
        }
        self.enlisted.get(&lock.token).copied()
    }

    /// Notes which transaction will settle a lock, if there is such a lock.
    pub(crate) fn enlist(&mut self, token: LockToken, transaction: Option<TransactionId>) {
        match transaction {
            Some(transaction) if self.handle(token).is_some() => {
                self.enlisted.insert(token, transaction);
            }
            _ => {
                self.enlisted.remove(&token);
            }
        }
    }

    /// The lock with this token.
    pub(crate) fn find(&self, token: LockToken) -> Option<&Lock> {
        self.locks.get(self.handle(token)?)
    }

    pub(crate) fn handle(&self, token: LockToken) -> Option<Handle> {
        let same = |handle: &Handle| self.locks.get(*handle).is_some_and(|lock| lock.token == token);
        self.by_token.find(hash(token), same).copied()
    }

    /// Holds a lock until it is removed. One in a session is told when that ends, and not watched.
    pub(crate) fn insert(&mut self, lock: Lock) -> Handle {
        let token = lock.token;
        let watched = !lock.session.is_some();
        let handle = self.locks.insert(lock);
        let locks = &self.locks;
        self.by_token
            .insert_unique(hash(token), handle, |other| locks.get(*other).map_or(0, |lock| hash(lock.token)));
        if watched {
            self.watch(handle);
        }
        handle
    }

    /// Lets go of a lock, and gives its token.
    pub(crate) fn remove(&mut self, handle: Handle) -> Option<LockToken> {
        self.unwatch(handle);
        let token = self.locks.remove(handle)?.token;
        if !self.enlisted.is_empty() {
            self.enlisted.remove(&token);
        }
        if let Ok(entry) = self.by_token.find_entry(hash(token), |found| *found == handle) {
            entry.remove();
        }
        Some(token)
    }

    /// Makes a lock end later.
    pub(crate) fn renew(&mut self, handle: Handle, at: Timestamp, until: Timestamp) {
        self.unwatch(handle);
        if let Some(lock) = self.locks.get_mut(handle) {
            lock.since = at;
            lock.until = until;
            if !lock.session.is_some() {
                self.watch(handle);
            }
        }
    }

    /// The watched lock that ends first.
    pub(crate) fn first(&self) -> Option<&Lock> {
        let firsts = self.lists.values().filter_map(|ends| self.locks.get(ends.first));
        firsts.min_by_key(|lock| (lock.until, lock.mailbox, lock.sequence))
    }

    /// The locks by themselves, shared with this table until either changes.
    pub(crate) fn freeze(&mut self) -> Slab<Lock> {
        self.locks.freeze()
    }

    /// Appends to the list of its duration. Times that run backwards, which only a restored or a damaged
    /// state has, are put in order all the same.
    fn watch(&mut self, handle: Handle) {
        let Some(lock) = self.locks.get(handle) else { return };
        let (duration, until) = (lock.duration(), lock.until);
        let ends = self.lists.entry(duration).or_insert(Ends { first: Handle::NONE, last: Handle::NONE });
        let mut after = ends.last;
        while let Some(earlier) = self.locks.get(after).filter(|earlier| earlier.until > until) {
            after = earlier.prev;
        }
        let before = match self.locks.get_mut(after) {
            Some(earlier) => std::mem::replace(&mut earlier.next, handle),
            None => std::mem::replace(&mut ends.first, handle),
        };
        match self.locks.get_mut(before) {
            Some(later) => later.prev = handle,
            None => ends.last = handle,
        }
        if let Some(lock) = self.locks.get_mut(handle) {
            lock.prev = after;
            lock.next = before;
        }
    }

    fn unwatch(&mut self, handle: Handle) {
        let Some(lock) = self.locks.get(handle) else { return };
        if lock.session.is_some() {
            return;
        }
        let (duration, prev, next) = (lock.duration(), lock.prev, lock.next);
        let Some(ends) = self.lists.get_mut(&duration) else { return };
        match self.locks.get_mut(prev) {
            Some(earlier) => earlier.next = next,
            None => ends.first = next,
        }
        match self.locks.get_mut(next) {
            Some(later) => later.prev = prev,
            None => ends.last = prev,
        }
        if !ends.first.is_some() {
            self.lists.remove(&duration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Take { duration: u64 },
        Renew { which: prop::sample::Index, duration: u64 },
        Remove(prop::sample::Index),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let duration = || prop_oneof![Just(5_u64), Just(30), Just(60)];
        prop_oneof![
            4 => duration().prop_map(|duration| Step::Take { duration }),
            2 => (any::<prop::sample::Index>(), duration()).prop_map(|(which, duration)| Step::Renew { which, duration }),
            3 => any::<prop::sample::Index>().prop_map(Step::Remove),
            2 => (0u64..50).prop_map(Step::Wait),
        ]
    }

    #[test]
    fn a_lock_is_part_of_a_transaction_until_it_is_gone_or_released() {
        let mut table = LockTable::default();
        let [first, second, unknown] = [1, 2, 3].map(LockToken);
        let insert = |table: &mut LockTable, token| {
            table.insert(Lock::new(token, MailboxId(0), Sequence(1), Handle(0)))
        };
        let handle = insert(&mut table, first);
        insert(&mut table, second);
        for token in [first, second, unknown] {
            table.enlist(token, Some(TransactionId(9)));
        }
        let of = |table: &LockTable, token| table.find(token).and_then(|lock| table.transaction(lock));
        assert_eq!([first, second].map(|token| of(&table, token)), [Some(TransactionId(9)); 2]);
        table.enlist(second, None);
        table.remove(handle);
        for token in [first, unknown] {
            insert(&mut table, token);
        }
        assert_eq!([first, second, unknown].map(|token| of(&table, token)), [None; 3]);
        assert!(table.enlisted.is_empty());
    }

    proptest! {
        #[test]
        fn the_first_to_end_is_always_known(steps in prop::collection::vec(step(), 1..200)) {
            let mut table = LockTable::default();
            let mut model: Vec<(u64, LockToken)> = Vec::new();
            let mut now = 0;
            for (count, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Take { duration } => {
                        let token = LockToken(u128::try_from(count).unwrap() + 1);
                        let lock = Lock::new(token, MailboxId(0), Sequence(u64::try_from(count).unwrap()), Handle(0));
                        table.insert(Lock { since: Timestamp(now), until: Timestamp(now + duration), ..lock });
                        model.push((now + duration, token));
                    }
                    Step::Renew { which, duration } if !model.is_empty() => {
                        let at = which.index(model.len());
                        let chosen = &mut model[at];
                        chosen.0 = now + duration;
                        let handle = table.handle(chosen.1).unwrap();
                        table.renew(handle, Timestamp(now), Timestamp(now + duration));
                    }
                    Step::Remove(which) if !model.is_empty() => {
                        let (_, token) = model.swap_remove(which.index(model.len()));
                        let handle = table.handle(token).unwrap();
                        prop_assert_eq!(table.remove(handle), Some(token));
                        prop_assert!(table.find(token).is_none());
                    }
                    Step::Wait(span) => now += span,
                    Step::Renew { .. } | Step::Remove(_) => {}
                }
                let first = model.iter().map(|(until, _)| *until).min();
                prop_assert_eq!(table.first().map(|lock| lock.until.0), first);
                prop_assert_eq!(usize::try_from(table.len()).unwrap(), model.len());
            }
        }
    }
}
