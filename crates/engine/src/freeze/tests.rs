//! A snapshot is the state it was taken of, whatever happens afterwards.

use crate::command::Settlement;
use crate::entity::Setting;
use crate::state::State;
use crate::time::Span;
use crate::trial::Trial;

fn told(state: &State) -> Vec<String> {
    state.clone().freeze().facts().map(|fact| format!("{fact:?}")).collect()
}

#[test]
fn what_happens_after_freezing_is_not_in_the_snapshot() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.attach("q", 1, 1);
    trial.send("q", &["a", "b", "c"]).unwrap();
    let delivery = trial.receive().pop().unwrap();
    let frozen = trial.state.freeze();
    let before: Vec<_> = frozen.facts().map(|fact| format!("{fact:?}")).collect();
    trial.settle(&delivery, Settlement::Complete).unwrap();
    trial.send("q", &["d"]).unwrap();
    trial.delete("q");
    let after: Vec<_> = frozen.facts().map(|fact| format!("{fact:?}")).collect();
    assert_eq!(before, after);
    assert_eq!(frozen.messages(), 3);
}

#[test]
fn a_restored_state_tells_the_same_snapshot_and_goes_on_the_same_way() {
    let mut trial = Trial::new();
    trial.queue("q", vec![Setting::LockDuration(Span::seconds(30))]);
    trial.attach("q", 1, 2);
    trial.send("q", &["a", "b", "c", "d"]).unwrap();
    let got = trial.receive();
    trial.settle(&got[0], Settlement::Defer { changes: None }).unwrap();
    let mut restored = State::new(trial.state.limits().clone());
    for fact in trial.state.freeze().facts() {
        restored.apply(&fact);
    }
    assert_eq!((restored.misfits(), restored.audit()), (0, Vec::new()));
    assert_eq!(told(&restored), told(&trial.state));
    // Locks hold across it, and end when they would have.
    trial.state = restored;
    trial.settle(&got[1], Settlement::Complete).unwrap();
    assert_eq!(trial.ids("q"), ["a", "c", "d"]);
}

#[test]
fn facts_that_do_not_fit_are_counted_and_change_nothing() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.send("q", &["a"]).unwrap();
    let mut state = State::new(trial.state.limits().clone());
    // The whole log twice: everything is there already.
    for fact in trial.written.iter().chain(&trial.written) {
        state.apply(fact);
    }
    assert!(state.misfits() > 0);
    assert_eq!(state.audit(), Vec::<String>::new());
    assert_eq!(state.counts(trial.mailbox("q")).ready, 1);
}

#[test]
fn the_audit_notices_what_does_not_add_up() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    trial.send("q", &["a", "b"]).unwrap();
    assert_eq!(trial.state.audit(), Vec::<String>::new());
    let mailbox = trial.mailbox("q");
    let planted: [fn(&mut State, crate::MailboxId); 4] = [
        |state, id| state.mailboxes.get_mut(&id).unwrap().counts.ready = 7,
        |state, _| state.regions.add(crate::Region(5), 1),
        |state, id| state.mailboxes.get_mut(&id).unwrap().in_line = true,
        |state, id| {
            state.timers.due.insert((crate::Timestamp(1), id, crate::Sequence(1)));
        },
    ];
    for (number, plant) in planted.into_iter().enumerate() {
        let mut state = trial.state.clone();
        plant(&mut state, mailbox);
        assert_ne!(state.audit(), Vec::<String>::new(), "planted bug {number}");
    }
}

#[test]
fn a_snapshot_can_be_written_by_another_thread() {
    fn can_move<T: Send + Sync + 'static>() {}
    can_move::<crate::FrozenState>();
    can_move::<State>();
}
