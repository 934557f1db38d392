//! Effects that happen at most once, although messages arrive at least once.
//!
//! Before the effect its key (the message id) is *claimed* on disk; after it, its result is kept. A message that
//! comes again finds the result and needs no second effect. If the process died between the two, nobody can
//! know whether the effect happened: such a key is *in doubt*, and that is said rather than guessed. An effect
//! that reports failure gives its claim back, because it says itself that nothing happened.
//!
//! What must stay true: no effect begins before its claim is durable; a claim is forgotten only when its time
//! is over or its effect said that it did not happen.

mod file;
mod frame;
#[cfg(feature = "postgres")]
mod postgres;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

pub use file::FileStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;

/// The longest key; message ids of Service Bus have 128 characters.
pub const KEY_BYTES_MAX: usize = 1_024;
/// The largest result that is kept with a key.
pub const RESULT_BYTES_MAX: usize = 64 * 1_024;

/// What a store remembers for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// How long a key is remembered: longer than a message can come again.
    pub time_to_live: Duration,
    /// How many keys are remembered. At this limit new ones are refused until old ones expire: forgetting one
    /// early would let its effect happen twice.
    pub keys_max: usize,
}

impl Default for Keeping {
    fn default() -> Self {
        Keeping { time_to_live: Duration::from_hours(7 * 24), keys_max: 1_000_000 }
    }
}

/// Why a store cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk did not do its part.
    #[error("{}: {source}", path.display())]
    Disk {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not one of ours, or damaged before its end.
    #[error("{} is damaged at byte {offset}: {what}; move it away to start with an empty one", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// Another process has it open.
    #[error("{} is in use by another process; give each worker its own", path.display())]
    InUse {
        /// Which file.
        path: PathBuf,
    },
    /// The database did not do its part.
    #[error("the database did not answer as it should: {source}")]
    Database {
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nobody here has claimed the key, or its time was over before the effect ended.
    #[error("the key is not claimed here, or no longer; keep keys longer than an effect takes")]
    NotClaimed,
    /// The key has no text, or too much.
    #[error("a key of {bytes} bytes cannot be remembered: it must have 1 to {KEY_BYTES_MAX}")]
    Key {
        /// How long it is.
        bytes: usize,
    },
    /// The result is too large to keep.
    #[error("a result of {bytes} bytes exceeds the limit of {RESULT_BYTES_MAX}")]
    ResultTooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// No room for another key.
    #[error("{keys} keys are remembered, which is the limit; raise keys_max or shorten time_to_live")]
    Full {
        /// How many there are.
        keys: usize,
    },
    /// An earlier write failed: what is on disk is not known, so nothing more is promised.
    #[error("the store stopped after a failed write; restart to read back what is on disk")]
    Stopped,
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Nobody had it; it is claimed now, durably.
    New,
    /// Its effect happened; this was the result.
    Done(Bytes),
    /// Somebody is at it: in this process, or in another that shares the store.
    Busy,
    /// It was claimed by somebody who never reported: the effect may have happened.
    InDoubt,
}

/// Remembers which effects happened.
pub trait Store: Send + Sync {
    /// Claims a key, if it is free.
    fn claim(&self, key: &str) -> impl Future<Output = Result<Claim, Error>> + Send;
    /// The effect happened: keeps its result.
    fn finish(&self, key: &str, result: Bytes) -> impl Future<Output = Result<(), Error>> + Send;
    /// The effect did not happen: gives the claim back.
    fn release(&self, key: &str) -> impl Future<Output = Result<(), Error>> + Send;
    /// Whoever claimed the key is gone without a word.
    fn doubt(&self, key: &str);
}

/// How an effect went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Once {
    /// It happened now.
    Performed(Bytes),
    /// It had happened before, with this result.
    Already(Bytes),
    /// It is happening elsewhere: try again later.
    Busy,
    /// Nobody knows whether it happened: let a person, or a look at the world, decide.
    InDoubt,
}

/// Why an effect has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Failed<E> {
    /// The store cannot answer; the effect did not begin, or its result could not be kept.
    #[error(transparent)]
    Store(#[from] Error),
    /// The effect says that it did not happen.
    #[error("{0}")]
    Effect(E),
}

/// Runs `effect` unless it has run before under this key.
///
/// If this future is dropped, or `effect` panics, the key is in doubt.
pub async fn once<S, F, E>(store: &S, key: &str, effect: F) -> Result<Once, Failed<E>>
where
    S: Store,
    F: Future<Output = Result<Bytes, E>>,
{
    match store.claim(key).await? {
        Claim::Done(result) => return Ok(Once::Already(result)),
        Claim::Busy => return Ok(Once::Busy),
        Claim::InDoubt => return Ok(Once::InDoubt),
        Claim::New => {}
    }
    let mut pending = Pending { store, key, reported: false };
    let outcome = effect.await;
    let outcome = match outcome {
        Ok(result) => {
            store.finish(key, result.clone()).await?;
            Ok(Once::Performed(result))
        }
        Err(error) => {
            store.release(key).await?;
            Err(Failed::Effect(error))
        }
    };
    pending.reported = true;
    outcome
}

/// A claim whose effect has not been reported yet.
struct Pending<'a, S: Store> {
    store: &'a S,
    key: &'a str,
    reported: bool,
}

impl<S: Store> Drop for Pending<'_, S> {
    fn drop(&mut self) {
        if !self.reported {
            self.store.doubt(self.key);
        }
    }
}
