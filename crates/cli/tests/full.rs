//! A full disk, with the real process on a real volume of its own: sends are refused, receiving and
//! completing go on, and service resumes when space is freed.
//!
//! The volume is a small file system in memory, mounted in a name space that only the broker sees. Where the
//! machine does not let us make one, there is nothing to test.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test that meets the unexpected shall stop"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use support::Broker;
use vorrang_amqp::connection::{Event, Outgoing};
use vorrang_amqp::message::put_data;
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Outcome, Role};
use vorrang_bench::wire::Wire;

const QUEUE: &str = "full";
/// More than the broker leaves to the machine and to settlements, and little beyond.
const VOLUME: &str = "size=448m";
/// What is freed in the end.
const BALLAST_BYTES: u64 = 96 << 20;
const MESSAGE_BYTES: usize = 64 << 10;

/// Runs a command in a name space where `place` is a small volume.
fn on_a_volume(place: &Path, inner: &Command) -> Command {
    let script = format!("mount -t tmpfs -o {VOLUME} tmpfs \"$0\" && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).arg(place);
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

#[test]
#[ignore = "mounts a volume of 448 MiB: `cargo test -p vorrang --test full -- --ignored`"]
fn a_full_volume_refuses_sends_and_nothing_else_until_space_is_freed() {
    let folder = tempfile::tempdir().unwrap();
    let volume = folder.path().join("volume");
    std::fs::create_dir(&volume).unwrap();
    let possible = on_a_volume(&volume, &Command::new("true")).status();
    if !possible.is_ok_and(|status| status.success()) {
        eprintln!("not tested: this machine does not let us mount a volume");
        return;
    }
    let broker =
        Broker::launch(on_a_volume(&volume, &support::serve_queues(folder.path(), &volume, &[QUEUE])));
    // The volume as the broker sees it.
    let seen = PathBuf::from(format!("/proc/{}/root{}", broker.id(), volume.display()));
    let ballast = seen.join("ballast");
    std::fs::File::create(&ballast).unwrap();
    std::fs::write(&ballast, vec![7; usize::try_from(BALLAST_BYTES).unwrap()]).unwrap();

    let mut sender = Sender::connect(&broker.door("amqp"));
    let mut accepted = 0;
    let refused = loop {
        match sender.send() {
            DeliveryState::Outcome(Outcome::Accepted) => accepted += 1,
            other => break other,
        }
        assert!(accepted < 20_000, "the volume never fills");
    };
    let told = format!("{refused:?}");
    assert!(told.contains("resource-limit-exceeded"), "{told}");
    assert!(accepted > 10, "only {accepted} messages were accepted");

    assert_eq!(receive_and_complete(&broker.door("amqp"), 10), 10, "receiving and completing go on");
    let still = format!("{:?}", sender.send());
    assert!(still.contains("resource-limit-exceeded"), "{still}");

    std::fs::remove_file(&ballast).unwrap();
    let began = Instant::now();
    while sender.send() != DeliveryState::ACCEPTED {
        assert!(began.elapsed() < Duration::from_mins(1), "service does not resume");
    }
    assert_eq!(broker.stop(), Some(0));
}

struct Sender {
    wire: Wire,
    link: vorrang_amqp::connection::LinkId,
    tail: Bytes,
    sent: u64,
}

impl Sender {
    fn connect(address: &str) -> Sender {
        let mut wire = Wire::connect(address).unwrap();
        let link = wire.attach(QUEUE, Role::Sender).unwrap();
        let mut payload = Vec::new();
        put_data(&mut payload, &vec![1; MESSAGE_BYTES]);
        Sender { wire, link, tail: Bytes::from(payload), sent: 0 }
    }

    /// Sends a message and waits for what becomes of it.
    fn send(&mut self) -> DeliveryState {
        self.sent += 1;
        let outgoing = Outgoing {
            tag: DeliveryTag::from(self.sent),
            message_format: 0,
            settled: false,
            state: None,
            head: &[],
            tail: &self.tail,
            key: 0,
        };
        while self.wire.amqp.send(self.link, &outgoing).is_err() {
            self.wire.flush().unwrap();
            self.wire.read().unwrap();
            while self.wire.amqp.next_event().is_some() {}
        }
        loop {
            self.wire.flush().unwrap();
            self.wire.read().unwrap();
            while let Some(event) = self.wire.amqp.next_event() {
                if let Event::Settlement(settlement) = event {
                    return settlement.state.as_deref().unwrap().clone();
                }
            }
        }
    }
}

/// Completes so many messages, and returns how many of the completions were confirmed.
fn receive_and_complete(address: &str, count: u32) -> u32 {
    let mut wire = Wire::connect(address).unwrap();
    let link = wire.attach(QUEUE, Role::Receiver).unwrap();
    let _ = wire.amqp.grant(link, count);
    let mut confirmed = 0;
    while confirmed < count {
        wire.flush().unwrap();
        wire.read().unwrap();
        while let Some(event) = wire.amqp.next_event() {
            match event {
                Event::Delivery(delivery) => {
                    let _ = wire.amqp.decide(delivery.link, delivery.delivery, DeliveryState::ACCEPTED);
                }
                Event::Settlement(settlement) => {
                    assert_eq!(settlement.state.as_deref(), Some(&DeliveryState::ACCEPTED));
                    confirmed += u32::try_from(settlement.deliveries.len()).unwrap();
                }
                _ => {}
            }
        }
    }
    confirmed
}
