//! A shard over a simulated disk, driven step by step, with everything it said.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "a test that meets something unexpected ends there"
)]
#![allow(dead_code, unreachable_pub, reason = "each test uses its own part of this")]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use smallvec::smallvec;
use vorrang_broker::access::Principal;
use vorrang_broker::api::{
    Acceptance, Answer, Condition, Event, Link, Operation, Outlet, Purpose, Question, Request, Tag,
};
use vorrang_broker::shard::{
    Arrivals, Commits, Core, Item, Opaque, OpenError, PeerId, Schedule, Settings, Snapshot, open,
};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::entity::{self, EntityName, EntityPath, Setting};
use vorrang_engine::{EntityId, Incoming, Level, Limits, LockToken, MailboxId, Span, Timestamp};
use vorrang_filter::MapMessage;
use vorrang_log::dice::Dice;
use vorrang_log::disk::{Disk, Fate, Pattern, SimDisk, Torn};
use vorrang_log::{Options, Pace};

/// Everything a connection was told.
#[derive(Default)]
pub struct Told(Mutex<Vec<Event>>);

impl Outlet for Told {
    fn effects(&self, batch: Vec<Event>) {
        self.0.lock().unwrap().extend(batch);
    }
}

impl Told {
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A shard and its one connection.
pub struct World {
    pub disk: SimDisk,
    pub core: Core,
    pub told: Arc<Told>,
    pub now: Timestamp,
    pub peer: PeerId,
    pub tag: u32,
    /// Whether errors were planted in the disk.
    pub failing: bool,
    arrived: Arrivals,
}

pub fn settings(log: Options) -> Settings {
    let snapshots = Schedule { pace: Pace::UNLIMITED, bytes_at_stop: 4_096, ..Schedule::default() };
    Settings { limits: Limits::default(), log, decode: Arc::new(Opaque), keys: Vec::new(), snapshots }
}

pub fn try_open(disk: &SimDisk, now: Timestamp) -> Result<Core, OpenError> {
    try_open_within(disk, now, Limits::default())
}

pub fn try_open_within(disk: &SimDisk, now: Timestamp, limits: Limits) -> Result<Core, OpenError> {
    try_open_with(disk, now, Settings { limits, ..settings(Options::tiny()) })
}

fn try_open_with(disk: &SimDisk, now: Timestamp, settings: Settings) -> Result<Core, OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    open(&disk, settings, Commits::ByHand, Arc::new(|_| ()), now).map(|(core, _)| core)
}

impl World {
    /// Opens what is on the disk, and connects as somebody who may do everything.
    pub fn open(disk: SimDisk, now: Timestamp) -> World {
        World::open_within(disk, now, Limits::default())
    }

    /// The same, with limits of its own.
    pub fn open_within(disk: SimDisk, now: Timestamp, limits: Limits) -> World {
        World::open_with(disk, now, Settings { limits, ..settings(Options::tiny()) })
    }

    /// The same, with settings of its own.
    pub fn open_with(disk: SimDisk, now: Timestamp, settings: Settings) -> World {
        let core = try_open_with(&disk, now, settings).unwrap();
        let told = Arc::new(Told::default());
        let peer = PeerId(1);
        let mut world =
            World { disk, core, told, now, peer, tag: 0, failing: false, arrived: Arrivals::default() };
        let outlet = Arc::clone(&world.told) as Arc<dyn Outlet>;
        world.item(Item::Open(outlet));
        world.item(Item::Become(Arc::new(Principal::operator())));
        world.step();
        world
    }

    pub fn item(&mut self, item: Item) {
        self.arrived.push(self.peer, item);
    }

    /// Asks for something, and says under which tag.
    pub fn ask(&mut self, operation: Operation) -> Tag {
        self.tag += 1;
        self.item(Item::Request(Request { tag: Tag(self.tag), operation }));
        Tag(self.tag)
    }

    pub fn step(&mut self) {
        self.core.step(self.now, &mut self.arrived);
    }

    /// Lets the disk catch up completely, and the shard notice.
    pub fn settle(&mut self) {
        for round in 0..200 {
            self.step();
            let _ = self.core.flush();
            let busy = self.core.next_wake().is_some_and(|wake| wake <= self.now);
            if round >= 2 && !busy {
                break;
            }
        }
        self.step();
    }

    /// Asks for something, lets it happen, and returns what was said meanwhile.
    pub fn done(&mut self, operation: Operation) -> Vec<Event> {
        self.ask(operation);
        self.settle();
        self.told.take()
    }

    pub fn queue(&mut self, name: &str, settings: Vec<Setting>) -> (EntityId, MailboxId) {
        let name = EntityName::parse(name).unwrap();
        let request = entity::Request::CreateQueue { name: name.clone(), settings };
        self.done(Operation::Administer(Box::new(request)));
        self.find(name.as_str()).expect("the queue was just created")
    }

    pub fn find(&mut self, path: &str) -> Option<(EntityId, MailboxId)> {
        let path = EntityPath::parse(path).unwrap();
        let events = self.done(Operation::Find { path, purpose: Purpose::Receive });
        events.into_iter().find_map(|event| match event {
            Event::Answer { answer: Answer::Found(found), .. } => Some((found.entity, found.mailbox)),
            _ => None,
        })
    }

    pub fn send(&mut self, entity: EntityId, payload: Bytes) -> Tag {
        self.ask(send(entity, payload))
    }

    pub fn attach(&mut self, link: u32, mailbox: MailboxId, mode: ReceiveMode) -> Tag {
        self.ask(Operation::Attach {
            link: Link(link),
            mailboxes: smallvec![mailbox],
            mode,
            min_level: Level(0),
            selector: None,
        })
    }

    pub fn settle_message(&mut self, mailbox: MailboxId, token: LockToken, settlement: Settlement) -> Tag {
        self.ask(Operation::Settle { mailbox, tokens: smallvec![token], settlement, transaction: None })
    }

    /// Writes a snapshot, as far as the disk lets it.
    pub fn snapshot(&mut self) {
        let written = self.core.snapshot().and_then(Snapshot::write);
        let _ = self.core.flush();
        if let Ok(unfinished) = written {
            let _ = unfinished.finish();
        }
    }

    /// How the shard is doing.
    pub fn condition(&mut self) -> Condition {
        match self.done(Operation::Ask(Question::Condition)).pop() {
            Some(Event::Answer { answer: Answer::Condition(condition), .. }) => *condition,
            other => panic!("{other:?}"),
        }
    }

    /// Empties old segments if the ring runs short, as far as the disk lets it.
    pub fn evacuate(&mut self) -> bool {
        let Some(Ok(evacuation)) = self.core.evacuation_if_due() else { return false };
        if let Ok(evacuated) = evacuation.run() {
            self.core.evacuated(evacuated);
        }
        true
    }

    /// Takes waiting messages out of memory if there are many, as far as the disk lets it.
    pub fn chill(&mut self) -> bool {
        let Some(Ok(chilling)) = self.core.chilling_if_due() else { return false };
        if let Ok(commands) = chilling.run() {
            self.core.take_over(commands);
        }
        true
    }

    pub fn advance(&mut self, span: Span) {
        self.now = self.now.after(span);
    }

    /// The names of all files.
    pub fn disk_files(&self) -> Vec<String> {
        self.disk.list().unwrap().iter().map(ToString::to_string).collect()
    }

    /// The disk as a power failure now may leave it.
    pub fn crashed_disk(&self, dice: &mut Dice) -> SimDisk {
        let fates: Vec<Fate> = self
            .disk
            .unsynced()
            .into_iter()
            .map(|bytes| match dice.below(5) {
                0 => Fate::Kept,
                1 => Fate::Lost,
                2 => Fate::Torn(Torn { kept_bytes: dice.index(bytes + 1), rest: Pattern::Garbage }),
                3 => Fate::Torn(Torn { kept_bytes: dice.index(bytes + 1), rest: Pattern::Stale }),
                _ => Fate::Scattered(dice.roll()),
            })
            .collect();
        self.disk.crash(&fates)
    }
}

pub fn send(entity: EntityId, payload: Bytes) -> Operation {
    Operation::Send {
        entity,
        via: None,
        transaction: None,
        messages: smallvec![Incoming::new(payload, Arc::new(MapMessage::new()))],
        acceptance: Acceptance::Plain,
    }
}
