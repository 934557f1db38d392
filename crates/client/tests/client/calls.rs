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
async fn a_reply_queue_is_made_when_it_is_missing() {
    let broker = Broker::start().await;
    let url = format!("http://localhost:{}", broker.ready.http.port());
    let server = broker.client().await;
    let answering = server.clone();
    tokio::spawn(async move {
        let mut receiver = answering.receiver("orders").await.unwrap();
        while let Some(request) = receiver.recv().await {
            answering.reply(&request, "answer").await.unwrap();
            receiver.complete(&request).await.unwrap();
        }
    });
    let wait = Duration::from_secs(20);
    let named =
        broker.builder().reply_queue("made/replies").create_reply_queue(&url).connect().await.unwrap();
    assert_eq!(named.call("orders", "x", wait).await.unwrap().text(), Some("answer"));
    let own = broker.builder().create_reply_queue(&url).connect().await.unwrap();
    for _ in 0..2 {
        assert_eq!(own.call("orders", "x", wait).await.unwrap().text(), Some("answer"));
    }
    let queues = server.admin(&url).unwrap().queues().await.unwrap();
    let made: Vec<_> = queues.iter().filter(|queue| queue.name().contains("replies")).collect();
    // One that was there, the named one, and one for the client without a name.
    assert_eq!(made.len(), 3, "{made:?}");
    let temporary = made.iter().find(|queue| queue.name().starts_with("replies-")).unwrap();
    assert_eq!(temporary.auto_delete_on_idle(), Some(Duration::from_mins(10)));
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
