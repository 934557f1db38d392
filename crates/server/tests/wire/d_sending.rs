//! D: sending, one message or a batch to a delivery.

use bytes::Bytes;
use vorrang_amqp::message::{
    Message, MessageId, Properties, put_data, put_map_section, put_properties, put_value,
};
use vorrang_amqp::performative::{DeliveryState, MESSAGE_FORMAT_BATCH, Transfer};
use vorrang_amqp::value::{Array, List, Map, Timestamp, Value};
use vorrang_amqp::{FrameBody, Uuid, descriptor};
use vorrang_engine::Span;
use vorrang_engine::entity::Setting;

use crate::client::Client;
use crate::links::{Delivery, error_of};
use crate::message::{batch, large, message, now};
use crate::server::Server;

/// Sends a batch; returns its outcome.
fn post_batch(client: &mut Client, handle: u32, payload: Bytes) -> DeliveryState {
    let head = Transfer { message_format: Some(MESSAGE_FORMAT_BATCH), ..client.transfer_head(handle) };
    let id = head.delivery_id.unwrap();
    client.send(0, FrameBody::Transfer(head, payload));
    client.outcome(id)
}

#[test]
fn d1_an_unsettled_transfer_is_settled_by_the_broker() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let id = client.transfer(1, message("m"));
    let disposition = client.wait("disposition", |frame| match &frame.body {
        FrameBody::Disposition(disposition) => Some(disposition.clone()),
        _ => None,
    });
    assert_eq!(disposition.role, vorrang_amqp::performative::Role::Receiver);
    assert_eq!((disposition.first, disposition.last.unwrap_or(id), disposition.settled), (id, id, true));
    assert_eq!(disposition.state, Some(DeliveryState::ACCEPTED));
}

#[test]
fn d2_a_settled_transfer_is_stored_and_not_answered() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let head = Transfer { settled: Some(true), ..client.transfer_head(1) };
    client.send(0, FrameBody::Transfer(head, message("quiet").into()));
    // What cannot be stored is dropped as quietly.
    let head = Transfer { settled: Some(true), ..client.transfer_head(1) };
    client.send(0, FrameBody::Transfer(head, Bytes::from_static(b"\x00")));
    client.post(1, message("loud"));
    assert_eq!(client.left(|body| matches!(body, FrameBody::Disposition(_))), 1);
    let bodies: Vec<String> = client.peek_all(&queue).iter().map(crate::message::body).collect();
    assert_eq!(bodies, ["quiet", "loud"]);
}

#[test]
fn what_is_sent_on_two_links_at_once_is_answered_message_by_message() {
    let server = Server::shared();
    let (one, other) = (server.queue([]), server.queue([]));
    let mut client = Client::root(&server);
    client.sender(1, &one);
    client.sender(2, &other);
    let mut bytes = Vec::new();
    let (mut answered, mut quiet) = (Vec::new(), Vec::new());
    for number in 0..30 {
        let settled = number % 5 == 0;
        let head = client.transfer_head(if number % 7 < 4 { 1 } else { 2 });
        let id = head.delivery_id.unwrap();
        // One that cannot be read, in the middle of a run.
        let payload = if number == 17 { Bytes::from_static(b"\x00") } else { message("m").into() };
        let head = Transfer { settled: Some(settled), ..head };
        bytes.extend(client.encode(0, FrameBody::Transfer(head, payload)));
        if settled { quiet.push(id) } else { answered.push((id, number != 17)) }
    }
    client.write(&bytes);
    for (id, accepted) in answered {
        assert_eq!(client.outcome(id) == DeliveryState::ACCEPTED, accepted, "{id}");
    }
    client.post(1, message("last"));
    let told = client.left(|body| match body {
        FrameBody::Disposition(range) => {
            quiet.iter().any(|id| range.first <= *id && *id <= range.last.unwrap_or(range.first))
        }
        _ => false,
    });
    assert_eq!(told, 0, "who wants no answer gets none");
    assert_eq!((client.peek_all(&one).len(), client.peek_all(&other).len()), (18, 12));
}

#[test]
fn d3_a_batch_is_three_messages_and_one_disposition() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let messages = ["a", "b", "c"].map(|body| message(body).id(body));
    assert_eq!(post_batch(&mut client, 1, batch(&messages)), DeliveryState::ACCEPTED);
    assert_eq!(client.left(|body| matches!(body, FrameBody::Disposition(_))), 1);
    client.receiver(2, &queue);
    let deliveries = client.drained(2);
    let numbers: Vec<i64> = deliveries.iter().map(Delivery::sequence).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let bodies: Vec<String> = deliveries.iter().map(Delivery::body).collect();
    assert_eq!(bodies, ["a", "b", "c"]);
    assert_eq!(
        post_batch(&mut client, 1, Bytes::new()),
        DeliveryState::ACCEPTED,
        "an empty batch is nothing"
    );
}

#[test]
fn d4_a_batch_is_taken_as_a_whole_or_not_at_all() {
    let server = Server::shared();
    let mut client = Client::root(&server);
    let sessions = server.queue([Setting::RequiresSession(true)]);
    client.sender(1, &sessions);
    let lonely = [message("a").session("s"), message("without a session"), message("c").session("s")];
    let outcome = post_batch(&mut client, 1, batch(&lonely));
    assert_eq!(error_of(&outcome).condition, "amqp:not-allowed");
    assert_eq!(client.peek_all(&sessions).len(), 0);
    let small = server.queue([Setting::MaxMessageSizeInKilobytes(1)]);
    client.sender(2, &small);
    let heavy = [message("a"), large(1_200), message("c")];
    let outcome = post_batch(&mut client, 2, batch(&heavy));
    assert_eq!(error_of(&outcome).condition, "amqp:link:message-size-exceeded");
    let broken = [message("a").encode(), Bytes::from_static(b"\x00\x53")];
    let mut payload = Vec::new();
    for inner in &broken {
        put_data(&mut payload, inner);
    }
    let outcome = post_batch(&mut client, 2, payload.into());
    assert_eq!(error_of(&outcome).condition, "amqp:decode-error");
    assert_eq!(client.peek_all(&small).len(), 0);
}

#[test]
fn d5_a_message_beyond_the_limit_is_rejected_and_the_link_lives() {
    let server = Server::shared();
    let queue = server.queue([Setting::MaxMessageSizeInKilobytes(64)]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let overhead = large(1_000).encode().len() - 1_000;
    client.post(1, large(64 * 1024 - overhead));
    for beyond in [64 * 1024 - overhead + 1, 200 * 1024] {
        let payload = large(beyond).encode();
        let head = client.transfer_head(1);
        let last = payload.len().div_ceil(60_000) - 1;
        for (place, piece) in payload.chunks(60_000).enumerate() {
            let transfer = Transfer { more: place < last, ..head.clone() };
            client.send(0, FrameBody::Transfer(transfer, piece.to_vec().into()));
        }
        let outcome = client.outcome(head.delivery_id.unwrap());
        assert_eq!(error_of(&outcome).condition, "amqp:link:message-size-exceeded");
    }
    client.post(1, message("the link lives"));
    client.receiver(2, &queue);
    assert_eq!(client.drained(2).len(), 2);
}

#[test]
fn d6_a_session_queue_takes_no_message_without_a_session() {
    let server = Server::shared();
    let queue = server.queue([Setting::RequiresSession(true)]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let error = client.post_refused(1, message("m"));
    assert_eq!(error.condition, "amqp:not-allowed");
    assert!(error.description.unwrap().as_str().contains("The SessionId was not set on a message"));
    client.post(1, message("m").session(""));
}

#[test]
fn d7_a_full_queue_says_so() {
    let server = Server::shared();
    let queue = server.queue([Setting::MaxSizeInMegabytes(1)]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let heavy = large(200 * 1024).encode();
    let post = |client: &mut Client| {
        let head = client.transfer_head(1);
        for (place, piece) in heavy.chunks(60_000).enumerate() {
            let transfer = Transfer { more: place < 3, ..head.clone() };
            client.send(0, FrameBody::Transfer(transfer, piece.to_vec().into()));
        }
        client.outcome(head.delivery_id.unwrap())
    };
    let refused = (0..20).map(|_| post(&mut client)).find(|state| *state != DeliveryState::ACCEPTED);
    let error = error_of(refused.as_ref().expect("a megabyte does not hold four")).clone();
    assert_eq!(error.condition, "amqp:resource-limit-exceeded");
    assert!(
        error.description.unwrap().as_str().contains("The maximum entity size has been reached or exceeded")
    );
    // What is taken out makes room.
    client.receiver(2, &queue);
    for delivery in client.drained(2) {
        client.complete(&delivery);
    }
    assert_eq!(post(&mut client), DeliveryState::ACCEPTED);
}

/// Values of every type, nested and described.
fn every_type() -> Vec<Value> {
    let nested: Map = [(Value::from("in"), Value::from("side")), (Value::symbol("s"), Value::Int(-1))]
        .into_iter()
        .collect();
    vec![
        Value::Null,
        Value::Boolean(true),
        Value::Ubyte(1),
        Value::Ushort(2),
        Value::Uint(0),
        Value::Ulong(u64::MAX),
        Value::Byte(-1),
        Value::Short(-2),
        Value::Int(-3),
        Value::Long(i64::MIN),
        Value::Float(1.5),
        Value::Double(-0.0),
        Value::Decimal32([1, 2, 3, 4]),
        Value::Decimal64([1; 8]),
        Value::Decimal128([2; 16]),
        Value::Char('ß'),
        Value::Timestamp(Timestamp(-1)),
        Value::Uuid(Uuid::from_bytes([9; 16])),
        Value::Binary(Bytes::from_static(b"\x00\xff")),
        Value::from("text"),
        Value::symbol("symbol"),
        Value::described(Value::symbol("com.microsoft:timespan"), 10_000_i64),
        Value::Map(nested),
        Value::List(List::from_iter([Value::Int(1), Value::from("two")])),
        Value::Array(Array::of([1_i64, 2, 3])),
    ]
}

#[test]
fn d8_body_properties_and_footer_come_out_as_they_went_in() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.receiver(2, &queue);
    let bodies: Vec<Vec<u8>> = vec![
        Vec::new(),
        sections(|out| put_value(out, &Value::List(every_type().into_iter().collect()))),
        sections(|out| put_value(out, &Value::from("x".repeat(300)))),
        sections(|out| {
            put_data(out, b"one");
            put_data(out, b"");
            put_data(out, &[7; 300]);
        }),
        // Two sequence sections, one in each width of a list, and a value in a wasteful encoding.
        b"\x00\x53\x76\xc0\x03\x01\x54\x01\x00\x53\x76\xd0\x00\x00\x00\x09\x00\x00\x00\x01\x71\x00\x00\x00\x01".to_vec(),
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x77\x71\x00\x00\x00\x01".to_vec(),
    ];
    for body in bodies {
        let mut payload = Vec::new();
        put_properties(
            &mut payload,
            &Properties { message_id: Some(MessageId::Ulong(1)), ..Properties::default() },
        );
        let properties = payload.len();
        put_map_section(&mut payload, descriptor::APPLICATION_PROPERTIES, |map| {
            for (place, value) in every_type().iter().enumerate().filter(|(place, _)| *place < 22) {
                map.entry(&Value::from(place.to_string()), value);
            }
        });
        payload.extend_from_slice(&body);
        put_map_section(&mut payload, descriptor::FOOTER, |map| {
            map.symbol("check", &Value::Map(Map::from_iter([(Value::from("a"), Value::Double(0.1))])));
        });
        client.post(1, payload.clone());
        let delivery = client.receive(2);
        let bare = delivery.message.layout().application_properties.unwrap().start();
        assert_eq!(delivery.message.encoded()[bare..], payload[properties..]);
        client.complete(&delivery);
    }
}

fn sections(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

#[test]
fn d9_message_ids_keep_their_type() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.receiver(2, &queue);
    let ids = [
        MessageId::String("7".into()),
        MessageId::Ulong(7),
        MessageId::Uuid(Uuid::from_bytes([7; 16])),
        MessageId::Binary(Bytes::from_static(b"7")),
    ];
    for id in ids {
        let mut draft = message("m");
        draft.properties.message_id = Some(id.clone());
        draft.properties.correlation_id = Some(id.clone());
        client.post(1, draft);
        let properties = client.receive(2).message.properties().unwrap().unwrap();
        assert_eq!((properties.message_id, properties.correlation_id), (Some(id.clone()), Some(id)));
    }
}

#[test]
fn d10_annotations_of_the_broker_cannot_be_forged() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let before = now();
    let forged = message("m")
        .annotation("x-opt-sequence-number", 999_i64)
        .annotation("x-opt-enqueued-time", Timestamp(1))
        .annotation("x-opt-locked-until", Timestamp(1))
        .annotation("x-opt-enqueue-sequence-number", 999_i64)
        .annotation("x-opt-message-state", 2_i32)
        .annotation("x-opt-deadletter-source", "elsewhere")
        .annotation("x-opt-partition-key", "kept")
        .annotation("own", "kept");
    client.post(1, forged);
    client.receiver(2, &queue);
    let delivery = client.receive(2);
    assert_eq!(delivery.sequence(), 1);
    for time in ["x-opt-enqueued-time", "x-opt-locked-until"] {
        let at = delivery.annotation(time).unwrap().as_timestamp().unwrap();
        assert!(at.0 >= before - 1_000, "{time} is the broker's");
    }
    assert_ne!(delivery.annotation("x-opt-enqueue-sequence-number"), Some(Value::Long(999)));
    assert_ne!(delivery.annotation("x-opt-message-state"), Some(Value::Int(2)));
    assert_eq!(delivery.annotation("x-opt-deadletter-source"), None);
    for kept in ["x-opt-partition-key", "own"] {
        assert_eq!(delivery.annotation(kept), Some(Value::from("kept")));
    }
    let keys = delivery.message.message_annotations().unwrap();
    let doubled = keys.iter().filter(|(key, _)| key.as_str() == Some("x-opt-sequence-number")).count();
    assert_eq!(doubled, 1);
}

#[test]
fn d11_a_message_in_ten_frames_however_they_are_headed() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let payload = large(990).encode();
    let size = payload.len().div_ceil(10);
    for on_every_frame in [true, false] {
        let head = client.transfer_head(1);
        for (place, piece) in payload.chunks(size).enumerate() {
            let mut transfer = Transfer { more: place < 9, ..head.clone() };
            if place > 0 && !on_every_frame {
                transfer.delivery_id = None;
                transfer.delivery_tag = None;
                transfer.message_format = None;
                transfer.settled = None;
            }
            client.send(0, FrameBody::Transfer(transfer, piece.to_vec().into()));
        }
        assert_eq!(client.outcome(head.delivery_id.unwrap()), DeliveryState::ACCEPTED);
    }
    // One that is aborted half-way was never there.
    let head = client.transfer_head(1);
    for piece in payload.chunks(size).take(5) {
        let transfer = Transfer { more: true, ..head.clone() };
        client.send(0, FrameBody::Transfer(transfer, piece.to_vec().into()));
    }
    client.send(0, FrameBody::Transfer(Transfer { aborted: true, ..head }, Bytes::new()));
    client.post(1, message("behind it"));
    assert_eq!(client.peek_all(&queue).len(), 3);
}

#[test]
fn d12_a_scheduled_message_comes_at_its_time() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.receiver(2, &queue);
    let due = now() + 1_000;
    client.post(1, message("later").scheduled(due));
    client.post(1, message("now"));
    client.post(1, message("in the past").scheduled(1));
    client.credit(2, 10);
    assert_eq!(client.delivery(2).body(), "now");
    assert_eq!(client.delivery(2).body(), "in the past");
    let delivery = client.delivery(2);
    assert_eq!(delivery.body(), "later");
    assert!(now() >= due, "not before its time");
    let enqueued = delivery.annotation("x-opt-enqueued-time").unwrap().as_timestamp().unwrap().0;
    assert!(enqueued >= due, "{enqueued} {due}");
    assert_eq!(delivery.annotation("x-opt-scheduled-enqueue-time"), Some(Timestamp(due).into()));
    assert_eq!(delivery.sequence(), 4, "a new number at its time");
}

#[test]
fn d13_messages_live_as_long_as_they_say_and_the_entity_allows() {
    let server = Server::shared();
    let queue = server.queue([Setting::DefaultMessageTimeToLive(Span::seconds(60))]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    let dated = |lifetime: i64, ttl: u32| {
        let mut draft = message("dated").ttl(ttl);
        draft.properties.creation_time = Some(Timestamp(1_000));
        draft.properties.absolute_expiry_time = Some(Timestamp(1_000 + lifetime));
        draft
    };
    let lifetimes = [
        (message("its own").ttl(30_000), 30_000),
        (message("longer than allowed").ttl(3_600_000), 60_000),
        (message("none"), 60_000),
        (dated(20_000, 5_000), 20_000),
    ];
    client.receiver(2, &queue);
    for (draft, expected) in lifetimes {
        client.post(1, draft);
        let delivery = client.receive(2);
        assert_eq!(delivery.message.header().unwrap().unwrap().ttl, Some(expected), "{}", delivery.body());
        let enqueued = delivery.annotation("x-opt-enqueued-time").unwrap().as_timestamp().unwrap().0;
        let expiry = delivery.message.properties().unwrap().unwrap().absolute_expiry_time.unwrap().0;
        assert_eq!(expiry, enqueued + i64::from(expected));
        client.complete(&delivery);
    }
    client.post(1, message("short").ttl(1_000));
    client.post(1, message("at once").ttl(0));
    client.post(1, message("long"));
    while client.peek_all(&queue).len() > 1 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(client.receive(2).body(), "long");
}

#[test]
fn d14a_a_message_without_an_id_is_given_one() {
    let server = Server::shared();
    let queue = server.queue([]);
    let mut client = Client::root(&server);
    client.sender(1, &queue);
    client.post(1, message("alone"));
    let pair = [message("first of two"), message("second of two").session("s")];
    assert_eq!(post_batch(&mut client, 1, batch(&pair)), DeliveryState::ACCEPTED);
    client.receiver(2, &queue);
    let mut ids = Vec::new();
    for delivery in client.drained(2) {
        let Some(MessageId::String(id)) = delivery.message.properties().unwrap().unwrap().message_id else {
            panic!("an id of text")
        };
        assert!(id.len() == 32 && id.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        ids.push(id.as_str().to_owned());
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
    let again: Vec<Option<MessageId>> = client
        .peek_all(&queue)
        .iter()
        .map(|message: &Message| message.properties().unwrap().unwrap().message_id)
        .collect();
    let expected: Vec<_> = ids.iter().map(|id| Some(MessageId::String(id.as_str().into()))).collect();
    assert_eq!(again, expected, "the id stays the same");
}

#[test]
fn d14_duplicates_are_accepted_and_dropped_within_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [
        Setting::RequiresDuplicateDetection(true),
        Setting::DuplicateDetectionHistoryTimeWindow(Span::seconds(30)),
    ];
    let server = Server::start_in(folder.path());
    server.queue_named("q", settings);
    let mut client = Client::root(&server);
    client.sender(1, "q");
    for id in ["a", "b", "a"] {
        client.post(1, message(id).id(id));
    }
    client.post(1, message("null"));
    client.post(1, message("null"));
    let batched = [message("a").id("a"), message("c").id("c"), message("c").id("c")];
    assert_eq!(post_batch(&mut client, 1, batch(&batched)), DeliveryState::ACCEPTED);
    let expected = ["a", "b", "null", "null", "c"];
    let bodies = |client: &mut Client| -> Vec<String> {
        client.peek_all("q").iter().map(crate::message::body).collect()
    };
    assert_eq!(bodies(&mut client), expected);
    // A message that is gone is remembered all the same, also by the next run.
    client.receiver(2, "q");
    let delivery = client.receive(2);
    client.complete(&delivery);
    drop(client);
    server.stop();
    let server = Server::start_in(folder.path());
    let mut client = Client::root(&server);
    client.sender(1, "q");
    client.post(1, message("a").id("a"));
    client.post(1, message("d").id("d"));
    assert_eq!(bodies(&mut client), ["b", "null", "null", "c", "d"]);
}
