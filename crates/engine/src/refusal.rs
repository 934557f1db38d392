//! Why a request is not possible. The link it came on lives on.
//!
//! One variant for each reason, with what was tried and the bound. The words and codes of a protocol
//! are made from these at the edge.

use crate::entity;
use crate::id::{EntityId, LockToken, MailboxId, ReceiverId, Sequence, SessionId, TransactionId};
use crate::time::Span;

/// A request that is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The namespace has not begun, or has begun already.
    #[error("the namespace is not in the state for this")]
    NamespaceState,

    /// No such entity; it may have been deleted since it was looked up.
    #[error("entity {} does not exist", .entity.0)]
    EntityNotFound {
        /// The entity.
        entity: EntityId,
    },
    /// The entity exists, but not with a mailbox to receive from: it is a topic.
    #[error("mailbox {} does not exist", .mailbox.0)]
    MailboxNotFound {
        /// The mailbox.
        mailbox: MailboxId,
    },
    /// The entity is not of a kind that can do this: sending to a subscription, rules on a queue.
    #[error("entity {} is of another kind", .entity.0)]
    WrongKind {
        /// The entity.
        entity: EntityId,
    },
    /// An entity or rule cannot be created, changed or deleted as asked.
    #[error(transparent)]
    Entity(#[from] entity::Refusal),
    /// There are as many as there may be.
    #[error("{what}: no more than {limit} are allowed")]
    TooMany {
        /// Of what.
        what: Countable,
        /// The bound.
        limit: u64,
    },
    /// The entity does not take messages now.
    #[error("entity {} is disabled for sending", .entity.0)]
    SendDisabled {
        /// The entity.
        entity: EntityId,
    },
    /// The entity does not give messages out now.
    #[error("entity {} is disabled for receiving", .entity.0)]
    ReceiveDisabled {
        /// The entity.
        entity: EntityId,
    },
    /// The entity forwards its messages, so that none can be received here.
    #[error("entity {} forwards its messages", .entity.0)]
    Forwards {
        /// The entity.
        entity: EntityId,
    },
    /// A message larger than the entity takes.
    #[error("message of {size} bytes exceeds the limit of {limit}")]
    MessageTooLarge {
        /// Its size.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// The entity is full.
    #[error("entity {} holds {size} of at most {limit} bytes", .entity.0)]
    QuotaExceeded {
        /// The entity.
        entity: EntityId,
        /// How much it holds.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// The entity needs a session id, and the message has none.
    #[error("entity {} requires a session id", .entity.0)]
    SessionIdMissing {
        /// The entity.
        entity: EntityId,
    },
    /// A message id, session id or partition key that is too long.
    #[error("{what} is longer than {limit} characters")]
    KeyTooLong {
        /// Which.
        what: KeyKind,
        /// The bound.
        limit: usize,
    },
    /// A partition key that is not the session id.
    #[error("the partition key differs from the session id")]
    PartitionKeyDiffers,
    /// More messages, numbers or tokens in a request than allowed, or none where one is needed.
    #[error("{count} {what} in one request: allowed are 1 to {limit}")]
    RequestSize {
        /// Of what.
        what: Countable,
        /// How many.
        count: u64,
        /// The bound.
        limit: u64,
    },
    /// No subscription wants the message, and the topic is told to refuse it then.
    #[error("no subscription of topic {} matches", .topic.0)]
    NoMatchingSubscription {
        /// The topic.
        topic: EntityId,
    },
    /// Numbers or tokens that a request names twice.
    #[error("the request names {0} twice", .sequence)]
    NamedTwice {
        /// The number.
        sequence: Sequence,
    },

    /// No message of that number is in the state the operation needs.
    #[error("message {sequence} was not found")]
    MessageNotFound {
        /// The number.
        sequence: Sequence,
    },
    /// The lock has expired, was settled, or was never held in this mailbox.
    #[error("lock {token} has expired or was never held")]
    LockLost {
        /// The lock.
        token: LockToken,
    },
    /// The lock is part of an open transaction and cannot be settled again.
    #[error("lock {token} is already part of transaction {transaction:x}", transaction = .transaction.0)]
    LockEnlisted {
        /// The lock.
        token: LockToken,
        /// The transaction.
        transaction: TransactionId,
    },
    /// Message locks of an entity with sessions live as long as their session's.
    #[error("messages of a session cannot be renewed one by one")]
    RenewInSession,
    /// Changes to a message's properties that are too large.
    #[error("property changes of {size} bytes exceed the limit of {limit}")]
    ChangesTooLarge {
        /// Their size.
        size: usize,
        /// The bound.
        limit: usize,
    },

    /// A receiver of that number exists.
    #[error("receiver {} exists", .receiver.0)]
    ReceiverExists {
        /// The receiver.
        receiver: ReceiverId,
    },
    /// No such receiver.
    #[error("receiver {} does not exist", .receiver.0)]
    ReceiverNotFound {
        /// The receiver.
        receiver: ReceiverId,
    },
    /// The entity has sessions: receivers must accept one.
    #[error("entity {} requires sessions: accept one to receive", .entity.0)]
    SessionRequired {
        /// The entity.
        entity: EntityId,
    },
    /// The entity has no sessions.
    #[error("entity {} has no sessions", .entity.0)]
    NoSessions {
        /// The entity.
        entity: EntityId,
    },
    /// Another receiver holds the session.
    #[error("session {session} is locked by another receiver")]
    SessionLocked {
        /// The session.
        session: SessionId,
    },
    /// No session became free in time.
    #[error("no session became available within {waited}")]
    NoSessionInTime {
        /// How long that was.
        waited: Span,
    },
    /// The session lock has ended or is somebody else's.
    #[error("the lock of session {session} has expired or is not held by this receiver")]
    SessionLockLost {
        /// The session.
        session: SessionId,
    },
    /// A session state that is too large.
    #[error("session state of {size} bytes exceeds the limit of {limit}")]
    SessionStateTooLarge {
        /// Its size.
        size: usize,
        /// The bound.
        limit: usize,
    },

    /// No such transaction: never begun, ended, or rolled back for its age.
    #[error("transaction {:x} is unknown", .transaction.0)]
    TransactionUnknown {
        /// The transaction.
        transaction: TransactionId,
    },
    /// The transaction cannot commit, and was rolled back: something it did is no longer possible.
    #[error("transaction {:x} was rolled back: {cause}", .transaction.0)]
    TransactionRolledBack {
        /// The transaction.
        transaction: TransactionId,
        /// What is no longer possible.
        cause: Box<Refusal>,
    },

    /// The payload of a stored message cannot be read now.
    #[error("the payload of message {sequence} cannot be read")]
    PayloadUnavailable {
        /// The message.
        sequence: Sequence,
    },
    /// The clock would run further ahead than it may.
    #[error("the clock would run {} days ahead, and at most {} are allowed", .ahead.0 / 86_400_000, .limit.0 / 86_400_000)]
    ClockTooFar {
        /// How far.
        ahead: Span,
        /// The bound.
        limit: Span,
    },
    /// The parts of a state that was kept do not make one.
    #[error(
        "{count} parts of the state that was kept do not fit together; it is damaged or from another version"
    )]
    PartsDoNotFit {
        /// How many.
        count: u64,
    },
    /// Records that do not match the lane or run they claim to be of.
    #[error("the records do not fit the run")]
    RecordsDoNotFit,
}

/// What can be too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is its own word")]
pub enum Countable {
    Messages,
    Sequences,
    Tokens,
    Receivers,
    Mailboxes,
    Sessions,
    WaitingAccepts,
    DuplicateIds,
    Transactions,
    Operations,
    TransactionBytes,
    Records,
}

/// What identifies a message among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is its own word")]
pub enum KeyKind {
    MessageId,
    SessionId,
    PartitionKey,
}

impl std::fmt::Display for Countable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Countable::Messages => "messages",
            Countable::Sequences => "sequence numbers",
            Countable::Tokens => "lock tokens",
            Countable::Receivers => "receivers of the mailbox",
            Countable::Mailboxes => "mailboxes of one receiver",
            Countable::Sessions => "sessions of the entity",
            Countable::WaitingAccepts => "clients waiting for a session",
            Countable::DuplicateIds => "remembered message ids of the entity",
            Countable::Transactions => "open transactions",
            Countable::Operations => "operations in the transaction",
            Countable::TransactionBytes => "bytes in open transactions",
            Countable::Records => "records",
        })
    }
}

impl std::fmt::Display for KeyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            KeyKind::MessageId => "the message id",
            KeyKind::SessionId => "the session id",
            KeyKind::PartitionKey => "the partition key",
        })
    }
}
