//! The shard on its thread, on a real disk: it answers, it stops in good order, and it finds everything
//! again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets something unexpected ends there")]

use bytes::Bytes;
use smallvec::smallvec;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vorrang_broker::access::{Principal, Scope, Token, token};
use vorrang_broker::api::{Acceptance, Answer, Event, Link, Operation, Outlet, Purpose, Request, Tag};
use vorrang_broker::shard::{Broker, Connection, Handed, Opaque, Schedule, Settings};
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};
use vorrang_engine::entity::{self, EntityName, EntityPath, Setting};
use vorrang_engine::{Incoming, Level, Limits, Span, Timestamp};
use vorrang_filter::MapMessage;
use vorrang_log::Options;
use vorrang_log::disk::{Disk, RealDisk};

/// Longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

struct Pipe(Mutex<Sender<Vec<Event>>>);

impl Outlet for Pipe {
    fn effects(&self, batch: Vec<Event>) {
        let _ = self.0.lock().unwrap().send(batch);
    }
}

/// A connection that may do everything, and what it is told.
struct Client {
    connection: Connection,
    events: Receiver<Vec<Event>>,
    tag: u32,
}

impl Client {
    fn connect(broker: &Broker) -> Client {
        let (sender, events) = channel();
        let connection = broker.connect(Arc::new(Pipe(Mutex::new(sender)))).unwrap();
        connection.become_principal(Arc::new(Principal::operator())).unwrap();
        Client { connection, events, tag: 0 }
    }

    fn ask(&mut self, operation: Operation) -> Handed {
        self.tag += 1;
        let request = Request { tag: Tag(self.tag), operation };
        self.connection.try_push(vec![request], None).map_err(|error| format!("{error:?}")).unwrap()
    }

    /// Waits for the first event that `wanted` takes.
    fn wait<T>(&self, wanted: impl Fn(Event) -> Option<T>) -> T {
        loop {
            let batch = self.events.recv_timeout(PATIENCE).unwrap();
            if let Some(found) = batch.into_iter().find_map(&wanted) {
                return found;
            }
        }
    }
}

/// A clock that a test can set.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

fn open(folder: &Path, clock: &Clock, keys: Vec<AuthorizationRule>) -> Broker {
    open_with(folder, clock, keys, Options::tiny())
}

fn open_with(folder: &Path, clock: &Clock, keys: Vec<AuthorizationRule>, log: Options) -> Broker {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(folder).unwrap());
    let settings = Settings {
        limits: Limits::default(),
        log,
        decode: Arc::new(Opaque),
        keys,
        snapshots: Schedule { bytes: 20_000, ..Schedule::default() },
    };
    let clock = clock.0.clone();
    Broker::open(&disk, settings, Arc::new(move || Timestamp(clock.load(Ordering::SeqCst)))).unwrap()
}

fn create(client: &mut Client, settings: Vec<Setting>) -> vorrang_broker::api::Found {
    let name = EntityName::parse("q").unwrap();
    let path = EntityPath::of(name.clone());
    client.ask(Operation::Administer(Box::new(entity::Request::CreateQueue { name, settings })));
    client.ask(Operation::Find { path, purpose: Purpose::Receive });
    client.wait(|event| match event {
        Event::Answer { answer: Answer::Found(found), .. } => Some(found),
        _ => None,
    })
}

fn send(client: &mut Client, entity: vorrang_engine::EntityId, text: &str) -> Handed {
    let payload = Bytes::copy_from_slice(text.as_bytes());
    client.ask(Operation::Send {
        entity,
        via: None,
        transaction: None,
        messages: smallvec![Incoming::new(payload, Arc::new(MapMessage::new()))],
        acceptance: Acceptance::Plain,
    })
}

fn receive(client: &mut Client, link: u32, found: &vorrang_broker::api::Found) -> Event {
    client.ask(Operation::Attach {
        link: Link(link),
        mailboxes: smallvec![found.mailbox],
        mode: ReceiveMode::PeekLock,
        min_level: Level(0),
        selector: None,
    });
    client.ask(Operation::Credit { link: Link(link), limit: 1, drain: false });
    client.wait(|event| matches!(event, Event::Deliver { .. }).then_some(event))
}

#[test]
fn a_shard_that_sleeps_is_run_by_who_brings_it_something() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::default();
    // The log commits on the spot what is small against a batch.
    let log = Options {
        limits: vorrang_log::Limits { batch_bytes: 64 << 10, record_bytes: 2 << 10 },
        segment_bytes: 256 << 10,
        first_segment_bytes: 256 << 10,
        ring_bytes: 4 << 20,
        ..Options::tiny()
    };
    let broker = open_with(folder.path(), &clock, Vec::new(), log);
    let mut client = Client::connect(&broker);
    let queue = create(&mut client, Vec::new());
    let accepted = |event: Event| matches!(event, Event::Accepted { .. }).then_some(());
    // How soon the thread sleeps again is its own affair; once it does, the answer is there when the push returns.
    let mut sent = 0;
    loop {
        let handed = send(&mut client, queue.entity, "one");
        sent += 1;
        if handed == Handed::Done {
            let batch = client.events.try_recv().expect("what was carried out is answered");
            assert!(batch.into_iter().any(|event| accepted(event).is_some()));
            break;
        }
        client.wait(accepted);
        assert!(sent < 500, "the thread answered all of them");
    }
    // What was decided outside the thread is found by the thread, and the other way round.
    for number in 1..=sent {
        assert!(matches!(receive(&mut client, number, &queue), Event::Deliver { .. }), "{number} of {sent}");
    }
    broker.stop();
}

#[test]
fn a_stopped_broker_tells_its_connections_and_finds_everything_again() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock(Arc::new(AtomicU64::new(1_000)));
    let broker = open(folder.path(), &clock, vec![]);
    let mut client = Client::connect(&broker);
    let found = create(&mut client, vec![]);
    for number in 0..400 {
        send(&mut client, found.entity, &format!("message {number} {}", "x".repeat(200)));
    }
    let mut accepted = 0;
    while accepted < 400 {
        accepted +=
            client.wait(|event| if let Event::Accepted { count, .. } = event { Some(count) } else { None });
    }
    broker.stop();
    let reason = client.wait(|event| if let Event::Stopped { reason } = event { Some(reason) } else { None });
    assert!(reason.contains("shutting down"), "{reason}");
    assert!(broker.stopped().is_some());
    assert!(broker.connect(Arc::new(Pipe(Mutex::new(channel().0)))).is_err());
    drop(broker);

    let broker = open(folder.path(), &clock, vec![]);
    assert!(broker.findings().closed, "{:?}", broker.findings());
    let mut client = Client::connect(&broker);
    let Event::Deliver { delivery, body, .. } = receive(&mut client, 1, &found) else { panic!() };
    assert!(body.is_none(), "what was sent before the restart is on disk");
    let body = broker.payloads().read(delivery.location, delivery.size).unwrap();
    assert!(body.bytes.starts_with(b"message 0 "));
    broker.stop();
}

#[test]
fn a_lock_runs_out_by_the_clock_alone() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock(Arc::new(AtomicU64::new(1_000)));
    let broker = open(folder.path(), &clock, vec![]);
    let mut client = Client::connect(&broker);
    let found = create(&mut client, vec![Setting::LockDuration(Span::seconds(5))]);
    send(&mut client, found.entity, "once");
    let Event::Deliver { delivery, .. } = receive(&mut client, 1, &found) else { panic!() };
    assert_eq!(delivery.deliveries, 0);
    client.ask(Operation::Credit { link: Link(1), limit: 2, drain: false });
    clock.0.store(6_001, Ordering::SeqCst);
    let again = client.wait(|event| match event {
        Event::Deliver { delivery, .. } => Some(delivery.deliveries),
        _ => None,
    });
    assert_eq!(again, 1);
    broker.stop();
}

#[test]
fn keys_of_an_entity_come_and_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let rule = |name: &str| AuthorizationRule {
        key_name: name.into(),
        primary_key: Secret::new("one"),
        secondary_key: Secret::new("two"),
        rights: Rights { listen: true, ..Rights::default() },
    };
    let broker = open(folder.path(), &Clock::default(), vec![rule("root")]);
    let grants = |name: &str| broker.keys().log_in(name, "one").map_or(0, |grants| grants.len());
    assert_eq!((grants("root"), grants("own")), (1, 0));
    let mut client = Client::connect(&broker);
    create(&mut client, vec![Setting::AuthorizationRules(vec![rule("own")])]);
    assert_eq!((grants("root"), grants("own")), (1, 1));
    let text = format!(
        "SharedAccessSignature sr=sb%3a%2f%2fh%2fq&sig={}&se=9999999999&skn=own",
        token::sign(&Secret::new("two"), "sb%3a%2f%2fh%2fq", "9999999999").replace('+', "%2B")
    );
    let token = Token::parse(&text).unwrap();
    let verify =
        |path: &str| broker.keys().verify(&token, &Scope::of_address(path).unwrap(), Timestamp(0)).is_ok();
    assert_eq!((verify("q"), verify("other")), (true, false));
    let path = EntityPath::parse("q").unwrap();
    client.ask(Operation::Administer(Box::new(entity::Request::Delete { path })));
    client.wait(|event| matches!(event, Event::Reply { .. }).then_some(()));
    assert_eq!((grants("root"), grants("own")), (1, 0));
    broker.stop();
}
