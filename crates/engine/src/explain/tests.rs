use super::*;
use crate::command::{Command, Settlement};
use crate::entity::priority::Policy;
use crate::entity::{Setting, Status};
use crate::id::ReceiverId;
use crate::message::Incoming;
use crate::text::Text;
use crate::trial::{Trial, message};
use proptest::prelude::*;
use vorrang_filter::MapMessage;

fn put(trial: &mut Trial, id: &str, level: u8) {
    let incoming = Incoming { priority: Some(level), ..message(id) };
    let send = trial.sending("q", vec![(incoming, MapMessage::new())]);
    trial.submit(send).unwrap();
}

fn explain(trial: &Trial, sequence: u64) -> Explanation {
    trial.state.explain(trial.now, trial.mailbox("q"), Sequence(sequence), &trial.stored).unwrap()
}

fn ahead(explanation: &Explanation) -> Vec<(u8, u64)> {
    explanation.ahead.iter().map(|ahead| (ahead.level.0, ahead.count)).collect()
}

#[test]
fn a_waiting_message_knows_who_is_ahead() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    for (id, level) in [("1", 4), ("2", 9), ("3", 4), ("4", 1), ("5", 9)] {
        trial.advance(Span::seconds(1));
        put(&mut trial, id, level);
    }
    let third = explain(&trial, 3);
    assert_eq!(third.activity, Activity::Waiting);
    assert_eq!(ahead(&third), [(9, 2), (4, 1)]);
    assert_eq!((third.class.as_deref(), third.origin), (Some("normal"), LevelOrigin::Header));
    assert_eq!((third.waited, third.next), (Span::seconds(2), false));
    assert_eq!(third.blockers, [Blocker::NoReceiver]);
    assert_eq!(third.estimate, None);
    assert!(explain(&trial, 2).next);
    assert_eq!(ahead(&explain(&trial, 4)), [(9, 2), (4, 2)]);
    trial.update("q", Setting::Policy(Policy::Fifo));
    assert_eq!(ahead(&explain(&trial, 3)), [(9, 1), (4, 1)]);
    assert!(explain(&trial, 1).next);
}

#[test]
fn each_thing_that_holds_a_message_back_is_named() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    put(&mut trial, "1", 4);
    trial.attach("q", 1, 0);
    assert_eq!(explain(&trial, 1).blockers, [Blocker::NoCredit]);
    trial.step(&Command::Detach { receiver: ReceiverId(1) }).unwrap();
    trial.update("q", Setting::Paused(true));
    trial.update("q", Setting::Status(Status::ReceiveDisabled));
    assert_eq!(explain(&trial, 1).blockers, [Blocker::Paused, Blocker::ReceiveDisabled, Blocker::NoReceiver]);
}

#[test]
fn what_a_message_is_doing_is_told_with_its_end() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    for id in ["1", "2", "3"] {
        put(&mut trial, id, 4);
    }
    trial.attach("q", 1, 3);
    let deliveries = trial.receive();
    trial.settle(&deliveries[1], Settlement::Defer { changes: None }).unwrap();
    let delay = Some(Span::seconds(5));
    trial.settle(&deliveries[2], Settlement::Abandon { changes: None, delay }).unwrap();
    let due = trial.now.after(Span::minutes(9));
    let scheduled = Incoming { scheduled_for: Some(due), ..message("4") };
    let send = trial.sending("q", vec![(scheduled, MapMessage::new())]);
    trial.submit(send).unwrap();
    let activities: Vec<_> = (1..=4).map(|sequence| explain(&trial, sequence).activity).collect();
    assert_eq!(
        activities,
        [
            Activity::Locked { until: trial.now.after(Span::minutes(1)) },
            Activity::Deferred,
            Activity::Delayed { until: trial.now.after(Span::seconds(5)) },
            Activity::Scheduled { due },
        ]
    );
    let missing = trial.state.explain(trial.now, trial.mailbox("q"), Sequence(9), &trial.stored);
    assert_eq!(missing, Err(Refusal::MessageNotFound { sequence: Sequence(9) }));
}

#[test]
fn in_a_session_order_is_by_number_whatever_the_level() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::RequiresSession(true)]);
    for (id, level) in [("1", 1), ("2", 9), ("3", 9)] {
        let incoming = Incoming { priority: Some(level), session_id: Some(Text::from("s")), ..message(id) };
        let send = trial.sending("q", vec![(incoming, MapMessage::new())]);
        trial.submit(send).unwrap();
    }
    let third = explain(&trial, 3);
    let session = SessionId::from("s");
    assert_eq!(ahead(&third), [(9, 1), (1, 1)]);
    assert_eq!(third.blockers, [Blocker::NoReceiver, Blocker::BehindInSession { session, count: 2 }]);
    assert!(explain(&trial, 1).next);
}

#[test]
fn the_estimate_follows_the_measured_rate() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    for number in 0..100 {
        put(&mut trial, &number.to_string(), 4);
    }
    trial.attach("q", 1, 0);
    // One delivery a second for a minute.
    for _ in 0..60 {
        trial.step(&Command::Credit { receiver: ReceiverId(1), credit: 1, drain: false }).unwrap();
        assert_eq!(trial.receive().len(), 1);
        trial.advance(Span::seconds(1));
    }
    let estimate = explain(&trial, 100).estimate.unwrap();
    assert!((Span::seconds(36)..=Span::seconds(44)).contains(&estimate), "{estimate}");
}

#[test]
fn what_lies_on_disk_is_ahead_too() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    for number in 0..10 {
        trial.advance(Span::seconds(1));
        put(&mut trial, &number.to_string(), 4);
    }
    trial.chill("q", 4, 6);
    assert_eq!(ahead(&explain(&trial, 10)), [(4, 9)]);
    assert!(!explain(&trial, 7).next);
    let on_disk = explain(&trial, 5);
    assert_eq!((ahead(&on_disk), on_disk.activity), (vec![(4, 4)], Activity::Waiting));
}

#[test]
fn starving_is_told() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    put(&mut trial, "1", 1);
    for (waited, starving) in [(299, false), (1, false), (1, true)] {
        trial.advance(Span::seconds(waited));
        assert_eq!(explain(&trial, 1).starving, starving, "{waited}");
    }
}

proptest! {
    #[test]
    fn as_many_are_delivered_before_it_as_were_said_to_be_ahead(
        levels in proptest::collection::vec(0..6_u8, 1..40),
        chosen: proptest::sample::Index,
        policy in 0..3_u8,
    ) {
        let mut trial = Trial::new();
        let policy = match policy {
            0 => Policy::Strict,
            1 => Policy::Aged { step: Span::seconds(3) },
            _ => Policy::Fifo,
        };
        trial.queue("q", vec![Setting::Policy(policy)]);
        for (number, level) in levels.iter().enumerate() {
            trial.advance(Span::seconds(1));
            put(&mut trial, &number.to_string(), *level);
        }
        let sequence = u64::try_from(chosen.index(levels.len())).unwrap() + 1;
        let explanation = explain(&trial, sequence);
        let said: u64 = explanation.ahead.iter().map(|ahead| ahead.count).sum();
        trial.attach("q", 1, 1_000);
        let deliveries = trial.receive();
        let place = deliveries.iter().position(|delivery| delivery.sequence == Sequence(sequence)).unwrap();
        prop_assert_eq!(said, u64::try_from(place).unwrap());
        prop_assert_eq!(explanation.next, place == 0);
    }
}
