//! A backlog larger than the ring, or than what should be in memory: segments are emptied into extents, memory is left,
//! and everything comes back in order, also after a restart.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected ends there"
)]

mod world;

use bytes::Bytes;
use smallvec::smallvec;
use std::collections::BTreeSet;
use std::sync::Arc;
use vorrang_broker::access::Principal;
use vorrang_broker::api::{Acceptance, Event, Link, Operation, Refused};
use vorrang_broker::shard::{Item, PeerId};
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::entity::Setting;
use vorrang_engine::{Command, EntityId, Incoming, Level, Limits, MailboxId, Span, Timestamp};
use vorrang_filter::{Filter, MapMessage, Parameters, Sql};
use vorrang_log::disk::{Disk, FileName, SimDisk};
use world::World;

const MESSAGES: u64 = 9_000;

fn send(world: &mut World, entity: EntityId, id: u64) {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.resize(if id.is_multiple_of(500) { 5_000 } else { 108 }, 7);
    let mut incoming = Incoming::new(Bytes::from(bytes), Arc::new(MapMessage::new()));
    incoming.priority = Some(u8::try_from(id % 3).unwrap());
    world.ask(Operation::Send {
        entity,
        via: None,
        transaction: None,
        messages: smallvec![incoming],
        acceptance: Acceptance::Plain,
    });
}

/// Sends the whole backlog, letting the shard empty its segments as it goes.
fn fill(world: &mut World, entity: EntityId) {
    let mut accepted = 0;
    for id in 0..MESSAGES {
        send(world, entity, id);
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

fn keep_house(world: &mut World) {
    world.settle();
    world.advance(Span::seconds(3));
    while world.evacuate() {
        world.settle();
        world.snapshot();
        world.snapshot();
        world.settle();
    }
    if world.chill() {
        world.settle();
    }
}

/// Receives and completes everything, and returns the numbers in the order they came.
fn drain(world: &mut World, mailbox: MailboxId) -> Vec<u64> {
    drain_some(world, mailbox, usize::MAX)
}

/// The same, with so many.
fn drain_some(world: &mut World, mailbox: MailboxId, count: usize) -> Vec<u64> {
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    let mut order = Vec::new();
    while order.len() < count {
        let limit = u32::try_from(count.min(order.len() + 50)).unwrap();
        world.ask(Operation::Credit { link: Link(1), limit, drain: false });
        world.settle();
        let before = order.len();
        for event in world.told.take() {
            match event {
                Event::Deliver { delivery, body, .. } => {
                    let read = || world.core.reader().read(delivery.location, delivery.size).unwrap();
                    let body = body.unwrap_or_else(read);
                    order.push(u64::from_le_bytes(body.bytes[..8].try_into().unwrap()));
                    world.settle_message(mailbox, delivery.token.unwrap(), Settlement::Complete);
                }
                Event::Reply { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        if order.len() == before {
            return order;
        }
        keep_house(world);
        world.told.take();
    }
    world.ask(Operation::Detach { link: Link(1) });
    world.settle();
    world.told.take();
    order
}

fn expected() -> Vec<u64> {
    let level = |level: u64| (0..MESSAGES).filter(move |id| id % 3 == level);
    level(2).chain(level(1)).chain(level(0)).collect()
}

fn filled() -> (World, EntityId, MailboxId) {
    filled_within(&Limits::default())
}

/// Limits under which messages leave memory only with their segment, and such under which they leave it long before.
fn both() -> [Limits; 2] {
    [Limits::default(), Limits { hot_records: 300, ..Limits::default() }]
}

fn filled_within(limits: &Limits) -> (World, EntityId, MailboxId) {
    let mut world = World::open_within(SimDisk::new(1), Timestamp(1_000_000), limits.clone());
    let rescue_off = vec![Setting::Policy(vorrang_engine::entity::priority::Policy::Strict), no_rescue()];
    let (entity, mailbox) = world.queue("q", rescue_off);
    fill(&mut world, entity);
    (world, entity, mailbox)
}

fn no_rescue() -> Setting {
    use vorrang_engine::entity::priority::{Rescue, Share};
    Setting::Rescue(Rescue { after: Span::FOREVER, share: Share::NONE })
}

#[test]
fn a_backlog_leaves_memory_and_comes_back_in_order() {
    for (limits, most) in both().iter().zip([MESSAGES / 2, 600]) {
        let (mut world, _, mailbox) = filled_within(limits);
        let in_memory = u64::from(world.core.state().messages_in_memory());
        assert!(in_memory < most, "{in_memory} of {MESSAGES} messages are in memory");
        assert_eq!(drain(&mut world, mailbox), expected());
        assert_eq!(world.core.state().messages_in_memory(), 0);
    }
}

#[test]
fn messages_leave_memory_and_their_payloads_stay_where_they_are() {
    // So few that no segment has to be emptied, and 67 of each level.
    let limits = Limits { hot_records: 150, ..Limits::default() };
    let mut world = World::open_within(SimDisk::new(1), Timestamp(1_000_000), limits.clone());
    let (entity, mailbox) = world.queue("q", vec![no_rescue()]);
    for id in 0..201 {
        send(&mut world, entity, id);
    }
    world.settle();
    assert_eq!(world.core.state().messages_in_memory(), 201);
    assert!(world.chill() && !world.evacuate());
    world.settle();
    // Large messages are as plain as small ones.
    assert_eq!(world.core.state().messages_in_memory(), 0);
    let extents: Vec<FileName> = extents(&world);
    assert_eq!(extents.len(), 1);
    let bytes = world.disk.contents(extents[0]).unwrap().len();
    assert!(bytes < 201 * 36 + 3 * 4_096, "{bytes} bytes, and the payloads alone are {}", 201 * 108);
    // A snapshot that knows of the run, and a start from it.
    world.snapshot();
    world.snapshot();
    let mut world = World::open_within(world.disk.crash(&[]), world.now, limits);
    assert_eq!(world.core.state().messages_in_memory(), 0);
    let covered = |world: &mut World| {
        for _ in 0..3 {
            world.snapshot();
            world.settle();
        }
    };
    // Snapshots let everything go that nobody needs; where messages are written down is not among that.
    covered(&mut world);
    let mut order = Vec::new();
    for _ in 0..14 {
        order.extend(drain_some(&mut world, mailbox, 10));
        covered(&mut world);
    }
    order.extend(drain(&mut world, mailbox));
    let expected: Vec<u64> = expected().into_iter().filter(|id| *id < 201).collect();
    assert_eq!(order, expected);
    covered(&mut world);
    assert_eq!(self::extents(&world), [], "what was written down is no longer needed");
}

#[test]
fn after_a_stop_in_good_order_there_is_next_to_nothing_to_read() {
    let mut world = World::open(SimDisk::new(1), Timestamp(1_000_000));
    let (entity, mailbox) = world.queue("q", vec![no_rescue()]);
    for id in 0..400 {
        send(&mut world, entity, id);
    }
    world.settle();
    assert_eq!(world.core.state().messages_in_memory(), 400);
    world.core.stop().unwrap();
    let mut world = World::open(world.disk.crash(&[]), world.now);
    assert_eq!(world.core.state().messages_in_memory(), 0);
    let order = drain(&mut world, mailbox);
    let expected: Vec<u64> = expected().into_iter().filter(|id| *id < 400).collect();
    assert_eq!(order, expected);
}

#[test]
fn what_a_selector_looks_through_stays_in_memory() {
    let limits = Limits { hot_records: 150, ..Limits::default() };
    let mut world = World::open_within(SimDisk::new(1), Timestamp(1_000_000), limits);
    let (entity, mailbox) = world.queue("q", vec![no_rescue()]);
    for id in 0..201 {
        send(&mut world, entity, id);
    }
    let nothing = Sql::parse("colour = 'red'", Parameters::new()).unwrap();
    world.ask(Operation::Attach {
        link: Link(1),
        mailboxes: smallvec![mailbox],
        mode: ReceiveMode::PeekLock,
        min_level: Level(0),
        selector: Some(Arc::new(Filter::from(nothing))),
    });
    world.ask(Operation::Credit { link: Link(1), limit: 1, drain: false });
    world.settle();
    assert!(world.chill());
    world.settle();
    assert_eq!(world.core.state().messages_in_memory(), 201);
}

fn extents(world: &World) -> Vec<FileName> {
    world.disk.list().unwrap().into_iter().filter(|file| matches!(file, FileName::Extent(_))).collect()
}

#[test]
fn a_backlog_on_disk_survives_a_restart() {
    for limits in both() {
        let (world, _, mailbox) = filled_within(&limits);
        let mut world = World::open_within(world.disk.crash(&[]), world.now, limits);
        assert_eq!(drain(&mut world, mailbox), expected());
    }
}

#[test]
fn what_is_about_to_be_received_is_not_moved_because_released_segments_wait_for_a_snapshot() {
    let mut world = World::open(SimDisk::new(1), Timestamp(1_000_000));
    let (entity, mailbox) = world.queue("q", vec![no_rescue()]);
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    let (mut limit, mut ring) = (0, world.condition().ring);
    while ring.used_segments <= ring.ring_segments / 2 {
        // One goes, and one is always there.
        send(&mut world, entity, 1);
        limit += u32::from(world.core.state().messages_in_memory() > 1);
        world.ask(Operation::Credit { link: Link(1), limit, drain: false });
        world.settle();
        for event in world.told.take() {
            if let Event::Deliver { delivery, .. } = event {
                world.settle_message(mailbox, delivery.token.unwrap(), Settlement::Complete);
            }
        }
        world.settle();
        assert!(!world.evacuate(), "{ring:?}");
        ring = world.condition().ring;
    }
    assert!(world.core.state().messages_in_memory() > 0);
}

#[test]
fn extents_and_segments_are_given_back_when_everything_is_consumed() {
    for limits in both() {
        let (mut world, _, mailbox) = filled_within(&limits);
        drain(&mut world, mailbox);
        for _ in 0..3 {
            world.snapshot();
            world.settle();
        }
        assert_eq!(extents(&world), [], "{:?}", world.disk_files());
    }
}

#[test]
fn survivors_of_extents_move_together_when_the_rest_is_gone() {
    let (mut world, _, mailbox) = filled();
    let bytes = |world: &World| -> usize {
        let extents = world.disk.list().unwrap().into_iter();
        extents
            .filter(|file| matches!(file, FileName::Extent(_)))
            .map(|file| world.disk.contents(file).unwrap().len())
            .sum()
    };
    let full = bytes(&world);
    // Two of three levels are received and completed; what is left lies in every extent.
    let expected = expected();
    let got = drain_some(&mut world, mailbox, expected.len() * 2 / 3);
    for _ in 0..40 {
        keep_house(&mut world);
        world.snapshot();
        world.snapshot();
        world.settle();
    }
    let left = bytes(&world);
    assert!(left < full / 2, "{left} of {full} bytes are left for a third of the messages");
    // And after a restart they are all there, in order.
    let mut world = World::open(world.disk.crash(&[]), world.now);
    let rest = drain(&mut world, mailbox);
    assert_eq!([got, rest].concat(), expected);
}

/// A move takes several steps. Those that arrive first may be completed before the others arrive; the
/// extent must not be taken for empty then.
#[test]
fn an_extent_is_kept_while_messages_are_on_their_way_to_it() {
    let mut world = World::open(SimDisk::new(3), Timestamp(1_000_000));
    let (entity, mailbox) = world.queue("q", vec![no_rescue()]);
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    world.ask(Operation::Credit { link: Link(1), limit: 150, drain: false });
    let (mut sent, mut tokens, mut locked) = (0, Vec::new(), BTreeSet::new());
    let commands = loop {
        for _ in 0..20 {
            sent += 1;
            send(&mut world, entity, sent);
        }
        world.settle();
        for event in world.told.take() {
            if let Event::Deliver { delivery, .. } = event {
                locked.insert(delivery.sequence);
                tokens.push(delivery.token.unwrap());
            }
        }
        if let Some(Ok(evacuation)) = world.core.evacuation_if_due() {
            break evacuation.run().unwrap().commands;
        }
    };
    let moves = commands.into_iter().flat_map(|command| match command {
        Command::Move { moves } => moves,
        _ => Vec::new(),
    });
    let (first, rest): (Vec<_>, Vec<_>) = moves.partition(|moved| locked.contains(&moved.sequence));
    assert!(first.len() == 150 && rest.len() > 20, "{} {}", first.len(), rest.len());
    world.core.take_over(vec![Command::Move { moves: first }]);
    world.settle();
    // From here on the shard is busy with requests, and the second half of the move has to wait.
    world.core.take_over(vec![Command::Move { moves: rest }]);
    for token in tokens {
        world.settle_message(mailbox, token, Settlement::Complete);
    }
    for _ in 0..400 {
        send(&mut world, entity, 1);
    }
    for _ in 0..40 {
        world.step();
        let _ = world.core.flush();
        world.snapshot();
    }
    world.settle();
    world.told.take();
    world.ask(Operation::Credit { link: Link(1), limit: 1_000_000, drain: false });
    world.settle();
    let mut received = 0;
    for event in world.told.take() {
        if let Event::Deliver { delivery, .. } = event {
            world.core.reader().read(delivery.location, delivery.size).unwrap();
            received += 1;
        }
    }
    assert!(received > 0);
}

/// Sends until the ring is full, without emptying it. Returns how many were accepted and how many refused.
fn flood(world: &mut World, entity: EntityId, count: u64) -> (u64, usize) {
    let (mut accepted, mut refused) = (0, 0);
    for id in 0..count {
        send(world, entity, id);
        world.settle();
        for event in world.told.take() {
            match event {
                Event::Accepted { count, .. } => accepted += u64::from(count),
                Event::Refused { .. } => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    (accepted, refused)
}

#[test]
fn senders_wait_while_the_ring_is_full_and_others_go_on() {
    let mut world = World::open(SimDisk::new(5), Timestamp(1_000_000));
    let (entity, mailbox) = world.queue("q", vec![no_rescue()]);
    let (accepted, refused) = flood(&mut world, entity, 400);
    assert!(accepted < 400, "the ring is small");
    assert_eq!(refused, 0, "whoever sends waits");
    // Somebody else receives and settles meanwhile.
    let sender = std::mem::replace(&mut world.peer, PeerId(2));
    let outlet = Arc::new(world::Told::default());
    world.item(Item::Open(outlet.clone()));
    world.item(Item::Become(Arc::new(Principal::operator())));
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    world.ask(Operation::Credit { link: Link(1), limit: 10, drain: false });
    world.settle();
    let delivered = outlet.take();
    let tokens: Vec<_> = delivered
        .iter()
        .filter_map(|event| if let Event::Deliver { delivery, .. } = event { delivery.token } else { None })
        .collect();
    for token in &tokens {
        world.settle_message(mailbox, *token, Settlement::Complete);
    }
    world.settle();
    let settled = outlet.take().iter().filter(|event| matches!(event, Event::Reply { .. })).count();
    assert_eq!((tokens.len(), settled), (10, 10));
    world.peer = sender;
    // Room is made: what waited is taken, in the order it was sent.
    world.told.take();
    for _ in 0..400 {
        keep_house(&mut world);
    }
    let late: u64 = world
        .told
        .take()
        .iter()
        .map(|event| if let Event::Accepted { count, .. } = event { u64::from(*count) } else { 0 })
        .sum();
    assert_eq!(accepted + late, 400);
}

#[test]
fn senders_are_refused_when_the_ring_stays_full_for_long() {
    let mut world = World::open(SimDisk::new(5), Timestamp(1_000_000));
    let (entity, _) = world.queue("q", vec![no_rescue()]);
    let (accepted, _) = flood(&mut world, entity, 400);
    world.advance(Span::seconds(31));
    world.settle();
    let refused = world
        .told
        .take()
        .iter()
        .filter(|event| matches!(event, Event::Refused { refused: Refused::NoRoom(_), .. }))
        .count();
    assert_eq!(accepted + u64::try_from(refused).unwrap(), 400);
}
