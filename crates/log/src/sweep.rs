//! Reading many records in the order they lie, with few calls to the disk.
//!
//! Whoever empties a segment, or receives a backlog, reads most of its records one after the other. A call to the disk for each of them costs
//! more than the copying it is for, so records that lie close together are read a stretch at a time. Everything else is
//! read as [`Reader::read`] does, which also has the last word on a record that does not verify.

use crate::location::Location;
use crate::reader::{ReadError, Reader};
use crate::record::{self, HEADER_BYTES, Record};
use bytes::Bytes;

/// Bytes of the first stretch. Each that follows is twice as long as the one before: who has read far goes on.
const STRETCH_BYTES_MIN: usize = 16 << 10;
/// Bytes of the longest.
const STRETCH_BYTES_MAX: usize = 256 << 10;
/// A stretch is read while at least this part of it is wanted: a record lies at most so many times its own length
/// behind the one before.
const APART_MAX: usize = 3;

/// Where a reader is on its way through a region.
#[derive(Debug, Default)]
pub struct Sweep {
    /// The stretch at hand, and where it begins.
    stretch: Option<(Location, Bytes)>,
    /// The record read last.
    last: Option<Location>,
    /// How many stretches were read one after the other.
    stretches: u32,
}

impl Sweep {
    /// Reads the record at `location`, as [`Reader::read`] does.
    pub fn read(
        &mut self,
        reader: &Reader,
        location: Location,
        payload_bytes: usize,
    ) -> Result<Record, ReadError> {
        let last = self.last.replace(location);
        if let Some(record) = self.at_hand(location) {
            return Ok(record);
        }
        let near = last.is_some_and(|last| is_near(last, location, payload_bytes));
        self.stretches = if near { self.stretches.saturating_add(1) } else { 0 };
        if near {
            let doubled = 1_usize
                .checked_shl(self.stretches - 1)
                .and_then(|times| STRETCH_BYTES_MIN.checked_mul(times));
            let bytes = doubled.unwrap_or(usize::MAX).min(STRETCH_BYTES_MAX);
            self.stretch = Some((location, reader.stretch(location, bytes)?));
            if let Some(record) = self.at_hand(location) {
                return Ok(record);
            }
        }
        reader.read(location, payload_bytes)
    }

    /// The record if the whole of it lies in the stretch.
    fn at_hand(&self, location: Location) -> Option<Record> {
        let (start, bytes) = self.stretch.as_ref()?;
        let offset = usize::try_from(location.raw().checked_sub(start.raw())?).ok()?;
        let (view, _) = record::decode(location, bytes.get(offset..)?).ok()?;
        let (kind, fixed, payload) = (view.kind, view.fixed.len(), view.payload.len());
        let fixed_start = offset.checked_add(HEADER_BYTES)?;
        let payload_start = fixed_start.checked_add(fixed)?;
        Some(Record {
            kind,
            fixed: bytes.slice(fixed_start..payload_start),
            payload: bytes.slice(payload_start..payload_start.checked_add(payload)?),
        })
    }
}

fn is_near(last: Location, next: Location, payload_bytes: usize) -> bool {
    let apart = next.raw().checked_sub(last.raw()).and_then(|apart| usize::try_from(apart).ok());
    let length = HEADER_BYTES.saturating_add(payload_bytes);
    last.region() == next.region() && apart.is_some_and(|apart| apart <= length.saturating_mul(APART_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, FileName, SimDisk};
    use crate::location::Region;
    use crate::log::Log;
    use crate::options::Options;
    use crate::recovery::Opening;
    use std::sync::Arc;

    const SIZES: [usize; 6] = [0, 1, 40, 300, 1_000, 1_900];

    /// A log with some hundred records of different sizes over several segments, and where they lie.
    fn filled(disk: &SimDisk) -> (Log, Vec<(Location, Vec<u8>)>) {
        let opening = Opening::begin(Arc::new(disk.clone()), Options::tiny()).unwrap();
        let recovered = opening.replay(|_| Ok::<_, crate::EntryError>(())).unwrap();
        let mut log = recovered.start_manual(Arc::new(|_| ()), 1).unwrap();
        let mut records = Vec::new();
        for number in 0..120_u8 {
            let payload = vec![number; SIZES[usize::from(number) % SIZES.len()]];
            let mut batch = log.batch().unwrap();
            records.push((batch.record(number, b"fixed", &[&payload]).unwrap(), payload));
            log.submit(batch, 5).unwrap();
            log.flush().unwrap();
            log.upkeep();
        }
        (log, records)
    }

    #[test]
    fn every_record_is_the_one_a_single_read_gives_in_any_order() {
        let (log, records) = filled(&SimDisk::new(1));
        let (reader, mut sweep) = (log.reader(), Sweep::default());
        let strides = [1, 2, 7, 119];
        for stride in strides {
            for step in 0..records.len() {
                let (location, payload) = &records[step * stride % records.len()];
                let record = sweep.read(&reader, *location, payload.len()).unwrap();
                assert_eq!(record, reader.read(*location, payload.len()).unwrap(), "{stride} {step}");
                assert_eq!(record.payload, payload);
            }
        }
    }

    #[test]
    fn neighbours_are_read_together_and_strangers_alone() {
        let (log, records) = filled(&SimDisk::new(1));
        let (reader, mut sweep) = (log.reader(), Sweep::default());
        let mut read = |index: usize| {
            let (location, payload) = &records[index];
            sweep.read(&reader, *location, payload.len()).unwrap();
            sweep.stretch.as_ref().map(|(start, _)| *start)
        };
        assert_eq!(read(4), None, "one record says nothing about the next");
        let start = read(5);
        assert_eq!(start, Some(records[5].0));
        assert_eq!(read(6), start);
        assert_eq!(read(60), start, "far from the one before");
    }

    #[test]
    fn stretches_grow_while_they_follow_one_another() {
        let disk = SimDisk::new(1);
        let (log, _) = filled(&disk);
        let (reader, mut sweep) = (log.reader(), Sweep::default());
        disk.create(FileName::Segment(1_000), 8 << 20).unwrap();
        // Nothing verifies there, so that every step reads a stretch, and then alone.
        let mut at = |offset: u32| {
            sweep.read(&reader, Location::new(Region::segment(1_000), offset), 1_000).unwrap_err();
            sweep.stretch.as_ref().map(|(_, bytes)| bytes.len() >> 10)
        };
        let lengths: Vec<_> = (0..8).map(|step| at(step * 1_000)).collect();
        assert_eq!(lengths, [None, Some(16), Some(32), Some(64), Some(128), Some(256), Some(256), Some(256)]);
        assert_eq!(at(4 << 20), Some(256), "far away, read alone");
        assert_eq!(at((4 << 20) + 1_000), Some(16));
    }

    #[test]
    fn damage_in_a_stretch_is_named_as_a_single_read_names_it() {
        let disk = SimDisk::new(1);
        let (log, records) = filled(&disk);
        let (reader, mut sweep) = (log.reader(), Sweep::default());
        let (location, payload) = &records[4];
        let file = FileName::Segment(location.region().number());
        disk.write_at(file, u64::from(location.offset()) + 30, &[b"damage"]).unwrap();
        let mut damaged = 0;
        for (location, payload) in &records[..8] {
            let swept = sweep.read(&reader, *location, payload.len());
            assert_eq!(swept, reader.read(*location, payload.len()));
            damaged += usize::from(swept.is_err());
        }
        assert_eq!((damaged, payload.len()), (1, 1_000));
    }
}
