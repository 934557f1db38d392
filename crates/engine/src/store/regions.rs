//! How many messages lie in which part of the log.
//!
//! Copies of one payload count each. A region that nothing refers to any more can be used again; the
//! shard asks for those with [`Regions::take_emptied`].

use std::collections::BTreeMap;

use crate::id::Region;

/// Live references by region.
#[derive(Debug, Clone, Default)]
pub(crate) struct Regions {
    counts: BTreeMap<Region, u64>,
    emptied: Vec<Region>,
}

impl Regions {
    pub(crate) fn add(&mut self, region: Region, count: u64) {
        if count > 0 {
            let entry = self.counts.entry(region).or_default();
            *entry = entry.saturating_add(count);
        }
    }

    pub(crate) fn release(&mut self, region: Region, count: u64) {
        if let Some(left) = self.counts.get_mut(&region) {
            *left = left.saturating_sub(count);
            if *left == 0 {
                self.counts.remove(&region);
                self.emptied.push(region);
            }
        }
    }

    /// One reference less, which is about to be counted again: the region is not empty in between.
    pub(crate) fn uncount(&mut self, region: Region) {
        if let Some(left) = self.counts.get_mut(&region) {
            *left = left.saturating_sub(1);
        }
    }

    /// All of them without any reference.
    pub(crate) fn cleared(mut self) -> Regions {
        self.emptied.extend(std::mem::take(&mut self.counts).into_keys());
        self
    }

    /// How many references there are into a region.
    pub(crate) fn count(&self, region: Region) -> u64 {
        self.counts.get(&region).copied().unwrap_or(0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Region, u64)> {
        self.counts.iter().map(|(region, count)| (*region, *count))
    }

    /// The regions that became empty since the last call. One may have been filled again since.
    pub(crate) fn take_emptied(&mut self) -> Vec<Region> {
        let counts = &self.counts;
        self.emptied.retain(|region| !counts.contains_key(region));
        std::mem::take(&mut self.emptied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_reported_once_when_its_last_reference_goes() {
        let mut regions = Regions::default();
        regions.add(Region(1), 2);
        regions.add(Region(2), 1);
        regions.release(Region(1), 1);
        assert_eq!(regions.take_emptied(), []);
        regions.release(Region(1), 1);
        regions.release(Region(2), 1);
        regions.add(Region(2), 1);
        assert_eq!(regions.take_emptied(), [Region(1)], "the second is in use again");
        assert_eq!(regions.take_emptied(), []);
    }
}
