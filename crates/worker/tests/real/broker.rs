//! A real broker on free ports, with its data in a temporary folder, and what the stories need around it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use vorrang_client::{Client, Message, Received, RetryPolicy, Source, SubQueue};
use vorrang_server::Ready;
use vorrang_server::settings::{Ports, Settings};
use vorrang_server::stop::StopSwitch;
use vorrang_worker::figures::{EntitySnapshot, Snapshot};
use vorrang_worker::plan::backoff::Backoff;
use vorrang_worker::plan::size::Size;
use vorrang_worker::pool::{OnProblem, Options, Pool, Problem};

/// Nothing in these stories takes longer, unless something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

const ENTITIES: &str = r#"{ "UserConfig": { "Namespaces": [ { "Name": "sbemulatorns",
  "Queues": [
    { "Name": "work", "Properties": { "MaxDeliveryCount": 50 } },
    { "Name": "high" }, { "Name": "normal" }, { "Name": "low" },
    { "Name": "short", "Properties": { "LockDuration": "PT5S", "MaxDeliveryCount": 50 } },
    { "Name": "replies", "Properties": { "RequiresSession": true } },
    { "Name": "ordered", "Properties": { "RequiresSession": true, "LockDuration": "PT5S", "MaxDeliveryCount": 50 } },
    { "Name": "answers" },
    { "Name": "results", "Properties": { "RequiresSession": true, "MaxDeliveryCount": 50, "LockDuration": "PT5S" } } ],
  "Topics": [ { "Name": "jobs", "Subscriptions": [
    { "Name": "High", "Rules": [ { "Name": "high", "Properties": { "FilterType": "Sql", "SqlFilter": { "SqlExpression": "Priority = 'High'" } } } ] },
    { "Name": "Low", "Rules": [ { "Name": "low", "Properties": { "FilterType": "Sql", "SqlFilter": { "SqlExpression": "Priority = 'Low'" } } } ] } ] } ]
} ] } }"#;

/// A broker. Dropping it stops it without waiting.
pub(crate) struct Broker {
    folder: TempDir,
    running: Option<(StopSwitch, JoinHandle<()>)>,
    ready: Ready,
}

impl Broker {
    pub(crate) async fn start() -> Broker {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("entities.json"), ENTITIES).unwrap();
        let (running, ready) = run(folder.path(), 0).await;
        Broker { folder, running: Some(running), ready }
    }

    /// Stops, and starts again with the same data on the same port.
    pub(crate) async fn restart(&mut self) {
        if let Some((switch, task)) = self.running.take() {
            switch.stop();
            task.await.unwrap();
        }
        let (running, ready) = run(self.folder.path(), self.ready.amqp.port()).await;
        (self.running, self.ready) = (Some(running), ready);
    }

    pub(crate) fn connection_string(&self) -> String {
        format!(
            "Endpoint=sb://localhost:{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
             UseDevelopmentEmulator=true",
            self.ready.amqp.port()
        )
    }

    pub(crate) async fn client(&self) -> Client {
        connect(&self.connection_string()).await
    }

    pub(crate) fn https_port(&self) -> u16 {
        self.ready.https.port()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

pub(crate) async fn connect(text: &str) -> Client {
    let retry = RetryPolicy {
        pause_min: Duration::from_millis(10),
        pause_max: Duration::from_millis(200),
        give_up_after: PATIENCE,
    };
    Client::builder(text).unwrap().retry(retry).connect().await.unwrap()
}

async fn run(folder: &Path, amqp: u16) -> ((StopSwitch, JoinHandle<()>), Ready) {
    let settings = Settings {
        ports: Ports { amqp, amqps: 0, http: 0, https: 0 },
        dev: true,
        emulator_config: Some(folder.join("entities.json")),
        ..Settings::new(folder.to_path_buf())
    };
    let (switch, stop) = StopSwitch::new();
    let (told, ready) = oneshot::channel();
    let task = tokio::spawn(async move {
        let serving = vorrang_server::serve(settings, stop, |ready, _| told.send(ready.clone()).unwrap());
        serving.await.unwrap();
    });
    ((switch, task), ready.await.unwrap())
}

/// Sends texts, each with its level.
pub(crate) async fn send(client: &Client, entity: &str, messages: &[(&str, u8)]) {
    let sender = client.sender(entity).await.unwrap();
    for (text, level) in messages {
        sender.send(Message::text(*text).with_id(*text).with_priority(*level)).await.unwrap();
    }
}

/// A pool with quick retries.
pub(crate) fn options<const N: usize>(size: u32, entities: [&str; N]) -> Options {
    let mut options = Options::new(Size::Fixed(size), entities);
    options.retries.backoff =
        Backoff { first: Duration::from_millis(20), spread_percent: 0, ..Backoff::default() };
    options.breaker.pause =
        Backoff { first: Duration::from_millis(100), spread_percent: 0, ..Backoff::default() };
    options.grace = Duration::from_millis(200);
    options
}

/// What the handlers of a story report.
pub(crate) struct Reports {
    to: mpsc::UnboundedSender<String>,
    from: mpsc::UnboundedReceiver<String>,
}

impl Reports {
    pub(crate) fn new() -> Reports {
        let (to, from) = mpsc::unbounded_channel();
        Reports { to, from }
    }

    pub(crate) fn sender(&self) -> mpsc::UnboundedSender<String> {
        self.to.clone()
    }

    pub(crate) async fn next(&mut self) -> String {
        let next = tokio::time::timeout(PATIENCE, self.from.recv()).await;
        next.expect("a report in time").expect("we hold a sender")
    }

    pub(crate) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut taken = Vec::new();
        while taken.len() < count {
            taken.push(self.next().await);
        }
        taken
    }

    pub(crate) fn none(&mut self) -> bool {
        self.from.try_recv().is_err()
    }

    /// A callback that reports problems.
    pub(crate) fn problems(&self) -> OnProblem {
        let to = self.sender();
        Arc::new(move |problem: &Problem| drop(to.send(format!("problem: {problem}"))))
    }
}

pub(crate) fn text(message: &Received) -> String {
    message.text().unwrap_or("not text").to_owned()
}

/// Waits until a pool's figures show something.
pub(crate) async fn until(pool: &Pool, what: &str, shows: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let begin = std::time::Instant::now();
    loop {
        let snapshot = pool.figures().snapshot();
        if shows(&snapshot) {
            return snapshot;
        }
        assert!(begin.elapsed() < PATIENCE, "{what} did not happen: {snapshot:#?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// All entities' figures of a pool in one.
pub(crate) fn sum(snapshot: &Snapshot, figure: impl Fn(&EntitySnapshot) -> u64) -> u64 {
    snapshot.entities.iter().map(figure).sum()
}

/// What lies in a queue's dead-letter queue.
pub(crate) async fn dead_letters(client: &Client, entity: &str, count: u32) -> Vec<Received> {
    let source = Source::from(entity).sub_queue(SubQueue::DeadLetter);
    let mut receiver = client.receiver(source).await.unwrap();
    let mut letters = Vec::new();
    for _ in 0..count {
        let letter = receiver.recv_timeout(PATIENCE).await.unwrap().expect("a dead letter");
        receiver.complete(&letter).await.unwrap();
        letters.push(letter);
    }
    letters
}

/// How many messages an entity still holds.
pub(crate) async fn left(client: &Client, entity: &str) -> usize {
    client.receiver(entity).await.unwrap().peek_from(0, 1_000).await.unwrap().len()
}
