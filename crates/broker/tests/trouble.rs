//! What a shard does when the disk is full, when it fails, and when a permission ends.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected ends there"
)]

mod world;

use bytes::Bytes;
use std::sync::Arc;
use vorrang_broker::access::{Action, Grant, Principal, Scope};
use vorrang_broker::api::{Event, Link, Only, Operation, Purpose, Question, Refused, Tag};
use vorrang_broker::shard::Item;
use vorrang_engine::command::{ReceiveMode, Settlement};
use vorrang_engine::entity::authorization::{AuthorizationRule, Rights, Secret};
use vorrang_engine::entity::{self, EntityName, EntityPath, Setting};
use vorrang_engine::{MailboxId, Refusal, Span, Timestamp};
use vorrang_log::disk::{Disk, Fault, FileName, SimDisk};
use world::World;

fn message(number: u8) -> Bytes {
    Bytes::from(vec![number; 500])
}

fn open() -> World {
    World::open(SimDisk::new(7), Timestamp(1_000_000))
}

fn accepted(events: &[Event]) -> u32 {
    events.iter().map(|event| if let Event::Accepted { count, .. } = event { *count } else { 0 }).sum()
}

fn deliveries(events: &[Event]) -> Vec<&vorrang_engine::Delivery> {
    events
        .iter()
        .filter_map(|event| if let Event::Deliver { delivery, .. } = event { Some(delivery) } else { None })
        .collect()
}

#[test]
fn a_full_disk_refuses_sends_while_receiving_and_settling_go_on() {
    let mut world = open();
    let (entity, mailbox) = world.queue("q", vec![]);
    for number in 0..10 {
        world.send(entity, message(number));
    }
    world.settle();
    assert_eq!(accepted(&world.told.take()), 10);

    world.disk.set_free_bytes(0);
    world.advance(Span::seconds(2));
    let mut refused = 0;
    for number in 0..200 {
        for event in world.done(world::send(entity, message(number))) {
            refused += u32::from(matches!(event, Event::Refused { refused: Refused::NoRoom(_), .. }));
        }
    }
    assert!(refused > 0, "sends are refused when the disk is full");

    world.attach(1, mailbox, ReceiveMode::PeekLock);
    let events = world.done(Operation::Credit { link: Link(1), limit: 10, drain: false });
    let tokens: Vec<_> = deliveries(&events).iter().map(|delivery| delivery.token.unwrap()).collect();
    assert_eq!(tokens.len(), 10);
    for token in tokens {
        world.settle_message(mailbox, token, Settlement::Complete);
    }
    world.settle();
    let replies = world.told.take().iter().filter(|event| matches!(event, Event::Reply { .. })).count();
    assert_eq!(replies, 10, "settlements are answered though the disk is full");

    world.disk.set_free_bytes(1 << 30);
    world.advance(Span::seconds(2));
    assert_eq!(accepted(&world.done(world::send(entity, message(1)))), 1, "service resumes");
}

#[test]
fn a_failed_sync_ends_the_shard_and_nothing_pending_is_answered() {
    for failing_call in 0..6 {
        let mut world = open();
        let (entity, _) = world.queue("q", vec![]);
        world.settle();
        world.told.take();
        world.disk.fail_from(world.disk.calls() + failing_call, Fault::Fail);
        world.send(entity, message(1));
        world.settle();
        world.send(entity, message(2));
        world.settle();
        let events = world.told.take();
        if world.core.over().is_none() {
            continue; // this call belonged to background work
        }
        assert!(matches!(events.last(), Some(Event::Stopped { .. })), "{events:?}");
        let said = accepted(&events);
        // Whatever was said is true: it is there after the crash.
        let mut again = World::open(world.disk.crash(&[]), world.now);
        let (_, mailbox) = again.find("q").unwrap();
        again.attach(1, mailbox, ReceiveMode::PeekLock);
        let events = again.done(Operation::Credit { link: Link(1), limit: 10, drain: false });
        assert!(deliveries(&events).len() >= usize::try_from(said).unwrap(), "call {failing_call}");
        assert!(world.core.over().unwrap().contains("log has stopped"), "{:?}", world.core.over());
    }
}

/// Where the newest entry of the log begins.
fn newest_entry(disk: &SimDisk) -> (FileName, usize) {
    let last_block = |file: FileName| {
        let bytes = disk.contents(file)?;
        let blocks: Vec<&[u8]> = bytes.chunks(4_096).collect();
        Some((file, blocks.iter().rposition(|block| block.starts_with(b"VoEn"))? * 4_096))
    };
    let segments = disk.list().unwrap().into_iter().filter(|file| matches!(file, FileName::Segment(_)));
    segments.filter_map(last_block).max().unwrap()
}

#[test]
fn damage_to_what_was_acknowledged_last_is_no_torn_tail_once_the_log_is_idle() {
    let mut world = open();
    let (entity, _) = world.queue("q", vec![]);
    world.send(entity, message(1));
    world.settle();
    assert_eq!(accepted(&world.told.take()), 1);
    let (file, offset) = newest_entry(&world.disk);
    let damaged = |disk: &SimDisk| {
        let image = disk.fork();
        image.damage(file, |bytes| bytes[offset + 70] ^= 1);
        image
    };
    assert!(world::try_open(&damaged(&world.disk), world.now).is_ok(), "it could be the trace of a crash");

    let wake = world.core.next_wake().expect("the shard has something left to do");
    assert!(wake > world.now && wake <= world.now.after(Span::seconds(1)), "{wake:?}");
    world.now = wake;
    world.settle();
    let refused = world::try_open(&damaged(&world.disk), world.now).err();
    let refused = refused.expect("an acknowledged message is missing");
    assert!(refused.to_string().contains(&file.to_string()), "{refused}");

    let confirmed = newest_entry(&world.disk);
    world.advance(Span::minutes(1));
    world.settle();
    assert_eq!(newest_entry(&world.disk), confirmed, "once is enough");
}

#[test]
fn looking_at_a_queue_keeps_it_from_deleting_itself() {
    let mut world = open();
    let (_, mailbox) = world.queue("q", vec![Setting::AutoDeleteOnIdle(Span::minutes(5))]);
    for _ in 0..4 {
        world.advance(Span::minutes(4));
        let from = vorrang_engine::Sequence(0);
        let peek = Question::Peek { mailbox, from, max: 1, session: None, only: Only::default() };
        world.done(Operation::Ask(peek));
        assert!(world.core.state().catalogue().entity(mailbox.entity()).is_some());
    }
    world.advance(Span::minutes(6));
    world.settle();
    assert!(world.core.state().catalogue().entity(mailbox.entity()).is_none());
}

fn become_somebody(world: &mut World, path: &str, rights: &str, until: Timestamp) {
    let rights =
        Rights { send: rights.contains('s'), listen: rights.contains('l'), manage: rights.contains('m') };
    let scope = Scope::of_address(path).unwrap();
    let principal = Principal::with_grants([Grant { scope, rights, until, key: None }]);
    world.item(Item::Become(Arc::new(principal)));
}

/// One operation for every action, all about the queue `own`.
fn operations(world: &mut World, mailbox: MailboxId) -> Vec<Operation> {
    let path = EntityPath::parse("own").unwrap();
    let name = EntityName::parse("own").unwrap();
    let entity = mailbox.entity();
    let token = vorrang_engine::LockToken(1);
    let update = entity::Request::Update { path: path.clone(), settings: vec![] };
    world.tag += 1;
    vec![
        world::send(entity, message(1)),
        Operation::Find { path: path.clone(), purpose: Purpose::Send },
        Operation::Find { path: path.clone(), purpose: Purpose::Receive },
        Operation::Find { path: path.clone(), purpose: Purpose::Inquire },
        Operation::Cancel { entity, sequences: vec![] },
        Operation::Settle {
            mailbox,
            tokens: smallvec::smallvec![token],
            settlement: Settlement::Complete,
            transaction: None,
        },
        Operation::Renew { mailbox, tokens: smallvec::smallvec![token] },
        Operation::Declare,
        Operation::Administer(Box::new(update)),
        Operation::Administer(Box::new(entity::Request::CreateQueue { name, settings: vec![] })),
        Operation::Ask(Question::Entity { path }),
        Operation::Ask(Question::Queues { skip: 0, top: 10 }),
    ]
}

#[test]
fn every_door_is_closed_to_those_without_the_right() {
    for rights in ["", "s", "l", "sl", "m"] {
        for (granted, here) in [("own", true), ("other", false), ("own2", false), ("", true)] {
            let mut world = open();
            let (_, mailbox) = world.queue("own", vec![]);
            world.queue("other", vec![]);
            for operation in operations(&mut world, mailbox) {
                become_somebody(&mut world, granted, rights, Timestamp::NEVER);
                let (action, shown) = (operation.action(), format!("{operation:?}"));
                let events = world.done(operation);
                let denied = events
                    .iter()
                    .any(|event| matches!(event, Event::Refused { refused: Refused::Denied(_), .. }));
                let everywhere = action == Action::Transact && !rights.is_empty();
                let listing = action == Action::ListEntities && !granted.is_empty();
                let holds = match action.need().as_str() {
                    "Send" => rights.contains(['s', 'm']),
                    "Listen" => rights.contains(['l', 'm']),
                    "Manage" => rights.contains('m'),
                    _ => !rights.is_empty(),
                };
                let permitted = everywhere || (holds && here && !listing);
                assert_eq!(!denied, permitted, "{rights:?} on {granted:?}: {shown}");
            }
        }
    }
}

#[test]
fn what_is_absent_and_what_is_not_yours_read_the_same() {
    let mut world = open();
    world.queue("theirs", vec![]);
    become_somebody(&mut world, "mine", "slm", Timestamp::NEVER);
    let mut answers = Vec::new();
    for path in ["theirs", "absent"] {
        let path = EntityPath::parse(path).unwrap();
        for purpose in [Purpose::Send, Purpose::Receive, Purpose::Inquire] {
            let events = world.done(Operation::Find { path: path.clone(), purpose });
            answers.push(format!("{events:?}").replace("theirs", "X").replace("absent", "X"));
        }
    }
    let without_tags = |text: &String| {
        text.split("tag: Tag(")
            .map(|part| part.split_once(')').map_or(part, |found| found.1).to_owned())
            .collect::<String>()
    };
    let (theirs, absent) = answers.split_at(3);
    let shown: [Vec<String>; 2] =
        [theirs.iter().map(without_tags).collect(), absent.iter().map(without_tags).collect()];
    assert_eq!(shown[0], shown[1]);
    let mine = EntityPath::parse("mine").unwrap();
    let events = world.done(Operation::Find { path: mine, purpose: Purpose::Send });
    assert!(matches!(events[0], Event::Refused { refused: Refused::NotFound { .. }, .. }), "{events:?}");
}

#[test]
fn a_receiver_ends_with_its_permission_unless_that_is_renewed() {
    for renewed in [false, true] {
        let mut world = open();
        let (entity, mailbox) = world.queue("q", vec![]);
        let end = world.now.after(Span::seconds(60));
        become_somebody(&mut world, "q", "slm", end);
        world.attach(1, mailbox, ReceiveMode::PeekLock);
        world.done(Operation::Credit { link: Link(1), limit: 10, drain: false });
        if renewed {
            become_somebody(&mut world, "q", "slm", end.after(Span::seconds(60)));
        }
        assert!(world.core.next_wake().is_some_and(|wake| wake <= end));
        world.advance(Span::seconds(60));
        world.settle();
        let ended = world.told.take().iter().any(|event| {
            matches!(event, Event::Detached { link: Link(1), refused: Refused::Denied(denied) } if denied.ended.is_some())
        });
        assert_eq!(ended, !renewed);
        world.item(Item::Become(Arc::new(Principal::operator())));
        let events = world.done(world::send(entity, message(1)));
        assert_eq!(deliveries(&events).len(), usize::from(renewed));
    }
}

#[test]
fn a_key_that_was_taken_away_before_its_token_arrives_permits_nothing() {
    let mut world = open();
    let rule = AuthorizationRule {
        key_name: "own".into(),
        primary_key: Secret::new("one"),
        secondary_key: Secret::new("two"),
        rights: Rights { send: true, listen: true, manage: false },
    };
    let (entity, mailbox) = world.queue("q", vec![Setting::AuthorizationRules(vec![rule])]);
    let somebody = Arc::new(Principal::with_grants(world.core.keys().log_in("own", "one").unwrap()));
    world.item(Item::Become(Arc::clone(&somebody)));
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    let events = world.done(world::send(entity, message(1)));
    assert_eq!(accepted(&events), 1);
    // The operator's connection is this one too; the token arrives again when its key is gone.
    world.item(Item::Become(Arc::new(Principal::operator())));
    let path = EntityPath::parse("q").unwrap();
    let settings = vec![Setting::AuthorizationRules(vec![])];
    world.done(Operation::Administer(Box::new(entity::Request::Update { path, settings })));
    world.item(Item::Become(somebody));
    let events = world.done(world::send(entity, message(2)));
    assert!(events.iter().any(|event| matches!(event, Event::KeysChanged)), "{events:?}");
    assert!(
        events.iter().any(|event| matches!(event, Event::Refused { refused: Refused::Denied(_), .. })),
        "{events:?}"
    );
}

#[test]
fn forwarding_needs_the_right_to_send_there() {
    let mut world = open();
    world.queue("target", vec![]);
    become_somebody(&mut world, "mine", "slm", Timestamp::NEVER);
    let forward = |world: &mut World, target: &str| {
        let target = Setting::ForwardTo(Some(EntityName::parse(target).unwrap()));
        let name = EntityName::parse("mine").unwrap();
        let request = entity::Request::CreateQueue { name, settings: vec![target] };
        world.done(Operation::Administer(Box::new(request)))
    };
    let events = forward(&mut world, "target");
    assert!(
        matches!(&events[0], Event::Refused { refused: Refused::Denied(denied), .. }
        if denied.place.as_str() == "target"),
        "{events:?}"
    );
}

#[test]
fn a_lost_connection_frees_what_it_held_open() {
    let mut world = open();
    let (entity, mailbox) = world.queue("q", vec![]);
    world.attach(1, mailbox, ReceiveMode::PeekLock);
    world.done(Operation::Credit { link: Link(1), limit: 10, drain: false });
    assert_eq!(world.core.state().receiver_count(mailbox), 1);
    world.item(Item::Close);
    world.settle();
    assert_eq!(world.core.state().receiver_count(mailbox), 0);
    assert!(world.done(world::send(entity, message(1))).is_empty(), "nobody is there to be told");
}

#[test]
fn sends_of_one_batch_are_answered_as_one_run_and_a_refusal_stands_by_itself() {
    let mut world = open();
    let (entity, _) = world.queue("q", vec![]);
    let first = world.tag + 1;
    for number in 0..5 {
        world.send(entity, message(number));
    }
    world.send(vorrang_engine::EntityId(99), message(5));
    world.send(entity, message(6));
    world.settle();
    let events = world.told.take();
    let shown = format!("{events:?}");
    assert_eq!(events.len(), 3, "{shown}");
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Accepted { first: Tag(tag), count: 5 } if *tag == first)),
        "{shown}"
    );
    assert!(
        events.iter().any(|event| matches!(
            event,
            Event::Refused { refused: Refused::Impossible(Refusal::EntityNotFound { .. }), .. }
        )),
        "{shown}"
    );
}
