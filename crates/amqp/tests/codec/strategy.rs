//! Arbitrary values, performatives and messages.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use vorrang_amqp::message::{Header, MessageId, Properties};
use vorrang_amqp::performative::{
    Attach, Begin, Close, Coordinator, DeliveryState, DeliveryTag, Detach, Disposition, End, Error, Flow,
    LinkFlow, Modified, Open, Outcome, ReceiverSettleMode, Role, SaslChallenge, SaslCode, SaslInit,
    SaslMechanisms, SaslOutcome, SaslResponse, SenderSettleMode, Source, Symbols, Target, TargetNode,
    TransactionId, Transfer,
};
use vorrang_amqp::{Array, FrameBody, List, Map, SaslFrame, Symbol, Text, Timestamp, Uuid, Value};

pub(crate) fn text() -> BoxedStrategy<Text> {
    prop_oneof![
        8 => "[a-z:/$\\-]{0,12}".prop_map(Text::from),
        2 => "\\PC{0,6}".prop_map(Text::from),
        1 => (250usize..260).prop_map(|length| Text::from("x".repeat(length))),
    ]
    .boxed()
}

pub(crate) fn symbol() -> impl Strategy<Value = Symbol> {
    prop_oneof![
        8 => "[a-z:\\-]{0,12}".prop_map(|name| Symbol::from(name.as_str())),
        1 => (250usize..260).prop_map(|length| Symbol::from("s".repeat(length).as_str())),
    ]
}

pub(crate) fn binary() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        8 => vec(any::<u8>(), 0..20).prop_map(Bytes::from),
        1 => (250usize..260).prop_map(|length| Bytes::from(vec![7; length])),
    ]
}

/// Numbers around the places where encodings change.
pub(crate) fn uint() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 1u32..300, any::<u32>(), Just(u32::MAX)]
}

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<[u8; 16]>().prop_map(Uuid::from_bytes)
}

fn scalar() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u8>().prop_map(Value::from),
        any::<u16>().prop_map(Value::from),
        uint().prop_map(Value::from),
        prop_oneof![Just(0), 1u64..300, any::<u64>()].prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        prop_oneof![-300i32..300, any::<i32>()].prop_map(Value::from),
        prop_oneof![-300i64..300, any::<i64>()].prop_map(Value::from),
        any::<u32>().prop_map(|bits| Value::Float(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        any::<[u8; 4]>().prop_map(Value::Decimal32),
        any::<[u8; 8]>().prop_map(Value::Decimal64),
        any::<[u8; 16]>().prop_map(Value::Decimal128),
        any::<char>().prop_map(Value::from),
        any::<i64>().prop_map(|ms| Value::Timestamp(Timestamp(ms))),
        uuid().prop_map(Value::from),
        binary().prop_map(Value::from),
        text().prop_map(Value::from),
        symbol().prop_map(Value::from),
    ]
    .boxed()
}

pub(crate) fn array() -> BoxedStrategy<Array> {
    prop_oneof![
        vec(any::<i64>(), 0..40).prop_map(Array::of),
        vec(any::<i32>(), 0..5).prop_map(Array::of),
        vec(any::<u64>(), 0..5).prop_map(Array::of),
        vec(uint(), 0..5).prop_map(Array::of),
        vec(any::<i64>().prop_map(Timestamp), 0..5).prop_map(Array::of),
        vec(uuid(), 0..5).prop_map(Array::of),
        vec(symbol(), 0..5).prop_map(Array::of),
    ]
    .boxed()
}

pub(crate) fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![8 => scalar(), 1 => array().prop_map(Value::from)];
    leaf.prop_recursive(4, 48, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(|items| Value::List(items.into_iter().collect::<List>())),
            vec((key(), inner.clone()), 0..5).prop_map(|entries| Value::Map(map_of(entries))),
            (descriptor(), inner).prop_map(|(descriptor, value)| Value::described(descriptor, value)),
        ]
    })
    .boxed()
}

/// A map of these entries, without those whose key was there already.
fn map_of(entries: Vec<(Value, Value)>) -> Map {
    let mut kept: Vec<(Value, Value)> = Vec::new();
    for (key, value) in entries {
        if kept.iter().all(|(other, _)| *other != key) {
            kept.push((key, value));
        }
    }
    kept.into_iter().collect()
}

fn key() -> impl Strategy<Value = Value> {
    prop_oneof![
        symbol().prop_map(Value::from),
        text().prop_map(Value::from),
        any::<u64>().prop_map(Value::from)
    ]
}

fn descriptor() -> impl Strategy<Value = Value> {
    prop_oneof![symbol().prop_map(Value::from), any::<u64>().prop_map(Value::from)]
}

/// A map with symbol keys, as AMQP wants the fields of composites.
pub(crate) fn fields() -> BoxedStrategy<Map> {
    vec((symbol().prop_map(Value::from), value()), 0..4).prop_map(map_of).boxed()
}

/// A map as clients send it: keys of either kind.
pub(crate) fn any_keys() -> BoxedStrategy<Map> {
    vec((key(), value()), 0..4).prop_map(map_of).boxed()
}

fn symbols() -> BoxedStrategy<Symbols> {
    vec(symbol(), 0..4).prop_map(|symbols| symbols.into_iter().collect()).boxed()
}

pub(crate) fn error() -> BoxedStrategy<Error> {
    (symbol(), option::of(text()), option::of(any_keys()))
        .prop_map(|(condition, description, info)| Error { condition, description, info })
        .boxed()
}

fn boxed_error() -> impl Strategy<Value = Option<Box<Error>>> {
    option::of(error().prop_map(Box::new))
}

fn transaction_id() -> impl Strategy<Value = TransactionId> {
    vec(any::<u8>(), 0..33).prop_map(|id| TransactionId::from(id.as_slice()))
}

pub(crate) fn outcome() -> BoxedStrategy<Outcome> {
    let modified =
        (option::of(any::<bool>()), option::of(any::<bool>()), option::of(any_keys().prop_map(Box::new)));
    prop_oneof![
        Just(Outcome::Accepted),
        Just(Outcome::Released),
        boxed_error().prop_map(|error| Outcome::Rejected { error }),
        modified.prop_map(|(delivery_failed, undeliverable_here, message_annotations)| {
            Outcome::Modified(Modified { delivery_failed, undeliverable_here, message_annotations })
        }),
    ]
    .boxed()
}

pub(crate) fn state() -> BoxedStrategy<DeliveryState> {
    prop_oneof![
        4 => outcome().prop_map(DeliveryState::from),
        1 => (uint(), any::<u64>()).prop_map(|(section_number, section_offset)| {
            DeliveryState::Received { section_number, section_offset }
        }),
        1 => transaction_id().prop_map(|txn_id| DeliveryState::Declared { txn_id }),
        1 => (transaction_id(), option::of(outcome()))
            .prop_map(|(txn_id, outcome)| DeliveryState::Transactional { txn_id, outcome }),
    ]
    .boxed()
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Sender), Just(Role::Receiver)]
}

fn receiver_mode() -> impl Strategy<Value = ReceiverSettleMode> {
    prop_oneof![Just(ReceiverSettleMode::First), Just(ReceiverSettleMode::Second)]
}

fn sender_mode() -> impl Strategy<Value = SenderSettleMode> {
    prop_oneof![
        Just(SenderSettleMode::Unsettled),
        Just(SenderSettleMode::Settled),
        Just(SenderSettleMode::Mixed)
    ]
}

fn open() -> impl Strategy<Value = Open> {
    let names = (text(), option::of(text()));
    let limits = (option::of(uint()), option::of(any::<u16>()), option::of(uint()));
    let lists = (option::of(symbols()), option::of(symbols()), option::of(symbols()), option::of(symbols()));
    (names, limits, lists, option::of(fields())).prop_map(|(names, limits, lists, properties)| Open {
        container_id: names.0,
        hostname: names.1,
        max_frame_size: limits.0,
        channel_max: limits.1,
        idle_time_out: limits.2,
        outgoing_locales: lists.0,
        incoming_locales: lists.1,
        offered_capabilities: lists.2,
        desired_capabilities: lists.3,
        properties,
    })
}

fn begin() -> impl Strategy<Value = Begin> {
    let windows = (option::of(any::<u16>()), uint(), uint(), uint(), option::of(uint()));
    (windows, option::of(symbols()), option::of(symbols()), option::of(fields())).prop_map(
        |(windows, offered_capabilities, desired_capabilities, properties)| Begin {
            remote_channel: windows.0,
            next_outgoing_id: windows.1,
            incoming_window: windows.2,
            outgoing_window: windows.3,
            handle_max: windows.4,
            offered_capabilities,
            desired_capabilities,
            properties,
        },
    )
}

fn source() -> impl Strategy<Value = Source> {
    let node =
        (option::of(text()), option::of(0u32..3), option::of(symbol()), option::of(uint()), any::<bool>());
    let more = (option::of(fields()), option::of(symbol()), option::of(fields()), option::of(symbols()));
    (node, more, option::of(symbols())).prop_map(|(node, more, capabilities)| Source {
        address: node.0,
        durable: node.1,
        expiry_policy: node.2,
        timeout: node.3,
        dynamic: node.4,
        dynamic_node_properties: more.0,
        distribution_mode: more.1,
        filter: more.2,
        default_outcome: None,
        outcomes: more.3,
        capabilities,
    })
}

fn target() -> impl Strategy<Value = TargetNode> {
    let node =
        (option::of(text()), option::of(0u32..3), option::of(symbol()), option::of(uint()), any::<bool>());
    let target =
        (node, option::of(fields()), option::of(symbols())).prop_map(|(node, properties, capabilities)| {
            TargetNode::Node(Target {
                address: node.0,
                durable: node.1,
                expiry_policy: node.2,
                timeout: node.3,
                dynamic: node.4,
                dynamic_node_properties: properties,
                capabilities,
            })
        });
    let coordinator =
        option::of(symbols()).prop_map(|capabilities| TargetNode::Coordinator(Coordinator { capabilities }));
    prop_oneof![3 => target, 1 => coordinator]
}

fn attach() -> impl Strategy<Value = Attach> {
    let link = (text(), uint(), role(), option::of(sender_mode()), option::of(receiver_mode()));
    let ends = (option::of(source()), option::of(target()), any::<bool>());
    let limits = (option::of(uint()), option::of(any::<u64>()));
    let extras = (option::of(symbols()), option::of(symbols()), option::of(fields()));
    (link, ends, limits, extras).prop_map(|(link, ends, limits, extras)| Attach {
        snd_settle_mode: link.3,
        rcv_settle_mode: link.4,
        source: ends.0,
        target: ends.1,
        unsettled: None,
        incomplete_unsettled: ends.2,
        initial_delivery_count: limits.0,
        max_message_size: limits.1,
        offered_capabilities: extras.0,
        desired_capabilities: extras.1,
        properties: extras.2,
        ..Attach::new(link.0, link.1, link.2)
    })
}

pub(crate) fn flow() -> impl Strategy<Value = Flow> {
    let link = (uint(), option::of(uint()), option::of(uint()), option::of(uint()), any::<bool>()).prop_map(
        |(handle, delivery_count, link_credit, available, drain)| LinkFlow {
            handle,
            delivery_count,
            link_credit,
            available,
            drain,
        },
    );
    let session = (option::of(uint()), uint(), uint(), uint(), any::<bool>());
    (session, option::of(link), option::weighted(0.2, fields())).prop_map(|(session, link, properties)| {
        Flow {
            next_incoming_id: session.0,
            incoming_window: session.1,
            next_outgoing_id: session.2,
            outgoing_window: session.3,
            link,
            echo: session.4,
            properties,
        }
    })
}

pub(crate) fn transfer() -> BoxedStrategy<Transfer> {
    let tag = vec(any::<u8>(), 0..33).prop_map(|tag| DeliveryTag::new(&tag).unwrap());
    let delivery = (uint(), option::of(uint()), option::of(tag), option::of(any::<bool>()));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let rare = (option::weighted(0.2, receiver_mode()), option::weighted(0.3, state()));
    (delivery, uint(), flags, rare)
        .prop_map(|(delivery, format, flags, rare)| Transfer {
            handle: delivery.0,
            delivery_id: delivery.1,
            delivery_tag: delivery.2,
            message_format: Some(format),
            settled: delivery.3,
            more: flags.0,
            rcv_settle_mode: rare.0,
            state: rare.1,
            resume: flags.1,
            aborted: flags.2,
            batchable: flags.3,
        })
        .boxed()
}

fn disposition() -> impl Strategy<Value = Disposition> {
    (role(), uint(), option::of(uint()), any::<bool>(), option::of(state()), any::<bool>()).prop_map(
        |(role, first, last, settled, state, batchable)| Disposition {
            role,
            first,
            last,
            settled,
            state,
            batchable,
        },
    )
}

/// Any AMQP frame body but a heartbeat.
pub(crate) fn frame_body() -> BoxedStrategy<FrameBody> {
    prop_oneof![
        open().prop_map(|open| FrameBody::Open(Box::new(open))),
        begin().prop_map(|begin| FrameBody::Begin(Box::new(begin))),
        attach().prop_map(|attach| FrameBody::Attach(Box::new(attach))),
        flow().prop_map(FrameBody::Flow),
        (transfer(), binary()).prop_map(|(transfer, payload)| FrameBody::Transfer(transfer, payload)),
        disposition().prop_map(FrameBody::Disposition),
        (uint(), any::<bool>(), boxed_error())
            .prop_map(|(handle, closed, error)| FrameBody::Detach(Detach { handle, closed, error })),
        boxed_error().prop_map(|error| FrameBody::End(End { error })),
        boxed_error().prop_map(|error| FrameBody::Close(Close { error })),
    ]
    .boxed()
}

pub(crate) fn sasl_frame() -> BoxedStrategy<SaslFrame> {
    let code = prop_oneof![
        Just(SaslCode::Ok),
        Just(SaslCode::Auth),
        Just(SaslCode::Sys),
        Just(SaslCode::SysPerm),
        Just(SaslCode::SysTemp)
    ];
    prop_oneof![
        symbols().prop_map(|sasl_server_mechanisms| SaslFrame::Mechanisms(SaslMechanisms {
            sasl_server_mechanisms
        })),
        (symbol(), option::of(binary()), option::of(text())).prop_map(
            |(mechanism, initial_response, hostname)| {
                SaslFrame::Init(SaslInit { mechanism, initial_response, hostname })
            }
        ),
        binary().prop_map(|challenge| SaslFrame::Challenge(SaslChallenge { challenge })),
        binary().prop_map(|response| SaslFrame::Response(SaslResponse { response })),
        (code, option::of(binary()))
            .prop_map(|(code, additional_data)| SaslFrame::Outcome(SaslOutcome { code, additional_data })),
    ]
    .boxed()
}

fn message_id() -> impl Strategy<Value = MessageId> {
    prop_oneof![
        any::<u64>().prop_map(MessageId::Ulong),
        uuid().prop_map(MessageId::Uuid),
        binary().prop_map(MessageId::Binary),
        text().prop_map(MessageId::String),
    ]
}

pub(crate) fn header() -> impl Strategy<Value = Header> {
    (
        option::of(any::<bool>()),
        option::of(any::<u8>()),
        option::of(uint()),
        option::of(any::<bool>()),
        uint(),
    )
        .prop_map(|(durable, priority, ttl, first_acquirer, delivery_count)| Header {
            durable,
            priority,
            ttl,
            first_acquirer,
            delivery_count,
        })
}

pub(crate) fn properties() -> impl Strategy<Value = Properties> {
    let time = || option::of(any::<i64>().prop_map(Timestamp));
    let names = (option::of(text()), option::of(text()), option::of(text()), option::of(binary()));
    let ids = (option::of(message_id()), option::of(message_id()));
    let content = (option::of(symbol()), option::of(symbol()), time(), time());
    let group = (option::of(text()), option::of(uint()), option::of(text()));
    (names, ids, content, group).prop_map(|(names, ids, content, group)| Properties {
        message_id: ids.0,
        user_id: names.3,
        to: names.0,
        subject: names.1,
        reply_to: names.2,
        correlation_id: ids.1,
        content_type: content.0,
        content_encoding: content.1,
        absolute_expiry_time: content.2,
        creation_time: content.3,
        group_id: group.0,
        group_sequence: group.1,
        reply_to_group_id: group.2,
    })
}
