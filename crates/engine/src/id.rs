//! Names for things that are numbered, each its own type so that they cannot be mixed up.

use std::fmt;

/// A message's number within its entity: starts at 1, grows by one, is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(pub u64);

/// Where a message's bytes lie. Opaque to the engine but for the region, which it counts:
/// a region that no message points into can be used again by the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(pub u64);

/// The part of the log (a segment or an extent) that a [`Location`] points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(pub u32);

/// The proof of a peek-lock: new for every delivery, unguessable, valid until settled or expired.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockToken(pub u128);

/// A receiving link, as the shard numbers it. Never used again while the shard lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(pub u64);

/// A transaction, as the shard numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u128);

impl Sequence {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Sequence {
        Sequence(self.0.saturating_add(1))
    }
}

impl Location {
    /// The region this location lies in: its upper half.
    #[must_use]
    pub fn region(self) -> Region {
        Region(u32::try_from(self.0 >> 32).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for LockToken {
    /// The usual hyphenated form, in RFC 4122 order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:032x}", self.0);
        let (a, rest) = text.split_at(8);
        let (b, rest) = rest.split_at(4);
        let (c, rest) = rest.split_at(4);
        let (d, e) = rest.split_at(4);
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockToken({self})")
    }
}
