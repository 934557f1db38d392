//! Every limit is reached, and what happens there is what is written beside it.

use bytes::{Bytes, BytesMut};
use vorrang_amqp::connection::{
    ChurnLimit, Closed, Event, FrameLimit, Limits, LinkEnding, Millis, Outgoing, Received, Scope, SendError,
    Violation,
};
use vorrang_amqp::frame::FrameBody;
use vorrang_amqp::performative::{
    Begin, DeliveryState, DeliveryTag, Detach, Disposition, Flow, Open, Role, Transfer,
};
use vorrang_amqp::{Frame, Text};

use crate::raw::{Raw, begin, credit, receiver, sender, transfer};
use crate::smoke::accept_attach;
use crate::states::in_short;

fn shorts(raw: &mut Raw) -> Vec<String> {
    raw.bodies().iter().map(in_short).collect()
}

/// A frame of exactly `size` bytes: a heartbeat with an extended header would not do, so a transfer.
fn frame_of(size: u32) -> Vec<u8> {
    let mut frame = vec![0u8; usize::try_from(size).unwrap()];
    frame[..4].copy_from_slice(&size.to_be_bytes());
    frame[4] = 2;
    frame
}

#[test]
fn frames_are_read_up_to_the_limit_of_the_stage_and_not_a_byte_more() {
    let limits = Limits::default();
    let before = limits.before_authentication.frame.bytes();
    let after = limits.authenticated.frame.bytes();
    for (authenticated, limit) in [(false, before), (true, after)] {
        for (size, acceptable) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
            let mut raw = Raw::opened(limits.clone());
            if authenticated {
                raw.engine.authenticated();
            }
            raw.write(&frame_of(size)[..8]);
            assert_eq!(shorts(&mut raw).is_empty(), acceptable, "{size} of {limit}: decided by its header");
        }
    }
}

#[test]
fn sasl_frames_are_read_up_to_512_bytes() {
    for (size, finished) in [(511u32, false), (512, false), (513, true)] {
        let mut raw = Raw::server(Limits::default());
        raw.write(b"AMQP\x03\x01\x00\x00");
        let mut frame = frame_of(size);
        frame[5] = 1;
        raw.write(&frame[..8]);
        assert_eq!(raw.engine.is_finished(), finished, "{size}");
    }
}

#[test]
fn a_peer_that_announces_frames_of_zero_bytes_gets_frames_of_512() {
    for announced in [0, 1, 511, 512] {
        let mut raw = Raw::server(Limits::default());
        raw.write(b"AMQP\x03\x01\x00\x00");
        raw.write(&[0, 0, 0, 26, 2, 1, 0, 0, 0, 0x53, 0x41, 0xc0, 13, 2, 0xa3, 9]);
        raw.write(b"ANONYMOUS@");
        raw.write(b"AMQP\x00\x01\x00\x00");
        let open = Open { container_id: Text::from("p"), max_frame_size: Some(announced), ..Open::default() };
        raw.write_frame(0, FrameBody::Open(Box::new(open)));
        raw.engine.authenticated();
        raw.write_frame(0, begin());
        raw.write_frame(0, receiver("r", 0, "q"));
        raw.write_frame(0, credit(0, 0, 1));
        raw.engine.next_event();
        let link = accept_attach(&mut raw);
        raw.discard_output();
        let tail = Bytes::from(vec![7; 5000]);
        let outgoing = Outgoing {
            tag: DeliveryTag::from([1; 16]),
            message_format: 0,
            settled: true,
            state: None,
            head: b"",
            tail: &tail,
            key: 0,
        };
        raw.engine.send(link, &outgoing).unwrap();
        let mut output = raw.output();
        let mut payload = 0;
        while !output.is_empty() {
            let size = u32::from_be_bytes(output[..4].try_into().unwrap());
            assert!(size <= 512);
            let frame = Frame::decode(output.split_to(usize::try_from(size).unwrap())).unwrap();
            let FrameBody::Transfer(transfer, part) = frame.body else { panic!() };
            payload += part.len();
            assert_eq!(transfer.more, payload < 5000, "all but the last say that more follows");
        }
        assert_eq!(payload, 5000);
    }
}

#[test]
fn a_stranger_is_held_to_the_open_addresses_and_to_the_smaller_limits() {
    let mut raw = Raw::opened(Limits::default());
    raw.write_frame(0, begin());
    raw.discard_output();
    for (handle, attach) in [
        (0, sender("s", 0, "orders")),
        (1, receiver("r", 1, "orders")),
        (2, sender("m", 2, "orders/$management")),
        (3, sender("near", 3, "$cbs/orders")),
    ] {
        raw.write_frame(0, attach);
        assert_eq!(shorts(&mut raw), ["attach", "detach=amqp:unauthorized-access"]);
        // What follows on the link goes nowhere.
        raw.write_frame(0, transfer(handle, handle, b"secret"));
        raw.write_frame(0, credit(handle, 0, 100));
        assert!(raw.events().is_empty() && raw.bodies().is_empty());
        raw.write_frame(0, FrameBody::Detach(Detach { handle, closed: true, error: None }));
    }
    raw.write_frame(0, sender("cbs", 7, "$cbs"));
    let cbs = accept_attach(&mut raw);
    raw.engine.grant(cbs, 10).unwrap();
    raw.write_frame(0, transfer(7, 9, b"token"));
    assert!(matches!(raw.engine.next_event(), Some(Event::Delivery(_))));
    raw.engine.authenticated();
    raw.write_frame(0, sender("s", 0, "orders"));
    accept_attach(&mut raw);
}

#[test]
fn one_session_too_many_closes_the_connection() {
    let mut limits = Limits::default();
    limits.before_authentication.sessions_max = 2;
    let mut raw = Raw::opened(limits);
    for channel in 0..2 {
        raw.write_frame(channel, begin());
    }
    assert_eq!(shorts(&mut raw), ["begin", "begin"]);
    raw.write_frame(2, begin());
    assert_eq!(shorts(&mut raw), ["close=amqp:resource-limit-exceeded"]);
}

#[test]
fn one_link_too_many_is_refused_and_as_many_refused_again_close_the_connection() {
    let mut limits = Limits::default();
    limits.authenticated.links_max = 2;
    let mut raw = Raw::begun(limits);
    for handle in 0..2 {
        raw.write_frame(0, sender(&format!("s{handle}"), handle, "q"));
        accept_attach(&mut raw);
    }
    raw.discard_output();
    for handle in 2..4 {
        raw.write_frame(0, sender(&format!("s{handle}"), handle, "q"));
        assert_eq!(shorts(&mut raw), ["attach", "detach=amqp:resource-limit-exceeded"]);
        assert!(raw.events().is_empty());
    }
    raw.write_frame(0, sender("s4", 4, "q"));
    assert_eq!(shorts(&mut raw), ["close=amqp:resource-limit-exceeded"]);
}

#[test]
fn channels_handles_and_names_beyond_the_limit_close_the_connection() {
    let limits = Limits { channel_max: 3, handle_max: 3, link_name_bytes_max: 8, ..Limits::default() };
    let cases = [
        ("channel", 4, begin(), "close=amqp:connection:framing-error"),
        ("handle", 0, sender("s", 4, "q"), "close=amqp:connection:framing-error"),
        ("name", 0, sender("123456789", 0, "q"), "close=amqp:invalid-field"),
    ];
    for (case, channel, frame, expected) in cases {
        let mut raw = Raw::begun(limits.clone());
        raw.write_frame(channel, frame);
        assert_eq!(shorts(&mut raw), [expected], "{case}");
    }
    let mut raw = Raw::begun(limits);
    raw.write_frame(3, begin());
    raw.write_frame(3, sender("12345678", 3, "q"));
    assert_eq!(shorts(&mut raw), ["begin"], "at the limit all is well");
}

#[test]
fn attach_and_detach_without_end_run_into_the_churn_budget() {
    let mut raw = Raw::begun(Limits::default());
    let mut output = 0;
    let mut rounds = 0u32;
    let mut closed = false;
    while !closed {
        raw.write_frame(0, sender("s", 0, "q"));
        raw.write_frame(0, FrameBody::Detach(Detach { handle: 0, closed: true, error: None }));
        closed = raw.events().iter().any(|event| matches!(event, Event::Closed(_)));
        output += raw.output().len();
        rounds += 1;
        assert!(rounds <= 20_001, "a million must not pass");
    }
    assert!(rounds >= 19_000, "honest bursts pass");
    assert!(output < 4_000_000);
}

#[test]
fn churn_comes_back_with_time() {
    let mut limits = Limits::default();
    limits.authenticated.churn = ChurnLimit { burst: 2, per_second: 1 };
    let mut raw = Raw::begun(limits);
    raw.write_frame(0, sender("a", 0, "q"));
    assert!(raw.events().iter().all(|event| matches!(event, Event::Attach(_))));
    raw.now = Millis(1000);
    raw.write_frame(0, sender("b", 1, "q"));
    assert!(raw.events().iter().all(|event| matches!(event, Event::Attach(_))));
    raw.write_frame(0, sender("c", 2, "q"));
    let events = raw.events();
    assert!(matches!(&events[..], [Event::Closed(Closed::Violation(Violation::Churn { .. }))]), "{events:?}");
}

#[test]
fn a_message_above_the_limit_is_dropped_and_reported_and_the_link_lives() {
    for frames in [1u32, 30] {
        let mut raw = Raw::begun(Limits::default());
        raw.write_frame(0, sender("s", 0, "q"));
        let Some(Event::Attach(request)) = raw.engine.next_event() else { panic!() };
        let reply = vorrang_amqp::connection::AttachReply {
            source: request.attach.source,
            target: request.attach.target,
            max_message_size: Some(1000),
            ..Default::default()
        };
        raw.engine.accept_attach(request.link, reply).unwrap();
        raw.engine.grant(request.link, 10).unwrap();
        raw.discard_output();
        for number in 0..frames {
            let transfer = Transfer {
                handle: 0,
                delivery_id: Some(0),
                more: number + 1 < frames,
                ..Transfer::default()
            };
            raw.write_frame(0, FrameBody::Transfer(transfer, Bytes::from(vec![0; 1001])));
        }
        let events = raw.events();
        let [Event::TooLarge { link, delivery, settled: false, limit: 1000 }] = &events[..] else {
            panic!("{events:?}")
        };
        let error = vorrang_amqp::performative::Error::new("amqp:link:message-size-exceeded", "too large");
        let state = vorrang_amqp::performative::Outcome::rejected(error).into();
        raw.engine.settle(*link, *delivery, state).unwrap();
        assert_eq!(shorts(&mut raw), ["disposition"]);
        raw.write_frame(0, transfer(0, 1, b"small"));
        assert!(matches!(raw.engine.next_event(), Some(Event::Delivery(_))), "the link lives");
    }
}

#[test]
fn endless_messages_cost_no_memory() {
    let mut raw = Raw::begun(Limits::default());
    raw.write_frame(0, sender("s", 0, "q"));
    let Some(Event::Attach(request)) = raw.engine.next_event() else { panic!() };
    let (source, target) = (request.attach.source, request.attach.target);
    let reply = vorrang_amqp::connection::AttachReply {
        source,
        target,
        max_message_size: Some(64 * 1024),
        ..Default::default()
    };
    raw.engine.accept_attach(request.link, reply).unwrap();
    let transfer = Transfer { handle: 0, delivery_id: Some(0), more: true, ..Transfer::default() };
    let part = Bytes::from(vec![0; 4096]);
    for _ in 0..20_000 {
        raw.write_frame(0, FrameBody::Transfer(transfer.clone(), part.clone()));
        raw.discard_output();
    }
    assert!(raw.events().is_empty());
    let held = format!("{:?}", raw.engine);
    assert!(held.len() < 100_000, "what the engine holds is small: {} bytes when printed", held.len());
}

#[test]
fn unfinished_messages_on_many_links_share_one_bound() {
    let mut limits = Limits::default();
    limits.authenticated.assembly_bytes_max = 10_000;
    let mut raw = Raw::begun(limits);
    for handle in 0..3 {
        raw.write_frame(0, sender(&format!("s{handle}"), handle, "q"));
        accept_attach(&mut raw);
        raw.discard_output();
        let transfer = Transfer { handle, delivery_id: Some(handle), more: true, ..Transfer::default() };
        raw.write_frame(0, FrameBody::Transfer(transfer, Bytes::from(vec![0; 4000])));
    }
    assert_eq!(shorts(&mut raw), ["detach=amqp:resource-limit-exceeded"]);
}

#[test]
fn deliveries_beyond_credit_are_tolerated_up_to_the_limit() {
    let limits = Limits { credit_overrun_max: 2, ..Limits::default() };
    let mut raw = Raw::begun(limits);
    raw.write_frame(0, sender("s", 0, "q"));
    let link = accept_attach(&mut raw);
    raw.engine.grant(link, 1).unwrap();
    raw.discard_output();
    for delivery in 0..3 {
        raw.write_frame(0, transfer(0, delivery, b"x"));
        assert!(matches!(raw.engine.next_event(), Some(Event::Delivery(_))));
    }
    raw.write_frame(0, transfer(0, 3, b"x"));
    assert_eq!(shorts(&mut raw), ["detach=amqp:link:transfer-limit-exceeded"]);
    let events = raw.events();
    let [Event::LinkEnded { ending: LinkEnding::Violation(violation), .. }] = &events[..] else { panic!() };
    assert_eq!(violation.scope(), Scope::Link);
}

#[test]
fn unsettled_deliveries_are_bounded_both_ways() {
    let mut limits = Limits::default();
    limits.authenticated.unsettled_max = 2;
    let mut raw = Raw::begun(limits);
    raw.write_frame(0, sender("s", 0, "q"));
    accept_attach(&mut raw);
    raw.write_frame(0, receiver("r", 1, "q"));
    let link = accept_attach(&mut raw);
    raw.write_frame(0, credit(1, 0, 10));
    raw.discard_output();
    let tail = Bytes::from_static(b"x");
    let mut outgoing = Outgoing {
        tag: DeliveryTag::from(1u64),
        message_format: 0,
        settled: false,
        state: None,
        head: b"",
        tail: &tail,
        key: 0,
    };
    raw.engine.send(link, &outgoing).unwrap();
    raw.engine.send(link, &outgoing).unwrap();
    assert_eq!(raw.engine.send(link, &outgoing), Err(SendError::UnsettledFull { limit: 2 }));
    assert_eq!(raw.engine.credit(link), Ok(8), "a refused send costs no credit");
    outgoing.settled = true;
    raw.engine.send(link, &outgoing).unwrap();
    raw.discard_output();

    for delivery in 0..3 {
        raw.write_frame(0, transfer(0, delivery, b"x"));
    }
    assert_eq!(shorts(&mut raw), ["detach=amqp:link:transfer-limit-exceeded"]);
}

#[test]
fn transfers_beyond_our_window_end_the_session() {
    let limits = Limits { incoming_window: 4, ..Limits::default() };
    let mut raw = Raw::begun(limits);
    raw.write_frame(0, sender("s", 0, "q"));
    accept_attach(&mut raw);
    raw.discard_output();
    let frames = |deliveries: std::ops::Range<u32>| {
        let mut bytes = Vec::new();
        for delivery in deliveries {
            Frame { channel: 0, body: transfer(0, delivery, b"x") }.encode(&mut bytes);
        }
        bytes
    };
    raw.write(&frames(0..4));
    assert_eq!(raw.events().len(), 4, "the whole window may be used");
    assert_eq!(shorts(&mut raw), ["flow"], "and is opened again");
    // The fifth in one piece cannot have heard of another opening.
    raw.write(&frames(4..9));
    assert_eq!(shorts(&mut raw), ["flow", "end=amqp:session:window-violation"]);
}

#[test]
fn output_that_nobody_takes_stops_the_input_and_the_sends() {
    let limits = Limits { output_bytes_max: 1000, ..Limits::default() };
    let mut raw = Raw::begun(limits);
    raw.write_frame(0, receiver("r", 0, "q"));
    let link = accept_attach(&mut raw);
    raw.write_frame(0, credit(0, 0, 1000));
    raw.discard_output();

    let mut flood = Vec::new();
    let echo = FrameBody::Flow(Flow { echo: true, incoming_window: 9999, ..Flow::default() });
    for _ in 0..1000 {
        Frame { channel: 0, body: echo.clone() }.encode(&mut flood);
    }
    let mut input = BytesMut::from(&flood[..]);
    assert_eq!(raw.engine.receive(&mut input, Millis(0)), Received::Paused);
    assert!(raw.engine.output_pending() < 1100, "{}", raw.engine.output_pending());
    assert!(raw.engine.output_full());
    let tail = Bytes::from_static(b"x");
    let outgoing = Outgoing {
        tag: DeliveryTag::from(1u64),
        message_format: 0,
        settled: true,
        state: None,
        head: b"",
        tail: &tail,
        key: 0,
    };
    assert_eq!(raw.engine.send(link, &outgoing), Err(SendError::OutputFull { limit: 1000 }));
    let mut answers = 0;
    loop {
        answers += raw.frames().len();
        if raw.engine.receive(&mut input, Millis(0)) == Received::All {
            break;
        }
    }
    assert_eq!(answers + raw.frames().len(), 1000, "nothing was lost while it stood still");
}

#[test]
fn one_call_handles_a_bounded_number_of_frames_and_settlements() {
    let limits = Limits { frames_per_receive: 10, settlements_per_receive: 50, ..Limits::default() };
    let mut raw = Raw::begun(limits);
    raw.write_frame(0, receiver("r", 0, "q"));
    let link = accept_attach(&mut raw);
    raw.write_frame(0, credit(0, 0, 1000));
    raw.events();
    let tail = Bytes::from_static(b"x");
    for key in 0..40 {
        let outgoing = Outgoing {
            tag: DeliveryTag::from(1u64),
            message_format: 0,
            settled: false,
            state: None,
            head: b"",
            tail: &tail,
            key,
        };
        raw.engine.send(link, &outgoing).unwrap();
    }
    let disposition = Disposition {
        role: Role::Receiver,
        first: 0,
        last: Some(0x7fff_ffff),
        settled: false,
        state: Some(DeliveryState::ACCEPTED),
        batchable: false,
    };
    let mut flood = Vec::new();
    for _ in 0..100 {
        Frame { channel: 0, body: FrameBody::Disposition(disposition.clone()) }.encode(&mut flood);
    }
    let mut input = BytesMut::from(&flood[..]);
    let mut calls = 0;
    while raw.engine.receive(&mut input, Millis(0)) == Received::Paused {
        calls += 1;
    }
    assert!(calls >= 49, "two ranges over 40 deliveries use up the 50 of a call: {calls}");
    let events = raw.events();
    assert_eq!(events.len(), 1, "an outcome counts once, however often it is repeated");
}

#[test]
fn the_frame_limit_is_announced_and_the_windows_are_complete() {
    let mut limits = Limits::default();
    limits.authenticated.frame = FrameLimit::new(70_000);
    let mut raw = Raw::server(limits);
    raw.write(b"AMQP\x03\x01\x00\x00");
    raw.write(&[0, 0, 0, 26, 2, 1, 0, 0, 0, 0x53, 0x41, 0xc0, 13, 2, 0xa3, 9]);
    raw.write(b"ANONYMOUS@");
    raw.discard_output();
    raw.write(b"AMQP\x00\x01\x00\x00");
    raw.write_frame(0, FrameBody::Open(Box::new(Open { container_id: Text::from("p"), ..Open::default() })));
    raw.write_frame(1, FrameBody::Begin(Box::new(Begin { next_outgoing_id: 5, ..Begin::default() })));
    let mut output = raw.output();
    assert_eq!(&output.split_to(8)[..], b"AMQP\x00\x01\x00\x00");
    let size = usize::try_from(u32::from_be_bytes(output[..4].try_into().unwrap())).unwrap();
    let FrameBody::Open(open) = Frame::decode(output.split_to(size)).unwrap().body else { panic!() };
    assert_eq!(
        (open.max_frame_size, open.channel_max, open.idle_time_out),
        (Some(70_000), Some(4999), Some(120_000))
    );
    let FrameBody::Begin(begin) = Frame::decode(output).unwrap().body else { panic!() };
    assert_eq!((begin.remote_channel, begin.next_outgoing_id), (Some(1), 1));
    assert_eq!((begin.incoming_window, begin.handle_max), (5000, Some(4999)));
}
