//! Room: whether an append may still be promised, asked *before* it is made.
//!
//! A full disk must never be met while writing. Segments that exist take entries without asking
//! the file system for anything; beyond them the free space counts, less a reserve for the rest
//! of the machine. A part of the whole is kept for settlements: when only that part is left,
//! appends that grow the backlog are refused, while completing and dead-lettering go on, which is
//! what makes room again.

use crate::options::Options;
use crate::units::on_disk;

/// Free space is asked for again after this long.
const REFRESH_MS: u64 = 1_000;

/// What an append does to the backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appending {
    /// It adds to it: sends, scheduling, new entities.
    Growing,
    /// It takes from it, or must not fail: settlements, locks, moves to extents.
    Settling,
}

/// Why an append is refused for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The disk is too full.
    #[error("the disk has room for {room} bytes of log and {needed} are kept for settlements")]
    Disk {
        /// Bytes that could still be logged.
        room: u64,
        /// Bytes that must be left.
        needed: u64,
    },
    /// The ring has outgrown its budget: live records must move to extents first.
    #[error("the ring uses {used} of {limit} bytes")]
    Ring {
        /// Bytes in use.
        used: u64,
        /// Its budget.
        limit: u64,
    },
}

/// The free space last seen.
#[derive(Debug)]
pub(crate) struct Gauge {
    free_bytes: u64,
    seen_ms: Option<u64>,
}

impl Gauge {
    pub(crate) fn new() -> Self {
        Self { free_bytes: 0, seen_ms: None }
    }

    /// Whether the free space should be looked at again.
    pub(crate) fn is_stale(&self, now_ms: u64) -> bool {
        self.seen_ms.is_none_or(|seen| now_ms.saturating_sub(seen) >= REFRESH_MS || now_ms < seen)
    }

    pub(crate) fn see(&mut self, free_bytes: u64, now_ms: u64) {
        (self.free_bytes, self.seen_ms) = (free_bytes, Some(now_ms));
    }

    /// Decides on an append, given the bytes set aside in files and the bytes the ring uses.
    pub(crate) fn permit(
        &self,
        appending: Appending,
        options: &Options,
        set_aside: u64,
        used: u64,
    ) -> Result<(), NoRoom> {
        // The batch being filled and the one behind it may both be placed before the next look.
        let commit = 2 * on_disk(options.limits.entry_bytes());
        let (free, needed) = match appending {
            Appending::Growing => (
                self.free_bytes.saturating_sub(options.disk_reserve_bytes),
                options.settle_reserve_bytes.saturating_add(commit),
            ),
            Appending::Settling => (self.free_bytes, commit),
        };
        let room = set_aside.saturating_add(free);
        if room < needed {
            return Err(NoRoom::Disk { room, needed });
        }
        let limit = options.ring_bytes;
        if appending == Appending::Growing && used > limit {
            return Err(NoRoom::Ring { used, limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(free_bytes: u64) -> Gauge {
        let mut gauge = Gauge::new();
        gauge.see(free_bytes, 0);
        gauge
    }

    #[test]
    fn growing_stops_before_settling_does() {
        let options = Options::tiny();
        let commit = 2 * on_disk(options.limits.entry_bytes());
        let growing = options.disk_reserve_bytes + options.settle_reserve_bytes + commit;
        let cases = [
            ("plenty", growing, true, true),
            ("one byte short for growing", growing - 1, false, true),
            ("the settlements' own reserve", commit, false, true),
            ("nothing left", commit - 1, false, false),
        ];
        for (case, free, grows, settles) in cases {
            let gauge = gauge(free);
            assert_eq!(gauge.permit(Appending::Growing, &options, 0, 0).is_ok(), grows, "{case}");
            assert_eq!(gauge.permit(Appending::Settling, &options, 0, 0).is_ok(), settles, "{case}");
        }
    }

    #[test]
    fn segments_that_exist_count_as_room() {
        let options = Options::tiny();
        let needed = options.settle_reserve_bytes + 2 * on_disk(options.limits.entry_bytes());
        assert!(gauge(0).permit(Appending::Growing, &options, needed, 0).is_ok());
        assert!(gauge(0).permit(Appending::Growing, &options, needed - 1, 0).is_err());
    }

    #[test]
    fn a_ring_over_its_budget_refuses_growth_only() {
        let options = Options::tiny();
        let plenty = gauge(1 << 40);
        assert!(plenty.permit(Appending::Growing, &options, 0, options.ring_bytes).is_ok());
        let over = plenty.permit(Appending::Growing, &options, 0, options.ring_bytes + 1);
        assert!(matches!(over, Err(NoRoom::Ring { .. })));
        assert!(plenty.permit(Appending::Settling, &options, 0, options.ring_bytes + 1).is_ok());
    }

    #[test]
    fn free_space_is_looked_at_again_after_a_second_or_when_time_jumps_back() {
        let mut gauge = Gauge::new();
        assert!(gauge.is_stale(0));
        gauge.see(1, 5_000);
        for (now, stale) in [(5_000, false), (5_999, false), (6_000, true), (4_999, true)] {
            assert_eq!(gauge.is_stale(now), stale, "at {now}");
        }
    }
}
