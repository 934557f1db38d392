//! What went wrong around a pool, for its owner: the error callback.

use std::sync::Arc;

use vorrang_client::Error;

/// Something that went wrong; the pool goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing can be received from an entity for now.
    #[error("cannot receive from {entity}: {error}")]
    Receive {
        /// Which.
        entity: String,
        /// Why.
        error: Error,
    },
    /// The broker did not settle a message; it will come again.
    #[error("cannot settle a message of {entity}: {error}")]
    Settle {
        /// Where it is from.
        entity: String,
        /// Why.
        error: Error,
    },
    /// A lock could not be renewed.
    #[error("cannot renew a lock on {entity}: {error}")]
    Renew {
        /// Where the message is from.
        entity: String,
        /// Why.
        error: Error,
    },
    /// A lock has ended while its message was worked on.
    #[error("a lock on {entity} was lost; the message will be delivered again")]
    LockLost {
        /// Where the message is from.
        entity: String,
    },
    /// The circuit breaker of a pool has opened.
    #[error("pool '{pool}' pauses: what its handlers need is unavailable")]
    BreakerOpened {
        /// Which pool.
        pool: String,
    },
}

/// Called for every problem, from within the pump: it must not block.
pub type OnProblem = Arc<dyn Fn(&Problem) + Send + Sync>;

/// Writes problems to the log.
pub fn log_problems() -> OnProblem {
    Arc::new(|problem| tracing::warn!(%problem, "worker"))
}
