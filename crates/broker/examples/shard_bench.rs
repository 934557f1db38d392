//! How fast one shard is: send, deliver and complete of 1 KB messages, durable, on a real disk.
//!
//! ```text
//! cargo run --release -p vorrang-broker --example shard_bench -- [messages] [folder]
//! ```
//!
//! Senders and receivers are threads of this process that do as little as possible; the figures that
//! count are the processor time of the threads named `shard` and `log-commit`, per message.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a benchmark reads clocks and prints figures"
)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use smallvec::smallvec;
use vorrang_broker::access::Principal;
use vorrang_broker::api::{Acceptance, Answer, Event, Link, Operation, Outlet, Purpose, Request, Tag};
use vorrang_broker::shard::{Broker, Connection, NotTaken, Opaque, Schedule, Settings};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::entity::{self, EntityName, EntityPath, Setting};
use vorrang_engine::{EntityId, Incoming, Level, Limits, MailboxId, Timestamp};
use vorrang_filter::MapMessage;
use vorrang_log::Options;
use vorrang_log::disk::{Disk, RealDisk};

const SENDERS: u64 = 4;
const RECEIVERS: u32 = 4;
const CREDIT: u32 = 1_000;
const WINDOW: u64 = 2_000;
const PUSH: u64 = 100;

/// Hands everything to another thread.
struct Pipe(Mutex<Sender<Vec<Event>>>);

impl Outlet for Pipe {
    fn effects(&self, batch: Vec<Event>) {
        let _ = self.0.lock().expect("nobody panics holding this").send(batch);
    }
}

/// Counts accepted sends.
#[derive(Default)]
struct Accepted(AtomicU64);

impl Outlet for Accepted {
    fn effects(&self, batch: Vec<Event>) {
        for event in batch {
            if let Event::Accepted { count, .. } = event {
                self.0.fetch_add(u64::from(count), Ordering::Release);
            }
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let messages: u64 =
        arguments.next().map_or(1_000_000, |text| text.parse().expect("a number of messages"));
    let folder =
        arguments.next().map_or_else(|| std::env::temp_dir().join("vorrang-shard-bench"), PathBuf::from);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder to write to");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(&folder).expect("the folder opens"));
    let settings = Settings {
        limits: Limits::default(),
        log: Options::default(),
        decode: Arc::new(Opaque),
        keys: Vec::new(),
        snapshots: Schedule::default(),
    };
    let clock = Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    });
    let broker = Broker::open(&disk, settings, clock).expect("the shard opens");
    let (entity, mailbox) = create_queue(&broker);
    // Once to write every block of the disk that will be used, once to measure.
    for round in ["first blocks", "recycled"] {
        let (cpu_before, started) = (threads_ns(), Instant::now());
        round_trip(&broker, entity, mailbox, messages);
        let (cpu_after, elapsed) = (threads_ns(), started.elapsed());
        let per_message = |name: &str| {
            let used = cpu_after.get(name).unwrap_or(&0) - cpu_before.get(name).unwrap_or(&0);
            used as f64 / 1_000.0 / messages as f64
        };
        println!(
            "{round}: {messages} messages in {:.2} s = {:.0}/s; CPU per message: shard {:.2} µs, log-commit {:.2} µs",
            elapsed.as_secs_f64(),
            messages as f64 / elapsed.as_secs_f64(),
            per_message("shard"),
            per_message("log-commit"),
        );
    }
    broker.stop();
    let _ = std::fs::remove_dir_all(&folder);
}

/// Sends, receives and completes so many messages.
fn round_trip(broker: &Broker, entity: EntityId, mailbox: MailboxId, messages: u64) {
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| send(broker, entity, messages / SENDERS));
        }
        scope.spawn(|| receive(broker, mailbox, messages / SENDERS * SENDERS));
    });
}

fn send(broker: &Broker, entity: EntityId, messages: u64) {
    let accepted = Arc::new(Accepted::default());
    let connection = connect(broker, Arc::clone(&accepted) as Arc<dyn Outlet>);
    let payload = Bytes::from(vec![7_u8; 1_024]);
    let content = Arc::new(MapMessage::new());
    let mut sent = 0;
    while sent < messages {
        while sent - accepted.0.load(Ordering::Acquire) + PUSH > WINDOW {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        let batch = (sent..(sent + PUSH).min(messages)).map(|number| Request {
            tag: Tag(u32::try_from(number % (1 << 31)).expect("31 bits")),
            operation: Operation::Send {
                entity,
                via: None,
                transaction: None,
                messages: smallvec![Incoming::new(payload.clone(), Arc::clone(&content) as _)],
                acceptance: Acceptance::Plain,
            },
        });
        push(&connection, batch.collect());
        sent = (sent + PUSH).min(messages);
    }
    while accepted.0.load(Ordering::Acquire) < messages {
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}

fn receive(broker: &Broker, mailbox: MailboxId, messages: u64) {
    let (sender, events) = channel();
    let connection = connect(broker, Arc::new(Pipe(Mutex::new(sender))));
    let mut received = vec![0_u32; RECEIVERS as usize + 1];
    let mut tag = 0_u32;
    let mut request = |operation| {
        tag = tag.wrapping_add(1);
        Request { tag: Tag(tag), operation }
    };
    for link in 1..=RECEIVERS {
        let attach = Operation::Attach {
            link: Link(link),
            mailboxes: smallvec![mailbox],
            mode: ReceiveMode::PeekLock,
            min_level: Level(0),
            selector: None,
        };
        let credit = Operation::Credit { link: Link(link), limit: CREDIT, drain: false };
        push(&connection, vec![request(attach), request(credit)]);
    }
    // Every attach is answered too.
    let mut replies = 0;
    while replies < messages + u64::from(RECEIVERS) {
        let mut requests = Vec::new();
        for event in events.recv().expect("the shard lives") {
            match event {
                Event::Deliver { link, delivery, body } => {
                    let read =
                        || broker.payloads().read(delivery.location, delivery.size).expect("it is stored");
                    assert_eq!(body.unwrap_or_else(read).bytes.len(), 1_024);
                    let tokens = smallvec![delivery.token.expect("peek-lock")];
                    let settlement = Settlement::Complete;
                    requests.push(request(Operation::Settle {
                        mailbox,
                        tokens,
                        settlement,
                        transaction: None,
                    }));
                    if let Some(count) = received.get_mut(link.0 as usize) {
                        *count += 1;
                        if count.is_multiple_of(CREDIT / 4) {
                            let limit = *count + CREDIT;
                            requests.push(request(Operation::Credit { link, limit, drain: false }));
                        }
                    }
                }
                Event::Reply { .. } => replies += 1,
                other => println!("unexpected: {other:?}"),
            }
        }
        if !requests.is_empty() {
            push(&connection, requests);
        }
    }
}

fn connect(broker: &Broker, outlet: Arc<dyn Outlet>) -> Connection {
    let connection = broker.connect(outlet).expect("the shard lives");
    connection.become_principal(Arc::new(Principal::operator())).expect("the shard lives");
    connection
}

fn push(connection: &Connection, mut batch: Vec<Request>) {
    loop {
        match connection.try_push(batch, None) {
            Ok(()) => return,
            Err(NotTaken::Full(back)) => {
                batch = back;
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
            Err(NotTaken::Stopped(stopped)) => unreachable!("the shard stopped: {stopped}"),
        }
    }
}

fn create_queue(broker: &Broker) -> (EntityId, MailboxId) {
    let (sender, events) = channel();
    let connection = connect(broker, Arc::new(Pipe(Mutex::new(sender))));
    let name = EntityName::parse("bench").expect("a valid name");
    let path = EntityPath::of(name.clone());
    let create = entity::Request::CreateQueue { name, settings: vec![Setting::MaxSizeInMegabytes(81_920)] };
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
fn threads_ns() -> std::collections::BTreeMap<String, u64> {
    let mut times = std::collections::BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let ns: u64 = stat.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
        *times.entry(name.trim().to_owned()).or_default() += ns;
    }
    times
}
