//! Everything that can go wrong, in the words a caller decides by.
//!
//! The broker's conditions become variants in one place, [`Error::from_condition`]; what has no variant of its own
//! arrives as [`Error::Refused`] with its condition.

use std::time::Duration;

use vorrang_amqp::performative;

use crate::connection_string::ConnectionStringError;

/// Why an operation did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The connection string cannot be used.
    #[error(transparent)]
    ConnectionString(#[from] ConnectionStringError),
    /// The broker cannot be reached, or the connection broke and could not be made again in time.
    #[error("no connection to {endpoint}: {reason}")]
    Disconnected {
        /// Where to.
        endpoint: Box<str>,
        /// What happened.
        reason: Box<str>,
    },
    /// The connection broke after a message was sent and before its outcome was known: the broker may or may not
    /// have it. Sending again is safe with a message id on an entity that detects duplicates; see
    /// [`SenderOptions::resend`](crate::SenderOptions::resend).
    #[error("the connection broke before the outcome was known; it may or may not have happened")]
    Ambiguous,
    /// The client or the handle was closed.
    #[error("the client is closed")]
    Closed,
    /// Nothing came in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The entity does not exist.
    #[error("not found: {0}")]
    NotFound(Box<str>),
    /// The entity or rule exists already.
    #[error("already exists: {0}")]
    AlreadyExists(Box<str>),
    /// The credentials are wrong, have expired, or give too few rights.
    #[error("unauthorized: {0}")]
    Unauthorized(Box<str>),
    /// The entity is disabled for this.
    #[error("disabled: {0}")]
    Disabled(Box<str>),
    /// The entity or the namespace is full.
    #[error("quota exceeded: {0}")]
    QuotaExceeded(Box<str>),
    /// The broker asks for a pause.
    #[error("server busy: {0}")]
    ServerBusy(Box<str>),
    /// The message is larger than the entity takes.
    #[error("message of {size} bytes exceeds the limit of {limit}; send less, or store the body elsewhere")]
    TooLarge {
        /// Its encoded size.
        size: u64,
        /// The link's limit.
        limit: u64,
    },
    /// The broker found the message too large.
    #[error("message too large: {0}")]
    MessageSizeExceeded(Box<str>),
    /// The message is no longer locked by this receiver.
    #[error("message lock lost: {0}")]
    LockLost(Box<str>),
    /// The session is no longer locked by this receiver.
    #[error("session lock lost: {0}")]
    SessionLockLost(Box<str>),
    /// Somebody else holds the session.
    #[error("session cannot be locked: {0}")]
    SessionCannotBeLocked(Box<str>),
    /// No such message: not deferred, not scheduled, or gone.
    #[error("message not found: {0}")]
    MessageNotFound(Box<str>),
    /// The broker does not allow this on this entity.
    #[error("not allowed: {0}")]
    NotAllowed(Box<str>),
    /// An argument is out of its bounds.
    #[error("invalid argument: {0}")]
    InvalidArgument(Box<str>),
    /// The transaction was rolled back or is unknown; nothing in it happened.
    #[error("transaction ended: {0}")]
    TransactionEnded(Box<str>),
    /// Refused for a reason without a variant of its own.
    #[error("refused with {condition}: {text}")]
    Refused {
        /// The broker's condition.
        condition: Box<str>,
        /// The broker's words.
        text: Box<str>,
    },
    /// The peer's answer makes no sense.
    #[error("unexpected answer: {0}")]
    Protocol(Box<str>),
    /// A body is not what it was asked to be read as, or cannot be written.
    #[error("body: {0}")]
    Body(Box<str>),
    /// TLS cannot be set up as asked for.
    #[error("TLS: {0}")]
    Tls(Box<str>),
    /// A bound of this client was reached.
    #[error("{what} at the limit of {limit}; wait for some to finish")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: usize,
    },
}

/// What is told apart by how a link is to go on after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gravity {
    /// Trying again may help.
    Passing,
    /// Trying again is useless until somebody changes something.
    Final,
}

impl Error {
    /// Whether the same operation may succeed a little later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Disconnected { .. } | Error::Ambiguous | Error::Timeout(_) | Error::ServerBusy(_) => true,
            Error::Refused { condition, .. } => gravity(condition) == Gravity::Passing,
            _ => false,
        }
    }

    /// The variant for a condition of AMQP or of Service Bus.
    pub(crate) fn from_condition(condition: &str, text: &str) -> Error {
        let said: Box<str> = text.into();
        match condition {
            "amqp:not-found" | "amqp:resource-deleted" => Error::NotFound(said),
            "com.microsoft:entity-already-exists" => Error::AlreadyExists(said),
            "amqp:unauthorized-access" | "com.microsoft:auth-failed" => Error::Unauthorized(said),
            "com.microsoft:entity-disabled" => Error::Disabled(said),
            "amqp:resource-limit-exceeded" => Error::QuotaExceeded(said),
            "com.microsoft:server-busy" => Error::ServerBusy(said),
            "amqp:link:message-size-exceeded" => Error::MessageSizeExceeded(said),
            "com.microsoft:message-lock-lost" => Error::LockLost(said),
            "com.microsoft:session-lock-lost" => Error::SessionLockLost(said),
            "com.microsoft:session-cannot-be-locked" => Error::SessionCannotBeLocked(said),
            "com.microsoft:message-not-found" | "com.microsoft:session-not-found" => {
                Error::MessageNotFound(said)
            }
            "amqp:not-allowed" => Error::NotAllowed(said),
            "com.microsoft:argument-error"
            | "com.microsoft:argument-out-of-range"
            | "amqp:invalid-field"
            | "amqp:decode-error" => Error::InvalidArgument(said),
            "amqp:transaction:rollback" | "amqp:transaction:unknown-id" | "amqp:transaction:timeout" => {
                Error::TransactionEnded(said)
            }
            _ => Error::Refused { condition: condition.into(), text: said },
        }
    }

    /// The variant for an AMQP error; none is a refusal without a word.
    pub(crate) fn from_amqp(error: Option<&performative::Error>) -> Error {
        match error {
            Some(error) => {
                let text = error.description.as_ref().map_or("", |text| text.as_str());
                Error::from_condition(error.condition.as_str(), text)
            }
            None => Error::Refused { condition: "none".into(), text: "the peer gave no reason".into() },
        }
    }

    /// Whether a link that ended with this is to be attached again.
    pub(crate) fn gravity(&self) -> Gravity {
        if self.is_transient() { Gravity::Passing } else { Gravity::Final }
    }
}

/// Conditions of temporary trouble; everything unknown is taken for final, so that no caller waits for nothing.
fn gravity(condition: &str) -> Gravity {
    match condition {
        "amqp:link:detach-forced"
        | "amqp:connection:forced"
        | "amqp:internal-error"
        | "amqp:link:transfer-limit-exceeded"
        | "amqp:session:window-violation"
        | "com.microsoft:timeout"
        | "com.microsoft:operation-cancelled"
        | "com.microsoft:container-close"
        | "none" => Gravity::Passing,
        _ => Gravity::Final,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_become_variants_and_say_whether_trying_again_helps() {
        type Case = (&'static str, fn(&Error) -> bool, bool);
        let cases: [Case; 7] = [
            ("amqp:not-found", |error| matches!(error, Error::NotFound(_)), false),
            ("com.microsoft:message-lock-lost", |error| matches!(error, Error::LockLost(_)), false),
            ("com.microsoft:server-busy", |error| matches!(error, Error::ServerBusy(_)), true),
            ("amqp:resource-limit-exceeded", |error| matches!(error, Error::QuotaExceeded(_)), false),
            ("amqp:link:detach-forced", |error| matches!(error, Error::Refused { .. }), true),
            ("amqp:transaction:rollback", |error| matches!(error, Error::TransactionEnded(_)), false),
            ("example:unheard-of", |error| matches!(error, Error::Refused { .. }), false),
        ];
        for (condition, is, transient) in cases {
            let error = Error::from_condition(condition, "why");
            assert!(is(&error), "{condition} became {error:?}");
            assert_eq!(error.is_transient(), transient, "{condition}");
        }
    }

    #[test]
    fn a_refusal_without_a_word_is_still_an_error() {
        assert!(Error::from_amqp(None).to_string().contains("no reason"));
    }
}
