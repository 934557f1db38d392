//! E: receiving, credit and locks.

use vorrang_amqp::FrameBody;
use vorrang_amqp::performative::{DeliveryState, LinkFlow};
use vorrang_amqp::value::Value;
use vorrang_engine::Span;
use vorrang_engine::entity::Setting;

use crate::client::Client;
use crate::links::{Delivery, abandoned, deleting_receiver, rejected};
use crate::message::{message, now};
use crate::nodes::tokens;
use crate::server::Server;

/// A client with a sender 1 and a receiver 2 on a new queue with so many messages, numbered from 1.
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

fn transfers(client: &Client) -> usize {
    client.left(|body| matches!(body, FrameBody::Transfer(..)))
}

/// A send on the same connection is answered: what the broker had to deliver before, it has.
fn round_trip(client: &mut Client, server: &Server) {
    let elsewhere = server.queue([]);
    let handle = client.next_handle;
    client.next_handle += 1;
    client.sender(handle, &elsewhere);
    client.post(handle, message("meanwhile"));
    client.detach(handle);
}

#[test]
fn e1_the_delivery_tag_is_the_lock_token() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    let delivery = client.receive(2);
    assert_eq!(delivery.transfer.delivery_tag.unwrap().as_bytes().len(), 16);
    assert_eq!(delivery.transfer.settled, Some(false));
    let annotations = delivery.message.delivery_annotations().unwrap();
    assert_eq!(annotations.value("x-opt-lock-token"), Some(Value::Uuid(delivery.token())));
    let renewed = client.manage(&queue, "renew-lock", [("lock-tokens", tokens(&[delivery.token()]))]);
    assert_eq!(renewed.value("expirations").as_array().unwrap().count(), 1);
}

#[test]
fn e2_deliveries_carry_the_brokers_annotations() {
    let server = Server::shared();
    let before = now();
    let (mut client, _) = with_messages(&server, vec![], 1);
    let delivery = client.receive(2);
    let annotations = delivery.message.message_annotations().unwrap();
    for (key, _) in annotations.iter() {
        assert!(matches!(key, Value::Symbol(_)), "{key:?}");
    }
    let Some(Value::Timestamp(enqueued)) = annotations.value("x-opt-enqueued-time") else { panic!() };
    let Some(Value::Timestamp(until)) = annotations.value("x-opt-locked-until") else { panic!() };
    assert!(enqueued.0 >= before - 1_000 && until.0 >= enqueued.0 + 59_000);
    assert_eq!(annotations.value("x-opt-sequence-number"), Some(Value::Long(1)));
    // Eight bytes or one: some clients look at the encoding.
    let raw = delivery.message.encoded();
    let place = raw.windows(21).position(|window| window == b"x-opt-sequence-number").unwrap() + 21;
    assert!([0x81, 0x55].contains(&raw[place]));
}

#[test]
fn e3_delivered_and_peeked_messages_have_a_header() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    assert!(client.receive(2).message.header().unwrap().is_some());
    assert!(client.peek_all(&queue)[0].header().unwrap().is_some());
}

#[test]
fn e4_the_count_is_of_earlier_deliveries() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 1);
    for expected in 0..3 {
        let delivery = client.receive(2);
        assert_eq!(delivery.count(), expected);
        client.settle(delivery.id(), abandoned());
    }
}

#[test]
fn e5_nothing_comes_without_credit_and_no_more_than_it() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 10);
    round_trip(&mut client, &server);
    assert_eq!(transfers(&client), 0);
    client.credit(2, 5);
    for number in 1..=5 {
        assert_eq!(client.delivery(2).body(), number.to_string());
    }
    round_trip(&mut client, &server);
    assert_eq!(transfers(&client), 0);
}

#[test]
fn e6_the_same_flow_again_is_the_same_credit() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 10);
    let flow = client.link_flow(2, 3);
    client.flow(flow);
    for _ in 0..3 {
        client.delivery(2);
    }
    client.flow(flow);
    round_trip(&mut client, &server);
    assert_eq!(transfers(&client), 0);
    // Without a count the broker's own first one is meant, which is 0.
    client.flow(LinkFlow { delivery_count: None, ..client.link_flow(2, 4) });
    assert_eq!(client.delivery(2).body(), "4");
    round_trip(&mut client, &server);
    assert_eq!(transfers(&client), 0);
}

fn drain_answer(client: &mut Client) -> LinkFlow {
    client.wait("the answer to a drain", |frame| match &frame.body {
        FrameBody::Flow(flow) => flow.link.filter(|link| link.handle == 2 && link.drain),
        _ => None,
    })
}

#[test]
fn e7_a_drain_of_nothing_is_answered_at_once() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 0);
    client.drain(2, 10);
    let answer = drain_answer(&mut client);
    assert_eq!((answer.link_credit, answer.delivery_count), (Some(0), Some(10)));
}

#[test]
fn e8_a_drain_gives_what_there_is_and_then_answers() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 3);
    client.drain(2, 10);
    for _ in 0..3 {
        assert!(matches!(client.next().body, FrameBody::Disposition(_)), "the sends' own");
    }
    for _ in 0..3 {
        assert!(matches!(client.next().body, FrameBody::Transfer(..)));
    }
    let FrameBody::Flow(flow) = client.next().body else { panic!("the answer follows the transfers") };
    let link = flow.link.unwrap();
    assert_eq!((link.drain, link.link_credit, link.delivery_count), (true, Some(0), Some(10)));
}

#[test]
fn e9_a_drain_without_credit_is_answered_too() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 1);
    client.drain(2, 0);
    let answer = drain_answer(&mut client);
    assert_eq!((answer.link_credit, answer.delivery_count), (Some(0), Some(0)));
}

#[test]
fn e10_after_a_drain_nothing_comes_until_new_credit() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 0);
    client.drain(2, 10);
    let answer = drain_answer(&mut client);
    client.post(1, message("late"));
    round_trip(&mut client, &server);
    assert_eq!(transfers(&client), 0);
    client.flow(LinkFlow { delivery_count: answer.delivery_count, ..client.link_flow(2, 1) });
    assert_eq!(client.delivery(2).body(), "late");
}

#[test]
fn e11_receive_and_delete_settles_and_removes() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 2);
    client.attach(deleting_receiver(3, &queue));
    let delivery = client.receive(3);
    assert_eq!(delivery.transfer.settled, Some(true));
    assert!(!delivery.transfer.delivery_tag.unwrap().as_bytes().is_empty());
    assert_eq!(delivery.annotation("x-opt-locked-until"), None);
    assert_eq!(delivery.message.delivery_annotations().and_then(|map| map.value("x-opt-lock-token")), None);
    // A disposition for it is ignored.
    client.tell(delivery.id(), None, false, DeliveryState::ACCEPTED);
    let left: Vec<String> = client.peek_all(&queue).iter().map(crate::message::body).collect();
    assert_eq!(left, ["2"]);
}

#[test]
fn e12_an_abandoned_message_comes_before_later_ones() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 3);
    let first = client.receive(2);
    assert_eq!((first.body().as_str(), first.sequence()), ("1", 1));
    client.settle(first.id(), abandoned());
    let again = client.receive(2);
    assert_eq!((again.body().as_str(), again.sequence()), ("1", 1));
    assert_eq!(client.receive(2).body(), "2");
}

#[test]
fn e13_receivers_share_without_duplicates() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 0);
    let mut other = Client::root(&server);
    other.receiver(1, &queue);
    client.credit(2, 10);
    other.credit(1, 10);
    for number in 0..20 {
        client.post(1, message(&number.to_string()));
    }
    let mut bodies: Vec<String> = (0..10).map(|_| client.delivery(2).body()).collect();
    bodies.extend((0..10).map(|_| other.delivery(1).body()));
    bodies.sort_by_key(|body| body.parse::<u32>().unwrap());
    assert_eq!(bodies, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn e14_a_lock_that_runs_out_gives_the_message_back() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![Setting::LockDuration(Span::seconds(1))], 1);
    client.credit(2, 2);
    let first = client.delivery(2);
    let second = client.delivery(2);
    assert_eq!((first.count(), second.count(), second.body().as_str()), (0, 1, "1"));
    assert_ne!(first.token(), second.token());
}

#[test]
fn e15_a_lock_outlives_its_link_and_its_connection() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 2);
    let first = client.receive(2);
    let second = client.receive(2);
    client.detach(2);
    client.receiver(3, &queue);
    assert_eq!(client.drained(3).len(), 0, "both are locked");
    let entries =
        [("disposition-status", Value::from("completed")), ("lock-tokens", tokens(&[first.token()]))];
    assert_eq!(client.manage(&queue, "update-disposition", entries).status(), 200);
    drop(client);
    let mut other = Client::root(&server);
    let entries =
        [("disposition-status", Value::from("completed")), ("lock-tokens", tokens(&[second.token()]))];
    assert_eq!(other.manage(&queue, "update-disposition", entries).status(), 200);
    assert_eq!(other.peek_all(&queue).len(), 0);
}

#[test]
fn e16_after_too_many_deliveries_a_message_is_dead_lettered() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![Setting::MaxDeliveryCount(2)], 1);
    for count in 0..2 {
        let delivery = client.receive(2);
        assert_eq!(delivery.count(), count);
        client.settle(delivery.id(), abandoned());
    }
    assert_eq!(client.drained(2).len(), 0);
    client.receiver(3, &format!("{queue}/$DeadLetterQueue"));
    let dead = client.receive(3);
    assert_eq!(dead.application("DeadLetterReason"), Some(Value::from("MaxDeliveryCountExceeded")));
    let text = "Message could not be consumed after 2 delivery attempts.";
    assert_eq!(dead.application("DeadLetterErrorDescription"), Some(Value::from(text)));
    assert_eq!(dead.count(), 2);
}

#[test]
fn e17_what_expires_is_dead_lettered_or_gone() {
    let server = Server::shared();
    let (mut client, kept) = with_messages(&server, vec![Setting::DeadLetteringOnMessageExpiration(true)], 0);
    client.post(1, message("kept").ttl(100));
    client.receiver(3, &format!("{kept}/$DeadLetterQueue"));
    let dead = client.receive(3);
    assert_eq!(dead.application("DeadLetterReason"), Some(Value::from("TTLExpiredException")));
    let text = "The message expired and was dead lettered.";
    assert_eq!(dead.application("DeadLetterErrorDescription"), Some(Value::from(text)));
    let (mut client, gone) = with_messages(&server, vec![], 0);
    client.post(1, message("gone").ttl(100));
    while !client.peek_all(&gone).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    client.receiver(3, &format!("{gone}/$DeadLetterQueue"));
    assert_eq!(client.drained(3).len(), 0);
}

#[test]
fn e18_dead_letters_say_where_they_come_from() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    let delivery = client.receive(2);
    client.settle(delivery.id(), rejected());
    client.receiver(3, &format!("{queue}/$DeadLetterQueue"));
    assert_eq!(client.receive(3).annotation("x-opt-deadletter-source"), Some(Value::from(queue.as_str())));
    let topic = server.topic([]);
    let subscription = server.subscription(&topic, "s", []);
    client.sender(4, &topic);
    client.post(4, message("m"));
    client.receiver(5, &subscription);
    let delivery = client.receive(5);
    client.settle(delivery.id(), rejected());
    client.receiver(6, &format!("{subscription}/$DeadLetterQueue"));
    let source = client.receive(6).annotation("x-opt-deadletter-source");
    assert_eq!(source, Some(Value::from(subscription.as_str())));
}

#[test]
fn e19_dead_letters_stay() {
    let server = Server::shared();
    let settings = vec![Setting::MaxDeliveryCount(1), Setting::DeadLetteringOnMessageExpiration(true)];
    let (mut client, queue) = with_messages(&server, settings, 0);
    client.post(1, message("m").ttl(200));
    client.receiver(3, &format!("{queue}/$DeadLetterQueue"));
    let mut counts = Vec::new();
    for _ in 0..5 {
        let delivery = client.receive(3);
        counts.push(delivery.count());
        client.settle(delivery.id(), abandoned());
    }
    assert_eq!(counts, [0; 5]);
    // Long after its time it is still there.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(client.drained(3).iter().map(Delivery::body).collect::<Vec<_>>(), ["m"]);
}
