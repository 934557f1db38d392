//! What can be read of a shard: surveys, explanations, narrowed peeks, its own condition, and who may.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected ends there"
)]

mod world;

use std::sync::Arc;

use smallvec::smallvec;
use vorrang_broker::access::{Grant, Principal, Scope};
use vorrang_broker::api::{Acceptance, Answer, Detail, Event, Only, Operation, Question, Refused};
use vorrang_broker::shard::Item;
use vorrang_engine::entity::EntityPath;
use vorrang_engine::entity::authorization::Rights;
use vorrang_engine::explain::{Activity, Blocker};
use vorrang_engine::{EntityId, Incoming, Level, MailboxId, MessageState, Sequence, Span, Timestamp};
use vorrang_filter::MapMessage;
use vorrang_log::disk::SimDisk;
use world::World;

fn world() -> World {
    World::open(SimDisk::new(1), Timestamp(1_000_000))
}

fn path(text: &str) -> EntityPath {
    EntityPath::parse(text).unwrap()
}

fn send(world: &mut World, entity: EntityId, level: u8, due: Option<Timestamp>) {
    let message = Incoming {
        priority: Some(level),
        scheduled_for: due,
        ..Incoming::new(bytes::Bytes::from_static(b"body"), Arc::new(MapMessage::new()))
    };
    let told = world.done(Operation::Send {
        entity,
        via: None,
        transaction: None,
        messages: smallvec![message],
        acceptance: Acceptance::Plain,
    });
    assert!(matches!(told.as_slice(), [Event::Accepted { .. }]), "{told:?}");
}

fn ask(world: &mut World, question: Question) -> Answer {
    let told = world.done(Operation::Ask(question));
    match told.into_iter().next() {
        Some(Event::Answer { answer, .. }) => answer,
        other => panic!("no answer but {other:?}"),
    }
}

#[test]
fn a_survey_tells_of_one_entity_or_of_all_page_by_page() {
    let mut world = world();
    let (orders, _) = world.queue("orders", vec![]);
    let (bills, _) = world.queue("bills", vec![]);
    for level in [1, 9, 9] {
        send(&mut world, orders, level, None);
    }
    let question = Question::SurveyEntity { path: path("ORDERS"), detail: Detail::Levels };
    let Answer::Surveyed(survey) = ask(&mut world, question) else { panic!() };
    let [one] = survey.entities.as_slice() else { panic!("{survey:?}") };
    let ready: Vec<_> = one.main.levels.iter().map(|level| (level.level.0, level.counts.ready)).collect();
    assert_eq!(ready, [(1, 1), (4, 0), (7, 0), (9, 2)]);
    let highest = one.main.levels.last().unwrap();
    assert_eq!(highest.series.as_ref().map(|series| series.arrivals), Some(2));
    assert_eq!(highest.oldest, Some(world.now));

    let page = |after| Question::Survey { after, top: 1, detail: Detail::Counts };
    let Answer::Surveyed(first) = ask(&mut world, page(None)) else { panic!() };
    let next = first.next.expect("there is another");
    assert_eq!(first.entities[0].description.id, bills);
    let Answer::Surveyed(second) = ask(&mut world, page(Some(next))) else { panic!() };
    assert_eq!((second.entities[0].description.id, second.next), (orders, None));

    let told =
        world.done(Operation::Ask(Question::SurveyEntity { path: path("no"), detail: Detail::Counts }));
    assert!(matches!(told.as_slice(), [Event::Refused { refused: Refused::NotFound { .. }, .. }]));
}

#[test]
fn a_waiting_message_is_explained() {
    let mut world = world();
    let (orders, mailbox) = world.queue("orders", vec![]);
    send(&mut world, orders, 9, None);
    send(&mut world, orders, 1, None);
    let question = Question::Explain { mailbox, sequence: Sequence(2) };
    let Answer::Explained(why) = ask(&mut world, question) else { panic!() };
    assert_eq!((why.activity.clone(), why.level, why.next), (Activity::Waiting, Level(1), false));
    assert_eq!(why.ahead.iter().map(|ahead| (ahead.level.0, ahead.count)).collect::<Vec<_>>(), [(9, 1)]);
    assert_eq!(why.blockers, [Blocker::NoReceiver]);
    let told = world.done(Operation::Ask(Question::Explain { mailbox, sequence: Sequence(77) }));
    assert!(matches!(told.as_slice(), [Event::Refused { .. }]));
}

#[test]
fn a_peek_can_be_narrowed_by_state_and_level() {
    let mut world = world();
    let (orders, mailbox) = world.queue("orders", vec![]);
    let later = Some(world.now.after(Span::minutes(1)));
    send(&mut world, orders, 9, None);
    send(&mut world, orders, 1, None);
    send(&mut world, orders, 1, later);
    let mut found = |only: Only| {
        let question = Question::Peek { mailbox, from: Sequence(0), max: 10, session: None, only };
        let Answer::Peeked(peeked) = ask(&mut world, question) else { panic!() };
        peeked.messages.iter().map(|message| message.sequence.0).collect::<Vec<_>>()
    };
    assert_eq!(found(Only::default()), [1, 2, 3]);
    assert_eq!(found(Only { state: Some(MessageState::Scheduled), ..Only::default() }), [3]);
    assert_eq!(found(Only { level: Some(Level(1)), ..Only::default() }), [2, 3]);
    let both = Only { level: Some(Level(1)), state: Some(MessageState::Active), filter: None };
    assert_eq!(found(both), [2]);
}

#[test]
fn the_shard_says_how_it_is_doing() {
    let mut world = world();
    let (orders, _) = world.queue("orders", vec![]);
    let Answer::Condition(before) = ask(&mut world, Question::Condition) else { panic!() };
    send(&mut world, orders, 4, None);
    let Answer::Condition(after) = ask(&mut world, Question::Condition) else { panic!() };
    assert!(after.commits > before.commits && after.bytes_since_snapshot > before.bytes_since_snapshot);
    assert_eq!((after.connections, after.locks, after.room), (1, 0, Ok(())));
    assert!(after.ring.used_segments > 0 && after.ring.used_segments <= after.ring.ring_segments);
}

type Asking = (&'static str, fn(MailboxId) -> Question);

#[test]
fn reading_needs_the_right_to() {
    let mut world = world();
    let (orders, mailbox) = world.queue("orders", vec![]);
    send(&mut world, orders, 4, None);
    let rights = |send, listen, manage| Rights { send, listen, manage };
    let questions: [Asking; 4] = [
        ("explain", |mailbox| Question::Explain { mailbox, sequence: Sequence(1) }),
        ("entity", |_| Question::SurveyEntity { path: path("orders"), detail: Detail::Counts }),
        ("all", |_| Question::Survey { after: None, top: 9, detail: Detail::Counts }),
        ("condition", |_| Question::Condition),
    ];
    let holders = [
        ("", rights(false, false, true), [true, true, true, true]),
        ("", rights(true, true, false), [true, false, false, false]),
        ("orders", rights(false, false, true), [true, true, false, false]),
        ("orders", rights(false, true, false), [true, false, false, false]),
        ("other", rights(true, true, true), [false, false, false, false]),
    ];
    for (place, rights, allowed) in holders {
        let scope = Scope::of_address(place).unwrap();
        let grant = Grant { scope, rights, until: Timestamp::NEVER, key: None };
        world.item(Item::Become(Arc::new(Principal::with_grants([grant]))));
        for ((name, question), allowed) in questions.iter().zip(allowed) {
            let told = world.done(Operation::Ask(question(mailbox)));
            let answered = matches!(told.as_slice(), [Event::Answer { .. }]);
            let denied = matches!(told.as_slice(), [Event::Refused { refused: Refused::Denied(_), .. }]);
            assert_eq!(
                (answered, denied),
                (allowed, !allowed),
                "{name} with {rights:?} on {place:?}: {told:?}"
            );
        }
    }
}
