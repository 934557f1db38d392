//! `$events`: what happens, as it happens.

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::server::{Server, token};

async fn listen(server: &Server) -> TcpStream {
    let token = token("RootManageSharedAccessKey", "SAS_KEY_VALUE", "");
    let mut stream = server.send(&token, "GET", "/api/$events", "").await;
    read_until(&mut stream, ": listening").await;
    stream
}

/// Reads on until this was seen.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(wanted) {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "the stream ended before {wanted:?}: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test]
async fn changes_and_dead_letters_are_told_as_they_happen() {
    let server = Server::start().await;
    let mut stream = listen(&server).await;
    server.fine("PUT", "/api/queues/q", r#"{"deadLetteringOnMessageExpiration": true}"#).await;
    let told = read_until(&mut stream, "entityCreated\",").await;
    assert!(told.contains("event: entityCreated\ndata: {") && told.contains(r#""entity":"q""#), "{told}");
    server.fine("PATCH", "/api/queues/q", r#"{"maxDeliveryCount": 3}"#).await;
    read_until(&mut stream, "event: entityChanged").await;
    server.bury("queues/q", "queues/q", &["1"]).await;
    let told = read_until(&mut stream, "event: deadLettered").await;
    let told =
        if told.contains(r#""count":1"#) { told } else { read_until(&mut stream, r#""count":1"#).await };
    assert!(told.contains(r#""count":1"#), "{told}");
    server.fine("PUT", "/api/topics/t", "").await;
    server.fine("PUT", "/api/topics/t/subscriptions/s", "").await;
    read_until(&mut stream, "t/Subscriptions/s").await;
    server.fine("PUT", "/api/topics/t/subscriptions/s/rules/r", "{}").await;
    read_until(&mut stream, "event: entityChanged").await;
    server.fine("DELETE", "/api/queues/q", "").await;
    read_until(&mut stream, "event: entityDeleted").await;
    // A server that stops ends the stream; one that could not would hang here.
    server.stop().await;
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn a_namespace_that_has_become_another_is_told_and_so_is_what_follows() {
    let server = Server::start().await;
    server.fine("PUT", "/api/queues/q", "").await;
    server.fine("PUT", "/dev/snapshots/before", "").await;
    let mut stream = listen(&server).await;
    server.fine("POST", "/dev/reset", r#"{"entities": false}"#).await;
    let told = read_until(&mut stream, "entities are as they were").await;
    assert!(told.contains("event: namespaceReset\ndata: {"), "{told}");
    server.fine("POST", "/dev/reset", r#"{"entities": true}"#).await;
    let told = read_until(&mut stream, "every entity is gone").await;
    assert!(told.contains("event: namespaceReset\ndata: {"), "{told}");
    server.fine("POST", "/dev/snapshots/before/restore", "").await;
    let told = read_until(&mut stream, r#""subject":"before""#).await;
    assert!(told.contains("event: namespaceRestored\ndata: {"), "{told}");
    // The feed outlives both: what happens in the other namespace is told, too.
    server.fine("PATCH", "/api/queues/q", r#"{"maxDeliveryCount": 3}"#).await;
    read_until(&mut stream, "event: entityChanged").await;
    server.refused(404, "POST", "/dev/snapshots/absent/restore", "").await;
    server.fine("DELETE", "/api/queues/q", "").await;
    let told = read_until(&mut stream, "event: entityDeleted").await;
    assert!(!told.contains("namespaceRestored"), "nothing was restored: {told}");
    server.stop().await;
}

#[tokio::test]
async fn only_those_who_may_manage_the_namespace_may_listen() {
    let server = Server::start().await;
    let rules = r#"{"authorizationRules": [{"keyName": "k", "rights": ["Manage", "Send", "Listen"], "primaryKey": "key"}]}"#;
    server.fine("PUT", "/api/queues/q", rules).await;
    for wrong in [String::new(), token("k", "key", "q")] {
        assert_eq!(server.ask_as(&wrong, "GET", "/api/$events", "").await.status, 401);
    }
    server.stop().await;
}

#[tokio::test]
async fn connections_are_told_listed_and_closed() {
    let server = Server::start().await;
    let mut stream = listen(&server).await;
    let mut client = TcpStream::connect(server.amqp).await.unwrap();
    read_until(&mut stream, "event: connectionOpened").await;
    let connections = server.fine("GET", "/api/connections", "").await;
    let id = connections["items"][0]["id"].as_u64().unwrap();
    assert_eq!(connections["items"][0]["transport"], "plain");
    let one = server.fine("GET", &format!("/api/connections/{id}"), "").await;
    assert_eq!(one["peer"], client.local_addr().unwrap().to_string());
    server.fine("DELETE", &format!("/api/connections/{id}"), "").await;
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    read_until(&mut stream, "event: connectionClosed").await;
    server.refused(404, "DELETE", &format!("/api/connections/{id}"), "").await;
    server.refused(400, "GET", "/api/connections/first", "").await;
    assert_eq!(server.fine("GET", "/api/targets", "").await["items"], serde_json::json!([]));
    server.stop().await;
}
