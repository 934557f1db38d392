//! Requests become operations of the broker, or are refused with the right words.

use vorrang_amqp::value::{Array, List, Timestamp as AmqpTimestamp};
use vorrang_amqp::{Symbol, Uuid};
use vorrang_broker::api::{Acceptance, Operation, Question};
use vorrang_engine::command::{ReceiveMode, Selection, Settlement};
use vorrang_engine::message::Overlay;

use super::*;
use crate::front::condition::name;
use crate::front::management::plan::Reading;

fn tokens(count: u8) -> Value {
    Value::Array(Array::of((1..=count).map(|number| Uuid::from_bytes([number; 16]))))
}

fn token(number: u8) -> LockToken {
    LockToken(u128::from_be_bytes([number; 16]))
}

fn numbers(numbers: &[i64]) -> Value {
    Value::Array(Array::of(numbers.iter().copied()))
}

fn refused(outcome: Result<Plan, Told>) -> (i32, &'static str) {
    outcome.map(drop).map_err(|told| (told.status, told.condition)).unwrap_err()
}

#[test]
fn renew_lock_takes_many_tokens() {
    let plan = ask(&queue(), "renew-lock", map([("lock-tokens", tokens(2))])).unwrap();
    let Operation::Renew { mailbox, tokens } = plan.operation else { panic!("{:?}", plan.operation) };
    assert_eq!((mailbox, tokens.as_slice()), (queue().mailbox, [token(1), token(2)].as_slice()));
    assert_eq!(plan.reading, Reading::Expirations);
}

#[test]
fn peek_message_begins_where_it_is_told_or_at_the_lowest() {
    let cases =
        [(Value::Long(-5), 0), (Value::Int(0), 0), (Value::Long(7), 7), (Value::Ulong(u64::MAX), u64::MAX)];
    for (from, expected) in cases {
        let arguments = map([
            ("from-sequence-number", from),
            ("message-count", Value::Int(10)),
            ("session-id", Value::from("s")),
            ("omit-message-body", Value::Boolean(true)),
        ]);
        let plan = ask(&queue(), "peek-message", arguments).unwrap();
        let Operation::Ask(Question::Peek { from, max, session, .. }) = plan.operation else { panic!() };
        assert_eq!((from, max, session), (Sequence(expected), 10, Some("s".into())));
        assert_eq!(plan.reading, Reading::Peeked { omit_body: true, bytes_max: 262_144 });
    }
}

#[test]
fn a_peek_of_large_messages_is_bounded_by_a_response() {
    let managed = Managed { message_bytes_max: 100 * 1024 * 1024, ..queue() };
    let arguments = map([("from-sequence-number", Value::Int(1)), ("message-count", Value::Int(1))]);
    let plan = ask(&managed, "peek-message", arguments).unwrap();
    assert_eq!(plan.reading, Reading::Peeked { omit_body: false, bytes_max: 1024 * 1024 });
}

#[test]
fn schedule_message_sends_and_asks_for_the_numbers() {
    let entry = |body: &[u8]| -> Map {
        [("message-id", Value::from("m")), ("message", Value::Binary(stored(body)))].into_iter().collect()
    };
    let messages: List = [entry(b"one"), entry(b"two")].into_iter().collect();
    let transaction = Some(TransactionId(5));
    let arguments = map([("messages", Value::List(messages))]);
    let plan = ask_in(transaction, &queue(), "schedule-message", arguments).unwrap();
    let Operation::Send { entity, via, transaction, messages, acceptance } = plan.operation else { panic!() };
    assert_eq!((entity, via, transaction), (EntityId(3), None, Some(TransactionId(5))));
    assert_eq!(acceptance, Acceptance::Numbers);
    assert_eq!(
        messages.iter().map(|message| message.payload.clone()).collect::<Vec<_>>(),
        [stored(b"one"), stored(b"two")]
    );
    assert_eq!(plan.reading, Reading::Numbers);
}

#[test]
fn cancel_scheduled_message_takes_numbers() {
    let arguments = map([("sequence-numbers", numbers(&[4, 2]))]);
    let plan = ask(&queue(), "cancel-scheduled-message", arguments).unwrap();
    let Operation::Cancel { entity, sequences } = plan.operation else { panic!() };
    assert_eq!((entity, sequences), (EntityId(3), vec![Sequence(4), Sequence(2)]));
}

#[test]
fn nothing_is_scheduled_in_a_dead_letter_queue() {
    for (operation, arguments) in [
        ("schedule-message", map([("messages", Value::List(List::EMPTY))])),
        ("cancel-scheduled-message", map([("sequence-numbers", numbers(&[1]))])),
    ] {
        assert_eq!(refused(ask(&dead_letters(), operation, arguments)), (400, name::NOT_ALLOWED));
    }
}

#[test]
fn receive_by_sequence_number_has_two_modes_in_any_integer_type() {
    let cases = [
        (Value::Uint(0), ReceiveMode::ReceiveAndDelete),
        (Value::Ubyte(1), ReceiveMode::PeekLock),
        (Value::Long(1), ReceiveMode::PeekLock),
    ];
    for (value, expected) in cases {
        let arguments = map([
            ("sequence-numbers", numbers(&[4])),
            ("receiver-settle-mode", value),
            ("session-id", Value::from(HELD)),
        ]);
        let plan = ask(&queue(), "receive-by-sequence-number", arguments).unwrap();
        let Operation::ReceiveDeferred { sequences, mode, link, .. } = plan.operation else { panic!() };
        assert_eq!((sequences, mode, link), (vec![Sequence(4)], expected, Some(HOLDER)));
        assert_eq!(plan.reading, Reading::Received { mode: expected });
    }
}

#[test]
fn messages_that_are_removed_when_received_are_limited_to_what_a_response_holds() {
    let receive = |count: usize, mode: u32| {
        let arguments = map([
            ("sequence-numbers", numbers(&vec![1; count])),
            ("receiver-settle-mode", Value::Uint(mode)),
        ]);
        ask(&queue(), "receive-by-sequence-number", arguments).map(drop).map_err(|told| told.condition)
    };
    // 64 MiB of 256 KiB each.
    assert_eq!(receive(256, 0), Ok(()));
    assert_eq!(receive(257, 0), Err(name::ARGUMENT_OUT_OF_RANGE));
    assert_eq!(receive(257, 1), Ok(()));
}

#[test]
fn update_disposition_knows_every_status() {
    let overlay = |changes: Option<std::sync::Arc<Overlay>>| {
        changes.map(|overlay| overlay.properties.keys().map(ToString::to_string).collect::<Vec<_>>())
    };
    let settle = |status: &str| {
        let properties: Map = [(Symbol::from_static("color"), Value::from("red"))].into_iter().collect();
        let arguments = map([
            ("disposition-status", Value::from(status)),
            ("lock-tokens", tokens(2)),
            ("deadletter-reason", Value::from("why")),
            ("deadletter-description", Value::from("")),
            ("properties-to-modify", Value::Map(properties)),
        ]);
        let plan = ask_in(Some(TransactionId(8)), &queue(), "update-disposition", arguments).unwrap();
        let Operation::Settle { mailbox, tokens, settlement, transaction } = plan.operation else { panic!() };
        assert_eq!((mailbox, transaction), (queue().mailbox, Some(TransactionId(8))));
        assert_eq!(tokens.as_slice(), [token(1), token(2)]);
        assert_eq!(plan.reading, Reading::Settled { session_gone: false });
        settlement
    };
    let color = Some(vec!["color".to_owned()]);
    assert_eq!(settle("completed"), Settlement::Complete);
    for status in ["defered", "deferred"] {
        let Settlement::Defer { changes } = settle(status) else { panic!("{status}") };
        assert_eq!(overlay(changes), color);
    }
    let Settlement::Abandon { changes, delay: None } = settle("abandoned") else { panic!() };
    assert_eq!(overlay(changes), color);
    let Settlement::DeadLetter { reason, description, changes } = settle("suspended") else { panic!() };
    assert_eq!((reason.as_deref(), description.as_deref()), (Some("why"), Some("")), "empty stays empty");
    assert_eq!(overlay(changes), color);
}

#[test]
fn a_settlement_in_a_session_that_is_not_held_says_so_if_the_lock_is_lost() {
    for (session, session_gone) in [(HELD, false), ("lost", true)] {
        let arguments = map([
            ("disposition-status", Value::from("completed")),
            ("lock-tokens", tokens(1)),
            ("session-id", Value::from(session)),
        ]);
        let plan = ask(&queue(), "update-disposition", arguments).unwrap();
        assert_eq!(plan.reading, Reading::Settled { session_gone }, "{session}");
    }
}

#[test]
fn session_operations_go_through_the_holder() {
    let held =
        || map([("session-id", Value::from(HELD)), ("session-state", Value::Binary(b"s".as_slice().into()))]);
    let plan = ask(&queue(), "renew-session-lock", held()).unwrap();
    let Operation::RenewSession { session, link, .. } = plan.operation else { panic!() };
    assert_eq!((session.as_str(), link, plan.reading), (HELD, HOLDER, Reading::Expiration));

    let plan = ask(&queue(), "get-session-state", held()).unwrap();
    let Operation::Ask(Question::SessionState { session, link, .. }) = plan.operation else { panic!() };
    assert_eq!((session.as_str(), link, plan.reading), (HELD, HOLDER, Reading::State));

    let cases =
        [(Value::Binary(b"s".as_slice().into()), Some(Bytes::from_static(b"s"))), (Value::Null, None)];
    for (value, expected) in cases {
        let arguments = map([("session-id", Value::from(HELD)), ("session-state", value)]);
        let plan = ask(&queue(), "set-session-state", arguments).unwrap();
        let Operation::SetSessionState { session, link, state, .. } = plan.operation else { panic!() };
        assert_eq!((session.as_str(), link, state), (HELD, HOLDER, expected));
    }
}

#[test]
fn session_operations_without_the_lock_are_refused() {
    let cases = ["renew-session-lock", "get-session-state", "set-session-state"];
    for operation in cases {
        let arguments = map([("session-id", Value::from("other"))]);
        assert_eq!(
            refused(ask(&queue(), operation, arguments)),
            (410, name::SESSION_LOCK_LOST),
            "{operation}"
        );
        assert_eq!(refused(ask(&queue(), operation, Map::EMPTY)), (400, name::ARGUMENT_ERROR), "{operation}");
    }
    let arguments = map([
        ("sequence-numbers", numbers(&[1])),
        ("receiver-settle-mode", Value::Uint(1)),
        ("session-id", Value::from("")),
    ]);
    let outcome = ask(&queue(), "receive-by-sequence-number", arguments);
    assert_eq!(refused(outcome), (410, name::SESSION_LOCK_LOST), "an empty name is a name");
}

#[test]
fn get_message_sessions_has_a_time_that_means_any() {
    let any = 253_402_300_800_000;
    let cases = [
        (Value::Timestamp(AmqpTimestamp(any)), None),
        (Value::Timestamp(AmqpTimestamp(i64::MAX)), None),
        (Value::Null, None),
        (Value::Timestamp(AmqpTimestamp(any - 1)), Some(Timestamp(253_402_300_799_999))),
        (Value::Timestamp(AmqpTimestamp(5)), Some(Timestamp(5))),
    ];
    for (time, expected) in cases {
        let arguments = map([
            ("last-updated-time", time),
            ("skip", Value::Int(3)),
            ("top", Value::Int(100)),
            ("last-session-id", Value::from("")),
        ]);
        let plan = ask(&queue(), "get-message-sessions", arguments).unwrap();
        let Operation::Ask(Question::Sessions { updated_after, after, skip, top, .. }) = plan.operation
        else {
            panic!()
        };
        assert_eq!((updated_after, skip, top), (expected, 3, 100));
        assert_eq!(after, Some("".into()), "an empty name is a real cursor");
        assert_eq!(plan.reading, Reading::Sessions { skip: 3 });
    }
    let plan = ask(&queue(), "get-message-sessions", map([("top", Value::Int(i32::MAX))])).unwrap();
    let Operation::Ask(Question::Sessions { top, skip, after, .. }) = plan.operation else { panic!() };
    assert_eq!((top, skip, after), (1_000, 0, None), "a page is bounded");
}

#[test]
fn batch_delete_messages_defaults_to_now_and_everything() {
    let plan = ask(&queue(), "batch-delete-messages", map([("message-count", Value::Int(500))])).unwrap();
    let Operation::DeleteMessages { selection, before, max, .. } = plan.operation else { panic!() };
    assert!(matches!(selection, Selection::All));
    assert_eq!((before, max), (NOW, 500));

    let arguments = map([
        ("message-count", Value::Long(1)),
        ("enqueued-time-utc", Value::Timestamp(AmqpTimestamp(77))),
        ("session-id", Value::from("s")),
    ]);
    let plan = ask(&dead_letters(), "batch-delete-messages", arguments).unwrap();
    let Operation::DeleteMessages { mailbox, selection, before, .. } = plan.operation else { panic!() };
    assert!(matches!(selection, Selection::Session(session) if session.as_str() == "s"));
    assert_eq!((mailbox, before), (dead_letters().mailbox, Timestamp(77)));
}

#[test]
fn bad_arguments_are_told_as_such() {
    let error = (400, name::ARGUMENT_ERROR);
    let range = (400, name::ARGUMENT_OUT_OF_RANGE);
    let one = Value::Int(1);
    let message: List = [map([("message", Value::from("no binary"))])].into_iter().collect();
    let garbage: List =
        [map([("message", Value::Binary(b"\x01\x02".as_slice().into()))])].into_iter().collect();
    let cases = [
        ("renew-lock", Map::EMPTY, error),
        ("renew-lock", map([("lock-tokens", Value::Array(Array::of::<Uuid>([])))]), range),
        ("renew-lock", map([("lock-tokens", numbers(&[1]))]), error),
        ("peek-message", map([("message-count", one.clone())]), error),
        ("peek-message", map([("from-sequence-number", one.clone())]), error),
        (
            "peek-message",
            map([("from-sequence-number", one.clone()), ("message-count", Value::Int(0))]),
            range,
        ),
        ("schedule-message", Map::EMPTY, error),
        ("schedule-message", map([("messages", Value::List(List::EMPTY))]), range),
        ("schedule-message", map([("messages", Value::List(message))]), error),
        ("schedule-message", map([("messages", Value::List(garbage))]), (400, name::DECODE_ERROR)),
        ("cancel-scheduled-message", map([("sequence-numbers", numbers(&[-1]))]), error),
        ("receive-by-sequence-number", map([("sequence-numbers", numbers(&[1]))]), error),
        (
            "receive-by-sequence-number",
            map([("sequence-numbers", numbers(&[1])), ("receiver-settle-mode", Value::Uint(2))]),
            error,
        ),
        ("update-disposition", map([("lock-tokens", tokens(1))]), error),
        (
            "update-disposition",
            map([("lock-tokens", tokens(1)), ("disposition-status", Value::from("renewed"))]),
            error,
        ),
        (
            "update-disposition",
            map([
                ("lock-tokens", tokens(1)),
                ("disposition-status", Value::from("abandoned")),
                ("properties-to-modify", Value::from("no map")),
            ]),
            error,
        ),
        (
            "set-session-state",
            map([("session-id", Value::from(HELD)), ("session-state", Value::from("no binary"))]),
            error,
        ),
        ("get-message-sessions", map([("skip", Value::Int(-1))]), range),
        ("batch-delete-messages", map([("message-count", Value::Int(-1))]), range),
        ("batch-delete-messages", Map::EMPTY, error),
    ];
    for (operation, arguments, expected) in cases {
        let shown = format!("{operation} {arguments:?}");
        assert_eq!(refused(ask(&queue(), operation, arguments)), expected, "{shown}");
    }
}

#[test]
fn what_is_no_operation_is_not_implemented() {
    for operation in ["read", "", "peek-message "] {
        assert_eq!(refused(ask(&queue(), operation, Map::EMPTY)), (501, name::NOT_IMPLEMENTED));
    }
}
