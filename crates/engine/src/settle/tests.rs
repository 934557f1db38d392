//! How deliveries end.

use std::sync::Arc;

use smallvec::smallvec;

use crate::command::{Command, ReceiveMode, Settle, Settlement};
use crate::effect::Reply;
use crate::entity::Setting;
use crate::id::{LockToken, Sequence};
use crate::limits::Limits;
use crate::message::{Delivery, Incoming, MessageState, Overlay};
use crate::refusal::{Countable, Refusal};
use crate::time::Span;
use crate::trial::{Trial, message};

fn abandon() -> Settlement {
    Settlement::Abandon { changes: None, delay: None }
}

fn note(text: &str) -> Arc<Overlay> {
    let mut overlay = Overlay::default();
    overlay.set_text("note", text);
    Arc::new(overlay)
}

/// A queue with one message, locked.
fn locked(settings: Vec<Setting>) -> (Trial, Delivery) {
    let mut trial = Trial::new();
    trial.queue("q", settings);
    trial.attach("q", 1, 1);
    trial.send("q", &["a"]).unwrap();
    let delivery = trial.receive().pop().unwrap();
    (trial, delivery)
}

fn next(trial: &mut Trial, queue: &str, receiver: u64) -> Option<Delivery> {
    trial.attach(queue, receiver, 1);
    trial.receive().pop()
}

#[test]
fn a_lock_holds_until_the_instant_it_ends() {
    for (case, wait, completes) in
        [("just before", 29_999, true), ("at its end", 30_000, false), ("later", 90_000, false)]
    {
        let (mut trial, delivery) = locked(vec![Setting::LockDuration(Span::seconds(30))]);
        trial.advance(Span(wait));
        assert_eq!(trial.settle(&delivery, Settlement::Complete).is_ok(), completes, "{case}");
    }
}

#[test]
fn each_way_back_counts_or_does_not() {
    let cases = [
        ("abandoned", abandon(), 1),
        ("released", Settlement::Release, 0),
        ("suspended", Settlement::Suspend { checkpoint: Some(note("row 5")) }, 0),
    ];
    for (case, settlement, count) in cases {
        let (mut trial, delivery) = locked(vec![]);
        trial.settle(&delivery, settlement).unwrap();
        let again = next(&mut trial, "q", 2).unwrap();
        assert_eq!((again.sequence, again.deliveries), (delivery.sequence, count), "{case}");
        assert_eq!(again.overlay, if case == "suspended" { Some(note("row 5")) } else { None }, "{case}");
    }
}

#[test]
fn the_last_attempt_is_the_one_that_reaches_the_maximum() {
    for (max, attempts_before) in [(1, 0), (2, 1), (3, 2)] {
        let (mut trial, mut delivery) = locked(vec![Setting::MaxDeliveryCount(max)]);
        for attempt in 0..attempts_before {
            trial.settle(&delivery, abandon()).unwrap();
            delivery = next(&mut trial, "q", 10 + attempt).unwrap();
        }
        trial.settle(&delivery, abandon()).unwrap();
        assert_eq!(trial.ids("q"), [""; 0], "maximum {max}");
        let dead = next(&mut trial, "q/$deadletterqueue", 99).unwrap();
        assert_eq!(dead.deliveries, max);
        assert_eq!(
            (dead.sequence, dead.level, dead.enqueued),
            (delivery.sequence, delivery.level, delivery.enqueued)
        );
        assert_eq!(dead.dead_letter_source.as_deref(), Some("q"));
    }
}

#[test]
fn in_a_dead_letter_queue_nothing_counts_expires_or_dies_again() {
    let (mut trial, delivery) =
        locked(vec![Setting::MaxDeliveryCount(1), Setting::DefaultMessageTimeToLive(Span::seconds(90))]);
    trial.settle(&delivery, abandon()).unwrap();
    let bury = Settlement::DeadLetter { reason: Some("again".into()), description: None, changes: None };
    for (receiver, settlement) in [(2, abandon()), (3, bury), (4, abandon())] {
        let dead = next(&mut trial, "q/$deadletterqueue", receiver).unwrap();
        assert_eq!(dead.deliveries, 1);
        trial.settle(&dead, settlement).unwrap();
    }
    trial.advance(Span::days(100));
    trial.settle_down();
    assert_eq!(trial.ids("q/$deadletterqueue"), ["a"]);
}

#[test]
fn changes_are_merged_and_bounded() {
    let (mut trial, delivery) = locked(vec![]);
    trial.settle(&delivery, Settlement::Abandon { changes: Some(note("one")), delay: None }).unwrap();
    let second = next(&mut trial, "q", 2).unwrap();
    let why = Overlay::dead_letter(Some("why"), None);
    trial.settle(&second, Settlement::Defer { changes: Some(Arc::new(why)) }).unwrap();
    let kept = trial.peeked("q")[0].overlay.clone().unwrap();
    assert_eq!(kept.properties.len(), 2, "{kept:?}");

    let mut trial = Trial::with(Limits { overlay_bytes_max: 10, ..Limits::default() });
    trial.queue("q", vec![]);
    trial.attach("q", 1, 1);
    trial.send("q", &["a"]).unwrap();
    let delivery = trial.receive().pop().unwrap();
    let fits = |text: &str| Settlement::Abandon { changes: Some(note(text)), delay: None };
    assert_eq!(
        trial.settle(&delivery, fits("1234567")),
        Err(Refusal::ChangesTooLarge { size: 11, limit: 10 })
    );
    trial.settle(&delivery, fits("123456")).unwrap();
}

#[test]
fn several_are_settled_together_or_not_at_all() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.queue("other", vec![]);
    trial.attach("q", 1, 3);
    trial.send("q", &["a", "b", "c"]).unwrap();
    let got = trial.receive();
    let mailbox = trial.mailbox("q");
    let token = |place: usize| got[place].token.unwrap();
    let lost = |token| Err(Refusal::LockLost { token });
    let unknown = LockToken(42);
    let size = Err(Refusal::RequestSize { what: Countable::Tokens, count: 0, limit: 5_000 });
    let cases = [
        (mailbox, smallvec![token(0), unknown], lost(unknown)),
        (mailbox, smallvec![token(0), token(0)], lost(token(0))),
        (mailbox, smallvec![token(0), token(1), token(2), token(1)], lost(token(1))),
        (mailbox, smallvec![token(2), token(0), token(2)], lost(token(2))),
        (mailbox, smallvec![token(1), token(0), token(2), token(2)], lost(token(2))),
        (mailbox, smallvec![], size),
        (trial.mailbox("other"), smallvec![token(0)], lost(token(0))),
        (mailbox, smallvec![token(2), token(0)], Ok(Reply::Done)),
    ];
    for (mailbox, tokens, expected) in cases {
        let settle = |request| {
            let settlement = Settlement::Complete;
            Command::Settle(Settle { request, mailbox, tokens, settlement, transaction: None })
        };
        assert_eq!(trial.ask(settle), expected);
    }
    assert_eq!(trial.ids("q"), ["b"]);
}

#[test]
fn a_deferred_message_is_received_by_its_number_alone() {
    let (mut trial, delivery) =
        locked(vec![Setting::LockDuration(Span::seconds(30)), Setting::MaxDeliveryCount(2)]);
    let mailbox = trial.mailbox("q");
    trial.settle(&delivery, Settlement::Defer { changes: None }).unwrap();
    assert_eq!(next(&mut trial, "q", 2), None);
    let by_number = |trial: &mut Trial, sequences: Vec<Sequence>, mode| {
        trial.ask(|request| Command::ReceiveDeferred { request, mailbox, sequences, mode, receiver: None })
    };
    let missing = Err(Refusal::MessageNotFound { sequence: Sequence(2) });
    assert_eq!(by_number(&mut trial, vec![Sequence(1), Sequence(2)], ReceiveMode::PeekLock), missing);
    let twice = Err(Refusal::NamedTwice { sequence: Sequence(1) });
    assert_eq!(by_number(&mut trial, vec![Sequence(1); 2], ReceiveMode::PeekLock), twice);
    for count in 0..4 {
        let Ok(Reply::Received { messages }) =
            by_number(&mut trial, vec![Sequence(1)], ReceiveMode::PeekLock)
        else {
            panic!("not received");
        };
        assert_eq!((messages[0].deliveries, messages[0].state), (count, MessageState::Deferred));
        assert!(
            by_number(&mut trial, vec![Sequence(1)], ReceiveMode::PeekLock).is_err(),
            "locked by another"
        );
        trial.advance(Span::seconds(30));
        trial.settle_down();
    }
    assert!(by_number(&mut trial, vec![Sequence(1)], ReceiveMode::ReceiveAndDelete).is_ok());
    assert_eq!(trial.state.counts(mailbox).total(), 0);
}

#[test]
fn expiry_acts_at_once_on_what_was_locked_when_its_time_came() {
    for (kept, gone_to) in [(true, vec!["a".to_owned()]), (false, vec![])] {
        let mut trial = Trial::new();
        trial.queue(
            "q",
            vec![Setting::DeadLetteringOnMessageExpiration(kept), Setting::LockDuration(Span::minutes(5))],
        );
        trial.attach("q", 1, 1);
        trial
            .send_all("q", vec![Incoming { time_to_live: Some(Span::seconds(10)), ..message("a") }])
            .unwrap();
        let delivery = trial.receive().pop().unwrap();
        trial.advance(Span::seconds(60));
        trial.settle_down();
        assert_eq!(trial.ids("q"), ["a"], "locked, it lives");
        trial.settle(&delivery, Settlement::Release).unwrap();
        assert_eq!((trial.ids("q"), trial.ids("q/$deadletterqueue")), (vec![], gone_to));
    }
}

#[test]
fn a_delayed_retry_comes_back_to_its_own_place_in_time() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.attach("q", 1, 1);
    trial.send("q", &["a", "b"]).unwrap();
    let first = trial.receive().pop().unwrap();
    trial.settle(&first, Settlement::Abandon { changes: None, delay: Some(Span::seconds(10)) }).unwrap();
    trial.advance(Span(9_999));
    trial.settle_down();
    assert_eq!(trial.state.counts(trial.mailbox("q")).delayed, 1);
    trial.advance(Span(1));
    trial.attach("q", 2, 2);
    let order: Vec<_> = trial.receive().iter().map(|delivery| delivery.sequence.0).collect();
    assert_eq!(order, [1, 2]);
    assert_eq!(trial.replayed().contents(), trial.contents());
}
