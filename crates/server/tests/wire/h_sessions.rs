//! H: sessions, one holder at a time.

use vorrang_amqp::performative::{Attach, DeliveryState, Detach, End};
use vorrang_amqp::ticks::ticks_of;
use vorrang_amqp::value::{MapBuilder, Timestamp, Value};
use vorrang_amqp::{FrameBody, Text};
use vorrang_engine::Span;
use vorrang_engine::entity::Setting;

use crate::client::Client;
use crate::links::{Delivery, abandoned, filtered, receiver, rejected, session_receiver, waiting};
use crate::message::{message, now};
use crate::nodes::millis;
use crate::server::Server;

const FILTER: &str = "com.microsoft:session-filter";
/// What Go describes its filter with.
const FILTER_CODE: u64 = 0x0000_0013_7000_000C;

fn session_queue(server: &Server) -> String {
    server.queue([Setting::RequiresSession(true)])
}

fn filter_of(reply: &Attach) -> Value {
    reply.source.as_ref().unwrap().filter.as_ref().unwrap().value(FILTER).unwrap()
}

#[test]
fn h1_the_reply_names_the_session_and_the_end_of_its_lock() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut client = Client::root(&server);
    let before = now();
    let reply = client.attach(session_receiver(1, &queue, Some("s")));
    assert_eq!(filter_of(&reply), Value::from("s"));
    let until = reply.properties.as_ref().unwrap().value("com.microsoft:locked-until-utc");
    let Some(Value::Long(ticks)) = until else { panic!("ticks are a long: {until:?}") };
    assert!(ticks >= ticks_of(Timestamp(before + 59_000)) && ticks <= ticks_of(Timestamp(now() + 61_000)));
    let raw = client.raw.last().unwrap();
    let key = b"com.microsoft:locked-until-utc";
    let place = raw.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    assert_eq!(raw[place], 0x81, "in eight bytes");
}

#[test]
fn h2_a_described_filter_is_answered_described() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut client = Client::root(&server);
    client.sender(9, &queue);
    client.post(9, message("m").session("next"));
    let described = |value: Value| Value::described(FILTER_CODE, value);
    let cases = [
        (Value::from("plain"), Value::from("plain")),
        (described(Value::from("code")), described(Value::from("code"))),
        (
            Value::described(Value::symbol(FILTER), "symbol"),
            Value::described(Value::symbol(FILTER), "symbol"),
        ),
        (described(Value::Null), described(Value::from("next"))),
    ];
    for (handle, (asked, answered)) in (1..).zip(cases) {
        for key_is_symbol in [true, false] {
            let mut filter = MapBuilder::default();
            if key_is_symbol {
                filter.push_symbol(FILTER, &asked);
            } else {
                filter.push(&Value::from(FILTER), &asked);
            }
            let reply = client.attach(filtered(receiver(handle, &queue), filter.finish()));
            assert_eq!(filter_of(&reply), answered);
            client.detach(handle);
        }
    }
}

#[test]
fn h3_a_session_that_is_held_is_refused_at_once() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut first = Client::root(&server);
    first.attach(session_receiver(1, &queue, Some("s")));
    let mut second = Client::root(&server);
    for client in [&mut second, &mut first] {
        let error = client.refused(waiting(session_receiver(2, &queue, Some("s")), millis(60_000)));
        assert_eq!(error.condition, "com.microsoft:session-cannot-be-locked");
        assert!(
            error.description.unwrap().as_str().starts_with("The requested session 's' cannot be accepted.")
        );
    }
}

#[test]
fn h4_without_a_session_the_answer_waits_for_the_time_given() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut client = Client::root(&server);
    client.send(0, FrameBody::Attach(Box::new(waiting(session_receiver(1, &queue, None), millis(700)))));
    // Others on the connection are answered meanwhile; the waiting one is not.
    client.sender(2, &queue);
    assert_eq!(client.left(|body| matches!(body, FrameBody::Attach(_))), 0);
    let reply = client.attached(&Text::from("link-1"), vorrang_amqp::performative::Role::Receiver);
    assert_eq!(reply.source, None);
    let error = client.detached(1);
    assert_eq!(error.condition, "com.microsoft:timeout");
    assert!(error.description.unwrap().as_str().contains("did not complete within the allotted timeout"));
}

#[test]
fn h5_the_next_session_is_the_one_that_comes() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut client = Client::root(&server);
    client.sender(2, &queue);
    client.send(0, FrameBody::Attach(Box::new(session_receiver(1, &queue, None))));
    client.post(2, message("m").session("new"));
    let reply = client.attached(&Text::from("link-1"), vorrang_amqp::performative::Role::Receiver);
    assert_eq!(filter_of(&reply), Value::from("new"));
    assert_eq!(client.receive(1).body(), "m");
}

#[test]
fn h6_who_has_gone_takes_no_session() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let wait = || FrameBody::Attach(Box::new(session_receiver(1, &queue, None)));
    let mut detaching = Client::root(&server);
    detaching.send(0, wait());
    detaching.send(0, FrameBody::Detach(Detach { handle: 1, closed: true, error: None }));
    let mut ending = Client::root(&server);
    ending.send(0, wait());
    ending.send(0, FrameBody::End(End { error: None }));
    ending.wait("end", |frame| matches!(frame.body, FrameBody::End(_)).then_some(()));
    let mut leaving = Client::root(&server);
    leaving.send(0, wait());
    leaving.sender(2, &queue);
    leaving.send(0, FrameBody::Close(vorrang_amqp::performative::Close { error: None }));
    leaving.expect_end();
    let mut patient = Client::root(&server);
    detaching.sender(2, &queue);
    patient.send(0, wait());
    patient.sender(2, &queue);
    patient.post(2, message("m").session("s"));
    let reply = patient.attached(&Text::from("link-1"), vorrang_amqp::performative::Role::Receiver);
    assert_eq!(filter_of(&reply), Value::from("s"));
}

#[test]
fn h7_the_kind_of_receiver_must_fit_the_entity() {
    let server = Server::shared();
    let sessions = session_queue(&server);
    let plain = server.queue([]);
    let mut client = Client::root(&server);
    let error = client.refused(receiver(1, &sessions));
    assert_eq!(error.condition, "amqp:not-allowed");
    let text = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver.";
    assert_eq!(error.description.unwrap(), text);
    for session in [Some("s"), None] {
        let error = client.refused(session_receiver(2, &plain, session));
        assert_eq!(error.condition, "amqp:not-allowed");
        let text = error.description.unwrap();
        assert!(text.as_str().starts_with("A sessionful message receiver cannot be created"), "{text}");
    }
}

#[test]
fn h8_dead_letters_of_sessions_are_received_plainly() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("m").session("s"));
    client.attach(session_receiver(2, &queue, Some("s")));
    let delivery = client.receive(2);
    client.settle(delivery.id(), rejected());
    client.receiver(3, &format!("{queue}/$DeadLetterQueue"));
    let dead = client.receive(3);
    assert_eq!(dead.message.properties().unwrap().unwrap().group_id.unwrap(), "s");
    client.complete(&dead);
}

#[test]
fn h9_each_session_has_its_holder_and_its_order() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    for number in 0..10 {
        let session = if number % 2 == 0 { "even" } else { "odd" };
        client.post(1, message(&number.to_string()).session(session));
    }
    let mut other = Client::root(&server);
    client.attach(session_receiver(2, &queue, Some("even")));
    other.attach(session_receiver(2, &queue, Some("odd")));
    let bodies =
        |client: &mut Client| -> Vec<String> { client.drained(2).iter().map(Delivery::body).collect() };
    assert_eq!(bodies(&mut other), ["1", "3", "5", "7", "9"]);
    assert_eq!(bodies(&mut client), ["0", "2", "4", "6", "8"]);
    // What is given back is next again.
    client.post(1, message("10").session("even"));
    let first = client.receive(2);
    assert_eq!(first.body(), "10");
    client.settle(first.id(), abandoned());
    client.post(1, message("12").session("even"));
    assert_eq!(client.receive(2).body(), "10");
}

#[test]
fn h10_a_session_lock_that_runs_out_ends_its_link() {
    let server = Server::shared();
    let queue = server.queue([Setting::RequiresSession(true), Setting::LockDuration(Span::seconds(1))]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("m").session("s"));
    client.attach(session_receiver(2, &queue, Some("s")));
    let delivery = client.receive(2);
    assert_eq!(delivery.count(), 0);
    assert_eq!(client.detached(2).condition, "com.microsoft:session-lock-lost");
    client.send(0, FrameBody::Detach(Detach { handle: 2, closed: true, error: None }));
    client.attach(session_receiver(3, &queue, Some("s")));
    assert_eq!(client.receive(3).count(), 1);
}

#[test]
fn h11_closing_a_session_frees_it_and_counts_nothing() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("m").session("s"));
    for handle in 2..5 {
        let reply = client.attach(session_receiver(handle, &queue, Some("s")));
        assert!(reply.source.is_some());
        assert_eq!(client.receive(handle).count(), 0);
        client.detach(handle);
    }
}

#[test]
fn h12_the_state_is_there_for_the_next_holder_and_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path());
    server.queue_named("q", [Setting::RequiresSession(true)]);
    let session = ("session-id", Value::from("s"));
    let state = |client: &mut Client| {
        client.manage("q", "get-session-state", [session.clone()]).value("session-state")
    };
    let mut client = Client::root(&server);
    client.attach(session_receiver(1, "q", Some("s")));
    let kept = Value::Binary(vec![0, 1, 2].into());
    assert_eq!(
        client.manage("q", "set-session-state", [session.clone(), ("session-state", kept.clone())]).status(),
        200
    );
    client.detach(1);
    client.attach(session_receiver(2, "q", Some("s")));
    assert_eq!(state(&mut client), kept);
    drop(client);
    server.stop();
    let server = Server::start_in(folder.path());
    let mut client = Client::root(&server);
    client.attach(session_receiver(1, "q", Some("s")));
    assert_eq!(state(&mut client), kept);
    client.manage("q", "set-session-state", [session.clone(), ("session-state", Value::Null)]);
    assert_eq!(state(&mut client), Value::Null);
}

#[test]
fn h13_renewing_keeps_a_session_beyond_its_first_lock() {
    let server = Server::shared();
    let queue = server.queue([Setting::RequiresSession(true), Setting::LockDuration(Span::seconds(2))]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("m").session("s"));
    let reply = client.attach(session_receiver(2, &queue, Some("s")));
    let first = reply.properties.unwrap().value("com.microsoft:locked-until-utc").unwrap().as_i64().unwrap();
    let delivery = client.receive(2);
    loop {
        let renewed =
            client.manage_for(&queue, "link-2", "renew-session-lock", [("session-id", Value::from("s"))]);
        assert!(matches!(renewed.value("expiration"), Value::Timestamp(_)));
        if ticks_of(Timestamp(now())) > first {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(client.settle(delivery.id(), DeliveryState::ACCEPTED), DeliveryState::ACCEPTED);
    assert_eq!(client.left(|body| matches!(body, FrameBody::Detach(_))), 0);
}

#[test]
fn h14_a_thousand_who_wait_hinder_nobody() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut waiting = Client::root(&server);
    for handle in 0..1_000 {
        waiting.send(0, FrameBody::Attach(Box::new(session_receiver(handle, &queue, None))));
    }
    let mut other = Client::root(&server);
    other.sender(1, &queue);
    let plain = server.queue([]);
    other.sender(2, &plain);
    other.receiver(3, &plain);
    for _ in 0..10 {
        other.post(2, message("m"));
        let delivery = other.receive(3);
        other.complete(&delivery);
    }
    // And each of them is served when its session comes, oldest first.
    for session in ["a", "b", "c"] {
        other.post(1, message("m").session(session));
    }
    let mut served = Vec::new();
    while served.len() < 3 {
        let reply = waiting.wait("attach", |frame| match &frame.body {
            FrameBody::Attach(attach) => Some((**attach).clone()),
            _ => None,
        });
        served.push((reply.handle, filter_of(&reply).as_str().unwrap().to_owned()));
    }
    assert_eq!(served, [(0, "a".to_owned()), (1, "b".to_owned()), (2, "c".to_owned())]);
}

#[test]
fn of_two_links_with_sessions_the_one_named_is_meant() {
    let server = Server::shared();
    let queue = session_queue(&server);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    for session in ["a", "b"] {
        client.post(1, message(session).session(session));
    }
    client.attach(session_receiver(2, &queue, Some("a")));
    client.attach(session_receiver(3, &queue, Some("b")));
    for handle in [2, 3] {
        let delivery = client.receive(handle);
        client.settle(delivery.id(), crate::links::deferred());
    }
    // A deferred message is received by the link named; another session's link is the wrong one.
    let entries = |number: i64| {
        [("sequence-numbers", crate::nodes::numbers(&[number])), ("receiver-settle-mode", Value::Uint(1))]
    };
    let own = client.manage_for(&queue, "link-2", "receive-by-sequence-number", entries(1));
    assert_eq!(own.messages().len(), 1);
    let wrong = client.manage_for(&queue, "link-2", "receive-by-sequence-number", entries(2));
    assert_ne!(wrong.status(), 200, "{:?}", wrong.application);
    let named = client.manage_for(&queue, "link-3", "receive-by-sequence-number", entries(2));
    assert_eq!(named.messages().len(), 1);
}
