//! What the benchmarks share: clients that do as little as possible, and figures about this process.
#![allow(dead_code, reason = "each benchmark uses its own part of this")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use smallvec::smallvec;
use vorrang_broker::access::Principal;
use vorrang_broker::api::{Acceptance, Answer, Event, Operation, Outlet, Purpose, Request, Tag};
use vorrang_broker::shard::{Broker, Connection, NotTaken, Opaque, Schedule, Settings};
use vorrang_engine::entity::priority::{Rescue, Share};
use vorrang_engine::entity::{self, EntityName, EntityPath, Setting};
use vorrang_engine::{EntityId, Incoming, Limits, MailboxId, Timestamp};
use vorrang_filter::MapMessage;
use vorrang_log::Options;
use vorrang_log::disk::{Disk, RealDisk};

const WINDOW: u64 = 2_000;
const PUSH: u64 = 100;

/// Makes an empty folder.
pub(crate) fn clear(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).expect("a folder to write to");
}

/// A broker on what is in a folder.
pub(crate) fn open(folder: &Path, log: Options) -> Broker {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(folder).expect("the folder opens"));
    let settings = Settings {
        limits: Limits::default(),
        log,
        decode: Arc::new(Opaque),
        keys: Vec::new(),
        snapshots: Schedule::default(),
    };
    let clock = Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    });
    Broker::open(&disk, settings, clock).expect("the shard opens")
}

/// Hands everything to another thread.
pub(crate) struct Pipe(pub(crate) Mutex<Sender<Vec<Event>>>);

impl Outlet for Pipe {
    fn effects(&self, batch: Vec<Event>) {
        let _ = self.0.lock().expect("nobody panics holding this").send(batch);
    }
}

/// Counts what became of sends.
#[derive(Default)]
struct Accepted {
    accepted: AtomicU64,
    refused: AtomicU64,
}

impl Outlet for Accepted {
    fn effects(&self, batch: Vec<Event>) {
        for event in batch {
            match event {
                Event::Accepted { count, .. } => self.accepted.fetch_add(u64::from(count), Ordering::Release),
                Event::Refused { .. } => self.refused.fetch_add(1, Ordering::Release),
                _ => 0,
            };
        }
    }
}

/// Sends so many messages of `bytes` each over the ten levels a sender can name, a bounded number on their
/// way at a time.
pub(crate) fn send(broker: &Broker, entity: EntityId, messages: u64, bytes: usize) {
    let told = Arc::new(Accepted::default());
    let connection = connect(broker, Arc::clone(&told) as Arc<dyn Outlet>);
    let payload = Bytes::from(vec![7_u8; bytes]);
    let content = Arc::new(MapMessage::new());
    let (mut sent, mut refused) = (0, 0);
    loop {
        let accepted = told.accepted.load(Ordering::Acquire);
        if accepted >= messages {
            break;
        }
        let refused_now = told.refused.load(Ordering::Acquire);
        if refused_now > refused {
            refused = refused_now; // the broker says that it is busy: wait, then send them again
            std::thread::sleep(Duration::from_millis(20));
        }
        let (on_their_way, missing) = (sent - accepted - refused, messages + refused - sent);
        if missing == 0 || on_their_way + PUSH > WINDOW {
            std::thread::sleep(Duration::from_micros(200));
            continue;
        }
        let batch = (sent..sent + PUSH.min(missing)).map(|number| Request {
            tag: Tag(u32::try_from(number % (1 << 31)).expect("31 bits")),
            operation: Operation::Send {
                entity,
                via: None,
                transaction: None,
                messages: smallvec![Incoming {
                    priority: u8::try_from(number % 10).ok(),
                    ..Incoming::new(payload.clone(), Arc::clone(&content) as _)
                }],
                acceptance: Acceptance::Plain,
            },
        });
        push(&connection, batch.collect());
        sent += PUSH.min(missing);
    }
    if refused > 0 {
        println!("    {refused} sends were refused and sent again");
    }
}

/// A connection that may do everything.
pub(crate) fn connect(broker: &Broker, outlet: Arc<dyn Outlet>) -> Connection {
    let connection = broker.connect(outlet).expect("the shard lives");
    connection.become_principal(Arc::new(Principal::operator())).expect("the shard lives");
    connection
}

/// Hands requests over, waiting for room.
pub(crate) fn push(connection: &Connection, mut batch: Vec<Request>) {
    loop {
        match connection.try_push(batch, None) {
            Ok(_) => return,
            Err(NotTaken::Full(back)) => {
                batch = back;
                std::thread::sleep(Duration::from_micros(100));
            }
            Err(NotTaken::Stopped(stopped)) => unreachable!("the shard stopped: {stopped}"),
        }
    }
}

/// A queue that is never full, and strict: nobody is rescued, however long the measurement takes.
pub(crate) fn create_queue(broker: &Broker) -> (EntityId, MailboxId) {
    let (sender, events) = channel();
    let connection = connect(broker, Arc::new(Pipe(Mutex::new(sender))));
    let name = EntityName::parse("bench").expect("a valid name");
    let path = EntityPath::of(name.clone());
    let strict = Rescue { share: Share::NONE, ..Rescue::default() };
    let settings = vec![Setting::MaxSizeInMegabytes(81_920), Setting::Rescue(strict)];
    let create = entity::Request::CreateQueue { name, settings };
    push(
        &connection,
        vec![
            Request { tag: Tag(1), operation: Operation::Administer(Box::new(create)) },
            Request { tag: Tag(2), operation: Operation::Find { path, purpose: Purpose::Send } },
        ],
    );
    loop {
        for event in events.recv().expect("the shard lives") {
            if let Event::Answer { answer: Answer::Found(found), .. } = event {
                return (found.entity, found.mailbox);
            }
        }
    }
}

/// Processor time of every thread of this process, by name.
pub(crate) fn threads_ns() -> std::collections::BTreeMap<String, u64> {
    let mut times = std::collections::BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let ns: u64 = stat.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
        *times.entry(name.trim().to_owned()).or_default() += ns;
    }
    times
}
