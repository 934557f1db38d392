//! I: transactions, declared and discharged at the coordinator.

use vorrang_amqp::message::put_value;
use vorrang_amqp::performative::{
    Attach, Coordinator, DeliveryState, Detach, Outcome, Role, Source, TargetNode, TransactionId, Transfer,
};
use vorrang_amqp::value::{List, Value};
use vorrang_amqp::{FrameBody, Text};
use vorrang_engine::Span;
use vorrang_engine::entity::Setting;

use crate::client::Client;
use crate::links::{abandoned, error_of};
use crate::message::message;
use crate::server::Server;

const DECLARE: u64 = 0x31;
const DISCHARGE: u64 = 0x32;
/// The handle of the link to the coordinator.
const COORDINATOR: u32 = 50;

fn coordinator(client: &mut Client) {
    let attach = Attach {
        source: Some(Source::at("client")),
        target: Some(TargetNode::Coordinator(Coordinator { capabilities: None })),
        initial_delivery_count: Some(0),
        ..Attach::new(Text::from("coordinator"), COORDINATOR, Role::Sender)
    };
    let reply = client.attach(attach);
    assert!(matches!(reply.target, Some(TargetNode::Coordinator(_))), "{reply:?}");
    assert!(client.granted(COORDINATOR) >= 1_000);
}

fn value(value: &Value) -> Vec<u8> {
    let mut payload = Vec::new();
    put_value(&mut payload, value);
    payload
}

fn declare(client: &mut Client) -> TransactionId {
    let request = Value::described(DECLARE, List::from_iter([Value::Null]));
    let id = client.transfer(COORDINATOR, value(&request));
    match client.outcome(id) {
        DeliveryState::Declared { txn_id } => txn_id,
        other => panic!("declared was due, not {other:?}"),
    }
}

fn discharge(client: &mut Client, transaction: &TransactionId, fail: bool) -> DeliveryState {
    let id = Value::Binary(transaction.as_bytes().to_vec().into());
    let request = Value::described(DISCHARGE, List::from_iter([id, Value::Boolean(fail)]));
    let id = client.transfer(COORDINATOR, value(&request));
    client.outcome(id)
}

fn within(transaction: &TransactionId, outcome: Option<Outcome>) -> DeliveryState {
    DeliveryState::Transactional { txn_id: transaction.clone(), outcome }
}

/// Sends in a transaction; returns the outcome.
fn send(client: &mut Client, handle: u32, transaction: &TransactionId, body: &str) -> DeliveryState {
    let head = Transfer { state: Some(within(transaction, None)), ..client.transfer_head(handle) };
    let id = head.delivery_id.unwrap();
    client.send(0, FrameBody::Transfer(head, message(body).into()));
    client.outcome(id)
}

fn bodies(client: &mut Client, queue: &str) -> Vec<String> {
    client.peek_all(queue).iter().map(crate::message::body).collect()
}

#[test]
fn i1_declare_gives_an_id_and_discharge_ends_it() {
    let server = Server::shared();
    let mut client = Client::root(&server);
    coordinator(&mut client);
    let first = declare(&mut client);
    let second = declare(&mut client);
    assert!(!first.as_bytes().is_empty() && first != second);
    for fail in [false, true] {
        let transaction = declare(&mut client);
        assert_eq!(discharge(&mut client, &transaction, fail), DeliveryState::ACCEPTED);
    }
    assert_eq!(discharge(&mut client, &first, false), DeliveryState::ACCEPTED);
}

#[test]
fn i2_a_send_is_seen_after_the_commit_and_never_after_a_rollback() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    coordinator(&mut client);
    client.sender(1, &queue);
    for (body, fail) in [("rolled back", true), ("committed", false)] {
        let transaction = declare(&mut client);
        send(&mut client, 1, &transaction, body);
        assert_eq!(bodies(&mut client, &queue), Vec::<String>::new(), "{body}: not yet");
        assert_eq!(discharge(&mut client, &transaction, fail), DeliveryState::ACCEPTED);
    }
    assert_eq!(bodies(&mut client, &queue), ["committed"]);
}

#[test]
fn i3_a_completion_waits_for_the_commit() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    coordinator(&mut client);
    client.sender(1, &queue);
    client.post(1, message("m"));
    client.receiver(2, &queue);
    let delivery = client.receive(2);
    let transaction = declare(&mut client);
    client.settle(delivery.id(), within(&transaction, Some(Outcome::Accepted)));
    assert_eq!(bodies(&mut client, &queue), ["m"], "still there");
    client.receiver(3, &queue);
    assert_eq!(client.drained(3).len(), 0, "still locked");
    assert_eq!(discharge(&mut client, &transaction, true), DeliveryState::ACCEPTED);
    assert_eq!(client.drained(3).len(), 0, "a rollback leaves it locked");
    let entries = [
        ("disposition-status", Value::from("abandoned")),
        ("lock-tokens", crate::nodes::tokens(&[delivery.token()])),
    ];
    assert_eq!(client.manage(&queue, "update-disposition", entries).status(), 200, "by the same lock");
    let again = client.receive(2);
    assert_eq!(again.count(), 1, "one abandon, and the rollback counted nothing");
    let transaction = declare(&mut client);
    client.settle(again.id(), within(&transaction, Some(Outcome::Accepted)));
    assert_eq!(discharge(&mut client, &transaction, false), DeliveryState::ACCEPTED);
    assert_eq!(bodies(&mut client, &queue), Vec::<String>::new());
}

#[test]
fn i4_two_entities_change_together_also_across_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path());
    server.queue_named("a", []);
    server.queue_named("b", []);
    let mut client = Client::root(&server);
    coordinator(&mut client);
    client.sender(1, "a");
    client.sender(2, "b");
    client.receiver(3, "a");
    let mut move_one = |body: &str, ends: Option<bool>| {
        client.post(1, message(body));
        let delivery = client.receive(3);
        let transaction = declare(&mut client);
        send(&mut client, 2, &transaction, body);
        client.settle(delivery.id(), within(&transaction, Some(Outcome::Accepted)));
        if let Some(fail) = ends {
            assert_eq!(discharge(&mut client, &transaction, fail), DeliveryState::ACCEPTED);
        }
    };
    move_one("moved", Some(false));
    move_one("kept", Some(true));
    move_one("undecided", None);
    drop(client);
    server.stop();
    let server = Server::start_in(folder.path());
    let mut client = Client::root(&server);
    assert_eq!(bodies(&mut client, "a"), ["kept", "undecided"]);
    assert_eq!(bodies(&mut client, "b"), ["moved"]);
}

#[test]
fn i5_an_unknown_transaction_is_told_and_a_lost_connection_rolls_back() {
    const UNKNOWN: &str = "amqp:transaction:unknown-id";
    let server = Server::shared();
    let queue = server.queue([Setting::LockDuration(Span::seconds(1))]);
    let mut client = Client::root(&server);
    coordinator(&mut client);
    client.sender(1, &queue);
    let done = declare(&mut client);
    discharge(&mut client, &done, false);
    for unknown in [done, TransactionId::from(&[7; 16][..]), TransactionId::from(&b"short"[..])] {
        assert_eq!(error_of(&discharge(&mut client, &unknown, false)).condition, UNKNOWN);
        assert_eq!(error_of(&send(&mut client, 1, &unknown, "m")).condition, UNKNOWN);
    }
    client.post(1, message("m"));
    client.receiver(2, &queue);
    let delivery = client.receive(2);
    let unknown = TransactionId::from(&[8; 16][..]);
    let answer = client.settle(delivery.id(), within(&unknown, Some(Outcome::Accepted)));
    assert_eq!(error_of(&answer).condition, UNKNOWN);
    // Another connection's transaction is unknown too.
    let mut other = Client::root(&server);
    coordinator(&mut other);
    other.sender(1, &queue);
    let theirs = declare(&mut other);
    assert_eq!(error_of(&send(&mut client, 1, &theirs, "m")).condition, UNKNOWN);
    send(&mut other, 1, &theirs, "lost");
    drop(other);
    // A closed coordinator link ends its transactions as well.
    let own = declare(&mut client);
    send(&mut client, 1, &own, "lost too");
    client.send(0, FrameBody::Detach(Detach { handle: COORDINATOR, closed: true, error: None }));
    client.detach_frame(COORDINATOR);
    coordinator(&mut client);
    assert_eq!(error_of(&discharge(&mut client, &own, false)).condition, UNKNOWN);
    assert_eq!(bodies(&mut client, &queue), ["m"]);
}

#[test]
fn i6_answers_within_a_transaction_name_it() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    coordinator(&mut client);
    client.sender(1, &queue);
    client.post(1, message("m"));
    client.post(1, message("n"));
    client.receiver(2, &queue);
    let transaction = declare(&mut client);
    assert_eq!(send(&mut client, 1, &transaction, "o"), within(&transaction, Some(Outcome::Accepted)));
    let first = client.receive(2);
    let answer = client.settle(first.id(), within(&transaction, Some(Outcome::Accepted)));
    assert_eq!(answer, within(&transaction, Some(Outcome::Accepted)));
    let second = client.receive(2);
    let DeliveryState::Outcome(outcome) = abandoned() else { panic!() };
    let answer = client.settle(second.id(), within(&transaction, Some(outcome)));
    let DeliveryState::Transactional { txn_id, outcome: Some(Outcome::Modified(_)) } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(txn_id, transaction);
    assert_eq!(discharge(&mut client, &transaction, false), DeliveryState::ACCEPTED);
}
