//! Performatives and frames: round trips, exact bytes, and liberal reading.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use vorrang_amqp::decode::{Composite, Reader};
use vorrang_amqp::encode::Encode;
use vorrang_amqp::frame::{HEARTBEAT, frame_size};
use vorrang_amqp::performative::{
    CoordinatorRequest, Declare, DeliveryState, Detach, Discharge, Disposition, Error, Flow, LinkFlow, Open,
    Outcome, Role, SaslMechanisms, TransactionId, Transfer,
};
use vorrang_amqp::{DecodeError, Frame, FrameBody, Map, SaslFrame, Symbol, Text, Value, fuzzing};

use crate::strategy;

pub(crate) fn encoded(channel: u16, body: FrameBody) -> Vec<u8> {
    let mut out = Vec::new();
    Frame { channel, body }.encode(&mut out);
    out
}

/// A frame around an encoded performative.
pub(crate) fn framed(body: &[u8]) -> Bytes {
    let size = u32::try_from(body.len() + 8).unwrap();
    [&size.to_be_bytes()[..], &[2, 0, 0, 0], body].concat().into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_frame_survives_being_written_and_read(channel in any::<u16>(), body in strategy::frame_body()) {
        let mut expected = Frame { channel, body };
        let mut out = Vec::new();
        expected.encode(&mut out);
        if let FrameBody::Transfer(transfer, _) = &mut expected.body {
            transfer.message_format = transfer.message_format.or(transfer.delivery_id.map(|_| 0));
        }
        prop_assert_eq!(frame_size(&out, u32::MAX), Ok(Some(out.len())));
        prop_assert_eq!(Frame::decode(out.clone().into()), Ok(expected));
        fuzzing::check_frame(&out);
    }

    #[test]
    fn both_kinds_of_buffer_get_the_same_bytes(body in strategy::frame_body()) {
        let frame = Frame { channel: 3, body };
        let mut vec = vec![0xee; 5];
        let mut bytes = BytesMut::from(&[0xee; 5][..]);
        frame.encode(&mut vec);
        frame.encode(&mut bytes);
        prop_assert_eq!(&vec[..], &bytes[..]);
    }

    #[test]
    fn every_sasl_frame_survives_being_written_and_read(frame in strategy::sasl_frame()) {
        let mut out = Vec::new();
        frame.encode(&mut out);
        prop_assert_eq!(SaslFrame::decode(out.clone().into()), Ok(frame));
        fuzzing::check_frame(&out);
    }

    #[test]
    fn a_damaged_frame_ends_in_a_frame_or_an_error(
        body in strategy::frame_body(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut out = encoded(0, body);
        let place = place.index(out.len());
        out[place] = byte;
        fuzzing::check_frame(&out);
    }

    #[test]
    fn a_frame_cut_short_is_refused_or_is_a_shorter_payload(body in strategy::frame_body()) {
        let out = encoded(0, body.clone());
        let payload = if let FrameBody::Transfer(_, payload) = &body { payload.len() } else { 0 };
        for length in 0..out.len() {
            fuzzing::check_frame(&out[..length]);
            let read = Frame::decode(Bytes::copy_from_slice(&out[..length]));
            if length == 8 {
                prop_assert_eq!(read.map(|frame| frame.body), Ok(FrameBody::Heartbeat));
            } else {
                prop_assert_eq!(read.is_ok(), length >= out.len() - payload, "cut to {}", length);
            }
        }
    }

    #[test]
    fn symbolic_and_wide_descriptors_are_read_like_numbers(flow in strategy::flow()) {
        let plain = flow.to_encoded();
        let wide = [&[0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x13][..], &plain[3..]].concat();
        let symbol = [&[0, 0xa3, 14][..], b"amqp:flow:list", &plain[3..]].concat();
        for body in [plain, wide, symbol] {
            fuzzing::check_frame(&framed(&body));
            prop_assert_eq!(Frame::decode(framed(&body)).unwrap().body, FrameBody::Flow(flow.clone()));
        }
    }

    #[test]
    fn fields_of_a_later_version_are_passed_over(flow in strategy::flow(), extra in strategy::value()) {
        let Ok(Value::Described(described)) = crate::values::decode(&flow.to_encoded()) else { panic!("a flow") };
        let fields = described.value.as_list().unwrap();
        let longer: vorrang_amqp::List = fields.iter().chain([extra]).collect();
        let body = Value::described(0x13u64, longer).to_encoded();
        prop_assert_eq!(Frame::decode(framed(&body)).unwrap().body, FrameBody::Flow(flow));
    }
}

#[test]
fn the_bytes_on_the_wire_are_the_ones_clients_are_known_to_read() {
    let accepted = Disposition {
        role: Role::Sender,
        first: 0,
        last: None,
        settled: true,
        state: Some(DeliveryState::ACCEPTED),
        batchable: false,
    };
    // What Service Bus answers to the completion of delivery 0.
    let expected = [0x00, 0x53, 0x15, 0xc0, 0x0a, 0x06, 0x42, 0x43, 0x40, 0x41, 0x00, 0x53, 0x24, 0x45, 0x40];
    assert_eq!(accepted.to_encoded(), expected);

    let rejected = Outcome::Rejected { error: None };
    assert_eq!(rejected.to_encoded(), [0x00, 0x53, 0x25, 0x45], "an echo carries no error, not even null");

    let error = Error { condition: Symbol::from_static("a:b"), description: None, info: None };
    let expected = [0x00, 0x53, 0x1d, 0xc0, 0x08, 0x03, 0xa3, 0x03, b'a', b':', b'b', 0x40, 0x40];
    assert_eq!(error.to_encoded(), expected, "an error always has three fields");

    let first = Transfer { delivery_id: Some(0), ..Transfer::default() };
    let expected = [
        0x00, 0x53, 0x14, 0xc0, 0x0c, 0x0b, 0x43, 0x43, 0x40, 0x43, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40,
    ];
    assert_eq!(first.to_encoded(), expected, "the first frame spells out message format 0");
    let later = Transfer::default().to_encoded();
    assert_eq!(later[9], 0x40, "a later frame does not contradict the first one's format");

    let mechanisms =
        SaslMechanisms { sasl_server_mechanisms: [Symbol::from_static("PLAIN")].into_iter().collect() };
    let expected =
        [0x00, 0x53, 0x40, 0xc0, 0x0b, 0x01, 0xe0, 0x08, 0x01, 0xa3, 0x05, b'P', b'L', b'A', b'I', b'N'];
    assert_eq!(mechanisms.to_encoded(), expected, "one mechanism is an array too");

    assert_eq!(encoded(0, FrameBody::Heartbeat), HEARTBEAT);
    assert_eq!(Frame::decode(Bytes::from_static(&HEARTBEAT)).unwrap().body, FrameBody::Heartbeat);
}

#[test]
fn every_performative_has_all_its_fields_whatever_is_null() {
    let open = Open { container_id: Text::from_static("c"), ..Open::default() };
    assert_eq!(open.to_encoded()[5], 10);
    let flow = Flow { link: Some(LinkFlow::default()), ..Flow::default() };
    assert_eq!(flow.to_encoded()[5], 11);
    assert_eq!(Detach::default().to_encoded()[5], 3);
}

#[test]
fn a_composite_longer_than_the_short_form_is_widened_in_place() {
    for length in [200usize, 240, 241, 242, 243, 244, 245, 300, 70_000] {
        let open = Open { container_id: Text::from("c".repeat(length)), ..Open::default() };
        let frame = encoded(9, FrameBody::Open(Box::new(open.clone())));
        let read = Frame::decode(frame.into()).unwrap();
        assert_eq!(read, Frame { channel: 9, body: FrameBody::Open(Box::new(open)) }, "{length}");
    }
}

#[test]
fn short_lists_and_odd_integer_types_are_read() {
    // A begin of four fields whose windows are ulong and ubyte.
    let body = [0, 0x53, 0x11, 0xc0, 11, 4, 0x40, 0x53, 1, 0x50, 2, 0x70, 0, 0, 0, 3];
    let FrameBody::Begin(begin) = Frame::decode(framed(&body)).unwrap().body else { panic!("a begin") };
    assert_eq!((begin.next_outgoing_id, begin.incoming_window, begin.outgoing_window), (1, 2, 3));
    assert_eq!(begin.handle_max, None);
}

#[test]
fn error_details_with_string_keys_are_read() {
    // A dead-letter disposition as the JS client writes it.
    let info: Map =
        [(Value::from("DeadLetterReason"), Value::from("bad")), (Value::from("Größe"), Value::from(1i32))]
            .into_iter()
            .collect();
    let error = Error {
        condition: Symbol::from_static("com.microsoft:dead-letter"),
        description: None,
        info: Some(info),
    };
    let disposition = Disposition {
        role: Role::Receiver,
        first: 4,
        last: Some(4),
        settled: false,
        state: Some(Outcome::rejected(error).into()),
        batchable: false,
    };
    let read = Frame::decode(framed(&disposition.to_encoded())).unwrap().body;
    let FrameBody::Disposition(read) = read else { panic!("a disposition") };
    let Some(Outcome::Rejected { error: Some(error) }) = read.state.as_ref().and_then(DeliveryState::outcome)
    else {
        panic!("rejected")
    };
    let info = error.info.as_ref().unwrap();
    assert_eq!(info.value("DeadLetterReason"), Some(Value::from("bad")));
    assert_eq!(info.value("Größe"), Some(Value::from(1i32)));
}

#[test]
fn what_is_wrong_is_named_by_composite_and_field() {
    let cases: [(&str, Vec<u8>, &str); 7] = [
        (
            "a handle that is text",
            vec![0, 0x53, 0x14, 0xc0, 4, 1, 0xa1, 1, b'x'],
            "transfer.handle: expected a uint, found constructor 0xa1",
        ),
        ("no handle", vec![0, 0x53, 0x14, 0x45], "transfer.handle: mandatory field is missing or null"),
        (
            "a null window",
            vec![0, 0x53, 0x13, 0xc0, 3, 2, 0x40, 0x40],
            "flow.incoming-window: mandatory field is missing or null",
        ),
        (
            "a handle beyond 32 bits",
            vec![0, 0x53, 0x16, 0xc0, 10, 1, 0x80, 1, 0, 0, 0, 0, 0, 0, 0],
            "detach.handle: number does not fit a uint",
        ),
        (
            "a list that ends early",
            vec![0, 0x53, 0x16, 0xc0, 1, 1],
            "detach.handle: input ends early: 1 more bytes needed, 0 left",
        ),
        (
            "an unknown state",
            vec![0, 0x53, 0x15, 0xc0, 9, 5, 0x41, 0x43, 0x40, 0x40, 0, 0x53, 0x99, 0x45],
            "disposition.state: expected an outcome, found descriptor 0x99",
        ),
        (
            "a performative nobody knows",
            vec![0, 0x53, 0x19, 0x45],
            "expected a performative, found descriptor 0x19",
        ),
    ];
    for (case, body, expected) in cases {
        let error = Frame::decode(framed(&body)).unwrap_err();
        assert_eq!(error.to_string(), expected, "{case}");
    }
}

#[test]
fn a_frame_of_the_other_layer_is_refused() {
    let mut sasl = Vec::new();
    SaslFrame::Mechanisms(SaslMechanisms::default()).encode(&mut sasl);
    assert_eq!(Frame::decode(sasl.into()), Err(DecodeError::FrameType { expected: 0, found: 1 }));
    let flow = encoded(0, FrameBody::Flow(Flow::default()));
    assert_eq!(SaslFrame::decode(flow.into()), Err(DecodeError::FrameType { expected: 1, found: 0 }));
}

#[test]
fn frame_sizes_are_held_to_the_limit_of_the_state() {
    let cases = [
        (7, Err(DecodeError::FrameTooSmall { size: 7 })),
        (0, Err(DecodeError::FrameTooSmall { size: 0 })),
        (8, Ok(Some(8))),
        (512, Ok(Some(512))),
        (513, Err(DecodeError::FrameTooLarge { size: 513, limit: 512 })),
        (u32::MAX, Err(DecodeError::FrameTooLarge { size: u32::MAX, limit: 512 })),
    ];
    for (size, expected) in cases {
        assert_eq!(frame_size(&size.to_be_bytes(), 512), expected, "{size}");
    }
    assert_eq!(frame_size(&[0, 0, 0], 512), Ok(None), "three bytes say nothing yet");
}

#[test]
fn an_extended_header_is_passed_over_and_one_beyond_the_frame_refused() {
    let flow = Flow::default().to_encoded();
    let size = u32::try_from(flow.len() + 12).unwrap().to_be_bytes();
    let frame = |words: u8| Bytes::from([&size[..], &[words, 0, 0, 5], &[0xff; 4], &flow].concat());
    let read = Frame::decode(frame(3)).unwrap();
    assert_eq!(read, Frame { channel: 5, body: FrameBody::Flow(Flow::default()) });
    for words in [0, 1, 255] {
        assert!(matches!(Frame::decode(frame(words)), Err(DecodeError::DataOffset { .. })), "{words} words");
    }
}

#[test]
fn bytes_behind_a_performative_that_has_no_payload_are_refused() {
    let mut body = Flow::default().to_encoded();
    body.push(0x40);
    assert_eq!(Frame::decode(framed(&body)), Err(DecodeError::TrailingBytes { count: 1 }));
}

#[test]
fn requests_to_a_coordinator_are_read_from_message_bodies() {
    let declare = Declare { global_id: None };
    let read = CoordinatorRequest::decode(&declare.to_encoded().into());
    assert_eq!(read, Ok(CoordinatorRequest::Declare(declare)));
    let discharge = Discharge { txn_id: TransactionId::from(&[1, 2, 3][..]), fail: true };
    let read = CoordinatorRequest::decode(&discharge.to_encoded().into());
    assert_eq!(read, Ok(CoordinatorRequest::Discharge(discharge)));
    assert!(CoordinatorRequest::decode(&Bytes::from_static(&[0, 0x53, 0x24, 0x45])).is_err());
}

#[test]
fn a_bare_symbol_stands_for_one_capability() {
    let body = [0, 0x53, 0x40, 0xc0, 8, 1, 0xa3, 5, b'P', b'L', b'A', b'I', b'N'];
    let source = Bytes::copy_from_slice(&body);
    let mechanisms = SaslMechanisms::decode(&mut Reader::new(&source)).unwrap();
    assert!(mechanisms.sasl_server_mechanisms.contains("PLAIN"));
    assert!(!mechanisms.sasl_server_mechanisms.contains("PLAI"));
}
