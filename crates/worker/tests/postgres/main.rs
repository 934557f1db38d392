//! Claims in PostgreSQL, against a real server: what one worker claimed, no other one does.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]
#![allow(missing_docs, reason = "the tests' names say it")]

mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use server::Server;
use vorrang_worker::once::{Claim, Error, Failed, Keeping, Once, PostgresStore, Store, once};

async fn store(server: &Server) -> PostgresStore {
    PostgresStore::connect(&server.config(), Keeping::default()).await.unwrap()
}

async fn performed(store: &PostgresStore, key: &str, result: &'static str) -> Once {
    once(store, key, async { Ok::<_, String>(Bytes::from_static(result.as_bytes())) }).await.unwrap()
}

/// Asks until the server has noticed what it must: a connection that ended, a mark that was left.
async fn in_doubt(store: &PostgresStore, key: &str) {
    let asked = async {
        while store.claim(key).await.unwrap() != Claim::InDoubt {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asked).await.unwrap();
}

// One story, because a server takes a while to start.
#[tokio::test(flavor = "multi_thread")]
async fn an_effect_happens_at_most_once_whichever_worker_is_asked_and_whoever_dies() {
    let mut server = Server::start();
    let (one, two) = (store(&server).await, store(&server).await);

    // The result of one worker is known to all.
    assert_eq!(performed(&one, "a", "first").await, Once::Performed("first".into()));
    assert_eq!(performed(&two, "a", "second").await, Once::Already("first".into()));

    // While one is at it, it is busy for everybody; an effect that says that it did not happen is free again.
    assert_eq!(one.claim("b").await.unwrap(), Claim::New);
    assert_eq!(one.claim("b").await.unwrap(), Claim::Busy);
    assert_eq!(two.claim("b").await.unwrap(), Claim::Busy);
    one.release("b").await.unwrap();
    let refused = once(&two, "b", async { Err::<Bytes, _>("no card") }).await;
    assert!(matches!(refused, Err(Failed::Effect("no card"))), "{refused:?}");
    assert_eq!(performed(&one, "b", "now").await, Once::Performed("now".into()));

    // Many at once: one wins.
    let wins = Arc::new(AtomicUsize::new(0));
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (store, wins) = (if number % 2 == 0 { one.clone() } else { two.clone() }, Arc::clone(&wins));
        asking.spawn(async move {
            let effect = async {
                wins.fetch_add(1, Ordering::SeqCst);
                Ok::<_, String>(Bytes::new())
            };
            once(&store, "contended", effect).await.unwrap()
        });
    }
    while let Some(outcome) = asking.join_next().await {
        assert_ne!(outcome.unwrap(), Once::InDoubt);
    }
    assert_eq!(wins.load(Ordering::SeqCst), 1);

    // A worker that is gone without a word leaves doubt, and nobody else gets the claim.
    let three = store(&server).await;
    assert_eq!(three.claim("c").await.unwrap(), Claim::New);
    assert_eq!(one.claim("c").await.unwrap(), Claim::Busy);
    drop(three);
    in_doubt(&one, "c").await;
    in_doubt(&two, "c").await;

    // So does an effect that is dropped on its way, while its worker lives on.
    {
        let mut stuck = Box::pin(once(&one, "d", std::future::pending::<Result<Bytes, String>>()));
        let polled = tokio::time::timeout(Duration::from_millis(200), &mut stuck).await;
        assert!(polled.is_err());
    }
    in_doubt(&two, "d").await;
    in_doubt(&one, "d").await;

    // A crash of the server forgets no claim, and the stores come back by themselves.
    assert_eq!(two.claim("e").await.unwrap(), Claim::New);
    server.restart();
    assert_eq!(performed(&one, "a", "third").await, Once::Already("first".into()));
    two.finish("e", Bytes::from_static(b"kept")).await.unwrap();
    assert_eq!(performed(&one, "e", "again").await, Once::Already("kept".into()));

    // Keys have bounds; a key whose time is over is free.
    assert!(matches!(one.claim("").await, Err(Error::Key { bytes: 0 })));
    let keeping = Keeping { time_to_live: Duration::ZERO, keys_max: 1_000 };
    let short = PostgresStore::connect(&server.config(), keeping).await.unwrap();
    assert_eq!(performed(&short, "f", "once").await, Once::Performed("once".into()));
    assert_eq!(performed(&short, "f", "twice").await, Once::Performed("twice".into()));
    let keeping = Keeping { keys_max: 2, ..Keeping::default() };
    let small = PostgresStore::connect(&server.config(), keeping).await.unwrap();
    assert!(matches!(small.claim("g").await, Err(Error::Full { keys: 2 })));

    // A server that is gone is an error, not a guess.
    server.kill();
    assert!(matches!(one.claim("h").await, Err(Error::Database { .. })));
}
