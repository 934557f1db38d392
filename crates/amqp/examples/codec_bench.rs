//! Measures the codec beside `serde_amqp` and `fe2o3-amqp-types` on the same bytes.
//!
//! Run with `cargo run --release -p vorrang-amqp --example codec_bench`. Prints nanoseconds per operation, the best
//! of several rounds, and how many times longer the other codec takes. It asserts first that both read the same.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a measuring program reads the clock, prints, and stops at the first surprise"
)]

use std::hint::black_box;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use fe2o3_amqp_types::performatives as other;
use vorrang_amqp::descriptor;
use vorrang_amqp::encode::Encode;
use vorrang_amqp::frame::plain_transfer;
use vorrang_amqp::message::{Changes, Header, Message, MessageId, Properties};
use vorrang_amqp::message::{put_data, put_header, put_map_section, put_properties};
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Disposition, Flow, LinkFlow, Role, Transfer};
use vorrang_amqp::{Frame, FrameBody, Symbol, Text, Timestamp, Uuid};

/// Many short rounds, so that some of them run undisturbed on a busy machine.
const ROUNDS: u32 = 600;
const PER_ROUND: u32 = 2_000;

/// Nanoseconds per call, the best round.
fn measure(mut operation: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..PER_ROUND {
            operation();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(PER_ROUND));
    }
    best
}

fn report(name: &str, ours: f64, theirs: Option<f64>) {
    match theirs {
        Some(theirs) => println!("{name:<44} {ours:>8.1} ns   {theirs:>8.1} ns   {:>6.1}x", theirs / ours),
        None => println!("{name:<44} {ours:>8.1} ns"),
    }
}

fn transfer() -> Transfer {
    Transfer {
        handle: 1,
        delivery_id: Some(70_000),
        delivery_tag: Some(DeliveryTag::from([7; 16])),
        message_format: Some(0),
        settled: Some(false),
        ..Transfer::default()
    }
}

fn disposition() -> Disposition {
    Disposition {
        role: Role::Receiver,
        first: 70_000,
        last: Some(70_063),
        settled: true,
        state: Some(DeliveryState::ACCEPTED),
        batchable: false,
    }
}

fn flow() -> Flow {
    Flow {
        next_incoming_id: Some(70_000),
        incoming_window: 5_000,
        next_outgoing_id: 1_200,
        outgoing_window: 5_000,
        link: Some(LinkFlow {
            handle: 1,
            delivery_count: Some(70_000),
            link_credit: Some(1_000),
            available: None,
            drain: false,
        }),
        echo: false,
        properties: None,
    }
}

fn message(body_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    put_header(&mut out, &Header { ttl: Some(60_000), ..Header::default() });
    put_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, |annotations| {
        annotations.symbol("x-opt-partition-key", &Text::from_static("customer-42"));
    });
    let properties = Properties {
        message_id: Some(MessageId::String("0b6cd7a9f2b04f0f9a0c5f0e6f8d1c2e".into())),
        subject: Some("order".into()),
        content_type: Some(Symbol::from_static("application/json")),
        ..Properties::default()
    };
    put_properties(&mut out, &properties);
    put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |entries| {
        entries.entry(&Text::from_static("region"), &Text::from_static("eu-west"));
        entries.entry(&Text::from_static("attempt"), &3i32);
    });
    put_data(&mut out, &vec![0x42; body_bytes]);
    out
}

fn frame_bytes(body: FrameBody) -> Bytes {
    let mut out = Vec::new();
    Frame { channel: 1, body }.encode(&mut out);
    Bytes::from(out)
}

fn decoding() {
    let buffer = Bytes::from(vec![0; 64]);
    let ours = measure(|| {
        black_box(black_box(&buffer).clone());
    });
    report("sharing the read buffer (part of each decode)", ours, None);
    for body_bytes in [100, 1_024] {
        let frame = frame_bytes(FrameBody::Transfer(transfer(), message(body_bytes).into()));
        let performative = transfer().to_encoded();
        let theirs: other::Transfer = serde_amqp::from_slice(&performative).unwrap();
        assert_eq!(theirs.delivery_id, transfer().delivery_id);
        assert!(Frame::decode(frame.clone()).is_ok());
        assert!(serde_amqp::from_slice::<other::Transfer>(&frame[8..]).is_ok());
        let ours = measure(|| {
            black_box(&Frame::decode(black_box(&frame).clone()));
        });
        let theirs = measure(|| {
            black_box(&serde_amqp::from_slice::<other::Transfer>(black_box(&frame[8..])));
        });
        report(&format!("transfer frame decode, {body_bytes} B body"), ours, Some(theirs));
        assert!(plain_transfer(&frame).is_some());
        let ours = measure(|| {
            black_box(&plain_transfer(black_box(&frame)));
        });
        report(&format!("transfer decode as a connection does it, {body_bytes} B"), ours, Some(theirs));
    }
    let frame = frame_bytes(FrameBody::Disposition(disposition()));
    let ours = measure(|| {
        black_box(&Frame::decode(black_box(&frame).clone()));
    });
    let theirs = measure(|| {
        black_box(&serde_amqp::from_slice::<other::Disposition>(black_box(&frame[8..])));
    });
    report("disposition frame decode", ours, Some(theirs));
    let frame = frame_bytes(FrameBody::Flow(flow()));
    let ours = measure(|| {
        black_box(&Frame::decode(black_box(&frame).clone()));
    });
    let theirs = measure(|| {
        black_box(&serde_amqp::from_slice::<other::Flow>(black_box(&frame[8..])));
    });
    report("flow frame decode", ours, Some(theirs));
}

fn encoding() {
    let mut out = Vec::with_capacity(1 << 16);
    let payload = Bytes::from(message(100));
    let frame = Frame { channel: 1, body: FrameBody::Transfer(transfer(), payload.clone()) };
    let ours = measure(|| {
        out.clear();
        black_box(&frame).encode(&mut out);
        black_box(&out);
    });
    let theirs: other::Transfer = serde_amqp::from_slice(&transfer().to_encoded()).unwrap();
    let theirs = measure(|| {
        let mut written = serde_amqp::to_vec(black_box(&theirs)).unwrap();
        written.extend_from_slice(&payload);
        black_box(written);
    });
    report("transfer frame encode, 100 B body", ours, Some(theirs));

    let frame = Frame { channel: 1, body: FrameBody::Disposition(disposition()) };
    let ours = measure(|| {
        out.clear();
        black_box(&frame).encode(&mut out);
        black_box(&out);
    });
    let theirs: other::Disposition = serde_amqp::from_slice(&disposition().to_encoded()).unwrap();
    let theirs = measure(|| {
        black_box(serde_amqp::to_vec(black_box(&theirs)).unwrap());
    });
    report("disposition frame encode", ours, Some(theirs));

    let frame = Frame { channel: 1, body: FrameBody::Flow(flow()) };
    let ours = measure(|| {
        out.clear();
        black_box(&frame).encode(&mut out);
        black_box(&out);
    });
    let theirs: other::Flow = serde_amqp::from_slice(&flow().to_encoded()).unwrap();
    let theirs = measure(|| {
        black_box(serde_amqp::to_vec(black_box(&theirs)).unwrap());
    });
    report("flow frame encode", ours, Some(theirs));
    let mut out = BytesMut::with_capacity(1 << 16);
    let ours = measure(|| {
        out.clear();
        black_box(&frame).encode(&mut out);
        black_box(&out);
    });
    report("flow frame encode into BytesMut", ours, None);
}

fn messages() {
    type Theirs = fe2o3_amqp_types::messaging::message::__private::Deserializable<
        fe2o3_amqp_types::messaging::Message<fe2o3_amqp_types::messaging::Data>,
    >;
    for body_bytes in [100, 1_024] {
        let encoded = Bytes::from(message(body_bytes));
        let ours = measure(|| {
            black_box(&Message::parse(black_box(&encoded).clone()));
        });
        let theirs = measure(|| {
            black_box(&serde_amqp::from_slice::<Theirs>(black_box(&encoded)));
        });
        report(&format!("section walk, {body_bytes} B body"), ours, Some(theirs));
    }
    let parsed = Message::parse(Bytes::from(message(1_024))).unwrap();
    let ours = measure(|| {
        black_box(&black_box(&parsed).properties());
    });
    report("properties decode", ours, None);
    let mut out = Vec::with_capacity(4_096);
    let token = Uuid::from_bytes([9; 16]);
    let ours = measure(|| {
        out.clear();
        let annotations = parsed.message_annotations();
        let tail = black_box(&parsed).rebuild(
            &mut out,
            &Header { ttl: Some(60_000), delivery_count: 1, ..Header::default() },
            |delivery| delivery.symbol("x-opt-lock-token", &token),
            |message| {
                if let Some(annotations) = &annotations {
                    message.keep_except(annotations, &["x-opt-enqueued-time", "x-opt-sequence-number"]);
                }
                message.symbol("x-opt-enqueued-time", &Timestamp(1_767_225_600_000));
                message.symbol("x-opt-sequence-number", &70_000i64);
                message.symbol("x-opt-locked-until", &Timestamp(1_767_225_630_000));
            },
            Changes::default(),
        );
        black_box((&out, tail));
    });
    report("rebuild for a delivery, 1 KB body", ours, None);
}

fn main() {
    println!("{:<44} {:>11}   {:>11}   {:>7}", "operation", "ours", "serde_amqp", "ratio");
    decoding();
    encoding();
    messages();
}
