//! A backlog of one lane larger than the ring: its segments stay as they are, outside the ring.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected ends there"
)]

mod world;

use bytes::Bytes;
use vorrang_broker::api::{Event, Link, Operation};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::{EntityId, Limits, MailboxId, Span, Timestamp};
use vorrang_log::disk::SimDisk;
use world::World;

const MESSAGES: u64 = 1_200;

/// So long that segments are full of them, and not of what lies between.
fn payload(id: u64) -> Bytes {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.resize(1_940, 7);
    Bytes::from(bytes)
}

fn keep_house(world: &mut World) {
    world.settle();
    world.advance(Span::seconds(3));
    while world.evacuate() {
        world.settle();
    }
    world.chill();
    world.snapshot();
    world.settle();
}

/// Sends a backlog of more than twice the ring, letting the shard keep house as it goes.
fn fill(world: &mut World, entity: EntityId) {
    let mut accepted = 0;
    for id in 0..MESSAGES {
        world.send(entity, payload(id));
        if id % 20 == 19 {
            keep_house(world);
            for event in world.told.take() {
                match event {
                    Event::Accepted { count, .. } => accepted += u64::from(count),
                    other => panic!("after {accepted} messages: {other:?}"),
                }
            }
        }
    }
    assert_eq!(accepted, MESSAGES);
}

fn filled(limits: Limits) -> (World, EntityId, MailboxId) {
    let mut world = World::open_within(SimDisk::new(1), Timestamp(1_000_000), limits);
    let (entity, mailbox) = world.queue("q", Vec::new());
    fill(&mut world, entity);
    (world, entity, mailbox)
}

/// Receives what there is, fifty at a time, and completes those that `goes` says. Returns what was received, and how much
/// of it lay in extents.
fn receive(world: &mut World, mailbox: MailboxId, goes: impl Fn(u64) -> bool) -> (Vec<u64>, usize) {
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    let (mut order, mut moved) = (Vec::new(), 0);
    loop {
        let limit = u32::try_from(order.len() + 50).unwrap();
        world.ask(Operation::Credit { link: Link(1), limit, drain: false });
        world.settle();
        let before = order.len();
        for event in world.told.take() {
            if let Event::Deliver { delivery, body, .. } = event {
                let read = || world.core.reader().read(delivery.location, delivery.size).unwrap();
                let body = body.unwrap_or_else(read);
                let id = u64::from_le_bytes(body.bytes[..8].try_into().unwrap());
                order.push(id);
                let region = vorrang_log::Location::from_raw(delivery.location.0).region();
                moved += usize::from(region.is_extent());
                if goes(id) {
                    world.settle_message(mailbox, delivery.token.unwrap(), Settlement::Complete);
                }
            }
        }
        world.settle();
        world.snapshot();
        world.settle();
        world.told.take();
        if order.len() == before {
            return (order, moved);
        }
    }
}

/// Limits under which nothing leaves memory by itself, and such under which nearly everything does.
fn both() -> [Limits; 2] {
    [Limits::default(), Limits { hot_records: 100, ..Limits::default() }]
}

#[test]
fn a_backlog_of_one_lane_stays_where_it_was_written_and_the_ring_goes_on() {
    // The first segment is short and is emptied; so are segments of this size that have a chilling written into them.
    for (limits, moved_max) in both().into_iter().zip([20, 600]) {
        let (mut world, _, mailbox) = filled(limits);
        let ring = world.condition().ring;
        let total = ring.used_segments + ring.resting_segments;
        assert!(total > 2 * ring.ring_segments, "{ring:?}");
        assert!(ring.used_segments <= ring.ring_segments, "{ring:?}");
        let (order, moved) = receive(&mut world, mailbox, |_| true);
        assert!(order == (0..MESSAGES).collect::<Vec<_>>(), "out of order");
        assert!(moved < moved_max, "{moved} were moved");
        for _ in 0..3 {
            keep_house(&mut world);
        }
        let ring = world.condition().ring;
        assert_eq!((ring.resting_segments, ring.live_segments <= 3), (0, true), "{ring:?}");
    }
}

#[test]
fn after_a_crash_segments_rest_again_and_sends_are_taken_at_once() {
    for limits in both() {
        let (world, entity, mailbox) = filled(limits.clone());
        let mut world = World::open_within(world.disk.crash(&[]), world.now, limits);
        let ring = world.condition().ring;
        assert!(ring.resting_segments > 0 && ring.used_segments < ring.ring_segments, "{ring:?}");
        world.send(entity, payload(MESSAGES));
        world.settle();
        assert!(matches!(world.told.take()[..], [Event::Accepted { count: 1, .. }]));
        let (order, _) = receive(&mut world, mailbox, |_| true);
        assert!(order == (0..=MESSAGES).collect::<Vec<_>>(), "out of order");
    }
}

#[test]
fn a_segment_of_which_little_is_left_does_not_rest_for_ever() {
    let (mut world, _, mailbox) = filled(Limits::default());
    let before = world.condition().ring.resting_segments;
    assert_eq!(receive(&mut world, mailbox, |id| id % 10 != 0).0.len(), 1_200);
    world.ask(Operation::Detach { link: Link(1) });
    for _ in 0..before {
        keep_house(&mut world);
    }
    let after = world.condition().ring.resting_segments;
    assert!(after < before / 4, "{before} segments rested, {after} still do");
    let left: Vec<u64> = (0..MESSAGES).filter(|id| id % 10 == 0).collect();
    let (order, moved) = receive(&mut world, mailbox, |_| true);
    assert!(order == left, "out of order");
    assert!(moved > left.len() / 2, "{moved} of {} were moved", left.len());
}

#[test]
fn what_few_queues_send_goes_past_the_cache_and_what_many_send_does_not() {
    for (queues, past) in [(1, true), (3, true), (4, false)] {
        let mut world = World::open(SimDisk::new(1), Timestamp(1_000_000));
        let entities: Vec<EntityId> =
            (0..queues).map(|number| world.queue(&format!("q{number}"), Vec::new()).0).collect();
        world.settle();
        let before = world.disk.written_past();
        for entity in entities {
            world.send(entity, Bytes::from(vec![7; 300]));
        }
        world.settle();
        assert_eq!(world.disk.written_past() > before, past, "{queues} queues in one commit");
    }
}
