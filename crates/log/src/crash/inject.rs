//! Failing disk calls: every single one, once or from then on.

use super::Violation;
use super::model::{self, Store};
use crate::dice::Dice;
use crate::disk::{Fate, Fault, SimDisk};
use crate::location::Position;
use crate::options::Options;

/// How much was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InjectCounts {
    /// Runs with one injected fault.
    pub runs: u64,
    /// Of these, runs the fault ended.
    pub stopped: u64,
    /// Recoveries afterwards.
    pub recoveries: u64,
}

/// Runs the store once for every disk call it makes, failing that call.
pub fn inject(
    options: &Options,
    seed: u64,
    steps: u32,
    fault: Fault,
    lasting: bool,
) -> Result<InjectCounts, Violation> {
    let disk = SimDisk::new(seed);
    let violation = |place: String, what: String| Violation { seed, place, what };
    run(&disk, options, seed, steps).1.map_err(|what| violation("without a fault".to_owned(), what))?;
    let calls = disk.calls();
    let mut counts = InjectCounts::default();
    for call in 0..calls {
        let disk = SimDisk::new(seed);
        if lasting {
            disk.fail_from(call, fault);
        } else {
            disk.fail_at(call, fault);
        }
        let (store, outcome) = run(&disk, options, seed, steps);
        counts.runs += 1;
        counts.stopped += u64::from(outcome.is_err());
        let after = match store {
            Some(store) => check_after(store, outcome.is_err(), options, seed),
            None => check_unopened(&disk, options),
        };
        counts.recoveries += after
            .map_err(|what| violation(format!("{fault:?} at disk call {call}, lasting {lasting}"), what))?;
    }
    Ok(counts)
}

fn run(disk: &SimDisk, options: &Options, seed: u64, steps: u32) -> (Option<Store>, Result<(), String>) {
    let mut store = match Store::open(disk, options, seed) {
        Ok(store) => store,
        Err(error) => return (None, Err(error.to_string())),
    };
    for _ in 0..steps {
        if let Err(error) = store.step() {
            return (Some(store), Err(error));
        }
    }
    let outcome = store.flush();
    (Some(store), outcome)
}

fn check_after(mut store: Store, stopped: bool, options: &Options, seed: u64) -> Result<u64, String> {
    let acked = store.durable();
    let disk = store.disk().clone();
    disk.heal();
    if stopped && store.has_failed() && store.flush().is_ok() {
        return Err("the log went on after a failure".to_owned());
    }
    if stopped && store.has_failed() && store.durable() != acked {
        return Err("something became durable after a failure".to_owned());
    }
    // The machine loses power, in three ways.
    let mut dice = Dice::new(seed);
    let unsynced = disk.unsynced().len();
    let scattered: Vec<_> = (0..unsynced).map(|_| Fate::Scattered(dice.roll())).collect();
    for plan in [vec![Fate::Lost; unsynced], vec![Fate::Kept; unsynced], scattered] {
        let image = disk.crash(&plan);
        let found = model::recover(&image, options).map_err(|error| error.to_string())?;
        model::check(&found, &image, &store.history, acked)?;
    }
    // The process restarts on the same machine, sees the page cache, recovers; then power fails.
    let promised = restart(&disk, options, &store, acked)?;
    let image = disk.crash(&[]);
    let found = model::recover(&image, options).map_err(|error| error.to_string())?;
    model::check(&found, &image, &store.history.up_to(promised), promised)?;
    Ok(5)
}

/// A start that failed must leave a directory that starts.
fn check_unopened(disk: &SimDisk, options: &Options) -> Result<u64, String> {
    disk.heal();
    let unsynced = disk.unsynced().len();
    for plan in [vec![Fate::Lost; unsynced], vec![Fate::Kept; unsynced]] {
        let image = disk.crash(&plan);
        Store::open(&image, options, 1).map_err(|error| error.to_string())?;
    }
    Store::open(disk, options, 1).map_err(|error| error.to_string())?;
    Ok(3)
}

/// Recovers without a power failure and returns the position recovery vouched for.
fn restart(disk: &SimDisk, options: &Options, store: &Store, acked: Position) -> Result<Position, String> {
    let found = model::recover(disk, options).map_err(|error| error.to_string())?;
    model::check(&found, disk, &store.history, acked)?;
    let promised = found.position;
    Store::resume(disk, found, &store.history, 1).map_err(|error| error.to_string())?;
    Ok(promised)
}
