//! What developers do to clients that are connected: the clock, whole namespaces, faults.

use vorrang_amqp::FrameBody;
use vorrang_amqp::performative::{DeliveryState, Error};
use vorrang_engine::Span;
use vorrang_engine::entity::Setting;
use vorrang_server::settings::{Ports, Settings};

use crate::client::Client;
use crate::links::{Delivery, error_of};
use crate::message::{message, now};
use crate::server::{ROOT, ROOT_KEY, Server, key};

const PATHS: [(&str, &str, &str); 13] = [
    ("GET", "/dev/clock", ""),
    ("POST", "/dev/clock/advance", r#"{"by": "1s"}"#),
    ("POST", "/dev/reset", "{}"),
    ("GET", "/dev/snapshots", ""),
    ("PUT", "/dev/snapshots/n", ""),
    ("POST", "/dev/snapshots/n/restore", ""),
    ("DELETE", "/dev/snapshots/n", ""),
    ("GET", "/dev/faults", ""),
    ("POST", "/dev/faults", r#"{"kind": "serverBusy", "entity": "q"}"#),
    ("DELETE", "/dev/faults/1", ""),
    ("DELETE", "/dev/faults", ""),
    ("POST", "/dev/stall", r#"{"for": "1ms"}"#),
    ("POST", "/dev/drop", r#"{"entity": "q"}"#),
];

fn condition(error: &Error) -> &str {
    error.condition.as_str()
}

/// Waits until the server closes the connection, and returns the reason.
fn closed(client: &mut Client) -> Error {
    client.wait("close", |frame| match &frame.body {
        FrameBody::Close(close) => close.error.as_deref().cloned(),
        _ => None,
    })
}

#[test]
fn the_clock_ends_locks_expires_messages_and_wakes_scheduled_ones_at_once() {
    let server = Server::start();
    let lock = Setting::LockDuration(Span::seconds(60));
    let queue = server.queue([lock, Setting::DeadLetteringOnMessageExpiration(true)]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("locked"));
    client.receiver(2, &queue);
    let held = client.receive(2);
    client.post(1, message("scheduled").scheduled(now() + 50_000));
    client.post(1, message("expires").ttl(30_000));
    server.fine("POST", "/dev/clock/advance", r#"{"by": "PT60S"}"#);
    let lost = client.settle(held.id(), DeliveryState::ACCEPTED);
    assert_eq!(condition(error_of(&lost)), "com.microsoft:message-lock-lost");
    client.receiver(3, &queue);
    let bodies: Vec<(String, u32)> =
        client.drained(3).iter().map(|delivery| (delivery.body(), delivery.count())).collect();
    assert_eq!(bodies, [("locked".to_owned(), 1), ("scheduled".to_owned(), 0)]);
    client.receiver(4, &format!("{queue}/$DeadLetterQueue"));
    assert_eq!(client.receive(4).body(), "expires");
    let clock = server.fine("GET", "/dev/clock", "");
    assert_eq!(clock["ahead"], "PT1M", "{clock}");
    // The client's rights are as good as before: they end by the wall clock.
    server.fine("POST", "/dev/clock/advance", r#"{"by": "3d"}"#);
    client.post(1, message("still mine"));
    assert!(server.refused(400, "POST", "/dev/clock/advance", r#"{"by": "40000d"}"#).contains("days ahead"));
    assert!(server.refused(400, "POST", "/dev/clock/advance", r#"{"by": "soon"}"#).contains("by"));
}

#[test]
fn a_namespace_kept_by_name_comes_back_and_clients_begin_anew() {
    let server = Server::start();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("first"));
    client.post(1, message("second"));
    let kept = server.fine("PUT", "/dev/snapshots/two-messages", "");
    assert_eq!((&kept["name"], &kept["messages"]), (&"two-messages".into(), &2.into()), "{kept}");
    client.receiver(2, &queue);
    for _ in 0..2 {
        let delivery = client.receive(2);
        client.complete(&delivery);
    }
    let later = server.queue([]);
    server.fine("POST", "/dev/snapshots/two-messages/restore", "");
    let reason = closed(&mut client);
    assert_eq!(condition(&reason), "amqp:connection:forced");
    let mut client = Client::root(&server);
    client.receiver(2, &queue);
    let bodies: Vec<String> = client.drained(2).iter().map(Delivery::body).collect();
    assert_eq!(bodies, ["first", "second"]);
    let error = client.refused(crate::links::sender(3, &later));
    assert_eq!(condition(&error), "amqp:not-found");
    // What was put back can be put back again, and is forgotten when told so.
    server.fine("POST", "/dev/snapshots/two-messages/restore", "");
    server.fine("DELETE", "/dev/snapshots/two-messages", "");
    server.refused(404, "POST", "/dev/snapshots/two-messages/restore", "");
    assert_eq!(server.fine("GET", "/dev/snapshots", "")["items"].as_array().unwrap().len(), 0);
    server.refused(400, "PUT", "/dev/snapshots/..%2Fx", "");
}

#[test]
fn a_reset_leaves_entities_without_messages_or_only_those_of_the_configuration() {
    let server = Server::start();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("gone"));
    server.fine("POST", "/dev/reset", "");
    assert_eq!(condition(&closed(&mut client)), "amqp:connection:forced");
    let mut client = Client::root(&server);
    client.receiver(1, &queue);
    assert_eq!(client.drained(1).len(), 0);
    server.fine("POST", "/dev/reset", r#"{"entities": true}"#);
    server.refused(404, "GET", &format!("/api/queues/{queue}"), "");
}

#[test]
fn sends_are_answered_busy_as_often_as_told_and_the_next_is_taken() {
    let server = Server::start();
    let (queue, other) = (server.queue([]), server.queue([]));
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.sender(2, &other);
    let body = format!(r#"{{"kind": "serverBusy", "entity": "{queue}", "count": 2}}"#);
    let fault = server.fine("POST", "/dev/faults", &body);
    assert_eq!((&fault["left"], &fault["kind"]), (&2.into(), &"serverBusy".into()), "{fault}");
    let error = client.post_refused(1, message("a"));
    assert_eq!(condition(&error), "com.microsoft:server-busy");
    client.post(2, message("elsewhere"));
    assert_eq!(server.fine("GET", "/dev/faults", "")["items"][0]["left"], 1);
    // Every door says it in its own words.
    assert_eq!(server.api("POST", &format!("/api/queues/{queue}/messages"), "{}").0, 503);
    client.post(1, message("b"));
    assert_eq!(server.fine("GET", "/dev/faults", "")["items"].as_array().unwrap().len(), 0);
    // By time, the broker's own.
    let body = format!(r#"{{"kind": "serverBusy", "entity": "{queue}", "for": "30s"}}"#);
    server.fine("POST", "/dev/faults", &body);
    for _ in 0..3 {
        client.post_refused(1, message("c"));
    }
    server.fine("POST", "/dev/clock/advance", r#"{"by": "30s"}"#);
    client.post(1, message("d"));
    let id = server.fine("POST", "/dev/faults", &body)["id"].as_u64().unwrap();
    server.fine("DELETE", &format!("/dev/faults/{id}"), "");
    server.refused(404, "DELETE", &format!("/dev/faults/{id}"), "");
    client.post(1, message("e"));
}

#[test]
fn settlements_are_late_by_as_much_as_told() {
    let server = Server::start();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("a"));
    client.receiver(2, &queue);
    let held = client.receive(2);
    let body = format!(r#"{{"kind": "delaySettles", "entity": "{queue}", "delay": "20s", "count": 1}}"#);
    server.fine("POST", "/dev/faults", &body);
    client.tell(held.id(), None, false, DeliveryState::ACCEPTED);
    // What comes after it on the same connection does not wait, and says that it has arrived.
    client.post(1, message("b"));
    let count = |server: &Server| {
        let shown = server.fine("GET", &format!("/api/queues/{queue}/mailboxes/main/messages"), "");
        shown["items"].as_array().unwrap().len()
    };
    assert_eq!(count(&server), 2);
    server.fine("POST", "/dev/clock/advance", r#"{"by": "20s"}"#);
    assert_eq!(client.settled(held.id()), DeliveryState::ACCEPTED);
    assert_eq!(count(&server), 1);
    for wrong in [
        format!(r#"{{"kind": "delaySettles", "entity": "{queue}"}}"#),
        format!(r#"{{"kind": "delaySettles", "entity": "{queue}", "delay": "2h"}}"#),
        format!(r#"{{"kind": "serverBusy", "entity": "{queue}", "delay": "2s"}}"#),
        format!(r#"{{"kind": "serverBusy", "entity": "{queue}", "for": "2d"}}"#),
        format!(r#"{{"kind": "serverBusy", "entity": "{queue}", "count": 0}}"#),
        r#"{"kind": "storm", "entity": "q"}"#.to_owned(),
    ] {
        server.refused(400, "POST", "/dev/faults", &wrong);
    }
    server.refused(404, "POST", "/dev/faults", r#"{"kind": "serverBusy", "entity": "nowhere"}"#);
}

#[test]
fn links_are_dropped_by_entity_or_name_and_connections_are_cut() {
    let server = Server::start();
    let (queue, other) = (server.queue([]), server.queue([]));
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.receiver(2, &queue);
    client.sender(3, &other);
    let dropped = server.fine("POST", "/dev/drop", &format!(r#"{{"entity": "{}"}}"#, queue.to_uppercase()));
    assert_eq!((&dropped["links"], &dropped["connections"]), (&2.into(), &0.into()));
    for handle in [1, 2] {
        assert_eq!(condition(&client.detached(handle)), "amqp:link:detach-forced");
    }
    client.post(3, message("lives"));
    let dropped =
        server.fine("POST", "/dev/drop", &format!(r#"{{"entity": "{other}", "connection": true}}"#));
    assert_eq!((&dropped["links"], &dropped["connections"]), (&1.into(), &1.into()));
    client.expect_end();
    server.refused(400, "POST", "/dev/drop", "{}");
}

#[test]
fn without_development_mode_there_is_none_of_it_and_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(Settings {
        ports: Ports { amqp: 0, amqps: 0, http: 0, https: 0 },
        ..Settings::new(folder.path().to_path_buf())
    })
    .unwrap();
    for (method, path, body) in PATHS {
        let (status, answer) = server.api_as((ROOT, &server.ready.root_key), method, path, body);
        assert_eq!(status, 404, "{method} {path}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains("--dev"), "{method} {path}: {answer}");
    }
}

#[test]
fn only_who_may_manage_the_namespace_may_develop() {
    let server = Server::start();
    let rules = Setting::AuthorizationRules(vec![key("all-here", true, true, true)]);
    server.queue_named("q", [rules]);
    for (method, path, body) in PATHS {
        for name in ["all-here", "nobody"] {
            let (status, answer) = server.api_as((name, &format!("{name}-primary")), method, path, body);
            assert_eq!(status, 401, "{name}: {method} {path}: {answer}");
        }
    }
    assert_eq!(server.api_as((ROOT, ROOT_KEY), "GET", "/dev/clock", "").0, 200);
}
