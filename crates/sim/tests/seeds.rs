//! Honest runs keep every promise, reach what they should, and are the same every time.

use vorrang_sim::coverage::Coverage;
use vorrang_sim::{Setup, run};

/// A short life: a minute of simulated time.
fn short(seed: u64) -> Setup {
    Setup { length: 60_000, ..Setup::of(seed) }
}

#[test]
fn every_promise_is_kept_and_the_main_cells_are_reached() {
    let mut coverage = Coverage::default();
    for seed in 0..20 {
        let report = run(short(seed));
        assert!(report.violations.is_empty(), "seed {seed}: {:?}", report.violations.first());
        coverage.add(&report.coverage);
    }
    let calls = [
        "Send",
        "Cancel",
        "Complete",
        "Abandon",
        "Release",
        "Suspend",
        "Defer",
        "DeadLetter",
        "Renew",
        "ReceiveDeferred",
        "RemoveDeferred",
        "Attach",
        "Accept",
        "RenewSession",
        "SetState",
        "GetState",
        "Declare",
        "Discharge",
        "Rollback",
        "SendInTransaction",
        "SettleInTransaction",
        "Administer",
        "Peek",
    ];
    let done = calls.map(|call| (call, "done"));
    let others = [
        ("Complete", "LockLost"),
        ("Accept", "SessionLocked"),
        ("Accept", "NoSessionInTime"),
        ("ReceiveDeferred", "MessageNotFound"),
        ("Send", "NoRoom"),
        ("Send", "unanswered"),
        ("Complete", "unanswered"),
        ("world", "crash"),
        ("world", "crash in a commit"),
        ("world", "connection lost"),
        ("world", "stopped for good"),
        ("world", "disk full"),
        ("world", "clock jumped"),
        ("world", "clock stopped"),
        ("world", "snapshot"),
        ("world", "selected delivery"),
        ("world", "express delivery"),
        ("world", "delivery in the order of queues"),
    ];
    for (what, how) in done.into_iter().chain(others) {
        assert!(coverage.of(what, how) > 0, "{what}: {how} was never reached\n{coverage}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let traces: Vec<u64> = (0..4).map(|seed| run(short(seed)).trace).collect();
    let again: Vec<u64> = (0..4).map(|seed| run(short(seed)).trace).collect();
    assert_eq!(traces, again);
    assert_ne!(traces.first(), traces.get(1));
}
