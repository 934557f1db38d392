//! Replies and results.

use std::time::Duration;

use bytes::Bytes;
use vorrang_client::{Error, Message, Received};
use vorrang_worker::results::Results;
use vorrang_worker::{Context, Pool};

use crate::broker::{Broker, PATIENCE, options, text};

const DAY: Duration = Duration::from_hours(24);

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_where_the_request_asks_with_its_correlation() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let handler = |context: Context, message: Received| async move {
        context.reply(format!("re: {}", text(&message))).await
    };
    let _pool = Pool::start(&client, options(2, ["work"]), handler).await.unwrap();
    let sender = client.sender("work").await.unwrap();
    sender.send(Message::text("a").with_id("id-1").with_reply_to("answers")).await.unwrap();
    let mut answers = client.receiver("answers").await.unwrap();
    let answer = answers.recv_timeout(PATIENCE).await.unwrap().expect("an answer");
    assert_eq!((answer.text(), answer.correlation_id().as_deref()), (Some("re: a"), Some("id-1")));
    let request = Message::text("b").with_id("id-2").with_reply_to("replies").with_reply_to_session("me");
    sender.send(request).await.unwrap();
    let mut session = client.accept_session("replies", Some("me"), PATIENCE).await.unwrap();
    let answer = session.recv_timeout(PATIENCE).await.unwrap().expect("an answer");
    assert_eq!((answer.text(), answer.session_id()), (Some("re: b"), Some("me")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_read_when_it_is_whole_and_never_before() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let results = Results::open(&client, "results", DAY).await.unwrap();
    results.put("job-1", 1, "second").await.unwrap();
    let early = results.wait("job-1", Duration::from_millis(200)).await;
    assert!(matches!(early, Err(Error::Timeout(_))), "{early:?}");
    results.complete("job-1", 2, "the end").await.unwrap();
    let early = results.wait("job-1", Duration::from_millis(200)).await;
    assert!(matches!(early, Err(Error::Timeout(_))), "its first part is missing: {early:?}");
    let waiting = {
        let results = results.clone();
        tokio::spawn(async move { results.wait("job-1", PATIENCE).await })
    };
    results.put("job-1", 0, "first").await.unwrap();
    results.put("job-1", 0, "first").await.unwrap();
    let finished = waiting.await.unwrap().unwrap();
    assert_eq!((&finished.body[..], finished.parts.len()), (&b"the end"[..], 2));
    assert_eq!(finished.parts, ["first", "second"]);
    finished.keep().await.unwrap();
    let finished = results.wait("job-1", PATIENCE).await.unwrap();
    assert_eq!(finished.parts, ["first", "second"], "kept for others");
    finished.remove().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_gets_their_own_result_and_bounds_hold() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let results = Results::open(&client, "results", DAY).await.unwrap();
    results.complete("a", 0, "of a").await.unwrap();
    results.complete("b", 0, "of b").await.unwrap();
    for (job, body) in [("b", "of b"), ("a", "of a")] {
        let finished = results.wait(job, PATIENCE).await.unwrap();
        assert_eq!(finished.body, body);
        finished.remove().await.unwrap();
    }
    let gone = results.wait("a", Duration::from_millis(100)).await;
    assert!(matches!(gone, Err(Error::Timeout(_))), "{gone:?}");
    assert!(matches!(results.put("a", 1_000, "x").await, Err(Error::Limit { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_outlasts_the_lock_of_its_session_and_another_caller_waits_its_turn() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let results = Results::open(&client, "results", DAY).await.unwrap();
    results.put("slow", 0, "half").await.unwrap();
    let wait = |results: Results| tokio::spawn(async move { results.wait("slow", PATIENCE).await });
    let first = wait(results.clone());
    // The lock lasts five seconds.
    tokio::time::sleep(Duration::from_secs(7)).await;
    let second = wait(results.clone());
    results.complete("slow", 1, "the end").await.unwrap();
    let finished = first.await.unwrap().unwrap();
    assert_eq!(
        (&finished.body[..], &finished.parts[..]),
        (&b"the end"[..], &[Bytes::from_static(b"half")][..])
    );
    assert!(!second.is_finished(), "one at a time");
    finished.keep().await.unwrap();
    assert_eq!(second.await.unwrap().unwrap().body, "the end");
}
