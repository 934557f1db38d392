use std::sync::Arc;

use vorrang_amqp::descriptor;
use vorrang_amqp::message::{put_data, put_header, put_map_section, put_properties};
use vorrang_engine::{Location, MailboxId, Sequence, Span};

use super::*;

/// A stored message that was received somewhere and sent on: old annotations of ours are still on it.
fn stored() -> Message {
    let mut bytes = Vec::new();
    put_header(&mut bytes, &Header { priority: Some(7), ttl: Some(1), ..Header::default() });
    put_map_section(&mut bytes, descriptor::MESSAGE_ANNOTATIONS, |map| {
        map.symbol(annotation::SEQUENCE, &99_i64);
        map.symbol(annotation::PARTITION_KEY, &Text::from("key"));
    });
    let properties = Properties {
        message_id: Some(MessageId::Uuid(Uuid::from_bytes([9; 16]))),
        subject: Some("old".into()),
        ..Properties::default()
    };
    put_properties(&mut bytes, &properties);
    put_map_section(&mut bytes, descriptor::APPLICATION_PROPERTIES, |map| {
        map.entry(&Text::from("kept"), &Value::Float(0.5));
        map.entry(&Text::from("changed"), &Value::Int(1));
        map.entry(&Text::from("removed"), &Value::Int(2));
    });
    put_data(&mut bytes, b"one");
    put_data(&mut bytes, b"two");
    put_map_section(&mut bytes, descriptor::FOOTER, |map| map.symbol("checksum", &1_i64));
    Message::parse(Bytes::from(bytes)).unwrap()
}

pub(in crate::front::message) fn delivery() -> Delivery {
    Delivery {
        mailbox: MailboxId(0),
        sequence: Sequence(5),
        first_sequence: None,
        location: Location(0),
        size: 0,
        level: Level(7),
        state: MessageState::Active,
        deliveries: 2,
        enqueued: Timestamp(1_000),
        time_to_live: Span::FOREVER,
        expires: Timestamp::NEVER,
        scheduled_for: None,
        token: Some(LockToken(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff)),
        locked_until: Some(Timestamp(61_000)),
        session: None,
        dead_letter_source: None,
        overlay: None,
    }
}

fn written(delivery: &Delivery, purpose: Purpose<'_>) -> Message {
    let mut head = Sheet::default();
    let stored = stored();
    let tail = write(delivery, &stored, None, purpose, &mut head);
    head.put(tail);
    Message::parse(head.into_bytes()).unwrap()
}

#[test]
fn a_delivery_carries_what_the_broker_knows_and_what_the_sender_wrote() {
    let message = written(&delivery(), Purpose::Deliver);
    let header = message.header().unwrap().unwrap();
    assert_eq!((header.priority, header.ttl, header.delivery_count), (Some(7), None, 2));
    let annotations = message.message_annotations().unwrap();
    assert_eq!(annotations.value(annotation::SEQUENCE), Some(Value::Long(5)));
    assert_eq!(annotations.value(annotation::ENQUEUED_TIME), Some(Value::Timestamp(AmqpTimestamp(1_000))));
    assert_eq!(annotations.value(annotation::LOCKED_UNTIL), Some(Value::Timestamp(AmqpTimestamp(61_000))));
    assert_eq!(annotations.value(annotation::PARTITION_KEY), Some(Value::from("key")));
    assert_eq!(annotations.value(annotation::MESSAGE_STATE), None);
    assert_eq!(annotations.len(), 4);
    let token = message.delivery_annotations().unwrap().value(annotation::LOCK_TOKEN).unwrap();
    assert_eq!(token.as_uuid().unwrap().to_string(), "00112233-4455-6677-8899-aabbccddeeff");
    let (sent, original) = (message.encoded(), stored());
    let bare = original.encoded().slice(original.layout().bare_start()..);
    assert!(sent.ends_with(&bare), "the bare message and the footer are untouched");
}

#[test]
fn an_answer_to_a_peek_says_the_state_and_has_no_lock() {
    let peeked = Delivery { token: None, locked_until: None, state: MessageState::Scheduled, ..delivery() };
    let message = written(&peeked, Purpose::Show);
    let annotations = message.message_annotations().unwrap();
    assert_eq!(annotations.value(annotation::MESSAGE_STATE), Some(Value::Int(2)));
    assert_eq!(annotations.value(annotation::LOCKED_UNTIL), None);
    assert!(message.delivery_annotations().unwrap().is_empty());
}

#[test]
fn a_granted_lifetime_is_written_in_both_places() {
    let mortal = Delivery { time_to_live: Span(5_000), expires: Timestamp(6_000), ..delivery() };
    let message = written(&mortal, Purpose::Deliver);
    assert_eq!(message.header().unwrap().unwrap().ttl, Some(5_000));
    let properties = message.properties().unwrap().unwrap();
    assert_eq!(properties.absolute_expiry_time, Some(AmqpTimestamp(6_000)));
    assert_eq!(properties.creation_time, Some(AmqpTimestamp(1_000)));
    assert_eq!(properties.message_id, Some(MessageId::Uuid(Uuid::from_bytes([9; 16]))));
    let long = Delivery { time_to_live: Span(u64::from(u32::MAX) + 1), ..mortal };
    assert_eq!(written(&long, Purpose::Deliver).header().unwrap().unwrap().ttl, Some(u32::MAX));
}

#[test]
fn changes_are_laid_over_the_properties_and_the_rest_keeps_its_encoding() {
    let mut overlay = Overlay::dead_letter(Some("poison"), None);
    overlay
        .properties
        .insert("changed".into(), PropertyChange::Set(PropertyValue::Typed(Property::Bool(true))));
    overlay.properties.insert("removed".into(), PropertyChange::Removed);
    overlay.system.insert(SystemProperty::Label, Some(Property::String("new".into())));
    let changed = Delivery {
        overlay: Some(Arc::new(overlay)),
        dead_letter_source: Some("queue1".into()),
        first_sequence: Some(Sequence(3)),
        ..delivery()
    };
    let message = written(&changed, Purpose::Deliver);
    let application = message.application_properties().unwrap();
    assert_eq!(application.value("kept"), Some(Value::Float(0.5)));
    assert_eq!(application.value("changed"), Some(Value::Boolean(true)));
    assert_eq!(application.value("removed"), None);
    assert_eq!(application.value(Overlay::REASON), Some(Value::from("poison")));
    assert_eq!(message.properties().unwrap().unwrap().subject, Some("new".into()));
    let annotations = message.message_annotations().unwrap();
    assert_eq!(annotations.value(annotation::DEAD_LETTER_SOURCE), Some(Value::from("queue1")));
    assert_eq!(annotations.value(annotation::ENQUEUE_SEQUENCE), Some(Value::Long(3)));
    assert_eq!(message.data().count(), 2);
}

#[test]
fn a_body_can_be_left_out() {
    for overlay in [None, Some(Arc::new(Overlay::dead_letter(Some("r"), None)))] {
        let mut out = Sheet::default();
        write_without_body(&Delivery { overlay, ..delivery() }, &stored(), None, &mut out);
        let message = Message::parse(out.into_bytes()).unwrap();
        assert_eq!(message.layout().body_kind, BodyKind::Absent);
        assert_eq!(message.application_properties().unwrap().value("kept"), Some(Value::Float(0.5)));
        assert!(message.footer().is_none());
    }
}

#[test]
fn a_message_that_came_without_an_id_leaves_with_the_assigned_one() {
    let mut bytes = Vec::new();
    put_data(&mut bytes, b"body");
    let bare = Message::parse(Bytes::from(bytes)).unwrap();
    let mut head = Sheet::default();
    let tail = write(&delivery(), &bare, Some(0xab), Purpose::Deliver, &mut head);
    head.put(tail);
    let message = Message::parse(head.into_bytes()).unwrap();
    let id = message.properties().unwrap().unwrap().message_id;
    assert_eq!(id, Some(MessageId::String("000000000000000000000000000000ab".into())));
    assert_eq!(message.data().count(), 1);
}

#[test]
fn a_level_that_the_header_does_not_say_is_written_into_it() {
    let cases =
        [("as the sender wrote it", 7, Some(7)), ("decided by a rule", 9, Some(9)), ("default", 4, Some(4))];
    for (case, level, told) in cases {
        let message = written(&Delivery { level: Level(level), ..delivery() }, Purpose::Deliver);
        assert_eq!(message.header().unwrap().unwrap().priority, told, "{case}");
    }
    let mut bytes = Vec::new();
    put_data(&mut bytes, b"one");
    let bare = Message::parse(Bytes::from(bytes)).unwrap();
    let mut head = Sheet::default();
    write(&Delivery { level: Level::NORMAL, ..delivery() }, &bare, None, Purpose::Deliver, &mut head);
    let message = Message::parse(head.into_bytes()).unwrap();
    assert_eq!(message.header().unwrap().unwrap().priority, None, "nobody said anything");
}

#[test]
fn only_a_link_over_several_entities_is_told_which_one_a_message_is_from() {
    let message = written(&delivery(), Purpose::DeliverFrom("orders/urgent"));
    let annotations = message.message_annotations().unwrap();
    assert_eq!(annotations.value(annotation::SOURCE), Some(Value::from("orders/urgent")));
    let message = written(&delivery(), Purpose::Deliver);
    assert_eq!(message.message_annotations().unwrap().value(annotation::SOURCE), None);
}
