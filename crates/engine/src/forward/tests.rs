use super::*;
use crate::entity::{RuleDescription, RuleName, Setting, Status};
use crate::level::{Level, LevelOrigin};
use crate::limits::Limits;
use crate::message::{Incoming, PropertyChange, PropertyValue};
use crate::trial::{Trial, large, message, with_content};
use vorrang_filter::{MapMessage, Parameters, Sql, Value};

fn forward(target: &str) -> Setting {
    Setting::ForwardTo(Some(EntityName::parse(target).unwrap()))
}

fn reason(delivery: &Delivery) -> Option<String> {
    match delivery.overlay.as_ref()?.properties.get(Overlay::REASON)? {
        PropertyChange::Set(PropertyValue::Typed(Value::String(text))) => Some(text.to_string()),
        _ => None,
    }
}

/// The contents after everything has come to rest, equal to those after a replay.
fn settled(trial: &mut Trial) -> Vec<(String, Vec<String>)> {
    trial.settle_down();
    let contents = trial.contents();
    assert_eq!(trial.replayed().contents(), contents);
    contents.into_iter().collect()
}

fn entry(path: &str, ids: &[&str]) -> (String, Vec<String>) {
    (path.to_owned(), ids.iter().map(|id| (*id).to_owned()).collect())
}

#[test]
fn a_message_goes_on_until_it_finds_a_queue_that_keeps_it() {
    let mut trial = Trial::new();
    trial.queue("c", vec![]);
    trial.queue("b", vec![forward("c")]);
    trial.queue("a", vec![forward("b")]);
    trial.send("a", &["1", "2"]).unwrap();
    trial.send("c", &["3"]).unwrap();
    assert_eq!(settled(&mut trial), [entry("c", &["3", "1", "2"])]);
}

#[test]
fn level_place_in_time_and_first_number_are_kept() {
    let mut trial = Trial::new();
    trial.queue("b", vec![]);
    trial.queue("a", vec![forward("b")]);
    trial.send("a", &["before"]).unwrap();
    let urgent = Incoming { priority: Some(200), ..message("urgent") };
    let send = trial.sending("a", vec![(urgent, MapMessage::new())]);
    trial.submit(send).unwrap();
    let sent_at = trial.now;
    trial.advance(Span::seconds(9));
    trial.settle_down();
    let found = trial.peeked("b");
    let urgent = found.iter().find(|delivery| delivery.level == Level(200)).unwrap();
    assert_eq!((urgent.sequence, urgent.first_sequence), (Sequence(1), Some(Sequence(2))));
    assert_eq!(urgent.enqueued, trial.now);
    let record = trial.state.records.get(trial.state.find(urgent.mailbox, urgent.sequence).unwrap()).unwrap();
    assert_eq!((record.eligible, record.origin()), (sent_at, LevelOrigin::Header));
}

#[test]
fn after_four_hops_a_message_goes_to_the_transfer_dead_letters_of_where_it_is() {
    let mut trial = Trial::new();
    trial.queue("q6", vec![]);
    for number in (1..6).rev() {
        trial.queue(&format!("q{number}"), vec![forward(&format!("q{}", number + 1))]);
    }
    trial.send("q2", &["four"]).unwrap();
    trial.send("q1", &["five"]).unwrap();
    let dead = "q5/$Transfer/$DeadLetterQueue";
    assert_eq!(
        settled(&mut trial),
        [entry("q5/$transfer/$deadletterqueue", &["five"]), entry("q6", &["four"])]
    );
    let found = trial.peeked(dead);
    assert_eq!(reason(&found[0]).as_deref(), Some("MaxTransferHopCountExceeded"));
    assert_eq!(found[0].dead_letter_source.as_deref(), Some("q5"));
}

#[test]
fn a_target_that_cannot_take_a_message_leaves_it_with_the_source() {
    type Spoil = fn(&mut Trial);
    let cases: [(&str, Spoil); 3] = [
        ("MessagingEntityNotFound", |trial| trial.delete("b")),
        ("MessagingEntityDisabled", |trial| trial.update("b", Setting::Status(Status::SendDisabled))),
        ("MessageSizeExceeded", |trial| trial.update("b", Setting::MaxMessageSizeInKilobytes(1))),
    ];
    for (expected, spoil) in cases {
        let mut trial = Trial::new();
        trial.queue("b", vec![]);
        trial.queue("a", vec![forward("b")]);
        trial.send_all("a", vec![large("1", 2_000)]).unwrap();
        spoil(&mut trial);
        settled(&mut trial);
        trial.advance(Span::seconds(30));
        let contents = settled(&mut trial);
        assert_eq!(contents.len(), 1, "{expected}");
        let found = trial.peeked("a/$Transfer/$DeadLetterQueue");
        assert_eq!(reason(&found[0]).as_deref(), Some(expected));
    }
}

#[test]
fn a_full_target_takes_what_fits() {
    let mut trial = Trial::new();
    trial.queue("b", vec![Setting::MaxSizeInMegabytes(1), Setting::MaxMessageSizeInKilobytes(1_024)]);
    trial.queue("a", vec![forward("b"), Setting::MaxMessageSizeInKilobytes(1_024)]);
    for id in ["1", "2"] {
        trial.send_all("a", vec![large(id, 600 * 1_024)]).unwrap();
    }
    trial.settle_down();
    trial.advance(Span::seconds(30));
    trial.settle_down();
    assert_eq!(trial.peeked("b").len(), 1);
    let left = trial.peeked("a/$Transfer/$DeadLetterQueue");
    assert_eq!(reason(&left[0]).as_deref(), Some("QuotaExceeded"));
}

#[test]
fn a_target_that_is_full_or_disabled_for_a_while_gets_everything_in_the_end() {
    let mut trial = Trial::new();
    trial.queue("b", vec![]);
    trial.update("b", Setting::Status(Status::SendDisabled));
    trial.queue("a", vec![forward("b")]);
    trial.send("a", &["1", "2"]).unwrap();
    for _ in 0..29 {
        trial.settle_down();
        assert!(!trial.state.has_deliverable(), "nobody spins meanwhile");
        assert!(trial.state.next_deadline().is_some_and(|due| due > trial.now));
        trial.advance(Span::seconds(1));
    }
    assert_eq!(settled(&mut trial), [entry("a", &["1", "2"])]);
    trial.update("b", Setting::Status(Status::Active));
    trial.advance(Span::seconds(1));
    assert_eq!(settled(&mut trial), [entry("b", &["1", "2"])]);
    // The next trouble begins anew.
    trial.update("b", Setting::Status(Status::SendDisabled));
    trial.send("a", &["3"]).unwrap();
    assert_eq!(settled(&mut trial), [entry("a", &["3"]), entry("b", &["1", "2"])]);
    trial.delete("a");
    trial.advance(Span::seconds(60));
    assert_eq!(settled(&mut trial), [entry("b", &["1", "2"])]);
    assert_eq!(trial.state.misfits(), 0);
}

#[test]
fn duplicates_are_detected_where_they_arrive() {
    let mut trial = Trial::new();
    trial.queue("b", vec![Setting::RequiresDuplicateDetection(true)]);
    trial.queue("a", vec![forward("b")]);
    trial.send("b", &["1"]).unwrap();
    trial.send("a", &["1", "2", "2", "3"]).unwrap();
    assert_eq!(settled(&mut trial), [entry("b", &["1", "2", "3"])]);
}

#[test]
fn a_target_with_sessions_takes_only_messages_that_have_one() {
    let mut trial = Trial::new();
    trial.queue("b", vec![Setting::RequiresSession(true)]);
    trial.queue("a", vec![forward("b")]);
    let id = |id: &str| MapMessage::new().with_system(SystemProperty::MessageId, Value::String(id.into()));
    let with = id("with").with_system(SystemProperty::SessionId, Value::String("s".into()));
    let send = trial.sending("a", vec![(message("with"), with), (message("without"), id("without"))]);
    trial.submit(send).unwrap();
    assert_eq!(
        settled(&mut trial),
        [entry("a/$transfer/$deadletterqueue", &["without"]), entry("b", &["with"])]
    );
    assert_eq!(trial.peeked("b")[0].session, Some(SessionId::from("s")));
    let left = trial.peeked("a/$Transfer/$DeadLetterQueue");
    assert_eq!(reason(&left[0]).as_deref(), Some("Session id is null."));
}

#[test]
fn forwarding_into_a_topic_publishes_there() {
    let mut trial = Trial::new();
    trial.topic("t");
    let filter = Sql::parse("kind = 'x'", Parameters::new()).unwrap().into();
    let rule = RuleDescription { name: RuleName::parse("r").unwrap(), filter, action: None };
    trial.subscribe("t", "some", vec![], Some(rule));
    trial.subscribe("t", "all", vec![], None);
    trial.queue("end", vec![]);
    trial.subscribe("t", "onward", vec![forward("end")], None);
    trial.queue("a", vec![forward("t")]);
    let content = |id: &str, kind: &str| {
        let content = MapMessage::new().with("kind", Value::String(kind.into()));
        let incoming = Incoming { priority: Some(77), ..with_content(id, content.clone()) };
        (incoming, content.with_system(SystemProperty::MessageId, Value::String(id.into())))
    };
    let messages = vec![content("1", "x"), content("2", "y")];
    let send = trial.sending("a", messages);
    trial.submit(send).unwrap();
    assert_eq!(
        settled(&mut trial),
        [
            entry("end", &["1", "2"]),
            entry("t/Subscriptions/all", &["1", "2"]),
            entry("t/Subscriptions/some", &["1"])
        ]
    );
    assert!(trial.peeked("t/subscriptions/all").iter().all(|delivery| delivery.level == Level(77)));
    assert_eq!(trial.peeked("end")[1].first_sequence, Some(Sequence(2)));
}

#[test]
fn dead_letters_go_where_they_are_sent_and_say_where_they_come_from() {
    let mut trial = Trial::new();
    trial.queue("graves", vec![]);
    let to_graves = Setting::ForwardDeadLetteredMessagesTo(Some(EntityName::parse("graves").unwrap()));
    trial.queue("a", vec![to_graves, Setting::MaxDeliveryCount(1)]);
    trial.send("a", &["1"]).unwrap();
    trial.attach("a", 1, 10);
    let delivery = trial.receive().remove(0);
    trial.settle(&delivery, crate::command::Settlement::Abandon { changes: None, delay: None }).unwrap();
    assert_eq!(settled(&mut trial), [entry("graves", &["1"])]);
    let found = trial.peeked("graves");
    assert_eq!(reason(&found[0]).as_deref(), Some("MaxDeliveryCountExceeded"));
    assert_eq!((found[0].dead_letter_source.as_deref(), found[0].deliveries), (Some("a"), 0));
}

#[test]
fn life_goes_on_and_is_capped_by_the_target() {
    let mut trial = Trial::new();
    trial.queue("short", vec![Setting::DefaultMessageTimeToLive(Span::seconds(60))]);
    trial.queue("long", vec![]);
    trial.queue("to-short", vec![forward("short")]);
    trial.queue("to-long", vec![forward("long")]);
    for (source, target, expected) in [("to-short", "short", 60), ("to-long", "long", 90)] {
        let lasting = Incoming { time_to_live: Some(Span::seconds(100)), ..message(source) };
        let send = trial.sending(source, vec![(lasting, MapMessage::new())]);
        trial.submit(send).unwrap();
        trial.advance(Span::seconds(10));
        trial.settle_down();
        assert_eq!(trial.peeked(target)[0].expires, trial.now.after(Span::seconds(expected)), "{target}");
    }
}

#[test]
fn a_topic_that_refuses_what_nobody_wants_refuses_it_here_too() {
    for (strict, expected) in [(false, vec![]), (true, vec![entry("a/$transfer/$deadletterqueue", &["1"])])] {
        let mut trial = Trial::new();
        trial.topic("t");
        trial.update("t", Setting::FilteringMessagesBeforePublishing(strict));
        trial.queue("a", vec![forward("t")]);
        trial.send("a", &["1"]).unwrap();
        assert_eq!(settled(&mut trial), expected, "{strict}");
    }
}

#[test]
fn what_arrives_by_forwarding_keeps_a_queue_alive() {
    let mut trial = Trial::new();
    let idle = || Setting::AutoDeleteOnIdle(Span::minutes(5));
    trial.queue("b", vec![idle()]);
    trial.queue("unused", vec![idle()]);
    trial.queue("a", vec![forward("b")]);
    trial.advance(Span::minutes(4));
    trial.send("a", &["1"]).unwrap();
    trial.settle_down();
    trial.advance(Span::minutes(4));
    assert_eq!(settled(&mut trial), [entry("b", &["1"])]);
    assert!(trial.state.catalogue().find_name(&EntityName::parse("unused").unwrap()).is_none());
}

#[test]
fn setting_a_target_moves_what_was_waiting_already() {
    let mut trial = Trial::new();
    trial.queue("b", vec![]);
    trial.queue("a", vec![]);
    trial.send("a", &["1", "2", "3"]).unwrap();
    trial.settle_down();
    trial.update("a", forward("b"));
    assert_eq!(settled(&mut trial), [entry("b", &["1", "2", "3"])]);
}

#[test]
fn what_lies_on_disk_is_handed_on_too() {
    let mut trial = Trial::with(Limits { warm_batch: 2, warm_below: 1, ..Limits::default() });
    trial.queue("b", vec![]);
    trial.queue("a", vec![]);
    trial.send("a", &["1", "2", "3", "4", "5"]).unwrap();
    trial.chill("a", 4, 4);
    trial.update("a", forward("b"));
    assert_eq!(settled(&mut trial), [entry("b", &["1", "2", "3", "4", "5"])]);
}

#[test]
fn a_hop_limit_of_none_forwards_nothing() {
    let mut trial = Trial::with(Limits { hops_max: 0, ..Limits::default() });
    trial.queue("b", vec![]);
    trial.queue("a", vec![forward("b")]);
    trial.send("a", &["1"]).unwrap();
    assert_eq!(settled(&mut trial), [entry("a/$transfer/$deadletterqueue", &["1"])]);
}
