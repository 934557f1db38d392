//! Which parts of the log are still needed for the payloads in them.
//!
//! The engine counts the messages in each region and says when one becomes empty, and when a run comes to its end whose
//! records are written down in an extent. A region is let go when nothing lies in it, no run is written down in it, and
//! nothing can come into it any more: it is not the one being written to, and no large message
//! that ends in a later region begins in it. Settlements and other facts do not count: they are
//! needed until a snapshot covers them, which the log knows by itself.

use super::cold;
use std::collections::{BTreeMap, BTreeSet};
use vorrang_engine::{Location, State};
use vorrang_log::{Log, Region};

/// The books about regions.
#[derive(Debug, Default)]
pub(super) struct Regions {
    /// Regions that may have nothing in them.
    candidates: BTreeSet<Region>,
    /// For regions that large messages end in, the first region they begin in.
    spans: BTreeMap<Region, Region>,
    /// The segment that the newest durable batch lies in.
    durable: Option<Region>,
}

/// The region a location lies in.
pub(super) fn region_of(location: Location) -> Region {
    vorrang_log::Location::from_raw(location.0).region()
}

/// The log's word for the engine's region.
pub(super) fn named(region: vorrang_engine::Region) -> Region {
    region_of(Location(u64::from(region.0) << 32))
}

/// The engine's word for the log's region.
pub(super) fn counted(region: Region) -> vorrang_engine::Region {
    Location(vorrang_log::Location::new(region, 0).raw()).region()
}

impl Regions {
    /// Notes where the payload begins that a record at `location` completes.
    pub(super) fn wrote(&mut self, location: Location, first_part: Option<Location>) {
        let region = region_of(location);
        if let Some(first) = first_part.map(region_of).filter(|first| *first < region) {
            self.span(region, first);
        }
    }

    /// Notes that a message that ends in `last` begins in `first`.
    pub(super) fn span(&mut self, last: Region, first: Region) {
        let known = self.spans.entry(last).or_insert(first);
        *known = first.min(*known);
    }

    /// Where large messages begin that end elsewhere: a location in the ending region, one in the first.
    pub(super) fn spans(&self) -> Vec<(Location, Location)> {
        let place = |region: &Region| Location(vorrang_log::Location::new(*region, 0).raw());
        self.spans.iter().map(|(last, first)| (place(last), place(first))).collect()
    }

    /// The regions that large messages end in which have a part in one of these.
    pub(super) fn spanning(&self, regions: &BTreeSet<Region>) -> BTreeSet<Region> {
        let touches = |first: Region, last: Region| regions.range(first..last).next().is_some();
        self.spans.iter().filter(|(last, first)| touches(**first, **last)).map(|(last, _)| *last).collect()
    }

    /// Whether a large message crosses a bound of this region.
    pub(super) fn is_crossed(&self, region: Region) -> bool {
        self.spans.iter().any(|(last, first)| *first <= region && region <= *last)
    }

    /// Notes that these regions may have nothing in them.
    pub(super) fn suspect(&mut self, regions: impl IntoIterator<Item = Region>) {
        self.candidates.extend(regions);
    }

    /// Lets the log have every region back that nothing lies in, given the segment that the newest
    /// durable batch lies in. While messages are `moving`, an extent may be empty because those that
    /// moved first are gone already and the others have yet to arrive: none is let go then.
    /// From `pinned` on there are pieces of messages that are not there yet.
    pub(super) fn let_go(
        &mut self,
        state: &mut State,
        log: &Log,
        (durable, pinned): (Option<Region>, Option<Region>),
        moving: bool,
    ) {
        if self.durable != durable {
            // Segments that only ever held settlements are never reported empty.
            self.candidates.extend(std::mem::replace(&mut self.durable, durable));
        }
        for region in state.take_emptied_regions() {
            self.candidates.insert(named(region));
        }
        self.candidates.extend(state.take_ended_runs().into_iter().map(cold::extent_of));
        if self.candidates.is_empty() {
            return;
        }
        self.spans.retain(|last, _| state.region_count(counted(*last)) > 0);
        let spans = &self.spans;
        self.candidates.retain(|region| {
            let written_down = region.is_extent() && state.has_runs_in(cold::runs_of(*region));
            if written_down || state.region_count(counted(*region)) > 0 {
                return false; // it will be reported again when nothing is left in it
            }
            let written_to =
                if region.is_extent() { moving } else { durable.is_none_or(|durable| *region >= durable) };
            let spanned = spans.iter().any(|(last, first)| first <= region && region < last);
            let pinned = pinned.is_some_and(|first| !region.is_extent() && first <= *region);
            if written_to || spanned || pinned {
                return true;
            }
            log.release(*region);
            false
        });
    }
}
