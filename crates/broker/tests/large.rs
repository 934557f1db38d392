//! Large messages: written a piece at a time, so that nobody else waits for them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected ends there"
)]

mod world;

use bytes::Bytes;
use std::sync::Arc;
use vorrang_broker::access::Principal;
use vorrang_broker::api::{Event, Link, Operation};
use vorrang_broker::shard::{Item, PeerId};
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{EntityId, Timestamp};
use vorrang_log::disk::SimDisk;
use world::{Told, World};

/// Many batches of the smallest layout, but three of them fit into its ring.
const LARGE_BYTES: usize = 30_000;

fn accepted(told: &Told) -> u32 {
    let count = |event: &Event| if let Event::Accepted { count, .. } = event { *count } else { 0 };
    told.take().iter().map(count).sum()
}

fn large(number: u8) -> Bytes {
    Bytes::from(vec![number; LARGE_BYTES])
}

/// A second connection to the shard.
fn neighbour(world: &mut World) -> Arc<Told> {
    let first = std::mem::replace(&mut world.peer, PeerId(2));
    let told = Arc::new(Told::default());
    world.item(Item::Open(told.clone()));
    world.item(Item::Become(Arc::new(Principal::operator())));
    world.peer = first;
    told
}

fn send_as_neighbour(world: &mut World, entity: EntityId) {
    let first = std::mem::replace(&mut world.peer, PeerId(2));
    world.send(entity, Bytes::from_static(b"small"));
    world.peer = first;
}

/// The first bytes and lengths of everything in the queue, in order.
fn contents(world: &mut World) -> Vec<(u8, usize)> {
    let (_, mailbox) = world.find("q").unwrap();
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    let events = world.done(Operation::Credit { link: Link(1), limit: 100, drain: false });
    let mut found = Vec::new();
    for event in events {
        if let Event::Deliver { delivery, body, .. } = event {
            let read = || world.core.reader().read(delivery.location, delivery.size).unwrap();
            let body = body.unwrap_or_else(read);
            found.push((body.bytes[0], body.bytes.len()));
        }
    }
    found
}

#[test]
fn a_neighbour_does_not_wait_for_a_large_message() {
    let mut world = World::open(SimDisk::new(1), Timestamp(1_000_000));
    let (entity, _) = world.queue("q", vec![]);
    let told = neighbour(&mut world);
    world.settle();
    world.told.take();
    world.send(entity, large(1));
    let (mut steps, mut served) = (0, 0);
    while accepted(&world.told) == 0 {
        assert!(steps < 1_000, "the large message is never taken");
        send_as_neighbour(&mut world, entity);
        world.step();
        let _ = world.core.flush();
        world.step();
        served += accepted(&told);
        steps += 1;
    }
    // Thirty kilobytes in batches of four.
    assert!(steps > 5, "{steps} steps");
    assert!(served + 2 > steps, "{served} of {steps} small messages were taken meanwhile");
}

#[test]
fn what_a_connection_sends_stays_in_order_and_survives_a_restart() {
    let mut world = World::open(SimDisk::new(1), Timestamp(1_000_000));
    let (entity, _) = world.queue("q", vec![]);
    for number in 0..6 {
        let payload = if number % 2 == 0 { large(number) } else { Bytes::from(vec![number]) };
        world.send(entity, payload);
    }
    for _ in 0..200 {
        world.step();
        let _ = world.core.flush();
        if world.core.next_wake().is_none_or(|wake| wake > world.now) {
            break;
        }
    }
    world.settle();
    assert_eq!(accepted(&world.told), 6);
    let expected = [0, 1, 2, 3, 4, 5].map(|number| (number, if number % 2 == 0 { LARGE_BYTES } else { 1 }));
    let mut again = World::open(world.disk.crash(&[]), world.now);
    assert_eq!(contents(&mut world), expected);
    assert_eq!(contents(&mut again), expected);
}

#[test]
fn a_large_message_of_a_connection_that_is_gone_never_arrives() {
    let mut world = World::open(SimDisk::new(1), Timestamp(1_000_000));
    let (entity, _) = world.queue("q", vec![]);
    let first = std::mem::replace(&mut world.peer, PeerId(2));
    neighbour(&mut world);
    world.peer = PeerId(2);
    world.send(entity, large(1));
    world.step();
    world.item(Item::Close);
    world.peer = first;
    world.send(entity, Bytes::from_static(b"small"));
    world.settle();
    assert_eq!(contents(&mut world), [(b's', 5)]);
}
