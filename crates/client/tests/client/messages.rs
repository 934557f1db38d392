//! Sending, receiving and settling against a real broker.

use std::time::{Duration, SystemTime};

use vorrang_client::{
    Abandon, Authentication, Credit, DeadLetter, Error, Message, MessageState, ReceiveMode, Received,
    ReceiverOptions, Source, SubQueue, Text, TransportKind, Value,
};

use crate::broker::Broker;

const SOON: Duration = Duration::from_secs(10);
const NOW: Duration = Duration::from_millis(100);

fn bodies(received: &[Received]) -> Vec<String> {
    received.iter().map(|one| one.text().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_there_and_comes_back_over_every_transport() {
    let broker = Broker::start().await;
    let kinds =
        [TransportKind::Tcp, TransportKind::Tls, TransportKind::WebSocket, TransportKind::PlainWebSocket];
    for kind in kinds {
        let client = broker.builder_over(kind).connect().await.unwrap();
        let sender = client.sender("orders").await.unwrap();
        let large = "x".repeat(200_000);
        let sent = Message::text(large.clone())
            .with_id("m-1")
            .with_subject("s")
            .with_priority(7)
            .with_property("number", 42_i64)
            .with_trace_context("00-trace-01", None);
        sender.send(sent).await.unwrap();
        let mut receiver = client.receiver("orders").await.unwrap();
        let received = receiver.recv().await.unwrap();
        assert_eq!(received.text(), Some(large.as_str()), "{kind:?}");
        assert_eq!(received.message_id().as_deref(), Some("m-1"));
        assert_eq!((received.subject(), received.priority()), (Some("s"), Some(7)));
        assert_eq!(received.property("number"), Some(Value::Long(42)));
        assert_eq!(received.trace_parent().as_deref(), Some("00-trace-01"));
        assert_eq!(received.delivery_count(), 0);
        assert!(received.lock_token().is_some() && received.sequence_number().is_some());
        assert!(received.locked_until().unwrap() > SystemTime::now());
        assert!(received.enqueued_time().unwrap() <= SystemTime::now() + Duration::from_secs(1));
        receiver.complete(&received).await.unwrap();
        assert!(receiver.recv_timeout(NOW).await.unwrap().is_none());
        client.close().await.unwrap();
        assert_eq!(sender.send("late").await, Err(Error::Closed));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_logging_in_works_and_a_wrong_key_is_told() {
    let broker = Broker::start().await;
    for authentication in [Authentication::Tokens, Authentication::TokensMssbcbs, Authentication::Plain] {
        let client = broker.builder().authentication(authentication).connect().await.unwrap();
        client.sender("orders").await.unwrap().send("x").await.unwrap();
    }
    let wrong = broker.connection_string().replace("SAS_KEY_VALUE", "wrong");
    let client = vorrang_client::Client::connect(&wrong).await.unwrap();
    assert!(matches!(client.sender("orders").await, Err(Error::Unauthorized(_))));
    let plain = vorrang_client::Client::builder(&wrong).unwrap().authentication(Authentication::Plain);
    assert!(matches!(plain.connect().await, Err(Error::Unauthorized(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_that_is_not_there_is_told_by_both_ends() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    assert!(matches!(client.sender("nowhere").await, Err(Error::NotFound(_))));
    assert!(matches!(client.receiver("nowhere").await, Err(Error::NotFound(_))));
    assert!(matches!(client.receiver("topic").await, Err(Error::NotAllowed(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sends_share_one_sender_and_keep_their_order() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("orders").await.unwrap();
    let mut under_way = Vec::new();
    for number in 0..5_000 {
        under_way.push(sender.submit(number.to_string()).await.unwrap());
    }
    for submitted in under_way {
        submitted.await.unwrap();
    }
    let options = ReceiverOptions { mode: ReceiveMode::ReceiveAndDelete, ..ReceiverOptions::default() };
    let mut receiver = client.receiver_with("orders", options.with_prefetch(500)).await.unwrap();
    for number in 0..5_000 {
        assert_eq!(receiver.recv().await.unwrap().text(), Some(number.to_string().as_str()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_cut_to_the_links_limit() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("orders").await.unwrap();
    let limit = sender.message_bytes_max().unwrap();
    let body = "y".repeat(1_000);
    let count = usize::try_from(limit).unwrap() * 3 / 1_000;
    sender.send_all((0..count).map(|_| body.clone())).await.unwrap();
    let too_large = Message::new(vec![0; usize::try_from(limit).unwrap() + 1]);
    assert!(matches!(sender.send(too_large).await, Err(Error::TooLarge { .. })));
    let mut receiver =
        client.receiver_with("orders", ReceiverOptions::default().with_prefetch(1_000)).await.unwrap();
    let mut got = 0;
    while got < count {
        let batch = receiver.recv_batch(500, SOON).await.unwrap();
        assert!(!batch.is_empty());
        got += batch.len();
        assert!(receiver.complete_all(&batch).await.iter().all(Result::is_ok));
    }
    assert_eq!(got, count);
    assert!(receiver.recv_timeout(NOW).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_outcome_does_what_it_says() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("orders").await.unwrap();
    let mut receiver = client.receiver("orders").await.unwrap();

    sender.send("a").await.unwrap();
    let first = receiver.recv().await.unwrap();
    receiver.abandon(&first, Abandon::default().with_property("why", "busy")).await.unwrap();
    let again = receiver.recv().await.unwrap();
    assert_eq!((again.delivery_count(), again.property("why")), (1, Some(Value::from("busy"))));
    assert!(matches!(receiver.complete(&first).await, Err(Error::LockLost(_))));

    let checkpoint = [(Text::from("page"), Value::from(7_i64))];
    receiver.suspend(&again, checkpoint).await.unwrap();
    let resumed = receiver.recv().await.unwrap();
    assert_eq!((resumed.delivery_count(), resumed.property("page")), (1, Some(Value::Long(7))));

    receiver.release(&resumed).await.unwrap();
    let released = receiver.recv().await.unwrap();
    assert_eq!(released.delivery_count(), 1);

    receiver.defer(&released).await.unwrap();
    assert!(receiver.recv_timeout(NOW).await.unwrap().is_none());
    let number = released.sequence_number().unwrap();
    let peeked = receiver.peek(10).await.unwrap();
    assert_eq!(peeked[0].state(), MessageState::Deferred);
    let deferred = receiver.receive_deferred(&[number]).await.unwrap();
    assert_eq!(bodies(&deferred), ["a"]);
    let letter = DeadLetter::because("broken").with_description("cannot be read").with_property("by", "me");
    receiver.dead_letter(&deferred[0], letter).await.unwrap();
    assert!(matches!(receiver.receive_deferred(&[number]).await, Err(Error::MessageNotFound(_))));

    let options = ReceiverOptions { sub_queue: Some(SubQueue::DeadLetter), ..ReceiverOptions::default() };
    let mut dead = client.receiver_with("orders", options).await.unwrap();
    let letter = dead.recv().await.unwrap();
    assert_eq!(letter.dead_letter_reason().as_deref(), Some("broken"));
    assert_eq!(letter.dead_letter_description().as_deref(), Some("cannot be read"));
    assert_eq!(letter.property("by"), Some(Value::from("me")));
    dead.complete(&letter).await.unwrap();
    assert!(dead.peek_from(0, 10).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_message_comes_again_after_its_delay() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    client.sender("orders").await.unwrap().send("later").await.unwrap();
    let mut receiver = client.receiver("orders").await.unwrap();
    let first = receiver.recv().await.unwrap();
    let before = SystemTime::now();
    receiver.abandon(&first, Abandon::default().with_delay(Duration::from_millis(300))).await.unwrap();
    let again = receiver.recv().await.unwrap();
    assert!(before.elapsed().unwrap() >= Duration::from_millis(290));
    receiver.complete(&again).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_messages_wait_and_can_be_cancelled() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("orders").await.unwrap();
    let later = SystemTime::now() + Duration::from_hours(1);
    let numbers = sender.schedule(["a", "b"], later).await.unwrap();
    assert_eq!(numbers.len(), 2);
    let mut receiver = client.receiver("orders").await.unwrap();
    let peeked = receiver.peek(10).await.unwrap();
    assert_eq!(peeked[0].state(), MessageState::Scheduled);
    sender.cancel(&numbers).await.unwrap();
    assert!(matches!(sender.cancel(&numbers).await, Err(Error::MessageNotFound(_))));
    sender.schedule(["now"], SystemTime::now()).await.unwrap();
    assert_eq!(receiver.recv().await.unwrap().text(), Some("now"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_renewed() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    client.sender("short-lock").await.unwrap().send("x").await.unwrap();
    let mut receiver = client.receiver("short-lock").await.unwrap();
    let received = receiver.recv().await.unwrap();
    let until = receiver.renew(&received).await.unwrap();
    assert!(until >= received.locked_until().unwrap());
    receiver.complete(&received).await.unwrap();
    assert!(matches!(receiver.renew(&received).await, Err(Error::LockLost(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn higher_sources_and_levels_come_first() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    client.sender("low").await.unwrap().send("low").await.unwrap();
    client.sender("high").await.unwrap().send("high").await.unwrap();
    let mut receiver = client.receiver(Source::ordered(["high", "low"])).await.unwrap();
    for expected in ["high", "low"] {
        let received = receiver.recv().await.unwrap();
        assert_eq!(received.text(), Some(expected));
        receiver.renew(&received).await.unwrap();
        receiver.complete(&received).await.unwrap();
    }

    let sender = client.sender("orders").await.unwrap();
    for (priority, body) in [(1, "one"), (9, "nine"), (5, "five")] {
        sender.send(Message::text(body).with_priority(priority)).await.unwrap();
    }
    let express = ReceiverOptions { min_level: Some(6), ..ReceiverOptions::default() };
    let mut express = client.receiver_with("orders", express).await.unwrap();
    let batch = express.recv_batch(10, SOON).await.unwrap();
    assert_eq!(bodies(&batch), ["nine"]);
    express.release(&batch[0]).await.unwrap();
    let selector =
        ReceiverOptions { selector: Some("color = 'red'".to_owned()), ..ReceiverOptions::default() };
    sender.send(Message::text("red").with_property("color", "red")).await.unwrap();
    let mut choosy = client.receiver_with("orders", selector).await.unwrap();
    assert_eq!(bodies(&choosy.recv_batch(10, SOON).await.unwrap()), ["red"]);
    let mut all = client.receiver("orders").await.unwrap();
    assert_eq!(bodies(&all.recv_batch(10, SOON).await.unwrap()), ["nine", "five", "one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_manual_credit_nothing_comes_that_was_not_asked_for() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("orders").await.unwrap();
    sender.send_all(["a", "b", "c"]).await.unwrap();
    let options = ReceiverOptions { credit: Credit::Manual, ..ReceiverOptions::default() };
    let mut receiver = client.receiver_with("orders", options).await.unwrap();
    assert!(receiver.recv_timeout(NOW).await.unwrap().is_none());
    receiver.add_credit(2).await.unwrap();
    let first = receiver.recv().await.unwrap();
    let second = receiver.recv().await.unwrap();
    assert_eq!((first.text(), second.text()), (Some("a"), Some("b")));
    assert!(receiver.recv_timeout(NOW).await.unwrap().is_none());
    receiver.add_credit(5).await.unwrap();
    receiver.drain().await.unwrap();
    assert_eq!(receiver.try_recv().unwrap().text(), Some("c"));
    sender.send("d").await.unwrap();
    assert!(receiver.recv_timeout(NOW).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dropped_receiver_had_fetched_goes_back_at_once() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    client.sender("orders").await.unwrap().send_all(["a", "b", "c", "d"]).await.unwrap();
    for way in ["dropped", "closed"] {
        let options = ReceiverOptions::default().with_prefetch(10);
        let mut receiver = client.receiver_with("orders", options).await.unwrap();
        let taken = receiver.recv().await.unwrap();
        receiver.release(&taken).await.unwrap();
        if way == "closed" {
            receiver.close().await.unwrap();
        } else {
            drop(receiver);
        }
    }
    let mut receiver = client.receiver("orders").await.unwrap();
    let mut got = Vec::new();
    while got.len() < 4 {
        got.extend(receiver.recv_batch(10, SOON).await.unwrap());
    }
    assert_eq!(bodies(&got), ["a", "b", "c", "d"]);
    assert!(got.iter().all(|one| one.delivery_count() == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefetching_receiver_is_fed_for_ever() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("orders").await.unwrap();
    sender.send_all((0..500).map(|number| number.to_string())).await.unwrap();
    for prefetch in [1, 2, 3, 7, 64] {
        let options = ReceiverOptions::default().with_prefetch(prefetch);
        let mut receiver = client.receiver_with("orders", options).await.unwrap();
        for _ in 0..90 {
            let received = receiver.recv().await.unwrap();
            receiver.complete(&received).await.unwrap();
        }
        receiver.close().await.unwrap();
    }
}
