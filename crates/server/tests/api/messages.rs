//! Messages: send, browse, look, explain.

use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn what_is_sent_is_told_as_it_was_given() {
    let server = Server::start().await;
    server.fine("PUT", "/api/queues/q", "{}").await;
    let sent = server
        .fine(
            "POST",
            "/api/queues/q/messages",
            r#"[{"messageId": "1", "subject": "s", "correlationId": "c", "replyTo": "r", "level": 9, "body": {"json": {"a": [1, null]}},
                 "properties": {"n": -5, "d": 1.5, "t": "x", "b": true, "at": {"type": "timestamp", "value": "2026-01-02T03:04:05Z"}}},
                {"messageId": "2", "body": {"text": "hé"}}, {"messageId": "3", "body": {"base64": "/w=="}}, {"messageId": "4"}]"#,
        )
        .await;
    assert_eq!(sent["sequenceNumbers"], json!([1, 2, 3, 4]));
    let at = "/api/queues/q/mailboxes/main/messages";
    let first = server.fine("GET", &format!("{at}/1"), "").await;
    assert_eq!(first["body"], json!({"json": {"a": [1, null]}}));
    assert_eq!(
        (&first["contentType"], &first["level"], &first["class"]),
        (&json!("application/json"), &json!(9), &json!("urgent"))
    );
    assert_eq!(
        (&first["subject"], &first["correlationId"], &first["replyTo"]),
        (&json!("s"), &json!("c"), &json!("r"))
    );
    assert_eq!(
        first["properties"],
        json!({"n": -5, "d": 1.5, "t": "x", "b": true, "at": {"type": "timestamp", "value": "2026-01-02T03:04:05Z"}})
    );
    for (sequence, body) in
        [(2, json!({"text": "hé"})), (3, json!({"base64": "/w=="})), (4, json!({"text": ""}))]
    {
        assert_eq!(server.fine("GET", &format!("{at}/{sequence}"), "").await["body"], body);
    }
    server.refused(404, "GET", &format!("{at}/5"), "").await;
    server.refused(400, "GET", &format!("{at}/five"), "").await;
    server.refused(400, "GET", "/api/queues/q/mailboxes/attic/messages", "").await;
    server.stop().await;
}

#[tokio::test]
async fn browsing_finds_by_filter_level_state_and_page() {
    let server = Server::start().await;
    server.fine("PUT", "/api/queues/q", "{}").await;
    let message =
        |n: u32| format!(r#"{{"messageId": "{n}", "level": {}, "properties": {{"n": {n}}}}}"#, n % 2);
    let messages: Vec<String> = (1..=10).map(message).collect();
    server.fine("POST", "/api/queues/q/messages", &format!("[{}]", messages.join(","))).await;
    server
        .fine(
            "POST",
            "/api/queues/q/messages",
            r#"{"messageId": "later", "scheduledFor": "2999-01-01T00:00:00Z"}"#,
        )
        .await;
    let at = "/api/queues/q/mailboxes/main/messages";
    let ids = |page: &serde_json::Value| -> Vec<String> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["messageId"].as_str().unwrap().to_owned())
            .collect()
    };
    let cases = [
        ("filter=n%20%3E%208", vec!["9", "10"]),
        ("level=1&filter=n%3C4", vec!["1", "3"]),
        ("state=scheduled", vec!["later"]),
        ("from=9&state=active", vec!["9", "10"]),
    ];
    for (query, expected) in cases {
        assert_eq!(ids(&server.fine("GET", &format!("{at}?{query}"), "").await), expected, "{query}");
    }
    let first = server.fine("GET", &format!("{at}?top=6"), "").await;
    let second = server.fine("GET", first["next"].as_str().unwrap(), "").await;
    assert_eq!(
        (ids(&first).len(), ids(&second)),
        (6, ["7", "8", "9", "10", "later"].map(str::to_owned).to_vec())
    );
    assert_eq!((first["items"][0].get("body"), second.get("next")), (None, None));
    let problem = server.refused(400, "GET", &format!("{at}?filter=n%20%3D"), "").await;
    assert_eq!(problem["errors"][0]["field"], "filter");
    server.stop().await;
}

#[tokio::test]
async fn a_waiting_message_is_explained_and_counted() {
    let server = Server::start().await;
    server
        .fine("PUT", "/api/queues/q", r#"{"classes": [{"name": "gold", "level": 100, "targetWait": "1h"}]}"#)
        .await;
    server
        .fine(
            "POST",
            "/api/queues/q/messages",
            r#"[{"properties": {"Priority": "gold"}}, {"level": 4}, {"level": 4}]"#,
        )
        .await;
    let explained = server.fine("GET", "/api/queues/q/mailboxes/main/messages/3/explanation", "").await;
    assert_eq!((&explained["activity"], &explained["levelOrigin"]), (&json!("waiting"), &json!("header")));
    assert_eq!(
        explained["ahead"],
        json!([{"level": 100, "count": 1, "atLeast": false}, {"level": 4, "count": 1, "atLeast": false}])
    );
    assert_eq!(explained["blockers"][0]["kind"], "noReceiver");
    let live = server.fine("GET", "/api/queues/q/live", "").await;
    let gold = &live["mailboxes"][0]["classes"][0];
    assert_eq!(
        (&gold["class"], &gold["counts"]["active"], &gold["totals"]["enqueued"]),
        (&json!("gold"), &json!(1), &json!(1))
    );
    assert_eq!(gold["targetWait"], "PT1H");
    server.stop().await;
}

#[tokio::test]
async fn sessions_are_listed_in_pages() {
    let server = Server::start().await;
    server.fine("PUT", "/api/queues/q", r#"{"requiresSession": true}"#).await;
    let messages: Vec<String> =
        ["b", "a", "c", "a"].iter().map(|id| format!(r#"{{"sessionId": "{id}"}}"#)).collect();
    server.fine("POST", "/api/queues/q/messages", &format!("[{}]", messages.join(","))).await;
    let first = server.fine("GET", "/api/queues/q/sessions?top=2", "").await;
    assert_eq!(first["items"], json!([{"sessionId": "a"}, {"sessionId": "b"}]));
    let second = server.fine("GET", first["next"].as_str().unwrap(), "").await;
    assert_eq!((&second["items"], second.get("next")), (&json!([{"sessionId": "c"}]), None));
    server.refused(400, "POST", "/api/queues/q/messages", "{}").await;
    server.stop().await;
}

#[tokio::test]
async fn a_batch_is_taken_whole_or_not_at_all() {
    let server = Server::start().await;
    server.fine("PUT", "/api/queues/q", "{}").await;
    let bad = r#"[{"messageId": "1"}, {"colour": "red"}, {"body": {"base64": "*"}, "timeToLive": "x", "scheduledFor": "y"}]"#;
    let problem = server.refused(400, "POST", "/api/queues/q/messages", bad).await;
    let fields: Vec<&str> =
        problem["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["[1]", "[2].body.base64", "[2].timeToLive", "[2].scheduledFor"]);
    server.refused(400, "POST", "/api/queues/q/messages", "[]").await;
    server.refused(404, "POST", "/api/queues/none/messages", "{}").await;
    let large = format!(r#"{{"body": {{"text": "{}"}}}}"#, "x".repeat(300 * 1024));
    let problem = server.refused(403, "POST", "/api/queues/q/messages", &large).await;
    assert!(problem["detail"].as_str().unwrap().contains("262144"), "{problem}");
    assert_eq!(server.fine("GET", "/api/queues/q", "").await["runtime"]["activeMessageCount"], 0);
    server.stop().await;
}
