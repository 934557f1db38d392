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
use vorrang_client::{Message, Received};
use vorrang_worker::once::{FileStore, Keeping, Once, once};
use vorrang_worker::{Context, Outcome, Pool};

use crate::broker::{Broker, connect, options, text};

const CONNECTION: &str = "VORRANG_TEST_WORKER_CONNECTION";
const FOLDER: &str = "VORRANG_TEST_WORKER_FOLDER";
const MESSAGES: usize = 150;

/// Not a test of its own: the worker that the other one kills.
#[tokio::test(flavor = "multi_thread")]
async fn the_worker_that_is_killed() {
    let (Ok(connection), Ok(folder)) = (std::env::var(CONNECTION), std::env::var(FOLDER)) else { return };
    let folder = Path::new(&folder);
    let client = connect(&connection).await;
    let store = Arc::new(FileStore::open(&folder.join("claims"), Keeping::default()).unwrap());
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
    let _pool = Pool::start(&client, options(4, ["short"]), handler).await.unwrap();
    std::future::pending::<()>().await;
}

fn worker(broker: &Broker) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::the_worker_that_is_killed"])
        .env(CONNECTION, broker.connection_string())
        .env(FOLDER, broker.folder())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_killed_at_any_moment_lose_nothing_and_do_nothing_twice() {
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
    // Each worker gets a little further and is killed in the middle of whatever it does.
    for kill in 1..=4 {
        let mut child = worker(&broker);
        while happened().len() < kill * 20 {
            assert!(child.try_wait().unwrap().is_none(), "the worker ended by itself");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut child = worker(&broker);
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
            assert!(known.len() <= 4 * 4, "only what ran when a worker was killed: {known:?}");
            break;
        }
        assert!(begin.elapsed() < Duration::from_mins(1), "{left} messages are left");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
