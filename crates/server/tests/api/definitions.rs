//! All definitions as one file.

use serde_json::{Value as Json, json};

use crate::server::Server;

fn wanted() -> Json {
    json!({
        "queues": {
            "a": {"forwardTo": "b", "maxDeliveryCount": 3},
            "b": {"classes": [{"name": "gold", "level": 100, "targetWait": "PT10S"}], "policy": "deadline",
                  "authorizationRules": [{"keyName": "k", "rights": ["Send"]}]},
        },
        "topics": {
            "t": {"properties": {"userMetadata": "x"},
                  "subscriptions": {"s": {"maxDeliveryCount": 2, "rules": {"r": {"filter": {"type": "sql", "expression": "a = 1"}}}}}},
        },
    })
}

async fn apply(server: &Server, query: &str, definitions: &Json) -> Json {
    server.fine("POST", &format!("/api/definitions?{query}"), &definitions.to_string()).await
}

fn sums(report: &Json) -> [u64; 6] {
    ["created", "changed", "unchanged", "deleted", "wouldDelete", "failed"]
        .map(|name| report[name].as_u64().unwrap())
}

#[tokio::test]
async fn a_file_is_applied_once_and_changes_nothing_again() {
    let server = Server::start().await;
    let dry = apply(&server, "dryRun=true", &wanted()).await;
    assert_eq!((sums(&dry), &dry["dryRun"]), ([4, 0, 0, 0, 0, 0], &json!(true)));
    server.refused(404, "GET", "/api/queues/a", "").await;
    assert_eq!(sums(&apply(&server, "", &wanted()).await), [4, 0, 0, 0, 0, 0]);
    assert_eq!(server.fine("GET", "/api/queues/a", "").await["properties"]["forwardTo"], "b");
    // The four entities and one rule.
    assert_eq!(sums(&apply(&server, "", &wanted()).await), [0, 0, 5, 0, 0, 0]);
    let exported = server.fine("GET", "/api/definitions", "").await;
    assert!(!exported.to_string().contains("Key\""), "{exported}");
    assert_eq!(sums(&apply(&server, "prune=true", &exported).await), [0, 0, 5, 0, 0, 0]);
    server.stop().await;
}

#[tokio::test]
async fn an_export_makes_the_same_namespace_elsewhere() {
    let (one, other) = (Server::start().await, Server::start().await);
    apply(&one, "", &wanted()).await;
    let exported = one.fine("GET", "/api/definitions", "").await;
    apply(&other, "", &exported).await;
    assert_eq!(other.fine("GET", "/api/definitions", "").await, exported);
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn changes_leftovers_and_failures_are_told_one_by_one() {
    let server = Server::start().await;
    apply(&server, "", &wanted()).await;
    let mut changed = wanted();
    changed["queues"]["a"]["maxDeliveryCount"] = json!(5);
    changed["queues"]["a"]["forwardTo"] = json!("");
    changed["topics"]["t"]["subscriptions"]["s"]["rules"] = json!({"r": {}, "q": {}});
    changed["queues"].as_object_mut().unwrap().remove("b");
    changed["queues"]["t"] = json!({});
    let report = apply(&server, "", &changed).await;
    // Created rule q, changed a and r, left t and s, b may go, and a queue cannot have a topic's name.
    assert_eq!(sums(&report), [1, 2, 2, 0, 1, 1], "{report}");
    assert_eq!(
        report["entities"][0],
        json!({"path": "a", "outcome": "changed", "changes": ["maxDeliveryCount", "forwardTo"]})
    );
    changed["queues"].as_object_mut().unwrap().remove("t");
    changed["topics"]["t"]["subscriptions"] = json!({});
    assert_eq!(sums(&apply(&server, "prune=true", &changed).await), [0, 0, 2, 2, 0, 0]);
    server.refused(404, "GET", "/api/queues/b", "").await;
    server.stop().await;
}

#[tokio::test]
async fn a_file_with_mistakes_changes_nothing() {
    let server = Server::start().await;
    let bad = json!({
        "queues": {"ok": {}, "b c": {}, "d": {"lockDuration": "soon"}},
        "topics": {"t": {"subscriptions": {"s/s": {}, "s": {"rules": {"r": {"filter": {"type": "sql", "expression": "("}}}}}}},
    });
    let problem = server.refused(400, "POST", "/api/definitions", &bad.to_string()).await;
    let fields: Vec<&str> =
        problem["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "queues.b c",
            "queues.d.lockDuration",
            "topics.t.subscriptions.s.rules.r.filter.expression",
            "topics.t.subscriptions.s/s"
        ]
    );
    server.refused(404, "GET", "/api/queues/ok", "").await;
    server.stop().await;
}
