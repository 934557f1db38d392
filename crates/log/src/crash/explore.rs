//! The crash explorer: every point of a run, every image a power failure could leave there.

use super::Violation;
use super::model::{self, History, Store};
use crate::dice::Dice;
use crate::disk::{Fate, Pattern, SimDisk, Step, Torn};
use crate::location::Position;
use crate::options::Options;

/// How far to go at every point of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thoroughness {
    /// Steps of the scripted workload.
    pub steps: u32,
    /// All subsets of the unsynced operations while there are at most this many.
    pub subsets_of: usize,
    /// Random fates, torn and scattered, tried besides.
    pub random_images: u32,
    /// One in this many images is also crashed inside its recovery, at every call.
    pub crash_recovery_every: u64,
    /// One in this many images goes on working and crashes once more.
    pub continue_every: u64,
}

impl Thoroughness {
    /// For the tests of every change.
    pub fn quick() -> Self {
        Self { steps: 120, subsets_of: 5, random_images: 4, crash_recovery_every: 60, continue_every: 20 }
    }

    /// For nightly runs.
    pub fn full() -> Self {
        Self { steps: 120, subsets_of: 12, random_images: 24, crash_recovery_every: 10, continue_every: 5 }
    }
}

/// How much was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExploreCounts {
    /// Points at which power failed.
    pub points: u64,
    /// Images recovered from.
    pub images: u64,
    /// Of these, images of crashes inside recovery.
    pub inside_recovery: u64,
    /// Of these, images of a second crash after going on.
    pub continued: u64,
}

impl std::ops::AddAssign for ExploreCounts {
    fn add_assign(&mut self, other: Self) {
        self.points += other.points;
        self.images += other.images;
        self.inside_recovery += other.inside_recovery;
        self.continued += other.continued;
    }
}

/// Runs the store by `seed` on `disk`, then crashes it everywhere.
pub fn explore(
    disk: &SimDisk,
    options: &Options,
    seed: u64,
    how: Thoroughness,
) -> Result<ExploreCounts, Violation> {
    let start = disk.fork();
    disk.record();
    let violation = |place: &str, what: String| Violation { seed, place: place.to_owned(), what };
    let mut store =
        Store::open(disk, options, seed).map_err(|error| violation("opening", error.to_string()))?;
    for step in 0..how.steps {
        if step == how.steps / 2 {
            store = reopened(store, disk, options, seed).map_err(|what| violation("reopening", what))?;
        }
        store.step().map_err(|error| violation(&format!("workload step {step}"), error))?;
    }
    let history = store.history.clone();
    drop(store);
    let steps = disk.recorded();
    let mut explorer =
        Explorer { options, seed, how, history, dice: Dice::new(!seed), counts: ExploreCounts::default() };
    explorer.run(&start, &steps)?;
    Ok(explorer.counts)
}

/// Closes the store in good order, and goes on with what it left.
fn reopened(store: Store, disk: &SimDisk, options: &Options, seed: u64) -> Result<Store, String> {
    let history = store.close().map_err(|failure| failure.to_string())?;
    let found = model::recover(disk, options).map_err(|error| error.to_string())?;
    Store::resume(disk, found, &history, seed.wrapping_add(1)).map_err(|error| error.to_string())
}

struct Explorer<'o> {
    options: &'o Options,
    seed: u64,
    how: Thoroughness,
    history: History,
    dice: Dice,
    counts: ExploreCounts,
}

impl Explorer<'_> {
    fn run(&mut self, start: &SimDisk, steps: &[Step]) -> Result<(), Violation> {
        let disk = start.fork();
        let mut acked = Position::START;
        for (index, step) in steps.iter().enumerate() {
            if let Step::Mark(position) = step {
                acked = Position(*position);
            }
            disk.repeat(step).map_err(|error| self.violation(index, "repeating", error.to_string()))?;
            self.counts.points += 1;
            for plan in self.plans(&disk.unsynced()) {
                self.check_image(index, &disk, &plan, acked)?;
            }
        }
        Ok(())
    }

    fn violation(&self, point: usize, plan: &str, what: String) -> Violation {
        Violation { seed: self.seed, place: format!("crash after disk call {point}, {plan}"), what }
    }

    /// The fates to try for these unsynced operations.
    fn plans(&mut self, unsynced: &[usize]) -> Vec<Vec<Fate>> {
        let count = unsynced.len();
        let mut plans = Vec::new();
        if count <= self.how.subsets_of {
            for subset in 0..1_u32 << count {
                let fate = |index: usize| if subset >> index & 1 == 1 { Fate::Kept } else { Fate::Lost };
                plans.push((0..count).map(fate).collect());
            }
        } else {
            plans.push(vec![Fate::Lost; count]);
            plans.push(vec![Fate::Kept; count]);
            for only in 0..count {
                let fate = |kept: bool| if kept { Fate::Kept } else { Fate::Lost };
                plans.push((0..count).map(|index| fate(index == only)).collect());
                plans.push((0..count).map(|index| fate(index != only)).collect());
            }
        }
        if count == 0 {
            return plans;
        }
        self.tear_last_write(unsynced, &mut plans);
        for _ in 0..self.how.random_images {
            let plan = unsynced.iter().map(|bytes| self.random_fate(*bytes)).collect();
            plans.push(plan);
        }
        plans
    }

    fn tear_last_write(&mut self, unsynced: &[usize], plans: &mut Vec<Vec<Fate>>) {
        let Some(last) = unsynced.iter().rposition(|bytes| *bytes > 0) else { return };
        let bytes = unsynced.get(last).copied().unwrap_or_default();
        let somewhere = self.dice.index(bytes);
        for kept_bytes in [1, 63, 64, 512, 4096, bytes.saturating_sub(1), somewhere] {
            for rest in [Pattern::Stale, Pattern::Zeros, Pattern::Garbage] {
                let torn = Fate::Torn(Torn { kept_bytes, rest });
                let fate = |index: usize| if index == last { torn } else { Fate::Kept };
                plans.push((0..unsynced.len()).map(fate).collect());
            }
        }
    }

    fn random_fate(&mut self, bytes: usize) -> Fate {
        match self.dice.below(5) {
            0 => Fate::Kept,
            1 => Fate::Lost,
            2 => {
                let rest = match self.dice.below(3) {
                    0 => Pattern::Stale,
                    1 => Pattern::Zeros,
                    _ => Pattern::Garbage,
                };
                Fate::Torn(Torn { kept_bytes: self.dice.index(bytes + 1), rest })
            }
            _ => Fate::Scattered(self.dice.roll()),
        }
    }

    fn check_image(
        &mut self,
        point: usize,
        disk: &SimDisk,
        plan: &[Fate],
        acked: Position,
    ) -> Result<(), Violation> {
        let image = disk.crash(plan);
        self.counts.images += 1;
        let fail = |what: String| Violation {
            seed: self.seed,
            place: format!("crash after disk call {point} with {plan:?}"),
            what,
        };
        let found = model::recover(&image, self.options).map_err(|error| fail(error.to_string()))?;
        model::check(&found, &image, &self.history, acked).map_err(&fail)?;
        let again = model::recover(&image, self.options).map_err(|error| fail(error.to_string()))?;
        if (again.position, &again.state) != (found.position, &found.state) {
            return Err(fail("recovering twice gave two results".to_owned()));
        }
        if self.counts.images.is_multiple_of(self.how.crash_recovery_every) {
            let more = crash_recovery(
                self.options,
                &image,
                &self.history,
                acked.max(found.position),
                &mut self.dice,
            )
            .map_err(&fail)?;
            self.counts.inside_recovery += more;
            self.counts.images += more;
        }
        if self.counts.images.is_multiple_of(self.how.continue_every) {
            go_on(self.options, &image, &self.history, &mut self.dice).map_err(&fail)?;
            self.counts.continued += 1;
            self.counts.images += 1;
        }
        Ok(())
    }
}

/// Crashes a recovery at each of its disk calls; recovering from that must give the same.
fn crash_recovery(
    options: &Options,
    image: &SimDisk,
    history: &History,
    acked: Position,
    dice: &mut Dice,
) -> Result<u64, String> {
    let recording = image.fork();
    recording.record();
    let found = model::recover(&recording, options).map_err(|error| error.to_string())?;
    let history = &history.up_to(found.position);
    Store::resume(&recording, found, history, 1).map_err(|error| error.to_string())?;
    let disk = image.fork();
    let mut images = 0;
    for step in recording.recorded() {
        disk.repeat(&step).map_err(|error| error.to_string())?;
        let count = disk.unsynced().len();
        let scattered: Vec<_> = (0..count).map(|_| Fate::Scattered(dice.roll())).collect();
        for plan in [vec![Fate::Lost; count], vec![Fate::Kept; count], scattered] {
            let second = disk.crash(&plan);
            let text = |what: String| format!("inside recovery, at {step} with {plan:?}: {what}");
            let found = model::recover(&second, options).map_err(|error| text(error.to_string()))?;
            model::check(&found, &second, history, acked).map_err(text)?;
            images += 1;
        }
    }
    Ok(images)
}

/// Goes on working after a recovery, crashes at random, and recovers once more.
fn go_on(options: &Options, image: &SimDisk, history: &History, dice: &mut Dice) -> Result<(), String> {
    let disk = image.fork();
    let found = model::recover(&disk, options).map_err(|error| error.to_string())?;
    let mut store = Store::resume(&disk, found, history, dice.roll()).map_err(|error| error.to_string())?;
    for _ in 0..dice.below(24) {
        store.step()?;
    }
    let acked = store.durable();
    let plan: Vec<_> = disk.unsynced().iter().map(|_| Fate::Scattered(dice.roll())).collect();
    let second = disk.crash(&plan);
    let text = |what: String| format!("after going on to {acked}: {what}");
    let found = model::recover(&second, options).map_err(|error| text(error.to_string()))?;
    model::check(&found, &second, &store.history, acked).map_err(text)
}
