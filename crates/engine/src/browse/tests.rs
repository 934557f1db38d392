use super::*;
use crate::command::{Command, Selection, Settlement};
use crate::effect::Reply;
use crate::entity::Setting;
use crate::id::{Sequence, SessionId};
use crate::level::Level;
use crate::limits::Limits;
use crate::message::{Incoming, MessageState};
use crate::refusal::{Countable, Refusal};
use crate::text::Text;
use crate::time::{Span, Timestamp};
use crate::trial::{Trial, message};
use proptest::prelude::*;
use std::sync::Arc;
use vorrang_filter::{Filter, MapMessage, Parameters, Sql, SystemProperty, Value};

fn sql(text: &str) -> Filter {
    Sql::parse(text, Parameters::new()).unwrap().into()
}

fn put(trial: &mut Trial, to: &str, incoming: Incoming, number: i64) {
    let id = incoming.read(incoming.message_id.as_ref().unwrap()).into_owned();
    let content = MapMessage::new()
        .with("number", number)
        .with_system(SystemProperty::MessageId, Value::String(id.into()));
    let send = trial.sending(to, vec![(incoming, content)]);
    trial.submit(send).unwrap();
}

/// A queue with a message in each state: locked, deferred, delayed, scheduled, ready.
fn every_state() -> Trial {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.send("q", &["locked", "deferred", "delayed"]).unwrap();
    trial.attach("q", 1, 3);
    let deliveries = trial.receive();
    trial.settle(&deliveries[1], Settlement::Defer { changes: None }).unwrap();
    let delay = Some(Span::seconds(30));
    trial.settle(&deliveries[2], Settlement::Abandon { changes: None, delay }).unwrap();
    trial.step(&Command::Credit { receiver: crate::id::ReceiverId(1), credit: 0, drain: false }).unwrap();
    let scheduled =
        Incoming { scheduled_for: Some(trial.now.after(Span::minutes(1))), ..message("scheduled") };
    put(&mut trial, "q", scheduled, 0);
    trial.send("q", &["ready"]).unwrap();
    trial.settle_down();
    trial
}

fn delete(
    trial: &mut Trial,
    selection: Selection,
    before: Timestamp,
    max: u32,
) -> Result<(u32, Option<Sequence>), Refusal> {
    let mailbox = trial.mailbox("q");
    let reply = trial.ask(|request| Command::DeleteMessages { request, mailbox, selection, before, max })?;
    let Reply::Deleted { count, next } = reply else { panic!("{reply:?}") };
    Ok((count, next))
}

fn reprioritise(
    trial: &mut Trial,
    selection: Selection,
    level: u8,
    dry_run: bool,
) -> (u32, Option<Sequence>) {
    let mailbox = trial.mailbox("q");
    let (level, max) = (Level(level), 1_000);
    let reply = trial
        .ask(|request| Command::Reprioritise { request, mailbox, selection, level, max, dry_run })
        .unwrap();
    let Reply::Reprioritised { count, next } = reply else { panic!("{reply:?}") };
    (count, next)
}

#[test]
fn peek_shows_every_state_in_the_order_of_numbers() {
    let trial = every_state();
    assert_eq!(trial.ids("q"), ["locked", "deferred", "delayed", "scheduled", "ready"]);
    let states: Vec<_> = trial.peeked("q").iter().map(|delivery| delivery.state).collect();
    let active = MessageState::Active;
    assert_eq!(states, [active, MessageState::Deferred, active, MessageState::Scheduled, active]);
    assert!(trial.peeked("q").iter().all(|delivery| delivery.token.is_none()));
    let deferred = Peek { state: Some(MessageState::Deferred), ..Peek::new(trial.mailbox("q"), 10) };
    assert_eq!(trial.state.peek(&deferred, &trial.stored).unwrap().messages.len(), 1);
}

#[test]
fn peek_goes_on_where_it_stopped() {
    let mut trial = Trial::with(Limits { peek_max: 4, ..Limits::default() });
    trial.queue("q", vec![]);
    let ids: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    trial.send("q", &ids.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let mut seen = Vec::new();
    let mut from = Some(Sequence(0));
    let mut calls = 0;
    while let Some(start) = from {
        let peek = Peek { from: start, ..Peek::new(trial.mailbox("q"), 100) };
        let peeked = trial.state.peek(&peek, &trial.stored).unwrap();
        seen.extend(peeked.messages.iter().map(|delivery| trial.id_of(delivery)));
        from = peeked.next;
        calls += 1;
    }
    assert_eq!((seen, calls), (ids, 3));
}

#[test]
fn peek_by_session_level_and_filter() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::RequiresSession(true)]);
    for (number, session) in ["a", "b", "a", "b"].iter().enumerate() {
        let incoming = Incoming {
            session_id: Some(Text::from(*session)),
            priority: Some(u8::try_from(number).unwrap()),
            ..message(&number.to_string())
        };
        put(&mut trial, "q", incoming, i64::try_from(number).unwrap());
    }
    let found = |peek: &Peek<'_>| -> Vec<String> {
        let peeked = trial.state.peek(peek, &trial.stored).unwrap();
        peeked.messages.iter().map(|delivery| trial.id_of(delivery)).collect()
    };
    let (mailbox, session, filter) =
        (trial.mailbox("q"), SessionId::from("b"), sql("number > 0 AND number <> 2"));
    let all = Peek::new(mailbox, 10);
    assert_eq!(found(&Peek { session: Some(&session), ..all.clone() }), ["1", "3"]);
    assert_eq!(found(&Peek { level: Some(Level(2)), ..all.clone() }), ["2"]);
    assert_eq!(found(&Peek { filter: Some(&filter), ..all.clone() }), ["1", "3"]);
    assert_eq!(found(&Peek { filter: Some(&filter), from: Sequence(3), ..all }), ["3"]);
}

#[test]
fn deleting_all_takes_ready_messages_and_no_others() {
    let mut trial = every_state();
    assert_eq!(delete(&mut trial, Selection::All, Timestamp::NEVER, 100), Ok((1, None)));
    assert_eq!(trial.ids("q"), ["locked", "deferred", "delayed", "scheduled"]);
    assert_eq!(delete(&mut trial, Selection::All, Timestamp::NEVER, 100), Ok((0, None)));
}

#[test]
fn deleting_by_number_takes_whatever_nobody_works_on() {
    let mut trial = every_state();
    let numbers = (1..20).map(Sequence).chain([Sequence(2)]).collect();
    assert_eq!(delete(&mut trial, Selection::Sequences(numbers), Timestamp::NEVER, 100), Ok((4, None)));
    assert_eq!(trial.ids("q"), ["locked"]);
    assert_eq!(trial.replayed().contents(), trial.contents());
}

#[test]
fn deleting_keeps_to_the_cut_off_time_and_the_count() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.send("q", &["1", "2"]).unwrap();
    let cut_off = trial.now.after(Span(1));
    trial.advance(Span(1));
    trial.send("q", &["3", "4"]).unwrap();
    assert_eq!(delete(&mut trial, Selection::All, cut_off, 1), Ok((1, None)));
    assert_eq!(trial.ids("q"), ["2", "3", "4"]);
    assert_eq!(delete(&mut trial, Selection::All, cut_off, 10), Ok((1, None)));
    assert_eq!(delete(&mut trial, Selection::All, cut_off, 10), Ok((0, None)));
    assert_eq!(trial.ids("q"), ["3", "4"]);
    let max = trial.state.limits().batch_delete_max;
    for (count, valid) in [(0, false), (1, true), (max, true), (max + 1, false)] {
        let refused = delete(&mut trial, Selection::All, Timestamp(0), count);
        assert_eq!(refused.is_ok(), valid, "{count}");
        if let Err(refusal) = refused {
            let limit = u64::from(max);
            assert_eq!(
                refusal,
                Refusal::RequestSize { what: Countable::Messages, count: count.into(), limit }
            );
        }
    }
}

#[test]
fn a_purge_across_levels_takes_the_oldest_first() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    for (number, priority) in [9, 1, 200, 4, 9].into_iter().enumerate() {
        trial.advance(Span(1));
        put(&mut trial, "q", Incoming { priority: Some(priority), ..message(&number.to_string()) }, 0);
    }
    assert_eq!(delete(&mut trial, Selection::All, Timestamp::NEVER, 3), Ok((3, None)));
    assert_eq!(trial.ids("q"), ["3", "4"]);
}

#[test]
fn a_session_is_deleted_by_itself() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::RequiresSession(true)]);
    for (id, session) in [("1", "a"), ("2", "b"), ("3", "a")] {
        put(&mut trial, "q", Incoming { session_id: Some(Text::from(session)), ..message(id) }, 0);
    }
    let session = Selection::Session(SessionId::from("a"));
    assert_eq!(delete(&mut trial, session, Timestamp::NEVER, 100), Ok((2, None)));
    assert_eq!(trial.ids("q"), ["2"]);
    assert_eq!(
        delete(&mut trial, Selection::Session(SessionId::from("x")), Timestamp::NEVER, 100),
        Ok((0, None))
    );
    assert_eq!(delete(&mut trial, Selection::All, Timestamp::NEVER, 100), Ok((1, None)));
}

#[test]
fn a_search_is_bounded_and_says_where_to_go_on() {
    let mut trial = Trial::with(Limits { scan_max: 3, ..Limits::default() });
    trial.queue("q", vec![]);
    for number in 0..8 {
        put(&mut trial, "q", message(&number.to_string()), number);
    }
    let filter = Arc::new(sql("number % 4 = 1"));
    let mut from = Sequence(0);
    let mut total = 0;
    let mut calls = 0;
    loop {
        let selection = Selection::Filter { filter: Arc::clone(&filter), from };
        let (count, next) = delete(&mut trial, selection, Timestamp::NEVER, 100).unwrap();
        total += count;
        calls += 1;
        match next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!((total, calls), (2, 3));
    assert_eq!(trial.ids("q"), ["0", "2", "3", "4", "6", "7"]);
}

#[test]
fn another_level_means_another_turn() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    for number in 0..4 {
        put(&mut trial, "q", message(&number.to_string()), number);
    }
    let filter = || Selection::Filter { filter: Arc::new(sql("number >= 2")), from: Sequence(0) };
    assert_eq!(reprioritise(&mut trial, filter(), 200, true), (2, None));
    assert!(trial.peeked("q").iter().all(|delivery| delivery.level == Level(4)), "a dry run changes nothing");
    assert_eq!(reprioritise(&mut trial, filter(), 200, false), (2, None));
    assert_eq!(reprioritise(&mut trial, filter(), 200, false), (0, None), "they have it already");
    assert_eq!(reprioritise(&mut trial, Selection::Sequences(vec![Sequence(1)]), 1, false), (1, None));
    trial.attach("q", 1, 10);
    let order: Vec<String> = trial.receive().iter().map(|delivery| trial.id_of(delivery)).collect();
    assert_eq!(order, ["2", "3", "1", "0"]);
    assert_eq!(reprioritise(&mut trial, Selection::All, 9, false), (0, None), "all are being worked on");
}

#[test]
fn there_is_nothing_to_see_where_there_is_no_mailbox() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.topic("t");
    assert_eq!(trial.peeked("q"), []);
    let nowhere = crate::id::MailboxId::dead_letter(trial.id("t"));
    assert!(trial.state.peek(&Peek::new(nowhere, 1), &trial.stored).is_err());
    let gone = trial.mailbox("q");
    trial.delete("q");
    assert!(trial.state.peek(&Peek::new(gone, 1), &trial.stored).is_err());
}

/// Twenty messages, of which those from the fifth to the fourteenth lie on disk in two runs.
fn partly_cold(limits: Limits) -> Trial {
    let mut trial = Trial::with(limits);
    trial.queue("q", vec![]);
    for number in 0..15 {
        put(&mut trial, "q", message(&number.to_string()), number);
        trial.advance(Span(1));
    }
    trial.attach("q", 1, 5);
    assert_eq!(trial.receive().len(), 5);
    trial.step(&Command::Detach { receiver: crate::id::ReceiverId(1) }).unwrap();
    trial.chill("q", 4, 6);
    trial.chill("q", 4, 4);
    for number in 15..20 {
        put(&mut trial, "q", message(&number.to_string()), number);
    }
    trial
}

fn ids(range: std::ops::Range<i64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[test]
fn peek_sees_what_lies_on_disk() {
    let trial = partly_cold(Limits { peek_max: 3, ..Limits::default() });
    assert_eq!(trial.ids("q"), ids(0..20));
    let filter = sql("number > 7 AND number < 12");
    for from in [0, 6, 9, 13, 16, 21] {
        let peek = Peek { from: Sequence(from), filter: Some(&filter), ..Peek::new(trial.mailbox("q"), 100) };
        let found = trial.state.peek(&peek, &trial.stored).unwrap();
        let first = i64::try_from(from).unwrap() - 1;
        let expected: Vec<_> =
            (8..12).filter(|number| *number >= first).take(3).map(|n| n.to_string()).collect();
        let found: Vec<_> = found.messages.iter().map(|delivery| trial.id_of(delivery)).collect();
        assert_eq!(found, expected, "from {from}");
    }
}

#[test]
fn a_purge_reads_what_lies_on_disk_and_goes_on() {
    let mut trial = partly_cold(Limits { warm_batch: 4, ..Limits::default() });
    let mut total = 0;
    loop {
        let (count, next) = delete(&mut trial, Selection::All, Timestamp::NEVER, 100).unwrap();
        total += count;
        trial.settle_down();
        if next.is_none() {
            break;
        }
    }
    assert_eq!(total, 15);
    assert_eq!(trial.ids("q"), ids(0..5), "what is locked stays");
    assert_eq!(trial.replayed().contents(), trial.contents());
}

#[test]
fn messages_on_disk_are_deleted_and_moved_by_number_however_deep_they_lie() {
    let mut trial = partly_cold(Limits::default());
    // The message with the content n has the number n + 1: one locked, three on disk in both runs, one after them.
    let numbers = [3, 8, 9, 14, 17].map(Sequence).to_vec();
    assert_eq!(delete(&mut trial, Selection::Sequences(numbers), Timestamp::NEVER, 100), Ok((4, None)));
    let left: Vec<String> =
        ids(0..20).into_iter().filter(|id| !["7", "8", "13", "16"].contains(&id.as_str())).collect();
    assert_eq!(trial.ids("q"), left);
    assert_eq!(trial.state.counts(trial.mailbox("q")).ready, 11);
    assert_eq!(trial.replayed().contents(), trial.contents());
    assert_eq!(trial.state.audit(), Vec::<String>::new());
    // What is too young stays on disk, and a dry run brings nothing back.
    let number = || Selection::Sequences(vec![Sequence(12)]);
    assert_eq!(delete(&mut trial, number(), Timestamp(1_000_011), 100), Ok((0, None)));
    assert_eq!(reprioritise(&mut trial, number(), 9, true), (1, None));
    assert_eq!(reprioritise(&mut trial, number(), 9, false), (1, None));
    assert_eq!(reprioritise(&mut trial, number(), 9, false), (0, None), "it has it already");
    trial.attach("q", 2, 3);
    let order: Vec<String> = trial.receive().iter().map(|delivery| trial.id_of(delivery)).collect();
    assert_eq!(order, ["11", "5", "6"]);
}

#[test]
fn a_search_reads_what_lies_on_disk_and_goes_on() {
    let mut trial = partly_cold(Limits { warm_batch: 4, ..Limits::default() });
    let filter = Arc::new(sql("number % 2 = 0"));
    let mut from = Sequence(0);
    let mut total = 0;
    for _ in 0..20 {
        let selection = Selection::Filter { filter: Arc::clone(&filter), from };
        let (count, next) = reprioritise(&mut trial, selection, 9, false);
        total += count;
        trial.settle_down();
        match next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(total, 7, "the even ones that are not locked");
    let levels: Vec<_> = trial.peeked("q").iter().map(|delivery| delivery.level.0).collect();
    let expected: Vec<_> = (0..20).map(|number| if number >= 5 && number % 2 == 0 { 9 } else { 4 }).collect();
    assert_eq!(levels, expected);
}

proptest! {
    #[test]
    fn a_filter_selects_what_a_look_at_each_would(numbers in proptest::collection::vec(0..20_i64, 0..30), bound in 0..20_i64) {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        for (index, number) in numbers.iter().enumerate() {
            put(&mut trial, "q", message(&index.to_string()), *number);
        }
        let filter = Arc::new(sql(&format!("number < {bound}")));
        let expected = numbers.iter().filter(|number| **number < bound).count();
        let selection = Selection::Filter { filter, from: Sequence(0) };
        prop_assert_eq!(reprioritise(&mut trial, selection.clone(), 9, true), (u32::try_from(expected).unwrap(), None));
        prop_assert_eq!(delete(&mut trial, selection, Timestamp::NEVER, 1_000), Ok((u32::try_from(expected).unwrap(), None)));
        let left: Vec<String> = numbers.iter().enumerate()
            .filter(|(_, number)| **number >= bound).map(|(index, _)| index.to_string()).collect();
        prop_assert_eq!(trial.ids("q"), left);
    }
}
