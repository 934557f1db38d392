use super::*;
use crate::command::{Command, Settlement};
use crate::entity::Setting;
use crate::limits::Limits;
use crate::message::{Delivery, Incoming};
use crate::refusal::Countable;
use crate::time::Span;
use crate::trial::{Trial, large, message};
use vorrang_filter::MapMessage;

fn declare(trial: &mut Trial) -> TransactionId {
    match trial.ask(|request| Command::Declare { request }).unwrap() {
        Reply::Declared { transaction } => transaction,
        other => panic!("{other:?}"),
    }
}

fn discharge(trial: &mut Trial, transaction: TransactionId, rollback: bool) -> Result<Reply, Refusal> {
    trial.ask(|request| Command::Discharge { request: Some(request), transaction, rollback })
}

fn send_in(
    trial: &mut Trial,
    transaction: TransactionId,
    to: &str,
    id: &str,
) -> Result<Vec<Sequence>, Refusal> {
    submit_in(trial, transaction, to, message(id))
}

fn submit_in(
    trial: &mut Trial,
    transaction: TransactionId,
    to: &str,
    incoming: Incoming,
) -> Result<Vec<Sequence>, Refusal> {
    let id = incoming.read(incoming.message_id.as_ref().unwrap()).into_owned();
    let content = MapMessage::new()
        .with_system(vorrang_filter::SystemProperty::MessageId, vorrang_filter::Value::String(id.into()));
    let send = trial.sending(to, vec![(incoming, content)]);
    trial.submit(Send { transaction: Some(transaction), ..send })
}

fn complete_in(trial: &mut Trial, transaction: TransactionId, delivery: &Delivery) -> Result<Reply, Refusal> {
    let settle = trial.settling(delivery, Settlement::Complete);
    trial.ask(|request| Command::Settle(Settle { request, transaction: Some(transaction), ..settle }))
}

/// Two queues, a message of the first in hand.
fn two_queues() -> (Trial, Delivery) {
    let mut trial = Trial::new();
    trial.queue("in", vec![]);
    trial.queue("out", vec![]);
    trial.send("in", &["job"]).unwrap();
    trial.attach("in", 1, 10);
    let delivery = trial.receive().remove(0);
    (trial, delivery)
}

#[test]
fn nothing_happens_before_the_commit_and_everything_with_it() {
    let (mut trial, job) = two_queues();
    let transaction = declare(&mut trial);
    send_in(&mut trial, transaction, "out", "result").unwrap();
    complete_in(&mut trial, transaction, &job).unwrap();
    trial.settle_down();
    assert_eq!((trial.ids("in"), trial.ids("out")), (vec!["job".to_owned()], vec![]));
    assert_eq!(discharge(&mut trial, transaction, false), Ok(Reply::Done));
    assert_eq!((trial.ids("in"), trial.ids("out")), (vec![], vec!["result".to_owned()]));
    assert_eq!(trial.replayed().contents(), trial.contents());
    assert_eq!(discharge(&mut trial, transaction, false), Err(Refusal::TransactionUnknown { transaction }));
}

#[test]
fn a_rollback_leaves_the_message_locked_and_nothing_sent() {
    let (mut trial, job) = two_queues();
    let transaction = declare(&mut trial);
    send_in(&mut trial, transaction, "out", "result").unwrap();
    complete_in(&mut trial, transaction, &job).unwrap();
    assert_eq!(discharge(&mut trial, transaction, true), Ok(Reply::Done));
    assert_eq!((trial.ids("in"), trial.ids("out")), (vec!["job".to_owned()], vec![]));
    assert!(trial.receive().is_empty(), "still locked");
    trial.settle(&job, Settlement::Complete).unwrap();
}

#[test]
fn a_lock_lost_before_the_commit_undoes_all_of_it() {
    let (mut trial, job) = two_queues();
    let transaction = declare(&mut trial);
    send_in(&mut trial, transaction, "out", "result").unwrap();
    complete_in(&mut trial, transaction, &job).unwrap();
    trial.advance(Span::seconds(60));
    let token = job.token.unwrap();
    let cause = Box::new(Refusal::LockLost { token });
    assert_eq!(
        discharge(&mut trial, transaction, false),
        Err(Refusal::TransactionRolledBack { transaction, cause })
    );
    assert_eq!(trial.ids("out"), Vec::<String>::new());
    assert_eq!(trial.receive()[0].deliveries, 1);
    assert_eq!(trial.replayed().contents(), trial.contents());
}

#[test]
fn a_lock_is_settled_by_its_transaction_alone() {
    let (mut trial, job) = two_queues();
    let token = job.token.unwrap();
    let first = declare(&mut trial);
    let second = declare(&mut trial);
    complete_in(&mut trial, first, &job).unwrap();
    let enlisted = Refusal::LockEnlisted { token, transaction: first };
    assert_eq!(trial.settle(&job, Settlement::Complete), Err(enlisted.clone()));
    assert_eq!(complete_in(&mut trial, second, &job), Err(enlisted.clone()));
    assert_eq!(complete_in(&mut trial, first, &job), Err(enlisted));
    // The refused settlement spoiled both transactions; the lock is free again after them.
    assert!(discharge(&mut trial, second, false).is_err());
    assert!(discharge(&mut trial, first, false).is_err());
    trial.settle(&job, Settlement::Complete).unwrap();
}

#[test]
fn something_refused_spoils_the_transaction() {
    let (mut trial, _) = two_queues();
    trial.queue("sessions", vec![Setting::RequiresSession(true)]);
    let entity = trial.id("sessions");
    let transaction = declare(&mut trial);
    send_in(&mut trial, transaction, "out", "fine").unwrap();
    let refused = Refusal::SessionIdMissing { entity };
    assert_eq!(send_in(&mut trial, transaction, "sessions", "bad"), Err(refused.clone()));
    let cause = Box::new(refused);
    assert_eq!(
        discharge(&mut trial, transaction, false),
        Err(Refusal::TransactionRolledBack { transaction, cause })
    );
    assert_eq!(trial.ids("out"), Vec::<String>::new());
}

#[test]
fn a_transaction_ends_two_minutes_after_its_first_operation() {
    for (waited, open) in [(119_999, true), (120_000, false)] {
        let (mut trial, _) = two_queues();
        let transaction = declare(&mut trial);
        trial.advance(Span::seconds(60));
        trial.settle_down();
        send_in(&mut trial, transaction, "out", "result").unwrap();
        trial.advance(Span(waited));
        trial.settle_down();
        assert_eq!(discharge(&mut trial, transaction, false).is_ok(), open, "{waited}");
        assert_eq!(trial.ids("out").len(), usize::from(open), "{waited}");
    }
}

#[test]
fn operations_and_transactions_are_bounded() {
    let limits = Limits { transaction_operations_max: 2, transactions_max: 1, ..Limits::default() };
    let mut trial = Trial::with(limits);
    trial.queue("out", vec![]);
    let transaction = declare(&mut trial);
    let refused = trial.ask(|request| Command::Declare { request });
    assert_eq!(refused, Err(Refusal::TooMany { what: Countable::Transactions, limit: 1 }));
    send_in(&mut trial, transaction, "out", "1").unwrap();
    send_in(&mut trial, transaction, "out", "2").unwrap();
    let refused = send_in(&mut trial, transaction, "out", "3");
    assert_eq!(refused, Err(Refusal::TooMany { what: Countable::Operations, limit: 2 }));
    assert!(discharge(&mut trial, transaction, false).is_err());
    declare(&mut trial);
}

#[test]
fn scheduled_messages_keep_the_number_they_were_promised() {
    let mut trial = Trial::new();
    trial.queue("out", vec![]);
    let transaction = declare(&mut trial);
    let later = trial.now.after(Span::seconds(30));
    let scheduled = |id: &str| Incoming { scheduled_for: Some(later), ..message(id) };
    let first = submit_in(&mut trial, transaction, "out", scheduled("first")).unwrap();
    trial.send("out", &["between"]).unwrap();
    let second = submit_in(&mut trial, transaction, "out", scheduled("second")).unwrap();
    let plain = send_in(&mut trial, transaction, "out", "plain").unwrap();
    assert_eq!((first, second, plain), (vec![Sequence(1)], vec![Sequence(3)], vec![Sequence(0)]));
    discharge(&mut trial, transaction, false).unwrap();
    assert_eq!(trial.ids("out"), ["first", "between", "second", "plain"]);
    assert_eq!(trial.replayed().contents(), trial.contents());
    trial.advance(Span::seconds(30));
    trial.settle_down();
    assert_eq!(trial.ids("out"), ["between", "plain", "first", "second"]);
}

#[test]
fn numbers_and_quotas_count_within_one_transaction() {
    let mut trial = Trial::new();
    trial.queue("out", vec![Setting::MaxSizeInMegabytes(1), Setting::MaxMessageSizeInKilobytes(1_024)]);
    trial.queue("once", vec![Setting::RequiresDuplicateDetection(true)]);
    let transaction = declare(&mut trial);
    for id in ["same", "same", "other"] {
        send_in(&mut trial, transaction, "once", id).unwrap();
    }
    discharge(&mut trial, transaction, false).unwrap();
    assert_eq!(trial.ids("once"), ["same", "other"]);
    // Each fits alone, both together do not: refused at the commit, as one.
    let transaction = declare(&mut trial);
    for letter in ["a", "b"] {
        submit_in(&mut trial, transaction, "out", large(letter, 600 * 1_024)).unwrap();
    }
    let refused = discharge(&mut trial, transaction, false);
    assert!(matches!(refused, Err(Refusal::TransactionRolledBack { .. })), "{refused:?}");
    assert_eq!(trial.ids("out"), Vec::<String>::new());
}

#[test]
fn a_restart_rolls_back_what_was_open() {
    let (mut trial, job) = two_queues();
    let transaction = declare(&mut trial);
    send_in(&mut trial, transaction, "out", "result").unwrap();
    complete_in(&mut trial, transaction, &job).unwrap();
    let mut trial = trial.replayed();
    trial.step(&Command::Recover).unwrap();
    assert_eq!(discharge(&mut trial, transaction, false), Err(Refusal::TransactionUnknown { transaction }));
    assert_eq!((trial.ids("in"), trial.ids("out")), (vec!["job".to_owned()], vec![]));
    trial.settle(&job, Settlement::Complete).unwrap();
}
