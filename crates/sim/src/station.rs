//! The broker under simulation: one shard, its disk, and the wire to it.
//!
//! The shard is the real one, without its thread. Between it and the clients stands [`Mischief`], which
//! does nothing in an honest run.

use crate::mischief::Mischief;
use crate::payload::Payload;
use std::sync::{Arc, Mutex, PoisonError};
use vorrang_broker::access::Principal;
use vorrang_broker::api::{Event, Outlet};
use vorrang_broker::shard::{
    Arrivals, Chilling, Commits, Core, Evacuation, Item, PeerId, Schedule, Settings, Snapshot, open,
};
use vorrang_engine::{Limits, Timestamp};
use vorrang_log::dice::Dice;
use vorrang_log::disk::{Disk, Fate, Pattern, SimDisk, Torn};
use vorrang_log::{Limits as LogLimits, Options, Pace};

/// What the shard has said, to whom.
type Said = Arc<Mutex<Vec<(u32, Event)>>>;

struct Ear {
    peer: u32,
    said: Said,
}

impl Outlet for Ear {
    fn effects(&self, batch: Vec<Event>) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(batch.into_iter().map(|event| (self.peer, event)));
    }
}

/// A shard that can be killed and started again.
pub(crate) struct Station {
    /// Its disk.
    pub(crate) disk: SimDisk,
    /// What is wrong with it on purpose.
    pub(crate) mischief: Mischief,
    ring_bytes: u64,
    core: Option<Core>,
    arrived: Arrivals,
    said: Said,
    operator: Arc<Principal>,
}

impl std::fmt::Debug for Station {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Station").field("core", &self.core).finish_non_exhaustive()
    }
}

/// Few enough that messages leave memory in most runs.
const HOT_RECORDS: u32 = 80;

/// A layout of kilobytes, so that segments change often.
fn options(ring_bytes: u64) -> Options {
    Options {
        segment_bytes: 128 << 10,
        first_segment_bytes: 64 << 10,
        ring_bytes,
        disk_reserve_bytes: 256 << 10,
        settle_reserve_bytes: 128 << 10,
        limits: LogLimits { batch_bytes: 8 << 10, record_bytes: 2 << 10 },
        fill_bytes_per_second: u64::MAX,
        ..Options::default()
    }
}

impl Station {
    /// A broker that is not running.
    #[must_use]
    pub(crate) fn new(seed: u64, ring_bytes: u64, mischief: Mischief) -> Station {
        let disk = SimDisk::new(seed);
        mischief.spoil_disk(&disk);
        Station {
            disk,
            mischief,
            ring_bytes,
            core: None,
            arrived: Arrivals::default(),
            said: Said::default(),
            operator: Arc::new(Principal::operator()),
        }
    }

    /// Starts the broker on what is on the disk.
    pub(crate) fn start(&mut self, now: Timestamp) -> Result<(), String> {
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        let settings = Settings {
            limits: Limits { hot_records: HOT_RECORDS, ..Limits::default() },
            log: options(self.ring_bytes),
            decode: Arc::new(Payload),
            keys: Vec::new(),
            snapshots: Schedule { pace: Pace::UNLIMITED, ..Schedule::default() },
        };
        let opened = open(&disk, settings, Commits::ByHand, Arc::new(|_| ()), now);
        self.core = Some(opened.map_err(|error| error.to_string())?.0);
        Ok(())
    }

    /// The shard, while it runs.
    #[must_use]
    pub(crate) fn core(&self) -> Option<&Core> {
        self.core.as_ref()
    }

    /// Opens a connection.
    pub(crate) fn connect(&mut self, peer: u32) {
        let ear = Arc::new(Ear { peer, said: Arc::clone(&self.said) });
        self.arrived.push(PeerId(peer), Item::Open(ear));
        self.arrived.push(PeerId(peer), Item::Become(Arc::clone(&self.operator)));
    }

    /// Something arrives from a connection.
    pub(crate) fn arrive(&mut self, peer: u32, item: Item) {
        self.arrived.push(PeerId(peer), item);
    }

    /// Lets the shard do what there is to do, and returns what it said.
    pub(crate) fn step(&mut self, now: Timestamp) -> Vec<(u32, Event)> {
        let Some(core) = &mut self.core else { return Vec::new() };
        core.step(now, &mut self.arrived);
        let mut said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        self.mischief.twist(&mut said, now);
        said
    }

    /// Makes durable what was written. False if the disk failed.
    pub(crate) fn commit(&mut self) -> bool {
        self.core.as_mut().is_none_or(|core| core.flush().is_ok())
    }

    /// Writes a snapshot and empties old segments if the shard says so, or a snapshot in any case, as far
    /// as the disk lets it. Says what was done.
    pub(crate) fn tidy(&mut self, in_any_case: bool) -> Vec<&'static str> {
        let mut done = Vec::new();
        let Some(core) = &mut self.core else { return done };
        let snapshot = if in_any_case { Some(core.snapshot()) } else { core.snapshot_if_due() };
        if let Some(written) = snapshot.map(|begun| begun.and_then(Snapshot::write))
            && core.flush().is_ok()
            && let Ok(unfinished) = written
            && unfinished.finish().is_ok()
        {
            done.push("snapshot");
        }
        // Both see the same state, and each finds it changed by the other.
        let (chilling, evacuation) = (core.chilling_if_due(), core.evacuation_if_due());
        if let Some(Ok(commands)) = chilling.map(|begun| begun.and_then(Chilling::run)) {
            core.take_over(commands);
            done.push("chilling");
        }
        if let Some(Ok(evacuated)) = evacuation.map(|begun| begun.and_then(Evacuation::run)) {
            done.push(if evacuated.rests() { "resting" } else { "evacuation" });
            core.evacuated(evacuated);
        }
        core.slacken();
        done
    }

    /// Why the shard stopped by itself, if it did.
    #[must_use]
    pub(crate) fn failure(&self) -> Option<String> {
        self.core.as_ref().and_then(|core| core.over().map(ToString::to_string))
    }

    /// Power failure: what was not synced is lost, kept, torn or garbled.
    pub(crate) fn crash(&mut self, dice: &mut Dice) {
        self.core = None;
        self.arrived.clear();
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let fates: Vec<Fate> = self.disk.unsynced().into_iter().map(|bytes| draw_fate(dice, bytes)).collect();
        let image = self.disk.crash(&fates);
        self.disk = self.mischief.swap_disk(image);
    }
}

fn draw_fate(dice: &mut Dice, bytes: usize) -> Fate {
    let torn = |dice: &mut Dice, rest| Fate::Torn(Torn { kept_bytes: dice.index(bytes + 1), rest });
    match dice.below(6) {
        0 | 1 => Fate::Kept,
        2 => Fate::Lost,
        3 => torn(dice, Pattern::Garbage),
        4 => torn(dice, Pattern::Stale),
        _ => Fate::Scattered(dice.roll()),
    }
}
