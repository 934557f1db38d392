//! Delivery ids that share one outcome, gathered into ranges.
//!
//! Outcomes are decided in batches and mostly in order, so the common case extends the last range. Whatever order
//! they came in, [`Runs::take`] yields the fewest ranges that cover them.

use super::serial::Serial;

/// An inclusive range of delivery ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: Serial,
    pub(super) last: Serial,
}

/// Ids on their way into dispositions. At most one run per unsettled delivery, so bounded by that limit.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
}

impl Runs {
    /// Adds an id that is in no run yet.
    #[inline]
    pub(super) fn push(&mut self, id: Serial) {
        if let Some(run) = self.runs.last_mut()
            && run.last.next() == id
        {
            run.last = id;
            return;
        }
        self.runs.push(Run { first: id, last: id });
    }

    /// Sorts and joins the runs, passes each to `write`, and keeps only the memory.
    pub(super) fn take(&mut self, mut write: impl FnMut(Run)) {
        let Some(reference) = self.runs.first().map(|run| run.first) else { return };
        self.runs.sort_unstable_by_key(|run| run.first.offset_from(reference));
        let mut pending: Option<Run> = None;
        for run in self.runs.drain(..) {
            match &mut pending {
                Some(before) if before.last.next() == run.first => before.last = run.last,
                _ => {
                    if let Some(before) = pending.replace(run) {
                        write(before);
                    }
                }
            }
        }
        if let Some(run) = pending {
            write(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_any_order_become_the_fewest_ranges() {
        type Case = (&'static str, &'static [u32], &'static [(u32, u32)]);
        let cases: [Case; 5] = [
            ("in order", &[1, 2, 3], &[(1, 3)]),
            ("two links answered one after the other", &[0, 2, 4, 1, 3], &[(0, 4)]),
            ("a gap", &[1, 2, 4], &[(1, 2), (4, 4)]),
            ("backwards", &[9, 8, 7], &[(7, 9)]),
            ("across the wrap", &[1, 0, u32::MAX, u32::MAX - 1], &[(u32::MAX - 1, 1)]),
        ];
        for (case, ids, expected) in cases {
            let mut runs = Runs::default();
            for id in ids {
                runs.push(Serial::new(*id));
            }
            let mut found = Vec::new();
            runs.take(|run| found.push((run.first.get(), run.last.get())));
            assert_eq!(found, expected, "{case}");
            assert!(runs.runs.is_empty());
        }
    }
}
