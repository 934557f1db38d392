//! The beginning of a namespace, its return after a restart, and changes to what it holds.

use smallvec::SmallVec;

use crate::effect::{Effect, Outcome, Reply};
use crate::entity::SubQueue;
use crate::entity::catalogue::{Change, Entity, Request};
use crate::entity::description::{Outlet, Shared};
use crate::fact::{Fact, ReturnCause};
use crate::id::{EntityId, MailboxId, ReceiverId, RequestTag, Sequence};
use crate::mailbox::Mailbox;
use crate::refusal::Refusal;
use crate::state::{Pump, State};
use crate::store::{Handle, Place};
use crate::time::Timestamp;

/// The mailboxes an entity can have.
pub(crate) fn parts(entity: EntityId) -> [MailboxId; 3] {
    [SubQueue::Main, SubQueue::DeadLetter, SubQueue::TransferDeadLetter]
        .map(|part| MailboxId::new(entity, part))
}

impl State {
    pub(crate) fn decide_create(
        &self,
        now: Timestamp,
        seed: u128,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        if self.identity.seed.is_some() {
            return Err(Refusal::NamespaceState);
        }
        outcome.facts.push(Fact::Created { seed, at: now });
        Ok(())
    }

    pub(crate) fn apply_created(&mut self, seed: u128, at: Timestamp) -> Option<()> {
        if self.identity.seed.is_some() {
            return None;
        }
        self.identity.seed = Some(seed);
        self.live = true;
        self.advance(at);
        Some(())
    }

    /// After a restart nobody is connected: what is bound to a connection ends.
    pub(crate) fn decide_recover(&self, now: Timestamp, outcome: &mut Outcome) {
        let generation = self.identity.generation.saturating_add(1);
        outcome.facts.push(Fact::Recovered { generation, at: now });
        for (_, session) in &self.timers.session_locks {
            self.end_session_lock(now, *session, ReturnCause::SessionClosed, outcome);
        }
    }

    pub(crate) fn apply_recovered(&mut self, generation: u64, at: Timestamp) -> Option<()> {
        if generation <= self.identity.generation {
            return None;
        }
        self.identity.generation = generation;
        self.live = true;
        // Replayed facts know when a session was accepted, not when its receiver left: by now all have.
        let mut gone: Vec<ReceiverId> = self.receivers.keys().copied().collect();
        gone.sort_unstable();
        for receiver in gone {
            self.apply_detached(receiver, at);
        }
        self.advance(at);
        Some(())
    }

    pub(crate) fn decide_administer(
        &self,
        now: Timestamp,
        request: RequestTag,
        change: &Request,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let change = self.catalogue.decide(change, &self.limits.entities)?;
        let entity = subject(&change);
        self.push_change(now, change, outcome);
        outcome.effects.push(Effect::Reply { request, reply: Reply::Administered { entity } });
        Ok(())
    }

    /// A change, after the end of every receiver that it shuts out.
    pub(crate) fn push_change(&self, now: Timestamp, change: Change, outcome: &mut Outcome) {
        match &change {
            Change::Deleted { entity } => {
                self.evict(now, *entity, &Refusal::EntityNotFound { entity: *entity }, outcome);
                for subscription in self.catalogue.subscriptions(*entity) {
                    let refusal = Refusal::EntityNotFound { entity: subscription.id };
                    self.evict(now, subscription.id, &refusal, outcome);
                }
            }
            Change::QueueUpdated { entity, description } => {
                self.evict_if_shut(now, *entity, (&description.shared, &description.outlet), outcome);
            }
            Change::SubscriptionUpdated { entity, description } => {
                self.evict_if_shut(now, *entity, (&description.shared, &description.outlet), outcome);
            }
            _ => {}
        }
        outcome.facts.push(Fact::Administered { change: Box::new(change), at: now });
    }

    fn evict_if_shut(
        &self,
        now: Timestamp,
        id: EntityId,
        (shared, outlet): (&Shared, &Outlet),
        outcome: &mut Outcome,
    ) {
        if !shared.status.allows_receive() {
            self.evict(now, id, &Refusal::ReceiveDisabled { entity: id }, outcome);
        } else if outlet.forward_to.is_some() {
            self.evict(now, id, &Refusal::Forwards { entity: id }, outcome);
        }
    }

    /// Ends every receiver of an entity, and everybody's wait for one of its sessions.
    fn evict(&self, now: Timestamp, entity: EntityId, refusal: &Refusal, outcome: &mut Outcome) {
        for id in parts(entity) {
            let Some(mailbox) = self.mailboxes.get(&id) else { continue };
            for receiver in &mailbox.ring.attached {
                // One that receives from several mailboxes is shut out once.
                if outcome.effects.iter().any(|effect| is_detach(effect, *receiver)) {
                    continue;
                }
                let session = self.receivers.get(receiver).map_or(Handle::NONE, |receiver| receiver.session);
                self.end_session_lock(now, session, ReturnCause::SessionClosed, outcome);
                outcome.facts.push(Fact::ReceiverDetached { receiver: *receiver, at: now });
                outcome.effects.push(Effect::Detach { receiver: *receiver, refusal: refusal.clone() });
            }
            for waiting in mailbox.sessions.iter().flat_map(|sessions| &sessions.waiting) {
                outcome.facts.push(Fact::AcceptEnded { receiver: waiting.receiver });
                outcome.effects.push(Effect::Refuse { request: waiting.request, refusal: refusal.clone() });
            }
        }
    }

    pub(crate) fn apply_administered(&mut self, change: &Change, at: Timestamp) -> Option<()> {
        let removed = self.catalogue.apply(change, at)?;
        self.advance(at);
        for entity in removed {
            self.drop_entity(entity);
        }
        if !matches!(change, Change::Deleted { .. }) {
            self.adopt_settings(subject(change));
        }
        Some(())
    }

    /// Takes over changed settings: lanes stay as they are, what is sorted by policy is sorted anew.
    fn adopt_settings(&mut self, entity: EntityId) {
        for id in parts(entity) {
            let Some(owner) = self.catalogue.entity(entity) else { return };
            let Some(mailbox) = self.mailboxes.get_mut(&id) else { continue };
            let by_deadline = mailbox.ordering.by_deadline();
            mailbox.adopt(id, owner);
            let resort = by_deadline != mailbox.ordering.by_deadline();
            let receivers: SmallVec<[ReceiverId; 8]> = mailbox.ring.attached.iter().copied().collect();
            let sessions = mailbox.sessions.as_ref();
            let sessions: Vec<Handle> =
                sessions.map_or_else(Vec::new, |sessions| sessions.names.values().copied().collect());
            if resort {
                self.resort_dated(id);
            }
            for session in sessions {
                self.resort_session(session);
            }
            for receiver in receivers {
                self.requeue_receiver(receiver);
                self.touch_receiver(receiver);
            }
            self.touch(id);
        }
    }

    /// Moves messages with a deadline of their own out of the lanes or back, when the policy has changed.
    fn resort_dated(&mut self, id: MailboxId) {
        let Some(mailbox) = self.mailboxes.get(&id) else { return };
        let own: Vec<Handle> = if mailbox.ordering.by_deadline() {
            let lanes = mailbox.lanes.iter().flat_map(|(_, lane)| lane.iter(&self.records));
            let has_deadline = |extra: Handle| {
                self.extras.get(extra).is_some_and(|extra| extra.deadline != Timestamp::NEVER)
            };
            lanes.filter(|(_, record)| has_deadline(record.extra)).map(|(handle, _)| handle).collect()
        } else {
            mailbox.dated.values().map(|(handle, _)| *handle).collect()
        };
        for handle in own {
            self.withdraw(handle);
            self.make_ready(handle);
        }
    }

    fn resort_session(&mut self, handle: Handle) {
        let Some(session) = self.sessions.get(handle) else { return };
        let Some(mailbox) = self.mailboxes.get(&session.mailbox) else { return };
        let ordering = mailbox.ordering.clone();
        let best = if ordering.lift {
            let ready = session.iter(&self.records).map(|(_, record)| {
                let deadline = self.extras.get(record.extra).map(|extra| extra.deadline);
                let deadline = deadline.filter(|deadline| *deadline != Timestamp::NEVER);
                (ordering.rank(record.level, record.eligible, deadline), record.sequence)
            });
            ready.collect()
        } else {
            std::collections::BTreeSet::new()
        };
        if let Some(session) = self.sessions.get_mut(handle) {
            session.best = best;
        }
        self.rank_session(handle);
    }

    /// Forgets an entity's mailboxes with everything in them.
    fn drop_entity(&mut self, entity: EntityId) {
        for id in parts(entity) {
            if let Some(mailbox) = self.mailboxes.remove(&id) {
                self.drop_mailbox(id, &mailbox);
            }
        }
        self.sizes.remove(&entity);
        self.histories.remove(&entity);
    }

    /// Forgets a mailbox whole: its messages need not leave their lanes one by one.
    fn drop_mailbox(&mut self, id: MailboxId, mailbox: &Mailbox) {
        let mut bytes = mailbox.counts.bytes;
        for (sequence, handle) in mailbox.index.from(Sequence(0)) {
            let Some(record) = self.records.remove(handle) else { continue };
            self.regions.release(record.location.region(), 1);
            if matches!(record.place(), Place::Locked | Place::LockedDeferred) {
                self.locks.remove(record.next);
            }
            if let Some(extra) = self.extras.remove(record.extra) {
                self.timers.expiry.remove(&(extra.expires, id, sequence));
                self.timers.due.remove(&(extra.due, id, sequence));
            }
        }
        for run in mailbox.lanes.iter().flat_map(|(_, lane)| lane.runs()) {
            self.forget_run(run.id, run.soonest);
            for (region, count) in &run.regions {
                self.regions.release(*region, u64::from(*count));
            }
        }
        for handle in mailbox.sessions.iter().flat_map(|sessions| sessions.names.values()) {
            let Some(session) = self.sessions.remove(*handle) else { continue };
            if let Some(lock) = session.lock {
                self.timers.session_locks.remove(&(lock.until, *handle));
            }
            let state = session.state.map_or(0, |state| u64::try_from(state.len()).unwrap_or(0));
            bytes = bytes.saturating_add(state);
        }
        for waiting in mailbox.sessions.iter().flat_map(|sessions| &sessions.waiting) {
            self.accepting.remove(&waiting.receiver);
            self.timers.accepts.remove(&(waiting.until, waiting.receiver, id));
        }
        for receiver in &mailbox.ring.attached {
            self.apply_detached(*receiver, self.now);
        }
        if let Some(total) = self.sizes.get_mut(&mailbox.account) {
            *total = total.saturating_sub(bytes);
        }
        if mailbox.in_line {
            self.line.retain(|pump| *pump != Pump::Mailbox(id));
        }
    }

    /// Whether an entity must not be deleted for being idle.
    pub(crate) fn is_in_use(&self, entity: &Entity) -> bool {
        parts(entity.id).iter().filter_map(|id| self.mailboxes.get(id)).any(|mailbox| {
            !mailbox.ring.attached.is_empty()
                || mailbox.counts.scheduled > 0
                || mailbox.sessions.as_ref().is_some_and(|sessions| !sessions.waiting.is_empty())
        })
    }
}

fn is_detach(effect: &Effect, receiver: ReceiverId) -> bool {
    matches!(effect, Effect::Detach { receiver: other, .. } if *other == receiver)
}

/// The entity a change is about.
fn subject(change: &Change) -> EntityId {
    match change {
        Change::QueueCreated { entity, .. }
        | Change::TopicCreated { entity, .. }
        | Change::SubscriptionCreated { entity, .. }
        | Change::QueueUpdated { entity, .. }
        | Change::TopicUpdated { entity, .. }
        | Change::SubscriptionUpdated { entity, .. }
        | Change::Deleted { entity } => *entity,
        Change::RuleCreated { subscription, .. }
        | Change::RuleUpdated { subscription, .. }
        | Change::RuleDeleted { subscription, .. } => *subscription,
    }
}
