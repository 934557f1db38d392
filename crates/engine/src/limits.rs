//! Every bound that a client can run into, in one value.
//!
//! What happens at a bound stands beside it. Limits of the wire (frames, links, connections) are the
//! server's; limits of SQL texts are the filter's; those of entity settings are in [`EntityLimits`].

pub use crate::entity::limits::EntityLimits;
use crate::time::Span;

/// The bounds of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many entities there may be and how far their settings go.
    pub entities: EntityLimits,
    /// Characters of a message id, session id or partition key; longer ones refuse the send.
    pub key_chars_max: usize,
    /// Messages in one send; more refuse the send.
    pub batch_messages_max: usize,
    /// Characters of a dead-letter reason or description; longer ones are cut.
    pub reason_chars_max: usize,
    /// Bytes of property changes on one message; a change beyond refuses the settlement.
    pub overlay_bytes_max: usize,
    /// Bytes of a session's state; more refuse the change.
    pub session_state_bytes_max: usize,
    /// Sessions of one entity that hold messages, state or a lock; more refuse the send or accept.
    pub sessions_max: usize,
    /// Receivers attached to one mailbox; more refuse the attach.
    pub receivers_per_mailbox_max: usize,
    /// Mailboxes in one ordered receive; more refuse the attach.
    pub ordered_mailboxes_max: usize,
    /// Credit a receiver may have outstanding; more is taken as this much.
    pub credit_max: u32,
    /// Messages a receiver with a selector looks at in one step; others are served before the next.
    pub selector_scan_max: usize,
    /// Clients waiting for a session of one entity; more refuse the accept.
    pub waiting_accepts_max: usize,
    /// The longest a client may wait for a session; longer waits end then.
    pub accept_wait_max: Span,
    /// Message ids remembered by one entity; when full, sends are refused until the oldest lapse, so
    /// that the promise of exactly-once holds.
    pub duplicate_ids_max: usize,
    /// Numbers in one cancel, receive-by-number, settle or renew; more refuse the request.
    pub numbers_per_request_max: usize,
    /// Messages deleted or changed by one request; a larger count is refused.
    pub batch_delete_max: u32,
    /// Messages one request may look at in search of those it wants; the reply says where to go on.
    pub scan_max: usize,
    /// Messages returned by one peek; more are cut.
    pub peek_max: usize,
    /// Transactions open at once; more are refused.
    pub transactions_max: usize,
    /// Sends and settlements in one transaction; more are refused.
    pub transaction_operations_max: usize,
    /// Bytes of messages that wait in open transactions, all together; more are refused.
    pub transaction_bytes_max: u64,
    /// How long a transaction may stay open before it is rolled back.
    pub transaction_time_max: Span,
    /// Entities a message may be forwarded through; then it goes to the transfer dead-letter queue.
    pub hops_max: u8,
    /// Messages in memory beyond which those that only wait should leave it.
    pub hot_records: u32,
    /// Records moved, chilled or warmed by one command; more are refused.
    pub cold_records_max: usize,
    /// Records of a command of which some changed meanwhile: a shorter stretch between two of those is not
    /// worth a run of its own and stays in memory.
    pub cold_run_min: usize,
    /// Messages in memory up to which those on disk are brought back for receivers with a selector to look at.
    pub choosy_records: u32,
    /// Ready messages at the front of a lane below which the next of a cold run are asked for.
    pub warm_below: u32,
    /// How many records to ask for then.
    pub warm_batch: u32,
}

impl Default for Limits {
    /// The documented quotas of Service Bus where it has one, and generous bounds elsewhere.
    fn default() -> Self {
        Limits {
            entities: EntityLimits::default(),
            key_chars_max: 128,
            batch_messages_max: 4_500,
            reason_chars_max: 4_096,
            overlay_bytes_max: 64 * 1024,
            session_state_bytes_max: 256 * 1024,
            sessions_max: 10_000_000,
            receivers_per_mailbox_max: 5_000,
            ordered_mailboxes_max: 16,
            credit_max: 100_000,
            selector_scan_max: 256,
            waiting_accepts_max: 5_000,
            accept_wait_max: Span::minutes(5),
            duplicate_ids_max: 50_000_000,
            numbers_per_request_max: 5_000,
            batch_delete_max: 4_000,
            scan_max: 10_000,
            peek_max: 5_000,
            transactions_max: 10_000,
            transaction_operations_max: 100,
            transaction_bytes_max: 256 * 1024 * 1024,
            transaction_time_max: Span::minutes(2),
            hops_max: 4,
            hot_records: 65_536,
            cold_records_max: 100_000,
            cold_run_min: 32,
            choosy_records: 1_000_000,
            warm_below: 512,
            warm_batch: 2_048,
        }
    }
}
