//! More than the broker can take: senders that never pause are slowed by their credit, memory stays flat, and nothing
//! that was accepted is lost. And many connections at once, each with its link.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop, and says what it measured"
)]

mod support;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use support::{Broker, serve_queues_locking};
use vorrang_amqp::connection::{Event, Outgoing};
use vorrang_amqp::message::{Message, put_data};
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Role};
use vorrang_bench::connections;
use vorrang_bench::wire::Wire;

const SENDERS: u64 = 4;
const MESSAGES: u64 = 15_000;
const BODY_BYTES: usize = 4 * 1024;

/// The most a sender is granted at once; the rest of its messages wait on its own side.
const CREDIT_MAX: usize = 2_000;

/// What the broker may hold beyond its beginning while 240 MB pass through it: what is on its way to the disk, and a
/// little for each message that waits.
const GROWTH_MAX: u64 = 160 * 1024 * 1024;

/// Sends as fast as it is let. Returns how often it had to wait for credit.
fn send(address: &str, sender: u64) -> u64 {
    let mut wire = Wire::connect(address).unwrap();
    let link = wire.attach("q", Role::Sender).unwrap();
    wire.patience(Duration::from_secs(30)).unwrap();
    let (mut number, mut waited) = (0, 0);
    let mut in_flight = BTreeSet::new();
    while number < MESSAGES || !in_flight.is_empty() {
        while number < MESSAGES {
            let mut body = vec![0; BODY_BYTES];
            body[..8].copy_from_slice(&(sender << 32 | number).to_be_bytes());
            let mut payload = Vec::new();
            put_data(&mut payload, &body);
            let tail = Bytes::from(payload);
            let tag = DeliveryTag::from(number);
            let outgoing = Outgoing {
                tag,
                message_format: 0,
                settled: false,
                state: None,
                head: &[],
                tail: &tail,
                key: 0,
            };
            let Ok(delivery) = wire.amqp.send(link, &outgoing) else {
                waited += 1;
                break;
            };
            in_flight.insert(delivery.get());
            assert!(in_flight.len() <= CREDIT_MAX, "the broker lets too much come at once");
            number += 1;
        }
        wire.flush().unwrap();
        assert!(wire.read().unwrap(), "the broker does not answer");
        while let Some(event) = wire.amqp.next_event() {
            match event {
                Event::Settlement(settlement) => {
                    assert_eq!(settlement.state.as_deref(), Some(&DeliveryState::ACCEPTED));
                    for settled in settlement.deliveries {
                        assert!(in_flight.remove(&settled.delivery.get()), "accepted twice");
                    }
                }
                Event::Closed(closed) => panic!("thrown out: {closed:?}"),
                _ => {}
            }
        }
    }
    waited
}

/// Receives and completes until all have come; each once.
fn receive_all(address: &str) {
    let mut wire = Wire::connect(address).unwrap();
    let link = wire.attach("q", Role::Receiver).unwrap();
    wire.patience(Duration::from_secs(30)).unwrap();
    let mut seen = BTreeSet::new();
    let mut completed = 0;
    while completed < SENDERS * MESSAGES {
        if wire.amqp.credit(link).unwrap() < 500 {
            wire.amqp.grant(link, 1_000).unwrap();
        }
        wire.flush().unwrap();
        assert!(wire.read().unwrap(), "after {} messages nothing came", seen.len());
        while let Some(event) = wire.amqp.next_event() {
            match event {
                Event::Delivery(delivery) => {
                    let message = Message::parse(delivery.payload).unwrap();
                    let id = u64::from_be_bytes(*message.data().next().unwrap().first_chunk().unwrap());
                    assert!(seen.insert(id), "message {id:x} came twice");
                    wire.amqp.decide(delivery.link, delivery.delivery, DeliveryState::ACCEPTED).unwrap();
                }
                Event::Settlement(settlement) => {
                    completed += u64::try_from(settlement.deliveries.len()).unwrap();
                }
                Event::Closed(closed) => panic!("thrown out: {closed:?}"),
                _ => {}
            }
        }
    }
    assert_eq!(u64::try_from(seen.len()).unwrap(), SENDERS * MESSAGES);
}

#[test]
fn senders_faster_than_the_disk_are_slowed_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::launch(serve_queues_locking(folder.path(), folder.path(), &["q"], "PT5M"));
    let address = broker.door("amqp");
    let before = broker.resident();
    let began = Instant::now();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let address = address.clone();
            std::thread::spawn(move || send(&address, sender))
        })
        .collect();
    let mut peak = before;
    while senders.iter().any(|sender| !sender.is_finished()) {
        peak = peak.max(broker.resident());
        std::thread::sleep(Duration::from_millis(20));
    }
    let waited: u64 = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
    let sent = began.elapsed();
    assert!(waited > 0, "nobody had to wait: this was no overload");
    receive_all(&address);
    peak = peak.max(broker.resident());
    let grown = peak - before;
    println!(
        "overload: {} MB sent in {sent:.1?}, {waited} waits for credit, memory grew by {} KiB",
        SENDERS * MESSAGES * u64::try_from(BODY_BYTES).unwrap() / 1_000_000,
        grown / 1024
    );
    assert!(grown < GROWTH_MAX, "memory grew by {grown} bytes");
    assert_eq!(broker.stop(), Some(0));
}

#[test]
fn a_thousand_connections_with_a_link_each_drop_nothing() {
    let options = connections::Options {
        count: 1_000,
        rate: 1_000,
        seconds: 2,
        queues: 20,
        broker: Some(env!("CARGO_BIN_EXE_vorrang").into()),
        folder: None,
    };
    let report = connections::run(&options).unwrap();
    assert_eq!((report.connections, report.broken), (1_000, 0));
    assert_eq!((report.sent, report.accepted, report.completed), (2_000, 2_000, 2_000));
    // Generous: an unoptimised build, and buffers of both directions.
    assert!(report.bytes_per_connection < 100 * 1024, "{} bytes", report.bytes_per_connection);
}
