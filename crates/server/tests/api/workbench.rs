//! The dead-letter workbench, and other work on waiting messages.

use serde_json::{Value as Json, json};
use tokio::io::AsyncReadExt;

use crate::server::{Server, token};

async fn work(server: &Server, entity: &str, what: &str, body: &Json) -> Json {
    let answer =
        server.ask("POST", &format!("/api/{entity}/mailboxes/deadletter/{what}"), &body.to_string()).await;
    assert_eq!(
        (answer.status, answer.headers["content-type"].as_str()),
        (200, "application/x-ndjson"),
        "{}",
        answer.body
    );
    let last = answer.last_line();
    assert_eq!((&last["done"], last.get("problem")), (&json!(true), None), "{last}");
    last
}

async fn count(server: &Server, entity: &str, property: &str) -> u64 {
    server.fine("GET", &format!("/api/{entity}"), "").await["runtime"][property].as_u64().unwrap()
}

async fn graves(server: &Server) {
    server
        .fine(
            "PUT",
            "/api/queues/q",
            r#"{"deadLetteringOnMessageExpiration": true, "requiresDuplicateDetection": true}"#,
        )
        .await;
    server.fine("PUT", "/api/queues/other", "{}").await;
}

#[tokio::test]
async fn dead_letters_are_grouped_repaired_and_sent_again() {
    let server = Server::start().await;
    graves(&server).await;
    server.bury("queues/q", "queues/q", &["1", "2", "3"]).await;
    let groups = server.fine("GET", "/api/queues/q/mailboxes/deadletter/groups", "").await;
    let group = &groups["groups"][0];
    assert_eq!(
        (&group["reason"], &group["count"], &group["examples"]),
        (&json!("TTLExpiredException"), &json!(3), &json!([1, 2, 3]))
    );
    let letter = server.fine("GET", "/api/queues/q/mailboxes/deadletter/messages/1", "").await;
    assert_eq!(
        (&letter["deadLetterReason"], &letter["deadLetterSource"]),
        (&json!("TTLExpiredException"), &json!("q"))
    );
    // Nothing happens in a dry run; a canary is one message.
    let dry = work(&server, "queues/q", "replay", &json!({"select": {"all": true}, "dryRun": true})).await;
    assert_eq!((&dry["count"], count(&server, "queues/q", "deadLetterMessageCount").await), (&json!(3), 3));
    let edit = json!({"body": {"text": "repaired"}, "properties": {"colour": "blue", "id": null, "new": 1}, "subject": "again",
        "timeToLive": "1h"});
    let canary = json!({"select": {"filter": "colour = 'red'"}, "max": 1, "to": "other", "edit": edit, "ratePerSecond": 1000});
    assert_eq!(work(&server, "queues/q", "replay", &canary).await["count"], 1);
    assert_eq!(count(&server, "queues/q", "deadLetterMessageCount").await, 2);
    let moved = server.fine("GET", "/api/queues/other/mailboxes/main/messages/1", "").await;
    assert_eq!(
        (&moved["body"], &moved["subject"], &moved["messageId"]),
        (&json!({"text": "repaired"}), &json!("again"), &json!("1"))
    );
    assert_eq!(moved["properties"], json!({"colour": "blue", "new": 1}));
    assert_eq!((&moved["level"], moved.get("deadLetterReason")), (&json!(200), None), "its level is kept");
    // Those that are not there are told; the others go where they came from, duplicates or not.
    server
        .fine("PATCH", "/api/queues/q", r#"{"deadLetteringOnMessageExpiration": false, "paused": true}"#)
        .await;
    let named = json!({"select": {"sequenceNumbers": [2, 99]}, "to": "other", "edit": {"timeToLive": "1h"}});
    let report = work(&server, "queues/q", "replay", &named).await;
    assert_eq!(
        (&report["count"], &report["failed"], &report["failures"][0]["sequenceNumber"]),
        (&json!(1), &json!(1), &json!(99))
    );
    let kept = server.fine("GET", "/api/queues/other/mailboxes/main/messages/2", "").await;
    assert_eq!(
        (&kept["body"], &kept["properties"]),
        (&json!({"json": {"n": 1}}), &json!({"colour": "red", "id": "2"}))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_replay_goes_to_the_source_subscription_alone() {
    let server = Server::start().await;
    server.fine("PUT", "/api/topics/t", "{}").await;
    let (a, b) = ("topics/t/subscriptions/a", "topics/t/subscriptions/b");
    server.fine("PUT", &format!("/api/{a}"), r#"{"deadLetteringOnMessageExpiration": true}"#).await;
    server.fine("PUT", &format!("/api/{b}"), "{}").await;
    server.bury("topics/t", a, &["1", "2"]).await;
    // It would expire again at once, as its sender wanted.
    let edit = json!({"timeToLive": "1h"});
    let active = async || {
        (count(&server, a, "activeMessageCount").await, count(&server, b, "activeMessageCount").await)
    };
    let replayed =
        work(&server, a, "replay", &json!({"select": {"sequenceNumbers": [1]}, "edit": edit})).await;
    assert_eq!((&replayed["count"], active().await), (&json!(1), (1, 0)));
    let all = work(&server, a, "replay", &json!({"select": {"all": true}, "to": "t", "edit": edit})).await;
    assert_eq!((&all["count"], active().await), (&json!(1), (2, 1)));
    server.stop().await;
}

#[tokio::test]
async fn purging_deletes_what_is_chosen() {
    let server = Server::start().await;
    graves(&server).await;
    server.bury("queues/q", "queues/q", &["1", "2", "3", "4"]).await;
    let dry = work(&server, "queues/q", "purge", &json!({"select": {"all": true}, "dryRun": true})).await;
    assert_eq!(dry["count"], 4);
    let cases = [
        (json!({"select": {"filter": "id = '3'"}}), 1, 0, 3),
        (json!({"select": {"sequenceNumbers": [1, 99]}}), 1, 1, 2),
        (json!({"select": {"all": true}, "max": 1}), 1, 0, 1),
        (json!({"select": {"all": true}}), 1, 0, 0),
    ];
    for (request, deleted, failed, left) in cases {
        let report = work(&server, "queues/q", "purge", &request).await;
        assert_eq!((&report["count"], &report["failed"]), (&json!(deleted), &json!(failed)), "{request}");
        assert_eq!(count(&server, "queues/q", "deadLetterMessageCount").await, left, "{request}");
    }
    let path = "/api/queues/q/mailboxes/deadletter/purge";
    for nothing in ["", "{}", r#"{"select": {}}"#, r#"{"select": {"all": true, "filter": "a=1"}}"#] {
        server.refused(400, "POST", path, nothing).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn waiting_messages_get_another_class() {
    let server = Server::start().await;
    server.fine("PUT", "/api/queues/q", r#"{"classes": [{"name": "gold", "level": 100}]}"#).await;
    let messages: Vec<String> = (1..=5).map(|n| format!(r#"{{"properties": {{"n": {n}}}}}"#)).collect();
    server.fine("POST", "/api/queues/q/messages", &format!("[{}]", messages.join(","))).await;
    let path = "/api/queues/q/mailboxes/main/reprioritise";
    let cases = [
        (json!({"select": {"filter": "n > 3"}, "class": "GOLD", "dryRun": true}), 2, 100),
        (json!({"select": {"filter": "n > 3"}, "class": "gold"}), 2, 100),
        (json!({"select": {"filter": "n > 3"}, "class": "gold"}), 0, 100),
        (json!({"select": {"sequenceNumbers": [1, 4]}, "level": 7}), 2, 7),
        (json!({"select": {"all": true}, "level": 7, "max": 1}), 1, 7),
    ];
    for (request, count, level) in cases {
        let report = server.fine("POST", path, &request.to_string()).await;
        assert_eq!(report, json!({"count": count, "level": level, "incomplete": false}), "{request}");
    }
    let unknown = json!({"select": {"all": true}, "class": "silver"}).to_string();
    let problem = server.refused(400, "POST", path, &unknown).await;
    assert!(problem["detail"].as_str().unwrap().contains("gold, low, normal, high, urgent"), "{problem}");
    server.refused(400, "POST", path, r#"{"select": {"all": true}}"#).await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_goes_away_stops_a_replay_between_two_messages() {
    let server = Server::start().await;
    graves(&server).await;
    let ids: Vec<String> = (0..120).map(|n| n.to_string()).collect();
    server.bury("queues/q", "queues/q", &ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let token = token("RootManageSharedAccessKey", "SAS_KEY_VALUE", "");
    // With a life of their own: they would expire again within a millisecond, and `other` drops what has.
    let request =
        r#"{"select": {"all": true}, "to": "other", "ratePerSecond": 200, "edit": {"timeToLive": "1h"}}"#;
    let mut stream = server.send(&token, "POST", "/api/queues/q/mailboxes/deadletter/replay", request).await;
    let mut line = [0; 512];
    assert!(stream.read(&mut line).await.unwrap() > 0);
    drop(stream);
    // Whatever was moved is in exactly one of the two places, and the rest stays where it was, once the work has stopped: a disk
    // that stands still for a while looks like that, too.
    let (mut before, mut seen) = (0, (0, 0));
    for _ in 0..300 {
        let left = count(&server, "queues/q", "deadLetterMessageCount").await;
        seen = (left, count(&server, "queues/other", "activeMessageCount").await);
        if left == before && seen.0 + seen.1 == 120 {
            break;
        }
        before = left;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(seen.0 + seen.1, 120);
    assert!(seen.0 > 0, "the work went on without its client");
    server.stop().await;
}
