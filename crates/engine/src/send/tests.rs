//! What is accepted, and what is not.

use crate::entity::{Setting, Status};
use crate::fact::Fact;
use crate::id::{MailboxId, Sequence};
use crate::limits::Limits;
use crate::message::Incoming;
use crate::refusal::{Countable, KeyKind, Refusal};
use crate::text::Text;
use crate::time::{Span, Timestamp};
use crate::trial::{Trial, large, message};

#[test]
fn each_bound_holds_at_its_edge() {
    let mut trial = Trial::with(Limits { batch_messages_max: 2, key_chars_max: 3, ..Limits::default() });
    trial.queue("q", vec![]);
    let keyed = |id: &str, session: Option<&str>, partition: Option<&str>| Incoming {
        message_id: Some(Text::from(id)),
        session_id: session.map(Text::from),
        partition_key: partition.map(Text::from),
        ..message("m")
    };
    let too_long = |what| Err(Refusal::KeyTooLong { what, limit: 3 });
    let batch = |count| Err(Refusal::RequestSize { what: Countable::Messages, count, limit: 2 });
    let size = 256 * 1024;
    let cases: [(&str, Vec<Incoming>, Result<usize, Refusal>); 12] = [
        ("nothing", vec![], Ok(0)),
        ("two", vec![message("a"), message("b")], Ok(2)),
        ("three", vec![message("a"), message("b"), message("c")], batch(3)),
        ("largest", vec![large("a", size)], Ok(1)),
        (
            "larger",
            vec![large("a", size + 1)],
            Err(Refusal::MessageTooLarge { size: 262_145, limit: 262_144 }),
        ),
        ("id of three", vec![keyed("äöü", None, None)], Ok(1)),
        ("id of four", vec![keyed("abcd", None, None)], too_long(KeyKind::MessageId)),
        ("session of four", vec![keyed("a", Some("abcd"), None)], too_long(KeyKind::SessionId)),
        ("partition of four", vec![keyed("a", None, Some("abcd"))], too_long(KeyKind::PartitionKey)),
        ("same keys", vec![keyed("a", Some("s"), Some("s"))], Ok(1)),
        ("other keys", vec![keyed("a", Some("s"), Some("t"))], Err(Refusal::PartitionKeyDiffers)),
        ("one bad of two", vec![message("a"), keyed("abcd", None, None)], too_long(KeyKind::MessageId)),
    ];
    for (case, messages, expected) in cases {
        let before = trial.state.counts(trial.mailbox("q")).ready;
        let sent = trial.send_all("q", messages);
        assert_eq!(sent.as_ref().map(Vec::len), expected.as_ref().copied(), "{case}");
        let added = trial.state.counts(trial.mailbox("q")).ready - before;
        assert_eq!(usize::try_from(added).unwrap(), expected.unwrap_or(0), "{case}: all or nothing");
    }
}

#[test]
fn a_full_queue_says_so_and_takes_messages_again_when_there_is_room() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::MaxMessageSizeInKilobytes(102_400), Setting::MaxSizeInMegabytes(1_024)]);
    let hundred = 100 * 1024 * 1024;
    for number in 0..10 {
        trial.send_all("q", vec![large(&format!("m{number}"), hundred)]).unwrap();
    }
    let entity = trial.id("q");
    let held = 10 * 100 * 1024 * 1024;
    let full = Refusal::QuotaExceeded { entity, size: held, limit: 1_024 * 1024 * 1024 };
    assert_eq!(trial.send_all("q", vec![large("more", hundred)]), Err(full));
    trial.send_all("q", vec![large("last", 24 * 1024 * 1024)]).unwrap();
    assert_eq!(trial.state.size(entity), 1_024 * 1024 * 1024);
    trial.attach("q", 1, 1);
    let got = trial.receive().pop().unwrap();
    assert!(trial.send("q", &["x"]).is_err(), "a locked message still counts");
    trial.settle(&got, crate::command::Settlement::Complete).unwrap();
    trial.send("q", &["x"]).unwrap();
}

#[test]
fn status_decides_who_may_send() {
    for (status, allowed) in [
        (Status::Active, true),
        (Status::ReceiveDisabled, true),
        (Status::SendDisabled, false),
        (Status::Disabled, false),
    ] {
        let mut trial = Trial::new();
        let entity = trial.queue("q", vec![Setting::Status(status)]);
        let expected = if allowed { Ok(vec![Sequence(1)]) } else { Err(Refusal::SendDisabled { entity }) };
        assert_eq!(trial.send("q", &["a"]), expected, "{status}");
    }
}

#[test]
fn time_to_live_is_the_shorter_of_the_message_s_and_the_entity_s() {
    let cases = [
        (None, Span::FOREVER, None),
        (Some(10), Span::FOREVER, Some(10)),
        (None, Span::seconds(5), Some(5)),
        (Some(10), Span::seconds(5), Some(5)),
        (Some(3), Span::seconds(5), Some(3)),
        (Some(0), Span::FOREVER, Some(0)),
    ];
    for (own, default, expected) in cases {
        let mut trial = Trial::new();
        trial.queue("q", vec![Setting::DefaultMessageTimeToLive(default)]);
        let time_to_live = own.map(Span::seconds);
        trial.send_all("q", vec![Incoming { time_to_live, ..message("a") }]).unwrap();
        let expires = trial.peeked("q")[0].expires;
        let due = expected.map_or(Timestamp::NEVER, |seconds| trial.now.after(Span::seconds(seconds)));
        assert_eq!(expires, due, "{own:?} within {default}");
    }
}

#[test]
fn a_message_without_an_id_is_given_one_and_is_never_a_duplicate() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::RequiresDuplicateDetection(true)]);
    let nameless = || Incoming { message_id: None, ..message("x") };
    trial.send_all("q", vec![nameless(), nameless(), message("x")]).unwrap();
    let ids: Vec<_> = trial
        .written
        .iter()
        .filter_map(|fact| match fact {
            Fact::Enqueued { payload, .. } => Some(payload.assigned_id),
            _ => None,
        })
        .collect();
    assert!(matches!(ids[..], [Some(first), Some(second), None] if first != second), "{ids:?}");
}

#[test]
fn ids_are_remembered_up_to_a_bound_and_then_sends_wait() {
    let mut trial = Trial::with(Limits { duplicate_ids_max: 3, ..Limits::default() });
    trial.queue(
        "q",
        vec![
            Setting::RequiresDuplicateDetection(true),
            Setting::DuplicateDetectionHistoryTimeWindow(Span::seconds(20)),
        ],
    );
    trial.send("q", &["a", "b", "a"]).unwrap();
    assert_eq!(trial.ids("q"), ["a", "b"]);
    trial.send("q", &["c"]).unwrap();
    let full = Refusal::TooMany { what: Countable::DuplicateIds, limit: 3 };
    assert_eq!(trial.send("q", &["d"]), Err(full));
    assert_eq!(trial.send("q", &["a"]).unwrap(), [Sequence(0)], "a duplicate is accepted and dropped");
    trial.advance(Span::seconds(20));
    trial.send("q", &["d", "a"]).unwrap();
}

#[test]
fn a_schedule_is_kept_until_its_time_and_past_times_are_now() {
    for (offset, scheduled) in [(-5_i64, false), (0, false), (1, true)] {
        let mut trial = Trial::new();
        trial.queue("q", vec![]);
        let at = Timestamp(trial.now.0.checked_add_signed(offset).unwrap());
        trial.send_all("q", vec![Incoming { scheduled_for: Some(at), ..message("a") }]).unwrap();
        assert_eq!(trial.state.counts(trial.mailbox("q")).scheduled == 1, scheduled, "{offset} ms");
    }
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    let later = |id: &str, seconds| Incoming {
        scheduled_for: Some(Timestamp(1_000_000).after(Span::seconds(seconds))),
        time_to_live: Some(Span::seconds(10)),
        ..message(id)
    };
    trial.send_all("q", vec![later("second", 60), later("first", 30)]).unwrap();
    trial.advance(Span::seconds(29));
    trial.settle_down();
    assert_eq!(trial.state.counts(trial.mailbox("q")).scheduled, 2);
    trial.advance(Span::seconds(1));
    trial.settle_down();
    let active = trial.peeked("q").into_iter().find(|delivery| delivery.scheduled_for.is_none()).unwrap();
    assert_eq!(
        (trial.id_of(&active), active.sequence, active.enqueued),
        ("first".to_owned(), Sequence(3), trial.now)
    );
    assert_eq!(active.expires, trial.now.after(Span::seconds(10)), "its life begins when it is seen");
}

#[test]
fn subscriptions_take_no_sends() {
    let mut trial = Trial::new();
    trial.topic("news");
    let entity = trial.subscribe("news", "all", vec![], None);
    assert_eq!(trial.send("news/subscriptions/all", &["a"]), Err(Refusal::WrongKind { entity }));
    trial.send("news", &["a"]).unwrap();
    assert_eq!(trial.state.counts(MailboxId::main(entity)).ready, 1);
}

#[test]
fn a_class_that_nobody_knows_is_no_class_and_is_counted() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    for (class, level) in [("platinum", 3), ("HIGH", 7), ("gold", 3)] {
        let content = vorrang_filter::MapMessage::new().with("Priority", class);
        let incoming = Incoming { priority: Some(3), ..message(class) };
        let send = trial.sending("q", vec![(incoming, content)]);
        trial.submit(send).unwrap();
        let newest = trial.peeked("q").pop().unwrap();
        assert_eq!(newest.level, crate::Level(level), "{class}");
    }
    let mailbox = trial.mailbox("q");
    assert_eq!(trial.state.unknown_classes(mailbox), 2);
}
