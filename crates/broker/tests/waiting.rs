//! A disk that takes its time holds up what has to be durable, and nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected ends there"
)]

use bytes::Bytes;
use smallvec::smallvec;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use vorrang_broker::access::Principal;
use vorrang_broker::api::{Acceptance, Answer, Event, Found, Link, Operation, Outlet, Purpose, Request, Tag};
use vorrang_broker::shard::{Broker, Connection, Opaque, Preparing, Schedule, Settings};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::entity::{self, EntityName, EntityPath};
use vorrang_engine::{Incoming, Level, Limits, LockToken, Timestamp};
use vorrang_filter::MapMessage;
use vorrang_log::Options;
use vorrang_log::disk::{Disk, DiskError, FileName, SimDisk};

/// Longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A disk whose syncs wait for as long as it is shut.
#[derive(Debug)]
struct Gated {
    disk: SimDisk,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    shut: bool,
    /// Who waits.
    waiting: Vec<Who>,
}

/// Who syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The log's own thread.
    Log,
    /// Who runs the shard.
    Shard,
}

impl Gate {
    fn shut(&self, shut: bool) {
        self.state.lock().unwrap().shut = shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let thread = std::thread::current();
        let who = match thread.name() {
            Some(name) if name.starts_with("log-commit") => Who::Log,
            Some("shard") | None => Who::Shard,
            // Upkeep and snapshots: nobody waits for them.
            Some(_) => return,
        };
        let mut state = self.state.lock().unwrap();
        state.waiting.push(who);
        self.changed.notify_all();
        let mut state = self.changed.wait_while(state, |state| state.shut).unwrap();
        state.waiting.clear();
    }

    /// Waits until somebody waits for it.
    fn await_somebody(&self) -> Who {
        let state = self.state.lock().unwrap();
        let nobody = |state: &mut State| state.waiting.is_empty();
        let (state, timed_out) = self.changed.wait_timeout_while(state, PATIENCE, nobody).unwrap();
        assert!(!timed_out.timed_out(), "nobody syncs");
        state.waiting[0]
    }
}

impl Disk for Gated {
    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        self.disk.list()
    }
    fn create(&self, file: FileName, bytes: u64) -> Result<(), DiskError> {
        self.disk.create(file, bytes)
    }
    fn len(&self, file: FileName) -> Result<u64, DiskError> {
        self.disk.len(file)
    }
    fn read_at(&self, file: FileName, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.disk.read_at(file, offset, buffer)
    }
    fn write_at(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        self.disk.write_at(file, offset, parts)
    }
    fn write_past(&self, file: FileName, offset: u64, parts: &[&[u8]]) -> Result<(), DiskError> {
        self.disk.write_past(file, offset, parts)
    }
    fn zero(&self, file: FileName, offset: u64, bytes: usize) -> Result<(), DiskError> {
        self.disk.zero(file, offset, bytes)
    }
    fn sync(&self, file: FileName) -> Result<(), DiskError> {
        self.gate.pass();
        self.disk.sync(file)
    }
    fn sync_directory(&self) -> Result<(), DiskError> {
        self.disk.sync_directory()
    }
    fn rename(&self, from: FileName, to: FileName) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }
    fn remove(&self, file: FileName) -> Result<(), DiskError> {
        self.disk.remove(file)
    }
    fn forget(&self, file: FileName) -> Result<(), DiskError> {
        self.disk.forget(file)
    }
    fn free_bytes(&self) -> Result<u64, DiskError> {
        self.disk.free_bytes()
    }
    fn entropy(&self) -> Result<u64, DiskError> {
        self.disk.entropy()
    }
}

struct Pipe(Mutex<Sender<Vec<Event>>>);

impl Outlet for Pipe {
    fn effects(&self, batch: Vec<Event>) {
        let _ = self.0.lock().unwrap().send(batch);
    }
}

/// A connection that may do everything, and what it is told.
struct Client {
    connection: Arc<Connection>,
    events: Receiver<Vec<Event>>,
}

impl Client {
    fn connect(broker: &Broker) -> Client {
        let (sender, events) = channel();
        let connection = broker.connect(Arc::new(Pipe(Mutex::new(sender)))).unwrap();
        connection.become_principal(Arc::new(Principal::operator())).unwrap();
        Client { connection: Arc::new(connection), events }
    }

    /// Asks from a thread of its own, because who asks may have to wait for the disk.
    fn ask(&self, operations: Vec<Operation>) {
        let connection = Arc::clone(&self.connection);
        let requests = operations.into_iter().map(|operation| Request { tag: Tag(1), operation }).collect();
        std::thread::spawn(move || connection.try_push(requests, None).map_err(|error| format!("{error:?}")));
    }

    /// Waits for the first event that `wanted` takes.
    fn wait<T>(&self, wanted: impl Fn(Event) -> Option<T>) -> T {
        loop {
            let batch = self.events.recv_timeout(PATIENCE).expect("it is told in time");
            if let Some(found) = batch.into_iter().find_map(&wanted) {
                return found;
            }
        }
    }

    /// Makes the queue of the test, and finds it.
    fn make_queue(&self) -> Found {
        let name = EntityName::parse("q").unwrap();
        let path = EntityPath::of(name.clone());
        let create = entity::Request::CreateQueue { name, settings: Vec::new() };
        let find = Operation::Find { path, purpose: Purpose::Receive };
        self.ask(vec![Operation::Administer(Box::new(create))]);
        self.wait(|event| matches!(event, Event::Reply { .. }).then_some(()));
        self.ask(vec![find]);
        self.wait(|event| match event {
            Event::Answer { answer: Answer::Found(found), .. } => Some(found),
            _ => None,
        })
    }

    fn accepted(&self) {
        self.wait(|event| matches!(event, Event::Accepted { .. }).then_some(()));
    }

    fn delivered(&self) -> LockToken {
        self.wait(|event| if let Event::Deliver { delivery, .. } = event { delivery.token } else { None })
    }
}

struct World {
    gate: Arc<Gate>,
    time: Arc<AtomicU64>,
    broker: Broker,
    found: Found,
    client: Client,
    workers: Vec<Client>,
}

impl World {
    /// A queue with so many messages, and so many workers.
    fn new(messages: usize, workers: usize) -> World {
        let gate = Arc::new(Gate::default());
        let time = Arc::new(AtomicU64::new(1_000));
        let broker = prepare(&gate, &time).finish().unwrap().0;
        let client = Client::connect(&broker);
        let found = client.make_queue();
        let world = World { gate, time, broker, found, client, workers: Vec::new() };
        for _ in 0..messages {
            world.client.ask(vec![world.send()]);
            world.client.accepted();
        }
        let workers = (0..workers).map(|_| Client::connect(&world.broker)).collect();
        World { workers, ..world }
    }

    fn send(&self) -> Operation {
        send(&self.found)
    }

    /// So much time passes that a shard that kept somebody waiting has forgotten it. By itself the clock stands still.
    fn pass_time(&self) {
        self.time.fetch_add(1_000, Ordering::SeqCst);
    }

    /// A worker attaches, and takes a message.
    fn attach(&self, worker: usize) -> LockToken {
        let attach = Operation::Attach {
            link: Link(1),
            mailboxes: smallvec![self.found.mailbox],
            mode: ReceiveMode::PeekLock,
            min_level: Level(0),
            selector: None,
        };
        self.workers[worker].ask(vec![attach, credit(1)]);
        self.workers[worker].delivered()
    }

    /// Waits until everything decided so far is durable.
    fn rest(&self) {
        let path = EntityPath::parse("q").unwrap();
        self.client.ask(vec![Operation::Find { path, purpose: Purpose::Receive }]);
        self.client.wait(|event| matches!(event, Event::Answer { .. }).then_some(()));
    }

    fn complete(&self, token: LockToken) -> Operation {
        Operation::Settle {
            mailbox: self.found.mailbox,
            tokens: smallvec![token],
            settlement: Settlement::Complete,
            transaction: None,
        }
    }
}

/// A broker on a new disk behind this gate, before its first client.
fn prepare(gate: &Arc<Gate>, time: &Arc<AtomicU64>) -> Preparing {
    let disk: Arc<dyn Disk> = Arc::new(Gated { disk: SimDisk::new(1), gate: Arc::clone(gate) });
    // The log commits on the spot what is small against a batch.
    let log = Options {
        limits: vorrang_log::Limits { batch_bytes: 64 << 10, record_bytes: 2 << 10 },
        segment_bytes: 256 << 10,
        first_segment_bytes: 256 << 10,
        ring_bytes: 4 << 20,
        ..Options::tiny()
    };
    let settings = Settings {
        limits: Limits::default(),
        log,
        decode: Arc::new(Opaque),
        keys: Vec::new(),
        snapshots: Schedule::default(),
    };
    let time = Arc::clone(time);
    let clock = Arc::new(move || Timestamp(time.load(Ordering::SeqCst)));
    Broker::prepare(&disk, settings, clock).unwrap()
}

fn send(found: &Found) -> Operation {
    let message = Incoming::new(Bytes::from_static(b"body"), Arc::new(MapMessage::new()));
    Operation::Send {
        entity: found.entity,
        via: None,
        transaction: None,
        messages: smallvec![message],
        acceptance: Acceptance::Plain,
    }
}

fn credit(limit: u32) -> Operation {
    Operation::Credit { link: Link(1), limit, drain: false }
}

#[test]
fn a_message_that_is_durable_is_handed_out_while_a_settlement_waits_for_the_disk() {
    let world = World::new(100, 1);
    let mut token = world.attach(0);
    world.rest();
    // Until it was the shard that waited, and not the log's thread.
    for limit in 2.. {
        world.pass_time();
        world.gate.shut(true);
        // What is done and what is wanted next come together, as from a worker.
        world.workers[0].ask(vec![world.complete(token), credit(limit)]);
        token = world.workers[0].delivered();
        let waited = world.gate.await_somebody();
        world.gate.shut(false);
        world.workers[0].wait(|event| matches!(event, Event::Reply { .. }).then_some(()));
        if waited == Who::Shard {
            break;
        }
        assert!(limit < 100, "the log's thread waited each time");
    }
    world.broker.stop();
}

#[test]
fn a_shard_that_kept_somebody_waiting_leaves_it_to_the_log_to_wait_for_the_disk() {
    let world = World::new(3, 2);
    // Alone, the shard waits for the disk itself, once the log's thread sleeps, how soon is its own affair, and once it has
    // forgotten whom it kept waiting: what it told may be answered before it has looked whether anybody came.
    let mut tries = 0;
    loop {
        world.pass_time();
        world.gate.shut(true);
        world.client.ask(vec![world.send()]);
        if world.gate.await_somebody() == Who::Shard {
            break;
        }
        world.gate.shut(false);
        world.client.accepted();
        tries += 1;
        assert!(tries < 500, "the log's thread waited each time");
    }
    // Another one wants something meanwhile, and finds nobody to decide it.
    world.workers[0].ask(vec![world.send()]);
    while world.broker.filling().0 == 0 {
        std::thread::yield_now();
    }
    world.gate.shut(false);
    world.client.accepted();
    world.workers[0].accepted();
    // So the log's thread waits from now on, and whoever wants something that is durable gets it.
    world.gate.shut(true);
    world.client.ask(vec![world.send()]);
    assert_eq!(world.gate.await_somebody(), Who::Log);
    world.attach(1);
    world.gate.shut(false);
    world.client.accepted();
    world.broker.stop();
}

#[test]
fn what_is_arranged_before_the_first_client_does_not_wait_for_the_disk_and_what_a_client_is_told_does() {
    let gate = Arc::new(Gate::default());
    gate.shut(true);
    let preparing = prepare(&gate, &Arc::new(AtomicU64::new(1_000)));
    let found = Client::connect(preparing.broker()).make_queue();
    let (broker, prepared) = preparing.finish().unwrap();
    let client = Client::connect(&broker);
    client.ask(vec![send(&found)]);
    assert_eq!(gate.await_somebody(), Who::Log);
    // It is told nothing for as long as the disk is shut; a twentieth of a second shows a broker that does not care.
    let told = client.events.recv_timeout(Duration::from_millis(50));
    assert!(told.is_err(), "{told:?}");
    gate.shut(false);
    client.accepted();
    prepared.wait().unwrap();
    broker.stop();
}
