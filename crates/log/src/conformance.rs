//! What every log must do, as checks any implementation can run.
//!
//! A check opens owners on a fresh [`Medium`] and returns what was broken in words. Checks of
//! faults a medium cannot be told to show are skipped, and counted as such.

use crate::location::{Location, Position};
use crate::store::{AppendFault, LogStore, Medium, StoreError};

/// What a run of the suite covered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conformance {
    /// Checks that passed.
    pub passed: Vec<&'static str>,
    /// Checks the medium has no way to show.
    pub skipped: Vec<&'static str>,
}

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As it must be.
    Passed,
    /// The medium cannot be brought into the situation.
    Skipped,
}

type Check<M> = fn(&M) -> Result<Outcome, String>;

/// Runs every check, each on a medium of its own.
pub fn run<M: Medium>(fresh: impl Fn() -> M) -> Result<Conformance, String> {
    let checks: [(&'static str, Check<M>); 11] = [
        ("batches come back in order, with their records", batches_come_back),
        ("records are readable from submission on", records_are_readable),
        ("a new owner keeps everything durable under a greater epoch", takeover_keeps_everything),
        ("the newest snapshot wins, and replay starts behind it", snapshots),
        ("trimming keeps what the snapshots need", trimming),
        ("a second owner deposes the first, or is refused", second_owner),
        ("a deposed owner with a pipeline reports nothing", deposed_pipelining_writer),
        ("a lost answer is resolved by reading back", lost_answer),
        ("a lost append is found missing, and the log goes on", lost_append),
        ("an append that lands late is void", late_append),
        ("a slow answer is waited for; a refusal is final", slow_and_refused),
    ];
    let mut report = Conformance::default();
    for (name, check) in checks {
        match check(&fresh()).map_err(|what| format!("{name}: {what}"))? {
            Outcome::Passed => report.passed.push(name),
            Outcome::Skipped => report.skipped.push(name),
        }
    }
    Ok(report)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn ensure(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// Submits one batch with one record.
fn append(store: &mut impl LogStore, payload: &str) -> Result<(Position, Location), StoreError> {
    let mut batch = if let Some(batch) = store.batch() {
        batch
    } else {
        store.flush()?;
        store.batch().ok_or_else(|| StoreError::Stopped("no batch after a flush".to_owned()))?
    };
    let location = batch
        .record(7, b"fixed", &[payload.as_bytes()])
        .map_err(|error| StoreError::Stopped(error.to_string()))?;
    Ok((store.submit(batch, 1)?, location))
}

/// The payloads of all durable records after a position, in order.
fn payloads(store: &mut impl LogStore, after: Position) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut last = after;
    store
        .replay(after, &mut |entry| {
            if entry.position() <= last {
                return Err(format!("{} comes after {last}", entry.position()));
            }
            last = entry.position();
            for record in entry.records() {
                let record = record.map_err(text)?;
                found.push(String::from_utf8_lossy(record.payload).into_owned());
            }
            Ok(())
        })
        .map_err(text)?;
    Ok(found)
}

fn numbered(name: &str, count: u32) -> Vec<String> {
    (0..count).map(|number| format!("{name}{number}")).collect()
}

fn append_all(store: &mut impl LogStore, all: &[String]) -> Result<(), String> {
    for payload in all {
        let durable = store.durable();
        append(store, payload).map_err(text)?;
        store.flush().map_err(text)?;
        ensure(store.durable() > durable, "a flushed batch is not durable")?;
    }
    Ok(())
}

/// Appends as an owner whose predecessor may have left strays: each can cost one conflict, after
/// which the owner reads back, goes on, and repeats what did not land.
fn append_past_strays(store: &mut impl LogStore, all: &[String]) -> Result<(), String> {
    for payload in all {
        loop {
            let before = store.durable();
            append(store, payload).map_err(text)?;
            match store.flush() {
                Ok(_) => break,
                Err(StoreError::Unknown { .. }) => {
                    if store.resync().map_err(text)? > before {
                        break;
                    }
                }
                Err(error) => return Err(text(error)),
            }
        }
    }
    Ok(())
}

fn batches_come_back<M: Medium>(medium: &M) -> Result<Outcome, String> {
    let mut store = medium.take_over().map_err(text)?;
    let all = numbered("message ", 30);
    append_all(&mut store, &all)?;
    ensure(payloads(&mut store, Position::START)? == all, "other records came back")?;
    Ok(Outcome::Passed)
}

fn records_are_readable<M: Medium>(medium: &M) -> Result<Outcome, String> {
    let mut store = medium.take_over().map_err(text)?;
    let mut places = Vec::new();
    for payload in numbered("message ", 3) {
        let (_, place) = append(&mut store, &payload).map_err(text)?;
        let record = store.read(place, payload.len()).map_err(text)?;
        ensure(record.payload == payload.as_bytes(), "a queued record reads differently")?;
        places.push((place, payload));
    }
    store.flush().map_err(text)?;
    for (place, payload) in places {
        let record = store.read(place, 0).map_err(text)?;
        ensure((record.kind, &*record.fixed) == (7, b"fixed"), "kind or fixed part differ")?;
        ensure(record.payload == payload.as_bytes(), "a durable record reads differently")?;
    }
    Ok(Outcome::Passed)
}

fn takeover_keeps_everything<M: Medium>(medium: &M) -> Result<Outcome, String> {
    let mut all = Vec::new();
    let mut last_epoch = None;
    for round in 0..4 {
        let mut store = medium.take_over().map_err(text)?;
        ensure(last_epoch < Some(store.epoch()), "the epoch did not rise")?;
        last_epoch = Some(store.epoch());
        ensure(payloads(&mut store, Position::START)? == all, "a new owner reads something else")?;
        let more = numbered(&format!("round {round} message "), 5);
        append_all(&mut store, &more)?;
        all.extend(more);
    }
    Ok(Outcome::Passed)
}

fn snapshots<M: Medium>(medium: &M) -> Result<Outcome, String> {
    let mut store = medium.take_over().map_err(text)?;
    ensure(store.newest_snapshot().map_err(text)?.is_none(), "a new log has a snapshot")?;
    for round in 0..3 {
        append_all(&mut store, &numbered("before ", 3))?;
        let content = format!("state {round}");
        let position = store.put_snapshot(content.as_bytes()).map_err(text)?;
        ensure(position == store.durable(), "the snapshot is not of what is durable")?;
        let newest = store.newest_snapshot().map_err(text)?;
        ensure(newest == Some((position, content.into_bytes())), "another snapshot is the newest")?;
    }
    let after = numbered("after ", 3);
    append_all(&mut store, &after)?;
    drop(store);
    let mut store = medium.take_over().map_err(text)?;
    let (position, content) = store.newest_snapshot().map_err(text)?.ok_or("the snapshot is gone")?;
    ensure(content == b"state 2", "the snapshot changed with the owner")?;
    ensure(payloads(&mut store, position)? == after, "replay does not start behind the snapshot")?;
    Ok(Outcome::Passed)
}

fn trimming<M: Medium>(medium: &M) -> Result<Outcome, String> {
    let mut store = medium.take_over().map_err(text)?;
    for round in 0..4 {
        append_all(&mut store, &numbered("before ", 20))?;
        let position = store.put_snapshot(format!("state {round}").as_bytes()).map_err(text)?;
        store.trim(position).map_err(text)?;
    }
    let after = numbered("after ", 5);
    append_all(&mut store, &after)?;
    drop(store);
    let mut store = medium.take_over().map_err(text)?;
    let (position, content) = store.newest_snapshot().map_err(text)?.ok_or("the snapshot is gone")?;
    ensure(content == b"state 3", "another snapshot is the newest")?;
    ensure(payloads(&mut store, position)? == after, "trimming took what was needed")?;
    let early = store.replay(Position::START, &mut |_| Ok(()));
    ensure(matches!(early, Err(StoreError::Trimmed { .. })), "trimmed entries were replayed")?;
    Ok(Outcome::Passed)
}

fn second_owner<M: Medium>(medium: &M) -> Result<Outcome, String> {
    let mut first = medium.take_over().map_err(text)?;
    append_all(&mut first, &numbered("first ", 3))?;
    let second = medium.take_over();
    if !medium.is_shared() {
        ensure(matches!(second, Err(StoreError::InUse)), "a second owner was let in")?;
        append_all(&mut first, &numbered("still first ", 3))?;
        return Ok(Outcome::Passed);
    }
    let mut second = second.map_err(text)?;
    let durable = first.durable();
    // The submission itself may already be refused; what counts is that nothing is reported.
    drop(append(&mut first, "from the grave"));
    ensure(first.flush().is_err(), "a deposed owner flushed")?;
    ensure(matches!(first.resync(), Err(StoreError::Fenced { by }) if by == second.epoch()), "not fenced")?;
    ensure(first.durable() == durable, "a deposed owner reported something durable")?;
    append_past_strays(&mut second, &numbered("second ", 3))?;
    let all = [numbered("first ", 3), numbered("second ", 3)].concat();
    ensure(payloads(&mut second, Position::START)? == all, "the deposed owner's batch counts")?;
    Ok(Outcome::Passed)
}

/// The hole in every log that checks positions only: after the takeover the deposed owner's first
/// append is rejected, but its second names the very position the takeover filled, and lands.
fn deposed_pipelining_writer<M: Medium>(medium: &M) -> Result<Outcome, String> {
    if !medium.is_shared() {
        return Ok(Outcome::Skipped);
    }
    let mut first = medium.take_over().map_err(text)?;
    append_all(&mut first, &numbered("first ", 10))?;
    let durable = first.durable();
    let mut second = medium.take_over().map_err(text)?;
    for payload in numbered("zombie ", 20) {
        let Some(mut batch) = first.batch() else { break };
        batch.record(7, b"", &[payload.as_bytes()]).map_err(text)?;
        if first.submit(batch, 1).is_err() {
            break;
        }
    }
    ensure(first.flush().is_err(), "a deposed pipeline flushed")?;
    ensure(first.durable() == durable, "a deposed pipeline reported something durable")?;
    ensure(matches!(first.resync(), Err(StoreError::Fenced { .. })), "not fenced after reading back")?;
    ensure(first.durable() == durable, "reading back made a deposed owner's batch durable")?;
    append_past_strays(&mut second, &numbered("second ", 5))?;
    let all = [numbered("first ", 10), numbered("second ", 5)].concat();
    ensure(payloads(&mut second, Position::START)? == all, "a zombie's batch counts")?;
    let mut third = medium.take_over().map_err(text)?;
    ensure(payloads(&mut third, Position::START)? == all, "a later owner reads something else")?;
    Ok(Outcome::Passed)
}

/// Appends three batches, the second of which meets `fault`; then resyncs and appends once more.
fn through_fault<M: Medium>(medium: &M, fault: AppendFault, expected: &[&str]) -> Result<Outcome, String> {
    let mut store = medium.take_over().map_err(text)?;
    append(&mut store, "before").map_err(text)?;
    store.flush().map_err(text)?;
    let durable = store.durable();
    if !medium.inject(fault) {
        return Ok(Outcome::Skipped);
    }
    append(&mut store, "in doubt").map_err(text)?;
    append(&mut store, "behind it").map_err(text)?;
    ensure(
        store.flush() == Err(StoreError::Unknown { after: durable }),
        "an append without an answer was taken for decided",
    )?;
    ensure(store.durable() == durable, "something became durable behind an open question")?;
    store.resync().map_err(text)?;
    append(&mut store, "after").map_err(text)?;
    store.flush().map_err(text)?;
    ensure(payloads(&mut store, Position::START)? == expected, "the log is not what landed")?;
    let mut next = medium.take_over().map_err(text)?;
    ensure(payloads(&mut next, Position::START)? == expected, "the next owner reads something else")?;
    Ok(Outcome::Passed)
}

fn lost_answer<M: Medium>(medium: &M) -> Result<Outcome, String> {
    through_fault(medium, AppendFault::LostAnswer, &["before", "in doubt", "behind it", "after"])
}

fn lost_append<M: Medium>(medium: &M) -> Result<Outcome, String> {
    through_fault(medium, AppendFault::Lost, &["before", "after"])
}

fn late_append<M: Medium>(medium: &M) -> Result<Outcome, String> {
    through_fault(medium, AppendFault::Late, &["before", "after"])
}

fn slow_and_refused<M: Medium>(medium: &M) -> Result<Outcome, String> {
    let mut store = medium.take_over().map_err(text)?;
    if !medium.inject(AppendFault::Slow) {
        return Ok(Outcome::Skipped);
    }
    let before = store.durable();
    let (position, _) = append(&mut store, "slow").map_err(text)?;
    ensure(store.durable() == before, "durable before the answer came")?;
    ensure(store.flush() == Ok(position), "a slow answer was not waited for")?;
    medium.inject(AppendFault::Refused);
    append(&mut store, "refused").map_err(text)?;
    ensure(matches!(store.flush(), Err(StoreError::Stopped(_))), "a refusal was not final")?;
    ensure(append(&mut store, "more").is_err() || store.flush().is_err(), "the log went on")?;
    ensure(store.durable() == position, "something became durable after a refusal")?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests;
