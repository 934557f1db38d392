//! Torn tails: the last write stops at every byte, with every kind of rest behind it.

use super::Violation;
use super::model::{self, Store};
use crate::disk::{Fate, FileName, Pattern, SimDisk, Step, Torn};
use crate::options::Options;
use crate::recovery::OpenError;
use crate::units::in_memory;

/// How much was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TearCounts {
    /// Recoveries from a write that stopped part of the way.
    pub recoveries: u64,
    /// Recoveries refused because the file itself ended early.
    pub refused: u64,
}

/// Tears the last write of a run at each of its last `last_bytes` bytes, with the rest zeroed,
/// garbage, stale, or the file cut there.
pub fn tear(options: &Options, seed: u64, last_bytes: usize) -> Result<TearCounts, Violation> {
    tear_share(options, seed, last_bytes, (0, 1))
}

/// The same at every `of`-th byte, beginning with the `first`-th: for several threads.
pub fn tear_share(
    options: &Options,
    seed: u64,
    last_bytes: usize,
    (first, of): (usize, usize),
) -> Result<TearCounts, Violation> {
    let fail = |place: String, what: String| Violation { seed, place, what };
    let setup = |what: String| fail("before the torn write".to_owned(), what);
    let disk = SimDisk::new(seed);
    let mut store = Store::open(&disk, options, seed).map_err(|error| setup(error.to_string()))?;
    // Work until the ring writes into recycled files: what lies under the torn write is then the
    // most dangerous thing there is, valid entries of an earlier life.
    for _ in 0..400 {
        store.step().map_err(setup)?;
    }
    store.flush().map_err(setup)?;
    let before = store.durable();
    store.fill_batch().map_err(setup)?;
    let base = disk.fork();
    disk.record();
    store.flush().map_err(setup)?;
    let steps = disk.recorded();
    let written = steps.iter().rev().find(|step| matches!(step, Step::Write(..)));
    let Some(Step::Write(file, offset, bytes)) = written else {
        return Err(setup("the last commit wrote nothing".to_owned()));
    };
    for step in steps.iter().take_while(|step| Some(*step) != written) {
        base.repeat(step).map_err(|error| setup(error.to_string()))?;
    }
    if !base.unsynced().is_empty() {
        return Err(setup("the commit began with something else unsynced".to_owned()));
    }
    let torn = base.fork();
    torn.repeat(&Step::Write(*file, *offset, bytes.clone())).map_err(|error| setup(error.to_string()))?;

    let mut counts = TearCounts::default();
    for kept_bytes in (bytes.len().saturating_sub(last_bytes)..bytes.len()).skip(first).step_by(of.max(1)) {
        for rest in [Pattern::Stale, Pattern::Zeros, Pattern::Garbage] {
            let image = torn.crash(&[Fate::Torn(Torn { kept_bytes, rest })]);
            let place = || format!("write of {} bytes torn at {kept_bytes}, rest {rest:?}", bytes.len());
            let found = model::recover(&image, options).map_err(|error| fail(place(), error.to_string()))?;
            model::check(&found, &image, &store.history, before).map_err(|what| fail(place(), what))?;
            counts.recoveries += 1;
        }
        let cut = in_memory(*offset) + kept_bytes;
        check_cut(&torn, options, *file, cut).map_err(|what| fail(format!("{file} cut at {cut}"), what))?;
        counts.refused += 1;
    }
    Ok(counts)
}

/// A segment shorter than it was made is damage, and must be named.
fn check_cut(torn: &SimDisk, options: &Options, file: FileName, cut: usize) -> Result<(), String> {
    let image = torn.crash(&[Fate::Kept]);
    image.damage(file, |bytes| bytes.truncate(cut));
    match model::recover(&image, options) {
        Err(OpenError::Damaged(damage)) if damage.file == file && in_memory(damage.offset) == cut => Ok(()),
        Err(error) => Err(format!("refused, but for another reason: {error}")),
        Ok(found) => Err(format!("accepted up to {}", found.position)),
    }
}
