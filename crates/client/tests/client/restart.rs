//! The broker goes away and comes back: nothing is lost silently, nothing is repeated silently.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vorrang_client::{Error, Message, ReceiverOptions, RetryPolicy, SenderOptions};

use crate::broker::Broker;

const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_silently_when_the_broker_restarts_under_load() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("short-lock").await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let sending = {
        let stop = Arc::clone(&stop);
        tokio::spawn(async move {
            let (mut accepted, mut in_doubt) = (BTreeSet::new(), BTreeSet::new());
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let mut under_way = Vec::new();
                for _ in 0..50 {
                    number += 1;
                    under_way.push((number, sender.submit(number.to_string()).await.unwrap()));
                }
                for (number, submitted) in under_way {
                    match submitted.await {
                        Ok(()) => drop(accepted.insert(number)),
                        Err(Error::Ambiguous) => drop(in_doubt.insert(number)),
                        Err(other) => panic!("{other}"),
                    }
                }
            }
            (accepted, in_doubt, number)
        })
    };
    let (told, mut completed_so_far) = tokio::sync::watch::channel(0_usize);
    let receiving = {
        let options = ReceiverOptions::default().with_prefetch(100);
        let mut receiver = client.receiver_with("short-lock", options).await.unwrap();
        tokio::spawn(async move {
            let mut completed = BTreeSet::new();
            let mut seen = BTreeSet::new();
            loop {
                let batch = receiver.recv_batch(100, Duration::from_secs(7)).await.unwrap();
                if batch.is_empty() {
                    return (seen, completed);
                }
                for (one, outcome) in batch.iter().zip(receiver.complete_all(&batch).await) {
                    let number: u64 = one.text().unwrap().parse().unwrap();
                    seen.insert(number);
                    match outcome {
                        Ok(()) => {
                            assert!(completed.insert(number), "{number} came back after its completion");
                        }
                        Err(Error::Ambiguous | Error::LockLost(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                told.send_replace(completed.len());
            }
        })
    };
    for round in 1..=3 {
        completed_so_far.wait_for(|count| *count >= round * 200).await.unwrap();
        broker.stop().await;
        broker.start_again().await;
    }
    completed_so_far.wait_for(|count| *count >= 800).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let (accepted, in_doubt, sent) = sending.await.unwrap();
    let (seen, completed) = receiving.await.unwrap();
    assert_eq!(accepted.len() + in_doubt.len(), usize::try_from(sent).unwrap(), "every send has an outcome");
    let lost: Vec<_> = accepted.difference(&seen).collect();
    assert!(lost.is_empty(), "accepted and never seen: {lost:?}");
    assert!(completed.len() >= 800);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_held_over_a_restart_is_settled_on_the_new_connection() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("orders").await.unwrap();
    sender.send_all(["kept", "given back"]).await.unwrap();
    let mut receiver = client.receiver("orders").await.unwrap();
    let batch = receiver.recv_batch(2, SOON).await.unwrap();
    broker.stop().await;
    broker.start_again().await;
    // The client is back once this is answered; the locks are as old as the messages.
    sender.send("after").await.unwrap();
    let outcome = receiver.complete(&batch[0]).await;
    // A lock is written with the next commit; a restart may forget it, and then the message comes again.
    if outcome.is_err() {
        assert!(matches!(outcome, Err(Error::LockLost(_))), "{outcome:?}");
    }
    let rest = receiver.recv_batch(10, SOON).await.unwrap();
    assert!(rest.iter().any(|one| one.text() == Some("after")));
    assert_eq!(rest.iter().any(|one| one.text() == Some("kept")), outcome.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_wait_for_the_broker_and_safe_ones_are_repeated() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender_with("once", SenderOptions { resend: true }).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let sending = {
        let stop = Arc::clone(&stop);
        tokio::spawn(async move {
            let mut number = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                let mut under_way = Vec::new();
                for _ in 0..50 {
                    let id = number.to_string();
                    under_way.push(sender.submit(Message::text(id.clone()).with_id(id)).await.unwrap());
                    number += 1;
                }
                for submitted in under_way {
                    // With ids and duplicate detection no outcome is ever in doubt.
                    submitted.await.unwrap();
                }
            }
            number
        })
    };
    for _ in 0..3 {
        broker.stop().await;
        broker.start_again().await;
    }
    stop.store(true, Ordering::Relaxed);
    let sent = sending.await.unwrap();
    let mut receiver =
        client.receiver_with("once", ReceiverOptions::default().with_prefetch(500)).await.unwrap();
    let mut seen = BTreeSet::new();
    while seen.len() < usize::try_from(sent).unwrap() {
        let batch = receiver.recv_batch(500, SOON).await.unwrap();
        assert!(!batch.is_empty());
        for one in &batch {
            assert!(seen.insert(one.message_id().unwrap()), "a duplicate");
        }
        assert!(receiver.complete_all(&batch).await.iter().all(Result::is_ok));
    }
    assert!(receiver.recv_timeout(Duration::from_millis(100)).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_give_up_after_a_while_and_work_again_later() {
    let mut broker = Broker::start().await;
    let retry = RetryPolicy {
        pause_min: Duration::from_millis(10),
        pause_max: Duration::from_millis(20),
        give_up_after: Duration::from_millis(100),
    };
    let client = broker.builder().retry(retry).connect().await.unwrap();
    let sender = client.sender("orders").await.unwrap();
    let mut receiver = client.receiver("orders").await.unwrap();
    broker.stop().await;
    assert!(matches!(sender.send("x").await, Err(Error::Disconnected { .. })));
    assert!(matches!(client.sender("results").await, Err(Error::Disconnected { .. })));
    assert!(matches!(receiver.peek(1).await, Err(Error::Disconnected { .. })));
    broker.start_again().await;
    let sent = async {
        while sender.send("y").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, sent).await.unwrap();
    assert_eq!(receiver.recv().await.unwrap().text(), Some("y"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_not_there_is_named() {
    let error =
        vorrang_client::Client::connect("Endpoint=sb://localhost:1;UseDevelopmentEmulator=true").await;
    let text = error.err().unwrap().to_string();
    assert!(text.contains("localhost:1"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_client_tells_everybody() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("orders").await.unwrap();
    let mut receiver = client.receiver("orders").await.unwrap();
    let last = sender.submit("last").await.unwrap();
    client.close().await.unwrap();
    client.close().await.unwrap();
    last.await.unwrap();
    assert!(receiver.recv().await.is_none());
    assert_eq!(receiver.ending(), Some(&Error::Closed));
    assert!(matches!(client.receiver("orders").await, Err(Error::Closed)));
    let client = broker.client().await;
    assert_eq!(client.receiver("orders").await.unwrap().recv().await.unwrap().text(), Some("last"));
}
