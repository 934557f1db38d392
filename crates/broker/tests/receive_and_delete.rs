//! Receiving and deleting: what is gone from the disk must be on its way whole.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets something unexpected ends there")]

mod world;

use bytes::Bytes;
use vorrang_broker::api::{Answer, Event, Link, Operation};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::{LockToken, Sequence, Timestamp};
use vorrang_log::disk::SimDisk;
use world::World;

#[test]
fn a_message_that_is_removed_by_being_sent_brings_its_bytes_along() {
    let mut world = World::open(SimDisk::new(1), Timestamp(1_000_000));
    let (entity, mailbox) = world.queue("q", Vec::new());
    world.send(entity, Bytes::from_static(b"precious"));
    world.settle();
    // After a restart the bytes are on the disk alone.
    let mut world = World::open(world.disk.clone(), world.now);
    world.attach(1, mailbox, ReceiveMode::ReceiveAndDelete);
    let events = world.done(Operation::Credit { link: Link(1), limit: 1, drain: false });
    let bodies: Vec<_> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::Deliver { body, .. } => Some(body.map(|body| body.bytes)),
            _ => None,
        })
        .collect();
    assert_eq!(bodies, [Some(Bytes::from_static(b"precious"))]);
}

#[test]
fn a_deferred_message_that_is_removed_by_being_read_brings_its_bytes_along() {
    let mut world = World::open(SimDisk::new(1), Timestamp(1_000_000));
    let (entity, mailbox) = world.queue("q", Vec::new());
    world.send(entity, Bytes::from_static(b"precious"));
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    let (token, sequence) =
        delivered(world.done(Operation::Credit { link: Link(1), limit: 1, drain: false }));
    world.settle_message(mailbox, token, Settlement::Defer { changes: None });
    world.settle();
    // After a restart the bytes are on the disk alone.
    let mut world = World::open(world.disk.clone(), world.now);
    let events = world.done(Operation::ReceiveDeferred {
        mailbox,
        sequences: vec![sequence],
        mode: ReceiveMode::ReceiveAndDelete,
        link: None,
    });
    let bodies: Vec<_> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::Answer { answer: Answer::Received(messages), .. } => Some(messages),
            _ => None,
        })
        .flatten()
        .map(|received| received.body.map(|body| body.bytes))
        .collect();
    assert_eq!(bodies, [Some(Bytes::from_static(b"precious"))]);
}

fn delivered(events: Vec<Event>) -> (LockToken, Sequence) {
    let found = events.into_iter().find_map(|event| match event {
        Event::Deliver { delivery, .. } => Some((delivery.token?, delivery.sequence)),
        _ => None,
    });
    found.unwrap()
}
