//! Links: attaching, credit, drain, echo, detaching, and the numbers peers choose.

use bytes::Bytes;
use vorrang_amqp::Text;
use vorrang_amqp::connection::{
    AttachReply, Event, Limits, LinkEnding, LinkId, Outgoing, SendError, Serial, Violation,
};
use vorrang_amqp::frame::FrameBody;
use vorrang_amqp::performative::{
    Attach, Coordinator, DeliveryState, DeliveryTag, Detach, Disposition, End, Error, Flow, LinkFlow,
    ReceiverSettleMode, Role, SenderSettleMode, TargetNode, Transfer,
};

use crate::raw::{Raw, begin, credit, receiver, sender, transfer};
use crate::smoke::accept_attach;
use crate::states::in_short;

fn shorts(raw: &mut Raw) -> Vec<String> {
    raw.bodies().iter().map(in_short).collect()
}

fn send(raw: &mut Raw, link: LinkId, key: u128) -> Result<Serial, SendError> {
    let outgoing = Outgoing {
        tag: DeliveryTag::from([1; 16]),
        message_format: 0,
        settled: false,
        state: None,
        head: b"",
        tail: &Bytes::from_static(b"message"),
        key,
    };
    raw.engine.send(link, &outgoing)
}

fn drain(handle: u32, delivery_count: u32, credit: u32) -> FrameBody {
    FrameBody::Flow(Flow {
        next_incoming_id: Some(1),
        incoming_window: 2048,
        outgoing_window: 2048,
        link: Some(LinkFlow {
            handle,
            delivery_count: Some(delivery_count),
            link_credit: Some(credit),
            drain: true,
            ..LinkFlow::default()
        }),
        ..Flow::default()
    })
}

/// A link on which the engine sends.
fn sending() -> (Raw, LinkId) {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, receiver("r", 5, "q"));
    let link = accept_attach(&mut raw);
    raw.discard_output();
    (raw, link)
}

#[test]
fn an_accepted_attach_echoes_name_and_modes_and_a_sender_counts_from_zero() {
    let mut raw = Raw::begun(Limits::default());
    let FrameBody::Attach(mut attach) = receiver("sub;1", 5, "topic/Subscriptions/s") else { panic!() };
    attach.snd_settle_mode = Some(SenderSettleMode::Unsettled);
    attach.rcv_settle_mode = Some(ReceiverSettleMode::Second);
    raw.write_frame(0, FrameBody::Attach(attach.clone()));
    accept_attach(&mut raw);
    let bodies = raw.bodies();
    let [FrameBody::Attach(answer)] = &bodies[..] else { panic!("{bodies:?}") };
    assert_eq!((&answer.name, answer.role), (&attach.name, Role::Sender));
    assert_eq!(
        (answer.snd_settle_mode, answer.rcv_settle_mode),
        (attach.snd_settle_mode, attach.rcv_settle_mode)
    );
    assert_eq!((&answer.source, &answer.target), (&attach.source, &attach.target));
    assert_eq!(answer.initial_delivery_count, Some(0));
}

#[test]
fn a_refused_attach_is_an_attach_without_termini_and_a_detach_in_one_output() {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, sender("s", 5, "nowhere"));
    let Some(Event::Attach(request)) = raw.engine.next_event() else { panic!() };
    raw.engine.refuse_attach(request.link, Error::new("amqp:not-found", "no such thing")).unwrap();
    let bodies = raw.bodies();
    let [FrameBody::Attach(attach), FrameBody::Detach(detach)] = &bodies[..] else { panic!("{bodies:?}") };
    assert_eq!((&attach.source, &attach.target), (&None, &None));
    assert!(detach.closed && detach.handle == attach.handle);
    assert!(raw.engine.accept_attach(request.link, AttachReply::default()).is_err(), "answered once");

    raw.write_frame(0, FrameBody::Detach(Detach { handle: 5, closed: true, error: None }));
    assert!(raw.bodies().is_empty() && raw.events().is_empty());
    raw.write_frame(0, sender("s", 5, "q"));
    accept_attach(&mut raw);
    assert_eq!(shorts(&mut raw), ["attach"], "name and handle are free again");
}

#[test]
fn an_attach_may_be_answered_much_later_and_is_cancelled_by_detach_and_by_end() {
    for (case, frame, expected) in [
        (
            "detach",
            FrameBody::Detach(Detach { handle: 5, closed: true, error: None }),
            vec!["attach", "detach"],
        ),
        ("end", FrameBody::End(End::default()), vec!["end"]),
    ] {
        let mut raw = Raw::begun(Limits::default());
        raw.write_frame(0, receiver("session", 5, "q"));
        let Some(Event::Attach(request)) = raw.engine.next_event() else { panic!() };
        assert!(raw.bodies().is_empty(), "{case}: nothing is said before the layer above answers");
        raw.write_frame(0, frame);
        assert_eq!(raw.events(), [Event::AttachCancelled { link: request.link }], "{case}");
        assert_eq!(shorts(&mut raw), expected, "{case}");
        assert!(raw.engine.accept_attach(request.link, AttachReply::default()).is_err(), "{case}");
    }
}

#[test]
fn coordinator_targets_pass_through() {
    let mut raw = Raw::begun(Limits::default());
    let mut attach = Attach::new(Text::from("transactions"), 0, Role::Sender);
    attach.target = Some(TargetNode::Coordinator(Coordinator::default()));
    raw.write_frame(0, FrameBody::Attach(Box::new(attach)));
    let Some(Event::Attach(request)) = raw.engine.next_event() else { panic!() };
    assert_eq!(request.attach.target, Some(TargetNode::Coordinator(Coordinator::default())));
}

#[test]
fn both_directions_may_share_a_name_but_a_second_of_the_same_role_takes_the_link_over() {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, sender("same", 0, "q"));
    let first = accept_attach(&mut raw);
    raw.write_frame(0, receiver("same", 1, "q"));
    accept_attach(&mut raw);
    raw.discard_output();
    assert!(raw.events().is_empty());

    raw.write_frame(0, sender("same", 2, "q"));
    assert_eq!(shorts(&mut raw), ["detach=amqp:link:stolen"]);
    let Some(Event::LinkEnded { link, ending }) = raw.engine.next_event() else { panic!() };
    assert_eq!((link, ending), (first, LinkEnding::Violation(Violation::Stolen)));
    accept_attach(&mut raw);
    assert_eq!(shorts(&mut raw), ["attach"]);
}

#[test]
fn a_flow_is_obeyed_repeated_flows_give_nothing_and_zero_stops() {
    let (mut raw, link) = sending();
    assert_eq!(send(&mut raw, link, 0), Err(SendError::NoCredit));
    raw.write_frame(0, credit(5, 0, 5));
    for key in 0..3 {
        send(&mut raw, link, key).unwrap();
    }
    raw.write_frame(0, credit(5, 0, 5));
    assert_eq!(raw.engine.credit(link), Ok(2), "three of the five are on their way");
    raw.write_frame(0, credit(5, 3, 0));
    assert_eq!(send(&mut raw, link, 9), Err(SendError::NoCredit));
}

#[test]
fn a_drain_is_answered_after_what_is_sent_and_even_without_credit() {
    let (mut raw, link) = sending();
    raw.write_frame(0, drain(5, 0, 10));
    assert_eq!(raw.events(), [Event::Credit { link, credit: 10, drain: true }]);
    for key in 0..3 {
        send(&mut raw, link, key).unwrap();
    }
    raw.engine.drained(link).unwrap();
    let bodies = raw.bodies();
    assert_eq!(bodies.iter().map(in_short).collect::<Vec<_>>(), ["transfer", "transfer", "transfer", "flow"]);
    let Some(FrameBody::Flow(answer)) = bodies.last() else { panic!() };
    let answer = answer.link.unwrap();
    assert_eq!((answer.delivery_count, answer.link_credit, answer.drain), (Some(10), Some(0), true));
    assert_eq!(send(&mut raw, link, 9), Err(SendError::NoCredit), "nothing until new credit");

    raw.write_frame(0, drain(5, 10, 0));
    raw.engine.drained(link).unwrap();
    let bodies = raw.bodies();
    let [FrameBody::Flow(answer)] = &bodies[..] else { panic!("{bodies:?}") };
    assert_eq!(answer.link.unwrap().delivery_count, Some(10));
}

#[test]
fn echo_is_answered_in_its_scope_with_complete_fields() {
    let (mut raw, _) = sending();
    let FrameBody::Flow(mut flow) = credit(5, 0, 7) else { panic!() };
    flow.echo = true;
    raw.write_frame(0, FrameBody::Flow(flow.clone()));
    let bodies = raw.bodies();
    let [FrameBody::Flow(answer)] = &bodies[..] else { panic!("{bodies:?}") };
    let link = answer.link.unwrap();
    assert_eq!((link.delivery_count, link.link_credit, answer.echo), (Some(0), Some(7), false));
    assert!(answer.next_incoming_id.is_some());

    flow.link = None;
    raw.write_frame(0, FrameBody::Flow(flow));
    let bodies = raw.bodies();
    let [FrameBody::Flow(answer)] = &bodies[..] else { panic!("{bodies:?}") };
    assert!(answer.link.is_none() && answer.next_incoming_id.is_some());
}

#[test]
fn a_flow_of_a_peer_that_sends_changes_nothing_and_one_for_a_lost_handle_is_ignored() {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, sender("s", 1, "q"));
    let link = accept_attach(&mut raw);
    raw.engine.grant(link, 100).unwrap();
    raw.discard_output();
    raw.write_frame(0, credit(1, 77, 10_000));
    raw.write_frame(0, credit(4_000_000_000, 0, 10));
    assert!(raw.bodies().is_empty() && raw.events().is_empty());
    assert_eq!(raw.engine.credit(link), Ok(100));
}

#[test]
fn nothing_follows_a_detach_reply_and_late_frames_for_our_own_detach_are_dropped() {
    let (mut raw, link) = sending();
    raw.write_frame(0, credit(5, 0, 5));
    raw.events();
    raw.write_frame(0, FrameBody::Detach(Detach { handle: 5, closed: false, error: None }));
    let bodies = raw.bodies();
    let [FrameBody::Detach(answer)] = &bodies[..] else { panic!("{bodies:?}") };
    assert!(!answer.closed, "the same flag as the peer's");
    assert_eq!(
        raw.events(),
        [Event::LinkEnded { link, ending: LinkEnding::Peer { closed: false, error: None } }]
    );
    assert_eq!(send(&mut raw, link, 1), Err(SendError::Gone));
    assert!(raw.engine.drained(link).is_err() && raw.bodies().is_empty());

    raw.write_frame(0, sender("s", 6, "q"));
    let link = accept_attach(&mut raw);
    raw.engine.detach(link, true, Some(Error::new("amqp:link:detach-forced", "bye"))).unwrap();
    raw.discard_output();
    raw.write_frame(0, transfer(6, 0, b"late"));
    raw.write_frame(0, credit(6, 0, 1));
    assert!(raw.bodies().is_empty() && raw.events().is_empty());
    raw.write_frame(0, FrameBody::Detach(Detach { handle: 6, closed: true, error: None }));
    assert_eq!(raw.events(), [Event::LinkEnded { link, ending: LinkEnding::Own }]);
}

#[test]
fn channels_and_handles_start_anywhere_and_are_used_again_at_once() {
    let mut raw = Raw::opened(Limits::default());
    raw.engine.authenticated();
    for _ in 0..3 {
        raw.write_frame(4999, begin());
        for handle in [4999, 64, 63] {
            raw.write_frame(4999, sender(&format!("link {handle}"), handle, "q"));
            accept_attach(&mut raw);
        }
        // Go ends a session with its links attached and begins anew on the same channel.
        raw.write_frame(4999, FrameBody::End(End::default()));
        assert_eq!(raw.events().len(), 3, "one end for each link");
        assert_eq!(shorts(&mut raw), ["begin", "attach", "attach", "attach", "end"]);
    }
}

#[test]
fn a_message_of_many_frames_is_put_together_and_an_aborted_one_leaves_nothing() {
    for with_id in [true, false] {
        let mut raw = Raw::begun(Limits::default());
        raw.write_frame(0, sender("s", 0, "q"));
        let link = accept_attach(&mut raw);
        raw.engine.grant(link, 10).unwrap();
        let part = |delivery: u32, first: bool, more: bool, aborted: bool| {
            let transfer = Transfer {
                handle: 0,
                delivery_id: (first || with_id).then_some(delivery),
                delivery_tag: first.then(|| u64::from(delivery).into()),
                message_format: first.then_some(0x8001_3700),
                more,
                aborted,
                ..Transfer::default()
            };
            FrameBody::Transfer(transfer, Bytes::from_static(b"0123456789"))
        };
        raw.write_frame(0, part(0, true, true, false));
        raw.write_frame(0, part(0, false, false, true));
        for number in 0..10 {
            raw.write_frame(0, part(1, number == 0, number < 9, false));
        }
        let events = raw.events();
        let [Event::Delivery(delivery)] = &events[..] else { panic!("{events:?}") };
        assert_eq!((delivery.delivery.get(), delivery.payload.len()), (1, 100));
        assert_eq!((delivery.message_format, delivery.tag), (0x8001_3700, 1u64.into()));
        assert_eq!(raw.engine.credit(link), Ok(8), "an aborted delivery uses credit too");
        assert!(raw.engine.accept(link, Serial::new(0)).is_err(), "nothing is left of the aborted one");
        raw.engine.accept(link, Serial::new(1)).unwrap();
    }
}

#[test]
fn frames_of_two_deliveries_on_one_link_cost_the_link() {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, sender("s", 0, "q"));
    accept_attach(&mut raw);
    raw.discard_output();
    let more = |delivery| {
        let transfer = Transfer { handle: 0, delivery_id: Some(delivery), more: true, ..Transfer::default() };
        FrameBody::Transfer(transfer, Bytes::from_static(b"part"))
    };
    raw.write_frame(0, more(0));
    raw.write_frame(0, more(1));
    assert_eq!(shorts(&mut raw), ["detach=amqp:invalid-field"]);
}

#[test]
fn a_disposition_range_reaches_all_links_of_its_session_and_nothing_else() {
    let mut raw = Raw::begun(Limits::default());
    let mut links = Vec::new();
    for handle in 0..2 {
        raw.write_frame(0, receiver(&format!("r{handle}"), handle, "q"));
        links.push(accept_attach(&mut raw));
        raw.write_frame(0, credit(handle, 0, 10));
    }
    raw.write_frame(1, begin());
    raw.write_frame(1, receiver("elsewhere", 0, "q"));
    raw.events();
    for key in 0..6u128 {
        let link = links[usize::from(key >= 4)];
        send(&mut raw, link, key).unwrap();
    }
    raw.discard_output();
    let range = |channel: u16, raw: &mut Raw| {
        let disposition = Disposition {
            role: Role::Receiver,
            first: 2,
            last: Some(0x7fff_0000),
            settled: true,
            state: Some(DeliveryState::ACCEPTED),
            batchable: false,
        };
        raw.write_frame(channel, FrameBody::Disposition(disposition));
    };
    range(1, &mut raw);
    assert!(raw.events().is_empty(), "another session's deliveries are not touched");
    range(0, &mut raw);
    let runs: Vec<(LinkId, Vec<u128>)> = raw
        .events()
        .into_iter()
        .map(|event| match event {
            Event::Settlement(settlement) => {
                (settlement.link, settlement.deliveries.iter().map(|delivery| delivery.key).collect())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(runs, [(links[0], vec![2, 3]), (links[1], vec![4, 5])]);
    range(0, &mut raw);
    assert!(raw.events().is_empty(), "settled ones are skipped");
    assert!(raw.bodies().is_empty(), "what the peer settled is not answered");
}

#[test]
fn a_closed_window_refuses_and_its_opening_is_an_event() {
    let (mut raw, link) = sending();
    let flow = |window: u32, seen: u32| {
        FrameBody::Flow(Flow {
            next_incoming_id: Some(1 + seen),
            incoming_window: window,
            outgoing_window: 1,
            link: Some(LinkFlow { handle: 5, link_credit: Some(100), ..LinkFlow::default() }),
            ..Flow::default()
        })
    };
    raw.write_frame(0, flow(10, 0));
    raw.events();
    let sent = (0..100).take_while(|key| send(&mut raw, link, *key).is_ok()).count();
    assert_eq!(sent, 10, "at most the window, whatever the credit");
    assert_eq!(send(&mut raw, link, 10), Err(SendError::WindowClosed));
    raw.write_frame(0, flow(0, 10));
    assert!(!raw.events().iter().any(|event| matches!(event, Event::WindowOpened { .. })));
    raw.write_frame(0, flow(5, 10));
    let events = raw.events();
    assert!(events.iter().any(|event| matches!(event, Event::WindowOpened { .. })), "{events:?}");
    send(&mut raw, link, 10).unwrap();
}

#[test]
fn our_window_never_closes_on_an_honest_sender() {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, sender("s", 0, "q"));
    let link = accept_attach(&mut raw);
    let mut window = 5000i64;
    for delivery in 0..20_000 {
        if delivery % 1000 == 0 {
            raw.engine.grant(link, 2000).unwrap();
        }
        raw.write_frame(0, transfer(0, delivery, b"x"));
        window -= 1;
        for body in raw.bodies() {
            if let FrameBody::Flow(flow) = body {
                window = i64::from(flow.incoming_window);
                // A flow with credit was written before the transfer.
                let told = flow.next_incoming_id.unwrap();
                assert_eq!(told, if flow.link.is_some() { delivery } else { delivery + 1 });
            }
        }
        assert!(window > 0);
        let Some(Event::Delivery(received)) = raw.engine.next_event() else { panic!() };
        raw.engine.accept(link, received.delivery).unwrap();
    }
}

#[test]
fn nothing_reaches_the_layer_above_after_our_close() {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, sender("s", 0, "q"));
    let link = accept_attach(&mut raw);
    raw.engine.grant(link, 10).unwrap();
    raw.engine.close(None).unwrap();
    assert_eq!(shorts(&mut raw), ["attach", "flow", "close"]);
    raw.write_frame(0, transfer(0, 0, b"late"));
    raw.write_frame(0, sender("other", 1, "q"));
    assert!(raw.events().is_empty() && raw.bodies().is_empty());
    assert!(raw.engine.grant(link, 10).is_err() && raw.engine.accept(link, Serial::new(0)).is_err());
    assert_eq!(send(&mut raw, link, 0), Err(SendError::Gone));
}

#[test]
fn a_detach_is_answered_after_the_outcomes_that_were_told_before_it() {
    let (mut raw, link) = sending();
    raw.write_frame(0, credit(5, 0, 3));
    let deliveries: Vec<Serial> = (0..3).map(|key| send(&mut raw, link, key).unwrap()).collect();
    raw.discard_output();
    let [first, second, _] = deliveries[..] else { panic!("three deliveries") };
    let disposition = Disposition {
        role: Role::Receiver,
        first: first.get(),
        last: Some(second.get()),
        settled: false,
        state: Some(DeliveryState::ACCEPTED),
        batchable: false,
    };
    raw.write_frame(0, FrameBody::Disposition(disposition));
    raw.write_frame(0, FrameBody::Detach(Detach { handle: 5, closed: true, error: None }));
    while let Some(event) = raw.engine.next_event() {
        let ended = matches!(event, Event::LinkEnded { ending: LinkEnding::Peer { closed: true, .. }, .. });
        assert!(ended || matches!(event, Event::Settlement(_) | Event::Credit { .. }), "{event:?}");
    }
    assert_eq!(shorts(&mut raw), Vec::<String>::new(), "nothing is said before the first answer");
    assert_eq!(send(&mut raw, link, 9), Err(SendError::Gone));
    raw.engine.accept(link, first).unwrap();
    assert!(raw.bodies().iter().all(|body| matches!(body, FrameBody::Disposition(_))));
    assert_eq!(raw.engine.accept_range(link, first, second), Ok(1));
    let bodies = raw.bodies();
    let [FrameBody::Disposition(answer), FrameBody::Detach(detach)] = &bodies[..] else {
        panic!("{bodies:?}")
    };
    assert!(answer.settled && detach.closed);
    assert!(raw.engine.accept(link, second).is_err(), "and then it is gone");
}

/// What is said when the peer's deliveries `first` to `last` on a link are accepted one by one, or as a range, while
/// another link of the session has every third; and once more, when the link is going.
fn said_when_accepted(first: u32, last: u32, as_range: bool) -> Vec<FrameBody> {
    let mut raw = Raw::begun(Limits::default());
    let mut links = Vec::new();
    for handle in 0..2 {
        raw.write_frame(0, sender(&format!("s{handle}"), handle, "q"));
        links.push(accept_attach(&mut raw));
        raw.engine.grant(links[links.len() - 1], 20).unwrap();
    }
    for delivery in 0..12 {
        raw.write_frame(0, transfer(u32::from(delivery % 3 == 2), delivery, b"message"));
    }
    raw.events();
    raw.discard_output();
    let accept = |raw: &mut Raw, first: u32, last: u32| {
        if as_range {
            let accepted = raw.engine.accept_range(links[0], Serial::new(first), Serial::new(last));
            return accepted.unwrap_or(0);
        }
        let accepted = |delivery| raw.engine.accept(links[0], Serial::new(delivery)).is_ok();
        (first..=last).map(accepted).map(u32::from).sum()
    };
    let count = accept(&mut raw, first, last);
    assert_eq!(count, (first..=last).filter(|delivery| delivery % 3 != 2).map(|_| 1).sum());
    assert_eq!(accept(&mut raw, first, last), 0, "nothing is accepted twice");
    raw.write_frame(0, FrameBody::Detach(Detach { handle: 0, closed: true, error: None }));
    accept(&mut raw, 0, 11);
    assert_eq!(accept(&mut raw, 0, 11), 0);
    raw.bodies()
}

#[test]
fn accepting_a_range_is_the_same_as_accepting_each() {
    for (first, last) in [(0, 0), (0, 1), (0, 4), (3, 10), (0, 11), (11, 11)] {
        let said = said_when_accepted(first, last, true);
        assert!(!said.is_empty());
        assert_eq!(said, said_when_accepted(first, last, false), "{first} to {last}");
    }
}
