//! Names for places: where a record lies, which commit it belongs to, who wrote it.
//!
//! A location is known the moment a record is encoded, before anything is written, because one
//! writer appends to one place. Outside this crate it is an opaque number: eight bytes in the
//! engine's record of a message. Inside it is a region (a segment of the ring or an extent) in
//! the high half and a byte offset in the low half, so locations in the ring grow with the log.

use std::fmt;

/// Marks a region number as an extent; without it the region is a segment of the ring.
const EXTENT: u32 = 1 << 31;

/// A file that holds records: a segment of the ring, or an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(u32);

impl Region {
    /// The segment of the ring with this number; segments count from one and never repeat.
    pub fn segment(number: u32) -> Self {
        debug_assert!(number < EXTENT, "region numbers have 31 bits");
        Self(number & !EXTENT)
    }

    /// The extent with this number; extents count from one.
    pub fn extent(number: u32) -> Self {
        debug_assert!(number < EXTENT, "region numbers have 31 bits");
        Self(number | EXTENT)
    }

    /// Whether this is an extent rather than a segment of the ring.
    pub fn is_extent(self) -> bool {
        self.0 & EXTENT != 0
    }

    /// The number within its kind.
    pub fn number(self) -> u32 {
        self.0 & !EXTENT
    }
}

impl fmt::Display for Region {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_extent() { "extent" } else { "segment" };
        write!(out, "{kind} {}", self.number())
    }
}

/// Where a record lies. Opaque to everyone but a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(u64);

impl Location {
    /// No place at all: no record ever lies here.
    pub const NONE: Self = Self(0);

    /// The place `offset` bytes into `region`.
    pub fn new(region: Region, offset: u32) -> Self {
        Self((u64::from(region.0) << 32) | u64::from(offset))
    }

    /// Rebuilds a location from the number it was stored as.
    pub fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The number to store.
    pub fn raw(self) -> u64 {
        self.0
    }

    /// The file it lies in.
    pub fn region(self) -> Region {
        Region(u32::try_from(self.0 >> 32).expect("the high half of 64 bits has 32"))
    }

    /// How far into its file it lies.
    pub fn offset(self) -> u32 {
        u32::try_from(self.0 & u64::from(u32::MAX)).expect("the low half of 64 bits has 32")
    }

    /// The place `bytes` further on in the same region.
    pub(crate) fn plus(self, bytes: u32) -> Self {
        Self(self.0.checked_add(u64::from(bytes)).expect("a region is shorter than 4 GiB"))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} offset {}", self.region(), self.offset())
    }
}

/// A commit in the log: batches are numbered from one without gaps. Zero is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// Before the first batch.
    pub const START: Self = Self(0);

    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("batch numbers have 64 bits"))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "batch {}", self.0)
    }
}

/// A term of ownership: each owner of a log writes with a greater epoch than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("epochs have 64 bits"))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "epoch {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_keeps_its_region_and_offset() {
        for region in [Region::segment(1), Region::segment(EXTENT - 1), Region::extent(1), Region::extent(7)]
        {
            for offset in [0, 1, u32::MAX] {
                let location = Location::from_raw(Location::new(region, offset).raw());
                assert_eq!((location.region(), location.offset()), (region, offset));
            }
        }
    }

    #[test]
    fn locations_in_the_ring_grow_with_the_log() {
        let end_of_first = Location::new(Region::segment(1), u32::MAX);
        let start_of_second = Location::new(Region::segment(2), 0);
        assert!(end_of_first < start_of_second);
        assert!(Location::NONE < Location::new(Region::segment(1), 0));
    }
}
