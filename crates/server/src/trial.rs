//! A broker in memory with a clock set by hand, and somebody who may ask it everything: for tests of what
//! stands around a broker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use smallvec::smallvec;
use tokio::time::Instant;
use vorrang_broker::api::{Acceptance, Answer, Operation, Purpose};
use vorrang_broker::shard::{self, Broker};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};
use vorrang_engine::entity::priority::{Class, ClassName};
use vorrang_engine::entity::{self, EntityName, EntityPath, Setting};
use vorrang_engine::{Delivery, EntityId, Incoming, Level, MailboxId, Span, Timestamp};
use vorrang_filter::MapMessage;
use vorrang_log::disk::{Disk, SimDisk};

use crate::caller::{Answered, Caller};
use crate::http::Site;
use crate::stop::{Stop, StopSwitch};
use crate::watch::Watch;

/// The name and text of the key that opens everything.
pub(crate) const KEY: (&str, &str) = ("RootManageSharedAccessKey", "a secret of the tests");

/// A broker and its operator.
pub(crate) struct Trial {
    pub(crate) broker: Broker,
    pub(crate) operator: Caller,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) stop: Stop,
    /// Dropping it would be a wish to stop.
    _switch: StopSwitch,
    now: Arc<AtomicU64>,
}

impl Trial {
    pub(crate) fn new() -> Trial {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let key = Secret::new(KEY.1);
        let root = AuthorizationRule {
            key_name: Arc::from(KEY.0),
            primary_key: key.clone(),
            secondary_key: key,
            rights: Rights { send: true, listen: true, manage: true },
        };
        let settings = shard::Settings {
            limits: vorrang_engine::Limits::default(),
            log: vorrang_log::Options { ring_bytes: 16 << 20, ..vorrang_log::Options::tiny() },
            decode: Arc::new(shard::Opaque),
            keys: vec![root],
            snapshots: shard::Schedule::default(),
        };
        let now = Arc::new(AtomicU64::new(1_000_000_000));
        let clock = Arc::clone(&now);
        let clock: shard::Clock = Arc::new(move || Timestamp(clock.load(Ordering::SeqCst)));
        let broker = Broker::open(&disk, settings, clock).unwrap();
        let operator = Caller::operator(&broker).unwrap();
        let (switch, stop) = StopSwitch::new();
        Trial { broker, operator, disk, stop, _switch: switch, now }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    pub(crate) fn advance(&self, span: Span) {
        self.now.fetch_add(span.0, Ordering::SeqCst);
    }

    /// What HTTP doors work with.
    pub(crate) fn site(&self, change: impl FnOnce(&mut Watch)) -> Arc<Site> {
        let mut watch = Watch {
            registry: Arc::default(),
            targets: Arc::default(),
            spans: None,
            disk: Arc::clone(&self.disk),
            disk_figures: Arc::default(),
            amqp_places: Arc::new(crate::places::Places::new(10)),
            http_places: Arc::new(crate::places::Places::new(10)),
            scrapes: crate::http::metrics::Scrapes::default(),
            metrics_open: false,
        };
        change(&mut watch);
        Arc::new(Site {
            broker: self.broker.clone(),
            namespace: "trial".to_owned(),
            started: self.now(),
            workshop: None,
            stop: self.stop.clone(),
            watch: Arc::new(watch),
            feed: crate::http::api::Feed::default(),
        })
    }

    pub(crate) async fn ask(&self, operation: Operation) -> Answered {
        self.operator.ask(operation).await.unwrap().unwrap()
    }

    pub(crate) async fn queue(&self, name: &str, settings: Vec<Setting>) -> (EntityId, MailboxId) {
        let name = EntityName::parse(name).unwrap();
        let path = EntityPath::of(name.clone());
        self.ask(Operation::Administer(Box::new(entity::Request::CreateQueue { name, settings }))).await;
        match self.ask(Operation::Find { path, purpose: Purpose::Send }).await {
            Answered::Answer(Answer::Found(found)) => (found.entity, found.mailbox),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn send(&self, entity: EntityId, level: u8) {
        let content = Arc::new(MapMessage::new());
        let message =
            Incoming { priority: Some(level), ..Incoming::new(Bytes::from_static(b"body"), content) };
        let messages = smallvec![message];
        let acceptance = Acceptance::Numbers;
        self.ask(Operation::Send { entity, via: None, transaction: None, messages, acceptance }).await;
    }

    pub(crate) async fn receive(&self, mailbox: MailboxId) -> Delivery {
        let received = self.operator.receive(mailbox, ReceiveMode::PeekLock, Instant::now()).await;
        received.unwrap().unwrap().expect("a message is there").delivery
    }

    pub(crate) async fn complete_one(&self, mailbox: MailboxId) {
        let delivery = self.receive(mailbox).await;
        self.settle(&delivery, Settlement::Complete).await;
    }

    pub(crate) async fn settle(&self, delivery: &Delivery, settlement: Settlement) {
        let (mailbox, tokens) = (delivery.mailbox, smallvec![delivery.token.unwrap()]);
        self.ask(Operation::Settle { mailbox, tokens, settlement, transaction: None }).await;
    }
}

/// A class with a target.
pub(crate) fn class(name: &str, level: u8, target: Span) -> Class {
    Class { name: ClassName::parse(name).unwrap(), level: Level(level), target_wait: Some(target) }
}

/// What fuzzers begin with, and what they have found, of one kind.
pub(crate) fn corpus(kind: &str) -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(kind);
    let files = std::fs::read_dir(folder).unwrap();
    let inputs: Vec<Vec<u8>> = files.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(inputs.len() >= 12 && inputs.iter().all(|input| !input.is_empty()), "the corpus is there");
    inputs
}
