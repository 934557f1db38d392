//! Answers of the broker become responses, with the types that SDKs check.

use smallvec::smallvec;
use vorrang_amqp::Uuid;
use vorrang_amqp::value::Timestamp as AmqpTimestamp;
use vorrang_broker::api::{Answer, Received, Refused};
use vorrang_engine::browse::Peeked;
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{Refusal, Reply};

use super::*;
use crate::front::Answered;
use crate::front::condition::name;
use crate::front::management::plan::Reading;

fn no_bodies(_: &Delivery) -> Result<Body, String> {
    Err("nothing is stored".to_owned())
}

fn react(reading: Reading, answered: Answered) -> Reaction {
    reading.react(answered, &no_bodies)
}

fn reply(reading: Reading, reply: Reply) -> (i32, Option<String>, Map) {
    read_reaction(&react(reading, Answered::Reply(reply)))
}

#[test]
fn expirations_are_an_array_of_timestamps() {
    let (status, _, body) =
        reply(Reading::Expirations, Reply::Renewed { until: vec![Timestamp(5), Timestamp(6)] });
    let Some(Value::Array(array)) = body.value("expirations") else { panic!("{body:?}") };
    assert_eq!((status, array.count()), (200, 2));
    assert_eq!(array.encoded_body().first(), Some(&0x83), "the constructor of a timestamp");
    let times: Vec<Value> = array.iter().collect();
    assert_eq!(times, [Value::Timestamp(AmqpTimestamp(5)), Value::Timestamp(AmqpTimestamp(6))]);
}

#[test]
fn sequence_numbers_are_an_array_of_eight_byte_longs() {
    let sequences = smallvec![Sequence(1), Sequence(u64::MAX)];
    let (status, _, body) = reply(Reading::Numbers, Reply::Sent { sequences });
    let Some(Value::Array(array)) = body.value("sequence-numbers") else { panic!("{body:?}") };
    assert_eq!(array.encoded_body().first(), Some(&0x81), "the constructor of a long");
    let numbers: Vec<Value> = array.iter().collect();
    assert_eq!((status, numbers), (200, vec![Value::Long(1), Value::Long(i64::MAX)]));
}

#[test]
fn a_session_lock_ends_at_one_timestamp() {
    let (status, _, body) = reply(Reading::Expiration, Reply::SessionRenewed { until: Timestamp(5) });
    assert_eq!((status, body.value("expiration")), (200, Some(Value::Timestamp(AmqpTimestamp(5)))));
}

#[test]
fn operations_without_a_result_have_an_empty_map() {
    for reading in
        [Reading::Nothing, Reading::Settled { session_gone: true }, Reading::RuleRemoved { rule: "r".into() }]
    {
        assert_eq!(reply(reading, Reply::Done), (200, None, Map::EMPTY));
    }
}

#[test]
fn deleted_messages_are_counted() {
    let (status, _, body) = reply(Reading::Deleted, Reply::Deleted { count: 3, next: None });
    assert_eq!((status, body.value("message-count")), (200, Some(Value::Int(3))));
    assert_eq!(reply(Reading::Deleted, Reply::Deleted { count: 0, next: None }), (204, None, Map::EMPTY));
}

#[test]
fn a_session_without_state_has_the_key_with_null() {
    let cases =
        [(None, Value::Null), (Some(Bytes::from_static(b"s")), Value::Binary(Bytes::from_static(b"s")))];
    for (state, expected) in cases {
        let (status, _, body) =
            read_reaction(&react(Reading::State, Answered::Answer(Answer::SessionState(state))));
        assert_eq!((status, body.value("session-state")), (200, Some(expected)));
    }
}

#[test]
fn a_page_of_sessions_says_where_the_next_begins() {
    let list = |names: &[&str], skip: u32| {
        let names = names.iter().map(|name| SessionId::from(*name)).collect();
        read_reaction(&react(Reading::Sessions { skip }, Answered::Answer(Answer::Sessions(names))))
    };
    let (status, _, body) = list(&["", "a", "ü"], 4);
    assert_eq!((status, body.value("skip")), (200, Some(Value::Int(7))));
    let Some(Value::Array(names)) = body.value("sessions-ids") else { panic!("{body:?}") };
    let names: Vec<Value> = names.iter().collect();
    assert_eq!(names, [Value::from(""), Value::from("a"), Value::from("ü")]);
    assert_eq!(list(&[], 4), (204, None, Map::EMPTY));
    let (_, _, body) = list(&["a"], u32::MAX);
    assert_eq!(body.value("skip"), Some(Value::Int(i32::MAX)));
}

/// The encoded messages of a response.
fn messages(body: &Map) -> Vec<(Map, Message)> {
    let Some(Value::List(list)) = body.value("messages") else { panic!("messages are a list: {body:?}") };
    list.iter()
        .map(|entry| {
            let entry = entry.as_map().unwrap().clone();
            let Some(Value::Binary(message)) = entry.value("message") else {
                panic!("a message is a binary")
            };
            (entry, Message::parse(message).unwrap())
        })
        .collect()
}

fn peek(
    deliveries: Vec<Delivery>,
    omit_body: bool,
    bytes_max: u64,
    stored: &Bytes,
) -> (i32, Option<String>, Map) {
    let answered = Answered::Answer(Answer::Peeked(Peeked { messages: deliveries, next: None }));
    let bodies = |delivery: &Delivery| match delivery.size {
        0 => Err("gone".to_owned()),
        _ => Ok(body(stored.clone())),
    };
    read_reaction(&Reading::Peeked { omit_body, bytes_max }.react(answered, &bodies))
}

#[test]
fn peeked_messages_tell_their_state() {
    let states = [MessageState::Active, MessageState::Deferred, MessageState::Scheduled];
    let deliveries =
        states.into_iter().zip(1..).map(|(state, number)| delivery(number, state, None)).collect();
    let (status, _, body) = peek(deliveries, false, u64::MAX, &stored(b"body"));
    assert_eq!(status, 200);
    for (place, (entry, message)) in messages(&body).into_iter().enumerate() {
        let number = i32::try_from(place).unwrap();
        let annotations = message.message_annotations().unwrap();
        assert_eq!(annotations.value("x-opt-message-state"), Some(Value::Int(number)));
        assert_eq!(annotations.value("x-opt-sequence-number"), Some(Value::Long(i64::from(number) + 1)));
        assert!(!annotations.contains("x-opt-locked-until") && !entry.contains("lock-token"));
        assert!(message.header().unwrap().is_some(), "some clients look into the header without asking");
        assert_eq!(message.data().collect::<Vec<_>>(), [Bytes::from_static(b"body")]);
    }
}

#[test]
fn bodies_are_left_out_on_request() {
    let (_, _, body) = peek(vec![delivery(1, MessageState::Active, None)], true, u64::MAX, &stored(b"body"));
    let (_, message) = messages(&body).remove(0);
    assert_eq!(message.data().count(), 0);
    assert!(message.properties().unwrap().unwrap().message_id.is_some());
}

#[test]
fn a_peek_stops_before_it_is_too_large_but_returns_one() {
    let three = || (1..=3).map(|number| delivery(number, MessageState::Active, None)).collect::<Vec<_>>();
    let (_, _, body) = peek(three(), false, u64::MAX, &stored(b"body"));
    let size = messages(&body).first().unwrap().1.encoded().len();
    let size = u64::try_from(size).unwrap();
    for (bytes_max, expected) in [(0, 1), (size, 1), (2 * size - 1, 1), (2 * size, 2), (3 * size, 3)] {
        let (_, _, body) = peek(three(), false, bytes_max, &stored(b"body"));
        assert_eq!(messages(&body).len(), expected, "{bytes_max} of {size} each");
    }
}

#[test]
fn messages_that_are_gone_are_passed_over() {
    let gone = Delivery { size: 0, ..delivery(1, MessageState::Active, None) };
    let (_, _, body) =
        peek(vec![gone.clone(), delivery(2, MessageState::Active, None)], false, u64::MAX, &stored(b"x"));
    assert_eq!(messages(&body).len(), 1);
    assert_eq!(peek(vec![gone], false, u64::MAX, &stored(b"x")), (204, None, Map::EMPTY));
    assert_eq!(peek(vec![], false, u64::MAX, &stored(b"x")), (204, None, Map::EMPTY));
}

fn receive(deliveries: Vec<Delivery>, mode: ReceiveMode) -> Reaction {
    let bodies = |_: &Delivery| Ok(body(stored(b"body")));
    Reading::Received { mode }.react(received(deliveries, None), &bodies)
}

fn received(deliveries: Vec<Delivery>, body: Option<&Body>) -> Answered {
    let received = |delivery| Received { delivery, body: body.cloned() };
    Answered::Answer(Answer::Received(deliveries.into_iter().map(received).collect()))
}

#[test]
fn deferred_messages_bring_their_lock_token_twice() {
    let token = LockToken(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    let uuid = Value::Uuid(Uuid::from_bytes(token.0.to_be_bytes()));
    let reaction = receive(vec![delivery(1, MessageState::Deferred, Some(token))], ReceiveMode::PeekLock);
    let (status, _, body) = read_reaction(&reaction);
    let (entry, message) = messages(&body).remove(0);
    assert_eq!((status, entry.value("lock-token")), (200, Some(uuid.clone())));
    assert_eq!(message.delivery_annotations().unwrap().value("x-opt-lock-token"), Some(uuid));
    let annotations = message.message_annotations().unwrap();
    assert_eq!(annotations.value("x-opt-locked-until"), Some(Value::Timestamp(AmqpTimestamp(900))));
    assert_eq!(annotations.value("x-opt-message-state"), Some(Value::Int(1)));
    assert!(reaction.give_back.is_empty());
}

#[test]
fn removed_messages_have_no_lock_token() {
    let reaction = receive(vec![delivery(1, MessageState::Deferred, None)], ReceiveMode::ReceiveAndDelete);
    let (status, _, body) = read_reaction(&reaction);
    let (entry, _) = messages(&body).remove(0);
    assert_eq!((status, entry.contains("lock-token")), (200, false));
}

#[test]
fn removed_messages_are_not_looked_for_on_the_disk_again() {
    let deliveries = vec![delivery(1, MessageState::Deferred, None)];
    let answered = received(deliveries, Some(&body(stored(b"brought along"))));
    let reaction = Reading::Received { mode: ReceiveMode::ReceiveAndDelete }.react(answered, &no_bodies);
    let (status, _, body) = read_reaction(&reaction);
    let (_, message) = messages(&body).remove(0);
    assert_eq!(status, 200);
    assert_eq!(message.data().collect::<Vec<_>>(), [Bytes::from_static(b"brought along")]);
}

#[test]
fn locks_on_messages_that_cannot_be_sent_are_given_back() {
    let tokens = [LockToken(1), LockToken(2)];
    let locked = |size: u32| -> Vec<Delivery> {
        let deliveries = tokens.iter().zip(1..);
        deliveries
            .map(|(token, number)| delivery(number, MessageState::Deferred, Some(*token)))
            .map(|delivery| Delivery { size, ..delivery })
            .collect()
    };
    let reaction = receive(locked(40 * 1024 * 1024), ReceiveMode::PeekLock);
    assert_eq!(read_reaction(&reaction).1.as_deref(), Some(name::ARGUMENT_OUT_OF_RANGE));
    assert_eq!(reaction.give_back, tokens);

    let answered = received(locked(1), None);
    let reaction = Reading::Received { mode: ReceiveMode::PeekLock }.react(answered, &no_bodies);
    let (status, condition, _) = read_reaction(&reaction);
    assert_eq!((status, condition.as_deref()), (500, Some(name::INTERNAL_ERROR)));
    assert_eq!(reaction.give_back, tokens);
}

#[test]
fn refusals_become_statuses_and_conditions() {
    let session = || SessionId::from("s");
    let cases = [
        (Refusal::LockLost { token: LockToken(1) }, 410, "com.microsoft:message-lock-lost"),
        (Refusal::SessionLockLost { session: session() }, 410, "com.microsoft:session-lock-lost"),
        (Refusal::MessageNotFound { sequence: Sequence(1) }, 404, "com.microsoft:message-not-found"),
        (Refusal::RenewInSession, 400, "amqp:not-allowed"),
        (Refusal::NoSessions { entity: EntityId(1) }, 400, "amqp:not-allowed"),
        (Refusal::MessageTooLarge { size: 2, limit: 1 }, 403, "amqp:link:message-size-exceeded"),
        (Refusal::SendDisabled { entity: EntityId(1) }, 400, "com.microsoft:entity-disabled"),
        (Refusal::EntityNotFound { entity: EntityId(1) }, 404, "amqp:not-found"),
        (Refusal::TransactionUnknown { transaction: TransactionId(1) }, 404, "amqp:transaction:unknown-id"),
    ];
    for (refusal, status, condition) in cases {
        let told = Reading::Nothing.refused(&Refused::Impossible(refusal), "orders");
        assert_eq!((told.status, told.condition), (status, condition));
        let (told_status, told_condition, body) = read_back(&told.into());
        assert_eq!((told_status, told_condition.as_deref(), body), (status, Some(condition), Map::EMPTY));
    }
}

#[test]
fn a_lost_lock_in_a_session_that_is_not_held_is_a_lost_session() {
    let refused = Refused::Impossible(Refusal::LockLost { token: LockToken(1) });
    for (session_gone, condition) in [(true, name::SESSION_LOCK_LOST), (false, name::MESSAGE_LOCK_LOST)] {
        let told = Reading::Settled { session_gone }.refused(&refused, "orders");
        assert_eq!((told.status, told.condition), (410, condition));
    }
}

#[test]
fn an_answer_to_another_question_is_our_own_error() {
    let (status, condition, _) = reply(Reading::Expirations, Reply::Done);
    assert_eq!((status, condition.as_deref()), (500, Some(name::INTERNAL_ERROR)));
}
