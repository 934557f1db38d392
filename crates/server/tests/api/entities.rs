//! Queues, topics, subscriptions and rules.

use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn a_queue_lives_its_life() {
    let server = Server::start().await;
    let body = r#"{"lockDuration": "30s", "maxDeliveryCount": 3, "classes": [{"name": "gold", "level": 100, "targetWait": "10s"}],
                   "policy": "aged", "agedStep": "5s", "userMetadata": "note"}"#;
    let created = server.ask("PUT", "/api/queues/a%2Fb", body).await;
    assert_eq!(created.status, 201, "{}", created.body);
    let queue = created.json();
    assert_eq!(
        (&queue["name"], &queue["kind"], &queue["path"]),
        (&json!("a/b"), &json!("queue"), &json!("a/b"))
    );
    assert_eq!(queue["properties"]["lockDuration"], "PT30S");
    assert_eq!(
        queue["properties"]["classes"][0],
        json!({"name": "gold", "level": 100, "targetWait": "PT10S"})
    );
    assert_eq!(queue["runtime"]["activeMessageCount"], 0);
    // Again: it is there; with ifMissing that is fine, and nothing changes.
    let again = server.refused(409, "PUT", "/api/queues/A%2FB", "{}").await;
    assert_eq!(again["type"], "urn:vorrang:problem:conflict");
    let kept = server.ask("PUT", "/api/queues/a%2Fb?ifMissing=true", "{}").await;
    assert_eq!((kept.status, &kept.json()["properties"]["maxDeliveryCount"]), (200, &json!(3)));
    // A change says what changes, and no more.
    let changed =
        server.fine("PATCH", "/api/queues/a%2Fb", r#"{"maxDeliveryCount": 7, "userMetadata": null}"#).await;
    assert_eq!(changed["properties"]["maxDeliveryCount"], 7);
    assert_eq!(changed["properties"]["lockDuration"], "PT30S");
    assert_eq!(changed["properties"].get("userMetadata"), None);
    for (word, paused) in [("pause", true), ("resume", false)] {
        let told = server.fine("POST", &format!("/api/queues/a%2Fb/{word}"), "").await;
        assert_eq!(told["properties"]["paused"], paused);
    }
    assert_eq!(server.ask("DELETE", "/api/queues/a%2Fb", "").await.status, 204);
    let missing = server.refused(404, "GET", "/api/queues/a%2Fb", "").await;
    assert!(missing["detail"].as_str().unwrap().contains("'a/b'"), "{missing}");
    server.stop().await;
}

#[tokio::test]
async fn a_topic_is_no_queue_and_lists_come_in_pages() {
    let server = Server::start().await;
    for name in ["c", "a", "b"] {
        server.fine("PUT", &format!("/api/queues/{name}"), "").await;
    }
    server.fine("PUT", "/api/topics/t", "{}").await;
    server.refused(404, "GET", "/api/queues/t", "").await;
    server.refused(409, "PUT", "/api/queues/t?ifMissing=true", "{}").await;
    let first = server.fine("GET", "/api/queues?top=2", "").await;
    let names = |page: &serde_json::Value| -> Vec<String> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&first), ["a", "b"]);
    let second = server.fine("GET", first["next"].as_str().unwrap(), "").await;
    assert_eq!((names(&second), second.get("next")), (vec!["c".to_owned()], None));
    let namespace = server.fine("GET", "/api/namespace", "").await;
    assert_eq!(namespace["entityCount"], 4);
    server.stop().await;
}

#[tokio::test]
async fn subscriptions_begin_with_the_rules_they_are_given() {
    let server = Server::start().await;
    server.fine("PUT", "/api/topics/t", "{}").await;
    let base = "/api/topics/t/subscriptions";
    let rules = |names: serde_json::Value| -> Vec<String> {
        names["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    };
    server.fine("PUT", &format!("{base}/all"), "{}").await;
    assert_eq!(rules(server.fine("GET", &format!("{base}/all/rules"), "").await), ["$Default"]);
    server.fine("PUT", &format!("{base}/none"), r#"{"rules": {}}"#).await;
    assert_eq!(rules(server.fine("GET", &format!("{base}/none/rules"), "").await), [""; 0]);
    let two = r#"{"rules": {"high": {"filter": {"type": "sql", "expression": "Priority = 'High'"}},
                            "mine": {"filter": {"type": "correlation", "subject": "me"},
                                     "action": {"expression": "SET seen = 1"}}}}"#;
    server.fine("PUT", &format!("{base}/two"), two).await;
    let found = server.fine("GET", &format!("{base}/two/rules/high"), "").await;
    assert_eq!(found["definition"]["filter"], json!({"type": "sql", "expression": "Priority = 'High'"}));
    // One that is refused takes the subscription with it.
    let bad = r#"{"rules": {"a": {}, "b": {"filter": {"type": "sql", "expression": "("}}, "c d": {}}}"#;
    let problem = server.refused(400, "PUT", &format!("{base}/bad"), bad).await;
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2, "{problem}");
    server.refused(404, "GET", &format!("{base}/bad"), "").await;
    // Rules by themselves.
    let rule = format!("{base}/all/rules/r");
    assert_eq!(server.ask("PUT", &rule, r#"{"filter": {"type": "false"}}"#).await.status, 201);
    server.refused(409, "PUT", &rule, "{}").await;
    assert_eq!(server.ask("PUT", &format!("{rule}?ifMissing"), "{}").await.status, 200);
    let changed = server.fine("PATCH", &rule, r#"{"filter": {"type": "true"}}"#).await;
    assert_eq!(changed["definition"]["filter"]["type"], "true");
    assert_eq!(server.ask("DELETE", &rule, "").await.status, 204);
    server.refused(404, "GET", &rule, "").await;
    // All rules at once.
    server.fine("PATCH", &format!("{base}/two"), r#"{"rules": {"high": {}, "new": {}}}"#).await;
    assert_eq!(rules(server.fine("GET", &format!("{base}/two/rules"), "").await), ["high", "new"]);
    server.stop().await;
}

#[tokio::test]
async fn every_mistake_is_told_at_once_with_its_place() {
    let server = Server::start().await;
    let cases = [
        ("unknown and unreadable members", r#"{"colour": 1, "maxDeliveryCount": "x"}"#, 2),
        ("texts that say nothing", r#"{"lockDuration": "soon", "forwardTo": "a b", "agedStep": "1s"}"#, 3),
        ("values out of bounds", r#"{"lockDuration": "6m", "maxDeliveryCount": 0}"#, 2),
        ("what queues do not have", r#"{"filteringMessagesBeforePublishing": true, "rules": {}}"#, 1),
    ];
    for (case, body, count) in cases {
        let problem = server.refused(400, "PUT", "/api/queues/q", body).await;
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(count), "{case}: {problem}");
    }
    server.refused(400, "PUT", "/api/queues/q", "{").await;
    server.refused(400, "PUT", "/api/queues/q", "[]").await;
    server.refused(400, "PUT", "/api/queues/q?colour=red", "{}").await;
    server.refused(400, "GET", "/api/queues?top=0", "").await;
    server.refused(404, "GET", "/api/nothing", "").await;
    let wrong = server.ask("POST", "/api/queues/q", "").await;
    assert_eq!((wrong.status, wrong.headers["allow"].as_str()), (405, "GET, PUT, PATCH, DELETE"));
    server.stop().await;
}

/// Names that break what does not expect them: each is a name that works, or is refused by name.
#[tokio::test]
async fn nasty_names_are_entities_or_refused() {
    let server = Server::start().await;
    let names = [
        "..",
        ".",
        "%",
        "%2F",
        "a/../b",
        "a//b",
        "é",
        "漢字",
        "a b",
        "a\u{0}b",
        "a\nb",
        "\u{202e}abc",
        "$cbs",
        "a?b",
        "a#b",
        "a*b",
        "<script>",
        "'; DROP TABLE",
        "con",
        "~",
        "a+b",
        "$management",
        "x/$deadletterqueue",
        "\u{feff}",
        "api",
        "health",
        "metrics",
        "t/subscriptions/s",
    ];
    for name in names {
        let encoded = name.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
        let path = format!("/api/queues/{encoded}");
        let created = server.ask("PUT", &path, "{}").await;
        match created.status {
            201 => {
                assert_eq!(server.fine("GET", &path, "").await["name"], name);
                assert_eq!(server.ask("DELETE", &path, "").await.status, 204, "{name:?}");
            }
            status => assert_eq!(status, 400, "{name:?}: {}", created.body),
        }
    }
    let long = "a".repeat(261);
    server.refused(400, "PUT", &format!("/api/queues/{long}"), "{}").await;
    server.fine("PUT", &format!("/api/queues/{}", &long[1..]), "{}").await;
    server.refused(400, "GET", "/api/queues/%ff", "").await;
    server.stop().await;
}
