//! What KEDA's `azure-servicebus` trigger asks: the run-time counts of a queue or subscription, as the Go SDK's
//! administration client does it, whose token covers the URL of the request with its query.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vorrang_client::{DeadLetter, Source};

use crate::broker::Broker;

/// Asks for what is at `path`, and reads one count out of the answer.
async fn count(broker: &Broker, path: &str, name: &str) -> u64 {
    let port = broker.ready.http.port();
    let url = format!("https://localhost/{path}?api-version=2021-05").to_lowercase();
    let escaped: String = url
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            other => format!("%{other:02x}"),
        })
        .collect();
    let expires = 4_102_444_800_u64;
    let mut signing = Hmac::<Sha256>::new_from_slice(b"SAS_KEY_VALUE").unwrap();
    signing.update(format!("{escaped}\n{expires}").as_bytes());
    let signature = STANDARD.encode(signing.finalize().into_bytes());
    let signature = signature.replace('+', "%2b").replace('/', "%2f").replace('=', "%3d");
    let request = format!(
        "GET /{path}?api-version=2021-05 HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\nAccept: application/xml\r\n\
         Authorization: SharedAccessSignature sr={escaped}&sig={signature}&se={expires}&skn=RootManageSharedAccessKey\r\n\r\n"
    );
    let mut socket = TcpStream::connect(("localhost", port)).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let (_, rest) = answer.split_once(&format!("{name}>")).unwrap_or_else(|| panic!("no {name} in {answer}"));
    rest.split_once('<').unwrap().0.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_counts_a_scaler_reads_follow_the_messages() {
    let broker = Broker::start().await;
    let client = broker.client().await;
    let (queue, subscription) = ("orders", "topic/Subscriptions/sub");
    assert_eq!(count(&broker, queue, "ActiveMessageCount").await, 0);
    for entity in ["orders", "topic"] {
        let sender = client.sender(entity).await.unwrap();
        sender.send_all(["a", "b", "c"]).await.unwrap();
    }
    assert_eq!(count(&broker, queue, "ActiveMessageCount").await, 3);
    assert_eq!(count(&broker, subscription, "ActiveMessageCount").await, 3);
    // What is locked counts as active, so that a worker is not taken away from under its message.
    let mut receiver = client.receiver(Source::subscription("topic", "sub")).await.unwrap();
    let first = receiver.recv().await.unwrap();
    assert_eq!(count(&broker, subscription, "ActiveMessageCount").await, 3);
    receiver.complete(&first).await.unwrap();
    let second = receiver.recv().await.unwrap();
    receiver.dead_letter(&second, DeadLetter::default()).await.unwrap();
    assert_eq!(count(&broker, subscription, "ActiveMessageCount").await, 1);
    assert_eq!(count(&broker, subscription, "DeadLetterMessageCount").await, 1);
}
