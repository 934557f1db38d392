use super::*;
use crate::disk::{Fault, SimDisk};
use crate::options::{Options, Planted};

#[test]
fn every_crash_recovers_to_an_acknowledged_state() {
    let mut counts = ExploreCounts::default();
    for seed in 0..6 {
        counts += explore(&SimDisk::new(seed), &Options::tiny(), seed, Thoroughness::quick())
            .unwrap_or_else(|violation| panic!("{violation}"));
    }
    println!("{counts:?}");
    assert!(counts.images > 20_000, "{counts:?}");
    assert!(counts.inside_recovery > 500 && counts.continued > 500, "{counts:?}");
}

#[test]
fn a_write_torn_at_any_byte_is_cut_and_nothing_else_is() {
    let counts = tear(&Options::tiny(), 1, 4096).unwrap_or_else(|violation| panic!("{violation}"));
    assert_eq!((counts.recoveries, counts.refused), (3 * 4096, 4096));
}

#[test]
fn an_error_at_any_disk_call_stops_the_log_and_loses_nothing() {
    let counts =
        inject(&Options::tiny(), 3, 60, Fault::Fail, false).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{counts:?}");
    assert!(counts.stopped > 100, "{counts:?}");
}

#[test]
fn damage_anywhere_is_named_or_harmless_and_nothing_is_silently_missing() {
    let counts = damage(&Options::tiny(), 5, 1000, 300).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{counts:?}");
    assert!(counts.refused > 40 && counts.reported > 100, "{counts:?}");
}

/// Runs everything we have on a planted bug and returns who caught it.
fn caught_by(options: &Options, prepare: impl Fn(&SimDisk)) -> Option<String> {
    if let Err(violation) = damage(options, 5, 300, 300) {
        return Some(format!("damage: {violation}"));
    }
    if let Err(violation) = inject(options, 3, 60, Fault::Fail, false) {
        return Some(format!("errors: {violation}"));
    }
    let how = Thoroughness { steps: 200, ..Thoroughness::quick() };
    for seed in 0..4 {
        let disk = SimDisk::new(seed);
        prepare(&disk);
        if let Err(violation) = explore(&disk, options, seed, how) {
            return Some(format!("explorer: {violation}"));
        }
    }
    None
}

#[test]
fn every_planted_bug_in_the_log_is_caught() {
    let bugs = [
        Planted::AckBeforeSync,
        Planted::NoDirectorySync,
        Planted::NameBeforeHeader,
        Planted::ReuseBeforeDirectorySync,
        Planted::ReleaseBeforeSnapshot,
        Planted::ReleaseBeforeDurable,
        Planted::SnapshotNameBeforeSync,
        Planted::ExtentNameBeforeSync,
        Planted::CutBeforeVerify,
        Planted::SyncErrorIgnored,
    ];
    let mut missed = Vec::new();
    for bug in bugs {
        let options = Options { planted: Some(bug), ..Options::tiny() };
        match caught_by(&options, |_| ()) {
            Some(who) => println!("{bug:?} caught by {who}"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn a_disk_that_ignores_syncs_is_caught() {
    assert!(caught_by(&Options::tiny(), SimDisk::ignore_syncs).is_some());
}

#[test]
fn a_ring_without_fresh_salts_is_caught() {
    // Either guard alone keeps recycled bytes out; without both they come back as entries.
    let options = Options { planted: Some(Planted::NoChain), ..Options::tiny() };
    for options in [Options::tiny(), options] {
        let who = caught_by(&options, SimDisk::fix_entropy);
        println!("no salt: {who:?}");
        assert!(who.is_some(), "{options:?}");
    }
}
