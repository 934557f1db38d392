//! Requests that wait for their reply.

use std::time::Duration;

use vorrang_client::{Error, Message};

use crate::broker::Broker;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_gets_the_reply_that_is_meant_for_it() {
    let broker = Broker::start().await;
    let client = broker.builder().reply_queue("replies").connect().await.unwrap();
    let server = broker.client().await;
    let answering = tokio::spawn(async move {
        let mut receiver = server.receiver("orders").await.unwrap();
        let mut requests = Vec::new();
        while requests.len() < 3 {
            requests.push(receiver.recv().await.unwrap());
        }
        // The last asked is the first answered.
        for request in requests.iter().rev() {
            let body = format!("{} done", request.text().unwrap());
            server.reply(request, Message::text(body)).await.unwrap();
            receiver.complete(request).await.unwrap();
        }
    });
    let wait = Duration::from_secs(10);
    let (a, b, c) = tokio::join!(
        client.call("orders", "a", wait),
        client.call("orders", "b", wait),
        client.call("orders", "c", wait)
    );
    let replies = [a.unwrap(), b.unwrap(), c.unwrap()];
    let bodies: Vec<_> = replies.iter().map(|reply| reply.text().unwrap()).collect();
    assert_eq!(bodies, ["a done", "b done", "c done"]);
    answering.await.unwrap();

    let late = client.call("orders", "nobody answers", Duration::from_millis(100)).await;
    assert!(matches!(late, Err(Error::Timeout(_))), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_place_for_replies_says_what_is_missing() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let error = client.call("orders", "x", Duration::from_secs(1)).await.unwrap_err();
    assert!(error.to_string().contains("reply_queue"), "{error}");
    client.sender("orders").await.unwrap().send("no reply wanted").await.unwrap();
    let mut receiver = client.receiver("orders").await.unwrap();
    let request = receiver.recv().await.unwrap();
    assert!(matches!(client.reply(&request, Message::text("x")).await, Err(Error::InvalidArgument(_))));
}
