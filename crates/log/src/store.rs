//! The shape every log has, whatever keeps it: the local ring now, a database or a stream later.
//!
//! What an implementation must hold to, and [`conformance`](crate::conformance) checks:
//!
//! 1. **Prefix.** `durable` covers a batch only when every batch before it is durable too.
//! 2. **Epoch.** Whoever takes over writes a greater epoch into the log; every entry carries its
//!    owner's, and readers ignore entries of a lower one from there on.
//! 3. **No guessing.** After an append of unknown outcome nothing more becomes durable until
//!    [`LogStore::resync`] has written a barrier, read back, and seen what landed.
//! 4. **Deposed means silent.** An owner that has been replaced reports nothing durable any more,
//!    however many appends it had on the way.

use crate::batch::Batch;
use crate::entry::Entry;
use crate::location::{Epoch, Location, Position};
use crate::log::Log;
use crate::pace::Pace;
use crate::reader::ReadError;
use crate::record::Record;
use crate::recovery::OpenError;
use crate::ring::Failure;
use crate::snapshot;
use std::fmt;

/// Why a log did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another owner has taken over; this one must drop its state and stop.
    #[error("the log is owned by {by} now")]
    Fenced {
        /// The epoch that took over.
        by: Epoch,
    },
    /// It is not known whether batches after `after` landed; call [`LogStore::resync`].
    #[error("the outcome of what was submitted after {after} is unknown")]
    Unknown {
        /// The last batch known durable.
        after: Position,
    },
    /// The log has stopped for good.
    #[error("the log has stopped: {0}")]
    Stopped(String),
    /// The position asked for was trimmed.
    #[error("the log no longer holds what follows {after}")]
    Trimmed {
        /// The position asked for.
        after: Position,
    },
    /// Someone else holds the log and cannot be replaced.
    #[error("the log is in use")]
    InUse,
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        Self::Stopped(failure.to_string())
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Disk(error) if error.trouble == crate::disk::Trouble::Locked => Self::InUse,
            other => Self::Stopped(other.to_string()),
        }
    }
}

impl From<snapshot::Error> for StoreError {
    fn from(error: snapshot::Error) -> Self {
        Self::Stopped(error.to_string())
    }
}

/// What is called with each entry read back.
pub type Visit<'v> = &'v mut dyn FnMut(&Entry<'_>) -> Result<(), String>;

/// A shard's log as its owner sees it.
pub trait LogStore: fmt::Debug {
    /// The epoch this owner writes under.
    fn epoch(&self) -> Epoch;
    /// The batch to encode into; `None` while too much is on the way.
    fn batch(&mut self) -> Option<Batch>;
    /// Hands a batch over; it is not durable yet.
    fn submit(&mut self, batch: Batch, now_ms: u64) -> Result<Position, StoreError>;
    /// The end of the contiguous durable prefix. Only grows.
    fn durable(&self) -> Position;
    /// Waits until the fate of everything submitted is known.
    fn flush(&mut self) -> Result<Position, StoreError>;
    /// After [`StoreError::Unknown`]: appends a barrier, reads back, and returns the last
    /// submitted batch that landed. Batches after it never will; the owner's state must be
    /// rebuilt without them.
    fn resync(&mut self) -> Result<Position, StoreError>;
    /// Reads a record.
    fn read(&self, location: Location, payload_bytes: usize) -> Result<Record, ReadError>;
    /// Passes every durable entry after `after` to `visit`, in order. Readable from the newest
    /// snapshot's position on.
    fn replay(&mut self, after: Position, visit: Visit<'_>) -> Result<(), StoreError>;
    /// Says that entries up to `through` are not needed any more.
    fn trim(&mut self, through: Position) -> Result<(), StoreError>;
    /// Stores the owner's state as of everything durable; two are kept.
    fn put_snapshot(&mut self, content: &[u8]) -> Result<Position, StoreError>;
    /// The newest snapshot and its position.
    fn newest_snapshot(&mut self) -> Result<Option<(Position, Vec<u8>)>, StoreError>;
}

/// Where a log is kept, so that owners can come and go.
pub trait Medium {
    /// The log of one owner.
    type Store: LogStore;
    /// Takes ownership under a new epoch.
    fn take_over(&self) -> Result<Self::Store, StoreError>;
    /// Whether a second owner can depose the first; otherwise it is refused while the first lives.
    fn is_shared(&self) -> bool;
    /// Makes the next append go wrong in this way. `false` if the medium cannot be told to.
    fn inject(&self, fault: AppendFault) -> bool;
}

/// Ways an append to a remote log goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendFault {
    /// It lands, but the answer is lost.
    LostAnswer,
    /// It never lands, and there is no answer.
    Lost,
    /// There is no answer, and it lands after the next append.
    Late,
    /// The answer takes its time.
    Slow,
    /// It is refused, and so is everything after it.
    Refused,
}

impl LogStore for Log {
    fn epoch(&self) -> Epoch {
        Self::epoch(self)
    }

    fn batch(&mut self) -> Option<Batch> {
        Self::batch(self)
    }

    fn submit(&mut self, batch: Batch, now_ms: u64) -> Result<Position, StoreError> {
        Ok(Self::submit(self, batch, now_ms)?)
    }

    fn durable(&self) -> Position {
        Self::durable(self)
    }

    fn flush(&mut self) -> Result<Position, StoreError> {
        Ok(Self::flush(self)?)
    }

    /// A local append is never of unknown outcome: it is durable, or the log has stopped.
    fn resync(&mut self) -> Result<Position, StoreError> {
        Ok(Self::flush(self)?)
    }

    fn read(&self, location: Location, payload_bytes: usize) -> Result<Record, ReadError> {
        self.reader().read(location, payload_bytes)
    }

    fn replay(&mut self, after: Position, visit: Visit<'_>) -> Result<(), StoreError> {
        let durable = self.durable();
        self.reopened(|mut opening| {
            if opening.snapshot().is_some_and(|snapshot| snapshot.about().position > after) {
                return Err(StoreError::Trimmed { after });
            }
            let wanted = |position: Position| position > after && position <= durable;
            opening.replay(|entry| if wanted(entry.position()) { visit(entry) } else { Ok(()) })?;
            Ok(())
        })
    }

    fn trim(&mut self, through: Position) -> Result<(), StoreError> {
        self.release_through(through);
        Ok(())
    }

    fn put_snapshot(&mut self, content: &[u8]) -> Result<Position, StoreError> {
        let mut snapshot = self.snapshot(Pace::UNLIMITED)?;
        snapshot.write(content)?;
        Self::flush(self)?;
        Ok(snapshot.finish()?.position)
    }

    fn newest_snapshot(&mut self) -> Result<Option<(Position, Vec<u8>)>, StoreError> {
        self.reopened(|mut opening| {
            let Some(snapshot) = opening.snapshot() else { return Ok(None) };
            let mut content = Vec::new();
            while let Some(block) = snapshot.next_block()? {
                content.extend_from_slice(&block);
            }
            Ok(Some((snapshot.about().position, content)))
        })
    }
}
