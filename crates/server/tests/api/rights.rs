//! Who may do what: the broker's one door, told in the API's words; and keys that never show.

use serde_json::{Value as Json, json};

use crate::server::{Server, token};

const SECRET: &str = "planted-secret-0123456789";

async fn with_key(server: &Server, rights: &[&str]) -> String {
    let rules = json!({"authorizationRules": [{"keyName": "k", "rights": rights, "primaryKey": SECRET}]});
    let created = server.ask("PUT", "/api/queues/q", &rules.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.body);
    server.fine("PUT", "/api/queues/other", "{}").await;
    token("k", SECRET, "q")
}

#[tokio::test]
async fn each_right_opens_what_it_should_and_nothing_else() {
    let requests = [
        ("GET", "/api/queues/q", "", "Manage"),
        ("PATCH", "/api/queues/q", "{}", "Manage"),
        ("POST", "/api/queues/q/messages", "{}", "Send"),
        ("GET", "/api/queues/q/mailboxes/main/messages", "", "Listen"),
        ("GET", "/api/queues/q/mailboxes/main/messages/1/explanation", "", "Listen"),
        ("GET", "/api/queues/q/mailboxes/deadletter/groups", "", "Listen"),
        ("POST", "/api/queues/q/mailboxes/deadletter/purge", r#"{"select": {"all": true}}"#, "Listen"),
        (
            "POST",
            "/api/queues/q/mailboxes/main/reprioritise",
            r#"{"select": {"all": true}, "level": 7}"#,
            "Manage",
        ),
        ("GET", "/api/queues/other", "", "nothing"),
        ("GET", "/api/queues", "", "nothing"),
        ("GET", "/api/topics/none", "", "nothing"),
        ("GET", "/api/definitions", "", "nothing"),
        ("POST", "/api/definitions", "{}", "nothing"),
        (
            "POST",
            "/api/queues/q/mailboxes/deadletter/replay",
            r#"{"select": {"all": true}, "to": "other"}"#,
            "nothing",
        ),
    ];
    for held in ["Send", "Listen", "Manage"] {
        let server = Server::start().await;
        let token = with_key(&server, &[held]).await;
        server.fine("POST", "/api/queues/q/messages", "{}").await;
        for (method, path, body, needs) in requests {
            let allowed = needs == held || (held == "Manage" && needs != "nothing");
            let answer = server.ask_as(&token, method, path, body).await;
            let permitted = answer.status != 401;
            assert_eq!(permitted, allowed, "{held}: {method} {path}: {} {}", answer.status, answer.body);
            if !permitted {
                let problem = answer.json();
                assert_eq!(problem["type"], "urn:vorrang:problem:unauthorized");
                assert_eq!(answer.headers["www-authenticate"], "SharedAccessSignature");
            }
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_told() {
    let server = Server::start().await;
    with_key(&server, &["Listen"]).await;
    for wrong in ["", "SharedAccessSignature sr=x", &token("k", "another key", "q"), "Bearer x", "Basic Og=="]
    {
        for path in
            ["/api/queues/q", "/api/queues/none", "/api/namespace", "/api/queues/q/mailboxes/main/messages"]
        {
            let answer = server.ask_as(wrong, "GET", path, "").await;
            assert_eq!(answer.status, 401, "{wrong} {path}: {}", answer.body);
        }
    }
    assert_eq!(server.ask_as("", "GET", "/api/openapi.json", "").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_key_is_never_part_of_an_answer() {
    let server = Server::start().await;
    with_key(&server, &["Send", "Listen"]).await;
    let rules = |entity: &Json| entity["properties"]["authorizationRules"].clone();
    let expected = json!([{"keyName": "k", "rights": ["Send", "Listen"]}]);
    for (method, path, body) in [
        ("GET", "/api/queues/q", ""),
        ("PATCH", "/api/queues/q", r#"{"maxDeliveryCount": 4}"#),
        (
            "PATCH",
            "/api/queues/q",
            r#"{"authorizationRules": [{"keyName": "k", "rights": ["Send", "Listen"]}]}"#,
        ),
    ] {
        let answer = server.ask(method, path, body).await;
        assert!(!answer.body.contains(SECRET), "{method} {path}");
        assert_eq!(rules(&answer.json()), expected);
    }
    for (method, path, body) in [
        ("GET", "/api/definitions", String::new()),
        ("GET", "/api/queues", String::new()),
        (
            "PUT",
            "/api/queues/q",
            format!(
                r#"{{"authorizationRules": [{{"keyName": "", "rights": [], "primaryKey": "{SECRET}"}}]}}"#
            ),
        ),
        (
            "PUT",
            "/api/queues/p",
            format!(
                r#"{{"authorizationRules": [{{"keyName": "", "rights": [], "primaryKey": "{SECRET}"}}]}}"#
            ),
        ),
        (
            "PUT",
            "/api/queues/p",
            format!(r#"{{"authorizationRules": [{{"keyName": 7, "primaryKey": "{SECRET}"}}]}}"#),
        ),
    ] {
        let answer = server.ask(method, path, &body).await;
        assert!(!answer.body.contains(SECRET), "{method} {path}: {}", answer.body);
    }
    // The rule was written back without its keys: they are the same as before.
    let listed =
        server.ask_as(&token("k", SECRET, "q"), "GET", "/api/queues/q/mailboxes/main/messages", "").await;
    assert_eq!(listed.status, 200, "{}", listed.body);
    server.stop().await;
}

#[tokio::test]
async fn the_document_names_every_path_and_only_real_types() {
    let server = Server::start().await;
    let document = server.fine("GET", "/api/openapi.json", "").await;
    assert_eq!(document["openapi"], "3.1.0");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name} is missing");
    }
    for path in
        ["/api/queues/{queue}", "/api/topics/{topic}/subscriptions/{subscription}/mailboxes/{mailbox}/replay"]
    {
        assert!(document["paths"].get(path).is_some(), "{path}");
    }
    assert!(document["components"]["schemas"]["Properties"]["properties"].get("rescue").is_some());
    server.stop().await;
}
