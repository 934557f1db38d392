//! The data plane as a script meets it.

use crate::server::{Answer, Server};

async fn with_queue(description: &str) -> Server {
    let server = Server::start().await;
    let body = format!("<QueueDescription>{description}</QueueDescription>");
    assert_eq!(server.ask("PUT", "/q", &[], &body).await.status, 201);
    server
}

/// The path of a `Location`.
fn path(location: &str) -> &str {
    let (_, rest) = location.split_once("://").unwrap();
    rest.split_at(rest.find('/').unwrap()).1
}

#[tokio::test]
async fn a_message_goes_through_with_everything_it_has() {
    let server = with_queue("").await;
    let headers = [
        ("Content-Type", "text/plain"),
        ("BrokerProperties", r#"{"MessageId":"a/b","Label":"l","CorrelationId":"c","TimeToLive":90.5}"#),
        ("Color", "\"red\""),
        ("Amount", "7"),
        ("Priority", "\"high\""),
    ];
    assert_eq!(server.ask("POST", "/q/messages", &headers, "hello").await.status, 201);
    let taken = server.ask("POST", "/q/messages/head?timeout=20", &[], "").await;
    assert_eq!((taken.status, taken.body.as_str()), (201, "hello"));
    assert_eq!(taken.headers["content-type"], "text/plain");
    assert_eq!((taken.headers["color"].as_str(), taken.headers["amount"].as_str()), ("\"red\"", "7"));
    let properties = taken.properties();
    assert_eq!(properties["MessageId"], "a/b");
    assert_eq!((&properties["Label"], &properties["CorrelationId"]), (&"l".into(), &"c".into()));
    assert_eq!((&properties["DeliveryCount"], &properties["SequenceNumber"]), (&1.into(), &1.into()));
    assert_eq!(properties["TimeToLive"], 90.5);
    assert_eq!(properties["State"], "Active");
    let lock = path(&taken.headers["location"]).to_owned();
    assert!(lock.starts_with("/q/messages/a%2Fb/"), "{lock}");
    let renewed = server.ask("POST", &lock, &[], "").await;
    assert_eq!(renewed.status, 200);
    assert!(renewed.properties()["LockedUntilUtc"].is_string());

    assert_eq!(server.ask("PUT", &lock, &[], "").await.status, 200, "unlock");
    assert_eq!(server.ask("DELETE", &lock, &[], "").await.status, 404, "the lock is gone");
    let again = server.ask("POST", "/q/messages/head", &[], "").await;
    assert_eq!(again.properties()["DeliveryCount"], 2);
    assert_eq!(server.ask("DELETE", path(&again.headers["location"]), &[], "").await.status, 200);
    assert_eq!(server.ask("POST", "/q/messages/head?timeout=0", &[], "").await.status, 204);
    server.stop().await;
}

#[tokio::test]
async fn answers_write_names_with_their_capitals_and_lead_back_the_way_the_client_came() {
    let server = with_queue("").await;
    let sent = [
        ("BrokerProperties", r#"{"MessageId":"m"}"#),
        ("CustomerTier", "7"),
        ("plain", "true"),
        ("x-ODD", "1"),
    ];
    assert_eq!(server.ask("POST", "/q/messages", &sent, "hello").await.status, 201);
    let taken = server.ask("POST", "/q/messages/head?timeout=20", &[], "").await;
    let named =
        |answer: &Answer, name: &str| answer.head.lines().any(|line| line.starts_with(&format!("{name}: ")));
    for name in ["BrokerProperties", "CustomerTier", "plain", "x-ODD", "Location", "Content-Length", "Date"] {
        assert!(named(&taken, name), "{name}: {}", taken.head);
    }
    let location = &taken.headers["location"];
    assert!(location.starts_with(&format!("http://{}/q/messages/m/", server.http)), "{location}");
    let renewed = server.ask("POST", path(location), &[], "").await;
    assert!(named(&renewed, "BrokerProperties"), "{}", renewed.head);
    assert_eq!(server.ask("PUT", path(location), &[], "").await.status, 200);
    let proxied = [("X-Forwarded-Proto", "https")];
    let again = server.ask("POST", "/q/messages/head?timeout=20", &proxied, "").await;
    assert!(again.headers["location"].starts_with("https://"), "{}", again.head);
    server.stop().await;
}

#[tokio::test]
async fn names_of_properties_keep_the_case_they_were_sent_in() {
    let server = with_queue("").await;
    // A body that looks like a head, to be told from one.
    let body = "POST /q/messages HTTP/1.1\r\nCUSTOMERTIER: 1\r\n\r\n";
    for name in ["CustomerTier", "customertier", "CUSTOMERtier"] {
        assert_eq!(server.ask("POST", "/q/messages", &[(name, "7")], body).await.status, 201);
    }
    let shown = server.ask("GET", "/api/queues/q/mailboxes/main/messages", &[], "").await;
    let shown: serde_json::Value = serde_json::from_str(&shown.body).unwrap();
    let names: Vec<&str> = shown["items"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["properties"].as_object().unwrap().keys().map(String::as_str))
        .collect();
    assert_eq!(names, ["CustomerTier", "customertier", "CUSTOMERtier"]);
    server.stop().await;
}

#[tokio::test]
async fn receiving_and_deleting_takes_the_most_important_message_first() {
    let server = with_queue("").await;
    let batch = r#"[{"Body":"low","UserProperties":{"Priority":"low"}},{"Body":"high","UserProperties":{"Priority":"high"}}]"#;
    let kind = [("Content-Type", "application/vnd.microsoft.servicebus.json")];
    assert_eq!(server.ask("POST", "/q/messages", &kind, batch).await.status, 201);
    for expected in ["high", "low"] {
        let taken = server.ask("DELETE", "/q/messages/head?timeout=20", &[], "").await;
        assert_eq!((taken.status, taken.body.as_str()), (200, expected));
        assert_eq!(taken.headers["priority"], format!("\"{expected}\""));
        assert!(!taken.headers.contains_key("location"));
    }
    assert_eq!(server.ask("DELETE", "/q/messages/head?timeout=0", &[], "").await.status, 204);
    let counts = server.ask("GET", "/q", &[], "").await;
    assert_eq!(counts.element("MessageCount"), Some("0"));
    server.stop().await;
}

#[tokio::test]
async fn a_waiting_receiver_is_woken_by_the_message() {
    let server = with_queue("").await;
    let (taken, sent) = tokio::join!(
        server.ask("DELETE", "/q/messages/head?timeout=60", &[], ""),
        server.ask("POST", "/q/messages", &[], "now"),
    );
    assert_eq!((sent.status, taken.status, taken.body.as_str()), (201, 200, "now"));
    server.stop().await;
}

#[tokio::test]
async fn a_receiver_that_went_away_keeps_no_message() {
    let server = with_queue("").await;
    let token = crate::server::token_for("RootManageSharedAccessKey", crate::server::KEY, "");
    let headers = [("Authorization", token.as_str())];
    let waiting = server.send("POST", "/q/messages/head?timeout=60", &headers, "").await;
    drop(waiting);
    assert_eq!(server.ask("POST", "/q/messages", &[], "kept").await.status, 201);
    // The broker may have handed it to the one who left; then it comes back uncounted.
    let taken = server.ask("POST", "/q/messages/head?timeout=60", &[], "").await;
    assert_eq!((taken.status, taken.body.as_str()), (201, "kept"));
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_those_who_wait() {
    let server = with_queue("").await;
    let token = crate::server::token_for("RootManageSharedAccessKey", crate::server::KEY, "");
    let headers = [("Authorization", token.as_str())];
    let _waiting = server.send("POST", "/q/messages/head?timeout=120", &headers, "").await;
    // An answer to a later request: the earlier one is most likely waiting by now.
    assert_eq!(server.ask("GET", "/q", &[], "").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn dead_letters_and_subscriptions_are_received_from_by_their_paths() {
    let server = with_queue("<MaxDeliveryCount>1</MaxDeliveryCount>").await;
    assert_eq!(server.ask("POST", "/q/messages", &[], "poison").await.status, 201);
    let taken = server.ask("POST", "/q/messages/head", &[], "").await;
    assert_eq!(server.ask("PUT", path(&taken.headers["location"]), &[], "").await.status, 200);
    let dead = server.ask("POST", "/q/$DeadLetterQueue/messages/head?timeout=20", &[], "").await;
    assert_eq!((dead.status, dead.body.as_str()), (201, "poison"));
    assert_eq!(dead.headers["deadletterreason"], "\"MaxDeliveryCountExceeded\"");
    assert_eq!(dead.properties()["DeadLetterSource"], "q");
    assert_eq!(server.ask("DELETE", path(&dead.headers["location"]), &[], "").await.status, 200);

    assert_eq!(server.ask("PUT", "/t", &[], "<TopicDescription/>").await.status, 201);
    assert_eq!(server.ask("PUT", "/t/subscriptions/s", &[], "<SubscriptionDescription/>").await.status, 201);
    assert_eq!(server.ask("POST", "/t/messages", &[], "news").await.status, 201);
    let taken = server.ask("DELETE", "/t/Subscriptions/s/messages/head", &[], "").await;
    assert_eq!((taken.status, taken.body.as_str()), (200, "news"));
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_done_has_the_codes_of_the_data_plane() {
    let server = with_queue("<MaxMessageSizeInKilobytes>1</MaxMessageSizeInKilobytes>").await;
    let sessions = "<QueueDescription><RequiresSession>true</RequiresSession></QueueDescription>";
    assert_eq!(server.ask("PUT", "/s", &[], sessions).await.status, 201);
    assert_eq!(server.ask("PUT", "/t", &[], "<TopicDescription/>").await.status, 201);
    let none: &[(&str, &str)] = &[];
    let lock = "/q/messages/1/01234567-89ab-cdef-0123-456789abcdef";
    let batch: &[(&str, &str)] = &[("Content-Type", "application/vnd.microsoft.servicebus.json")];
    let wrong: &[(&str, &str)] = &[("BrokerProperties", "{")];
    let large = "x".repeat(1_025);
    let nearly = "x".repeat(1_024);
    let cases = [
        ("POST", "/absent/messages", none, "", 410),
        ("POST", "/absent/messages/head?timeout=0", none, "", 410),
        ("DELETE", lock, none, "", 404),
        ("PUT", lock, none, "", 404),
        ("POST", lock, none, "", 404),
        ("POST", "/q/messages", none, &large, 403),
        ("POST", "/q/messages", none, &nearly, 403),
        ("POST", "/q/messages", wrong, "", 400),
        ("POST", "/q/messages", batch, "{}", 400),
        ("POST", "/s/messages", none, "", 400),
        ("POST", "/s/messages/head?timeout=0", none, "", 400),
        ("POST", "/q/messages/head?timeout=soon", none, "", 400),
        ("POST", "/q/$management/messages", none, "", 404),
    ];
    for (method, path, headers, body, status) in cases {
        let answer = server.ask(method, path, headers, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        assert_eq!(answer.element("Code"), Some(status.to_string().as_str()));
    }
    assert_eq!(server.ask("GET", "/q", &[], "").await.element("MessageCount"), Some("0"), "nothing got in");
    server.stop().await;
}
