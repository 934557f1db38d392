//! Decisions that fill more than one batch: nothing of them is told before all of them is durable.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected ends there"
)]

mod world;

use bytes::Bytes;
use vorrang_broker::api::{Event, Link, Operation};
use vorrang_engine::command::ReceiveMode;
use vorrang_engine::{EntityId, Reply, Timestamp, TransactionId};
use vorrang_log::disk::SimDisk;
use world::World;

/// Two of them fill a batch of the smallest layout.
const MESSAGE_BYTES: usize = 1_500;
const MESSAGES: u32 = 5;

fn delivered(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Deliver { .. })).count()
}

/// A transaction with messages that do not fit into one batch, ready to be committed.
fn prepared(world: &mut World, entity: EntityId) -> TransactionId {
    let events = world.done(Operation::Declare);
    let [Event::Reply { reply: Reply::Declared { transaction }, .. }] = &events[..] else {
        panic!("{events:?}");
    };
    for _ in 0..MESSAGES {
        let mut operation = world::send(entity, Bytes::from(vec![7; MESSAGE_BYTES]));
        if let Operation::Send { transaction: joined, .. } = &mut operation {
            *joined = Some(*transaction);
        }
        world.done(operation);
    }
    *transaction
}

#[test]
fn a_message_is_not_delivered_before_the_end_of_its_transaction_is_durable() {
    let mut world = World::open(SimDisk::new(1), Timestamp(1_000_000));
    let (entity, mailbox) = world.queue("q", vec![]);
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    world.done(Operation::Credit { link: Link(1), limit: 100, drain: false });
    let transaction = prepared(&mut world, entity);
    world.ask(Operation::Discharge { transaction, rollback: false });
    // Committing it needs more batches than may wait, so the first ones become durable on the way.
    let calls = world.disk.calls();
    world.step();
    assert!(world.disk.calls() > calls, "the whole transaction fitted into what may wait");
    world.step();
    assert_eq!(delivered(&world.told.take()), 0);
    let mut crashed = World::open(world.disk.crash(&[]), world.now);
    let (_, mailbox) = crashed.find("q").unwrap();
    crashed.attach(1, mailbox, ReceiveMode::PeekLock);
    let events = crashed.done(Operation::Credit { link: Link(1), limit: 100, drain: false });
    assert_eq!(delivered(&events), 0);
    world.settle();
    assert_eq!(delivered(&world.told.take()), MESSAGES.try_into().unwrap());
}
