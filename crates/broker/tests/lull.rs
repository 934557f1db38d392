//! A shard that has nothing to do gives up what it kept for its work, and nobody is told anything else for it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets something unexpected ends there")]

mod world;

use bytes::Bytes;
use vorrang_broker::api::{Event, Link, Operation};
use vorrang_broker::shard::Body;
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{EntityId, MailboxId, Span, Timestamp};
use vorrang_log::Options;
use vorrang_log::disk::SimDisk;
use world::{World, settings};

const BURST: u32 = 1_100;

fn payload(id: u32) -> Bytes {
    Bytes::from(id.to_le_bytes().to_vec())
}

fn opened() -> (World, EntityId, MailboxId) {
    let log = Options { ring_bytes: 4 << 20, ..Options::tiny() };
    let mut world = World::open_with(SimDisk::new(1), Timestamp(1_000_000), settings(log));
    let (entity, mailbox) = world.queue("q", Vec::new());
    (world, entity, mailbox)
}

fn burst(world: &mut World, entity: EntityId, first: u32) {
    for id in first..first + BURST {
        world.send(entity, payload(id));
        if id % 10 == 9 {
            world.settle();
        }
    }
    world.settle();
}

/// Receives up to so many, and says which came with their bytes at hand.
fn receive(world: &mut World, limit: u32) -> Vec<(u32, bool)> {
    let events = world.done(Operation::Credit { link: Link(1), limit, drain: false });
    let deliveries = events.into_iter().filter_map(|event| match event {
        Event::Deliver { delivery, body, .. } => Some((delivery, body)),
        _ => None,
    });
    deliveries
        .map(|(delivery, body)| {
            let at_hand = body.is_some();
            let stored = || world.core.reader().read(delivery.location, delivery.size).unwrap();
            let Body { bytes, .. } = body.unwrap_or_else(stored);
            (u32::from_le_bytes(*bytes.first_chunk().unwrap()), at_hand)
        })
        .collect()
}

#[test]
fn a_burst_is_followed_by_one_lull_a_second_later() {
    let (mut world, entity, _) = opened();
    burst(&mut world, entity, 0);
    assert!(!world.core.slacken_if_due(), "it was busy just now");
    world.advance(Span(999));
    world.settle();
    assert!(!world.core.slacken_if_due());
    world.advance(Span(1));
    world.settle();
    assert!(world.core.slacken_if_due());
    world.advance(Span::seconds(60));
    world.settle();
    assert!(!world.core.slacken_if_due(), "nothing was done since");
    burst(&mut world, entity, BURST);
    world.advance(Span::seconds(1));
    world.settle();
    assert!(world.core.slacken_if_due());
}

#[test]
fn what_was_at_hand_is_read_back_and_what_comes_after_is_at_hand_again() {
    let (mut world, entity, mailbox) = opened();
    burst(&mut world, entity, 0);
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    world.settle();
    world.told.take();
    let first = receive(&mut world, 100);
    assert!(first.iter().all(|(_, at_hand)| *at_hand), "they came just now");
    world.core.slacken();
    let second = receive(&mut world, BURST);
    assert!(second.iter().all(|(_, at_hand)| !at_hand));
    burst(&mut world, entity, BURST);
    let third = receive(&mut world, 2 * BURST);
    assert!(third.iter().all(|(_, at_hand)| *at_hand));
    let received = [first, second, third].into_iter().flatten().map(|(id, _)| id);
    assert!(received.eq(0..2 * BURST));
}

#[test]
fn memory_can_be_given_up_while_commits_are_on_their_way() {
    let (mut world, entity, mailbox) = opened();
    for id in 0..BURST {
        world.send(entity, payload(id));
        if id % 10 == 9 {
            world.step();
            world.core.slacken();
            world.settle();
        }
    }
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    world.settle();
    world.told.take();
    let received = receive(&mut world, BURST).into_iter().map(|(id, _)| id);
    assert!(received.eq(0..BURST));
}
