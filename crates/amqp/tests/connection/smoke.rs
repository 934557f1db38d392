//! A message in, a message out, settled both ways.

use bytes::Bytes;
use vorrang_amqp::connection::{AttachReply, Event, Limits, LinkId, Outgoing};
use vorrang_amqp::frame::FrameBody;
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Disposition, Role};

use crate::raw::{Raw, credit, receiver, sender, transfer};

/// Accepts the attach that was asked for, echoing its termini. Events before it are dropped.
pub(crate) fn accept_attach(raw: &mut Raw) -> LinkId {
    let request = loop {
        match raw.engine.next_event() {
            Some(Event::Attach(request)) => break request,
            Some(_) => {}
            None => panic!("no attach"),
        }
    };
    let reply = AttachReply {
        source: request.attach.source,
        target: request.attach.target,
        ..AttachReply::default()
    };
    raw.engine.accept_attach(request.link, reply).unwrap();
    request.link
}

#[test]
fn messages_are_received_and_accepted_in_one_range() {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, sender("s", 7, "q"));
    let link = accept_attach(&mut raw);
    raw.engine.grant(link, 100).unwrap();
    let bodies = raw.bodies();
    assert!(matches!(&bodies[..], [FrameBody::Attach(_), FrameBody::Flow(_)]), "{bodies:?}");

    for delivery in 0..3 {
        raw.write_frame(0, transfer(7, delivery, b"hello"));
    }
    for delivery in 0..3 {
        let Some(Event::Delivery(received)) = raw.engine.next_event() else { panic!() };
        assert_eq!((received.delivery.get(), &received.payload[..]), (delivery, &b"hello"[..]));
        raw.engine.accept(link, received.delivery).unwrap();
    }
    let expected = Disposition {
        role: Role::Receiver,
        first: 0,
        last: Some(2),
        settled: true,
        state: Some(DeliveryState::ACCEPTED),
        batchable: false,
    };
    assert_eq!(raw.bodies(), [FrameBody::Disposition(expected)]);
}

#[test]
fn messages_are_sent_within_credit_and_their_outcome_comes_back_with_the_callers_key() {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, receiver("r", 3, "q"));
    raw.write_frame(0, credit(3, 0, 2));
    let link = accept_attach(&mut raw);
    assert_eq!(
        raw.events(),
        [Event::Credit { link, credit: 2, drain: false }],
        "credit given before the answer"
    );
    raw.discard_output();

    let tail = Bytes::from_static(b"world");
    let mut outgoing = Outgoing {
        tag: DeliveryTag::from([9; 16]),
        message_format: 0,
        settled: false,
        state: None,
        head: b"hello ",
        tail: &tail,
        key: 41,
    };
    raw.engine.send(link, &outgoing).unwrap();
    outgoing.key = 42;
    raw.engine.send(link, &outgoing).unwrap();
    assert!(raw.engine.send(link, &outgoing).is_err(), "no credit left");
    let bodies = raw.bodies();
    assert_eq!(bodies.len(), 2);
    let FrameBody::Transfer(transfer, payload) = &bodies[1] else { panic!() };
    assert_eq!((transfer.delivery_id, &payload[..]), (Some(1), &b"hello world"[..]));

    raw.write_frame(
        0,
        FrameBody::Disposition(Disposition {
            role: Role::Receiver,
            first: 0,
            last: Some(u32::MAX / 2),
            settled: false,
            state: Some(DeliveryState::ACCEPTED),
            batchable: false,
        }),
    );
    let Some(Event::Settlement(settlement)) = raw.engine.next_event() else { panic!() };
    assert_eq!(settlement.deliveries.iter().map(|delivery| delivery.key).collect::<Vec<_>>(), [41, 42]);
    for delivery in &settlement.deliveries {
        raw.engine.accept(link, delivery.delivery).unwrap();
    }
    let bodies = raw.bodies();
    let [FrameBody::Disposition(answer)] = &bodies[..] else { panic!("{bodies:?}") };
    assert_eq!((answer.role, answer.first, answer.last, answer.settled), (Role::Sender, 0, Some(1), true));
}
