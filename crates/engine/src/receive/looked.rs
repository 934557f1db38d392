//! How far a receiver with a selector has looked.
//!
//! Looking into a message costs a read of its payload, so each is looked at once: what fits is remembered
//! in the order of delivery, what does not is passed over for good. Messages that arrive later have greater
//! numbers and are looked at then; one that comes back is looked at again, because it may have changed.

use std::collections::BTreeSet;

use crate::id::Sequence;
use crate::order::Rank;

/// Messages that fit which a receiver remembers; beyond it the last in order are forgotten, and searched for
/// again when those before them are gone.
const FOUND_MAX: usize = 256;
/// Messages that came back and wait to be looked at again; beyond it everything is.
const AGAIN_MAX: usize = 1_024;

/// What a receiver with a selector knows of a mailbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct Looked {
    /// Every message up to this number was looked at.
    upto: Sequence,
    /// Those of them that became ready since.
    again: BTreeSet<Sequence>,
    /// Those that fit, best first.
    found: BTreeSet<(Rank, Sequence)>,
    /// Whether something that fits was forgotten.
    overflowed: bool,
}

impl Looked {
    pub(crate) fn upto(&self) -> Sequence {
        self.upto
    }

    pub(crate) fn again(&self) -> impl Iterator<Item = Sequence> {
        self.again.iter().copied()
    }

    /// What fits, best first.
    pub(crate) fn found(&self) -> impl Iterator<Item = Sequence> {
        self.found.iter().map(|(_, sequence)| *sequence)
    }

    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Notes that it has looked up to a number, and at some that came back.
    pub(crate) fn look(
        &mut self,
        upto: Sequence,
        again: &[Sequence],
        found: impl IntoIterator<Item = (Rank, Sequence)>,
    ) {
        self.upto = self.upto.max(upto);
        for sequence in again {
            self.again.remove(sequence);
        }
        self.found.extend(found);
        while self.found.len() > FOUND_MAX {
            self.found.pop_last();
            self.overflowed = true;
        }
    }

    /// A message became ready.
    pub(crate) fn arrived(&mut self, sequence: Sequence) {
        if sequence <= self.upto {
            self.again.insert(sequence);
            if self.again.len() > AGAIN_MAX {
                *self = Looked::default();
            }
        }
    }

    /// A message is no longer ready.
    pub(crate) fn left(&mut self, standing: (Rank, Sequence)) {
        self.found.remove(&standing);
        self.again.remove(&standing.1);
    }
}
