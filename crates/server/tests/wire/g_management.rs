//! G: `$management`, operation by operation.

use vorrang_amqp::Uuid;
use vorrang_amqp::message::{BodyKind, MessageId};
use vorrang_amqp::performative::DeliveryState;
use vorrang_amqp::value::{Array, Map, MapBuilder, Timestamp, Value};
use vorrang_engine::Span;
use vorrang_engine::entity::Setting;

use crate::client::Client;
use crate::links::{abandoned, deferred, rejected, session_receiver};
use crate::message::{Draft, body, message, now};
use crate::nodes::{Response, arguments, numbers, request, tokens};
use crate::server::Server;

const LOCK_LOST: &str = "com.microsoft:message-lock-lost";
const NOT_FOUND: &str = "com.microsoft:message-not-found";
const SESSION_LOST: &str = "com.microsoft:session-lock-lost";

fn with_messages(server: &Server, settings: Vec<Setting>, count: u32) -> (Client, String) {
    let queue = server.queue(settings);
    let mut client = Client::root(server);
    client.sender(1, &queue);
    for number in 1..=count {
        client.post(1, message(&number.to_string()));
    }
    client.receiver(2, &queue);
    (client, queue)
}

fn told(status: i32, condition: &str) -> (i32, String) {
    (status, condition.to_owned())
}

fn nobody() -> Uuid {
    Uuid::from_bytes([0xee; 16])
}

#[test]
fn g1_responses_have_the_types_clients_insist_on() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    let address = format!("{queue}/$management");
    let (asking, answering) = client.node(&address);
    let application = arguments([("operation", Value::from("com.microsoft:renew-lock"))]);
    let ids =
        [MessageId::String("id".into()), MessageId::Uuid(Uuid::from_bytes([3; 16])), MessageId::Ulong(3)];
    for id in ids {
        let body = arguments([("lock-tokens", tokens(&[nobody()]))]);
        client.transfer(
            asking,
            request(id.clone(), Some(&format!("reply-{answering}")), &application, &body.into()),
        );
        let response = client.response(&address);
        assert_eq!(response.message.properties().unwrap().unwrap().correlation_id, Some(id));
        // The accessors insist on an int and a symbol.
        assert_eq!(response.told(), told(410, LOCK_LOST));
        assert!(matches!(response.application.value("statusDescription"), Some(Value::String(_))));
        assert!(response.body().is_empty());
    }
    assert_eq!(client.outcome(0), DeliveryState::ACCEPTED);
}

#[test]
fn g2_locks_are_renewed_together_or_not_at_all() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 2);
    let held = [client.receive(2).token(), client.receive(2).token()];
    let before = now();
    let renewed = client.manage(&queue, "renew-lock", [("lock-tokens", tokens(&held))]);
    let Value::Array(expirations) = renewed.value("expirations") else { panic!("expirations are an array") };
    let times: Vec<Value> = expirations.iter().collect();
    assert_eq!(times.len(), 2);
    for time in times {
        let Value::Timestamp(until) = time else { panic!("of timestamps") };
        assert!(until.0 >= before + 59_000);
    }
    for wrong in [vec![nobody()], vec![held[0], nobody()]] {
        let refused = client.manage(&queue, "renew-lock", [("lock-tokens", tokens(&wrong))]);
        assert_eq!(refused.told(), told(410, LOCK_LOST));
    }
    // In sessions it is the session's lock that counts, whatever the tokens are worth.
    let sessions = server.queue([Setting::RequiresSession(true)]);
    let refused = client.manage(&sessions, "renew-lock", [("lock-tokens", tokens(&[nobody()]))]);
    assert_eq!(refused.told(), told(400, "amqp:not-allowed"));
}

#[test]
fn g3_peeking_shows_everything_and_changes_nothing() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 3);
    client.post(1, message("4").scheduled(now() + 600_000));
    let to_defer = client.receive(2);
    client.settle(to_defer.id(), deferred());
    let locked = client.receive(2);
    for _ in 0..2 {
        let peeked = client.peek_all(&queue);
        let seen: Vec<(String, i32, u32)> = peeked
            .iter()
            .map(|message| {
                let annotations = message.message_annotations().unwrap();
                let state = annotations.value("x-opt-message-state").unwrap().as_i32().unwrap();
                assert_eq!(annotations.value("x-opt-locked-until"), None);
                (body(message), state, message.header().unwrap().unwrap().delivery_count)
            })
            .collect();
        let expected = [("1", 1), ("2", 0), ("3", 0), ("4", 2)];
        assert_eq!(seen, expected.map(|(body, state)| (body.to_owned(), state, 0)));
    }
    client.settle(locked.id(), abandoned());
    assert_eq!(client.receive(2).count(), 1);
}

#[test]
fn g4_peeking_beyond_the_end_finds_nothing() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 2);
    for (from, expected) in [(-5, 2), (0, 2), (1, 2), (2, 1), (3, 0), (i64::MAX, 0)] {
        let entries = [("from-sequence-number", Value::Long(from)), ("message-count", Value::Int(10))];
        let response = client.manage(&queue, "peek-message", entries);
        if expected == 0 {
            assert_eq!(response.status(), 204);
            assert!(response.body().is_empty());
        } else {
            assert_eq!(response.messages().len(), expected, "from {from}");
        }
    }
}

#[test]
fn g5_peeking_a_session_and_the_dead_letters() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    let delivery = client.receive(2);
    client.settle(delivery.id(), rejected());
    assert_eq!(client.peek_all(&queue).len(), 0);
    assert_eq!(client.peek_all(&format!("{queue}/$DeadLetterQueue")).len(), 1);
    let sessions = server.queue([Setting::RequiresSession(true)]);
    client.sender(3, &sessions);
    for session in ["a", "b", "a", ""] {
        client.post(3, message(session).session(session));
    }
    assert_eq!(client.peek_all(&sessions).len(), 4);
    for (session, expected) in [("a", 2), ("b", 1), ("", 1)] {
        let entries = [
            ("from-sequence-number", Value::Long(1)),
            ("message-count", Value::Int(10)),
            ("session-id", Value::from(session)),
        ];
        assert_eq!(client.manage(&sessions, "peek-message", entries).messages().len(), expected);
    }
}

#[test]
fn g6_bodies_can_be_left_out() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 0);
    client.post(1, message("body").id("x").property("k", 1_i32));
    let entries = [
        ("from-sequence-number", Value::Long(1)),
        ("message-count", Value::Int(10)),
        ("omit-message-body", Value::Boolean(true)),
    ];
    let peeked = &client.manage(&queue, "peek-message", entries).messages()[0].0;
    assert_eq!(peeked.layout().body_kind, BodyKind::Absent);
    assert_eq!(peeked.properties().unwrap().unwrap().message_id, Some(MessageId::String("x".into())));
    assert_eq!(peeked.application_properties().unwrap().value("k"), Some(Value::Int(1)));
}

/// The argument of `schedule-message`.
fn scheduled<'a>(messages: impl IntoIterator<Item = &'a Draft>) -> Value {
    let entry = |draft: &Draft| {
        let map =
            arguments([("message-id", Value::from("ignored")), ("message", Value::Binary(draft.encode()))]);
        Value::Map(map)
    };
    Value::List(messages.into_iter().map(entry).collect())
}

fn schedule(client: &mut Client, queue: &str, count: usize) -> Vec<i64> {
    let at = now() + 600_000;
    let drafts: Vec<Draft> = (0..count).map(|number| message(&number.to_string()).scheduled(at)).collect();
    let response = client.manage(queue, "schedule-message", [("messages", scheduled(&drafts))]);
    let Value::Array(found) = response.value("sequence-numbers") else { panic!("numbers are an array") };
    let number = |value| if let Value::Long(number) = value { number } else { panic!("of longs") };
    found.iter().map(number).collect()
}

#[test]
fn g7_scheduling_returns_numbers_and_the_messages_can_be_seen() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 0);
    let given = schedule(&mut client, &queue, 3);
    assert_eq!(given.len(), 3);
    let peeked = client.peek_all(&queue);
    let seen: Vec<(i64, i32)> = peeked
        .iter()
        .map(|message| {
            let annotations = message.message_annotations().unwrap();
            let number = |key: &str| annotations.value(key).unwrap().as_i64().unwrap();
            (number("x-opt-sequence-number"), i32::try_from(number("x-opt-message-state")).unwrap())
        })
        .collect();
    assert_eq!(seen, given.iter().map(|number| (*number, 2)).collect::<Vec<_>>());
    // A time that has passed means now, and still gives a number.
    let past = [message("past").scheduled(1)];
    let response = client.manage(&queue, "schedule-message", [("messages", scheduled(&past))]);
    assert_eq!(response.value("sequence-numbers").as_array().unwrap().count(), 1);
    assert_eq!(client.receive(2).body(), "past");
}

#[test]
fn g8_what_is_scheduled_can_be_cancelled_once() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 0);
    let given = schedule(&mut client, &queue, 3);
    let cancel = |client: &mut Client, chosen: &[i64]| {
        client.manage(&queue, "cancel-scheduled-message", [("sequence-numbers", numbers(chosen))]).told()
    };
    assert_eq!(cancel(&mut client, &given[..2]), told(200, ""));
    assert_eq!(cancel(&mut client, &given[..1]), told(404, NOT_FOUND));
    assert_eq!(cancel(&mut client, &given), told(404, NOT_FOUND), "all or none");
    assert_eq!(client.peek_all(&queue).len(), 1);
    assert_eq!(cancel(&mut client, &given[2..]), told(200, ""));
    assert_eq!(client.peek_all(&queue).len(), 0);
}

fn receive_deferred(client: &mut Client, queue: &str, chosen: &[i64], mode: u32) -> Response {
    let entries = [("sequence-numbers", numbers(chosen)), ("receiver-settle-mode", Value::Uint(mode))];
    client.manage(queue, "receive-by-sequence-number", entries)
}

#[test]
fn g9_deferred_messages_are_received_by_number_with_a_token() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 3);
    for _ in 0..2 {
        let delivery = client.receive(2);
        client.settle(delivery.id(), deferred());
    }
    let received = receive_deferred(&mut client, &queue, &[2, 1], 1).messages();
    let bodies: Vec<String> = received.iter().map(|(message, _)| body(message)).collect();
    assert_eq!(bodies, ["2", "1"], "in the order asked for");
    for (message, entry) in &received {
        let Some(Value::Uuid(token)) = entry.value("lock-token") else { panic!("a uuid") };
        let annotations = message.delivery_annotations().unwrap();
        assert_eq!(annotations.value("x-opt-lock-token"), Some(Value::Uuid(token)));
        let until = message.message_annotations().unwrap().value("x-opt-locked-until");
        assert!(matches!(until, Some(Value::Timestamp(_))));
    }
    // Active, locked, unknown: none of them is there to be taken.
    for wrong in [&[3][..], &[1], &[99], &[3, 99]] {
        assert_eq!(receive_deferred(&mut client, &queue, wrong, 1).told(), told(404, NOT_FOUND), "{wrong:?}");
    }
}

#[test]
fn g10_a_deferred_message_is_deleted_completed_or_deferred_again() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![Setting::LockDuration(Span::seconds(1))], 3);
    for _ in 0..3 {
        let delivery = client.receive(2);
        client.settle(delivery.id(), deferred());
    }
    let deleted = receive_deferred(&mut client, &queue, &[1], 0).messages();
    assert_eq!(deleted[0].1.value("lock-token"), None);
    assert_eq!(client.peek_all(&queue).len(), 2);
    let locked = receive_deferred(&mut client, &queue, &[2], 1).messages();
    let token = locked[0].1.value("lock-token").unwrap().as_uuid().unwrap();
    let entries = [("disposition-status", Value::from("completed")), ("lock-tokens", tokens(&[token]))];
    assert_eq!(client.manage(&queue, "update-disposition", entries).status(), 200);
    assert_eq!(client.peek_all(&queue).len(), 1);
    // A lock that runs out makes it deferred again, counted, and not active.
    receive_deferred(&mut client, &queue, &[3], 1).messages();
    let again = loop {
        let response = receive_deferred(&mut client, &queue, &[3], 1);
        if response.status() == 200 {
            break response.messages();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert_eq!(again[0].0.header().unwrap().unwrap().delivery_count, 1);
    assert_eq!(client.drained(2).len(), 0);
}

#[test]
fn g11_every_disposition_works_on_tokens_from_any_connection() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 4);
    let mut other = Client::root(&server);
    let mut settle = |token: Uuid, status: &str| {
        let modified: Map = [(Value::from("seen"), Value::Int(1))].into_iter().collect();
        let entries = [
            ("disposition-status", Value::from(status)),
            ("lock-tokens", tokens(&[token])),
            ("deadletter-reason", Value::from("reason")),
            ("deadletter-description", Value::from("")),
            ("properties-to-modify", Value::Map(modified)),
        ];
        other.manage(&queue, "update-disposition", entries).told()
    };
    let held: Vec<Uuid> = (0..4).map(|_| client.receive(2).token()).collect();
    for (token, status) in held.iter().zip(["completed", "abandoned", "suspended", "defered"]) {
        assert_eq!(settle(*token, status), told(200, ""), "{status}");
        assert_eq!(settle(*token, status), told(410, LOCK_LOST), "{status} twice");
    }
    assert_eq!(settle(nobody(), "completed"), told(410, LOCK_LOST));
    assert_eq!(settle(nobody(), "renewed"), told(400, "com.microsoft:argument-error"));
    let again = client.receive(2);
    assert_eq!(
        (again.body().as_str(), again.count(), again.application("seen")),
        ("2", 1, Some(Value::Int(1)))
    );
    client.receiver(3, &format!("{queue}/$DeadLetterQueue"));
    let dead = client.receive(3);
    assert_eq!(
        (dead.body().as_str(), dead.application("DeadLetterReason")),
        ("3", Some(Value::from("reason")))
    );
    assert_eq!(dead.application("DeadLetterErrorDescription"), Some(Value::from("")));
    assert_eq!(receive_deferred(&mut client, &queue, &[4], 0).messages().len(), 1);
}

#[test]
fn g12_only_the_holder_may_ask_about_a_session() {
    let server = Server::shared();
    let queue = server.queue([Setting::RequiresSession(true)]);
    let mut holder = Client::root(&server);
    holder.attach(session_receiver(1, &queue, Some("s")));
    let operations: [(&str, Vec<(&str, Value)>); 3] = [
        ("renew-session-lock", vec![]),
        ("get-session-state", vec![]),
        ("set-session-state", vec![("session-state", Value::Null)]),
    ];
    let mut stranger = Client::root(&server);
    for (operation, _) in &operations {
        let entries = [("session-id", Value::from("s")), ("session-state", Value::Null)];
        assert_eq!(
            stranger.manage(&queue, operation, entries.clone()).told(),
            told(410, SESSION_LOST),
            "{operation}"
        );
        let other = [("session-id", Value::from("other")), ("session-state", Value::Null)];
        assert_eq!(holder.manage(&queue, operation, other).told(), told(410, SESSION_LOST), "{operation}");
        assert_eq!(holder.manage(&queue, operation, entries).status(), 200, "{operation}");
    }
    let state = holder.manage(&queue, "get-session-state", [("session-id", Value::from("s"))]);
    assert_eq!(state.value("session-state"), Value::Null, "the key is there");
    let renewed = holder.manage(&queue, "renew-session-lock", [("session-id", Value::from("s"))]);
    assert!(matches!(renewed.value("expiration"), Value::Timestamp(_)), "one timestamp, no array");
}

fn list_sessions(client: &mut Client, queue: &str, skip: i32, top: i32) -> Response {
    let entries = [
        ("last-updated-time", Value::from(Timestamp(253_402_300_800_000))),
        ("skip", Value::Int(skip)),
        ("top", Value::Int(top)),
    ];
    client.manage(queue, "get-message-sessions", entries)
}

#[test]
fn g13_sessions_are_listed_in_pages() {
    let server = Server::shared();
    let queue = server.queue([Setting::RequiresSession(true)]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    for session in ["c", "a", "b"] {
        client.post(1, message("m").session(session));
    }
    client.attach(session_receiver(2, &queue, Some("only state")));
    let before = now();
    let entries =
        [("session-id", Value::from("only state")), ("session-state", Value::Binary(vec![1].into()))];
    assert_eq!(client.manage(&queue, "set-session-state", entries).status(), 200);
    let mut seen = Vec::new();
    let mut skip = 0;
    loop {
        let page = list_sessions(&mut client, &queue, skip, 3);
        if page.status() == 204 {
            break;
        }
        let Value::Array(ids) = page.value("sessions-ids") else { panic!("ids are an array") };
        seen.extend(ids.iter().map(|id| id.as_str().unwrap().to_owned()));
        let Value::Int(next) = page.value("skip") else { panic!("skip is an int") };
        assert_eq!(next, i32::try_from(seen.len()).unwrap());
        skip = next;
    }
    assert_eq!(seen, ["a", "b", "c", "only state"]);
    for beyond in [4, 1_000_000, i32::MAX] {
        assert_eq!(list_sessions(&mut client, &queue, beyond, 100).status(), 204);
    }
    let updated = |client: &mut Client, since: i64| {
        let entries = [
            ("last-updated-time", Value::from(Timestamp(since))),
            ("skip", Value::Int(0)),
            ("top", Value::Int(100)),
        ];
        client.manage(&queue, "get-message-sessions", entries)
    };
    assert_eq!(updated(&mut client, before - 1_000).value("sessions-ids").as_array().unwrap().count(), 1);
    assert_eq!(updated(&mut client, now() + 60_000).status(), 204);
    let plain = server.queue([]);
    assert_eq!(list_sessions(&mut client, &plain, 0, 10).told(), told(400, "amqp:not-allowed"));
}

const RULE: u64 = 0x0000_0137_0000_0004;
const SQL_FILTER: u64 = 0x0000_0013_7000_0006;
const TRUE_FILTER: u64 = 0x0000_0013_7000_0007;
const CORRELATION_FILTER: u64 = 0x0000_0013_7000_0009;
const NO_ACTION: u64 = 0x0000_0137_0000_0005;
const SQL_ACTION: u64 = 0x0000_0137_0000_0006;

/// A described list: its code and its items.
fn described(value: &Value) -> (u64, Vec<Value>) {
    let Value::Described(described) = value else { panic!("described: {value:?}") };
    let items = described.value.as_list().unwrap().iter().collect();
    (described.descriptor.as_u64().unwrap(), items)
}

#[test]
fn g14_rules_come_back_as_they_were_added() {
    let server = Server::shared();
    let topic = server.topic([]);
    let subscription = server.subscription(&topic, "s", []);
    let mut client = Client::root(&server);
    let list = |client: &mut Client| {
        let response = client.manage(
            &subscription,
            "enumerate-rules",
            [("top", Value::Int(100)), ("skip", Value::Int(0))],
        );
        let Value::List(rules) = response.value("rules") else { panic!("rules are a list") };
        rules
            .iter()
            .map(|rule| described(&rule.as_map().unwrap().value("rule-description").unwrap()))
            .collect::<Vec<_>>()
    };
    let first = list(&mut client);
    assert_eq!((first.len(), first[0].0), (1, RULE));
    assert_eq!(described(&first[0].1[0]), (TRUE_FILTER, vec![]));
    assert_eq!(described(&first[0].1[1]), (NO_ACTION, vec![]));
    assert_eq!(first[0].1[2], Value::from("$Default"));
    let sql = |text: &str| Value::Map(arguments([("expression", Value::from(text))]));
    let fields = [
        "correlation-id",
        "message-id",
        "to",
        "reply-to",
        "label",
        "session-id",
        "reply-to-session-id",
        "content-type",
    ];
    let mut correlation = MapBuilder::default();
    for field in fields {
        correlation.push(&Value::from(field), &Value::from(field.to_uppercase()));
    }
    let own: Map = [(Value::from("k"), Value::Long(5))].into_iter().collect();
    correlation.push(&Value::from("properties"), &Value::Map(own.clone()));
    let mut add = |name: &str, description: Map| {
        let entries = [("rule-name", Value::from(name)), ("rule-description", Value::Map(description))];
        client.manage(&subscription, "add-rule", entries).told()
    };
    let with_action = arguments([("sql-filter", sql("a = 1")), ("sql-rule-action", sql("SET b = 2"))]);
    assert_eq!(add("sql", with_action.clone()), told(200, ""));
    assert_eq!(add("sql", with_action), told(409, "com.microsoft:entity-already-exists"));
    let correlated = arguments([
        ("correlation-filter", Value::Map(correlation.finish())),
        ("sql-rule-action", Value::Null),
    ]);
    assert_eq!(add("correlation", correlated), told(200, ""));
    assert_eq!(add("always", arguments([("sql-filter", sql("1=1"))])), told(200, ""));
    assert_eq!(add("broken", arguments([("sql-filter", sql("a ="))])).0, 400);
    assert_eq!(add("neither", Map::EMPTY).0, 400);
    let rules = list(&mut client);
    let found = |name: &str| {
        let (code, fields) = rules.iter().find(|(_, fields)| fields[2] == Value::from(name)).unwrap();
        assert_eq!(*code, RULE);
        (described(&fields[0]), described(&fields[1]))
    };
    let (filter, action) = found("sql");
    assert_eq!((filter.0, &filter.1[0]), (SQL_FILTER, &Value::from("a = 1")));
    assert_eq!((action.0, &action.1[0]), (SQL_ACTION, &Value::from("SET b = 2")));
    let (filter, action) = found("correlation");
    assert_eq!((filter.0, filter.1.len(), action.0), (CORRELATION_FILTER, 9, NO_ACTION));
    for (place, field) in fields.iter().enumerate() {
        assert_eq!(filter.1[place], Value::from(field.to_uppercase()), "{field}");
    }
    assert_eq!(filter.1[8], Value::Map(own));
    assert_eq!(found("always").0.0, SQL_FILTER, "what was given as SQL stays SQL");
    let mut remove =
        |name: &str| client.manage(&subscription, "remove-rule", [("rule-name", Value::from(name))]);
    assert_eq!(remove("sql").told(), told(200, ""));
    let missing = remove("sql");
    assert_eq!(missing.told(), told(404, "amqp:not-found"));
    let text = missing.application.value("statusDescription").unwrap();
    assert!(text.as_str().unwrap().contains("could not be found"));
    assert_eq!(list(&mut client).len(), 3);
}

#[test]
fn g15_messages_are_deleted_in_bulk_but_never_locked_ones() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 5);
    let locked = client.receive(2);
    let delete = |client: &mut Client, count: i32, before: Option<i64>| {
        let time = before.map_or(Value::Null, |at| Timestamp(at).into());
        let entries = [("message-count", Value::Int(count)), ("enqueued-time-utc", time)];
        client.manage(&queue, "batch-delete-messages", entries)
    };
    assert_eq!(delete(&mut client, 10, Some(1)).status(), 204, "none is that old");
    assert_eq!(delete(&mut client, 2, Some(now() + 1_000)).value("message-count"), Value::Int(2));
    let left: Vec<String> = client.peek_all(&queue).iter().map(body).collect();
    assert_eq!(left, ["1", "4", "5"]);
    // Nothing was enqueued later than now, so no time means all of them.
    assert_eq!(delete(&mut client, 100, Some(now() + 1_000)).value("message-count"), Value::Int(2));
    client.complete(&locked);
    assert_eq!(delete(&mut client, 100, None).status(), 204);
    let beyond = delete(&mut client, 1_000_000, None);
    assert_eq!(beyond.told(), told(400, "com.microsoft:argument-out-of-range"));
}

#[test]
fn g16_integers_of_any_type_and_keys_of_either() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 2);
    let ones = [
        Value::Ubyte(1),
        Value::Ushort(1),
        Value::Uint(1),
        Value::Ulong(1),
        Value::Byte(1),
        Value::Short(1),
        Value::Int(1),
        Value::Long(1),
    ];
    for one in ones {
        for symbols in [true, false] {
            let mut body = MapBuilder::default();
            for key in ["from-sequence-number", "message-count"] {
                if symbols {
                    body.push_symbol(key, &one);
                } else {
                    body.push(&Value::from(key), &one);
                }
            }
            let application = arguments([
                ("operation", Value::from("com.microsoft:peek-message")),
                ("com.microsoft:server-timeout", one.clone()),
                ("server-timeout", Value::Long(0)),
                ("com.microsoft:tracking-id", Value::from("t")),
                ("type", Value::from("entity-mgmt")),
            ]);
            let response = client.ask(&format!("{queue}/$management"), &application, &body.finish().into());
            assert_eq!(response.messages().len(), 1, "{one:?}");
        }
    }
    let lists = [numbers(&[77]), Value::List([77_i64].into_iter().collect()), Array::of([77_i32]).into()];
    for list in lists {
        let response = client.manage(&queue, "cancel-scheduled-message", [("sequence-numbers", list)]);
        assert_eq!(response.told(), told(404, NOT_FOUND));
    }
}

#[test]
fn g17_an_unknown_operation_is_answered() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    for operation in ["com.microsoft:unheard-of", "READ", ""] {
        let application = arguments([("operation", Value::from(operation))]);
        let response = client.ask(&format!("{queue}/$management"), &application, &Value::Null);
        assert_eq!(response.told(), told(501, "amqp:not-implemented"), "{operation}");
    }
    assert_eq!(client.peek_all(&queue).len(), 1, "on the same link");
}

#[test]
fn g18_a_link_that_is_gone_is_not_missed() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    let entries = [("from-sequence-number", Value::Long(1)), ("message-count", Value::Int(1))];
    let response = client.manage_for(&queue, "gone long ago", "peek-message", entries);
    assert_eq!(response.messages().len(), 1);
    let sessions = server.queue([Setting::RequiresSession(true)]);
    client.attach(session_receiver(3, &sessions, Some("s")));
    let session = [("session-id", Value::from("s"))];
    let response = client.manage_for(&sessions, "gone long ago", "renew-session-lock", session);
    assert_eq!(response.status(), 200, "the session is held by this connection all the same");
}
