//! A mailbox: the messages of a queue, a subscription or one of their sub-queues.
//!
//! Mailboxes are made when first needed, so that a hundred thousand subscriptions nobody has published
//! to cost nothing here. What a mailbox takes from its entity's settings is worked out when it is made
//! and when they change.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::entity::{Entity, SubQueue};
use crate::id::{EntityId, MailboxId, Sequence};
use crate::lane::Lanes;
use crate::level::Level;
use crate::observe::{LevelCounts, Observations, Tally};
use crate::order::{Dated, Ordering};
use crate::receive::Ring;
use crate::session::SessionTable;
use crate::state::Pump;
use crate::store::{Place, SequenceIndex};
use crate::time::{Span, Timestamp};

/// The messages of one place, and who wants them.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question that is asked by itself")]
pub(crate) struct Mailbox {
    /// The number the next message gets.
    pub(crate) next_sequence: Sequence,
    pub(crate) index: SequenceIndex,
    /// Ready messages; those of sessions are in the sessions instead.
    pub(crate) lanes: Lanes,
    /// Ready messages with a deadline of their own, under the deadline policy.
    pub(crate) dated: Dated,
    /// How many of those there are at which level.
    pub(crate) dated_levels: BTreeMap<Level, u64>,
    pub(crate) sessions: Option<Box<SessionTable>>,
    pub(crate) ring: Ring,
    pub(crate) ordering: Arc<Ordering>,
    /// What the rescue line has saved up.
    pub(crate) rescue: u16,
    pub(crate) counts: Counts,
    /// The same, level by level.
    pub(crate) tally: Tally,
    /// What this run has seen.
    pub(crate) observations: Observations,
    /// Whose quota the messages count against: the queue's, or the topic's.
    pub(crate) account: EntityId,
    /// How long its locks last.
    pub(crate) lock_duration: Span,
    /// No deliveries for now: paused, or receiving is disabled.
    pub(crate) held: bool,
    /// Messages do not wait here, they go elsewhere.
    pub(crate) forwards: bool,
    /// Since when its next message cannot be handed on, if it forwards.
    pub(crate) stalled: Option<Timestamp>,
    /// Whether it waits to try that again.
    pub(crate) waits: bool,
    /// The next message is on disk, and was asked for.
    pub(crate) chilly: bool,
    /// Whether it stands in the line of those to be served.
    pub(crate) in_line: bool,
}

/// How many messages there are in which state. Session messages count as all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Waiting to be received, on disk or not.
    pub ready: u64,
    /// Locked by somebody.
    pub locked: u64,
    /// Put aside, not locked.
    pub deferred: u64,
    /// Waiting for their scheduled time.
    pub scheduled: u64,
    /// Waiting for their retry delay to pass.
    pub delayed: u64,
    /// The size of all of them.
    pub bytes: u64,
}

impl Counts {
    /// What Service Bus counts as active: everything but scheduled messages.
    #[must_use]
    pub fn active(&self) -> u64 {
        let parts = [self.ready, self.locked, self.deferred, self.delayed];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Everything.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.active().saturating_add(self.scheduled)
    }
}

impl Mailbox {
    /// Counts a message in transit into a place.
    pub(crate) fn count_in(&mut self, place: Place, level: Level) {
        self.recount(Place::Transit, place, level);
    }

    /// Counts a message from one place to another. In transit it counts nowhere.
    pub(crate) fn recount(&mut self, from: Place, to: Place, level: Level) {
        let (all, own) = (&mut self.counts, self.tally.at(level));
        if let Some((all, own)) = counts_at(from, all, own) {
            *all = all.saturating_sub(1);
            *own = own.saturating_sub(1);
        }
        if let Some((all, own)) = counts_at(to, all, own) {
            *all = all.saturating_add(1);
            *own = own.saturating_add(1);
        }
    }

    /// An empty mailbox of an entity.
    pub(crate) fn new(id: MailboxId, entity: &Entity) -> Mailbox {
        let mut mailbox = Mailbox {
            next_sequence: Sequence(1),
            index: SequenceIndex::default(),
            lanes: Lanes::default(),
            dated: Dated::default(),
            dated_levels: BTreeMap::new(),
            sessions: None,
            ring: Ring::default(),
            ordering: Arc::new(Ordering::new(
                &entity.outlet().map(|outlet| outlet.priority.clone()).unwrap_or_default(),
            )),
            rescue: 0,
            counts: Counts::default(),
            tally: Tally::default(),
            observations: Observations::default(),
            account: entity.subscription().map_or(entity.id, |subscription| subscription.topic),
            lock_duration: Span::default(),
            held: false,
            forwards: false,
            stalled: None,
            waits: false,
            chilly: false,
            in_line: false,
        };
        mailbox.adopt(id, entity);
        mailbox
    }

    /// Takes over an entity's settings.
    pub(crate) fn adopt(&mut self, id: MailboxId, entity: &Entity) {
        let Some(outlet) = entity.outlet() else {
            // A topic: nobody receives from it.
            self.held = true;
            return;
        };
        let main = id.is_main();
        self.ordering = Arc::new(Ordering::new(&outlet.priority));
        self.lock_duration = outlet.lock_duration;
        self.ring.look_again();
        self.held = !entity.shared().status.allows_receive() || (main && outlet.priority.paused);
        self.forwards = match id.part() {
            SubQueue::Main => outlet.forward_to.is_some(),
            SubQueue::DeadLetter => outlet.forward_dead_lettered_to.is_some(),
            SubQueue::TransferDeadLetter => false,
        };
        if main && outlet.requires_session && self.sessions.is_none() {
            self.sessions = Some(Box::default());
        }
    }

    /// The highest level at which a message is ready, session messages aside.
    pub(crate) fn highest(&self) -> Option<Level> {
        self.lanes.highest().max(self.dated_levels.last_key_value().map(|(level, _)| *level))
    }

    /// Puts it in line if it can be served and is not in line yet.
    pub(crate) fn line_up(&mut self, id: MailboxId, line: &mut VecDeque<Pump>) {
        if !self.in_line && self.is_servable() {
            self.in_line = true;
            line.push_back(Pump::Mailbox(id));
        }
    }

    /// Whether serving this mailbox now would hand out a message or move one on.
    pub(crate) fn is_servable(&self) -> bool {
        if self.forwards {
            return self.counts.ready > 0 && !self.chilly && !self.waits;
        }
        if self.held || self.chilly {
            return false;
        }
        match &self.sessions {
            Some(sessions) => !sessions.waiting.is_empty() && !sessions.ranked.is_empty(),
            None if self.ring.is_empty() => false,
            None => self.highest().is_some_and(|highest| {
                self.ring.floor().is_some_and(|floor| floor <= highest) || self.ring.choosy().next().is_some()
            }),
        }
    }
}

fn counts_at<'a>(
    place: Place,
    all: &'a mut Counts,
    own: &'a mut LevelCounts,
) -> Option<(&'a mut u64, &'a mut u64)> {
    match place {
        Place::Listed | Place::Returned | Place::Dated => Some((&mut all.ready, &mut own.ready)),
        Place::Locked | Place::LockedDeferred => Some((&mut all.locked, &mut own.locked)),
        Place::Deferred => Some((&mut all.deferred, &mut own.deferred)),
        Place::Scheduled => Some((&mut all.scheduled, &mut own.scheduled)),
        Place::Delayed => Some((&mut all.delayed, &mut own.delayed)),
        Place::Transit | Place::Nowhere => None,
    }
}
