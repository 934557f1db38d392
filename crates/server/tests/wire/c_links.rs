//! C: links, where they lead and how they end.

use vorrang_amqp::performative::{
    Attach, Detach, Error, ReceiverSettleMode, Role, SenderSettleMode, TargetNode,
};
use vorrang_amqp::value::{MapBuilder, Value};
use vorrang_amqp::{FrameBody, Text};
use vorrang_engine::entity::{Setting, Status};

use crate::client::Client;
use crate::links::{deleting_receiver, filtered, receiver, sender, session_receiver};
use crate::message::message;
use crate::server::{Server, entity_name, fresh};

fn text(error: &Error) -> &str {
    error.description.as_ref().unwrap().as_str()
}

#[test]
fn c1_every_spelling_reaches_the_queue_and_is_echoed() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    let spellings =
        [queue.clone(), format!("/{queue}"), format!("amqps://host/{queue}"), queue.to_uppercase()];
    for (handle, address) in (1..).zip(&spellings) {
        let reply = client.sender(handle, address);
        let Some(TargetNode::Node(target)) = reply.target else { panic!("{reply:?}") };
        assert_eq!(target.address.unwrap(), address.as_str());
        client.post(handle, message(address));
    }
    for (handle, address) in (11..).zip(&spellings) {
        let reply = client.receiver(handle, address);
        assert_eq!(reply.source.unwrap().address.unwrap(), address.as_str());
    }
    for address in &spellings {
        assert_eq!(client.receive(11).body(), *address);
    }
}

#[test]
fn c2_subscriptions_in_any_case() {
    let server = Server::shared();
    let topic = server.topic([]);
    server.subscription(&topic, "s", []);
    let mut client = Client::root(&server);
    client.sender(1, &topic);
    for (handle, word) in (2..).zip(["Subscriptions", "subscriptions", "SUBSCRIPTIONS"]) {
        client.post(1, message(word));
        client.receiver(handle, &format!("{topic}/{word}/S"));
        let delivery = client.receive(handle);
        assert_eq!(delivery.body(), word);
        client.complete(&delivery);
    }
}

#[test]
fn c3_both_dead_letter_queues_have_addresses() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("dead"));
    client.receiver(2, &queue);
    let delivery = client.receive(2);
    client.settle(delivery.id(), crate::links::rejected());
    for (handle, suffix) in (3..).zip(["$DeadLetterQueue", "$deadletterqueue"]) {
        client.receiver(handle, &format!("{queue}/{suffix}"));
        let delivery = client.receive(handle);
        assert_eq!(delivery.body(), "dead", "{suffix}");
        client.settle(delivery.id(), crate::links::abandoned());
    }
    for (handle, suffix) in
        (10..).zip(["$Transfer/$DeadLetterQueue", "$transfer/$deadletterqueue", "$TransferDeadLetterQueue"])
    {
        client.receiver(handle, &format!("{queue}/{suffix}"));
        assert_eq!(client.drained(handle).len(), 0, "{suffix}");
    }
}

#[test]
fn c4_names_may_contain_slashes() {
    let server = Server::shared();
    let base = fresh("a");
    let names = [base.clone(), format!("{base}/b"), format!("{base}/b/c")];
    let mut client = Client::root(&server);
    for (handle, name) in (1..).zip(&names) {
        server.queue_named(name, []);
        client.sender(handle, name);
        client.post(handle, message(name));
    }
    for (handle, name) in (11..).zip(&names) {
        client.receiver(handle, name);
        let bodies: Vec<String> = client.drained(handle).iter().map(crate::links::Delivery::body).collect();
        assert_eq!(bodies, [name.as_str()]);
    }
}

#[test]
fn c5_a_sender_learns_its_limit_and_gets_credit_unasked() {
    let server = Server::shared();
    let queue = server.queue([Setting::MaxMessageSizeInKilobytes(512)]);
    let mut client = Client::root(&server);
    let reply = client.attach(sender(1, &queue));
    assert_eq!(reply.max_message_size, Some(512 * 1024));
    let batch = reply.properties.unwrap().value("com.microsoft:max-message-batch-size");
    assert_eq!(batch, Some(Value::Ulong(512 * 1024)));
    assert!(client.granted(1) >= 100);
}

#[test]
fn c6_attach_replies_repeat_what_was_asked() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    let senders = [
        None,
        Some(SenderSettleMode::Unsettled),
        Some(SenderSettleMode::Settled),
        Some(SenderSettleMode::Mixed),
    ];
    let receivers = [None, Some(ReceiverSettleMode::First), Some(ReceiverSettleMode::Second)];
    let mut handle = 0;
    for snd_settle_mode in senders {
        for rcv_settle_mode in receivers {
            for attach in [sender(handle, &queue), receiver(handle + 1, &queue)] {
                let asked = Attach { snd_settle_mode, rcv_settle_mode, ..attach };
                let reply = client.attach(asked.clone());
                assert_eq!(
                    (reply.snd_settle_mode, reply.rcv_settle_mode),
                    (snd_settle_mode, rcv_settle_mode)
                );
                assert_eq!((reply.source, reply.target), (asked.source, asked.target));
                client.detach(asked.handle);
            }
            handle += 2;
        }
    }
    // Go gives its senders no source and its receivers no target: the reply has both, not null.
    let reply = client.attach(Attach { source: None, ..sender(100, &queue) });
    assert!(reply.source.is_some() && reply.target.is_some());
    let reply = client.attach(Attach { target: None, ..receiver(101, &queue) });
    assert!(reply.source.is_some() && reply.target.is_some());
}

#[test]
fn c7_the_brokers_senders_say_where_they_begin_to_count() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    assert_eq!(client.receiver(1, &queue).initial_delivery_count, Some(0));
    assert_eq!(client.attach(receiver(2, "$cbs")).initial_delivery_count, Some(0));
}

#[test]
fn c8_an_unknown_entity_is_told_in_the_words_sdks_look_for() {
    let server = Server::shared();
    let topic = server.topic([]);
    let mut client = Client::root(&server);
    let missing = [
        "nobody".to_owned(),
        "amqps://host/nobody".to_owned(),
        format!("{topic}/Subscriptions/nobody"),
        "nobody/$DeadLetterQueue".to_owned(),
        "nobody/$management".to_owned(),
    ];
    for (handle, address) in (1..).zip(&missing) {
        let mut errors = vec![client.refused(receiver(handle, address))];
        if !address.contains('$') && !address.contains("Subscriptions") {
            errors.push(client.refused(sender(handle, address)));
        }
        for error in errors {
            assert_eq!(error.condition, "amqp:not-found", "{address}");
            let text = text(&error);
            assert!(
                text.contains("The messaging entity '") && text.contains("' could not be found"),
                "{text}"
            );
        }
    }
}

#[test]
fn c9_a_topic_itself_is_not_received_from_nor_a_subscription_sent_to() {
    let server = Server::shared();
    let topic = server.topic([]);
    let subscription = server.subscription(&topic, "s", []);
    let mut client = Client::root(&server);
    assert_eq!(client.refused(receiver(1, &topic)).condition, "amqp:not-allowed");
    assert_eq!(client.refused(sender(2, &subscription)).condition, "amqp:not-allowed");
    let dead = format!("{subscription}/$DeadLetterQueue");
    assert_eq!(client.refused(sender(3, &dead)).condition, "amqp:not-allowed");
}

#[test]
fn c10_what_forwards_is_not_received_from() {
    let server = Server::shared();
    let target = server.queue([]);
    let queue = server.queue([Setting::ForwardTo(Some(entity_name(&target)))]);
    let mut client = Client::root(&server);
    let error = client.refused(receiver(1, &queue));
    assert_eq!(error.condition, "amqp:not-allowed");
    assert!(text(&error).contains("auto-forwarding"));
    client.receiver(2, &format!("{queue}/$DeadLetterQueue"));
}

#[test]
fn c11_a_disabled_entity_says_so() {
    let server = Server::shared();
    let mut client = Client::root(&server);
    let cases = [
        (Status::Disabled, false, false),
        (Status::SendDisabled, false, true),
        (Status::ReceiveDisabled, true, false),
    ];
    for (status, sends, receives) in cases {
        let queue = server.queue([Setting::Status(status)]);
        if sends {
            client.sender(1, &queue);
            client.detach(1);
        } else {
            assert_eq!(client.refused(sender(1, &queue)).condition, "com.microsoft:entity-disabled");
        }
        if receives {
            client.receiver(2, &queue);
            client.detach(2);
        } else {
            assert_eq!(client.refused(receiver(2, &queue)).condition, "com.microsoft:entity-disabled");
        }
    }
}

#[test]
fn c12_the_senders_settle_mode_alone_decides_the_receive_mode() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let cases = [
        (Some(SenderSettleMode::Settled), None, true),
        (Some(SenderSettleMode::Settled), Some(ReceiverSettleMode::First), true),
        (None, Some(ReceiverSettleMode::Second), false),
        (Some(SenderSettleMode::Mixed), Some(ReceiverSettleMode::Second), false),
        (None, None, false),
    ];
    for (handle, (snd_settle_mode, rcv_settle_mode, deletes)) in (2..).zip(cases) {
        client.post(1, message("m"));
        client.attach(Attach { snd_settle_mode, rcv_settle_mode, ..receiver(handle, &queue) });
        let delivery = client.receive(handle);
        assert_eq!(delivery.transfer.settled == Some(true), deletes);
        assert_eq!(client.peek_all(&queue).len(), usize::from(!deletes));
        if !deletes {
            client.complete(&delivery);
        }
    }
}

#[test]
fn c13_one_name_for_a_sender_and_a_receiver() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    for attach in [sender(1, &queue), receiver(2, &queue)] {
        let reply = client.attach(Attach { name: Text::from("both"), ..attach });
        assert!(reply.source.is_some() && reply.target.is_some());
    }
    client.post(1, message("m"));
    assert_eq!(client.receive(2).body(), "m");
}

#[test]
fn c14_a_detach_is_answered_in_kind_and_nothing_follows() {
    let server = Server::shared();
    for closed in [true, false] {
        // A queue of its own: what waited in it before could be on its way when the detach comes.
        let queue = server.queue([]);
        let mut client = Client::root(&server);
        client.sender(1, &queue);
        client.receiver(2, &queue);
        client.credit(2, 100);
        client.send(0, FrameBody::Detach(Detach { handle: 2, closed, error: None }));
        let detach = client.detach_frame(2);
        assert_eq!((detach.closed, detach.error), (closed, None));
        client.post(1, message("after"));
        client.post(1, message("and after"));
        assert_eq!(client.left(|body| matches!(body, FrameBody::Transfer(..))), 0);
        assert_eq!(client.peek_all(&queue).len(), 2);
    }
}

#[test]
fn c15_deleting_an_entity_ends_its_links() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.receiver(2, &queue);
    client.attach(deleting_receiver(3, &queue));
    server.delete(&queue);
    for handle in [2, 3] {
        let error = client.detached(handle);
        assert_eq!(error.condition, "amqp:not-found");
        assert!(text(&error).contains("could not be found"), "{error:?}");
    }
    // A sender learns it at the latest when it sends.
    let id = client.transfer(1, message("too late"));
    let frame = client.wait("the end of the sender", |frame| match &frame.body {
        FrameBody::Detach(detach) if detach.handle == 1 => detach.error.as_deref().cloned(),
        FrameBody::Disposition(disposition)
            if disposition.role == Role::Receiver && disposition.first == id =>
        {
            Some(crate::links::error_of(disposition.state.as_ref().unwrap()).clone())
        }
        _ => None,
    });
    assert_eq!(frame.condition, "amqp:not-found");
}

#[test]
fn c16_errors_have_three_fields() {
    let server = Server::shared();
    let queue = server.queue([Setting::RequiresSession(true)]);
    let mut client = Client::root(&server);
    client.refused(sender(1, "nobody"));
    client.sender(2, &queue);
    client.post_refused(2, message("without a session"));
    let mut anonymous = Client::anonymous(&server);
    anonymous.refused(receiver(1, &queue));
    let mut errors = 0;
    for frame in client.raw.iter().chain(&anonymous.raw) {
        for place in 0..frame.len().saturating_sub(6) {
            if frame[place..place + 3] != [0, 0x53, 0x1d] {
                continue;
            }
            let fields = match frame[place + 3] {
                0xc0 => u32::from(frame[place + 5]),
                0xd0 => u32::from_be_bytes(frame[place + 8..place + 12].try_into().unwrap()),
                other => panic!("an error is a list with fields, not {other:02x}"),
            };
            assert_eq!(fields, 3, "{frame:02x?}");
            errors += 1;
        }
    }
    assert_eq!(errors, 3);
}

#[test]
fn cooperative_session_locks_are_refused_by_name() {
    let server = Server::shared();
    let queue = server.queue([Setting::RequiresSession(true)]);
    let mut client = Client::root(&server);
    let wanted = Value::described(
        0x0000_0013_7000_000E_u64,
        vorrang_amqp::List::from_iter([Value::from("s"), Value::Null]),
    );
    let mut filter = MapBuilder::default();
    filter.push_symbol("com.microsoft:non-exclusive-session-filter:list", &wanted);
    let error = client.refused(filtered(receiver(1, &queue), filter.finish()));
    assert_eq!(error.condition, "amqp:not-implemented");
    // Neither did it take the session.
    assert!(client.attach(session_receiver(2, &queue, Some("s"))).source.is_some());
}
