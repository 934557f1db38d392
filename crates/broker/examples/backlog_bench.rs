//! A backlog deeper than the ring: filled without a receiver, found again by a second start, then drained.
//! Prints rates, memory and disk.
//!
//! ```text
//! cargo run --release -p vorrang-broker --example backlog_bench -- [messages] [ring MB] [folder]
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a benchmark reads clocks and prints figures"
)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use smallvec::smallvec;
use support::{Pipe, clear, connect, create_queue, open, push, send};
use vorrang_broker::api::{Event, Link, Operation, Request, Tag};
use vorrang_broker::shard::Broker;
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{Level, MailboxId};
use vorrang_log::Options;

const BYTES: usize = 200;
const CREDIT: u32 = 2_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let messages: u64 =
        arguments.next().map_or(4_000_000, |text| text.parse().expect("a number of messages"));
    let ring: u64 = arguments.next().map_or(512, |text| text.parse().expect("megabytes of the ring"));
    let folder = arguments.next().map_or_else(|| std::env::temp_dir().join("vorrang-backlog"), PathBuf::from);
    let options = Options { ring_bytes: ring << 20, ..Options::default() };
    clear(&folder);
    let broker = open(&folder, options.clone());
    let (entity, mailbox) = create_queue(&broker);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| send(&broker, entity, messages / 4, BYTES));
        }
    });
    report("filled", messages, started, &folder);
    broker.stop();
    drop(broker);
    let started = Instant::now();
    let broker = open(&folder, options);
    report("opened", messages, started, &folder);
    let started = Instant::now();
    drain(&broker, mailbox, messages / 4 * 4);
    report("drained", messages, started, &folder);
    broker.stop();
    let _ = std::fs::remove_dir_all(&folder);
}

/// Receives everything, highest level first and oldest first within it, removing it.
fn drain(broker: &Broker, mailbox: MailboxId, messages: u64) {
    let (sender, events) = channel();
    let connection = connect(broker, Arc::new(Pipe(Mutex::new(sender))));
    let attach = Operation::Attach {
        link: Link(1),
        mailboxes: smallvec![mailbox],
        mode: ReceiveMode::ReceiveAndDelete,
        min_level: Level(0),
        selector: None,
    };
    push(&connection, vec![Request { tag: Tag(1), operation: attach }]);
    let (mut received, mut handed, mut limit) = (0_u64, 0_u32, 0_u32);
    let (started, mut last) = (Instant::now(), (Level(u8::MAX), 0));
    loop {
        if limit.wrapping_sub(handed) <= CREDIT / 2 {
            limit = handed.wrapping_add(CREDIT);
            let credit = Operation::Credit { link: Link(1), limit, drain: false };
            push(&connection, vec![Request { tag: Tag(2), operation: credit }]);
        }
        if received == messages {
            return;
        }
        for event in events.recv().expect("the shard lives") {
            if let Event::Deliver { delivery, body, .. } = event {
                let read = || broker.payloads().read(delivery.location, delivery.size).expect("it is stored");
                assert_eq!(body.unwrap_or_else(read).bytes.len(), BYTES);
                let place = (delivery.level, delivery.sequence.0);
                let in_order = place.0 < last.0 || (place.0 == last.0 && place.1 > last.1);
                assert!(in_order, "{place:?} after {last:?}");
                last = place;
                if received == 0 {
                    println!(
                        "first delivery {:.3} s after the receiver attached",
                        started.elapsed().as_secs_f64()
                    );
                }
                received += 1;
                handed = handed.wrapping_add(1);
            }
        }
    }
}

fn report(what: &str, messages: u64, started: Instant, folder: &Path) {
    let seconds = started.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default().trim();
    let disk: u64 = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|file| file.metadata().ok())
        .map(|data| data.len())
        .sum();
    println!(
        "{what} {messages} messages of {BYTES} bytes in {seconds:.1} s = {:.0}/s; {memory}; {} MB on disk",
        messages as f64 / seconds,
        disk >> 20,
    );
}
