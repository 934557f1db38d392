//! What the connection engine costs per message, in memory and without sockets.
//!
//! `cargo run --release -p vorrang-amqp --example connection_bench [ingest|delivery|all] [messages per round]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that meets the unexpected shall stop")]

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use vorrang_amqp::Text;
use vorrang_amqp::connection::{
    AttachReply, Connection, Event, Limits, LinkId, Millis, Outgoing, Received, ServerConfig,
};
use vorrang_amqp::frame::{Frame, FrameBody};
use vorrang_amqp::performative::{
    Attach, Begin, DeliveryState, DeliveryTag, Disposition, Flow, LinkFlow, Open, Role, Source, Target,
    TargetNode, Transfer,
};
use vorrang_amqp::protocol_header::Protocol;

/// Messages per round, unless the second argument says otherwise.
const MESSAGES: u32 = 20_000;

/// Rounds, each short enough to pass between two interruptions. The fastest counts, since whatever else runs on the
/// machine only makes the others slower.
const ROUNDS: u32 = 200;

/// Messages per batch: about what one read of 64 KiB holds at 100 bytes.
const BATCH: u32 = 400;

/// One round: messages, payload bytes, and whether outcomes go in ranges.
type Round = fn(u32, usize, bool) -> Duration;
const INGEST: Round = ingest;
const DELIVERY: Round = delivery;

fn main() {
    let only = std::env::args().nth(1).filter(|what| what != "all");
    let messages = std::env::args().nth(2).map_or(MESSAGES, |number| number.parse().unwrap());
    for (what, run) in [("ingest", INGEST), ("delivery", DELIVERY)] {
        for size in [100, 1024] {
            for (acks, ranged) in [("ranged acks", true), ("one ack each", false)] {
                if only.as_ref().is_none_or(|only| what == only) {
                    let fastest = (0..ROUNDS).map(|_| run(messages, size, ranged)).min().unwrap();
                    let nanoseconds = fastest.as_secs_f64() * 1e9 / f64::from(messages);
                    println!("{what:>8} {size:>5} B, {acks:<16} {nanoseconds:>7.1} ns/message");
                }
            }
        }
    }
}

/// Transfers in, events out, all accepted.
fn ingest(messages: u32, size: usize, ranged: bool) -> Duration {
    let (mut engine, link) = attached(Role::Sender);
    let mut batch = Vec::new();
    for delivery in 0..BATCH {
        let transfer = Transfer {
            handle: 0,
            delivery_id: Some(delivery.wrapping_add(100_000)),
            delivery_tag: Some(u64::from(delivery).into()),
            message_format: Some(0),
            ..Transfer::default()
        };
        Frame { channel: 0, body: FrameBody::Transfer(transfer, Bytes::from(vec![7; size])) }
            .encode(&mut batch);
    }
    let mut input = BytesMut::new();
    let mut chunks = Vec::new();
    let mut seen = 0u32;
    let start = Instant::now();
    while seen < messages {
        input.reserve(batch.len());
        input.extend_from_slice(&batch);
        engine.grant(link, 2 * BATCH).unwrap();
        while engine.receive(&mut input, Millis(0)) == Received::Paused {}
        while let Some(event) = engine.next_event() {
            let Event::Delivery(delivery) = event else { panic!("{event:?}") };
            std::hint::black_box(&delivery.payload);
            engine.accept(delivery.link, delivery.delivery).unwrap();
            seen += 1;
            if !ranged {
                engine.take_output(&mut chunks);
            }
        }
        engine.take_output(&mut chunks);
        chunks.clear();
    }
    start.elapsed()
}

/// Messages out, accepted by the peer, answered.
fn delivery(messages: u32, size: usize, ranged: bool) -> Duration {
    let (mut engine, link) = attached(Role::Receiver);
    let tail = Bytes::from(vec![7; size]);
    let mut chunks = Vec::new();
    let mut input = BytesMut::new();
    let mut sent = 0u32;
    let mut answers = Vec::new();
    let mut total = Duration::ZERO;
    while sent < messages {
        answers.clear();
        flow(sent, 2 * BATCH).encode(&mut answers);
        let step = if ranged { BATCH } else { 1 };
        for first in (sent..sent + BATCH).step_by(step.try_into().unwrap()) {
            let disposition = Disposition {
                role: Role::Receiver,
                first,
                last: Some(first + step - 1),
                settled: false,
                state: Some(DeliveryState::ACCEPTED),
                batchable: false,
            };
            Frame { channel: 0, body: FrameBody::Disposition(disposition) }.encode(&mut answers);
        }
        let start = Instant::now();
        for number in 0..BATCH {
            let outgoing = Outgoing {
                tag: DeliveryTag::from([7; 16]),
                message_format: 0,
                settled: false,
                state: None,
                head: &[0, 0x53, 0x70, 0x45],
                tail: &tail,
                key: u128::from(number),
            };
            engine.send(link, &outgoing).unwrap();
        }
        engine.take_output(&mut chunks);
        chunks.clear();
        input.extend_from_slice(&answers);
        while engine.receive(&mut input, Millis(0)) == Received::Paused {}
        while let Some(event) = engine.next_event() {
            if let Event::Settlement(settlement) = event {
                for delivery in &settlement.deliveries {
                    engine.accept(settlement.link, delivery.delivery).unwrap();
                }
            }
        }
        engine.take_output(&mut chunks);
        chunks.clear();
        total += start.elapsed();
        sent += BATCH;
    }
    total
}

/// A server engine with one link, whose peer plays `role`.
fn attached(role: Role) -> (Connection, LinkId) {
    let mut config = ServerConfig::new("bench");
    config.sasl_optional = true;
    let mut engine = Connection::server(config, Limits::default(), Millis(0));
    engine.authenticated();
    let mut attach = Attach::new(Text::from("link"), 0, role);
    attach.source = Some(Source::at("q"));
    attach.target = Some(TargetNode::Node(Target::at("q")));
    attach.initial_delivery_count = Some(0);
    let begin = Begin { incoming_window: 5000, outgoing_window: 5000, ..Begin::default() };
    let mut bytes = Protocol::Amqp.header().to_vec();
    for body in [
        FrameBody::Open(Box::new(Open { container_id: Text::from("peer"), ..Open::default() })),
        FrameBody::Begin(Box::new(begin)),
        FrameBody::Attach(Box::new(attach)),
    ] {
        Frame { channel: 0, body }.encode(&mut bytes);
    }
    engine.receive(&mut BytesMut::from(&bytes[..]), Millis(0));
    let mut link = None;
    while let Some(event) = engine.next_event() {
        if let Event::Attach(request) = event {
            let (source, target) = (request.attach.source, request.attach.target);
            engine
                .accept_attach(request.link, AttachReply { source, target, ..AttachReply::default() })
                .unwrap();
            link = Some(request.link);
        }
    }
    let mut bytes = Vec::new();
    if role == Role::Receiver {
        flow(0, 2 * BATCH).encode(&mut bytes);
        engine.receive(&mut BytesMut::from(&bytes[..]), Millis(0));
        while engine.next_event().is_some() {}
    }
    engine.take_output(&mut Vec::new());
    (engine, link.unwrap())
}

/// A receiver's flow that opens window and credit.
fn flow(seen: u32, credit: u32) -> Frame {
    Frame {
        channel: 0,
        body: FrameBody::Flow(Flow {
            next_incoming_id: Some(seen.wrapping_add(1)),
            incoming_window: 5000,
            outgoing_window: 5000,
            link: Some(LinkFlow {
                handle: 0,
                delivery_count: Some(seen),
                link_credit: Some(credit),
                ..LinkFlow::default()
            }),
            ..Flow::default()
        }),
    }
}
