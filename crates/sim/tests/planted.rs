//! Every planted bug is caught by the checker of the promise it breaks.

use vorrang_sim::mischief::BUGS;
use vorrang_sim::{Setup, run};

/// Seeds within which a bug must show.
const SEEDS_MAX: u64 = 40;

#[test]
fn every_planted_bug_is_caught_by_its_checker() {
    let mut missed = Vec::new();
    for (bug, promise) in BUGS {
        let caught = (0..SEEDS_MAX).find(|seed| {
            let report = run(Setup { length: 60_000, bug: Some(bug), ..Setup::of(*seed) });
            report.violations.iter().any(|violation| violation.promise == promise)
        });
        println!("{bug:?} breaks {promise}: seed {caught:?}");
        if caught.is_none() {
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
