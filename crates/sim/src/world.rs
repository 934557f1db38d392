//! The loop: a clock, and everything that will happen in the order of time.
//!
//! Every happening has a time, a random tie-break and a serial number, so the same seed gives the same
//! run, byte for byte, and events of one instant come in every order over many seeds. Each concern has
//! dice of its own: another client does not change when the broker crashes.

use crate::client::{Ask, Client, Heard, ROLES, Scene};
use crate::coverage::Coverage;
use crate::history::{Call, CallId, Entry, History, LinkId, Outcome, Seen, What};
use crate::mischief::Mischief;
use crate::payload;
use crate::plan::Plan;
use crate::station::Station;
use crate::topology::{self, KINDS, Topology};
use std::collections::{BTreeMap, BTreeSet};
use vorrang_broker::api::{Answer, Event, Operation, Received, Refused, Request, Tag};
use vorrang_broker::shard::{Body, Item};
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::message::{PropertyChange, PropertyValue};
use vorrang_engine::{Delivery, EntityId, Fact, Overlay, Reply, Span, Timestamp};
use vorrang_filter::Value;
use vorrang_log::dice::Dice;
use vorrang_log::disk::Fault;
use xxhash_rust::xxh3::Xxh3;

/// When simulated time begins.
const BEGINNING: u64 = 1_000_000_000;
/// A disk with plenty of room, and one with next to none.
const ROOMY: u64 = 1 << 40;
const FULL: u64 = 64 << 10;

/// Something that will happen.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most happenings are arrivals")]
enum Happening {
    Act(usize),
    Arrive { client: usize, peer: u32, ask: Ask },
    Close { peer: u32 },
    Step,
    Commit,
    Hear { client: usize, peer: u32, heard: Heard },
    Cut,
    Crash,
    Restart,
    DiskError,
    DiskFull,
    DiskFreed,
    Freeze,
    Thaw,
}

/// A simulated world.
pub(crate) struct World {
    /// What the run is about.
    pub(crate) plan: Plan,
    /// What has happened.
    pub(crate) history: History,
    /// What was reached.
    pub(crate) coverage: Coverage,
    /// Why the broker did not come back though nothing was wrong with the disk, if so.
    pub(crate) broken: Option<String>,
    pub(crate) station: Station,
    pub(crate) topology: Topology,
    pub(crate) time: u64,
    agenda: BTreeMap<(u64, u64, u64), Happening>,
    serial: u64,
    clients: Vec<Client>,
    /// Whose connections these are.
    owners: BTreeMap<u32, usize>,
    peers: u32,
    /// Connections the broker has not seen the end of.
    open: BTreeSet<u32>,
    calls: BTreeMap<(u32, Tag), CallId>,
    asked: BTreeMap<CallId, Call>,
    /// The entities that administrative calls were about.
    created: BTreeMap<CallId, EntityId>,
    modes: BTreeMap<LinkId, ReceiveMode>,
    numbers: u64,
    last_call: u64,
    /// When the last thing on a connection arrives, in either direction.
    lines: BTreeMap<(u32, bool), u64>,
    /// How far the broker's clock is ahead; it may be behind.
    ahead: i64,
    frozen: Option<Timestamp>,
    /// The highest time the broker was ever told.
    pub(crate) highest: Timestamp,
    steps: u64,
    step_at: Option<u64>,
    committing: bool,
    disk_troubled: bool,
    full: bool,
    trace: Xxh3,
    order: Dice,
    network: Dice,
    faults: Dice,
    verbose: Option<fn(&str)>,
}

impl World {
    /// A world with its entities, before anything goes wrong.
    #[must_use]
    pub(crate) fn new(seed: u64, length: u64, mischief: Mischief, verbose: Option<fn(&str)>) -> World {
        let mut dice = Dice::new(seed);
        let plan = Plan::draw(&mut dice, length);
        let mut world = World {
            history: History::default(),
            coverage: Coverage::default(),
            broken: None,
            station: Station::new(dice.roll(), plan.ring_bytes, mischief),
            topology: Topology::default(),
            time: BEGINNING,
            agenda: BTreeMap::new(),
            serial: 0,
            clients: Vec::new(),
            owners: BTreeMap::new(),
            peers: 0,
            open: BTreeSet::new(),
            calls: BTreeMap::new(),
            asked: BTreeMap::new(),
            created: BTreeMap::new(),
            modes: BTreeMap::new(),
            numbers: 0,
            last_call: 0,
            lines: BTreeMap::new(),
            ahead: 0,
            frozen: None,
            highest: Timestamp(BEGINNING),
            steps: 0,
            step_at: None,
            committing: false,
            disk_troubled: false,
            full: false,
            trace: Xxh3::new(),
            order: Dice::new(dice.roll()),
            network: Dice::new(dice.roll()),
            faults: Dice::new(dice.roll()),
            verbose,
            plan,
        };
        world.set_up(&mut dice);
        world
    }

    fn set_up(&mut self, dice: &mut Dice) {
        self.start();
        let peer = self.connect();
        for kind in KINDS {
            let request = topology::creation(kind).expect("the names are plain words");
            let id = self.ask_now(peer, Operation::Administer(Box::new(request)), Call::Administer);
            self.settle();
            let entity = self.created.remove(&id).expect("a healthy broker creates what it is asked to");
            self.topology.add(kind, entity);
            self.history.boxes.extend(topology::rules(kind).map(|rules| (entity, rules)));
        }
        self.disconnect(peer);
        for (role, count) in ROLES.into_iter().zip(self.plan.clients) {
            for _ in 0..count {
                self.clients.push(Client::new(role, Dice::new(dice.roll())));
                let pause = dice.below(self.plan.pause);
                self.later(pause, Happening::Act(self.clients.len() - 1));
            }
        }
        let plan = self.plan.clone();
        self.plan_fault(plan.crashes, Happening::Crash);
        self.plan_fault(plan.cuts, Happening::Cut);
        self.plan_fault(plan.disk_errors, Happening::DiskError);
        self.plan_fault(plan.disk_full, Happening::DiskFull);
        self.plan_fault(plan.freezes, Happening::Freeze);
    }

    /// Lives through the busy part.
    pub(crate) fn live(&mut self) {
        let end = BEGINNING + self.plan.length;
        while let Some(((time, _, _), happening)) = self.agenda.pop_first() {
            if time >= end || self.broken.is_some() {
                break;
            }
            self.time = time;
            self.happen(happening);
        }
        self.agenda.clear();
    }

    /// A number that is the same for two runs only if everything in them was.
    #[must_use]
    pub(crate) fn trace(&self) -> u64 {
        self.trace.digest()
    }

    fn later(&mut self, delay: u64, happening: Happening) {
        self.serial += 1;
        let tie = self.order.roll();
        self.agenda.insert((self.time + delay, tie, self.serial), happening);
    }

    fn plan_fault(&mut self, mean: Option<u64>, happening: Happening) {
        if let Some(mean) = mean {
            let delay = 1 + self.faults.below(2 * mean);
            self.later(delay, happening);
        }
    }

    fn note(&mut self, what: What) {
        let line = format!("{} {} {what:?}\n", self.steps, self.clock().0);
        self.trace.update(line.as_bytes());
        if let Some(verbose) = self.verbose {
            verbose(&line);
        }
        self.history.entries.push(Entry { step: self.steps, clock: self.clock(), what });
    }

    /// The time the broker is told.
    fn given(&self) -> Timestamp {
        self.frozen.unwrap_or(Timestamp(self.time.saturating_add_signed(self.ahead)))
    }

    /// The broker's own time.
    fn clock(&self) -> Timestamp {
        let known = self.station.core().map(|core| core.state().now());
        known.unwrap_or_default().max(self.given())
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Act(client) => self.act(client),
            Happening::Arrive { client, peer, ask } => {
                if self.owners.get(&peer) == Some(&client) && self.station.core().is_some() {
                    self.arrive(peer, ask);
                    self.step_in(0);
                }
            }
            Happening::Close { peer } => self.disconnect(peer),
            Happening::Step => {
                if self.step_at == Some(self.time) {
                    self.step_at = None;
                    self.step();
                }
            }
            Happening::Commit => {
                self.committing = false;
                self.station.commit();
                let in_any_case = self.faults.below(self.plan.snapshots) == 0;
                for done in self.station.tidy(in_any_case) {
                    self.coverage.event(done);
                }
                self.step_in(0);
            }
            Happening::Hear { client, peer, heard } => {
                if let Some(client) = self.clients.get_mut(client).filter(|client| client.peer == Some(peer))
                {
                    client.hear(heard);
                }
            }
            Happening::Cut => self.cut(),
            Happening::Crash => {
                self.crash();
                self.plan_fault(self.plan.crashes, Happening::Crash);
            }
            Happening::Restart => self.restart(),
            Happening::DiskError if self.station.core().is_none() => {
                self.plan_fault(self.plan.disk_errors, Happening::DiskError);
            }
            Happening::DiskError => {
                let call = self.station.disk.calls() + self.faults.below(30);
                self.station.disk.fail_at(call, Fault::Fail);
                self.disk_troubled = true;
                self.coverage.event("disk error");
                self.plan_fault(self.plan.disk_errors, Happening::DiskError);
            }
            Happening::DiskFull => {
                self.station.disk.set_free_bytes(FULL);
                self.full = true;
                self.coverage.event("disk full");
                let period = 1 + self.faults.below(30_000);
                self.later(period, Happening::DiskFreed);
            }
            Happening::DiskFreed => {
                self.station.disk.set_free_bytes(ROOMY);
                self.full = false;
                self.plan_fault(self.plan.disk_full, Happening::DiskFull);
            }
            Happening::Freeze => {
                self.frozen = Some(self.given());
                self.coverage.event("clock stopped");
                let period = 1 + self.faults.below(15_000);
                self.later(period, Happening::Thaw);
            }
            Happening::Thaw => {
                self.frozen = None;
                self.step_in(0);
                self.plan_fault(self.plan.freezes, Happening::Freeze);
            }
        }
    }

    fn act(&mut self, index: usize) {
        let pause = 1 + self.order.below(2 * self.plan.pause);
        self.later(pause, Happening::Act(index));
        let connected = self.clients.get(index).and_then(|client| client.peer);
        let Some(peer) = connected else {
            if self.station.core().is_some() && self.station.failure().is_none() {
                let peer = self.connect();
                self.owners.insert(peer, index);
                if let Some(client) = self.clients.get_mut(index) {
                    client.peer = Some(peer);
                }
            }
            return;
        };
        let mut scene = Scene {
            now: Timestamp(self.time),
            topology: &self.topology,
            history: &mut self.history,
            last: &mut self.numbers,
            asks: Vec::new(),
        };
        if let Some(client) = self.clients.get_mut(index) {
            client.act(&mut scene);
        }
        for ask in scene.asks {
            self.invoke(peer, &ask);
            let delay = self.delay(peer, true);
            self.later(delay, Happening::Arrive { client: index, peer, ask });
        }
    }

    /// How long something is on its way; nothing on a connection overtakes anything.
    fn delay(&mut self, peer: u32, there: bool) -> u64 {
        let arrives = self.time + 1 + self.network.below(self.plan.network_delay);
        let last = self.lines.entry((peer, there)).or_default();
        *last = arrives.max(*last + 1);
        *last - self.time
    }

    fn invoke(&mut self, peer: u32, ask: &Ask) {
        let Some(call) = &ask.call else { return };
        self.last_call += 1;
        let id = CallId(self.last_call);
        self.calls.insert((peer, Tag(ask.tag)), id);
        self.asked.insert(id, call.clone());
        self.note(What::Invoke { id, peer, call: call.clone() });
    }

    fn arrive(&mut self, peer: u32, ask: Ask) {
        let Ask { tag, mut operation, call } = ask;
        let tag = Tag(tag);
        match &operation {
            Operation::Attach { link, mode, .. } | Operation::AcceptSession { link, mode, .. } => {
                self.modes.insert((peer, link.0), *mode);
            }
            Operation::Detach { link } => self.note(What::LinkEnded { link: (peer, link.0) }),
            Operation::Credit { link, limit, .. } => {
                let link = (peer, link.0);
                if self.modes.get(&link) == Some(&ReceiveMode::ReceiveAndDelete) {
                    let entity = self.topology.of(topology::Kind::Lossy);
                    self.note(What::Allow { link, entity, limit: *limit });
                }
            }
            _ => {}
        }
        let mut forged = Vec::new();
        if self.station.mischief.meddle(peer, tag, &mut operation, call.as_ref(), &mut forged) {
            self.station.arrive(peer, Item::Request(Request { tag, operation }));
        }
        for event in forged {
            self.hear(peer, event);
        }
    }

    fn step_in(&mut self, delay: u64) {
        let at = self.time + delay;
        if self.station.core().is_some() && self.step_at.is_none_or(|known| at < known) {
            self.step_at = Some(at);
            self.later(delay, Happening::Step);
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        let now = self.given();
        self.highest = self.highest.max(now);
        let said = self.station.step(now);
        for (peer, event) in said {
            self.hear(peer, event);
        }
        if self.station.failure().is_some() {
            self.coverage.event("stopped for good");
            let delay = 1 + self.faults.below(2_000);
            self.lose_everybody();
            return self.later(delay, Happening::Crash);
        }
        if !self.committing {
            self.committing = true;
            let delay = 1 + self.network.below(self.plan.disk_delay);
            self.later(delay, Happening::Commit);
        }
        if let Some(wake) = self.station.core().and_then(vorrang_broker::shard::Core::next_wake)
            && self.frozen.is_none()
        {
            self.step_in(wake.since(self.clock()).0.clamp(1, 86_400_000));
        }
    }

    /// The broker said something: into the history, and on its way to the client.
    fn hear(&mut self, peer: u32, event: Event) {
        for heard in self.digest(peer, event) {
            let Some(client) = self.owners.get(&peer).copied() else { continue };
            let delay = self.delay(peer, false);
            self.later(delay, Happening::Hear { client, peer, heard });
        }
    }

    /// What an event means, written down.
    pub(crate) fn digest(&mut self, peer: u32, event: Event) -> Vec<Heard> {
        let mut heard = Vec::new();
        match event {
            Event::Accepted { first, count } => {
                for tag in (first.0..).take(usize::try_from(count).unwrap_or_default()) {
                    let outcome = Outcome::Sent(vec![vorrang_engine::Sequence(u64::MAX)]);
                    heard.extend(self.answered(peer, Tag(tag), outcome));
                }
            }
            Event::Reply { tag, reply } => {
                let outcome = match reply {
                    Reply::Done => Outcome::Done,
                    Reply::Sent { sequences } => Outcome::Sent(sequences.into_vec()),
                    Reply::Administered { entity } => {
                        self.administered(peer, tag, entity);
                        Outcome::Done
                    }
                    Reply::Renewed { until } => Outcome::Until(until.first().copied().unwrap_or_default()),
                    Reply::SessionRenewed { until } => Outcome::Until(until),
                    // Told as an answer, with the bytes.
                    Reply::Received { messages } => Outcome::Received(messages.len()),
                    Reply::SessionAccepted { session, until, .. } => {
                        Outcome::Session { session: session.as_str().to_owned(), until }
                    }
                    Reply::Declared { transaction } => Outcome::Declared(transaction.0),
                    Reply::Deleted { count, .. } | Reply::Reprioritised { count, .. } => {
                        Outcome::Count(count)
                    }
                };
                heard.extend(self.answered(peer, tag, outcome));
            }
            Event::Answer { tag, answer } => {
                let mut seen = Vec::new();
                let outcome = match answer {
                    Answer::SessionState(state) => Outcome::State(
                        state.and_then(|state| Some(u64::from_le_bytes(*state.first_chunk::<8>()?))),
                    ),
                    Answer::Peeked(peeked) => {
                        Outcome::Peeked(peeked.messages.iter().map(|message| message.sequence).collect())
                    }
                    Answer::Received(messages) => {
                        let see =
                            |received: &Received| self.see(&received.delivery, received.body.as_ref(), true);
                        seen.extend(messages.iter().filter_map(see));
                        Outcome::Received(messages.len())
                    }
                    Answer::Found(_)
                    | Answer::Subscription(_)
                    | Answer::Listed(_)
                    | Answer::Namespace { .. }
                    | Answer::Sessions(_)
                    | Answer::Explained(_)
                    | Answer::Surveyed(_)
                    | Answer::Clock { .. }
                    | Answer::Captured(_)
                    | Answer::Faults(_)
                    | Answer::Condition(_) => Outcome::Done,
                };
                heard.extend(self.answered(peer, tag, outcome));
                for seen in seen {
                    let mode = mode_of(&seen);
                    self.note(What::Deliver { link: (peer, 0), mode, seen: seen.clone() });
                    heard.push(Heard::Deliver { link: 0, seen });
                }
            }
            Event::Refused { tag, refused } => {
                heard.extend(self.answered(peer, tag, Outcome::Refused(reason(&refused))));
            }
            Event::Deliver { link, delivery, body } => {
                let Some(seen) = self.see(&delivery, body.as_ref(), false) else {
                    self.note(What::Unread);
                    return heard;
                };
                let mode = mode_of(&seen);
                self.cover_wish((peer, link.0));
                self.note(What::Deliver { link: (peer, link.0), mode, seen: seen.clone() });
                heard.push(Heard::Deliver { link: link.0, seen });
            }
            Event::Detached { link, refused } => {
                self.coverage.event(&format!("detached {}", reason(&refused)));
                self.note(What::LinkEnded { link: (peer, link.0) });
                heard.push(Heard::Detached { link: link.0 });
            }
            Event::Drained { .. } => self.coverage.event("drained"),
            Event::Stopped { .. } | Event::News { .. } | Event::KeysChanged => {}
        }
        heard
    }

    fn cover_wish(&mut self, link: LinkId) {
        let Some(wish) = self.history.wishes.get(&link) else { return };
        let reached = [
            (wish.kind.is_some(), "selected delivery"),
            (wish.min_level > 0, "express delivery"),
            (wish.ordered, "delivery in the order of queues"),
        ];
        for (_, what) in reached.into_iter().filter(|(is_so, _)| *is_so) {
            self.coverage.event(what);
        }
    }

    fn answered(&mut self, peer: u32, tag: Tag, outcome: Outcome) -> Option<Heard> {
        let id = self.calls.remove(&(peer, tag))?;
        if let Some(call) = self.asked.remove(&id) {
            self.coverage.count(&call, Some(&outcome));
        }
        self.note(What::Return { id, outcome: outcome.clone() });
        Some(Heard::Answer { tag: tag.0, outcome })
    }

    fn administered(&mut self, peer: u32, tag: Tag, entity: EntityId) {
        if let Some(id) = self.calls.get(&(peer, tag)) {
            self.created.insert(*id, entity);
        }
    }

    /// A delivery as the history has it. None if its bytes cannot be read because the disk is in trouble, or because the
    /// message was moved while the delivery was on its way: then it is given back.
    fn see(&self, delivery: &Delivery, body: Option<&Body>, deferred: bool) -> Option<Seen> {
        let read = || {
            let reader = self.station.core()?.reader();
            reader.read(delivery.location, delivery.size).ok()
        };
        let body = body.cloned().or_else(read);
        if body.is_none() && (self.disk_troubled || self.has_moved(delivery)) {
            return None;
        }
        let mail = body.and_then(|body| payload::read(&body.bytes)).map(|(mail, _)| mail);
        Some(Seen {
            mail,
            mailbox: delivery.mailbox,
            sequence: delivery.sequence,
            level: delivery.level.0,
            deliveries: delivery.deliveries,
            enqueued: delivery.enqueued,
            lock: delivery.token.zip(delivery.locked_until),
            reason: delivery.overlay.as_deref().and_then(dead_letter_reason),
            deferred,
        })
    }

    fn has_moved(&self, delivery: &Delivery) -> bool {
        let Some(core) = self.station.core() else { return false };
        core.state().clone().freeze().facts().any(|fact| match fact {
            Fact::RestoredMessage(message) => {
                let arrival = &message.arrival;
                (arrival.mailbox, arrival.sequence) == (delivery.mailbox, delivery.sequence)
                    && message.location != delivery.location
            }
            _ => false,
        })
    }

    pub(crate) fn connect(&mut self) -> u32 {
        self.peers += 1;
        self.open.insert(self.peers);
        self.station.connect(self.peers);
        self.peers
    }

    pub(crate) fn disconnect(&mut self, peer: u32) {
        if self.open.remove(&peer) {
            self.station.arrive(peer, Item::Close);
            self.note(What::Closed { peer });
            self.step_in(0);
        }
    }

    /// A connection breaks. The client knows at once, the broker later.
    fn cut(&mut self) {
        let peers: Vec<u32> = self.owners.keys().copied().collect();
        if let Some(&peer) = peers.get(self.faults.index(peers.len())) {
            self.coverage.event("connection lost");
            self.lose(peer);
            let delay = 1 + self.faults.below(20_000);
            self.later(delay, Happening::Close { peer });
        }
        self.plan_fault(self.plan.cuts, Happening::Cut);
    }

    fn lose(&mut self, peer: u32) {
        let client = self.owners.remove(&peer).and_then(|client| self.clients.get_mut(client));
        if let Some(client) = client {
            client.lose_connection();
        }
    }

    pub(crate) fn lose_everybody(&mut self) {
        let peers: Vec<u32> = self.owners.keys().copied().collect();
        for peer in peers {
            self.lose(peer);
        }
    }

    fn crash(&mut self) {
        if self.station.core().is_none() {
            return;
        }
        if self.faults.below(2) == 0 {
            // In the middle of a commit: some of its calls reach the disk, then nothing does.
            let call = self.station.disk.calls() + self.faults.below(6);
            self.station.disk.fail_from(call, Fault::Short);
            self.station.commit();
            self.coverage.event("crash in a commit");
        } else {
            self.coverage.event("crash");
        }
        self.die();
        let delay = 1 + self.faults.below(3_000);
        self.later(delay, Happening::Restart);
    }

    pub(crate) fn die(&mut self) {
        self.station.crash(&mut self.faults);
        self.note(What::Crash);
        self.open.clear();
        self.lose_everybody();
        for id in std::mem::take(&mut self.calls).into_values() {
            if let Some(call) = self.asked.remove(&id) {
                self.coverage.count(&call, None);
            }
        }
        self.modes.clear();
        self.disk_troubled = false;
        (self.step_at, self.committing) = (None, false);
    }

    fn restart(&mut self) {
        if self.station.core().is_some() {
            return;
        }
        if self.plan.jump > 0 && self.faults.below(2) == 0 {
            let jump = i64::try_from(self.faults.below(self.plan.jump)).unwrap_or_default();
            self.ahead += if self.faults.below(2) == 0 { jump } else { -jump };
            self.ahead = self.ahead.max(-500_000_000);
            self.coverage.event("clock jumped");
        }
        self.station.disk.heal();
        if self.full {
            // Without space the broker may well refuse to start.
            self.station.disk.set_free_bytes(ROOMY);
            self.full = false;
        }
        self.start();
        self.step_in(1);
    }

    /// Starts the broker; nothing is wrong with the disk now.
    pub(crate) fn start(&mut self) {
        let now = self.given();
        self.highest = self.highest.max(now);
        match self.station.start(now) {
            Ok(()) => self.note(What::Restart),
            Err(error) => self.broken = Some(error),
        }
    }

    /// Puts right what is wrong: time goes on, the disk works, the broker runs.
    pub(crate) fn heal(&mut self) {
        self.lose_everybody();
        self.frozen = None;
        self.station.disk.heal();
        self.station.disk.set_free_bytes(ROOMY);
        self.disk_troubled = false;
        let behind = self.highest.0.saturating_sub(self.time);
        self.ahead = i64::try_from(behind).unwrap_or_default() + 600_000;
        if self.station.failure().is_some() {
            self.die();
        }
        if self.station.core().is_none() && self.broken.is_none() {
            self.start();
        }
        for peer in self.open.clone() {
            self.disconnect(peer);
        }
        self.note(What::DrainBegins);
    }

    /// Asks at once, without a network.
    pub(crate) fn ask_now(&mut self, peer: u32, operation: Operation, call: Call) -> CallId {
        self.numbers += 1;
        let tag = u32::try_from(self.numbers % u64::from(u32::MAX)).unwrap_or_default();
        let ask = Ask { tag, operation, call: Some(call) };
        self.invoke(peer, &ask);
        self.arrive(peer, ask);
        CallId(self.last_call)
    }

    /// Says something that is not answered, at once.
    pub(crate) fn say_now(&mut self, peer: u32, operation: Operation) {
        self.numbers += 1;
        let tag = u32::try_from(self.numbers % u64::from(u32::MAX)).unwrap_or_default();
        self.arrive(peer, Ask { tag, operation, call: None });
    }

    /// Lets the broker and its disk come to rest, and returns what was said to whom.
    pub(crate) fn settle(&mut self) -> Vec<(u32, Heard)> {
        let mut heard = Vec::new();
        for _ in 0..4 {
            self.steps += 1;
            self.time += 1;
            let now = self.given();
            self.highest = self.highest.max(now);
            for (peer, event) in self.station.step(now) {
                heard.extend(self.digest(peer, event).into_iter().map(|heard| (peer, heard)));
            }
            self.station.commit();
        }
        heard
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, span: Span) {
        self.time = self.time.saturating_add(span.0);
    }

    pub(crate) fn end_drain(&mut self, left: u64) {
        self.note(What::DrainEnds { left });
    }
}

/// How a message was received: one that is removed by being sent has no lock.
fn mode_of(seen: &Seen) -> ReceiveMode {
    if seen.lock.is_some() { ReceiveMode::PeekLock } else { ReceiveMode::ReceiveAndDelete }
}

/// The name of a refusal.
fn reason(refused: &Refused) -> String {
    let text = match refused {
        Refused::Impossible(refusal) => format!("{refusal:?}"),
        other => format!("{other:?}"),
    };
    text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn dead_letter_reason(overlay: &Overlay) -> Option<String> {
    match overlay.properties.get(Overlay::REASON)? {
        PropertyChange::Set(PropertyValue::Typed(Value::String(text))) => Some(text.to_string()),
        _ => None,
    }
}
