//! Sessions at their edges.

use bytes::Bytes;

use crate::command::{AcceptSession, Command, ReceiveMode, Settlement};
use crate::effect::{Effect, Reply};
use crate::entity::Setting;
use crate::id::{LockToken, ReceiverId, RequestTag, SessionId};
use crate::limits::Limits;
use crate::message::Incoming;
use crate::refusal::{Countable, Refusal};
use crate::text::Text;
use crate::time::Span;
use crate::trial::{Trial, message};

fn sessions(limits: Limits) -> Trial {
    let mut trial = Trial::with(limits);
    trial.queue("q", vec![Setting::RequiresSession(true), Setting::LockDuration(Span::seconds(30))]);
    trial
}

fn send(trial: &mut Trial, id: &str, session: &str, level: u8) {
    let incoming = Incoming { session_id: Some(Text::from(session)), priority: Some(level), ..message(id) };
    trial.send_all("q", vec![incoming]).unwrap();
}

fn accept(
    trial: &mut Trial,
    receiver: u64,
    session: Option<&str>,
    wait: u64,
) -> Result<Vec<Effect>, Refusal> {
    let accept = AcceptSession {
        request: RequestTag(receiver),
        receiver: ReceiverId(receiver),
        mailbox: trial.mailbox("q"),
        session: session.map(SessionId::from),
        mode: ReceiveMode::PeekLock,
        wait: Span::seconds(wait),
    };
    trial.step(&Command::AcceptSession(Box::new(accept)))
}

/// Who was given which session.
fn accepted(effects: &[Effect]) -> Vec<(u64, String)> {
    let found = effects.iter().filter_map(|effect| match effect {
        Effect::Reply { reply: Reply::SessionAccepted { receiver, session, .. }, .. } => {
            Some((receiver.0, session.to_string()))
        }
        _ => None,
    });
    found.collect()
}

fn take(trial: &mut Trial, receiver: u64, credit: u32) -> Vec<crate::Delivery> {
    trial.step(&Command::Credit { receiver: ReceiverId(receiver), credit, drain: false }).unwrap();
    trial.receive()
}

#[test]
fn whoever_waits_longest_gets_the_first_session_that_comes() {
    let mut trial = sessions(Limits::default());
    for receiver in 1..=2 {
        assert_eq!(accept(&mut trial, receiver, None, 60).unwrap(), []);
    }
    send(&mut trial, "a1", "a", 4);
    assert_eq!(accepted(&trial.settle_down()), [(1, "a".to_owned())]);
    // The first is served, so the second is next, also before one who comes later.
    assert_eq!(accept(&mut trial, 3, None, 60).unwrap(), []);
    send(&mut trial, "b1", "b", 4);
    assert_eq!(accepted(&trial.settle_down()), [(2, "b".to_owned())]);
    trial.step(&Command::Detach { receiver: ReceiverId(1) }).unwrap();
    assert_eq!(accepted(&trial.settle_down()), [(3, "a".to_owned())], "closed, it goes to the next at once");
}

#[test]
fn waiting_ends_in_time_or_when_the_client_goes() {
    let mut trial = sessions(Limits { waiting_accepts_max: 2, ..Limits::default() });
    assert_eq!(accept(&mut trial, 1, None, 0), Err(Refusal::NoSessionInTime { waited: Span(0) }));
    accept(&mut trial, 1, None, 10).unwrap();
    accept(&mut trial, 2, None, 20).unwrap();
    let full = Refusal::TooMany { what: Countable::WaitingAccepts, limit: 2 };
    assert_eq!(accept(&mut trial, 3, None, 10), Err(full));
    assert_eq!(accept(&mut trial, 2, None, 10), Err(Refusal::ReceiverExists { receiver: ReceiverId(2) }));
    trial.advance(Span(9_999));
    assert_eq!(trial.settle_down(), []);
    trial.advance(Span(1));
    let refusal = Refusal::NoSessionInTime { waited: Span::seconds(10) };
    assert_eq!(trial.settle_down(), [Effect::Refuse { request: RequestTag(1), refusal }]);
    trial.step(&Command::Detach { receiver: ReceiverId(2) }).unwrap();
    send(&mut trial, "a1", "a", 4);
    assert_eq!(trial.settle_down(), [], "nobody waits any more");
}

#[test]
fn a_session_lock_covers_its_messages_and_ends_with_them() {
    let mut trial = sessions(Limits::default());
    send(&mut trial, "a1", "a", 4);
    send(&mut trial, "a2", "a", 4);
    accept(&mut trial, 1, Some("a"), 0).unwrap();
    let got = take(&mut trial, 1, 2);
    let mailbox = trial.mailbox("q");
    let tokens = smallvec::smallvec![got[0].token.unwrap()];
    let renewed = trial.ask(|request| Command::Renew { request, mailbox, tokens });
    assert_eq!(renewed, Err(Refusal::RenewInSession));
    let unknown = smallvec::smallvec![LockToken(7)];
    let renewed = trial.ask(|request| Command::Renew { request, mailbox, tokens: unknown });
    assert_eq!(renewed, Err(Refusal::RenewInSession), "whatever the token is worth");
    trial.advance(Span::seconds(29));
    let (session, receiver) = (SessionId::from("a"), ReceiverId(1));
    let renew = |request| Command::RenewSession { request, mailbox, session: session.clone(), receiver };
    trial.ask(renew).unwrap();
    trial.advance(Span::seconds(29));
    trial.settle(&got[0], Settlement::Complete).unwrap();
    trial.advance(Span::seconds(1));
    let lost = Refusal::SessionLockLost { session: SessionId::from("a") };
    assert_eq!(trial.settle(&got[1], Settlement::Complete), Err(lost.clone()), "in the very instant it ends");
    let effects = trial.settle_down();
    assert_eq!(effects, [Effect::Detach { receiver: ReceiverId(1), refusal: lost }]);
    accept(&mut trial, 2, None, 0).unwrap();
    assert_eq!(take(&mut trial, 2, 5).iter().map(|delivery| delivery.deliveries).collect::<Vec<_>>(), [1]);
}

#[test]
fn after_a_restart_nobody_is_left_who_held_a_session() {
    let mut trial = sessions(Limits::default());
    accept(&mut trial, 1, Some("a"), 0).unwrap();
    trial.step(&Command::Detach { receiver: ReceiverId(1) }).unwrap();
    accept(&mut trial, 2, Some("b"), 0).unwrap();
    let mut trial = trial.replayed();
    trial.step(&Command::Recover).unwrap();
    // Connections are numbered anew: the same receivers come again, and the sessions are free.
    for (receiver, session) in [(1, "b"), (2, "a")] {
        let effects = accept(&mut trial, receiver, Some(session), 0).unwrap();
        assert!(
            matches!(effects[..], [Effect::Reply { reply: Reply::SessionAccepted { .. }, .. }]),
            "{effects:?}"
        );
    }
}

#[test]
fn inside_a_session_numbers_decide_and_between_sessions_ranks() {
    let mut trial = sessions(Limits::default());
    for (id, session, level) in [("a1", "a", 1), ("b1", "b", 5), ("a2", "a", 9), ("c1", "c", 5)] {
        send(&mut trial, id, session, level);
    }
    let mut order = Vec::new();
    for receiver in 1..=3 {
        order.extend(accepted(&accept(&mut trial, receiver, None, 0).unwrap()));
    }
    let names: Vec<_> = order.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["b", "c", "a"], "by the first message of each");
    let ids: Vec<_> = take(&mut trial, 3, 5).iter().map(|delivery| trial.id_of(delivery)).collect();
    assert_eq!(ids, ["a1", "a2"]);
}

#[test]
fn an_abandoned_message_of_a_session_comes_next_again() {
    let mut trial = sessions(Limits::default());
    for id in ["a1", "a2", "a3"] {
        send(&mut trial, id, "a", 4);
    }
    accept(&mut trial, 1, Some("a"), 0).unwrap();
    let got = take(&mut trial, 1, 2);
    for delivery in [&got[1], &got[0]] {
        trial.settle(delivery, Settlement::Abandon { changes: None, delay: None }).unwrap();
    }
    let again: Vec<_> = take(&mut trial, 1, 9).iter().map(|delivery| trial.id_of(delivery)).collect();
    assert_eq!(again, ["a1", "a2", "a3"]);
}

#[test]
fn sessions_are_listed_while_they_have_messages_or_state() {
    let mut trial = sessions(Limits { session_state_bytes_max: 4, ..Limits::default() });
    let mailbox = trial.mailbox("q");
    send(&mut trial, "b1", "b", 4);
    let later = Incoming {
        session_id: Some(Text::from("later")),
        scheduled_for: Some(trial.now.after(Span::seconds(60))),
        ..message("l1")
    };
    trial.send_all("q", vec![later]).unwrap();
    accept(&mut trial, 1, Some("a"), 0).unwrap();
    let names = |trial: &Trial, after: Option<crate::Timestamp>, skip, top| {
        let listed = trial.state.list_sessions(mailbox, after, None, skip, top).unwrap();
        listed.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(names(&trial, None, 0, 10), ["b"], "neither an empty one nor one that is only scheduled");
    let set = |trial: &mut Trial, state: Option<&'static [u8]>| {
        let (session, receiver) = (SessionId::from("a"), ReceiverId(1));
        let state = state.map(Bytes::from_static);
        trial.ask(|request| Command::SetSessionState { request, mailbox, session, receiver, state })
    };
    assert_eq!(set(&mut trial, Some(b"12345")), Err(Refusal::SessionStateTooLarge { size: 5, limit: 4 }));
    set(&mut trial, Some(b"1234")).unwrap();
    assert_eq!(trial.state.size(mailbox.entity()), 4 + 2 + 2, "state counts against the quota");
    assert_eq!(names(&trial, None, 0, 10), ["a", "b"]);
    assert_eq!(
        (names(&trial, None, 1, 10), names(&trial, None, 0, 1)),
        (vec!["b".to_owned()], vec!["a".to_owned()])
    );
    assert_eq!(names(&trial, Some(trial.now), 0, 10), [""; 0]);
    assert_eq!(names(&trial, Some(crate::Timestamp(0)), 0, 10), ["a"]);
    trial.step(&Command::Detach { receiver: ReceiverId(1) }).unwrap();
    let stranger = trial.state.session_state(trial.now, mailbox, &SessionId::from("a"), ReceiverId(1));
    assert_eq!(stranger, Err(Refusal::SessionLockLost { session: SessionId::from("a") }));
    accept(&mut trial, 2, Some("a"), 0).unwrap();
    let kept = trial.state.session_state(trial.now, mailbox, &SessionId::from("a"), ReceiverId(2));
    assert_eq!(kept, Ok(Some(Bytes::from_static(b"1234"))));
    assert_eq!(trial.replayed().state.audit(), Vec::<String>::new());
}

#[test]
fn too_many_sessions_refuse_the_send_and_the_accept() {
    let mut trial = sessions(Limits { sessions_max: 2, ..Limits::default() });
    send(&mut trial, "a1", "a", 4);
    send(&mut trial, "b1", "b", 4);
    let full = Refusal::TooMany { what: Countable::Sessions, limit: 2 };
    let third = Incoming { session_id: Some(Text::from("c")), ..message("c1") };
    assert_eq!(trial.send_all("q", vec![third]), Err(full.clone()));
    assert_eq!(accept(&mut trial, 1, Some("c"), 0), Err(full));
    send(&mut trial, "a2", "a", 4);
    accept(&mut trial, 1, Some(""), 0).unwrap_err();
}

#[test]
fn a_lock_that_is_over_ends_with_the_delivery_it_prevents() {
    let mut trial = sessions(Limits::default());
    send(&mut trial, "a1", "a", 4);
    accept(&mut trial, 1, Some("a"), 0).unwrap();
    // So much else is due that the session's own deadline has not had its turn.
    trial.now = trial.now.after(Span::seconds(30));
    trial.step(&Command::Credit { receiver: ReceiverId(1), credit: 1, drain: false }).unwrap();
    assert!(trial.state.has_deliverable());
    let effects = trial.step(&Command::Deliver).unwrap();
    let lost = |effect: &Effect| {
        matches!(effect, Effect::Detach { receiver: ReceiverId(1), refusal: Refusal::SessionLockLost { .. } })
    };
    assert!(effects.iter().any(lost), "{effects:?}");
    assert!(!trial.state.has_deliverable());
}
