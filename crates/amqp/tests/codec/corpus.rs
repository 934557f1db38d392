//! Recorded inputs, replayed through the fuzz entry points.
//!
//! The seeds below are written to `corpus/` when the variable `VORRANG_WRITE_CORPUS` is set; what fuzzing finds is added
//! there by hand. Frames are modelled on what the Service Bus clients were seen to send.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use vorrang_amqp::encode::Encode;
use vorrang_amqp::message::{
    BatchBuilder, Header, MessageId, Properties, put_data, put_header, put_map_section, put_properties,
    put_value,
};
use vorrang_amqp::performative::{
    Attach, Begin, Close, Coordinator, Declare, DeliveryState, DeliveryTag, Detach, Discharge, Disposition,
    End, Error, Flow, LinkFlow, MESSAGE_FORMAT_BATCH, Modified, Open, Outcome, ReceiverSettleMode, Role,
    SaslCode, SaslInit, SaslMechanisms, SaslOutcome, SenderSettleMode, Source, Target, TargetNode,
    TransactionId, Transfer,
};
use vorrang_amqp::{
    Array, FrameBody, List, Map, SaslFrame, Symbol, Text, Timestamp, Uuid, Value, descriptor, fuzzing,
};

use crate::performatives::{encoded, framed};
use crate::wide::wide;

type Seeds = Vec<(&'static str, Vec<u8>)>;

fn directory(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(kind)
}

fn replay(kind: &str, seeds: &Seeds, check: fn(&[u8])) {
    for (name, bytes) in seeds {
        let path = directory(kind).join(name);
        if std::env::var_os("VORRANG_WRITE_CORPUS").is_some() {
            fs::create_dir_all(directory(kind)).unwrap();
            fs::write(&path, bytes).unwrap();
        }
        let stored = fs::read(path).ok();
        assert_eq!(stored.as_ref(), Some(bytes), "{kind}/{name}: write it with VORRANG_WRITE_CORPUS=1");
    }
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory(kind)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= seeds.len(), "{kind} has its seeds");
    for file in files {
        let bytes = fs::read(&file).unwrap();
        check(&bytes);
        for length in 0..bytes.len() {
            check(&bytes[..length]);
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x80;
            check(&damaged);
            damaged[place] = 0xff;
            check(&damaged);
        }
    }
}

#[test]
fn stored_values_hold() {
    replay("value", &values(), fuzzing::check_value);
}

#[test]
fn stored_frames_hold() {
    replay("frame", &frames(), fuzzing::check_frame);
}

#[test]
fn stored_messages_hold() {
    replay("message", &messages(), fuzzing::check_message);
}

/// One value of every type, in short and in long form, and the classics of malformed input.
fn values() -> Seeds {
    let scalars: List = [
        Value::Null,
        true.into(),
        5u8.into(),
        5u16.into(),
        5u32.into(),
        500u32.into(),
        5u64.into(),
        (-5i8).into(),
        (-5i16).into(),
        (-5i32).into(),
        (-5i64).into(),
        1.5f32.into(),
        1.5f64.into(),
        Value::Decimal32([1; 4]),
        Value::Decimal64([2; 8]),
        Value::Decimal128([3; 16]),
        'x'.into(),
        Timestamp(1_767_225_600_000).into(),
        Uuid::from_bytes([4; 16]).into(),
        Bytes::from_static(b"bytes").into(),
        "Grüße".into(),
        Value::symbol("amqp:not-found"),
    ]
    .into_iter()
    .collect();
    let timespan = Value::described(Symbol::from_static("com.microsoft:timespan"), 600_000_000i64);
    let management: Map = [
        (Value::from("lock-tokens"), Value::from(Array::of([Uuid::from_bytes([7; 16])]))),
        (Value::from("sequence-numbers"), Value::from(Array::of([1i64, 2, 3]))),
        (Value::from("timespan"), timespan),
    ]
    .into_iter()
    .collect();
    vec![
        ("every-scalar", scalars.to_encoded()),
        ("every-scalar-wide", wide(&Value::List(scalars.clone()))),
        ("management-map", management.to_encoded()),
        ("management-map-wide", wide(&Value::Map(management))),
        ("described-array", vec![0xe0, 8, 2, 0, 0xa3, 1, b'd', 0x54, 1, 2]),
        ("array-of-arrays", vec![0xe0, 10, 2, 0xe0, 3, 1, 0x54, 7, 3, 1, 0x54, 8]),
        ("array-without-constructor", vec![0xe0, 1, 0]),
        ("array-without-constructor-at-the-limit", [&[0, 0x44].repeat(32)[..], &[0xe0, 1, 0]].concat()),
        ("zero-width-array-of-billions", vec![0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40]),
        ("list-of-billions", vec![0xd0, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff]),
        (
            "nested-lists-beyond-the-limit",
            (0..40u8).rev().flat_map(|depth| [0xc0, depth * 3 + 1, 1]).collect(),
        ),
        ("nested-descriptions-beyond-the-limit", [0, 0x44].repeat(40)),
        ("described-descriptor", vec![0, 0, 0x44, 0x44, 0x44]),
        ("odd-map", vec![0xc1, 2, 1, 0x40]),
        ("not-utf8", vec![0xa1, 1, 0xff]),
        ("surrogate", vec![0x73, 0, 0, 0xd8, 0]),
        ("unknown-constructor", vec![0xff, 0, 0]),
    ]
}

fn sasl(frame: &SaslFrame) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out);
    out
}

fn sasl_init(
    mechanism: &'static str,
    response: Option<&'static [u8]>,
    hostname: Option<&'static str>,
) -> Vec<u8> {
    sasl(&SaslFrame::Init(SaslInit {
        mechanism: Symbol::from_static(mechanism),
        initial_response: response.map(Bytes::from_static),
        hostname: hostname.map(Text::from_static),
    }))
}

fn symbol_map(entries: &[(&'static str, Value)]) -> Map {
    entries.iter().map(|(key, value)| (Symbol::from_static(key), value.clone())).collect()
}

/// A performative with only its first fields, as rhea and .NET send them.
fn shortened(performative: &[u8], fields: usize) -> Vec<u8> {
    let Ok(Value::Described(described)) = crate::values::decode(performative) else {
        panic!("a performative")
    };
    let list: List = described.value.as_list().unwrap().iter().take(fields).collect();
    framed(&Value::described(described.descriptor, list).to_encoded()).to_vec()
}

/// A performative without any short form.
fn widened(performative: &[u8]) -> Vec<u8> {
    framed(&wide(&crate::values::decode(performative).unwrap())).to_vec()
}

fn settle(state: DeliveryState) -> Disposition {
    Disposition {
        role: Role::Receiver,
        first: 3,
        last: Some(3),
        settled: false,
        state: Some(state),
        batchable: false,
    }
}

fn dead_letter(key: fn(&'static str) -> Value) -> Disposition {
    let info: Map = [
        (key("DeadLetterReason"), Value::from("no such customer")),
        (key("DeadLetterErrorDescription"), Value::from("customer 42")),
    ]
    .into_iter()
    .collect();
    let condition = Symbol::from_static("com.microsoft:dead-letter");
    settle(Outcome::rejected(Error { condition, description: None, info: Some(info) }).into())
}

fn receiver(filter: Value) -> Attach {
    let filter = symbol_map(&[("com.microsoft:session-filter", filter)]);
    Attach {
        snd_settle_mode: Some(SenderSettleMode::Unsettled),
        rcv_settle_mode: Some(ReceiverSettleMode::Second),
        source: Some(Source { filter: Some(filter), ..Source::at("amqps://localhost/q") }),
        target: Some(TargetNode::Node(Target::at("receiver-link-1"))),
        max_message_size: Some(1_048_576),
        properties: Some(symbol_map(&[("com.microsoft:timeout", 60_000u32.into())])),
        ..Attach::new(Text::from_static("receiver-link-1"), 3, Role::Receiver)
    }
}

fn sender() -> Attach {
    Attach {
        snd_settle_mode: Some(SenderSettleMode::Unsettled),
        rcv_settle_mode: Some(ReceiverSettleMode::Second),
        source: Some(Source::at("sender-link-1")),
        target: Some(TargetNode::Node(Target::at("amqps://localhost/q"))),
        initial_delivery_count: Some(0),
        max_message_size: Some(0),
        ..Attach::new(Text::from_static("sender-link-1"), 1, Role::Sender)
    }
}

/// Frames as the clients send them, from the first to the last of a connection.
fn frames() -> Seeds {
    let open = Open {
        container_id: Text::from_static("SBSender-2f6f4d1e"),
        hostname: Some(Text::from_static("localhost")),
        max_frame_size: Some(1_048_576),
        channel_max: Some(65_535),
        properties: Some(symbol_map(&[
            ("product", "azsdk-python-servicebus".into()),
            ("version", "7.15.0".into()),
        ])),
        ..Open::default()
    };
    let begin = Begin { incoming_window: 65_536, outgoing_window: 65_536, ..Begin::default() };
    let described_filter = Value::described(0x0000_0013_7000_000Cu64, "session-1");
    let coordinator = Attach {
        source: Some(Source::default()),
        target: Some(TargetNode::Coordinator(Coordinator::default())),
        ..Attach::new(Text::from_static("coordinator"), 0, Role::Sender)
    };
    let credit = Flow {
        next_incoming_id: Some(1),
        incoming_window: 2_048,
        next_outgoing_id: 0,
        outgoing_window: u32::MAX,
        link: Some(LinkFlow {
            handle: 0,
            delivery_count: Some(0),
            link_credit: Some(20),
            available: None,
            drain: true,
        }),
        ..Flow::default()
    };
    let transfer = Transfer {
        handle: 1,
        delivery_id: Some(300),
        delivery_tag: Some(DeliveryTag::from([9; 16])),
        message_format: Some(0),
        settled: Some(false),
        ..Transfer::default()
    };
    let transaction = TransactionId::from(&[8; 16][..]);
    let transactional = Transfer {
        state: Some(DeliveryState::Transactional { txn_id: transaction.clone(), outcome: None }),
        ..transfer.clone()
    };
    let payload = Bytes::from(plain_message());
    let batch = Transfer { message_format: Some(MESSAGE_FORMAT_BATCH), more: true, ..transfer.clone() };
    let modified = |delivery_failed, undeliverable_here| {
        let outcome =
            Outcome::Modified(Modified { delivery_failed, undeliverable_here, message_annotations: None });
        settle(outcome.into())
    };
    let not_found =
        Error::new("amqp:not-found", "The messaging entity 'sb://localhost/q' could not be found.");
    let mechanisms = ["ANONYMOUS", "PLAIN", "EXTERNAL", "MSSBCBS"].map(Symbol::from_static);
    let disposition = |disposition: Disposition| encoded(1, FrameBody::Disposition(disposition));
    vec![
        (
            "sasl-mechanisms",
            sasl(&SaslFrame::Mechanisms(SaslMechanisms {
                sasl_server_mechanisms: mechanisms.into_iter().collect(),
            })),
        ),
        ("sasl-init-python", sasl_init("ANONYMOUS", Some(b""), Some("localhost"))),
        ("sasl-init-js", sasl_init("ANONYMOUS", Some(b"\0RootManageSharedAccessKey"), None)),
        ("sasl-init-dotnet", sasl_init("MSSBCBS", None, Some("localhost"))),
        ("sasl-init-plain", sasl_init("PLAIN", Some(b"\0user\0secret"), None)),
        (
            "sasl-outcome",
            sasl(&SaslFrame::Outcome(SaslOutcome { code: SaslCode::Ok, additional_data: None })),
        ),
        ("open-python", encoded(0, FrameBody::Open(Box::new(open.clone())))),
        ("open-wide", widened(&open.to_encoded())),
        ("open-shortened", shortened(&open.to_encoded(), 1)),
        ("begin-python", encoded(1, FrameBody::Begin(Box::new(begin.clone())))),
        ("begin-shortened", shortened(&begin.to_encoded(), 4)),
        ("attach-sender", encoded(1, FrameBody::Attach(Box::new(sender())))),
        ("attach-sender-shortened", shortened(&sender().to_encoded(), 10)),
        ("attach-session-plain", encoded(1, FrameBody::Attach(Box::new(receiver("session-1".into()))))),
        ("attach-session-next", encoded(1, FrameBody::Attach(Box::new(receiver(Value::Null))))),
        ("attach-session-described", encoded(1, FrameBody::Attach(Box::new(receiver(described_filter))))),
        ("attach-session-wide", widened(&receiver("session-1".into()).to_encoded())),
        ("attach-coordinator", encoded(0, FrameBody::Attach(Box::new(coordinator)))),
        ("flow-session", encoded(1, FrameBody::Flow(Flow { incoming_window: 65_536, ..Flow::default() }))),
        ("flow-drain", encoded(1, FrameBody::Flow(credit.clone()))),
        ("flow-wide", widened(&credit.to_encoded())),
        ("flow-shortened", shortened(&credit.to_encoded(), 7)),
        ("transfer", encoded(1, FrameBody::Transfer(transfer.clone(), payload.clone()))),
        ("transfer-wide", widened(&transfer.to_encoded())),
        ("transfer-shortened", shortened(&transfer.to_encoded(), 3)),
        ("transfer-transactional", encoded(1, FrameBody::Transfer(transactional, payload.clone()))),
        ("transfer-batch-first", encoded(1, FrameBody::Transfer(batch, payload))),
        ("disposition-accepted", disposition(settle(DeliveryState::ACCEPTED))),
        ("disposition-accepted-shortened", shortened(&settle(DeliveryState::ACCEPTED).to_encoded(), 5)),
        ("disposition-released", disposition(settle(DeliveryState::RELEASED))),
        ("disposition-abandon-python", disposition(modified(Some(true), Some(false)))),
        ("disposition-abandon-js", disposition(modified(None, Some(false)))),
        ("disposition-defer-js", disposition(modified(None, Some(true)))),
        ("disposition-dead-letter-python", disposition(dead_letter(Value::symbol))),
        ("disposition-dead-letter-js", disposition(dead_letter(Value::from))),
        ("disposition-declared", disposition(settle(DeliveryState::Declared { txn_id: transaction }))),
        (
            "detach-not-found",
            encoded(
                1,
                FrameBody::Detach(Detach { handle: 1, closed: true, error: Some(Box::new(not_found)) }),
            ),
        ),
        ("end", encoded(1, FrameBody::End(End::default()))),
        ("close", encoded(0, FrameBody::Close(Close::default()))),
        ("heartbeat", encoded(0, FrameBody::Heartbeat)),
        ("unknown-performative", framed(&[0, 0x53, 0x19, 0x45]).to_vec()),
        ("symbolic-descriptor", framed(&[&[0, 0xa3, 13][..], b"amqp:end:list", &[0x45]].concat()).to_vec()),
        ("data-offset-beyond", vec![0, 0, 0, 8, 255, 0, 0, 0]),
        ("frame-type-unknown", vec![0, 0, 0, 8, 2, 9, 0, 0]),
    ]
}

fn plain_message() -> Vec<u8> {
    let mut out = Vec::new();
    put_header(&mut out, &Header { durable: Some(true), ttl: Some(60_000), ..Header::default() });
    put_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, |entries| {
        entries.symbol("x-opt-partition-key", &Text::from_static("customer"));
    });
    let properties = Properties {
        message_id: Some(MessageId::String("m-1".into())),
        group_id: Some("session-1".into()),
        content_type: Some(Symbol::from_static("application/json")),
        creation_time: Some(Timestamp(1_767_225_600_000)),
        ..Properties::default()
    };
    put_properties(&mut out, &properties);
    put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |entries| {
        entries.entry(&Text::from_static("count"), &3i32);
        entries.entry(
            &Text::from_static("span"),
            &Value::described(Symbol::from_static("com.microsoft:timespan"), 9i64),
        );
    });
    put_data(&mut out, b"{\"order\":1}");
    out
}

/// Messages as clients send them, and sections where they do not belong.
fn messages() -> Seeds {
    let with_value = |value: &Value| {
        let mut out = Vec::new();
        put_value(&mut out, value);
        out
    };
    let with_id = |id: MessageId, body: Value| {
        let mut out = Vec::new();
        put_properties(&mut out, &Properties { message_id: Some(id), ..Properties::default() });
        put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |entries| {
            entries.entry(&Text::from_static("operation"), &Text::from_static("put-token"));
            entries.entry(&Text::from_static("com.microsoft:server-timeout"), &60_000u32);
        });
        put_value(&mut out, &body);
        out
    };
    let mut batch = BatchBuilder::default();
    batch.push(&plain_message());
    batch.push(&with_value(&Value::from("second")));
    let declare = [&[0, 0x53, 0x77][..], &Declare::default().to_encoded()].concat();
    let discharge = Discharge { txn_id: TransactionId::from(&[8; 16][..]), fail: true };
    let token = Value::from("SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Fq&sig=x&se=1&skn=k");
    vec![
        ("plain", plain_message()),
        ("empty", Vec::new()),
        ("put-token-python", with_id(MessageId::Uuid(Uuid::from_bytes([5; 16])), token.clone())),
        ("put-token-java", with_id(MessageId::Ulong(1), token.clone())),
        ("put-token-js", with_id(MessageId::String("id".into()), token)),
        ("batch", batch.finish()),
        ("declare", declare),
        ("discharge", [&[0, 0x53, 0x77][..], &discharge.to_encoded()].concat()),
        ("null-value", with_value(&Value::Null)),
        ("sequence", vec![0, 0x53, 0x76, 0xc0, 3, 1, 0x54, 1, 0, 0x53, 0x76, 0x45]),
        ("footer-without-body", vec![0, 0x53, 0x78, 0xc1, 1, 0]),
        ("properties-behind-body", vec![0, 0x53, 0x75, 0xa0, 0, 0, 0x53, 0x73, 0x45]),
        ("header-twice", vec![0, 0x53, 0x70, 0x45, 0, 0x53, 0x70, 0x45]),
        ("symbolic-section", [&[0, 0xa3, 16][..], b"amqp:data:binary", &[0xa0, 0]].concat()),
        ("wide-section", vec![0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x75, 0xb0, 0, 0, 0, 1, 7]),
        ("lying-body", vec![0, 0x53, 0x77, 0xc0, 2, 9, 0x40]),
    ]
}
