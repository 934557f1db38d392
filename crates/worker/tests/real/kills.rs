//! Worker processes that are killed at random: nothing is lost, and with claims nothing happens twice.
//!
//! The worker under test is this very test binary, started again with an environment variable.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use vorrang_client::{Client, Message, Received};
use vorrang_worker::once::{FileStore, Keeping, Once, PostgresStore, Store, once};
use vorrang_worker::{Context, Outcome, Pool};

use crate::broker::{Broker, connect, options, text};
use crate::postgres::Server;

const CONNECTION: &str = "VORRANG_TEST_WORKER_CONNECTION";
const FOLDER: &str = "VORRANG_TEST_WORKER_FOLDER";
/// How PostgreSQL is reached, if the claims are there and not in a file.
const DATABASE: &str = "VORRANG_TEST_WORKER_DATABASE";
const MESSAGES: usize = 150;
const SLOTS: u32 = 4;
const KILLS: usize = 4;

/// Not a test of its own: the worker that the other one kills.
#[tokio::test(flavor = "multi_thread")]
async fn the_worker_that_is_killed() {
    let (Ok(connection), Ok(folder)) = (std::env::var(CONNECTION), std::env::var(FOLDER)) else { return };
    let folder = Path::new(&folder);
    let client = connect(&connection).await;
    let keeping = Keeping::default();
    if let Ok(database) = std::env::var(DATABASE) {
        serve(&client, PostgresStore::connect(&database, keeping).await.unwrap(), folder).await;
    } else {
        serve(&client, FileStore::open(&folder.join("claims"), keeping).unwrap(), folder).await;
    }
}

/// Handles messages until it is killed.
async fn serve(client: &Client, store: impl Store + 'static, folder: &Path) {
    let store = Arc::new(store);
    let effects = folder.join("effects");
    let handler = move |_: Context, message: Received| {
        let (store, effects) = (Arc::clone(&store), effects.clone());
        async move {
            let name = text(&message);
            let effect = async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&effects)?;
                file.write_all(format!("{name}\n").as_bytes())?;
                Ok::<_, std::io::Error>(Bytes::from_static(b"done"))
            };
            match once(&*store, &name, effect).await {
                Ok(Once::Performed(_) | Once::Already(_)) => Outcome::Complete,
                Ok(Once::Busy) => Outcome::Retry(None),
                Ok(Once::InDoubt) => {
                    Outcome::dead_letter("InDoubt", "the worker died between claim and report")
                }
                Err(error) => Outcome::Failed(error.to_string()),
            }
        }
    };
    let _pool = Pool::start(client, options(SLOTS, ["short"]), handler).await.unwrap();
    std::future::pending::<()>().await;
}

/// Worker processes; what is left of them ends with the test.
struct Workers<'b> {
    broker: &'b Broker,
    database: Option<String>,
    running: Vec<Child>,
}

impl Workers<'_> {
    fn start(&mut self, count: usize) {
        for _ in 0..count {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "kills::the_worker_that_is_killed"]);
            command.env(CONNECTION, self.broker.connection_string()).env(FOLDER, self.broker.folder());
            command.envs(self.database.as_ref().map(|database| (DATABASE, database)));
            self.running.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        }
    }

    fn all_live(&mut self) -> bool {
        self.running.iter_mut().all(|child| child.try_wait().unwrap().is_none())
    }

    fn kill(&mut self) {
        for mut child in self.running.drain(..) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Workers<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_at_any_moment_lose_nothing_and_do_nothing_twice() {
    // The file belongs to one process at a time.
    story(1, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_share_claims_in_postgresql_and_are_killed_do_nothing_twice_either() {
    let server = Server::start();
    story(2, Some(server.config())).await;
}

async fn story(workers: usize, database: Option<String>) {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("short").await.unwrap();
    sender.send_all((0..MESSAGES).map(|number| Message::text(format!("m{number}")))).await.unwrap();
    let effects = broker.folder().join("effects");
    let happened = || -> BTreeMap<String, usize> {
        let mut counted = BTreeMap::new();
        for line in std::fs::read_to_string(&effects).unwrap_or_default().lines() {
            *counted.entry(line.to_owned()).or_default() += 1;
        }
        counted
    };
    let mut running = Workers { broker: &broker, database, running: Vec::new() };
    // They get a little further each time and are killed in the middle of whatever they do.
    for kill in 1..=KILLS {
        running.start(workers);
        while happened().len() < kill * 20 {
            assert!(running.all_live(), "a worker ended by itself");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.kill();
    }
    running.start(workers);
    let dead = vorrang_client::Source::from("short").sub_queue(vorrang_client::SubQueue::DeadLetter);
    let in_doubt = client.receiver(dead).await.unwrap();
    let begin = std::time::Instant::now();
    loop {
        let doubtful = in_doubt.peek_from(0, 100).await.unwrap();
        let left = crate::broker::left(&client, "short").await;
        if left == 0 {
            let counted = happened();
            assert!(counted.values().all(|times| *times == 1), "an effect happened twice: {counted:?}");
            let known: Vec<String> = doubtful.iter().map(text).collect();
            for number in 0..MESSAGES {
                let name = format!("m{number}");
                assert!(counted.contains_key(&name) || known.contains(&name), "{name} is lost");
            }
            let at_once = workers * usize::try_from(SLOTS).unwrap();
            assert!(known.len() <= KILLS * at_once, "only what ran when a worker was killed: {known:?}");
            return;
        }
        assert!(begin.elapsed() < Duration::from_mins(1), "{left} messages are left");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
