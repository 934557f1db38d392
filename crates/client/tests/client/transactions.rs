//! Transactions: everything or nothing.

use std::time::Duration;

use vorrang_client::{Abandon, Client, Error, Message, Received};

use crate::broker::Broker;

const NOW: Duration = Duration::from_millis(100);

async fn one(client: &Client, queue: &str) -> Option<Received> {
    client.receiver(queue).await.unwrap().recv_timeout(NOW).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_and_a_completion_happen_together() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    client.sender("orders").await.unwrap().send("order").await.unwrap();
    let results = client.sender("results").await.unwrap();
    let mut orders = client.receiver("orders").await.unwrap();
    let order = orders.recv().await.unwrap();

    let transaction = client.transaction().await.unwrap();
    transaction.send(&results, "never").await.unwrap();
    transaction.complete(&orders, &order).await.unwrap();
    transaction.rollback().await.unwrap();
    assert!(one(&client, "results").await.is_none());

    // The message is still locked, and settled as any other.
    orders.abandon(&order, Abandon::default()).await.unwrap();
    let order = orders.recv().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.send(&results, "done").await.unwrap();
    transaction.complete(&orders, &order).await.unwrap();
    assert!(one(&client, "results").await.is_none());
    transaction.commit().await.unwrap();
    assert_eq!(one(&client, "results").await.unwrap().text(), Some("done"));
    assert!(matches!(orders.complete(&order).await, Err(Error::LockLost(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_transaction_is_rolled_back() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let results = client.sender("results").await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.send(&results, "never").await.unwrap();
    drop(transaction);
    let transaction = client.transaction().await.unwrap();
    transaction.send(&results, "second").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(one(&client, "results").await.unwrap().text(), Some("second"));
    assert!(one(&client, "results").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_ends_with_its_connection() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let results = client.sender("results").await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.send(&results, "never").await.unwrap();
    broker.stop().await;
    broker.start_again().await;
    results.send("after").await.unwrap();
    let outcome = transaction.commit().await;
    assert!(matches!(outcome, Err(Error::TransactionEnded(_))), "{outcome:?}");
    assert_eq!(one(&client, "results").await.unwrap().text(), Some("after"));
    assert!(one(&client, "results").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_a_session_is_completed_in_a_transaction() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    client.sender("sessions").await.unwrap().send(Message::text("order").with_session("ada")).await.unwrap();
    let results = client.sender("results").await.unwrap();
    let mut session = client.accept_session("sessions", Some("ada"), Duration::from_secs(10)).await.unwrap();
    let order = session.recv().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.send(&results, "receipt").await.unwrap();
    transaction.complete(&session, &order).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(one(&client, "results").await.unwrap().text(), Some("receipt"));
    assert!(session.recv_timeout(Duration::from_millis(100)).await.unwrap().is_none());
}
