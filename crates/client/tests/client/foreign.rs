//! Administration of a service that is not Vorrang: its spellings, its unknown elements, its way to say *not found*.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use vorrang_client::Error;
use vorrang_client::admin::{Admin, QueueProperties};

/// A queue as a service of another version shows it: prefixes of its own, elements nobody here knows.
const QUEUE: &str = r#"<a:entry xmlns:a="http://www.w3.org/2005/Atom"><a:id>https://ns/orders</a:id><a:title type="text">orders</a:title>
  <a:content type="application/xml">
    <QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" xmlns:x="http://www.w3.org/2001/XMLSchema-instance">
      <LockDuration>PT1M</LockDuration>
      <FromTheFuture>kept</FromTheFuture>
      <MessageCount>5</MessageCount>
      <AuthorizationRules>
        <AuthorizationRule x:type="SharedAccessAuthorizationRule"><Rights><AccessRights>Send</AccessRights></Rights><KeyName>k</KeyName></AuthorizationRule>
      </AuthorizationRules>
      <Status>Active</Status>
      <ForwardTo>https://ns.servicebus.windows.net/target</ForwardTo>
      <CountDetails xmlns:c="http://schemas.microsoft.com/netservices/2011/06/servicebus"><c:ActiveMessageCount>4</c:ActiveMessageCount><c:DeadLetterMessageCount>1</c:DeadLetterMessageCount></CountDetails>
      <n:Newer xmlns:n="urn:newer"><n:Part>1</n:Part></n:Newer>
    </QueueDescription>
  </a:content></a:entry>"#;

/// Answers one request after the other with these bodies, each with status 200, and tells what was asked.
async fn service(answers: Vec<&'static str>) -> (Admin, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !complete(&request) {
                assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0, "a request is complete");
            }
            asked.push(String::from_utf8(request).unwrap());
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
            socket.write_all(head.as_bytes()).await.unwrap();
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    });
    let text = format!(
        "Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true"
    );
    (Admin::new(&text).unwrap(), serving)
}

fn complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

#[tokio::test]
async fn an_update_sends_back_what_it_does_not_know() {
    let (admin, serving) = service(vec![QUEUE, QUEUE]).await;
    let queue = admin.queue("orders").await.unwrap();
    assert_eq!((queue.runtime().active, queue.runtime().dead_letters), (4, 1));
    assert_eq!(
        (queue.forward_to().as_deref(), queue.element("FromTheFuture")),
        (Some("target"), Some("kept"))
    );
    admin
        .update_queue(&queue.with_max_delivery_count(3).with_lock_duration(Duration::from_secs(30)))
        .await
        .unwrap();
    let asked = serving.await.unwrap();
    assert!(asked[0].starts_with("GET /orders?api-version=2021-05 HTTP/1.1\r\n"), "{}", asked[0]);
    assert!(asked[0].contains("authorization: SharedAccessSignature sr="));
    let (head, body) = asked[1].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("PUT /orders?") && head.contains("if-match: *"), "{head}");
    assert!(head.contains("servicebussupplementaryauthorization: SharedAccessSignature"), "{head}");
    // In the order of the schema, without what is only observed.
    let expected = [
        "<LockDuration>PT30S</LockDuration><FromTheFuture>kept</FromTheFuture><MaxDeliveryCount>3</MaxDeliveryCount><AuthorizationRules>",
        r#"i:type="SharedAccessAuthorizationRule"><Rights><AccessRights>Send</AccessRights></Rights><KeyName>k</KeyName>"#,
        "<Status>Active</Status><ForwardTo>https://ns.servicebus.windows.net/target</ForwardTo>",
        r#"<Newer xmlns="urn:newer"><Part>1</Part></Newer>"#,
    ];
    for part in expected {
        assert!(body.contains(part), "{part} is not in {body}");
    }
    assert!(!body.contains("MessageCount"), "{body}");
}

#[tokio::test]
async fn a_feed_without_entries_means_not_found() {
    const NOTHING: &str = r#"<feed xmlns="http://www.w3.org/2005/Atom"><title type="text">Publicly Listed Services</title></feed>"#;
    let (admin, serving) = service(vec![NOTHING, NOTHING, "<html>sign in</html>", ""]).await;
    assert!(matches!(admin.queue("orders").await, Err(Error::NotFound(_))));
    assert!(admin.queues().await.unwrap().is_empty());
    let strange = admin.queue("orders").await;
    assert!(matches!(strange, Err(Error::Protocol(_))), "{strange:?}");
    let empty = admin.create_queue(&QueueProperties::new("orders")).await;
    assert!(matches!(empty, Err(Error::Protocol(_))), "{empty:?}");
    let asked = serving.await.unwrap();
    assert!(
        asked[1].starts_with("GET /$Resources/Queues?$skip=0&$top=100&api-version=2021-05 "),
        "{}",
        asked[1]
    );
    assert!(asked[3].contains("\r\ncontent-type: application/atom+xml;type=entry;charset=utf-8\r\n"));
}
