//! Lanes that are partly on disk.

use crate::command::{Chill, Command, Relocation, Settlement};
use crate::effect::Effect;
use crate::id::{Location, Region, RunId, Sequence};
use crate::level::Level;
use crate::limits::Limits;
use crate::message::Incoming;
use crate::payloads::ColdRecord;
use crate::refusal::Refusal;
use crate::time::Timestamp;
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
    let mut trial = Trial::with(Limits { warm_below: 2, warm_batch: 2, ..Limits::default() });
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
fn only_the_front_of_a_lane_as_it_is_may_leave_memory() {
    let mut trial = filled(4);
    let front = range(&trial, 1, 2);
    let mut moved = front.clone();
    moved[1].location = Location(7);
    let mut other_time = front.clone();
    other_time[0].eligible = Timestamp(1);
    let cases = [
        ("nothing", vec![]),
        ("not the front", range(&trial, 2, 3)),
        ("with a gap", vec![record(&trial, 1), record(&trial, 3)]),
        ("another place", moved),
        ("another time", other_time),
    ];
    for (case, records) in cases {
        assert_eq!(chill(&mut trial, 1, records), Err(Refusal::RecordsDoNotFit), "{case}");
    }
    chill(&mut trial, 1, front).unwrap();
    let again = range(&trial, 3, 3);
    assert_eq!(chill(&mut trial, 1, again), Err(Refusal::RecordsDoNotFit), "a run's number is used once");
}

#[test]
fn a_message_that_was_delivered_stays_in_memory() {
    let mut trial = filled(2);
    trial.attach("q", 1, 1);
    let delivery = trial.receive().pop().unwrap();
    trial.settle(&delivery, Settlement::Abandon { changes: None, delay: None }).unwrap();
    let records = range(&trial, 1, 2);
    assert_eq!(chill(&mut trial, 1, records), Err(Refusal::RecordsDoNotFit));
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
    assert!(trial.state.runs.is_empty());
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

#[test]
fn expired_messages_of_a_run_go_when_they_come_back() {
    let mut trial = Trial::new();
    trial.queue("q", vec![]);
    let brief = Incoming { time_to_live: Some(crate::Span::seconds(10)), ..message("brief") };
    trial.send_all("q", vec![brief]).unwrap();
    let records = range(&trial, 1, 1);
    chill(&mut trial, 1, records.clone()).unwrap();
    trial.advance(crate::Span::seconds(11));
    trial.settle_down();
    assert_eq!(trial.state.counts(trial.mailbox("q")).ready, 1, "nobody has looked");
    trial.step(&Command::Warm { run: RunId(1), from: 0, records }).unwrap();
    trial.settle_down();
    assert_eq!(trial.state.counts(trial.mailbox("q")).total(), 0);
    assert_eq!(trial.state.audit(), Vec::<String>::new());
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
