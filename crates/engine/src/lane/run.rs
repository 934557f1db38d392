//! A stretch of a lane that lies on disk.

use crate::id::{Region, RunId};
use crate::store::record::Key;

/// What is known of a stretch whose records are not in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    /// How many records were written.
    pub(crate) count: u32,
    /// How many of them are back in memory.
    pub(crate) consumed: u32,
    /// Up to which record more was asked for; asking twice would waste reads. Not kept in snapshots.
    pub(crate) asked: u32,
    /// No remaining record comes before this. Those that came back do.
    pub(crate) from: Key,
    pub(crate) last: Key,
    pub(crate) bytes: u64,
    /// How many of the remaining payloads lie where; usually one region.
    pub(crate) regions: Vec<(Region, u32)>,
}

impl Run {
    pub(crate) fn remaining(&self) -> u32 {
        self.count.saturating_sub(self.consumed)
    }

    /// One payload less lies in that region.
    pub(crate) fn forget(&mut self, region: Region) {
        if let Some((_, left)) = self.regions.iter_mut().find(|(known, _)| *known == region) {
            *left = left.saturating_sub(1);
        }
        self.regions.retain(|(_, left)| *left > 0);
    }
}
