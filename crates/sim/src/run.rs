//! One seed from beginning to end.

use crate::check::{Digest, Fate, Violation, check};
use crate::coverage::Coverage;
use crate::mischief::{Bug, Mischief};
use crate::world::World;

/// What a run is made with.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Everything follows from it.
    pub seed: u64,
    /// How long the busy part lasts, in simulated milliseconds.
    pub length: u64,
    /// A bug to run with.
    pub bug: Option<Bug>,
    /// Where to write what happens.
    pub verbose: Option<fn(&str)>,
}

impl Setup {
    /// An honest run of the usual length: two minutes.
    #[must_use]
    pub fn of(seed: u64) -> Setup {
        Setup { seed, length: 120_000, bug: None, verbose: None }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// Promises that were broken.
    pub violations: Vec<Violation>,
    /// Messages whose sending was acknowledged.
    pub acknowledged: u64,
    /// Deliveries.
    pub delivered: u64,
    /// What was reached.
    pub coverage: Coverage,
    /// The same for two runs only if everything in them was.
    pub trace: u64,
}

/// Lives through a seed, and judges it.
#[must_use]
pub fn run(setup: Setup) -> Report {
    let mut world = World::new(setup.seed, setup.length, Mischief::new(setup.bug), setup.verbose);
    world.live();
    world.drain();
    let mut violations = check(&world.history);
    if let Some(error) = &world.broken {
        violations.clear();
        violations.push(Violation { promise: "open", text: error.clone() });
    }
    let digest = Digest::new(&world.history);
    let acknowledged = digest.sends.values().filter(|fate| matches!(fate, Fate::Done(_))).count();
    Report {
        violations,
        acknowledged: u64::try_from(acknowledged).unwrap_or(u64::MAX),
        delivered: u64::try_from(world.history.deliveries().count()).unwrap_or(u64::MAX),
        trace: world.trace(),
        coverage: world.coverage,
    }
}
