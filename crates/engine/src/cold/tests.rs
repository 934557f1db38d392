//! Lanes that are partly on disk.

use crate::command::{Chill, Command, Rehouse, Relocation, Settlement};
use crate::effect::Effect;
use crate::entity::Setting;
use crate::id::{Location, ReceiverId, Region, RunId, Sequence};
use crate::level::Level;
use crate::limits::Limits;
use crate::message::Incoming;
use crate::payloads::{ColdRecord, Payloads};
use crate::refusal::Refusal;
use crate::time::{Span, Timestamp};
use crate::trial::{Trial, message};

fn record(trial: &Trial, sequence: u64) -> ColdRecord {
    let handle = trial.state.find(trial.mailbox("q"), Sequence(sequence)).unwrap();
    let record = trial.state.records.get(handle).unwrap();
    let expires = trial.state.expiry_of(record).0;
    let (eligible, location, size) = (record.eligible, record.location, record.size);
    ColdRecord { sequence: Sequence(sequence), eligible, expires, location, size }
}

fn chill(trial: &mut Trial, run: u64, records: Vec<ColdRecord>) -> Result<Vec<Effect>, Refusal> {
    let mailbox = trial.mailbox("q");
    trial.step(&Command::Chill(Box::new(Chill { mailbox, level: Level(4), run: RunId(run), records })))
}

fn filled(count: u64) -> Trial {
    let limits = Limits { warm_below: 2, warm_batch: 2, cold_run_min: 2, ..Limits::default() };
    let mut trial = Trial::with(limits);
    trial.queue("q", vec![]);
    for number in 1..=count {
        trial.send_all("q", vec![message(&format!("m{number}"))]).unwrap();
    }
    trial
}

fn range(trial: &Trial, from: u64, to: u64) -> Vec<ColdRecord> {
    (from..=to).map(|sequence| record(trial, sequence)).collect()
}

#[test]
fn order_counts_and_regions_are_the_same_with_a_run_on_disk() {
    let mut trial = filled(8);
    let before = (trial.state.counts(trial.mailbox("q")), trial.state.region_count(Region(1)));
    trial.chill("q", 4, 3);
    trial.chill("q", 4, 3);
    let now = (trial.state.counts(trial.mailbox("q")), trial.state.region_count(Region(1)));
    assert_eq!(before, now, "nothing is gone");
    assert_eq!(trial.state.messages_in_memory(), 2);
    assert_eq!(trial.state.audit(), Vec::<String>::new());
    // A receiver comes: the records are asked for in pairs, and order is as ever.
    trial.attach("q", 1, 9);
    let effects = trial.settle_down();
    let asked = effects.iter().filter(|effect| matches!(effect, Effect::Warm { .. })).count();
    assert_eq!(asked, 4, "two of three, then one, for each run");
    let got: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Deliver { delivery, .. } => Some(delivery.sequence.0),
            _ => None,
        })
        .collect();
    assert_eq!(got, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(trial.state.audit(), Vec::<String>::new());
}

#[test]
fn only_what_waits_in_a_lane_as_it_was_written_may_leave_memory() {
    let mut trial = filled(4);
    let front = range(&trial, 1, 2);
    let mut moved = front.clone();
    moved[1].location = Location(7);
    let mut other_time = front.clone();
    other_time[0].eligible = Timestamp(1);
    let cases = [
        ("nothing", vec![]),
        ("another place", moved[1..].to_vec()),
        ("another time", other_time[..1].to_vec()),
    ];
    for (case, records) in cases {
        assert_eq!(chill(&mut trial, 1, records), Err(Refusal::RecordsDoNotFit), "{case}");
    }
    chill(&mut trial, 1, front).unwrap();
    let again = range(&trial, 3, 3);
    assert_eq!(chill(&mut trial, 1, again), Err(Refusal::RecordsDoNotFit), "a run's number is used once");
}

#[test]
fn what_cannot_leave_memory_stays_beside_the_runs_and_keeps_its_place() {
    let mut trial = filled(7);
    trial.attach("q", 1, 1);
    let first = trial.receive().pop().unwrap();
    trial.settle(&first, Settlement::Abandon { changes: None, delay: None }).unwrap();
    trial.step(&Command::Detach { receiver: ReceiverId(1) }).unwrap();
    // The first was delivered before, the fourth has moved since: around them two stretches leave.
    let mut records = range(&trial, 1, 6);
    records[3].location = Location(7);
    trial.stored.keep_run(RunId(10), records.clone());
    trial.stored.keep_run(RunId(11), records[1..].to_vec());
    trial.stored.keep_run(RunId(14), records[4..].to_vec());
    chill(&mut trial, 10, records).unwrap();
    let runs: Vec<_> = trial.state.runs.numbers().map(|run| run.0).collect();
    assert_eq!(runs, [11, 14], "a run is named after the place of its first record");
    assert_eq!(trial.state.messages_in_memory(), 3);
    assert_eq!(trial.state.audit(), Vec::<String>::new());
    same_after_a_restart(&trial);
    trial.attach("q", 2, 9);
    let got: Vec<_> = trial.receive().iter().map(|delivery| trial.id_of(delivery)).collect();
    assert_eq!(got, ["m1", "m2", "m3", "m4", "m5", "m6", "m7"]);
}

#[test]
fn records_come_back_in_order_or_not_at_all() {
    let mut trial = filled(4);
    let all = range(&trial, 1, 3);
    chill(&mut trial, 1, all.clone()).unwrap();
    let run = RunId(1);
    let cases = [
        ("another run", RunId(2), 0, vec![all[0]]),
        ("nothing", run, 0, vec![]),
        ("not the next", run, 1, vec![all[1]]),
        ("out of order", run, 0, vec![all[1], all[0]]),
        ("twice", run, 0, vec![all[0], all[0]]),
    ];
    for (case, run, from, records) in cases {
        let warmed = trial.step(&Command::Warm { run, from, records });
        assert_eq!(warmed, Err(Refusal::RecordsDoNotFit), "{case}");
    }
    trial.step(&Command::Warm { run, from: 0, records: all[..2].to_vec() }).unwrap();
    trial.step(&Command::Warm { run, from: 2, records: all[2..].to_vec() }).unwrap();
    assert_eq!(trial.state.audit(), Vec::<String>::new());
    assert!(trial.state.runs.numbers().next().is_none());
}

#[test]
fn a_snapshot_keeps_runs_and_what_came_back_of_them() {
    let mut trial = filled(6);
    let all = range(&trial, 1, 4);
    chill(&mut trial, 1, all.clone()).unwrap();
    trial.step(&Command::Warm { run: RunId(1), from: 0, records: all[..1].to_vec() }).unwrap();
    let mut restored = crate::State::new(Limits::default());
    for fact in trial.state.freeze().facts() {
        restored.apply(&fact);
    }
    assert_eq!((restored.misfits(), restored.audit()), (0, Vec::new()));
    let mailbox = trial.mailbox("q");
    assert_eq!(restored.counts(mailbox), trial.state.counts(mailbox));
    assert_eq!(restored.region_count(Region(1)), trial.state.region_count(Region(1)));
}

#[test]
fn what_a_snapshot_puts_into_another_place_of_the_lane_may_leave_memory_after_it() {
    let mut trial = filled(5);
    trial.attach("q", 1, 3);
    let held = trial.receive();
    trial.settle(&held[0], Settlement::Release).unwrap();
    trial.settle(&held[1], Settlement::Release).unwrap();
    trial.attach("q", 2, 1);
    assert_eq!(trial.receive()[0].sequence, Sequence(1));
    // The second lies beside the list now, which begins with the fourth. In a snapshot it is its first.
    let mut restored = crate::State::new(trial.state.limits().clone());
    for fact in trial.state.clone().freeze().facts() {
        restored.apply(&fact);
    }
    let written = trial.written.len();
    trial.settle(&held[2], Settlement::Release).unwrap();
    let leaving = range(&trial, 3, 5);
    chill(&mut trial, 1, leaving).unwrap();
    for fact in &trial.written[written..] {
        restored.apply(fact);
    }
    assert_eq!((restored.misfits(), restored.audit()), (0, Vec::new()));
    let mailbox = trial.mailbox("q");
    assert_eq!(restored.counts(mailbox), trial.state.counts(mailbox));
}

#[test]
fn a_payload_moves_only_if_it_is_still_where_it_was() {
    let mut trial = filled(2);
    let (mailbox, old) = (trial.mailbox("q"), record(&trial, 1).location);
    let to = Location((9 << 32) | 1);
    let moved = |from| Relocation { mailbox, sequence: Sequence(1), from, to };
    trial.step(&Command::Move { moves: vec![moved(Location(1))] }).unwrap();
    assert_eq!(record(&trial, 1).location, old);
    trial.step(&Command::Move { moves: vec![moved(old)] }).unwrap();
    assert_eq!(record(&trial, 1).location, to);
    assert_eq!((trial.state.region_count(Region(1)), trial.state.region_count(Region(9))), (1, 1));
    assert_eq!(trial.state.take_emptied_regions(), []);
}

/// Messages with these lives in seconds, none for those that last.
fn with_lives(lives: &[Option<u64>], settings: Vec<Setting>) -> Trial {
    let mut trial = Trial::with(Limits { warm_below: 2, warm_batch: 2, ..Limits::default() });
    trial.queue("q", settings);
    for (number, life) in lives.iter().enumerate() {
        let time_to_live = life.map(Span::seconds);
        trial.send_all("q", vec![Incoming { time_to_live, ..message(&format!("m{number}")) }]).unwrap();
    }
    trial
}

fn same_after_a_restart(trial: &Trial) {
    let mut restored = crate::State::new(trial.state.limits().clone());
    for fact in trial.state.clone().freeze().facts() {
        restored.apply(&fact);
    }
    assert_eq!((restored.misfits(), restored.audit()), (0, Vec::new()));
    let told = |state: &crate::State| -> Vec<String> {
        state.clone().freeze().facts().map(|fact| format!("{fact:?}")).collect()
    };
    assert_eq!(told(&restored), told(&trial.state), "a snapshot keeps it");
    assert_eq!(told(&trial.replayed().state), told(&trial.state), "and so does the log");
}

#[test]
fn messages_on_disk_expire_when_their_time_is_over_wherever_they_stand_in_their_run() {
    let lives = [None, Some(100), None, Some(10), Some(10), None, Some(20), None];
    let mut trial = with_lives(&lives, vec![Setting::DeadLetteringOnMessageExpiration(true)]);
    trial.chill("q", 4, 5);
    trial.chill("q", 4, 2);
    assert_eq!(trial.state.messages_in_memory(), 1);
    assert_eq!(trial.state.next_deadline(), Some(trial.now.after(Span::seconds(10))));
    trial.advance(Span::seconds(9));
    trial.settle_down();
    assert_eq!(trial.state.counts(trial.mailbox("q")).active(), 8);
    trial.advance(Span::seconds(1));
    trial.settle_down();
    assert_eq!(trial.ids("q"), ["m0", "m1", "m2", "m5", "m6", "m7"]);
    assert_eq!(trial.ids("q/$deadletterqueue"), ["m3", "m4"]);
    assert_eq!(trial.state.counts(trial.mailbox("q")).active(), 6);
    assert_eq!(trial.state.audit(), Vec::<String>::new());
    same_after_a_restart(&trial);

    trial.advance(Span::seconds(10));
    trial.settle_down();
    assert_eq!(trial.ids("q"), ["m0", "m1", "m2", "m5", "m7"], "the other run has its own time");
    same_after_a_restart(&trial);
    // What is left comes in its order, past the gaps.
    trial.attach("q", 1, 9);
    let got: Vec<_> = trial.receive().iter().map(|delivery| trial.id_of(delivery)).collect();
    assert_eq!(got, ["m0", "m1", "m2", "m5", "m7"]);
    assert!(trial.state.runs.numbers().next().is_none() && trial.state.timers.cold.is_empty());
    assert_eq!(trial.state.audit(), Vec::<String>::new());
}

#[test]
fn a_run_of_which_everything_expires_is_over() {
    for (case, lives) in [("at once", [10; 6]), ("one after the other", [60, 50, 40, 30, 20, 10])] {
        let lives: Vec<_> = lives.into_iter().map(Some).collect();
        let mut trial = with_lives(&lives, vec![]);
        trial.chill("q", 4, 6);
        for _ in 0..60 {
            trial.advance(Span::seconds(1));
            trial.settle_down();
            assert_eq!(trial.state.audit(), Vec::<String>::new(), "{case}");
        }
        assert_eq!(trial.state.counts(trial.mailbox("q")).total(), 0, "{case}");
        assert!(trial.state.runs.numbers().next().is_none() && trial.state.timers.cold.is_empty(), "{case}");
        assert_eq!(trial.state.region_count(Region(1)), 0, "{case}");
        same_after_a_restart(&trial);
    }
}

#[test]
fn what_is_about_to_expire_comes_back_early_and_is_still_delivered_in_its_place() {
    let mut trial = with_lives(&[None, Some(10), Some(15), None], vec![]);
    trial.chill("q", 4, 4);
    trial.advance(Span::seconds(10));
    trial.settle_down();
    assert_eq!(trial.state.messages_in_memory(), 1, "the one that expires next");
    trial.attach("q", 1, 9);
    let got: Vec<_> = trial.receive().iter().map(|delivery| trial.id_of(delivery)).collect();
    assert_eq!(got, ["m0", "m2", "m3"]);
}

#[test]
fn a_run_that_cannot_be_read_now_is_tried_again() {
    let mut trial = with_lives(&[Some(10), Some(10)], vec![]);
    let records = range(&trial, 1, 2);
    chill(&mut trial, 1, records.clone()).unwrap();
    trial.advance(Span::seconds(10));
    trial.settle_down();
    assert_eq!(trial.state.counts(trial.mailbox("q")).total(), 2);
    assert!(trial.state.next_deadline().is_some_and(|due| due > trial.now));
    trial.stored.keep_run(RunId(1), records);
    trial.advance(Span::minutes(1));
    trial.settle_down();
    assert_eq!(trial.state.counts(trial.mailbox("q")).total(), 0);
}

#[test]
fn a_run_goes_on_from_another_place_unless_it_has_changed() {
    let mut trial = with_lives(&[None, None, Some(10), None, None, None], vec![]);
    trial.chill("q", 4, 6);
    let run = trial.state.runs.numbers().next().unwrap();
    let all = trial.stored.cold_records(run, 0, 6);
    trial.step(&Command::Warm { run, from: 0, records: all[..1].to_vec() }).unwrap();
    trial.advance(Span::seconds(10));
    trial.settle_down();
    let region = Region(77);
    let moved = |sequence: u64| {
        let record = all.iter().find(|record| record.sequence == Sequence(sequence)).unwrap();
        ColdRecord { location: Location((77 << 32) | sequence), ..*record }
    };
    let to = RunId(900);
    trial.stored.keep_run(to, [2, 4, 5, 6].map(moved).to_vec());
    for (consumed, left) in [(0, 5), (1, 5), (2, 4)] {
        let rehouse = Command::Rehouse(Rehouse { run, consumed, left, to, region });
        assert_eq!(trial.step(&rehouse), Err(Refusal::RecordsDoNotFit), "{consumed} {left}");
    }
    trial.step(&Command::Rehouse(Rehouse { run, consumed: 1, left: 4, to, region })).unwrap();
    assert_eq!((trial.state.region_count(Region(1)), trial.state.region_count(region)), (1, 4));
    assert_eq!(trial.state.audit(), Vec::<String>::new());
    same_after_a_restart(&trial);
    trial.attach("q", 1, 9);
    let got: Vec<_> = trial.receive().iter().map(|delivery| delivery.location.region().0).collect();
    assert_eq!(got, [1, 77, 77, 77, 77]);
    assert!(trial.state.runs.numbers().next().is_none());
}

#[test]
fn a_run_that_moves_while_it_is_being_read_is_asked_for_again() {
    let mut trial = filled(5);
    trial.chill("q", 4, 4);
    let run = trial.state.runs.numbers().next().unwrap();
    let moved = trial.stored.cold_records(run, 0, 4);
    trial.attach("q", 1, 9);
    let asked = trial.step(&Command::Deliver).unwrap();
    assert!(matches!(asked[..], [Effect::Warm { .. }]), "{asked:?}");
    let (to, region) = (RunId(900), Region(1));
    trial.stored.keep_run(to, moved.clone());
    trial.step(&Command::Rehouse(Rehouse { run, consumed: 0, left: 4, to, region })).unwrap();
    let late = trial.step(&Command::Warm { run, from: 0, records: moved[..2].to_vec() });
    assert_eq!(late, Err(Refusal::RecordsDoNotFit));
    trial.forget_asked();
    assert_eq!(trial.receive().len(), 5);
}

#[test]
fn nobody_spins_while_records_are_being_read_and_half_an_answer_is_asked_for_again() {
    let mut trial = filled(5);
    let records = range(&trial, 1, 4);
    chill(&mut trial, 1, records.clone()).unwrap();
    trial.attach("q", 1, 9);
    let pump = |trial: &mut Trial| {
        let mut effects = Vec::new();
        for _ in 0..100 {
            if !trial.state.has_deliverable() {
                return effects;
            }
            effects.extend(trial.step(&Command::Deliver).unwrap());
        }
        panic!("the pump spins");
    };
    let asked = pump(&mut trial);
    assert!(matches!(asked[..], [Effect::Warm { from: 0, count: 2, .. }]), "{asked:?}");
    // Something more important comes meanwhile: it is delivered, and the rest goes on waiting.
    trial.send_all("q", vec![Incoming { priority: Some(9), ..message("urgent") }]).unwrap();
    let given = pump(&mut trial);
    assert!(matches!(given[..], [Effect::Deliver { .. }]), "{given:?}");
    // One of the two that were asked for.
    trial.step(&Command::Warm { run: RunId(1), from: 0, records: records[..1].to_vec() }).unwrap();
    let effects = pump(&mut trial);
    let again = effects.iter().any(|effect| matches!(effect, Effect::Warm { from: 1, count: 2, .. }));
    assert!(again, "{effects:?}");
}
