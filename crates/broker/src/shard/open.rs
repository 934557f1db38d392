//! Opening a shard: the newest snapshot, everything written after it, and a new term.
//!
//! Replaying facts is recovery: the same `apply` that made the state makes it again. A fact that does
//! not fit means that the log is not what was written, and the shard refuses to start.

use super::broker::Stopped;
use super::core::Core;
use super::keys::Keys;
use super::payload::Decode;
use super::regions::{Regions, region_of};
use super::snapshot::Schedule;
use super::writer::Writer;
use crate::journal::record::{Assembler, alone, each};
use crate::journal::{self, stream};
use std::sync::Arc;
use vorrang_engine::entity::authorization::AuthorizationRule;
use vorrang_engine::{Limits, State, Timestamp};
use vorrang_log::disk::{Disk, DiskError};
use vorrang_log::{Failure, Findings, Notify, Opening, Options};

/// What a shard is made with.
#[derive(Clone)]
pub struct Settings {
    /// The bounds of the namespace.
    pub limits: Limits,
    /// The layout of the log.
    pub log: Options,
    /// Makes stored messages readable for filters.
    pub decode: Arc<dyn Decode>,
    /// The keys of the namespace itself.
    pub keys: Vec<AuthorizationRule>,
    /// When to write snapshots.
    pub snapshots: Schedule,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("limits", &self.limits)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

/// Who makes the log's commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commits {
    /// Threads of the log.
    Threads,
    /// The caller, one by one: for simulation.
    ByHand,
}

/// Why a shard does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log does not open.
    #[error(transparent)]
    Log(#[from] vorrang_log::OpenError),
    /// The disk refused a call.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The snapshot cannot be read.
    #[error(transparent)]
    Snapshot(#[from] vorrang_log::snapshot::Error),
    /// The snapshot holds something that is no fact.
    #[error("the snapshot cannot be understood: {0}")]
    Stream(#[from] journal::Error),
    /// Facts do not fit together.
    #[error("{count} of the stored facts do not fit together: the data is damaged or from another version")]
    Misfits {
        /// How many.
        count: u64,
    },
    /// The shard's thread could not be started.
    #[error("cannot start the shard's thread: {0}")]
    Thread(#[source] std::io::Error),
    /// The first commit failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The shard stopped before it was ready.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Something in an entry that cannot be understood.
#[derive(Debug, thiserror::Error)]
enum Unknown {
    #[error(transparent)]
    Entry(#[from] vorrang_log::EntryError),
    #[error(transparent)]
    Record(#[from] journal::Error),
}

/// Opens the shard on `disk`, creating it if there is nothing there.
pub fn open(
    disk: &Arc<dyn Disk>,
    settings: Settings,
    commits: Commits,
    notify: Notify,
    now: Timestamp,
) -> Result<(Core, Findings), OpenError> {
    let Settings { limits, log: options, decode, keys, snapshots } = settings;
    let log_limits = options.limits;
    let mut state = State::new(limits);
    let mut regions = Regions::default();

    let mut opening = Opening::begin(Arc::clone(disk), options)?;
    if let Some(snapshot) = opening.snapshot() {
        let mut facts = stream::Reader::default();
        while let Some(block) = snapshot.next_block()? {
            facts.feed(&block, |piece| match piece {
                stream::Piece::Fact(fact) => state.apply(&fact),
                stream::Piece::Span { last, first } => regions.span(region_of(last), region_of(first)),
            })?;
        }
        facts.finish()?;
    }
    let mut assembler = Assembler::default();
    let recovered = opening.replay(|entry| -> Result<(), Unknown> {
        for record in entry.records() {
            let record = record?;
            if let Some(written) = alone(&record)? {
                regions.wrote(written.location, written.first_part);
            }
            for record in each(&record) {
                for read in assembler.take(&record?)?.unwrap_or_default() {
                    state.apply(&read.fact);
                    if let (Some(payload), first) = (read.fact.payload(), read.first_part) {
                        regions.wrote(payload.location, first);
                    }
                }
            }
        }
        Ok(())
    })?;
    if state.misfits() > 0 {
        return Err(OpenError::Misfits { count: state.misfits() });
    }
    let wall = now;
    let now = wall.after(state.clock_ahead());
    let findings = recovered.findings().clone();
    let log = match commits {
        Commits::Threads => recovered.start(notify, now.0)?,
        Commits::ByHand => recovered.start_manual(notify, now.0)?,
    };
    regions.suspect(log.regions());
    let seed = u128::from(disk.entropy()?) << 64 | u128::from(disk.entropy()?);
    let writer = Writer::new(log, log_limits, regions);
    let keys = Arc::new(Keys::new(&keys, state.catalogue()));
    let mut core = Core::new(state, writer, decode, keys, snapshots, wall);
    core.rest_again();
    core.announce(seed)?;
    if commits == Commits::ByHand {
        core.settle()?;
    }
    Ok((core, findings))
}
