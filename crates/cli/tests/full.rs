//! A full disk, with the real process on a real volume of its own: sends are refused, receiving and
//! completing go on, and service resumes when space is freed.
//!
//! The volume is a small file system in memory, mounted in a name space that only the broker sees. Where the
//! machine does not let us make one, there is nothing to test.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::panic,
    reason = "a test that meets the unexpected shall stop"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use support::Broker;
use vorrang_amqp::connection::{Event, LinkId, Outgoing};
use vorrang_amqp::message::put_data;
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Role};
use vorrang_bench::wire::Wire;

const QUEUE: &str = "full";
/// Nobody receives from this one.
const KEPT: &str = "kept";
/// With the ballast, little more than what the broker leaves to the machine (256 MiB) and to settlements (64 MiB).
const VOLUME: &str = "size=672m";
/// What somebody else keeps on the volume, and frees. A segment may reach into the machine's share by its own length,
/// so this is more than a few of them.
const BALLAST_BYTES: usize = 320 << 20;
const MESSAGE_BYTES: usize = 64 << 10;
/// About as many as a segment of the log holds.
const SEGMENT_MESSAGES: u32 = 1_000;
/// One in so many messages is kept.
const KEPT_EVERY: u64 = 200;

/// Runs a command in a name space where `place` is a small volume.
fn on_a_volume(place: &Path, inner: &Command) -> Command {
    let script = format!("mount -t tmpfs -o {VOLUME} tmpfs \"$0\" && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).arg(place);
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

#[test]
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
        Broker::launch(on_a_volume(&volume, &support::serve_queues(folder.path(), &volume, &[QUEUE, KEPT])));
    // The volume as the broker sees it.
    let ballast = PathBuf::from(format!("/proc/{}/root{}", broker.id(), volume.join("ballast").display()));
    std::fs::write(&ballast, vec![7; BALLAST_BYTES]).unwrap();

    let mut sender = Sender::connect(&broker.door("amqp"));
    let taken = 10;
    // What the log sets aside for itself after a start counts as taken until it is there.
    support::until("the first messages are accepted", || {
        sender.fill();
        sender.accepted > taken
    });
    receive_and_complete(&broker.door("amqp"), taken);
    assert_refused(&sender.send());

    // Somebody frees space.
    std::fs::remove_file(&ballast).unwrap();
    sender.until_accepted();
    sender.fill();

    // Nobody does, but the messages leave. Some stay, spread over all that was written, and must not keep it.
    receive_and_complete(&broker.door("amqp"), sender.accepted - taken);
    let goal = sender.accepted + 3 * SEGMENT_MESSAGES;
    support::until("what the messages took is given back", || {
        sender.fill();
        sender.accepted >= goal
    });
    assert_eq!(broker.stop(), Some(0));
}

fn assert_refused(state: &DeliveryState) {
    let told = format!("{state:?}");
    assert!(told.contains("resource-limit-exceeded") && told.contains("disk"), "{told}");
}

struct Sender {
    wire: Wire,
    link: LinkId,
    kept: LinkId,
    tail: Bytes,
    sent: u64,
    /// Accepted on the queue that is received from.
    accepted: u32,
}

impl Sender {
    fn connect(address: &str) -> Sender {
        let mut wire = Wire::connect(address).unwrap();
        let link = wire.attach(QUEUE, Role::Sender).unwrap();
        let kept = wire.attach(KEPT, Role::Sender).unwrap();
        let mut payload = Vec::new();
        put_data(&mut payload, &vec![1; MESSAGE_BYTES]);
        Sender { wire, link, kept, tail: Bytes::from(payload), sent: 0, accepted: 0 }
    }

    /// Sends until the broker refuses.
    fn fill(&mut self) {
        for _ in 0..20_000 {
            let state = self.send();
            if state != DeliveryState::ACCEPTED {
                return assert_refused(&state);
            }
        }
        panic!("the volume never fills");
    }

    /// Sends until the broker accepts again.
    fn until_accepted(&mut self) {
        support::until("sends are accepted again", || self.send() == DeliveryState::ACCEPTED);
    }

    /// Sends a message and waits for what becomes of it.
    fn send(&mut self) -> DeliveryState {
        self.sent += 1;
        let link = if self.sent.is_multiple_of(KEPT_EVERY) { self.kept } else { self.link };
        let outgoing = Outgoing {
            tag: DeliveryTag::from(self.sent),
            message_format: 0,
            settled: false,
            state: None,
            head: &[],
            tail: &self.tail,
            key: 0,
        };
        while self.wire.amqp.send(link, &outgoing).is_err() {
            self.wire.flush().unwrap();
            self.wire.read().unwrap();
            while self.wire.amqp.next_event().is_some() {}
        }
        loop {
            self.wire.flush().unwrap();
            self.wire.read().unwrap();
            while let Some(event) = self.wire.amqp.next_event() {
                if let Event::Settlement(settlement) = event {
                    let state = settlement.state.as_deref().unwrap().clone();
                    self.accepted += u32::from(link == self.link && state == DeliveryState::ACCEPTED);
                    return state;
                }
            }
        }
    }
}

/// Receives and completes so many messages.
fn receive_and_complete(address: &str, count: u32) {
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
}
