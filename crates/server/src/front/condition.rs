//! The one place where a refusal becomes words on the wire: a condition, a text, a status.
//!
//! Clients decide by the condition whether to try again, and some by the text: a missing entity must
//! be told in exactly these words, or they take it for a communication problem and retry.

use vorrang_amqp::performative::Error;
use vorrang_broker::access::Denied;
use vorrang_broker::api::Refused;
use vorrang_engine::Refusal;
use vorrang_engine::entity;
use vorrang_engine::refusal::Countable;
use vorrang_log::NoRoom;

/// Conditions of AMQP and of Service Bus.
pub(crate) mod name {
    pub(crate) const ARGUMENT_ERROR: &str = "com.microsoft:argument-error";
    pub(crate) const ARGUMENT_OUT_OF_RANGE: &str = "com.microsoft:argument-out-of-range";
    pub(crate) const DECODE_ERROR: &str = "amqp:decode-error";
    pub(crate) const DETACH_FORCED: &str = "amqp:link:detach-forced";
    pub(crate) const ENTITY_ALREADY_EXISTS: &str = "com.microsoft:entity-already-exists";
    pub(crate) const ENTITY_DISABLED: &str = "com.microsoft:entity-disabled";
    pub(crate) const INTERNAL_ERROR: &str = "amqp:internal-error";
    pub(crate) const MESSAGE_LOCK_LOST: &str = "com.microsoft:message-lock-lost";
    pub(crate) const MESSAGE_NOT_FOUND: &str = "com.microsoft:message-not-found";
    pub(crate) const MESSAGE_SIZE_EXCEEDED: &str = "amqp:link:message-size-exceeded";
    pub(crate) const NO_MATCHING_SUBSCRIPTION: &str = "com.microsoft:no-matching-subscription";
    pub(crate) const NOT_ALLOWED: &str = "amqp:not-allowed";
    pub(crate) const NOT_FOUND: &str = "amqp:not-found";
    pub(crate) const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
    pub(crate) const RESOURCE_LIMIT_EXCEEDED: &str = "amqp:resource-limit-exceeded";
    pub(crate) const SERVER_BUSY: &str = "com.microsoft:server-busy";
    pub(crate) const SESSION_CANNOT_BE_LOCKED: &str = "com.microsoft:session-cannot-be-locked";
    pub(crate) const SESSION_LOCK_LOST: &str = "com.microsoft:session-lock-lost";
    pub(crate) const TIMEOUT: &str = "com.microsoft:timeout";
    pub(crate) const TRANSACTION_ROLLBACK: &str = "amqp:transaction:rollback";
    pub(crate) const UNAUTHORIZED: &str = "amqp:unauthorized-access";
    pub(crate) const UNKNOWN_TRANSACTION: &str = "amqp:transaction:unknown-id";
}

/// A refusal in the words of the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// What programs act on.
    pub(crate) condition: &'static str,
    /// The same for `$management`, as an HTTP-like status.
    pub(crate) status: i32,
    /// What people read.
    pub(crate) text: String,
}

impl Told {
    pub(super) fn new(condition: &'static str, status: i32, text: impl Into<String>) -> Told {
        Told { condition, status, text: text.into() }
    }

    /// As an AMQP error.
    pub(super) fn error(self) -> Error {
        Error::new(self.condition, self.text)
    }
}

/// Says why something was refused; `path` is the entity as the client knows it.
pub(crate) fn told(refused: &Refused, path: &str) -> Told {
    match refused {
        Refused::Denied(denied) => unauthorized(denied),
        Refused::Impossible(refusal) => impossible(refusal, path),
        Refused::NotFound { path } => not_found(path),
        Refused::Busy { why } => busy(why),
        Refused::Ended { why } => Told::new(name::DETACH_FORCED, 410, sentence(why)),
        Refused::Unusable { why } => Told::new(name::ARGUMENT_ERROR, 400, sentence(why)),
        // A disk that is full stays so until somebody acts; a ring that is full is emptied all the time.
        Refused::NoRoom(no_room @ NoRoom::Disk { .. }) => {
            Told::new(name::RESOURCE_LIMIT_EXCEEDED, 403, sentence(&no_room.to_string()))
        }
        Refused::NoRoom(no_room @ NoRoom::Ring { .. }) => busy(&no_room.to_string()),
    }
}

/// The words by which SDKs know that trying again is useless.
pub(super) fn not_found(path: &str) -> Told {
    Told::new(name::NOT_FOUND, 404, format!("The messaging entity '{path}' could not be found."))
}

/// Too much at once: clients wait a few seconds and try again by themselves.
pub(crate) fn busy(why: &str) -> Told {
    let text = format!(
        "The server was unable to process the request; please retry the operation. {}",
        sentence(why)
    );
    Told::new(name::SERVER_BUSY, 503, text)
}

fn unauthorized(denied: &Denied) -> Told {
    let (need, place) = (denied.need.as_str(), &denied.place);
    let text = match denied.ended {
        Some(at) => format!("ExpiredToken: The token for '{place}' expired at {at} since 1970."),
        None => format!(
            "Unauthorized access. '{need}' claim(s) are required to perform this operation. Resource: '{place}'."
        ),
    };
    Told::new(name::UNAUTHORIZED, 401, text)
}

fn impossible(refusal: &Refusal, path: &str) -> Told {
    let plain = |condition, status| Told::new(condition, status, sentence(&refusal.to_string()));
    match refusal {
        Refusal::EntityNotFound { .. } | Refusal::MailboxNotFound { .. } => not_found(path),
        Refusal::WrongKind { .. }
        | Refusal::NamespaceState
        | Refusal::PartitionKeyDiffers
        | Refusal::KeyTooLong { .. }
        | Refusal::RenewInSession
        | Refusal::LockEnlisted { .. }
        | Refusal::ReceiverExists { .. }
        | Refusal::ReceiverNotFound { .. } => plain(name::NOT_ALLOWED, 400),
        Refusal::Entity(refusal) => entity(refusal, path),
        // What others hold now and give back soon.
        Refusal::TooMany {
            what: Countable::WaitingAccepts | Countable::Transactions | Countable::DuplicateIds,
            ..
        } => busy(&refusal.to_string()),
        Refusal::TooMany { .. } | Refusal::SessionStateTooLarge { .. } => {
            plain(name::RESOURCE_LIMIT_EXCEEDED, 403)
        }
        Refusal::SendDisabled { .. } | Refusal::ReceiveDisabled { .. } => {
            let text = format!("Messaging entity '{path}' is currently disabled.");
            Told::new(name::ENTITY_DISABLED, 400, text)
        }
        Refusal::Forwards { .. } => {
            let text = "Cannot create a message receiver on an entity with auto-forwarding enabled.";
            Told::new(name::NOT_ALLOWED, 400, text)
        }
        Refusal::MessageTooLarge { .. } => plain(name::MESSAGE_SIZE_EXCEEDED, 403),
        Refusal::QuotaExceeded { size, limit, .. } => {
            let text = format!(
                "The maximum entity size has been reached or exceeded for Queue: '{path}'. \
                 Size of entity in bytes:{size}, Max entity size in bytes:{limit}."
            );
            Told::new(name::RESOURCE_LIMIT_EXCEEDED, 403, text)
        }
        Refusal::SessionIdMissing { .. } => {
            let text = "The SessionId was not set on a message, and it cannot be sent to the entity. Entities that \
                        have session support enabled can only receive messages that have the SessionId set to a \
                        valid value.";
            Told::new(name::NOT_ALLOWED, 400, text)
        }
        Refusal::RequestSize { .. } => plain(name::ARGUMENT_OUT_OF_RANGE, 400),
        Refusal::NamedTwice { .. }
        | Refusal::ChangesTooLarge { .. }
        | Refusal::ClockTooFar { .. }
        | Refusal::PartsDoNotFit { .. }
        | Refusal::RecordsDoNotFit => plain(name::ARGUMENT_ERROR, 400),
        Refusal::NoMatchingSubscription { .. } => plain(name::NO_MATCHING_SUBSCRIPTION, 400),
        Refusal::MessageNotFound { .. } => plain(name::MESSAGE_NOT_FOUND, 404),
        Refusal::LockLost { .. } => {
            let text = "The lock supplied is invalid. Either the lock expired, or the message has already been \
                        removed from the queue.";
            Told::new(name::MESSAGE_LOCK_LOST, 410, text)
        }
        Refusal::SessionRequired { .. } => {
            let text = "It is not possible for an entity that requires sessions to create a non-sessionful message \
                        receiver.";
            Told::new(name::NOT_ALLOWED, 400, text)
        }
        Refusal::NoSessions { .. } => {
            let text = "A sessionful message receiver cannot be created on an entity that does not require sessions. \
                        Ensure RequiresSession is set to true when creating a Queue or Subscription to enable \
                        sessionful behavior.";
            Told::new(name::NOT_ALLOWED, 400, text)
        }
        Refusal::SessionLocked { session } => {
            let text = format!(
                "The requested session '{session}' cannot be accepted. It may be locked by another receiver."
            );
            Told::new(name::SESSION_CANNOT_BE_LOCKED, 410, text)
        }
        Refusal::NoSessionInTime { waited } => {
            let text = format!("The operation did not complete within the allotted timeout of {waited}.");
            Told::new(name::TIMEOUT, 408, text)
        }
        Refusal::SessionLockLost { .. } => plain(name::SESSION_LOCK_LOST, 410),
        Refusal::TransactionUnknown { .. } => plain(name::UNKNOWN_TRANSACTION, 404),
        Refusal::TransactionRolledBack { .. } => plain(name::TRANSACTION_ROLLBACK, 400),
        Refusal::PayloadUnavailable { .. } => plain(name::INTERNAL_ERROR, 500),
    }
}

fn entity(refusal: &entity::Refusal, path: &str) -> Told {
    let text = sentence(&refusal.to_string());
    match refusal {
        entity::Refusal::AlreadyExists { .. } | entity::Refusal::RuleAlreadyExists { .. } => {
            Told::new(name::ENTITY_ALREADY_EXISTS, 409, text)
        }
        entity::Refusal::NotFound { .. } => not_found(path),
        entity::Refusal::RuleNotFound { rule, path } => not_found(&format!("{path}/Rules/{rule}")),
        entity::Refusal::TooManyEntities { .. }
        | entity::Refusal::TooManySubscriptions { .. }
        | entity::Refusal::TooManyFilters { .. }
        | entity::Refusal::NumbersExhausted { .. } => Told::new(name::RESOURCE_LIMIT_EXCEEDED, 403, text),
        entity::Refusal::NotATopic { .. }
        | entity::Refusal::Invalid { .. }
        | entity::Refusal::TargetMissing { .. }
        | entity::Refusal::TargetIsSource { .. }
        | entity::Refusal::ForwardLoop { .. } => Told::new(name::ARGUMENT_ERROR, 400, text),
    }
}

/// Our errors are fragments; people of this protocol expect sentences.
fn sentence(fragment: &str) -> String {
    let mut letters = fragment.chars();
    let first = letters.next().map(char::to_uppercase);
    let mut text: String = first.into_iter().flatten().chain(letters).collect();
    if !text.ends_with('.') {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_busy_and_what_does_not_is_a_quota() {
        let too_many = |what| Refused::Impossible(Refusal::TooMany { what, limit: 1 });
        let cases = [
            (Refused::NoRoom(NoRoom::Ring { used: 2, limit: 1 }), name::SERVER_BUSY, 503),
            (Refused::NoRoom(NoRoom::Disk { room: 1, needed: 2 }), name::RESOURCE_LIMIT_EXCEEDED, 403),
            (too_many(Countable::WaitingAccepts), name::SERVER_BUSY, 503),
            (too_many(Countable::Transactions), name::SERVER_BUSY, 503),
            (too_many(Countable::DuplicateIds), name::SERVER_BUSY, 503),
            (too_many(Countable::Operations), name::RESOURCE_LIMIT_EXCEEDED, 403),
            (too_many(Countable::Receivers), name::RESOURCE_LIMIT_EXCEEDED, 403),
        ];
        for (refused, condition, status) in cases {
            let told = told(&refused, "q");
            assert_eq!((told.condition, told.status), (condition, status), "{refused:?}");
        }
    }
}
