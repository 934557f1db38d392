//! J: entities, what they do with messages by themselves.

use vorrang_amqp::message::Message;
use vorrang_amqp::performative::DeliveryState;
use vorrang_amqp::value::Value;
use vorrang_broker::api::Refused;
use vorrang_engine::Span;
use vorrang_engine::entity::{Request, Setting, Status};

use crate::client::Client;
use crate::links::{abandoned, deferred, rejected, sender, session_receiver};
use crate::message::{message, now};
use crate::server::{Server, entity_name};

fn bodies(client: &mut Client, entity: &str) -> Vec<String> {
    client.peek_all(entity).iter().map(crate::message::body).collect()
}

fn application(message: &Message, key: &str) -> Option<Value> {
    message.application_properties().and_then(|map| map.value(key))
}

#[test]
fn j1_forwarding_gives_new_numbers_and_stops_after_four_hops() {
    let server = Server::shared();
    let target = server.queue([]);
    let source = server.queue([Setting::ForwardTo(Some(entity_name(&target)))]);
    let mut client = Client::root(&server);
    client.sender(1, &target);
    client.post(1, message("direct"));
    client.sender(2, &source);
    client.post(2, message("forwarded"));
    client.receiver(3, &target);
    assert_eq!(client.receive(3).sequence(), 1);
    let moved = client.receive(3);
    assert_eq!((moved.body().as_str(), moved.sequence()), ("forwarded", 2));
    assert_eq!(moved.annotation("x-opt-enqueue-sequence-number"), Some(Value::Long(1)));
    // Each forwards to the one made before it; the first two hops are within any chain.
    let mut chain = vec![server.queue([])];
    for _ in 0..5 {
        let next = entity_name(chain.last().unwrap());
        chain.push(server.queue([Setting::ForwardTo(Some(next))]));
    }
    client.sender(4, &chain[4]);
    client.post(4, message("four hops"));
    client.receiver(5, &chain[0]);
    assert_eq!(client.receive(5).body(), "four hops");
    client.sender(6, &chain[5]);
    client.post(6, message("five hops"));
    let mut found = Vec::new();
    for entity in &chain {
        for suffix in ["$DeadLetterQueue", "$Transfer/$DeadLetterQueue"] {
            for message in client.peek_all(&format!("{entity}/{suffix}")) {
                assert_eq!(
                    application(&message, "DeadLetterReason"),
                    Some(Value::from("MaxTransferHopCountExceeded"))
                );
                found.push(crate::message::body(&message));
            }
        }
    }
    assert_eq!(found, ["five hops"]);
}

#[test]
fn j2_dead_letters_are_forwarded_with_their_reason() {
    let server = Server::shared();
    let target = server.queue([]);
    let source = server.queue([Setting::ForwardDeadLetteredMessagesTo(Some(entity_name(&target)))]);
    let mut client = Client::root(&server);
    client.sender(1, &source);
    client.post(1, message("m"));
    client.receiver(2, &source);
    let delivery = client.receive(2);
    let entries = [
        ("disposition-status", Value::from("suspended")),
        ("lock-tokens", crate::nodes::tokens(&[delivery.token()])),
        ("deadletter-reason", Value::from("why")),
    ];
    assert_eq!(client.manage(&source, "update-disposition", entries).status(), 200);
    client.receiver(3, &target);
    let moved = client.receive(3);
    assert_eq!(moved.application("DeadLetterReason"), Some(Value::from("why")));
    assert_eq!(moved.annotation("x-opt-deadletter-source"), Some(Value::from(source.as_str())));
    assert_eq!(bodies(&mut client, &format!("{source}/$DeadLetterQueue")), Vec::<String>::new());
}

#[test]
fn j3_disabling_stops_what_it_says_and_loses_nothing() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("before"));
    client.receiver(2, &queue);
    client.credit(2, 1);
    let delivery = client.delivery(2);
    server.update(&queue, [Setting::Status(Status::ReceiveDisabled)]);
    assert_eq!(client.detached(2).condition, "com.microsoft:entity-disabled");
    client.post(1, message("meanwhile"));
    server.update(&queue, [Setting::Status(Status::Disabled)]);
    let id = client.transfer(1, message("refused"));
    let told = client.wait("a refusal", |frame| match &frame.body {
        vorrang_amqp::FrameBody::Detach(detach) if detach.handle == 1 => {
            detach.error.as_ref().map(|error| error.condition.clone())
        }
        vorrang_amqp::FrameBody::Disposition(found) if found.first == id => {
            Some(crate::links::error_of(found.state.as_ref().unwrap()).condition.clone())
        }
        _ => None,
    });
    assert_eq!(told, "com.microsoft:entity-disabled");
    assert_eq!(client.refused(sender(5, &queue)).condition, "com.microsoft:entity-disabled");
    server.update(&queue, [Setting::Status(Status::Active)]);
    client.receiver(3, &queue);
    assert_eq!(client.receive(3).body(), "meanwhile");
    let entries = [
        ("disposition-status", Value::from("completed")),
        ("lock-tokens", crate::nodes::tokens(&[delivery.token()])),
    ];
    assert_eq!(client.manage(&queue, "update-disposition", entries).status(), 200, "the lock went on");
    client.sender(4, &queue);
    client.post(4, message("after"));
    assert_eq!(client.receive(3).body(), "after");
}

#[test]
fn j5_a_copy_without_session_goes_to_the_dead_letters_of_the_one_that_needs_it() {
    let server = Server::shared();
    let topic = server.topic([]);
    let plain = server.subscription(&topic, "plain", []);
    let sessions = server.subscription(&topic, "sessions", [Setting::RequiresSession(true)]);
    let mut client = Client::root(&server);
    client.sender(1, &topic);
    client.post(1, message("without"));
    client.post(1, message("with").session("s"));
    assert_eq!(bodies(&mut client, &plain), ["without", "with"]);
    assert_eq!(bodies(&mut client, &sessions), ["with"]);
    let dead = client.peek_all(&format!("{sessions}/$DeadLetterQueue"));
    assert_eq!(dead.len(), 1);
    assert_eq!(application(&dead[0], "DeadLetterReason"), Some(Value::from("Session id is null.")));
    let text = "Session enabled entity doesn't allow a message whose session identifier is null.";
    assert_eq!(application(&dead[0], "DeadLetterErrorDescription"), Some(Value::from(text)));
}

#[test]
fn j6_what_is_not_said_at_creation_has_the_usual_values() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("m"));
    client.receiver(2, &queue);
    for count in 0..10 {
        let before = now();
        let delivery = client.receive(2);
        assert_eq!(delivery.count(), count);
        let until = delivery.annotation("x-opt-locked-until").unwrap().as_timestamp().unwrap().0;
        assert!(until >= before + 60_000 && until <= now() + 60_000, "a minute");
        assert_eq!(delivery.message.header().unwrap().unwrap().ttl, None, "for ever");
        client.settle(delivery.id(), abandoned());
    }
    assert_eq!(bodies(&mut client, &queue), Vec::<String>::new(), "after ten deliveries");
    assert_eq!(bodies(&mut client, &format!("{queue}/$DeadLetterQueue")), ["m"]);
}

#[test]
fn j7_everything_accepted_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path());
    server.queue_named("q", []);
    server.queue_named("s", [Setting::RequiresSession(true)]);
    let mut client = Client::root(&server);
    client.sender(1, "q");
    for body in ["abandoned", "deferred", "dead", "completed", "active"] {
        client.post(1, message(body));
    }
    client.post(1, message("scheduled").scheduled(now() + 600_000));
    client.receiver(2, "q");
    for state in [abandoned(), deferred(), rejected(), DeliveryState::ACCEPTED] {
        let mut delivery = client.receive(2);
        if delivery.count() > 0 {
            // The abandoned one comes first again; put it aside for later.
            client.settle(delivery.id(), DeliveryState::RELEASED);
            client.credit(2, 2);
            let again = client.delivery(2);
            delivery = client.delivery(2);
            client.settle(again.id(), DeliveryState::RELEASED);
        }
        client.settle(delivery.id(), state);
    }
    client.attach(session_receiver(3, "s", Some("x")));
    let entries = [("session-id", Value::from("x")), ("session-state", Value::Binary(vec![9].into()))];
    assert_eq!(client.manage("s", "set-session-state", entries).status(), 200);
    let before = state_of(&mut client);
    drop(client);
    server.stop();
    let server = Server::start_in(folder.path());
    let mut client = Client::root(&server);
    assert_eq!(state_of(&mut client), before);
    client.attach(session_receiver(3, "s", Some("x")));
    let state = client.manage("s", "get-session-state", [("session-id", Value::from("x"))]);
    assert_eq!(state.value("session-state"), Value::Binary(vec![9].into()));
    client.receiver(2, "q");
    let first = client.receive(2);
    assert_eq!((first.body().as_str(), first.count()), ("abandoned", 1));
}

/// Every message with its state, number and count.
fn state_of(client: &mut Client) -> Vec<(String, i32, i64, u32)> {
    let mut all = Vec::new();
    for entity in ["q", "q/$DeadLetterQueue"] {
        for message in client.peek_all(entity) {
            let annotations = message.message_annotations().unwrap();
            let state = annotations.value("x-opt-message-state").unwrap().as_i32().unwrap();
            let sequence = annotations.value("x-opt-sequence-number").unwrap().as_i64().unwrap();
            let count = message.header().unwrap().unwrap().delivery_count;
            all.push((crate::message::body(&message), state, sequence, count));
        }
    }
    assert_eq!(all.len(), 5);
    all
}

#[test]
fn j8_numbers_grow_and_are_never_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for run in 0..3 {
        let server = Server::start_in(folder.path());
        if run == 0 {
            server.queue_named("q", []);
        }
        let mut client = Client::root(&server);
        client.sender(1, "q");
        client.receiver(2, "q");
        for _ in 0..3 {
            client.post(1, message("m"));
            let delivery = client.receive(2);
            assert!(delivery.sequence() > last);
            last = delivery.sequence();
            client.complete(&delivery);
        }
        drop(client);
        server.stop();
    }
    assert!(last >= 9);
}

#[test]
fn j4_an_entity_is_not_deleted_sooner_than_its_idle_time_allows() {
    let server = Server::shared();
    let name = entity_name("idle");
    let too_short =
        Request::CreateQueue { name, settings: vec![Setting::AutoDeleteOnIdle(Span::minutes(4))] };
    assert!(matches!(server.try_administer(too_short), Err(Refused::Impossible(_))));
}
