//! Whatever a peer sends, a request is planned or refused, and never more.

use proptest::collection::vec;
use proptest::prelude::*;
use vorrang_amqp::value::{Array, List, Timestamp as AmqpTimestamp};
use vorrang_amqp::{Symbol, Text, Uuid};

use super::*;

const OPERATIONS: [&str; 14] = [
    "renew-lock",
    "update-disposition",
    "peek-message",
    "batch-delete-messages",
    "schedule-message",
    "cancel-scheduled-message",
    "receive-by-sequence-number",
    "renew-session-lock",
    "get-session-state",
    "set-session-state",
    "get-message-sessions",
    "add-rule",
    "remove-rule",
    "enumerate-rules",
];

/// Keys that some operation looks at, in some map.
const KEYS: [&str; 26] = [
    "lock-tokens",
    "disposition-status",
    "properties-to-modify",
    "deadletter-reason",
    "session-id",
    "from-sequence-number",
    "message-count",
    "omit-message-body",
    "enqueued-time-utc",
    "messages",
    "message",
    "sequence-numbers",
    "receiver-settle-mode",
    "session-state",
    "last-updated-time",
    "last-session-id",
    "skip",
    "top",
    "rule-name",
    "rule-description",
    "sql-filter",
    "correlation-filter",
    "sql-rule-action",
    "expression",
    "properties",
    "label",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<i32>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::Ulong),
        (-3_i64..3).prop_map(Value::Long),
        any::<f64>().prop_map(Value::Double),
        any::<i64>().prop_map(|at| Value::Timestamp(AmqpTimestamp(at))),
        any::<[u8; 16]>().prop_map(|bytes| Value::Uuid(Uuid::from_bytes(bytes))),
        any::<[u8; 16]>().prop_map(Value::Decimal128),
        vec(any::<u8>(), 0..40).prop_map(|bytes| Value::Binary(bytes.into())),
        "[a-z=' %(]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![HELD, "completed", "abandoned", "suspended", "a = 1", "SET a = 1"])
            .prop_map(Value::from),
        prop::sample::select(&KEYS[..]).prop_map(|key| Value::Symbol(Symbol::from_static(key))),
        Just(Value::Binary(stored(b"body"))),
    ]
}

fn key() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => prop::sample::select(&KEYS[..]).prop_map(|key| Value::String(Text::from_static(key))),
        1 => prop::sample::select(&KEYS[..]).prop_map(|key| Value::Symbol(Symbol::from_static(key))),
        1 => scalar(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let arrays = prop_oneof![
        vec(any::<i64>(), 0..4).prop_map(|numbers| Value::Array(Array::of(numbers))),
        vec(any::<[u8; 16]>(), 0..4)
            .prop_map(|uuids| Value::Array(Array::of(uuids.into_iter().map(Uuid::from_bytes)))),
    ];
    prop_oneof![scalar(), arrays].prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| Value::List(items.into_iter().collect::<List>())),
            vec((key(), inner.clone()), 0..6).prop_map(|entries| Value::Map(entries.into_iter().collect())),
            inner.prop_map(|inner| Value::described(1_u64, inner)),
        ]
    })
}

fn try_all(payload: Bytes) {
    let Ok(request) = Request::read(payload) else { return };
    for managed in [queue(), dead_letters(), subscription(), Managed { message_bytes_max: 0, ..queue() }] {
        let holder = |_: Option<&SessionId>| Some(HOLDER);
        let planned =
            plan(&request, &Context { managed: &managed, transaction: None, now: NOW, holder: &holder });
        if let Err(told) = planned {
            let response = Response::from(told);
            let (status, condition, _) = read_back(&response);
            assert!(status >= 400 && condition.is_some());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_arguments_are_planned_or_refused(
        operation in prop::sample::select(&OPERATIONS[..]),
        entries in vec((key(), value()), 0..8),
    ) {
        try_all(encoded_request(operation, &Value::Map(entries.into_iter().collect())));
    }

    #[test]
    fn any_change_to_a_request_is_planned_or_refused(
        operation in prop::sample::select(&OPERATIONS[..]),
        entries in vec((key(), value()), 0..8),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encoded_request(operation, &Value::Map(entries.into_iter().collect())).to_vec();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        try_all(bytes.into());
    }
}
