//! What a handler says about its message.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

/// How far a task came, to go on from there in a later delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoint(pub Bytes);

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done: it is removed.
    Complete,
    /// The handler failed; the message is tried again after a back-off, and dead-lettered with this text as its
    /// reason when it has failed often enough.
    Failed(String),
    /// Try again after this time, or after the back-off; counts a delivery.
    Retry(Option<Duration>),
    /// Set it aside on the broker; it is received by its sequence number.
    Defer,
    /// Nobody will ever be able to handle it.
    DeadLetter {
        /// Why, in a word or two.
        reason: String,
        /// Why, for a person.
        description: String,
    },
    /// Give the message back to its place without counting a delivery; the next delivery gets the checkpoint.
    Suspend(Checkpoint),
    /// Nothing is wrong with the message: something the handler needs is down. The message goes back without
    /// counting a delivery, and the circuit breaker hears of it.
    Unavailable(String),
    /// The handler has settled the message itself, through its context.
    Settled,
}

impl Outcome {
    /// Dead-letters with a reason and a description.
    pub fn dead_letter(reason: impl Into<String>, description: impl Into<String>) -> Outcome {
        Outcome::DeadLetter { reason: reason.into(), description: description.into() }
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Outcome {
        Outcome::Complete
    }
}

/// Success completes, an error fails with its text.
impl<T: Into<Outcome>, E: fmt::Display> From<Result<T, E>> for Outcome {
    fn from(result: Result<T, E>) -> Outcome {
        match result {
            Ok(outcome) => outcome.into(),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }
}
