//! Who gets what, and when.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use vorrang_filter::{Filter, MapMessage, Parameters, Sql};

use crate::command::{Attach, Command, ReceiveMode, Settlement};
use crate::effect::Effect;
use crate::entity::Setting;
use crate::entity::priority::Share;
use crate::fact::Fact;
use crate::id::{MailboxId, ReceiverId, Sequence};
use crate::level::Level;
use crate::limits::Limits;
use crate::message::Incoming;
use crate::refusal::{Countable, Refusal};
use crate::time::Span;
use crate::trial::{Trial, message};

fn attach(
    trial: &mut Trial,
    mailboxes: &[&str],
    receiver: u64,
    change: impl FnOnce(&mut Attach),
) -> Result<(), Refusal> {
    let mailboxes: SmallVec<[MailboxId; 1]> = mailboxes.iter().map(|text| trial.mailbox(text)).collect();
    let (mode, min_level, selector) = (ReceiveMode::PeekLock, Level(0), None);
    let receiver = ReceiverId(receiver);
    let mut attach = Attach { request: crate::RequestTag(0), receiver, mailboxes, mode, min_level, selector };
    change(&mut attach);
    trial.ask(|request| Command::Attach(Box::new(Attach { request, ..attach }))).map(|_| ())
}

fn credit(trial: &mut Trial, receiver: u64, credit: u32) {
    trial.step(&Command::Credit { receiver: ReceiverId(receiver), credit, drain: false }).unwrap();
}

/// Which receiver got which message, in order.
fn handed_out(trial: &mut Trial) -> Vec<(u64, String)> {
    let effects = trial.settle_down();
    let given = effects.iter().filter_map(|effect| match effect {
        Effect::Deliver { receiver, delivery } => Some((receiver.0, trial.id_of(delivery))),
        _ => None,
    });
    given.collect()
}

fn pairs(list: &[(u64, &str)]) -> Vec<(u64, String)> {
    list.iter().map(|(receiver, id)| (*receiver, (*id).to_owned())).collect()
}

#[test]
fn receivers_with_credit_take_turns() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    for receiver in 1..=3 {
        trial.attach("q", receiver, 0);
    }
    trial.send("q", &["a", "b", "c", "d", "e", "f"]).unwrap();
    credit(&mut trial, 2, 1);
    credit(&mut trial, 1, 3);
    credit(&mut trial, 3, 2);
    let order = [(2, "a"), (1, "b"), (3, "c"), (1, "d"), (3, "e"), (1, "f")];
    assert_eq!(handed_out(&mut trial), pairs(&order), "in the order in which credit came");
    trial.send("q", &["g"]).unwrap();
    assert_eq!(handed_out(&mut trial), [], "nobody has credit left");
}

#[test]
fn credit_is_what_was_said_last() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.attach("q", 1, 0);
    credit(&mut trial, 1, 5);
    credit(&mut trial, 1, 1);
    trial.send("q", &["a", "b"]).unwrap();
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "a")]));
    let gone = Command::Credit { receiver: ReceiverId(9), credit: 1, drain: false };
    assert_eq!(trial.step(&gone), Err(Refusal::ReceiverNotFound { receiver: ReceiverId(9) }));
}

#[test]
fn more_credit_keeps_the_place_in_line() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    for receiver in 1..=2 {
        trial.attach("q", receiver, 1);
    }
    // One that keeps saying the same must not lose its turn by it.
    for more in 1..5 {
        credit(&mut trial, 1, more);
    }
    trial.send("q", &["a", "b"]).unwrap();
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "a"), (2, "b")]));
}

#[test]
fn an_express_receiver_gets_its_level_or_higher_and_nothing_else() {
    let cases = [(6, vec![]), (7, vec![(1, "x")]), (8, vec![(1, "x")])];
    for (level, expected) in cases {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        attach(&mut trial, &["q"], 1, |attach| attach.min_level = Level(7)).unwrap();
        credit(&mut trial, 1, 1);
        trial.send_all("q", vec![Incoming { priority: Some(level), ..message("x") }]).unwrap();
        assert_eq!(handed_out(&mut trial), pairs(&expected), "level {level}");
    }
}

#[test]
fn a_receiver_over_several_queues_serves_the_first_that_has_something() {
    let mut trial = Trial::new();
    for name in ["gold", "silver", "bronze"] {
        trial.queue(name, vec![]);
    }
    attach(&mut trial, &["gold", "silver", "bronze"], 1, |_| {}).unwrap();
    attach(&mut trial, &["bronze", "gold"], 2, |_| {}).unwrap();
    trial.send("bronze", &["b1", "b2"]).unwrap();
    trial.send("silver", &["s1"]).unwrap();
    trial.send("gold", &["g1"]).unwrap();
    credit(&mut trial, 1, 4);
    let order = [(1, "g1"), (1, "s1"), (1, "b1"), (1, "b2")];
    assert_eq!(handed_out(&mut trial), pairs(&order));
    // Two receivers with opposite orders do not wait for each other.
    trial.send("bronze", &["b3"]).unwrap();
    trial.send("gold", &["g2"]).unwrap();
    credit(&mut trial, 1, 1);
    credit(&mut trial, 2, 1);
    let mut got = handed_out(&mut trial);
    got.sort();
    assert_eq!(got, pairs(&[(1, "g2"), (2, "b3")]));
}

#[test]
fn a_drained_receiver_gets_what_there_is_and_its_credit_back() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.attach("q", 1, 0);
    trial.send("q", &["a"]).unwrap();
    trial.step(&Command::Credit { receiver: ReceiverId(1), credit: 5, drain: true }).unwrap();
    let effects = trial.settle_down();
    assert!(
        matches!(effects[..], [Effect::Deliver { .. }, Effect::Drained { receiver: ReceiverId(1) }]),
        "{effects:?}"
    );
    trial.send("q", &["b"]).unwrap();
    assert_eq!(handed_out(&mut trial), [], "the credit is gone");
}

#[test]
fn a_drain_is_answered_though_no_credit_is_left_over() {
    let drained = |effects: &[Effect]| {
        effects.iter().map(|effect| matches!(effect, Effect::Drained { .. })).collect::<Vec<_>>()
    };
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.attach("q", 1, 0);
    trial.step(&Command::Credit { receiver: ReceiverId(1), credit: 0, drain: true }).unwrap();
    assert_eq!(drained(&trial.settle_down()), [true], "none was there");
    trial.send("q", &["a", "b", "c"]).unwrap();
    trial.step(&Command::Credit { receiver: ReceiverId(1), credit: 2, drain: true }).unwrap();
    assert_eq!(drained(&trial.settle_down()), [false, false, true], "all of it was used");
    assert_eq!(trial.settle_down(), [], "once");
}

#[test]
fn receive_and_delete_removes_before_it_sends() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    attach(&mut trial, &["q"], 1, |attach| attach.mode = ReceiveMode::ReceiveAndDelete).unwrap();
    credit(&mut trial, 1, 1);
    trial.send("q", &["a"]).unwrap();
    let mut outcome = crate::Outcome::default();
    trial.state.decide(trial.now, &Command::Deliver, &trial.stored, &mut outcome).unwrap();
    assert!(matches!(outcome.facts[..], [Fact::Taken { sequence: Sequence(1), .. }]));
    assert_eq!(outcome.facts[0].durability(), crate::Durability::Waiting);
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "a")]));
    assert_eq!(trial.ids("q"), [""; 0]);
}

#[test]
fn a_selector_takes_what_matches_and_leaves_the_rest() {
    let mut trial = Trial::with(Limits { selector_scan_max: 3, ..Limits::default() });
    trial.queue("q", vec![]);
    let red = Filter::from(Sql::parse("colour = 'red'", Parameters::new()).unwrap());
    attach(&mut trial, &["q"], 1, |attach| attach.selector = Some(Arc::new(red))).unwrap();
    credit(&mut trial, 1, 5);
    let of = |colour: &str| {
        MapMessage::new()
            .with("colour", colour)
            .with_system(vorrang_filter::SystemProperty::MessageId, colour)
    };
    for colour in ["blue", "red", "green"] {
        let send = trial.sending("q", vec![(message(colour), of(colour))]);
        trial.submit(send).unwrap();
    }
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "red")]));
    // It looks at three in a step, and goes on with the next three.
    for colour in ["grey", "grey", "grey", "grey", "red"] {
        let send = trial.sending("q", vec![(message(colour), of(colour))]);
        trial.submit(send).unwrap();
    }
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "red")]));
    trial.send("q", &["another"]).unwrap();
    assert_eq!(handed_out(&mut trial), []);
    trial.attach("q", 2, 1);
    assert_eq!(handed_out(&mut trial), pairs(&[(2, "blue")]));
}

#[test]
fn a_selector_has_messages_on_disk_brought_back_as_long_as_memory_may_grow() {
    for (choosy_records, expected) in [(100, &["m3", "m6"][..]), (3, &["m3"][..])] {
        let limits = Limits { warm_batch: 2, cold_run_min: 2, choosy_records, ..Limits::default() };
        let mut trial = Trial::with(limits);
        trial.queue("q", vec![]);
        for number in 1..=6 {
            send_colour(&mut trial, &format!("m{number}"), if number % 3 == 0 { "red" } else { "blue" }, 4);
        }
        trial.chill("q", 4, 3);
        trial.chill("q", 4, 3);
        assert_eq!(trial.state.messages_in_memory(), 0);
        let red = Filter::from(Sql::parse("colour = 'red'", Parameters::new()).unwrap());
        attach(&mut trial, &["q"], 1, |attach| attach.selector = Some(Arc::new(red))).unwrap();
        assert_eq!(trial.state.watched_mailboxes().count(), 0, "it has not looked");
        credit(&mut trial, 1, 5);
        let got: Vec<_> = handed_out(&mut trial).into_iter().map(|(_, id)| id).collect();
        assert_eq!(got, expected);
        assert_eq!(trial.state.watched_mailboxes().collect::<Vec<_>>(), [trial.mailbox("q")]);
        assert_eq!(trial.state.audit(), Vec::<String>::new());
    }
}

/// A queue with a receiver that wants red messages.
fn wanting_red(credit_given: u32) -> Trial {
    let mut trial = Trial::with(Limits { selector_scan_max: 4, ..Limits::default() });
    trial.queue("q", vec![]);
    let red = Filter::from(Sql::parse("colour = 'red'", Parameters::new()).unwrap());
    attach(&mut trial, &["q"], 1, |attach| attach.selector = Some(Arc::new(red))).unwrap();
    credit(&mut trial, 1, credit_given);
    trial
}

fn send_colour(trial: &mut Trial, id: &str, colour: &str, priority: u8) {
    let content =
        MapMessage::new().with("colour", colour).with_system(vorrang_filter::SystemProperty::MessageId, id);
    let send = trial.sending("q", vec![(Incoming { priority: Some(priority), ..message(id) }, content)]);
    trial.submit(send).unwrap();
}

#[test]
fn a_selector_finds_the_best_match_wherever_it_stands_and_looks_at_each_message_once() {
    let mut trial = wanting_red(0);
    for number in 0..40 {
        send_colour(&mut trial, &format!("b{number}"), "blue", 9);
    }
    for (id, level) in [("low", 1), ("high", 8), ("middle", 4)] {
        send_colour(&mut trial, id, "red", level);
    }
    credit(&mut trial, 1, 2);
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "high"), (1, "middle")]));
    // Whatever comes now is looked at by itself: one step for one message.
    credit(&mut trial, 1, 5);
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "low")]));
    send_colour(&mut trial, "late", "blue", 4);
    let mut looks = Vec::new();
    while trial.state.has_deliverable() {
        let mut outcome = crate::Outcome::default();
        trial.state.decide(trial.now, &Command::Deliver, &trial.stored, &mut outcome).unwrap();
        looks.extend(outcome.facts.iter().filter_map(|fact| match fact {
            Fact::SelectorLooked { upto, again, .. } => Some((upto.0, again.len())),
            _ => None,
        }));
        trial.step(&Command::Deliver).unwrap();
    }
    assert_eq!(looks, [(44, 0)]);
}

#[test]
fn a_selector_sees_a_message_again_that_comes_back_and_never_one_that_is_gone() {
    let mut trial = wanting_red(1);
    for id in ["a", "b", "c"] {
        send_colour(&mut trial, id, "red", 4);
    }
    let first = trial.receive().pop().unwrap();
    assert_eq!(trial.id_of(&first), "a");
    trial.attach("q", 2, 1);
    assert_eq!(handed_out(&mut trial), pairs(&[(2, "b")]));
    trial.settle(&first, Settlement::Abandon { changes: None, delay: None }).unwrap();
    credit(&mut trial, 1, 5);
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "a"), (1, "c")]));
}

#[test]
fn a_selector_that_finds_more_than_it_can_remember_gets_all_of_it_in_order() {
    let mut trial = wanting_red(0);
    for number in 0..700 {
        send_colour(&mut trial, &format!("m{number}"), "red", u8::try_from(number % 10).unwrap());
    }
    credit(&mut trial, 1, 700);
    let got = trial.receive();
    let order: Vec<_> = got.iter().map(|delivery| (255 - delivery.level.0, delivery.sequence)).collect();
    assert_eq!(order.len(), 700);
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(trial.state.audit(), Vec::<String>::new());
}

#[test]
fn part_of_a_credit_is_kept_for_the_highest_class() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::PrefetchShare(Share::per_mille(500).unwrap())]);
    trial.attach("q", 1, 4);
    trial.send("q", &["a", "b", "c", "d"]).unwrap();
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "a"), (1, "b")]), "half of the credit");
    trial.send_all("q", vec![Incoming { priority: Some(9), ..message("urgent") }]).unwrap();
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "urgent")]));
}

#[test]
fn a_paused_queue_keeps_its_receivers_waiting() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::Paused(true)]);
    trial.attach("q", 1, 5);
    trial.send("q", &["a"]).unwrap();
    assert_eq!(handed_out(&mut trial), []);
    trial.update("q", Setting::Paused(false));
    assert_eq!(handed_out(&mut trial), pairs(&[(1, "a")]));
}

#[test]
fn receivers_are_sent_away_when_their_entity_goes_or_closes() {
    use crate::entity::{Request, Status};
    let shut = |change: Request| {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        attach(&mut trial, &["q", "q/$deadletterqueue"], 1, |_| {}).unwrap();
        let request = crate::RequestTag(1);
        let effects = trial.step(&Command::Administer { request, change: Box::new(change) }).unwrap();
        let entity = crate::EntityId(0);
        let ends: Vec<_> = effects
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Detach { refusal, .. } => Some(refusal),
                _ => None,
            })
            .collect();
        let again =
            attach(&mut trial, &[], 1, |attach| attach.mailboxes = smallvec![MailboxId::main(entity)]);
        (ends, again.unwrap_err())
    };
    let entity = crate::EntityId(0);
    let path = crate::trial::path("q");
    let disabled = Request::Update { path: path.clone(), settings: vec![Setting::Status(Status::Disabled)] };
    let refusal = Refusal::ReceiveDisabled { entity };
    assert_eq!(shut(disabled), (vec![refusal.clone()], refusal));
    let mailbox = MailboxId::main(entity);
    assert_eq!(
        shut(Request::Delete { path }),
        (vec![Refusal::EntityNotFound { entity }], Refusal::MailboxNotFound { mailbox })
    );
}

#[test]
fn attaching_is_bounded_and_checked() {
    let mut trial =
        Trial::with(Limits { receivers_per_mailbox_max: 2, ordered_mailboxes_max: 2, ..Limits::default() });
    for name in ["a", "b", "c"] {
        trial.queue(name, vec![]);
    }
    trial.queue("sessions", vec![Setting::RequiresSession(true)]);
    trial.topic("news");
    attach(&mut trial, &["a", "b"], 1, |_| {}).unwrap();
    let exists = Refusal::ReceiverExists { receiver: ReceiverId(1) };
    let too_many = |what, limit| Refusal::TooMany { what, limit };
    let count = |count| Refusal::RequestSize { what: Countable::Mailboxes, count, limit: 2 };
    attach(&mut trial, &["a"], 2, |_| {}).unwrap();
    let cases: [(&[&str], u64, Refusal); 7] = [
        (&["b"], 1, exists),
        (&["a"], 3, too_many(Countable::Receivers, 2)),
        (&["a", "b", "c"], 3, count(3)),
        (&[], 3, count(0)),
        (&["b", "b"], 3, too_many(Countable::Mailboxes, 2)),
        (&["sessions"], 3, Refusal::SessionRequired { entity: trial.id("sessions") }),
        (&["news"], 3, Refusal::MailboxNotFound { mailbox: trial.mailbox("news") }),
    ];
    for (mailboxes, receiver, refusal) in cases {
        assert_eq!(attach(&mut trial, mailboxes, receiver, |_| {}), Err(refusal), "{mailboxes:?}");
    }
    attach(&mut trial, &["sessions/$deadletterqueue"], 3, |_| {}).unwrap();
}

#[test]
fn tokens_are_new_for_every_delivery_and_after_every_restart() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.attach("q", 1, 1);
    trial.send("q", &["a"]).unwrap();
    let first = trial.receive().pop().unwrap();
    trial.settle(&first, Settlement::Release).unwrap();
    credit(&mut trial, 1, 1);
    let second = trial.receive().pop().unwrap();
    assert_ne!(first.token, second.token);
    assert!(trial.settle(&first, Settlement::Complete).is_err());
    // A crash forgets the lock; its token must not come back for another message.
    let mut lost = crate::State::new(Limits::default());
    for fact in
        trial.written.iter().filter(|fact| !matches!(fact, Fact::Locked { .. } | Fact::Returned { .. }))
    {
        lost.apply(fact);
    }
    trial.state = lost;
    trial.step(&Command::Recover).unwrap();
    trial.attach("q", 1, 2);
    let after = trial.receive();
    assert!(after.iter().all(|delivery| delivery.token != first.token && delivery.token != second.token));
    assert_eq!(after.len(), 1);
}

#[test]
fn locks_outlive_their_receiver() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::LockDuration(Span::seconds(30))]);
    trial.attach("q", 1, 1);
    trial.send("q", &["a"]).unwrap();
    let delivery = trial.receive().pop().unwrap();
    trial.step(&Command::Detach { receiver: ReceiverId(1) }).unwrap();
    trial.attach("q", 2, 1);
    assert_eq!(handed_out(&mut trial), []);
    trial.settle(&delivery, Settlement::Complete).unwrap();
}

#[test]
fn a_changed_lock_duration_holds_from_the_next_delivery_on() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::LockDuration(Span::seconds(30))]);
    trial.attach("q", 1, 1);
    trial.send("q", &["a", "b"]).unwrap();
    let first = trial.receive().remove(0);
    trial.update("q", Setting::LockDuration(Span::seconds(60)));
    credit(&mut trial, 1, 1);
    let second = trial.receive().remove(0);
    let lasts = |until: Option<crate::Timestamp>| until.unwrap().since(trial.state.now());
    assert_eq!(
        (lasts(first.locked_until), lasts(second.locked_until)),
        (Span::seconds(30), Span::seconds(60))
    );
}
