//! F: outcomes, and what the broker answers.

use vorrang_amqp::FrameBody;
use vorrang_amqp::performative::{DeliveryState, Disposition, Error, Modified, Outcome, Role};
use vorrang_amqp::value::{MapBuilder, Value};
use vorrang_engine::Span;
use vorrang_engine::entity::Setting;

use crate::client::Client;
use crate::links::{Delivery, deferred, error_of, rejected};
use crate::message::message;
use crate::nodes::numbers;
use crate::server::Server;

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

/// The broker's own disposition for a delivery.
fn answer(client: &mut Client) -> Disposition {
    client.wait("disposition", |frame| match &frame.body {
        FrameBody::Disposition(disposition) if disposition.role == Role::Sender => Some(disposition.clone()),
        _ => None,
    })
}

#[test]
fn f1_accepted_deletes_and_is_answered_accepted() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    let delivery = client.receive(2);
    client.tell(delivery.id(), None, false, DeliveryState::ACCEPTED);
    let answer = answer(&mut client);
    assert_eq!(
        (answer.first, answer.settled, answer.state),
        (delivery.id(), true, Some(DeliveryState::ACCEPTED))
    );
    assert!(answer.last.is_none_or(|last| last == delivery.id()));
    assert_eq!(client.peek_all(&queue).len(), 0);
}

#[test]
fn f2_modified_gives_back_and_counts() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 1);
    let forms = [
        Modified::default(),
        Modified { delivery_failed: Some(false), undeliverable_here: Some(false), ..Modified::default() },
        Modified { delivery_failed: Some(true), undeliverable_here: Some(false), ..Modified::default() },
    ];
    for (count, modified) in (0..).zip(forms) {
        let delivery = client.receive(2);
        assert_eq!(delivery.count(), count);
        let state = client.settle(delivery.id(), Outcome::Modified(modified).into());
        assert!(matches!(state, DeliveryState::Outcome(Outcome::Modified(_))), "{state:?}");
    }
    assert_eq!(client.receive(2).count(), 3);
}

#[test]
fn f3_released_gives_back_and_does_not_count() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![Setting::MaxDeliveryCount(1)], 1);
    for _ in 0..5 {
        let delivery = client.receive(2);
        assert_eq!(delivery.count(), 0);
        assert_eq!(client.settle(delivery.id(), DeliveryState::RELEASED), DeliveryState::RELEASED);
    }
}

#[test]
fn f4_undeliverable_here_defers() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    let delivery = client.receive(2);
    let state = client.settle(delivery.id(), deferred());
    assert!(matches!(state, DeliveryState::Outcome(Outcome::Modified(_))), "{state:?}");
    assert_eq!(client.drained(2).len(), 0);
    let entries = [("sequence-numbers", numbers(&[1])), ("receiver-settle-mode", Value::Uint(1))];
    let received = client.manage(&queue, "receive-by-sequence-number", entries);
    assert_eq!(received.messages().len(), 1);
    assert_eq!(received.messages()[0].0.header().unwrap().unwrap().delivery_count, 0);
}

fn dead_lettering(entries: &[(&str, &str)], description: Option<&str>) -> DeliveryState {
    let mut info = MapBuilder::default();
    for (key, value) in entries {
        info.push_symbol(key, &Value::from(*value));
    }
    let mut error = Error::new("com.microsoft:dead-letter", description.unwrap_or_default());
    error.description = description.map(Into::into);
    error.info = Some(info.finish());
    Outcome::rejected(error).into()
}

#[test]
fn f5_rejected_dead_letters_with_its_reason_and_the_answer_has_no_error() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 2);
    client.receiver(3, &format!("{queue}/$DeadLetterQueue"));
    let reason = [("DeadLetterReason", "why"), ("DeadLetterErrorDescription", "because")];
    for state in [dead_lettering(&reason, None), dead_lettering(&reason[..1], Some("because"))] {
        let delivery = client.receive(2);
        client.raw.clear();
        let answer = client.settle(delivery.id(), state);
        assert_eq!(answer, DeliveryState::Outcome(Outcome::Rejected { error: None }));
        // The one form of a rejection without error that every client reads.
        let raw = client.raw.last().unwrap();
        assert!(raw.windows(4).any(|window| window == [0, 0x53, 0x25, 0x45]), "{raw:02x?}");
        let dead = client.receive(3);
        assert_eq!(dead.application("DeadLetterReason"), Some(Value::from("why")));
        assert_eq!(dead.application("DeadLetterErrorDescription"), Some(Value::from("because")));
        client.complete(&dead);
    }
}

#[test]
fn f6_rejected_without_error_dead_letters_without_reason() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 1);
    let delivery = client.receive(2);
    assert_eq!(client.settle(delivery.id(), rejected()), rejected());
    client.receiver(3, &format!("{queue}/$DeadLetterQueue"));
    let dead = client.receive(3);
    assert_eq!(dead.application("DeadLetterReason"), None);
    assert_eq!(dead.application("DeadLetterErrorDescription"), None);
}

#[test]
fn f7_properties_to_modify_are_found_among_the_applications() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 0);
    client.post(1, message("m").property("old", 1_i32).property("kept", 2_i64));
    let mut annotations = MapBuilder::default();
    annotations.push_symbol("old", &Value::from("new"));
    annotations.push(&Value::from("added"), &Value::Ubyte(7));
    let annotations = Some(Box::new(annotations.finish()));
    let delivery = client.receive(2);
    let modified = Modified { message_annotations: annotations, ..Modified::default() };
    client.settle(delivery.id(), Outcome::Modified(modified).into());
    let again = client.receive(2);
    assert_eq!(again.application("old"), Some(Value::from("new")));
    assert_eq!(again.application("added"), Some(Value::Ubyte(7)), "with its type");
    assert_eq!(again.application("kept"), Some(Value::Long(2)));
    client.settle(again.id(), dead_lettering(&[("DeadLetterReason", "r"), ("own", "info")], None));
    client.receiver(3, &format!("{queue}/$DeadLetterQueue"));
    let dead = client.receive(3);
    assert_eq!(dead.application("own"), Some(Value::from("info")));
    assert_eq!(dead.application("added"), Some(Value::Ubyte(7)));
}

#[test]
fn f8_a_late_settlement_is_refused() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![Setting::LockDuration(Span::seconds(1))], 1);
    client.credit(2, 2);
    let first = client.delivery(2);
    let second = client.delivery(2);
    let answer = client.settle(first.id(), DeliveryState::ACCEPTED);
    assert_eq!(error_of(&answer).condition, "com.microsoft:message-lock-lost");
    client.complete(&second);
}

#[test]
fn f9_a_range_settles_each_and_passes_over_the_unknown() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 7);
    client.credit(2, 7);
    let deliveries: Vec<Delivery> = (0..7).map(|_| client.delivery(2)).collect();
    // The third is settled before; the range then meets it, and ids beyond what was ever sent.
    client.complete(&deliveries[2]);
    client.tell(deliveries[0].id(), Some(deliveries[4].id()), false, DeliveryState::ACCEPTED);
    for place in [0, 1, 3, 4] {
        assert_eq!(client.settled(deliveries[place].id()), DeliveryState::ACCEPTED);
    }
    assert_eq!(client.peek_all(&queue).len(), 2);
    let last = deliveries[6].id();
    client.tell(deliveries[5].id(), Some(last + 1_000), false, DeliveryState::ACCEPTED);
    assert_eq!(client.settled(last), DeliveryState::ACCEPTED);
    assert_eq!(client.peek_all(&queue).len(), 0);
}

#[test]
fn f10_what_is_settled_already_is_applied_and_not_answered() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 2);
    let first = client.receive(2);
    let second = client.receive(2);
    client.tell(first.id(), None, true, DeliveryState::ACCEPTED);
    client.complete(&second);
    let answers =
        client.left(|body| matches!(body, FrameBody::Disposition(found) if found.role == Role::Sender));
    assert_eq!(answers, 1);
    assert_eq!(client.peek_all(&queue).len(), 0);
}

#[test]
fn f11_without_a_last_the_first_is_the_last() {
    let server = Server::shared();
    let (mut client, queue) = with_messages(&server, vec![], 2);
    let first = client.receive(2);
    let second = client.receive(2);
    client.tell(first.id(), None, false, DeliveryState::ACCEPTED);
    assert_eq!(client.settled(first.id()), DeliveryState::ACCEPTED);
    assert_eq!(client.peek_all(&queue).len(), 1);
    client.tell(second.id(), Some(second.id()), false, DeliveryState::ACCEPTED);
    assert_eq!(client.settled(second.id()), DeliveryState::ACCEPTED);
    assert_eq!(client.peek_all(&queue).len(), 0);
}

#[test]
fn many_small_frames_in_one_read_are_all_handled() {
    let server = Server::shared();
    let (mut client, _) = with_messages(&server, vec![], 0);
    let nothing = Disposition {
        role: Role::Receiver,
        first: 0,
        last: Some(u32::MAX),
        settled: false,
        state: Some(DeliveryState::ACCEPTED),
        batchable: false,
    };
    let one = client.encode(0, FrameBody::Disposition(nothing));
    // More than the broker handles at once; what it then has in hand is no longer in its input.
    client.write(&one.repeat(40_000));
    client.post(1, message("behind them"));
}
