//! A small namespace, its clients, and the log they would have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes as Payload;
use smallvec::smallvec;
use vorrang_filter::{Filter, MapMessage, Parameters, Sql};

use super::read::Bytes;
use crate::browse::Peek;
use crate::command::{
    AcceptSession, Attach, Chill, Command, ReceiveMode, Relocation, Replay, Selection, Send, Settle,
    Settlement,
};
use crate::effect::{Effect, Outcome, Reply};
use crate::entity::priority::{Policy, Rescue, Share};
use crate::entity::{EntityName, EntityPath, Request, Setting, Status, SubscriptionName};
use crate::fact::{Durability, Fact};
use crate::id::{
    EntityId, Location, LockToken, MailboxId, ReceiverId, RequestTag, RunId, Sequence, SessionId,
    TransactionId,
};
use crate::level::Level;
use crate::limits::Limits;
use crate::message::{Delivery, Incoming, Overlay};
use crate::payloads::{ColdRecord, Payloads};
use crate::state::State;
use crate::text::Text;
use crate::time::{Span, Timestamp};

/// Names that exist, on and off.
const QUEUES: [&str; 6] = ["plain", "aged", "dated", "once", "sessions", "relay"];
const TOPIC: &str = "news";
const SUBSCRIPTIONS: [&str; 3] = ["all", "held", "onward"];
const SESSIONS: [&str; 3] = ["a", "b", "c"];

/// What the log and the extents hold.
#[derive(Debug, Default)]
struct Stored {
    messages: BTreeSet<Location>,
    runs: BTreeMap<RunId, Vec<ColdRecord>>,
}

impl Payloads for Stored {
    fn message(&self, location: Location, _: u32) -> Option<Box<dyn vorrang_filter::Message + '_>> {
        let found = self.messages.contains(&location);
        found.then(|| -> Box<dyn vorrang_filter::Message> { Box::new(content(location.0)) })
    }

    fn cold_records(&self, run: RunId, from: u32, max: u32) -> Vec<ColdRecord> {
        // As in an extent, a run is a stretch of what was written at once, and its number says where.
        let Some((first, records)) = self.runs.range(..=run).next_back() else { return Vec::new() };
        let start = usize::try_from(run.0.saturating_sub(first.0)).unwrap_or(usize::MAX);
        let (from, max) = (usize::try_from(from).unwrap_or(0), usize::try_from(max).unwrap_or(0));
        records.iter().skip(start.saturating_add(from)).take(max).copied().collect()
    }
}

/// What filters see of a message: enough to tell some from others.
fn content(number: u64) -> MapMessage {
    let session = SESSIONS.get(usize::try_from(number % 3).unwrap_or(0)).copied().unwrap_or("a");
    MapMessage::new()
        .with("number", i64::try_from(number % 1_000).unwrap_or(0))
        .with_system(vorrang_filter::SystemProperty::SessionId, session)
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) state: State,
    now: Timestamp,
    stored: Stored,
    /// What would survive a crash.
    journal: Vec<Fact>,
    /// Deliveries that clients may still settle, also some that they may not.
    tokens: Vec<(MailboxId, LockToken)>,
    receivers: Vec<ReceiverId>,
    transactions: Vec<TransactionId>,
    /// Records on disk that were asked for and not brought yet.
    asked: Vec<(RunId, u32, u32)>,
    next: u64,
}

impl World {
    pub(super) fn new() -> World {
        let mut world = World {
            state: State::new(limits()),
            now: Timestamp(1_000_000),
            stored: Stored::default(),
            journal: Vec::new(),
            tokens: Vec::new(),
            receivers: Vec::new(),
            transactions: Vec::new(),
            asked: Vec::new(),
            next: 1,
        };
        world.run(&Command::Create { seed: 1 });
        for name in QUEUES {
            world.create(name);
        }
        world.create(TOPIC);
        for name in SUBSCRIPTIONS {
            world.create(name);
        }
        world
    }

    /// One command, chosen by bytes.
    pub(super) fn step(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.byte() % 32 {
            0..=7 => self.send(bytes),
            8..=9 => self.attach(bytes),
            10..=12 => self.credit(bytes),
            13 => self.detach(bytes),
            14..=16 => self.deliver(bytes),
            17..=20 => self.settle(bytes),
            21 => self.accept(bytes),
            22 => self.session(bytes),
            23 => self.pass_time(bytes),
            24 => self.administer(bytes),
            25 => self.browse(bytes),
            26 => self.transact(bytes),
            27 => self.defer(bytes),
            28 => self.chill(bytes),
            29 => self.relocate(bytes),
            30 => self.renew(bytes),
            _ => self.restart(bytes),
        }
    }

    /// Lets everything happen that is due, within reason.
    pub(super) fn rest(&mut self) {
        for _ in 0..20_000 {
            if self.state.next_deadline().is_some_and(|due| due <= self.now) {
                self.run(&Command::Tick);
            } else if self.state.has_deliverable() {
                self.run(&Command::Deliver);
            } else if !self.bring(u32::MAX) {
                return;
            }
        }
        let (line, due) = (self.state.has_deliverable(), self.state.next_deadline());
        assert!(!line, "the pump does not come to rest");
        assert!(due.is_none_or(|due| due > self.now), "the clock does not come to rest");
    }

    /// A state rebuilt from the log, and one rebuilt from a snapshot and the rest, are this one.
    pub(super) fn compare_with_replay(&self) {
        let half = self.journal.len() / 2;
        let mut replayed = State::new(limits());
        let mut restored = State::new(limits());
        for (place, fact) in self.journal.iter().enumerate() {
            if place == half {
                for fact in replayed.freeze().facts() {
                    restored.apply(&fact);
                }
            }
            replayed.apply(fact);
            if place >= half {
                restored.apply(fact);
            }
        }
        for (how, state) in [("replay", &replayed), ("snapshot and replay", &restored)] {
            let problems = state.audit();
            assert!(state.misfits() == 0 && problems.is_empty(), "{how}: {problems:?}");
            let (live, other) = (picture(&self.state), picture(state));
            let missing: Vec<_> = live.difference(&other).collect();
            let added: Vec<_> = other.difference(&live).collect();
            assert!(missing.is_empty() && added.is_empty(), "{how}: lacks {missing:#?}, adds {added:#?}");
        }
    }

    /// Applies what is left of the log after it was damaged.
    pub(super) fn apply_damaged(&self, mut damage: Bytes<'_>) -> u64 {
        let mut state = State::new(limits());
        for (place, fact) in self.journal.iter().enumerate() {
            match damage.byte() {
                0..=15 => continue,
                16..=31 => state.apply(fact),
                32..=47 => {
                    let other = self.journal.get(place.saturating_sub(damage.below(16)));
                    if let Some(other) = other {
                        state.apply(other);
                    }
                }
                48..=55 => {
                    let other = self.journal.get(place.saturating_add(damage.below(16)));
                    if let Some(other) = other {
                        state.apply(other);
                    }
                }
                _ => {}
            }
            state.apply(fact);
        }
        let problems = state.audit();
        assert!(problems.is_empty(), "{problems:#?}");
        state.misfits()
    }

    /// Everything adds up.
    pub(super) fn audit(&self) {
        let problems = self.state.audit();
        assert!(problems.is_empty(), "{problems:#?}");
    }

    fn run(&mut self, command: &Command) -> Vec<Effect> {
        let mut outcome = Outcome::default();
        let decided = self.state.decide(self.now, command, &self.stored, &mut outcome);
        if let Err(refusal) = decided {
            assert!(!refusal.to_string().is_empty());
            return Vec::new();
        }
        for mut fact in outcome.facts {
            if let Some(payload) = fact.payload_mut() {
                self.next = self.next.saturating_add(1);
                let region = self.next / 16;
                payload.location = Location((region << 32) | self.next);
                self.stored.messages.insert(payload.location);
            }
            self.state.apply(&fact);
            assert!(self.state.misfits() == 0, "{command:?} decided {fact:?}, which does not fit");
            if fact.durability() != Durability::Volatile {
                self.journal.push(fact);
            }
        }
        for effect in &outcome.effects {
            self.see(effect);
        }
        outcome.effects
    }

    fn see(&mut self, effect: &Effect) {
        match effect {
            Effect::Deliver { delivery, .. } => self.remember(delivery),
            Effect::Reply { reply: Reply::Received { messages }, .. } => {
                for delivery in messages {
                    self.remember(delivery);
                }
            }
            Effect::Reply { reply: Reply::SessionAccepted { receiver, .. }, .. } => {
                self.receivers.push(*receiver);
            }
            Effect::Reply { reply: Reply::Declared { transaction }, .. } => {
                self.transactions.push(*transaction);
            }
            Effect::Detach { receiver, .. } => self.receivers.retain(|other| other != receiver),
            Effect::Warm { run, from, count, .. } => self.asked.push((*run, *from, *count)),
            _ => {}
        }
    }

    /// Brings records that were asked for, at most so many; false if none were asked for.
    fn bring(&mut self, max: u32) -> bool {
        let Some((run, from, count)) = self.asked.pop() else { return false };
        let records = self.stored.cold_records(run, from, count.min(max));
        self.run(&Command::Warm { run, from, records });
        true
    }

    fn remember(&mut self, delivery: &Delivery) {
        if let Some(token) = delivery.token {
            self.tokens.push((delivery.mailbox, token));
        }
    }

    fn entity(&self, name: &str) -> Option<EntityId> {
        let path = EntityPath::parse(&path_text(name));
        self.state.catalogue().find(&path.ok()?).map(|entity| entity.id)
    }

    /// A mailbox, now and then one that does not exist.
    fn mailbox(&self, bytes: &mut Bytes<'_>) -> MailboxId {
        let names: Vec<&str> = QUEUES.into_iter().chain(SUBSCRIPTIONS).collect();
        let entity = bytes.pick(&names).and_then(|name| self.entity(name)).unwrap_or(EntityId(99));
        match bytes.below(8) {
            6 => MailboxId::dead_letter(entity),
            7 => MailboxId::transfer_dead_letter(entity),
            _ => MailboxId::main(entity),
        }
    }

    fn incoming(&mut self, bytes: &mut Bytes<'_>) -> Incoming {
        self.next = self.next.saturating_add(1);
        let size = bytes.pick(&[1_usize, 10, 100, 3_000]).unwrap_or(1);
        let flags = bytes.byte();
        let mut incoming = Incoming::new(Payload::from(vec![0; size]), Arc::new(content(self.next)));
        incoming.priority = Some(bytes.byte() % 12);
        if flags & 1 != 0 {
            incoming.time_to_live = Some(Span::seconds(u64::from(bytes.byte() % 30)));
        }
        if flags & 2 != 0 {
            incoming.message_id = Some(Text::from(bytes.pick(&["x", "y", "z"]).unwrap_or("x")));
        }
        if flags & 0b1100 != 0 {
            incoming.session_id = bytes.pick(&SESSIONS).map(Text::from);
        }
        if flags & 0b1_0000 != 0 {
            incoming.scheduled_for = Some(self.now.after(Span::seconds(u64::from(bytes.byte() % 20))));
        }
        if flags & 0b10_0000 != 0 {
            incoming.deadline = Some(self.now.after(Span::seconds(u64::from(bytes.byte()))));
        }
        incoming
    }

    fn send(&mut self, bytes: &mut Bytes<'_>) {
        let names: Vec<&str> = QUEUES.into_iter().chain([TOPIC, TOPIC, "all"]).collect();
        let Some(entity) = bytes.pick(&names).and_then(|name| self.entity(name)) else { return };
        let messages = (0..=bytes.below(4)).map(|_| self.incoming(bytes)).collect();
        let transaction = if bytes.once_in(6) { self.transactions.last().copied() } else { None };
        self.run(&Command::Send(Send { request: RequestTag(1), entity, via: None, transaction, messages }));
    }

    fn attach(&mut self, bytes: &mut Bytes<'_>) {
        self.next = self.next.saturating_add(1);
        let receiver = ReceiverId(self.next);
        let mailboxes = (0..=bytes.below(3) / 2).map(|_| self.mailbox(bytes)).collect();
        let mode = if bytes.once_in(4) { ReceiveMode::ReceiveAndDelete } else { ReceiveMode::PeekLock };
        let min_level = Level(if bytes.once_in(4) { bytes.byte() % 12 } else { 0 });
        let some = Sql::parse("number % 3 = 1", Parameters::new()).map_or(Filter::True, Filter::from);
        let selector = bytes.pick(&[Filter::False, Filter::True, some]).map(Arc::new);
        let selector = selector.filter(|_| bytes.once_in(4));
        let request = RequestTag(2);
        let attach = Attach { request, receiver, mailboxes, mode, min_level, selector };
        self.run(&Command::Attach(Box::new(attach)));
        self.receivers.push(receiver);
        self.run(&Command::Credit { receiver, credit: u32::from(bytes.byte() % 8), drain: false });
    }

    fn credit(&mut self, bytes: &mut Bytes<'_>) {
        if let Some(receiver) = bytes.pick(&self.receivers) {
            let credit = u32::from(bytes.byte() % 16);
            self.run(&Command::Credit { receiver, credit, drain: bytes.once_in(4) });
        }
    }

    fn detach(&mut self, bytes: &mut Bytes<'_>) {
        if let Some(receiver) = bytes.pick(&self.receivers) {
            self.receivers.retain(|other| *other != receiver);
            self.run(&Command::Detach { receiver });
        }
    }

    fn deliver(&mut self, bytes: &mut Bytes<'_>) {
        for _ in 0..=bytes.below(12) {
            if self.state.has_deliverable() {
                self.run(&Command::Deliver);
            }
        }
    }

    fn settlement(bytes: &mut Bytes<'_>) -> Settlement {
        let changes = bytes.once_in(2).then(|| Arc::new(Overlay::dead_letter(Some("why"), None)));
        match bytes.below(7) {
            0 => Settlement::Abandon { changes, delay: None },
            1 => Settlement::Abandon { changes, delay: Some(Span::seconds(u64::from(bytes.byte() % 10))) },
            2 => Settlement::Release,
            3 => Settlement::Suspend { checkpoint: changes },
            4 => Settlement::Defer { changes },
            5 => Settlement::DeadLetter { reason: Some("r".into()), description: None, changes },
            _ => Settlement::Complete,
        }
    }

    fn settle(&mut self, bytes: &mut Bytes<'_>) {
        let Some((mailbox, token)) = bytes.pick(&self.tokens) else { return };
        let settlement = World::settlement(bytes);
        let mut tokens = smallvec![token];
        if bytes.once_in(4) {
            tokens.extend(bytes.pick(&self.tokens).map(|(_, token)| token));
        }
        let transaction = if bytes.once_in(6) { self.transactions.last().copied() } else { None };
        if transaction.is_none() {
            self.tokens.retain(|(_, other)| *other != token);
        }
        self.run(&Command::Settle(Settle {
            request: RequestTag(3),
            mailbox,
            tokens,
            settlement,
            transaction,
        }));
    }

    fn renew(&mut self, bytes: &mut Bytes<'_>) {
        if let Some((mailbox, token)) = bytes.pick(&self.tokens) {
            self.run(&Command::Renew { request: RequestTag(4), mailbox, tokens: smallvec![token] });
        }
    }

    fn defer(&mut self, bytes: &mut Bytes<'_>) {
        let mailbox = self.mailbox(bytes);
        let peeked = self.state.peek(&Peek::new(mailbox, 20), &self.stored).unwrap_or_default();
        let Some(sequence) = bytes.pick(&peeked.messages).map(|delivery| delivery.sequence) else { return };
        let mode = if bytes.once_in(3) { ReceiveMode::ReceiveAndDelete } else { ReceiveMode::PeekLock };
        let sequences = vec![sequence];
        let receiver = bytes.pick(&self.receivers);
        let request = RequestTag(5);
        if bytes.once_in(3) {
            self.run(&Command::Cancel { request, entity: mailbox.entity(), sequences });
        } else {
            self.run(&Command::ReceiveDeferred { request, mailbox, sequences, mode, receiver });
        }
    }

    fn accept(&mut self, bytes: &mut Bytes<'_>) {
        self.next = self.next.saturating_add(1);
        let mailbox =
            bytes.pick(&["sessions", "held"]).and_then(|name| self.entity(name)).map(MailboxId::main);
        let Some(mailbox) = mailbox else { return };
        let session = if bytes.once_in(2) { bytes.pick(&SESSIONS).map(SessionId::from) } else { None };
        let accept = AcceptSession {
            request: RequestTag(6),
            receiver: ReceiverId(self.next),
            mailbox,
            session,
            mode: if bytes.once_in(4) { ReceiveMode::ReceiveAndDelete } else { ReceiveMode::PeekLock },
            wait: Span::seconds(u64::from(bytes.byte() % 10)),
        };
        self.run(&Command::AcceptSession(Box::new(accept)));
    }

    fn session(&mut self, bytes: &mut Bytes<'_>) {
        let mailbox =
            bytes.pick(&["sessions", "held"]).and_then(|name| self.entity(name)).map(MailboxId::main);
        let (Some(mailbox), Some(receiver)) = (mailbox, bytes.pick(&self.receivers)) else { return };
        let Some(session) = bytes.pick(&SESSIONS).map(SessionId::from) else { return };
        let request = RequestTag(7);
        if bytes.once_in(2) {
            self.run(&Command::RenewSession { request, mailbox, session, receiver });
        } else {
            let state = bytes.once_in(2).then(|| Payload::from_static(b"state"));
            self.run(&Command::SetSessionState { request, mailbox, session, receiver, state });
        }
    }

    fn pass_time(&mut self, bytes: &mut Bytes<'_>) {
        self.now = self.now.after(Span(u64::from(bytes.byte()).saturating_mul(100)));
        for _ in 0..bytes.below(64) {
            if self.state.next_deadline().is_some_and(|due| due <= self.now) {
                self.run(&Command::Tick);
            }
        }
        if bytes.once_in(8) {
            self.rest();
        }
    }

    fn create(&mut self, name: &'static str) {
        let plain = EntityName::parse(name).ok();
        let settings = settings(name);
        let change = match (name, plain) {
            (TOPIC, Some(name)) => Request::CreateTopic { name, settings },
            (name, _) if SUBSCRIPTIONS.contains(&name) => {
                let (Ok(topic), Ok(name)) = (EntityName::parse(TOPIC), SubscriptionName::parse(name)) else {
                    return;
                };
                Request::CreateSubscription { topic, name, settings, first_rule: None }
            }
            (_, Some(name)) => Request::CreateQueue { name, settings },
            _ => return,
        };
        self.run(&Command::Administer { request: RequestTag(8), change: Box::new(change) });
    }

    fn administer(&mut self, bytes: &mut Bytes<'_>) {
        let names: Vec<&'static str> = QUEUES.into_iter().chain(SUBSCRIPTIONS).chain([TOPIC]).collect();
        let Some(name) = bytes.pick(&names) else { return };
        let text = if SUBSCRIPTIONS.contains(&name) {
            format!("{TOPIC}/subscriptions/{name}")
        } else {
            name.to_owned()
        };
        let Ok(path) = EntityPath::parse(&text) else { return };
        let share = |thousandths| Share::per_mille(thousandths).unwrap_or(Share::NONE);
        let setting = match bytes.below(12) {
            0 => return self.create(name),
            1 if bytes.once_in(3) => {
                let change = Box::new(Request::Delete { path });
                self.run(&Command::Administer { request: RequestTag(9), change });
                return;
            }
            2 => Setting::Policy(Policy::Deadline),
            3 => Setting::Policy(Policy::Strict),
            4 => Setting::Policy(Policy::Aged { step: Span(700) }),
            5 => Setting::Policy(Policy::Fifo),
            6 => Setting::Paused(bytes.once_in(2)),
            7 => Setting::Status(
                bytes.pick(&[Status::Active, Status::ReceiveDisabled, Status::Disabled]).unwrap_or_default(),
            ),
            8 => Setting::Lift(bytes.once_in(2)),
            9 => Setting::PrefetchShare(share(u16::from(bytes.byte()).saturating_mul(4).min(1_000))),
            10 => Setting::LockDuration(Span::seconds(u64::from(bytes.byte() % 20).saturating_add(1))),
            _ => Setting::Rescue(Rescue { after: Span::seconds(1), share: share(u16::from(bytes.byte())) }),
        };
        let change = Box::new(Request::Update { path, settings: vec![setting] });
        self.run(&Command::Administer { request: RequestTag(9), change });
    }

    fn browse(&mut self, bytes: &mut Bytes<'_>) {
        let mailbox = self.mailbox(bytes);
        let peeked = self.state.peek(&Peek::new(mailbox, 20), &self.stored).unwrap_or_default();
        let chosen = bytes.pick(&peeked.messages).map_or(Sequence(3), |delivery| delivery.sequence);
        let _ = self.state.explain(self.now, mailbox, chosen, &self.stored);
        let _ = self.state.list_sessions(mailbox, None, None, 0, 5);
        let from = chosen;
        let selection = match bytes.below(4) {
            0 => Selection::All,
            1 => Selection::Session(SessionId::from("a")),
            2 => Selection::Sequences(vec![chosen]),
            _ => Selection::Filter { filter: Arc::new(Filter::True), from },
        };
        let max = u32::from(bytes.byte() % 4);
        let request = RequestTag(10);
        if bytes.once_in(3) {
            if max == 0 {
                self.replay(mailbox, chosen);
                return;
            }
            self.run(&Command::DeleteMessages { request, mailbox, selection, before: self.now, max });
        } else {
            let (level, dry_run) = (Level(bytes.byte()), bytes.once_in(3));
            self.run(&Command::Reprioritise { request, mailbox, selection, level, max, dry_run });
        }
    }

    /// Sends a message again to where it came from.
    fn replay(&mut self, mailbox: MailboxId, sequence: Sequence) {
        let (request, to, level) = (RequestTag(10), mailbox.entity(), None);
        let message = Incoming {
            session_id: Some(Text::from("a")),
            ..Incoming::new(Payload::from_static(b"again"), Arc::new(MapMessage::new()))
        };
        self.run(&Command::Replay(Box::new(Replay { request, mailbox, sequence, to, message, level })));
    }

    fn transact(&mut self, bytes: &mut Bytes<'_>) {
        if bytes.once_in(2) {
            self.run(&Command::Declare { request: RequestTag(11) });
        } else if let Some(transaction) = self.transactions.pop() {
            let rollback = bytes.once_in(3);
            self.run(&Command::Discharge { request: Some(RequestTag(12)), transaction, rollback });
        }
    }

    /// Writes the front of a lane to disk.
    fn chill(&mut self, bytes: &mut Bytes<'_>) {
        if bytes.once_in(2) {
            let max = u32::from(bytes.byte() % 3).saturating_add(1);
            self.bring(max);
            return;
        }
        let mailbox = self.mailbox(bytes);
        let level = Level(bytes.byte() % 12);
        let count = bytes.below(6).saturating_add(1);
        let lane = self.state.mailboxes.get(&mailbox).and_then(|mailbox| mailbox.lanes.lane(level));
        let Some(lane) = lane else { return };
        let records: Vec<ColdRecord> = lane
            .chillable(&self.state.records)
            .take(count)
            .map(|(_, record)| ColdRecord {
                sequence: record.sequence,
                eligible: record.eligible,
                expires: self.state.expiry_of(record).0,
                location: record.location,
                size: record.size,
            })
            .collect();
        self.next = self.next.saturating_add(1);
        let run = RunId(self.next << 8);
        self.stored.runs.insert(run, records.clone());
        self.run(&Command::Chill(Box::new(Chill { mailbox, level, run, records })));
    }

    fn relocate(&mut self, bytes: &mut Bytes<'_>) {
        let mailbox = self.mailbox(bytes);
        let peeked = self.state.peek(&Peek::new(mailbox, 20), &self.stored).unwrap_or_default();
        let Some(chosen) = bytes.pick(&peeked.messages) else { return };
        self.next = self.next.saturating_add(1);
        let to = Location((1_000 << 32) | self.next);
        self.stored.messages.insert(to);
        let moved = Relocation { mailbox, sequence: chosen.sequence, from: chosen.location, to };
        self.run(&Command::Move { moves: vec![moved] });
    }

    /// The power goes, and the log is all there is.
    fn restart(&mut self, bytes: &mut Bytes<'_>) {
        if bytes.once_in(8) {
            self.audit();
            self.compare_with_replay();
            let mut state = State::new(limits());
            for fact in &self.journal {
                state.apply(fact);
            }
            self.state = state;
            self.receivers.clear();
            self.transactions.clear();
            self.asked.clear();
            self.run(&Command::Recover);
            self.audit();
        }
    }
}

fn path_text(name: &str) -> String {
    if SUBSCRIPTIONS.contains(&name) { format!("{TOPIC}/subscriptions/{name}") } else { name.to_owned() }
}

/// Low limits, so that they are met.
fn limits() -> Limits {
    Limits {
        batch_messages_max: 3,
        sessions_max: 2,
        receivers_per_mailbox_max: 5,
        selector_scan_max: 3,
        waiting_accepts_max: 2,
        duplicate_ids_max: 2,
        overlay_bytes_max: 40,
        transaction_operations_max: 3,
        transactions_max: 2,
        warm_below: 2,
        warm_batch: 2,
        scan_max: 10,
        ..Limits::default()
    }
}

fn settings(name: &str) -> Vec<Setting> {
    let lock = Setting::LockDuration(Span::seconds(5));
    let tries = Setting::MaxDeliveryCount(3);
    let target = |name: &str| EntityName::parse(name).ok();
    match name {
        "aged" => vec![lock, Setting::Policy(Policy::Aged { step: Span::seconds(2) }), tries],
        "dated" => vec![
            lock,
            Setting::Policy(Policy::Deadline),
            Setting::DefaultMessageTimeToLive(Span::seconds(20)),
            Setting::DeadLetteringOnMessageExpiration(true),
        ],
        "once" => vec![lock, Setting::RequiresDuplicateDetection(true)],
        "sessions" | "held" => vec![lock, Setting::RequiresSession(true), tries],
        "relay" => vec![lock, Setting::ForwardTo(target("plain"))],
        "onward" => vec![
            lock,
            Setting::ForwardTo(target("once")),
            Setting::ForwardDeadLetteredMessagesTo(target("aged")),
        ],
        TOPIC => vec![],
        _ => vec![lock, tries, Setting::AutoDeleteOnIdle(Span::minutes(5))],
    }
}

/// Everything durable about a state, as text. What connections do is left out.
fn picture(state: &State) -> BTreeSet<String> {
    let facts = state.clone().freeze();
    let facts = facts.facts().map(|fact| match fact {
        Fact::RestoredNamespace { seed, generation, tokens, next_entity, next_rule, .. } => {
            format!("{seed} {generation} {tokens} {next_entity} {next_rule}")
        }
        Fact::RestoredEntity { entity, .. } => {
            format!("{:?} {} {}", entity.path, entity.created, entity.updated)
        }
        other => format!("{other:?}"),
    });
    facts.collect()
}
