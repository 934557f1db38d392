//! Connections that end for good, and tokens that must not.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use vorrang_client::{Client, Error, RetryPolicy};

use crate::broker::Broker;

/// A server that speaks SASL, offers `ANONYMOUS` and refuses it.
const OFFER: &[u8] =
    b"AMQP\x03\x01\x00\x00\x00\x00\x00\x19\x02\x01\x00\x00\x00\x53\x40\xc0\x0c\x01\xa3\x09ANONYMOUS";
const REFUSAL: &[u8] = b"\x00\x00\x00\x10\x02\x01\x00\x00\x00\x53\x44\xc0\x03\x01\x50\x01";

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_come_back_says_why_to_everybody_who_asks() {
    let broker = Broker::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (cut, cutting) = tokio::sync::oneshot::channel::<()>();
    let door = broker.ready.amqp;
    // The first connection reaches the broker until it is cut; whoever comes again is turned away.
    let between = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(door).await.unwrap();
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
            _ = cutting => {}
        }
        drop(client);
        let (mut client, _) = listener.accept().await.unwrap();
        client.read_exact(&mut [0; 8]).await.unwrap();
        client.write_all(OFFER).await.unwrap();
        // What it chooses does not matter.
        let _ = client.read(&mut [0; 512]).await.unwrap();
        client.write_all(REFUSAL).await.unwrap();
        client
    });
    let text = broker.connection_string().replace(&door.port().to_string(), &port.to_string());
    let retry = RetryPolicy { pause_min: Duration::from_millis(10), ..RetryPolicy::default() };
    let client = Client::builder(&text).unwrap().retry(retry).connect().await.unwrap();
    let sender = client.sender("orders").await.unwrap();
    let mut receiver = client.receiver("orders").await.unwrap();
    sender.send("one").await.unwrap();
    cut.send(()).unwrap();
    let _refused = between.await.unwrap();
    let told = sender.send("two").await.unwrap_err();
    assert!(matches!(told, Error::Unauthorized(_) | Error::Ambiguous), "{told:?}");
    assert_eq!(receiver.recv().await.map(|received| received.message_id()), None);
    assert!(matches!(receiver.ending(), Some(Error::Unauthorized(_))), "{:?}", receiver.ending());
    let later = client.sender("orders").await.unwrap_err();
    assert!(matches!(later, Error::Unauthorized(_)), "{later:?}");
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_renewed_while_the_connection_lives_and_its_links_go_on() {
    let broker = Broker::start().await;
    // Tokens of four seconds, renewed after three: without that the broker ends links whose token is over.
    let client = broker.builder().token_lifetime(Duration::from_secs(4)).connect().await.unwrap();
    let sender = client.sender("orders").await.unwrap();
    let mut receiver = client.receiver("orders").await.unwrap();
    for number in 0..6 {
        sender.send(format!("{number}")).await.unwrap();
        let received = receiver.recv().await.expect("the link lives");
        assert_eq!(received.text(), Some(number.to_string().as_str()));
        receiver.complete(&received).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
