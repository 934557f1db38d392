//! What only developers do to a shard: a namespace kept and put back, also across a crash; a clock set ahead;
//! things that go wrong on purpose.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected ends there"
)]

mod world;

use bytes::Bytes;
use smallvec::smallvec;
use std::sync::Arc;
use vorrang_broker::access::{Grant, Principal, Scope};
use vorrang_broker::api::{
    Acceptance, Answer, Develop, Event, FaultKind, Link, NewFault, Only, Operation, Question, Refused,
};
use vorrang_broker::shard::Item;
use vorrang_engine::command::{Chill, ReceiveMode, Settlement};
use vorrang_engine::entity::authorization::Rights;
use vorrang_engine::entity::{self, EntityPath, Setting};
use vorrang_engine::{
    Command, EntityId, Fact, Incoming, Limits, LockToken, MailboxId, Refusal, RunId, Sequence, Span,
    Timestamp,
};
use vorrang_filter::MapMessage;
use vorrang_log::dice::Dice;
use vorrang_log::disk::SimDisk;
use world::World;

const START: Timestamp = Timestamp(1_000_000);

fn world() -> World {
    World::open(SimDisk::new(1), START)
}

/// One from whose memory messages soon leave.
fn small_world() -> World {
    World::open_within(SimDisk::new(1), START, Limits { hot_records: 200, ..Limits::default() })
}

fn develop(world: &mut World, develop: Develop) -> Result<Option<Answer>, Refused> {
    let tag = world.ask(Operation::Develop(develop));
    world.settle();
    let told = world.told.take().into_iter().find_map(|event| match event {
        Event::Answer { tag: of, answer } if of == tag => Some(Ok(Some(answer))),
        Event::Reply { tag: of, .. } if of == tag => Some(Ok(None)),
        Event::Refused { tag: of, refused } if of == tag => Some(Err(refused)),
        _ => None,
    });
    told.expect("what is asked is answered")
}

fn capture(world: &mut World) -> Bytes {
    match develop(world, Develop::Capture) {
        Ok(Some(Answer::Captured(captured))) => captured.image,
        other => panic!("{other:?}"),
    }
}

fn restore(world: &mut World, image: &Bytes) {
    let done = develop(world, Develop::Restore { image: image.clone() });
    assert!(matches!(done, Ok(None)), "{done:?}");
    assert_eq!((world.core.state().misfits(), world.core.state().audit()), (0, Vec::new()));
}

fn send(world: &mut World, entity: EntityId, text: &str) {
    let told = world.done(world::send(entity, Bytes::from(text.to_owned())));
    assert!(told.iter().any(|event| matches!(event, Event::Accepted { .. })), "{told:?}");
}

/// Number, state and content of every message.
fn messages(world: &mut World, mailbox: MailboxId) -> Vec<(u64, String, usize, String)> {
    let question =
        Question::Peek { mailbox, from: Sequence(0), max: 200, session: None, only: Only::default() };
    let told = world.done(Operation::Ask(question));
    let Some(Event::Answer { answer: Answer::Peeked(peeked), .. }) = told.into_iter().next() else {
        return Vec::new();
    };
    let shown = peeked.messages.iter().map(|delivery| {
        let body = world.core.reader().read(delivery.location, delivery.size).unwrap();
        let text = String::from_utf8_lossy(&body.bytes[..body.bytes.len().min(8)]).into_owned();
        (delivery.sequence.0, format!("{:?}", delivery.state), body.bytes.len(), text)
    });
    shown.collect()
}

/// Locks the next message.
fn lock(world: &mut World, link: u32, mailbox: MailboxId) -> LockToken {
    world.attach(link, mailbox, ReceiveMode::PeekLock);
    world.ask(Operation::Credit { link: Link(link), limit: 1, drain: false });
    world.settle();
    let delivered = world.told.take().into_iter().find_map(|event| match event {
        Event::Deliver { delivery, .. } => delivery.token,
        _ => None,
    });
    delivered.expect("a message is delivered")
}

/// A queue with one message of each sort: waiting, locked, deferred, of many records.
fn busy_queue(world: &mut World) -> (EntityId, MailboxId, LockToken) {
    let (entity, mailbox) = world.queue("q", vec![Setting::LockDuration(Span::seconds(60))]);
    for text in ["deferred", "locked", "waiting"] {
        send(world, entity, text);
    }
    send(world, entity, &"large".repeat(4_000));
    let deferred = lock(world, 1, mailbox);
    world.settle_message(mailbox, deferred, Settlement::Defer { changes: None });
    let locked = lock(world, 2, mailbox);
    (entity, mailbox, locked)
}

#[test]
fn a_namespace_comes_back_as_it_was_with_every_message_in_its_state() {
    let mut world = world();
    let (entity, mailbox, locked) = busy_queue(&mut world);
    let before = messages(&mut world, mailbox);
    assert_eq!(before.len(), 4);
    let image = capture(&mut world);
    world.settle_message(mailbox, locked, Settlement::Complete);
    send(&mut world, entity, "later");
    let (later, _) = world.queue("later", vec![]);
    restore(&mut world, &image);
    assert_eq!(messages(&mut world, mailbox), before);
    assert_eq!(world.find("later"), None);
    // The lock holds as it did, and whoever has its token can settle.
    let tag = world.settle_message(mailbox, locked, Settlement::Complete);
    world.settle();
    let told = world.told.take();
    assert!(told.iter().any(|event| matches!(event, Event::Reply { tag: of, .. } if *of == tag)), "{told:?}");
    // A number once given never means another entity.
    let (again, _) = world.queue("again", vec![]);
    assert!(again > later);
    // All of it survives a restart, twice: from the log, and from a snapshot.
    for snapshot in [false, true] {
        let here = messages(&mut world, mailbox);
        if snapshot {
            world.snapshot();
            world.settle();
        }
        world = World::open(world.disk.crash(&[]), world.now);
        assert_eq!(messages(&mut world, mailbox), here);
        assert_eq!((world.core.state().misfits(), world.core.state().audit()), (0, Vec::new()));
    }
}

#[test]
fn a_crash_while_it_is_put_back_leaves_the_old_or_the_new_and_nothing_between() {
    let (mut old_seen, mut new_seen) = (0, 0);
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let mut world = world();
        let (entity, mailbox, locked) = busy_queue(&mut world);
        let new = messages(&mut world, mailbox);
        let image = capture(&mut world);
        world.settle_message(mailbox, locked, Settlement::Complete);
        for number in 0..5 {
            send(&mut world, entity, &format!("after {number}"));
        }
        let old = messages(&mut world, mailbox);
        world.ask(Operation::Develop(Develop::Restore { image }));
        world.step();
        if dice.below(2) == 0 {
            let _ = world.core.flush();
        }
        let mut reopened = World::open(world.crashed_disk(&mut dice), world.now);
        let found = messages(&mut reopened, mailbox);
        assert!(found == old || found == new, "seed {seed}: {found:?}");
        old_seen += u32::from(found == old);
        new_seen += u32::from(found == new);
        let state = reopened.core.state();
        assert_eq!((state.misfits(), state.audit()), (0, Vec::new()), "seed {seed}");
    }
    assert!(old_seen > 0 && new_seen > 0, "both were seen: {old_seen}, {new_seen}");
}

#[test]
fn receivers_end_when_the_namespace_becomes_another_and_new_ones_receive() {
    let mut world = world();
    let (entity, mailbox, _) = busy_queue(&mut world);
    let image = capture(&mut world);
    world.attach(7, mailbox, ReceiveMode::PeekLock);
    world.settle();
    world.told.take();
    world.ask(Operation::Develop(Develop::Restore { image }));
    world.settle();
    let ended: Vec<u32> = world
        .told
        .take()
        .iter()
        .filter_map(|event| match event {
            Event::Detached { link, refused: Refused::Ended { .. } } => Some(link.0),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [1, 2, 7]);
    send(&mut world, entity, "more");
    lock(&mut world, 8, mailbox);
}

/// Sends until a run of messages has left memory, and says how many there are. What the shard is told of those that
/// leave goes through `told`.
fn fill_until_some_lie_on_disk(
    world: &mut World,
    entity: EntityId,
    told: impl Fn(Command) -> Command,
) -> u64 {
    let mut next = 0_u64;
    while world.core.state().clone().freeze().facts().all(|fact| !matches!(fact, Fact::RestoredRun(_))) {
        assert!(next < 5_000, "nothing leaves memory");
        for _ in 0..20 {
            let mut bytes = next.to_le_bytes().to_vec();
            bytes.resize(300, 7);
            let messages = smallvec![Incoming::new(Bytes::from(bytes), Arc::new(MapMessage::new()))];
            let (via, transaction, acceptance) = (None, None, Acceptance::Plain);
            world.ask(Operation::Send { entity, via, transaction, messages, acceptance });
            next += 1;
        }
        world.settle();
        world.advance(Span::seconds(3));
        while let Some(Ok(chilling)) = world.core.chilling_if_due() {
            let commands = chilling.run().unwrap();
            world.core.take_over(commands.into_iter().map(&told).collect());
            world.settle();
        }
        world.told.take();
    }
    next
}

#[test]
fn a_namespace_whose_messages_on_disk_end_early_is_not_kept() {
    let mut world = small_world();
    let (entity, mailbox) = world.queue("q", vec![]);
    let next = fill_until_some_lie_on_disk(&mut world, entity, |command| match command {
        // The run begins three records later than it does, so that its last three are behind the end.
        Command::Chill(chill) => Command::Chill(Box::new(Chill { run: RunId(chill.run.0 + 3), ..*chill })),
        other => other,
    });
    match develop(&mut world, Develop::Capture) {
        Err(Refused::Unusable { why }) => assert!(why.contains("3 messages on disk"), "{why}"),
        other => panic!("{other:?}"),
    }
    // The refusal changes nothing: they all still count, and whoever sends is served.
    assert_eq!(world.core.state().counts(mailbox).ready, next);
    send(&mut world, entity, "later");
}

#[test]
fn messages_on_disk_are_kept_with_the_others() {
    let mut world = small_world();
    let (entity, mailbox) = world.queue("q", vec![]);
    let number = |world: &World, delivery: &vorrang_engine::Delivery| {
        let body = world.core.reader().read(delivery.location, delivery.size).unwrap();
        u64::from_le_bytes(body.bytes[..8].try_into().unwrap())
    };
    let next = fill_until_some_lie_on_disk(&mut world, entity, |command| command);
    // Some of what lies on disk is received, so that a part of it is left.
    world.attach(1, mailbox, ReceiveMode::ReceiveAndDelete);
    world.ask(Operation::Credit { link: Link(1), limit: u32::try_from(next - 60).unwrap(), drain: false });
    world.settle();
    world.told.take();
    assert_eq!(world.core.state().counts(mailbox).ready, 60);
    let image = capture(&mut world);
    develop(&mut world, Develop::Clear { entities: false }).unwrap();
    assert_eq!(world.core.state().counts(mailbox).ready, 0);
    restore(&mut world, &image);
    world.attach(2, mailbox, ReceiveMode::ReceiveAndDelete);
    world.ask(Operation::Credit { link: Link(2), limit: 100, drain: false });
    world.settle();
    let order: Vec<u64> = world
        .told
        .take()
        .iter()
        .filter_map(|event| match event {
            Event::Deliver { delivery, body: Some(body), .. } => {
                assert_eq!(delivery.size, 300);
                Some(u64::from_le_bytes(body.bytes[..8].try_into().unwrap()))
            }
            Event::Deliver { delivery, .. } => Some(number(&world, delivery)),
            _ => None,
        })
        .collect();
    assert_eq!(order, (next - 60..next).collect::<Vec<u64>>());
}

#[test]
fn what_is_no_snapshot_changes_nothing() {
    let mut world = world();
    let (_, mailbox, _) = busy_queue(&mut world);
    let before = messages(&mut world, mailbox);
    let mut damaged = capture(&mut world).to_vec();
    damaged[40] ^= 1;
    for image in [Bytes::new(), Bytes::from_static(b"nonsense"), Bytes::from(damaged)] {
        let refused = develop(&mut world, Develop::Restore { image });
        assert!(matches!(refused, Err(Refused::Unusable { .. })), "{refused:?}");
    }
    assert_eq!(messages(&mut world, mailbox), before);
}

#[test]
fn a_reset_takes_messages_away_and_on_request_the_entities() {
    let mut world = world();
    let (entity, mailbox, _) = busy_queue(&mut world);
    develop(&mut world, Develop::Clear { entities: false }).unwrap();
    assert_eq!(messages(&mut world, mailbox), []);
    send(&mut world, entity, "first");
    assert_eq!(messages(&mut world, mailbox)[0].0, 1, "numbers begin again");
    develop(&mut world, Develop::Clear { entities: true }).unwrap();
    assert_eq!(world.find("q"), None);
    world = World::open(world.disk.crash(&[]), world.now);
    assert_eq!(world.find("q"), None);
    world.queue("q", vec![]);
}

#[test]
fn the_clock_moves_locks_and_schedules_at_once_and_is_ahead_after_a_restart() {
    let mut world = world();
    let (entity, mailbox) = world.queue("q", vec![Setting::LockDuration(Span::seconds(30))]);
    send(&mut world, entity, "a");
    let token = lock(&mut world, 1, mailbox);
    develop(&mut world, Develop::Advance { by: Span(29_999) }).unwrap();
    assert_eq!(world.core.state().lock_count(), 1, "not yet");
    develop(&mut world, Develop::Advance { by: Span(1) }).unwrap();
    let tag = world.settle_message(mailbox, token, Settlement::Complete);
    world.settle();
    let lost = world.told.take().into_iter().any(|event| {
        matches!(event, Event::Refused { tag: of, refused: Refused::Impossible(Refusal::LockLost { .. }) } if of == tag)
    });
    assert!(lost, "the lock is over");
    let clock = |world: &mut World| match develop(world, Develop::Clock) {
        Ok(Some(Answer::Clock { now, ahead })) => (now, ahead),
        other => panic!("{other:?}"),
    };
    assert_eq!(clock(&mut world), (START.after(Span::seconds(30)), Span::seconds(30)));
    for snapshot in [false, true] {
        if snapshot {
            world.snapshot();
            world.settle();
        }
        world = World::open(world.disk.crash(&[]), START);
        assert_eq!(clock(&mut world), (START.after(Span::seconds(30)), Span::seconds(30)));
    }
    // Another state in its place does not turn it back.
    let image = capture(&mut world);
    develop(&mut world, Develop::Advance { by: Span::seconds(5) }).unwrap();
    restore(&mut world, &image);
    assert_eq!(clock(&mut world).1, Span::seconds(35));
    let too_far = develop(&mut world, Develop::Advance { by: Span::FOREVER });
    assert!(matches!(too_far, Err(Refused::Impossible(Refusal::ClockTooFar { .. }))), "{too_far:?}");
}

#[test]
fn permissions_end_by_the_wall_clock_whatever_the_other_says() {
    let mut world = world();
    let (entity, mailbox) = world.queue("q", vec![]);
    let until = START.after(Span::minutes(60));
    let rights = Rights { send: true, listen: true, manage: true };
    let grant = Grant { scope: Scope::namespace(), rights, until, key: None };
    world.item(Item::Become(Arc::new(Principal::with_grants([grant]))));
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    develop(&mut world, Develop::Advance { by: Span::days(2) }).unwrap();
    send(&mut world, entity, "a");
    world.told.take();
    world.now = until;
    world.settle();
    let ended = world.told.take();
    assert!(ended.iter().any(|event| matches!(event, Event::Detached { .. })), "{ended:?}");
    let refused = world.done(world::send(entity, Bytes::from_static(b"b")));
    assert!(
        matches!(refused.as_slice(), [Event::Refused { refused: Refused::Denied(_), .. }]),
        "{refused:?}"
    );
}

fn fault(kind: FaultKind, count: Option<u32>, lasts: Option<Span>) -> Develop {
    Develop::Inject(NewFault { entity: EntityPath::parse("q").unwrap(), kind, count, lasts })
}

#[test]
fn sends_are_refused_as_busy_so_many_times_and_settlements_are_late() {
    let mut world = world();
    let (entity, mailbox) = world.queue("q", vec![]);
    develop(&mut world, fault(FaultKind::Busy, Some(2), None)).unwrap();
    for _ in 0..2 {
        let told = world.done(world::send(entity, Bytes::from_static(b"x")));
        assert!(
            matches!(told.as_slice(), [Event::Refused { refused: Refused::Busy { .. }, .. }]),
            "{told:?}"
        );
    }
    send(&mut world, entity, "taken");
    develop(&mut world, fault(FaultKind::DelaySettles(Span::seconds(5)), None, Some(Span::minutes(1))))
        .unwrap();
    let token = lock(&mut world, 1, mailbox);
    let tag = world.settle_message(mailbox, token, Settlement::Complete);
    world.settle();
    assert!(world.told.take().is_empty(), "not answered yet");
    assert!(world.core.next_wake().is_some_and(|wake| wake <= world.now.after(Span::seconds(5))));
    world.advance(Span::seconds(5));
    world.settle();
    let told = world.told.take();
    assert!(matches!(told.as_slice(), [Event::Reply { tag: of, .. }] if *of == tag), "{told:?}");
    match develop(&mut world, Develop::Mend(None)) {
        Ok(Some(Answer::Faults(ended))) => assert_eq!(ended.len(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn faults_have_bounds_and_a_place() {
    let mut world = world();
    let nowhere = develop(&mut world, fault(FaultKind::Busy, None, None));
    assert!(matches!(nowhere, Err(Refused::NotFound { .. })), "{nowhere:?}");
    world.queue("q", vec![]);
    let too_much = [
        fault(FaultKind::DelaySettles(Span(60 * 60_000 + 1)), None, None),
        fault(FaultKind::Busy, None, Some(Span(24 * 60 * 60_000 + 1))),
        fault(FaultKind::Busy, Some(0), None),
    ];
    for fault in too_much {
        let refused = develop(&mut world, fault);
        assert!(matches!(refused, Err(Refused::Unusable { .. })), "{refused:?}");
    }
    for _ in 0..100 {
        develop(&mut world, fault(FaultKind::Busy, Some(1), None)).unwrap();
    }
    let one_more = develop(&mut world, fault(FaultKind::Busy, Some(1), None));
    assert!(matches!(one_more, Err(Refused::Unusable { .. })), "{one_more:?}");
}

#[test]
fn a_broker_that_is_held_up_takes_nothing_and_then_everything() {
    let mut world = world();
    let (entity, _) = world.queue("q", vec![]);
    develop(&mut world, Develop::Stall { lasts: Span::seconds(5) }).unwrap();
    for _ in 0..3 {
        world.send(entity, Bytes::from_static(b"x"));
    }
    world.settle();
    assert!(world.told.take().is_empty() && world.core.is_choked());
    world.advance(Span::seconds(5));
    world.settle();
    let told = world.told.take();
    assert!(matches!(told.as_slice(), [Event::Accepted { count: 3, .. }]), "{told:?}");
    let refused = develop(&mut world, Develop::Stall { lasts: Span(60_001) });
    assert!(matches!(refused, Err(Refused::Unusable { .. })), "{refused:?}");
}

#[test]
fn a_key_of_an_entity_that_came_later_opens_nothing_after_the_restore() {
    use vorrang_engine::entity::authorization::{AuthorizationRule, Secret};
    let mut world = world();
    let image = capture(&mut world);
    let rule = AuthorizationRule {
        key_name: Arc::from("later"),
        primary_key: Secret::new("key"),
        secondary_key: Secret::new("key"),
        rights: Rights { send: true, listen: true, manage: false },
    };
    let name = entity::EntityName::parse("q").unwrap();
    let settings = vec![Setting::AuthorizationRules(vec![rule])];
    world.done(Operation::Administer(Box::new(entity::Request::CreateQueue { name, settings })));
    let keys = Arc::clone(world.core.keys());
    assert!(keys.log_in("later", "key").is_ok());
    restore(&mut world, &image);
    assert!(keys.log_in("later", "key").is_err());
}
