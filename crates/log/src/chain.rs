//! The chain: which entries of a shared log count, and which are void.
//!
//! On a log that others can append to, a position says nothing about who wrote there: an owner
//! that was deposed may still have entries on the way, and an append whose answer was lost may
//! or may not have landed. So entries are judged when they are read, by everyone in the same
//! way. An entry counts if it carries the current epoch, the next number, and the hash of the
//! entry before it. Two kinds are exempt from the last two, because whoever writes them cannot
//! know what lands before them: the record that opens a greater epoch, and the barrier by which an
//! owner fixes what has landed. Everything else is void: it takes an address and means nothing.

use crate::entry::{ChainHash, Entry, FLAG_BARRIER, FLAG_EPOCH};
use crate::location::{Epoch, Position};

/// What an entry means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The next batch of the log, at this position.
    Batch(Position),
    /// A new owner, from this position on.
    Epoch(Position),
    /// Everything before this is settled; it takes a position and holds nothing.
    Barrier(Position),
    /// Nothing.
    Void,
}

/// The log as read so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chain {
    /// The last entry that counted.
    pub position: Position,
    /// Its hash.
    pub hash: ChainHash,
    /// The epoch in force.
    pub epoch: Epoch,
    barrier: u64,
}

impl Chain {
    /// A chain that continues from a snapshot.
    pub fn resume(position: Position, hash: ChainHash, epoch: Epoch) -> Self {
        Self { position, hash, epoch, barrier: 0 }
    }

    /// Judges the next entry in order of address, and moves on if it counts.
    pub fn judge(&mut self, entry: &Entry<'_>) -> Meaning {
        let header = &entry.header;
        let next = self.position.next();
        let meaning = if header.flags & FLAG_EPOCH != 0 {
            if header.epoch <= self.epoch {
                return Meaning::Void;
            }
            self.barrier = 0;
            Meaning::Epoch(next)
        } else if header.epoch != self.epoch {
            return Meaning::Void;
        } else if header.flags & FLAG_BARRIER != 0 {
            // A barrier's place for the previous hash holds its serial number: one that was
            // delayed past a later one must not count.
            if header.previous.0 <= self.barrier {
                return Meaning::Void;
            }
            self.barrier = header.previous.0;
            Meaning::Barrier(next)
        } else if header.position != next || header.previous != self.hash {
            return Meaning::Void;
        } else {
            Meaning::Batch(next)
        };
        (self.position, self.hash, self.epoch) = (next, entry.chain(), header.epoch);
        meaning
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{self, Header};
    use crate::location::Location;

    fn entry_bytes(flags: u16, epoch: u64, position: u64, previous: u64) -> Vec<u8> {
        let header = Header {
            flags,
            length: 0,
            shard: 0,
            count: 0,
            epoch: Epoch(epoch),
            position: Position(position),
            previous: ChainHash(previous),
            now_ms: 0,
        };
        entry::seal(&header, entry::RecordsChecksum::default(), 0).0.to_vec()
    }

    fn judge(chain: &mut Chain, bytes: &[u8]) -> Meaning {
        chain.judge(&entry::open(bytes, Location::NONE, 0).unwrap())
    }

    #[test]
    fn only_the_entry_that_continues_the_chain_in_the_current_epoch_counts() {
        let mut chain = Chain::default();
        assert_eq!(judge(&mut chain, &entry_bytes(FLAG_EPOCH, 1, 0, 0)), Meaning::Epoch(Position(1)));
        let hash = chain.hash.0;
        let cases = [
            ("an older epoch", entry_bytes(0, 0, 2, hash)),
            ("a later epoch without its opening", entry_bytes(0, 2, 2, hash)),
            ("another number", entry_bytes(0, 1, 3, hash)),
            ("another predecessor", entry_bytes(0, 1, 2, hash ^ 1)),
            ("the same epoch opened again", entry_bytes(FLAG_EPOCH, 1, 2, hash)),
        ];
        for (case, bytes) in cases {
            assert_eq!(judge(&mut chain, &bytes), Meaning::Void, "{case}");
        }
        assert_eq!(judge(&mut chain, &entry_bytes(0, 1, 2, hash)), Meaning::Batch(Position(2)));
    }

    #[test]
    fn a_barrier_counts_once_and_voids_what_was_sent_before_it() {
        let mut chain = Chain::default();
        judge(&mut chain, &entry_bytes(FLAG_EPOCH, 1, 0, 0));
        let sent_before = entry_bytes(0, 1, 2, chain.hash.0);
        let barrier = entry_bytes(FLAG_BARRIER, 1, 0, 5);
        assert_eq!(judge(&mut chain, &barrier), Meaning::Barrier(Position(2)));
        assert_eq!(judge(&mut chain, &sent_before), Meaning::Void);
        assert_eq!(judge(&mut chain, &barrier), Meaning::Void);
        assert_eq!(judge(&mut chain, &entry_bytes(FLAG_BARRIER, 1, 0, 4)), Meaning::Void);
    }
}
