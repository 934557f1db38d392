//! Choosing among lane heads.

use std::collections::BTreeMap;

use super::Ordering;
use crate::id::Sequence;
use crate::lane::{Head, Lanes};
use crate::level::Level;
use crate::store::{Handle, Record, Slab};
use crate::time::Timestamp;

/// Messages with a deadline of their own, under the deadline policy.
pub(crate) type Dated = BTreeMap<(Timestamp, Sequence), (Handle, Level)>;

/// How far the dated messages are searched for one of a level high enough for an express receiver.
const DATED_SCAN_MAX: usize = 1_024;

/// What the rescue line can save up, in thousandths of a delivery: one turn, and all but a second. More would be many
/// turns in a row after a long time in which none was possible.
const SAVED_MAX: u16 = 1_999;

/// The message that is next, and what choosing it does to the rescue account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) head: Head,
    pub(crate) level: Level,
    pub(crate) rescue: u16,
    /// Whether it was chosen for its age, past messages of higher levels.
    pub(crate) rescued: bool,
}

/// The next message of level `floor` or higher.
///
/// `account` is what the rescue line has saved up, in thousandths of a delivery: every delivery adds the
/// share while somebody starves, and a whole one is a turn of the oldest. So the n-th in that line is
/// served within n ÷ share deliveries, whatever arrives meanwhile.
pub(crate) fn choose(
    lanes: &Lanes,
    dated: &Dated,
    ordering: &Ordering,
    records: &Slab<Record>,
    now: Timestamp,
    floor: Level,
    account: u16,
) -> Option<Choice> {
    if ordering.is_strict() {
        let highest = lanes.highest().filter(|highest| *highest >= floor)?;
        let (rescue, starving) = rescue(lanes, ordering, now, floor, account);
        let level = starving.unwrap_or(highest);
        let head = lanes.head(level, records)?;
        return Some(Choice { head, level, rescue, rescued: starving.is_some_and(|level| level != highest) });
    }
    let best = lanes.soonest(floor, |level, eligible| ordering.stand(level, eligible));
    let best = best.map(|(stand, level, (_, sequence))| ((stand, sequence), level));
    let own = dated.iter().take(DATED_SCAN_MAX).find(|(_, (_, level))| *level >= floor);
    let own = own.and_then(|((deadline, sequence), (handle, level))| {
        let key = records.get(*handle)?.key();
        Some(((*deadline, *sequence), Head::Hot(key, *handle), *level))
    });
    let (head, level) = match (best, own) {
        (Some((rank, level)), Some((own_rank, ..))) if rank <= own_rank => {
            (lanes.head(level, records)?, level)
        }
        (_, Some((_, head, level))) => (head, level),
        (Some((_, level)), None) => (lanes.head(level, records)?, level),
        (None, None) => return None,
    };
    Some(Choice { head, level, rescue: 0, rescued: false })
}

/// The account after this delivery, and the level whose head is to be rescued by it, if any.
///
/// A delivery that only higher levels may have, because of the receiver or because of what is left of its credit, saves
/// up for those who starve below like any other; the turn is with the next that may.
fn rescue(
    lanes: &Lanes,
    ordering: &Ordering,
    now: Timestamp,
    floor: Level,
    account: u16,
) -> (u16, Option<Level>) {
    let share = ordering.rescue.share.thousandths();
    let starves = |floor| now.since(lanes.oldest_eligible(floor)) > ordering.rescue.after;
    if share == 0 || !starves(Level(0)) {
        return (0, None);
    }
    let saved = account.saturating_add(share).min(SAVED_MAX);
    match saved.checked_sub(1_000) {
        Some(left) if floor == Level(0) || starves(floor) => {
            (left, lanes.oldest(floor).map(|(level, _)| level))
        }
        _ => (saved, None),
    }
}
