//! How fast one shard is: send, deliver and complete of 1 KB messages, durable, on a real disk.
//!
//! ```text
//! cargo run --release -p vorrang-broker --example shard_bench -- [messages] [folder]
//! ```
//!
//! Senders and receivers are threads of this process that do as little as possible; the figures that
//! count are the processor time of the threads named `shard` and `log-commit`, per message.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a benchmark reads clocks and prints figures"
)]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use smallvec::smallvec;
use support::{Pipe, clear, connect, create_queue, open, push, send, threads_ns};
use vorrang_broker::api::{Event, Link, Operation, Request, Tag};
use vorrang_broker::shard::Broker;
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::{EntityId, Level, MailboxId};
use vorrang_log::Options;

const SENDERS: u64 = 4;
const RECEIVERS: u32 = 4;
const CREDIT: u32 = 1_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let messages: u64 =
        arguments.next().map_or(1_000_000, |text| text.parse().expect("a number of messages"));
    let folder =
        arguments.next().map_or_else(|| std::env::temp_dir().join("vorrang-shard-bench"), PathBuf::from);
    clear(&folder);
    let broker = open(&folder, Options::default());
    let (entity, mailbox) = create_queue(&broker);
    // Once to write every block of the disk that will be used, once to measure.
    for round in ["first blocks", "recycled"] {
        let (cpu_before, started) = (threads_ns(), Instant::now());
        round_trip(&broker, entity, mailbox, messages);
        let (cpu_after, elapsed) = (threads_ns(), started.elapsed());
        let per_message = |name: &str| {
            let of = |times: &BTreeMap<String, u64>| -> u64 {
                times.iter().filter(|(thread, _)| thread.starts_with(name)).map(|(_, ns)| ns).sum()
            };
            let used = of(&cpu_after) - of(&cpu_before);
            used as f64 / 1_000.0 / messages as f64
        };
        println!(
            "{round}: {messages} messages in {:.2} s = {:.0}/s; CPU per message: shard {:.2} µs, log-commit {:.2} µs",
            elapsed.as_secs_f64(),
            messages as f64 / elapsed.as_secs_f64(),
            per_message("shard"),
            per_message("log-commit"),
        );
    }
    broker.stop();
    let _ = std::fs::remove_dir_all(&folder);
}

/// Sends, receives and completes so many messages.
fn round_trip(broker: &Broker, entity: EntityId, mailbox: MailboxId, messages: u64) {
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| send(broker, entity, messages / SENDERS, 1_024));
        }
        scope.spawn(|| receive(broker, mailbox, messages / SENDERS * SENDERS));
    });
}

fn receive(broker: &Broker, mailbox: MailboxId, messages: u64) {
    let (sender, events) = channel();
    let connection = connect(broker, Arc::new(Pipe(Mutex::new(sender))));
    let mut received = vec![0_u32; RECEIVERS as usize + 1];
    let mut tag = 0_u32;
    let mut request = |operation| {
        tag = tag.wrapping_add(1);
        Request { tag: Tag(tag), operation }
    };
    for link in 1..=RECEIVERS {
        let attach = Operation::Attach {
            link: Link(link),
            mailboxes: smallvec![mailbox],
            mode: ReceiveMode::PeekLock,
            min_level: Level(0),
            selector: None,
        };
        let credit = Operation::Credit { link: Link(link), limit: CREDIT, drain: false };
        push(&connection, vec![request(attach), request(credit)]);
    }
    // Every attach is answered too.
    let mut replies = 0;
    while replies < messages + u64::from(RECEIVERS) {
        let mut requests = Vec::new();
        for event in events.recv().expect("the shard lives") {
            match event {
                Event::Deliver { link, delivery, body } => {
                    let read =
                        || broker.payloads().read(delivery.location, delivery.size).expect("it is stored");
                    assert_eq!(body.unwrap_or_else(read).bytes.len(), 1_024);
                    let tokens = smallvec![delivery.token.expect("peek-lock")];
                    let settlement = Settlement::Complete;
                    requests.push(request(Operation::Settle {
                        mailbox,
                        tokens,
                        settlement,
                        transaction: None,
                    }));
                    if let Some(count) = received.get_mut(link.0 as usize) {
                        *count += 1;
                        if count.is_multiple_of(CREDIT / 4) {
                            let limit = *count + CREDIT;
                            requests.push(request(Operation::Credit { link, limit, drain: false }));
                        }
                    }
                }
                Event::Reply { .. } => replies += 1,
                other => println!("unexpected: {other:?}"),
            }
        }
        if !requests.is_empty() {
            push(&connection, requests);
        }
    }
}
