//! The state of a namespace, and the two doors to it.
//!
//! [`State::decide`] looks and says what should happen, changing nothing. [`State::apply`] folds what
//! happened into the state, live and at recovery alike, and is the only writer. So replaying the facts
//! *is* recovery, and the same commands at the same times always give the same facts.

use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeBounds;

use crate::browse::Target;
use crate::command::Command;
use crate::dedup::History;
use crate::effect::Outcome;
use crate::entity::{Catalogue, Entity};
use crate::fact::Fact;
use crate::id::{EntityId, Location, MailboxId, ReceiverId, Region, RunId, Sequence};
use crate::lane::Run;
use crate::limits::Limits;
use crate::lock::LockTable;
use crate::mailbox::Mailbox;
use crate::mailboxes::Mailboxes;
use crate::payloads::Payloads;
use crate::receive::Receiver;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::store::{Extra, Handle, Record, Regions, Runs, Slab};
use crate::time::{Span, Timestamp};
use crate::transaction::Transactions;

/// A map by number on the hot path. Never iterated: its order would mean nothing.
pub(crate) type ById<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;

/// One namespace.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub(crate) limits: Limits,
    pub(crate) identity: Identity,
    /// The latest time known: time given to `decide` is never taken to be earlier.
    pub(crate) now: Timestamp,
    /// How far the clock was set ahead.
    pub(crate) ahead: Span,
    pub(crate) catalogue: Catalogue,
    pub(crate) records: Slab<Record>,
    pub(crate) extras: Slab<Extra>,
    pub(crate) sessions: Slab<Session>,
    pub(crate) mailboxes: Mailboxes,
    /// Bytes that count against an entity's quota.
    pub(crate) sizes: ById<EntityId, u64>,
    pub(crate) histories: ById<EntityId, History>,
    pub(crate) locks: LockTable,
    pub(crate) timers: Timers,
    pub(crate) regions: Regions,
    /// Which lane a run belongs to.
    pub(crate) runs: Runs,
    pub(crate) receivers: ById<ReceiverId, Receiver>,
    /// Who waits for a session, and of which mailbox.
    pub(crate) accepting: ById<ReceiverId, MailboxId>,
    /// Who is to be served, in turn.
    pub(crate) line: VecDeque<Pump>,
    pub(crate) transactions: Transactions,
    pub(crate) misfits: u64,
    /// Whether facts are news, and not replayed: what is observed is counted then.
    pub(crate) live: bool,
}

/// What tokens and ids are made from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Identity {
    /// None before the namespace has begun.
    pub(crate) seed: Option<u128>,
    pub(crate) generation: u64,
    /// How many tokens and ids were made and written down.
    pub(crate) made: u64,
    /// How many ids were made for things that are not written down.
    pub(crate) made_volatile: u64,
}

/// What will become due, and when. Message locks have their own order, see [`LockTable`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers {
    /// Messages that expire.
    pub(crate) expiry: BTreeSet<(Timestamp, MailboxId, Sequence)>,
    /// Runs on disk, by when the first of their messages may expire.
    pub(crate) cold: BTreeSet<(Timestamp, RunId)>,
    /// Mailboxes that try again to hand on their messages.
    pub(crate) stalled: BTreeSet<(Timestamp, MailboxId)>,
    /// Scheduled and delayed messages.
    pub(crate) due: BTreeSet<(Timestamp, MailboxId, Sequence)>,
    pub(crate) session_locks: BTreeSet<(Timestamp, Handle)>,
    /// Clients waiting for a session.
    pub(crate) accepts: BTreeSet<(Timestamp, ReceiverId, MailboxId)>,
}

impl Timers {
    /// Watches a run on disk for messages that expire.
    pub(crate) fn watch_run(&mut self, run: &Run) {
        if run.soonest != Timestamp::NEVER {
            self.cold.insert((run.soonest, run.id));
        }
    }
}

/// Who can be next in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pump {
    /// A mailbox with a message for somebody.
    Mailbox(MailboxId),
    /// A receiver with messages in its session, or one to be drained.
    Receiver(ReceiverId),
}

impl State {
    /// An empty state, to be begun by [`Command::Create`] or by replaying facts.
    #[must_use]
    pub fn new(limits: Limits) -> State {
        State { limits, ..State::default() }
    }

    /// Checks `command` and says what happens. Changes nothing.
    ///
    /// `outcome` is added to; after a refusal what was added means nothing and must be cleared.
    pub fn decide(
        &self,
        now: Timestamp,
        command: &Command,
        payloads: &dyn Payloads,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let now = now.max(self.now);
        if self.identity.seed.is_none() && !matches!(command, Command::Create { .. }) {
            return Err(Refusal::NamespaceState);
        }
        match command {
            Command::Create { seed } => self.decide_create(now, *seed, outcome),
            Command::Recover => {
                self.decide_recover(now, outcome);
                Ok(())
            }
            Command::Administer { request, change } => self.decide_administer(now, *request, change, outcome),
            Command::Send(send) => self.decide_send(now, send, outcome),
            Command::Cancel { request, entity, sequences } => {
                self.decide_cancel(now, *request, *entity, sequences, outcome)
            }
            Command::Attach(attach) => self.decide_attach(now, attach, outcome),
            Command::AcceptSession(accept) => self.decide_accept(now, accept, outcome),
            Command::Credit { receiver, credit, drain } => {
                self.decide_credit(*receiver, *credit, *drain, outcome)
            }
            Command::Detach { receiver } => self.decide_detach(now, *receiver, outcome),
            Command::Deliver => {
                self.decide_deliver(now, payloads, outcome);
                Ok(())
            }
            Command::Settle(settle) => self.decide_settle(now, settle, outcome),
            Command::Renew { request, mailbox, tokens } => {
                self.decide_renew(now, *request, *mailbox, tokens, outcome)
            }
            Command::ReceiveDeferred { request, mailbox, sequences, mode, receiver } => {
                self.decide_receive_deferred(now, (*request, *mailbox), sequences, *mode, *receiver, outcome)
            }
            Command::RenewSession { request, mailbox, session, receiver } => {
                self.decide_renew_session(now, *request, (*mailbox, session, *receiver), outcome)
            }
            Command::SetSessionState { request, mailbox, session, receiver, state } => self
                .decide_set_session_state(
                    now,
                    *request,
                    (*mailbox, session, *receiver),
                    state.as_ref(),
                    outcome,
                ),
            Command::Declare { request } => self.decide_declare(now, *request, outcome),
            Command::Discharge { request, transaction, rollback } => {
                self.decide_discharge(now, *request, *transaction, *rollback, outcome)
            }
            Command::DeleteMessages { request, mailbox, selection, before, max } => {
                let target = Target { request: *request, mailbox: *mailbox, selection, max: *max };
                self.decide_delete_messages(now, target, *before, payloads, outcome)
            }
            Command::Reprioritise { request, mailbox, selection, level, max, dry_run } => {
                let target = Target { request: *request, mailbox: *mailbox, selection, max: *max };
                self.decide_reprioritise(target, *level, *dry_run, payloads, outcome)
            }
            Command::Replay(replay) => self.decide_replay(now, replay, outcome),
            Command::Tick => self.decide_tick(now, payloads, outcome),
            Command::Move { moves } => self.decide_move(moves, outcome),
            Command::Chill(chill) => self.decide_chill(chill, outcome),
            Command::Use { entity } => {
                let entity = self.entity(*entity)?.id;
                outcome.facts.push(Fact::EntityUsed { entity, at: now });
                Ok(())
            }
            Command::Advance { request, by } => self.decide_advance(*request, *by, outcome),
            Command::Replace { request, parts } => self.decide_replace(now, *request, parts, outcome),
            Command::Rehouse(rehouse) => self.decide_rehouse(rehouse, outcome),
            Command::Warm { run, from, records } => self.decide_warm(*run, *from, records, outcome),
        }
    }

    /// Folds a fact into the state.
    ///
    /// Never fails: `decide` vouched for the fact, now or before a restart. One that does not fit all
    /// the same, because the log is damaged, is ignored and counted.
    pub fn apply(&mut self, fact: &Fact) {
        if self.try_apply(fact).is_none() {
            self.misfits = self.misfits.saturating_add(1);
        }
    }

    fn try_apply(&mut self, fact: &Fact) -> Option<()> {
        match fact {
            Fact::Created { seed, at } => self.apply_created(*seed, *at),
            Fact::Recovered { generation, at } => self.apply_recovered(*generation, *at),
            Fact::Administered { change, at } => self.apply_administered(change, *at),
            Fact::Enqueued { payload, arrival } => self.apply_enqueued(payload, arrival),
            Fact::Published { topic, sequence, at, payload, copies } => {
                self.apply_published((*topic, *sequence), *at, payload, copies)
            }
            Fact::Scheduled { payload, arrival, due } => self.apply_scheduled(payload, arrival, *due),
            Fact::Reserved { mailbox, next } => self.apply_reserved(*mailbox, *next),
            Fact::IdSeen { entity, key, at } => self.apply_id_seen(*entity, *key, *at),
            Fact::Relayed { mailbox, sequence, cause, at, copies } => {
                self.apply_relayed((*mailbox, *sequence), *cause, *at, copies)
            }
            Fact::Locked { mailbox, sequence, token, at, until, receiver, rescue } => {
                self.apply_locked((*mailbox, *sequence), *token, (*at, *until), *receiver, *rescue)
            }
            Fact::Taken { mailbox, sequence, at, receiver, rescue } => {
                self.apply_taken((*mailbox, *sequence), *at, *receiver, *rescue)
            }
            Fact::Renewed { mailbox, sequence, at, until } => {
                self.apply_renewed((*mailbox, *sequence), *at, *until)
            }
            Fact::Removed { mailbox, sequence, cause, at } => {
                self.apply_removed((*mailbox, *sequence), *cause, *at)
            }
            Fact::Returned { mailbox, sequence, cause, at, counted, overlay, not_before } => self
                .apply_returned(
                    (*mailbox, *sequence),
                    (*cause, *at, *counted),
                    overlay.as_ref(),
                    *not_before,
                ),
            Fact::Deferred { mailbox, sequence, at, overlay } => {
                self.apply_deferred((*mailbox, *sequence), *at, overlay.as_ref())
            }
            Fact::DeadLettered { mailbox, sequence, to, cause, at, counted, source, overlay } => self
                .apply_dead_lettered(
                    (*mailbox, *sequence),
                    *to,
                    (*cause, *at, *counted),
                    source,
                    overlay.as_ref(),
                ),
            Fact::Reprioritised { mailbox, sequence, level } => {
                self.apply_reprioritised((*mailbox, *sequence), *level)
            }
            Fact::SessionLocked { mailbox, session, receiver, mode, at, until, rescue } => {
                self.apply_session_locked((*mailbox, session), (*receiver, *mode), (*at, *until), *rescue)
            }
            Fact::SessionRenewed { mailbox, session, until } => {
                self.apply_session_renewed(*mailbox, session, *until)
            }
            Fact::SessionUnlocked { mailbox, session, at } => {
                self.apply_session_unlocked(*mailbox, session, *at)
            }
            Fact::SessionStateSet { mailbox, session, state, at } => {
                self.apply_session_state(*mailbox, session, state.as_ref(), *at)
            }
            Fact::Moved { moves } => self.apply_moved(moves),
            Fact::Chilled { mailbox, level, run, records } => {
                self.apply_chilled(*mailbox, *level, *run, records)
            }
            Fact::Warmed { run, records } => self.apply_warmed(*run, records),
            Fact::Rehoused { run, to, region } => self.apply_rehoused(*run, *to, *region),
            Fact::Plucked { run, records, soonest } => self.apply_plucked(*run, records, *soonest),
            Fact::Cleared { at } => self.apply_cleared(*at),
            Fact::ClockAdvanced { ahead } => self.apply_clock_advanced(*ahead),
            Fact::RestoredNamespace { .. }
            | Fact::RestoredEntity { .. }
            | Fact::RestoredMailbox(_)
            | Fact::RestoredSession(_)
            | Fact::RestoredMessage(_)
            | Fact::RestoredRun(_)
            | Fact::RestoredGaps(_) => self.apply_restored(fact),
            Fact::EntityUsed { entity, at } => {
                self.catalogue.touch(*entity, *at);
                Some(())
            }
            Fact::ClassUnknown { mailbox } => {
                self.mailboxes.get_mut(mailbox)?.observations.unknown_class();
                Some(())
            }
            Fact::ReceiverAttached { attach, at } => self.apply_attached(attach, *at),
            Fact::CreditSet { receiver, credit, drain } => self.apply_credit(*receiver, *credit, *drain),
            Fact::CreditDrained { receiver } => self.apply_drained(*receiver),
            Fact::ReceiverDetached { receiver, at } => self.apply_detached(*receiver, *at),
            Fact::SelectorIdle { receiver, mailbox } => self.apply_selector_idle(*receiver, *mailbox),
            Fact::SelectorLooked { receiver, mailbox, upto, again, found } => {
                self.apply_selector_looked(*receiver, *mailbox, *upto, again, found)
            }
            Fact::ForwardStalled { mailbox, at, until } => self.apply_forward_stalled(*mailbox, *at, *until),
            Fact::ForwardResumed { mailbox, until } => {
                self.apply_forward_resumed(*mailbox, *until);
                Some(())
            }
            Fact::SelectorReset { receiver, mailbox } => self.apply_selector_reset(*receiver, *mailbox),
            Fact::AcceptWaiting { .. } => self.apply_accept_waiting(fact),
            Fact::AcceptEnded { receiver } => self.apply_accept_ended(*receiver),
            Fact::Pumped => {
                self.rotate();
                Some(())
            }
            Fact::WarmAsked { run, upto } => self.apply_warm_asked(*run, *upto),
            Fact::TransactionDeclared { .. }
            | Fact::SendEnlisted { .. }
            | Fact::SettlementEnlisted { .. }
            | Fact::TransactionPoisoned { .. }
            | Fact::TransactionEnded { .. } => self.apply_transaction(fact),
        }
    }

    /// When [`Command::Tick`] is next needed; a time that has passed if it is needed now.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let timers = &self.timers;
        [
            self.locks.first().map(|lock| lock.until),
            timers.expiry.first().map(|(at, ..)| *at),
            timers.cold.first().map(|(at, _)| *at),
            timers.stalled.first().map(|(at, _)| *at),
            timers.due.first().map(|(at, ..)| *at),
            timers.session_locks.first().map(|(at, _)| *at),
            timers.accepts.first().map(|(at, ..)| *at),
            self.transactions_due(),
            self.catalogue.idle().next_due(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether [`Command::Deliver`] has something to do.
    #[must_use]
    pub fn has_deliverable(&self) -> bool {
        !self.line.is_empty()
    }

    /// The latest time known.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The bounds in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Every entity.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// How many facts did not fit and were ignored. More than none after a replay means that the log is
    /// damaged, and that this state must not be used.
    #[must_use]
    pub fn misfits(&self) -> u64 {
        self.misfits
    }

    /// How many messages there are, in memory.
    #[must_use]
    pub fn messages_in_memory(&self) -> u32 {
        self.records.len()
    }

    /// Where the payload of a message in memory lies.
    #[must_use]
    pub fn location(&self, mailbox: MailboxId, sequence: Sequence) -> Option<Location> {
        Some(self.records.get(self.find(mailbox, sequence)?)?.location)
    }

    /// How many messages lie in a part of the log. Copies of one payload count each.
    #[must_use]
    pub fn region_count(&self, region: Region) -> u64 {
        self.regions.count(region)
    }

    /// The parts of the log that no message lies in any more, since the last call.
    pub fn take_emptied_regions(&mut self) -> Vec<Region> {
        self.regions.take_emptied()
    }

    /// The mailboxes that receivers with a selector look through.
    pub fn watched_mailboxes(&self) -> impl Iterator<Item = MailboxId> {
        self.mailboxes.iter().filter(|(_, mailbox)| mailbox.ring.is_watched()).map(|(id, _)| *id)
    }

    /// The runs that came to their end since the last call.
    pub fn take_ended_runs(&mut self) -> Vec<RunId> {
        self.runs.take_ended()
    }

    /// Whether there is a run with one of these numbers.
    #[must_use]
    pub fn has_runs_in(&self, numbers: impl RangeBounds<RunId>) -> bool {
        self.runs.any_in(numbers)
    }

    pub(crate) fn entity(&self, id: EntityId) -> Result<&Entity, Refusal> {
        match self.catalogue.entity(id) {
            Some(entity) => Ok(entity),
            None => Err(Refusal::EntityNotFound { entity: id }),
        }
    }

    /// A mailbox's entity, if there is one that can hold messages there.
    pub(crate) fn owner(&self, mailbox: MailboxId) -> Result<&Entity, Refusal> {
        match owner(&self.catalogue, mailbox) {
            Some(entity) => Ok(entity),
            None => Err(Refusal::MailboxNotFound { mailbox }),
        }
    }

    pub(crate) fn find(&self, mailbox: MailboxId, sequence: Sequence) -> Option<Handle> {
        self.mailboxes.get(&mailbox)?.index.get(sequence)
    }

    /// A mailbox, made if need be and if its entity exists.
    pub(crate) fn mailbox_mut(&mut self, id: MailboxId) -> Option<&mut Mailbox> {
        open(&mut self.mailboxes, &self.catalogue, id)
    }

    pub(crate) fn advance(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
    }
}

fn owner(catalogue: &Catalogue, mailbox: MailboxId) -> Option<&Entity> {
    let entity = catalogue.entity(mailbox.entity())?;
    (entity.outlet().is_some() || mailbox.is_main()).then_some(entity)
}

/// A mailbox, made if need be and if its entity exists, while other parts of the state are in use.
pub(crate) fn open<'a>(
    mailboxes: &'a mut Mailboxes,
    catalogue: &Catalogue,
    id: MailboxId,
) -> Option<&'a mut Mailbox> {
    mailboxes.get_or_open(id, || Some(Mailbox::new(id, owner(catalogue, id)?)))
}
