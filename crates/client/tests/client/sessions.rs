//! Sessions: accepted by name or as they come, held by one, kept with their state.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use vorrang_client::{Error, Message};

use crate::broker::Broker;

const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_received_in_order_by_one_receiver_with_its_state() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let sender = client.sender("sessions").await.unwrap();
    for (session, body) in [("a", "a1"), ("b", "b1"), ("a", "a2")] {
        sender.send(Message::text(body).with_session(session)).await.unwrap();
    }
    assert!(matches!(sender.send("without").await, Err(Error::NotAllowed(_))));

    let mut first = client.accept_session("sessions", Some("a"), SOON).await.unwrap();
    assert_eq!(first.session_id(), "a");
    assert!(first.locked_until().unwrap() > SystemTime::now());
    for expected in ["a1", "a2"] {
        let received = first.recv().await.unwrap();
        assert_eq!((received.text(), received.session_id()), (Some(expected), Some("a")));
        first.complete(&received).await.unwrap();
    }
    assert_eq!(first.state().await.unwrap(), None);
    first.set_state(Some(Bytes::from_static(b"half"))).await.unwrap();
    assert_eq!(first.state().await.unwrap().as_deref(), Some(&b"half"[..]));
    let until = first.locked_until().unwrap();
    assert!(first.renew_lock().await.unwrap() >= until);

    let taken = client.accept_session("sessions", Some("a"), SOON).await;
    assert!(matches!(taken, Err(Error::SessionCannotBeLocked(_))), "{taken:?}");
    let mut next = client.accept_session("sessions", None, SOON).await.unwrap();
    assert_eq!(next.session_id(), "b");
    assert_eq!(next.recv().await.unwrap().text(), Some("b1"));

    first.close().await.unwrap();
    let again = client.accept_session("sessions", Some("a"), SOON).await.unwrap();
    assert_eq!(again.state().await.unwrap().as_deref(), Some(&b"half"[..]));
    again.set_state(None).await.unwrap();
    assert_eq!(again.state().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_session_ends_in_time() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let wait = Duration::from_millis(200);
    let none = client.accept_session("sessions", None, wait).await;
    assert!(matches!(none, Err(Error::Timeout(_))), "{none:?}");
    let plain = client.accept_session("orders", None, wait).await;
    assert!(matches!(plain, Err(Error::NotAllowed(_))), "{plain:?}");
    assert!(matches!(client.receiver("sessions").await, Err(Error::NotAllowed(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_gives_up_waiting_takes_no_session() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let waiting = client.accept_session("sessions", None, SOON);
    assert!(tokio::time::timeout(Duration::from_millis(100), waiting).await.is_err());
    let sender = client.sender("sessions").await.unwrap();
    sender.send(Message::text("x").with_session("s")).await.unwrap();
    // Either the broker heard of the end of the wait first, or the client gives the session back.
    let mut session = loop {
        match client.accept_session("sessions", Some("s"), SOON).await {
            Ok(session) => break session,
            Err(Error::SessionCannotBeLocked(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    };
    let received = session.recv().await.unwrap();
    assert_eq!((received.text(), received.delivery_count()), (Some("x"), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_connection_and_says_so() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let mut session = client.accept_session("sessions", Some("s"), SOON).await.unwrap();
    broker.stop().await;
    assert!(session.recv().await.is_none());
    assert!(matches!(session.ending(), Some(Error::SessionLockLost(_))), "{:?}", session.ending());
    broker.start_again().await;
    let sender = client.sender("sessions").await.unwrap();
    sender.send(Message::text("x").with_session("s")).await.unwrap();
    let mut session = client.accept_session("sessions", Some("s"), SOON).await.unwrap();
    assert_eq!(session.recv().await.unwrap().text(), Some("x"));
}
