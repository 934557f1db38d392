//! The sessions of a mailbox, by name and by rank.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use crate::command::ReceiveMode;
use crate::id::{MailboxId, ReceiverId, RequestTag, Sequence, SessionId};
use crate::lane::List;
use crate::order::Rank;
use crate::store::slab::Slot;
use crate::store::{Handle, Record, Slab};
use crate::time::Timestamp;

/// A session's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionLock {
    /// None after a restart: whoever it was is gone.
    pub(crate) receiver: Option<ReceiverId>,
    pub(crate) mode: ReceiveMode,
    pub(crate) until: Timestamp,
}

/// One session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) mailbox: MailboxId,
    pub(crate) name: SessionId,
    /// Ready messages in the order of numbers, but for those that came back out of order.
    pub(crate) list: List,
    pub(crate) returned: BTreeMap<Sequence, Handle>,
    /// Ready messages by rank, where the entity lifts.
    pub(crate) best: BTreeSet<(Rank, Sequence)>,
    /// Messages delivered and not settled.
    pub(crate) locked: BTreeSet<Sequence>,
    /// All its messages.
    pub(crate) messages: u64,
    /// Those of them that are scheduled, and do not count yet.
    pub(crate) scheduled: u64,
    pub(crate) state: Option<Bytes>,
    /// When the state was last set.
    pub(crate) updated: Timestamp,
    pub(crate) lock: Option<SessionLock>,
    /// Where it stands among the free ones.
    pub(crate) rank: Option<Standing>,
    free: bool,
}

/// Where a free session with messages stands: by policy, and by the age of what it is ranked by.
pub(crate) type Standing = ((Rank, Sequence), (Timestamp, Sequence));

impl Session {
    pub(crate) fn new(mailbox: MailboxId, name: SessionId) -> Session {
        Session {
            mailbox,
            name,
            list: List::default(),
            returned: BTreeMap::new(),
            best: BTreeSet::new(),
            locked: BTreeSet::new(),
            messages: 0,
            scheduled: 0,
            state: None,
            updated: Timestamp(0),
            lock: None,
            rank: None,
            free: false,
        }
    }

    /// The first ready message.
    pub(crate) fn head(&self, records: &Slab<Record>) -> Option<Handle> {
        let listed = records.get(self.list.head).map(|record| (record.sequence, self.list.head));
        let returned = self.returned.first_key_value().map(|(sequence, handle)| (*sequence, *handle));
        match (listed, returned) {
            (Some(listed), Some(returned)) => Some(listed.min(returned).1),
            (listed, returned) => listed.or(returned).map(|(_, handle)| handle),
        }
    }

    /// Ready messages in order.
    pub(crate) fn iter<'a>(
        &'a self,
        records: &'a Slab<Record>,
    ) -> impl Iterator<Item = (Handle, &'a Record)> {
        let mut listed = self.list.iter(records).peekable();
        let mut returned =
            self.returned.values().filter_map(|handle| Some((*handle, records.get(*handle)?))).peekable();
        std::iter::from_fn(move || match (listed.peek(), returned.peek()) {
            (Some((_, left)), Some((_, right))) if right.sequence < left.sequence => returned.next(),
            (None, Some(_)) => returned.next(),
            _ => listed.next(),
        })
    }

    /// Whether nothing is left to remember.
    pub(crate) fn is_over(&self) -> bool {
        self.messages == 0 && self.state.is_none() && self.lock.is_none()
    }
}

impl Slot for Session {
    fn freed(next: Handle) -> Self {
        let nothing = Session::new(MailboxId(0), SessionId::from(""));
        Session { list: List { head: next, ..List::default() }, free: true, ..nothing }
    }

    fn next_free(&self) -> Option<Handle> {
        self.free.then_some(self.list.head)
    }
}

/// Somebody who waits for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) request: RequestTag,
    pub(crate) receiver: ReceiverId,
    pub(crate) mode: ReceiveMode,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
}

/// What a mailbox knows of its sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionTable {
    pub(crate) names: BTreeMap<SessionId, Handle>,
    /// Free sessions with ready messages, the best first.
    pub(crate) ranked: BTreeSet<((Rank, Sequence), Handle)>,
    /// The same, the longest waiting first.
    pub(crate) aged: BTreeSet<((Timestamp, Sequence), Handle)>,
    /// Who waits for a session, the longest waiting first.
    pub(crate) waiting: VecDeque<Waiting>,
}

impl SessionTable {
    /// Takes a session out of the ranking, or puts it in, or moves it.
    pub(crate) fn rank(&mut self, handle: Handle, old: Option<Standing>, new: Option<Standing>) {
        if old == new {
            return;
        }
        if let Some((rank, age)) = old {
            self.ranked.remove(&(rank, handle));
            self.aged.remove(&(age, handle));
        }
        if let Some((rank, age)) = new {
            self.ranked.insert((rank, handle));
            self.aged.insert((age, handle));
        }
    }
}
