//! The shard without its thread: requests in, facts to the log, events out.
//!
//! Everything here is synchronous and decided by its arguments alone, so the simulator runs exactly
//! this. A step takes what has arrived, authorises and decides it, writes and applies the facts, lets
//! timers and deliveries follow, and hands the batch to the log. What a step promises is told when the
//! log says that it is durable: replies and answers wait for everything written so far, because what
//! they say may rest on it; a delivery waits for its message alone.
//!
//! If the log fails, the shard is over: nothing more is told but that.

mod develop;
mod news;
mod permission;
mod request;
mod telling;
mod upkeep;

use super::arrivals::Arrivals;
use super::chilling::Heat;
use super::crowd::Crowd;
use super::faults::Faults;
use super::hold::Hold;
use super::keys::Keys;
use super::lull::Lull;
use super::outside::Outside;
use super::payload::{Decode, PayloadReader, Source};
use super::peer::{Peer, PeerId};
use super::recent::{Body, Owners, Recent};
use super::snapshot::Schedule;
use super::spares::Spares;
use super::staging::Staging;
use super::withheld::Withheld;
use super::writer::Writer;
use crate::access::Principal;
use crate::api::{Event, Link, Outlet, Refused, Request, Tag};
use crate::journal::record::{PAYLOAD_PART, Scratch, Sink as _};
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use vorrang_engine::fact::Payload;
use vorrang_engine::{Command, Fact, Location, Outcome, ReceiverId, RunId, State, Timestamp};
use vorrang_log::{Appending, Commit, Failure, NoRoom, Region};

/// Events waiting for the disk beyond which no more deliveries are decided.
const HELD_MAX: usize = 65_536;
/// Ticks in one step; what is due beyond that waits for the next, which is due at once.
const TICKS_MAX: usize = 16;

/// Something that arrives at a shard.
#[expect(clippy::large_enum_variant, reason = "nearly all items are requests")]
pub enum Item {
    /// A connection begins.
    Open(Arc<dyn Outlet>),
    /// From now on this is what the connection may do.
    Become(Arc<Principal>),
    /// A request.
    Request(Request),
    /// The connection is over.
    Close,
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Item::Open(_) => f.write_str("Open"),
            Item::Become(_) => f.write_str("Become"),
            Item::Request(request) => request.fmt(f),
            Item::Close => f.write_str("Close"),
        }
    }
}

pub(super) type Peers = hashbrown::HashMap<PeerId, Peer, foldhash::fast::FixedState>;

/// A shard: engine, log and connections.
pub struct Core {
    state: State,
    writer: Writer,
    reader: PayloadReader,
    recent: Recent,
    /// Where the messages lie that the decision in hand removes.
    gone: Vec<Location>,
    decode: Arc<dyn Decode>,
    keys: Arc<Keys>,
    outcome: Outcome,
    /// Where facts become bytes.
    scratch: Scratch,
    peers: Peers,
    /// Connections that were just handed as much as may be on its way.
    laden: Vec<PeerId>,
    /// Records of runs that the engine wants back in memory.
    cold: Vec<(RunId, u32, u32)>,
    /// What the shard asks of itself.
    own: VecDeque<Command>,
    hold: Hold,
    crowd: Crowd,
    /// Whether the last step waited for the disk.
    committed: bool,
    watchers: news::Watchers,
    /// When permissions of open receivers end.
    endings: BTreeSet<(Timestamp, PeerId, Link)>,
    /// The time, never going backwards: the wall clock's, and as far ahead as it was set.
    now: Timestamp,
    /// The wall clock's time, by which permissions end.
    wall: Timestamp,
    /// How far the clock is ahead, in milliseconds, for the doors to know the shard's time.
    ahead: Arc<AtomicU64>,
    room: Result<(), NoRoom>,
    withheld: Withheld,
    staging: Staging,
    record_bytes_max: usize,
    /// What one batch takes; a larger message goes ahead of its decision.
    batch_bytes_max: usize,
    /// The oldest segment emptied last, and when: what could not be moved is not tried at once again.
    evacuated: Option<(Region, Timestamp)>,
    outside: Outside,
    heat: Heat,
    lull: Lull,
    snapshots: Schedule,
    /// When the last snapshot was begun.
    snapshot_at: Timestamp,
    behind: bool,
    faults: Faults,
    /// Until when nothing is taken, because a developer wants it so.
    stalled_until: Timestamp,
    /// Whether another state has just been put in the place of the old one.
    replaced: bool,
    over: Option<Arc<str>>,
    phase: Phase,
}

/// Whom answers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Somebody who makes the shard ready for its first client, and has promised nothing to anybody: answers wait for nothing.
    Preparing,
    /// Clients.
    Serving,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("now", &self.now).field("hold", &self.hold).finish_non_exhaustive()
    }
}

impl Core {
    pub(super) fn new(
        state: State,
        writer: Writer,
        decode: Arc<dyn Decode>,
        keys: Arc<Keys>,
        snapshots: Schedule,
        wall: Timestamp,
    ) -> Core {
        let ahead = state.clock_ahead();
        let now = wall.after(ahead);
        let reader = PayloadReader::new(writer.log().reader());
        let durable = writer.log().durable();
        let (record_bytes_max, batch_bytes_max) = (writer.record_bytes_max(), writer.batch_bytes_max());
        Core {
            state,
            writer,
            reader,
            recent: Recent::default(),
            gone: Vec::new(),
            decode,
            keys,
            outcome: Outcome::default(),
            scratch: Scratch::default(),
            peers: Peers::default(),
            laden: Vec::new(),
            cold: Vec::new(),
            own: VecDeque::new(),
            evacuated: None,
            outside: Outside::default(),
            heat: Heat::default(),
            lull: Lull::default(),
            record_bytes_max,
            batch_bytes_max,
            hold: Hold::new(durable),
            crowd: Crowd::default(),
            committed: false,
            watchers: news::Watchers::default(),
            endings: BTreeSet::new(),
            now,
            wall,
            ahead: Arc::new(AtomicU64::new(ahead.0)),
            room: Ok(()),
            withheld: Withheld::default(),
            staging: Staging::default(),
            snapshots,
            snapshot_at: now,
            behind: false,
            faults: Faults::default(),
            stalled_until: Timestamp::default(),
            replaced: false,
            over: None,
            phase: Phase::Serving,
        }
    }

    /// Takes what has arrived, as far as the log has room, and everything that follows from it.
    pub fn step(&mut self, now: Timestamp, arrived: &mut Arrivals) {
        self.wall = self.wall.max(now);
        self.now = self.now.max(self.time(self.wall));
        self.lull.work(self.now, arrived.len());
        self.committed = false;
        if self.over.is_none()
            && let Err(failure) = self.work(arrived)
        {
            self.end(&failure.to_string());
        }
        self.tell_dead_letters();
        self.tell_all();
    }

    /// Begins a namespace with nothing in it, and a new term in one that was there before.
    pub(super) fn announce(&mut self, seed: u128) -> Result<(), Failure> {
        self.writer.begin(self.now);
        self.carry_out(&Command::Create { seed }, None)?;
        self.carry_out(&Command::Recover, None)?;
        self.writer.end_step(false)?;
        Ok(())
    }

    /// Waits until everything decided so far is durable.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        self.writer.log_mut().flush()?;
        self.release();
        Ok(())
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Everything decided so far, to wait for elsewhere.
    pub(super) fn newest_commit(&self) -> Commit {
        self.writer.log().newest_commit()
    }

    /// Buffers for events, to be given back.
    pub(super) fn buffers(&self) -> &Arc<Spares<Event>> {
        self.hold.buffers()
    }

    /// How far the clock is ahead, in milliseconds, now and from now on.
    pub(super) fn ahead(&self) -> &Arc<AtomicU64> {
        &self.ahead
    }

    /// The shard's time at a time of the wall clock.
    #[must_use]
    pub fn time(&self, wall: Timestamp) -> Timestamp {
        wall.after(self.state.clock_ahead())
    }

    /// When the next step is due though nothing arrives; a time that has passed if it is due now.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        let busy = !self.own.is_empty() || !self.staging.is_empty();
        if busy || (self.state.has_deliverable() && self.hold.len() < HELD_MAX) {
            return Some(self.now);
        }
        let ending = self.endings.first().map(|(at, ..)| self.time(*at));
        let stall = Some(self.stalled_until).filter(|_| self.is_stalled());
        let wanted = ending.into_iter().chain(self.faults.next_due()).chain(stall);
        let (confirmation, look) = (self.writer.confirmation_due(), self.withheld.next_look(self.now));
        self.state.next_deadline().into_iter().chain(wanted).chain(confirmation).chain(look).min()
    }

    /// Whether the last step could not take everything because the disk is behind: there is nothing
    /// to do before it has news.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    /// Whether the last step waited for the disk.
    pub(super) fn has_committed(&self) -> bool {
        self.committed
    }

    /// While a step waited for the disk, something came in.
    pub(super) fn kept_waiting(&mut self) {
        self.crowd.came(self.now);
    }

    /// Whether so much waits for room that nothing more is taken: there is nothing to do before the time
    /// of the [next step](Core::next_wake).
    #[must_use]
    pub fn is_choked(&self) -> bool {
        self.withheld.is_full() || self.staging.is_full() || self.is_stalled()
    }

    fn is_stalled(&self) -> bool {
        self.now < self.stalled_until
    }

    /// Why the shard is over, if it is.
    #[must_use]
    pub fn over(&self) -> Option<&Arc<str>> {
        self.over.as_ref()
    }

    /// What the engine knows.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The keys that are valid now.
    #[must_use]
    pub fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// Reads stored payloads.
    #[must_use]
    pub fn reader(&self) -> &PayloadReader {
        &self.reader
    }

    fn work(&mut self, arrived: &mut Arrivals) -> Result<(), Failure> {
        if let Some(failure) = self.writer.log().failure() {
            return Err(failure.clone());
        }
        self.release();
        self.behind = !self.writer.begin(self.now);
        if self.behind {
            return Ok(());
        }
        self.room = self.writer.log_mut().permit(Appending::Growing, self.now.0);
        self.withheld.look(self.now, !matches!(self.room, Err(NoRoom::Ring { .. })));
        self.tick()?;
        while !self.writer.is_full()
            && let Some(mut late) = self.faults.due(self.now)
        {
            self.perform(late.peer, &mut late.request, late.until)?;
        }
        while !self.withheld.is_worth_it(self.now)
            && !self.writer.is_full()
            && let Some((peer, mut request)) = self.withheld.pop_unless(|peer| self.staging.holds(peer))
        {
            self.take_or_stage(peer, &mut request)?;
        }
        self.stage(Share::One)?;
        while !self.writer.is_full()
            && !self.is_choked()
            && let Some((peer, next)) = arrived.next()
        {
            let taken = self.take(peer, next);
            arrived.done();
            taken?;
        }
        // After what has arrived, so that a renewal that came in time counts.
        self.end_permissions()?;
        while !self.writer.is_full()
            && let Some(command) = self.own.pop_front()
        {
            self.carry_out(&command, None)?;
        }
        while self.state.has_deliverable() && !self.writer.is_full() && self.hold.len() < HELD_MAX {
            self.carry_out(&Command::Deliver, None)?;
            self.hold_back()?;
            self.warm()?;
        }
        self.stage(Share::Rest)?;
        // The disk may take a while, and what need not wait for it does not.
        self.tell_all();
        self.committed =
            self.writer.end_step(self.phase == Phase::Serving && !self.crowd.is_there(self.now))?;
        self.writer.confirm_if_idle()?;
        let pinned = self.staging.first_region();
        self.writer.let_go(&mut self.state, !self.own.is_empty(), pinned);
        Ok(())
    }

    /// Writes pieces of large messages, and decides about those that are complete.
    fn stage(&mut self, share: Share) -> Result<(), Failure> {
        while !self.writer.is_full()
            && let Some(piece) = self.staging.piece(self.record_bytes_max)
        {
            let location = self.writer.append(PAYLOAD_PART, &[], &piece)?;
            self.staging.wrote(&piece, location);
            while let Some((mut staged, ahead)) = self.staging.complete() {
                self.writer.set_ahead(ahead);
                let done = self.request(staged.peer, &mut staged.request, staged.until);
                self.writer.set_ahead(Vec::new());
                done?;
            }
            if share == Share::One {
                break;
            }
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), Failure> {
        for _ in 0..TICKS_MAX {
            if self.state.next_deadline().is_none_or(|deadline| deadline > self.now) || self.writer.is_full()
            {
                break;
            }
            self.carry_out(&Command::Tick, None)?;
        }
        Ok(())
    }

    /// Decides a command; writes, applies and tells what comes of it.
    fn carry_out(&mut self, command: &Command, asker: Option<Asker>) -> Result<(), Failure> {
        self.outcome.clear();
        let source = Source { recent: &self.recent, reader: &self.reader, decode: &self.decode };
        if let Err(refusal) = self.state.decide(self.now, command, &source, &mut self.outcome) {
            if let Some(Asker { id, tag, .. }) = asker {
                self.forget_link(id, command);
                let refused = Refused::Impossible(refusal);
                self.tell_after(self.writer.newest(), id, Event::Refused { tag, refused });
            }
            return Ok(());
        }
        let mut outcome = std::mem::take(&mut self.outcome);
        self.writer.unit(&mut outcome.facts, &mut self.scratch)?;
        let mut waits_ended = false;
        for fact in &mut outcome.facts {
            self.remember(fact);
            if is_everyday(fact) {
                self.state.apply(fact);
                continue;
            }
            let gone = self.path_to_go(fact);
            self.state.apply(fact);
            self.note(fact);
            self.spread(fact, gone);
            waits_ended |= matches!(fact, Fact::AcceptEnded { .. });
        }
        if waits_ended {
            for receiver in waited_in_vain(&outcome.facts) {
                self.drop_link(receiver);
            }
        }
        let plain = asker.is_some_and(|asker| asker.plain);
        for effect in outcome.effects.drain(..) {
            self.route(effect, plain);
        }
        // Not before: what is removed by being sent takes its payload along.
        for location in self.gone.drain(..) {
            self.recent.forget(location);
        }
        self.outcome = outcome;
        Ok(())
    }

    /// Keeps the payloads at hand that a fact brings, and notes those that go with it, before it is applied.
    fn remember(&mut self, fact: &mut Fact) {
        match fact {
            Fact::Enqueued { payload, .. } | Fact::Scheduled { payload, .. } => {
                self.recent.keep(payload.location, Owners::One, take_body(payload));
            }
            Fact::Published { payload, .. } => {
                self.recent.keep(payload.location, Owners::Several, take_body(payload));
            }
            Fact::Removed { mailbox, sequence, .. } | Fact::Taken { mailbox, sequence, .. } => {
                self.gone.extend(self.state.location(*mailbox, *sequence));
            }
            Fact::Relayed { mailbox, sequence, copies, .. } if copies.len() > 1 => {
                if let Some(location) = self.state.location(*mailbox, *sequence) {
                    self.recent.share(location);
                }
            }
            _ => {}
        }
    }

    /// Keeps the shard's own books about what happened.
    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::ReceiverDetached { receiver, .. } => self.drop_link(*receiver),
            Fact::Administered { change, .. } => {
                let ended = self.keys.follow(change, self.state.catalogue());
                if ended {
                    self.end_grants();
                }
            }
            Fact::Cleared { .. } => self.replaced = true,
            Fact::Chilled { records, .. } => self.heat.left(records.len()),
            _ => {}
        }
    }

    /// Ends the shard because something beside it failed.
    pub(super) fn give_up(&mut self, reason: &str) {
        if self.over.is_none() {
            self.end(reason);
            self.tell_all();
        }
    }

    /// The shard is over: what was not told by now never will be.
    fn end(&mut self, reason: &str) {
        let reason: Arc<str> = reason.into();
        self.hold.clear(&mut self.peers);
        let mut ids: Vec<PeerId> = self.peers.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.tell(id, Event::Stopped { reason: Arc::clone(&reason) });
        }
        self.over = Some(reason);
    }

    /// Ends the shard in good order: everything decided becomes durable and is told, then the log is
    /// closed.
    pub fn stop(mut self) -> Result<(), Failure> {
        if self.over.is_none() {
            self.writer.end()?;
            self.writer.log_mut().flush()?;
            self.release();
            self.end("the broker is shutting down");
            self.tell_all();
            self.tidy_to_stop()?;
        }
        let now = self.now;
        self.writer.into_log().close(now.0).map(|_| ())
    }
}

/// How much of a batch large messages may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// One record: they go on however much else there is.
    One,
    /// What nobody else needs.
    Rest,
}

/// Who waits for the outcome of a command.
#[derive(Debug, Clone, Copy)]
struct Asker {
    id: PeerId,
    tag: Tag,
    /// Whether being told "accepted" is enough.
    plain: bool,
}

/// The bytes of a payload that was written: who applies its fact needs to know where, and no more.
fn take_body(payload: &mut Payload) -> Body {
    Body { bytes: std::mem::take(&mut payload.bytes), assigned_id: payload.assigned_id }
}

/// What happens to every message, and what neither the shard's own books nor those who watch want to know of.
#[inline]
fn is_everyday(fact: &Fact) -> bool {
    matches!(fact, Fact::Enqueued { .. } | Fact::Locked { .. } | Fact::Removed { .. })
}

/// The receivers that stopped waiting for a session without getting one.
fn waited_in_vain(facts: &[Fact]) -> SmallVec<[ReceiverId; 4]> {
    let got_one = |ended: ReceiverId| {
        facts.iter().any(|fact| matches!(fact, Fact::SessionLocked { receiver, .. } if *receiver == ended))
    };
    let ended = facts.iter().filter_map(|fact| match fact {
        Fact::AcceptEnded { receiver } => Some(*receiver),
        _ => None,
    });
    ended.filter(|receiver| !got_one(*receiver)).collect()
}
