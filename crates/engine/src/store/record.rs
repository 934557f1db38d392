//! One message in memory: 48 bytes.

use super::slab::{Handle, Slot};
use crate::id::{Location, MailboxId, Sequence};
use crate::level::{Level, LevelOrigin};
use crate::time::Timestamp;

/// Where a message is within its mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// Nowhere: the slot is free and `next` is the next free one.
    Nowhere,
    /// In the list of its lane or session.
    Listed,
    /// Among the returned of its lane or session.
    Returned,
    /// Among those with a deadline of their own.
    Dated,
    /// Put aside.
    Deferred,
    /// Waiting for its scheduled time.
    Scheduled,
    /// Waiting for its retry delay to pass.
    Delayed,
    /// Locked; `next` is the lock.
    Locked,
    /// Locked, and deferred again when that ends; `next` is the lock.
    LockedDeferred,
    /// On its way from one place to another, within one fact.
    Transit,
}

/// A message's fixed-size part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) sequence: Sequence,
    pub(crate) location: Location,
    pub(crate) eligible: Timestamp,
    pub(crate) size: u32,
    pub(crate) mailbox: MailboxId,
    pub(crate) prev: Handle,
    pub(crate) next: Handle,
    /// What most messages do not have.
    pub(crate) extra: Handle,
    pub(crate) deliveries: u16,
    pub(crate) level: Level,
    /// [`Place`] in the lower half, [`LevelOrigin`] in the upper.
    status: u8,
}

const _: () = assert!(std::mem::size_of::<Record>() == 48, "a record is 48 bytes");

/// The order of messages within a lane.
pub(crate) type Key = (Timestamp, Sequence);

impl Record {
    pub(crate) fn new(
        mailbox: MailboxId,
        (eligible, sequence): Key,
        (location, size): (Location, u32),
        (level, origin): (Level, LevelOrigin),
    ) -> Record {
        let mut record = Record {
            sequence,
            location,
            eligible,
            size,
            mailbox,
            prev: Handle::NONE,
            next: Handle::NONE,
            extra: Handle::NONE,
            deliveries: 0,
            level,
            status: 0,
        };
        record.set_origin(origin);
        record.set_place(Place::Transit);
        record
    }

    pub(crate) fn key(&self) -> Key {
        (self.eligible, self.sequence)
    }

    pub(crate) fn place(&self) -> Place {
        match self.status & 0x0f {
            0 => Place::Nowhere,
            1 => Place::Listed,
            2 => Place::Returned,
            3 => Place::Dated,
            4 => Place::Deferred,
            5 => Place::Scheduled,
            6 => Place::Delayed,
            7 => Place::Locked,
            8 => Place::LockedDeferred,
            _ => Place::Transit,
        }
    }

    pub(crate) fn set_place(&mut self, place: Place) {
        let bits = match place {
            Place::Nowhere => 0,
            Place::Listed => 1,
            Place::Returned => 2,
            Place::Dated => 3,
            Place::Deferred => 4,
            Place::Scheduled => 5,
            Place::Delayed => 6,
            Place::Locked => 7,
            Place::LockedDeferred => 8,
            Place::Transit => 9,
        };
        self.status = (self.status & 0xf0) | bits;
    }

    pub(crate) fn origin(&self) -> LevelOrigin {
        match self.status >> 4 {
            0 => LevelOrigin::Rule,
            1 => LevelOrigin::Property,
            2 => LevelOrigin::Header,
            3 => LevelOrigin::Default,
            _ => LevelOrigin::Operator,
        }
    }

    pub(crate) fn set_origin(&mut self, origin: LevelOrigin) {
        let bits = match origin {
            LevelOrigin::Rule => 0,
            LevelOrigin::Property => 1,
            LevelOrigin::Header => 2,
            LevelOrigin::Default => 3,
            LevelOrigin::Operator => 4,
        };
        self.status = (self.status & 0x0f) | (bits << 4);
    }
}

impl Slot for Record {
    fn freed(next: Handle) -> Self {
        let nothing = (Timestamp(0), Sequence(0));
        let mut record =
            Record::new(MailboxId(0), nothing, (Location::NOWHERE, 0), (Level(0), LevelOrigin::Default));
        record.set_place(Place::Nowhere);
        record.next = next;
        record
    }

    fn next_free(&self) -> Option<Handle> {
        (self.place() == Place::Nowhere).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_and_origin_share_a_byte_without_disturbing_each_other() {
        let places = [
            Place::Listed,
            Place::Returned,
            Place::Dated,
            Place::Deferred,
            Place::Scheduled,
            Place::Delayed,
            Place::Locked,
            Place::LockedDeferred,
            Place::Transit,
        ];
        let origins = [
            LevelOrigin::Rule,
            LevelOrigin::Property,
            LevelOrigin::Header,
            LevelOrigin::Default,
            LevelOrigin::Operator,
        ];
        for place in places {
            for origin in origins {
                let mut record = Record::freed(Handle::NONE);
                record.set_origin(origin);
                record.set_place(place);
                assert_eq!((record.place(), record.origin()), (place, origin));
                assert_eq!(record.next_free(), None);
                record.set_origin(LevelOrigin::Rule);
                assert_eq!(record.place(), place);
            }
        }
    }
}
