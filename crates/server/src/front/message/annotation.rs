//! The names of message annotations that mean something to the broker.

pub(super) const DEADLINE: &str = "x-opt-vorrang-deadline";
pub(super) const DEAD_LETTER_SOURCE: &str = "x-opt-deadletter-source";
pub(super) const ENQUEUED_TIME: &str = "x-opt-enqueued-time";
pub(super) const ENQUEUE_SEQUENCE: &str = "x-opt-enqueue-sequence-number";
pub(super) const LOCKED_UNTIL: &str = "x-opt-locked-until";
pub(super) const LOCK_TOKEN: &str = "x-opt-lock-token";
/// The path of the entity a message comes from, told only on links that are served from several.
pub(super) const SOURCE: &str = "x-opt-vorrang-source";
pub(super) const MESSAGE_STATE: &str = "x-opt-message-state";
pub(crate) const PARTITION_KEY: &str = "x-opt-partition-key";
pub(crate) const SCHEDULED: &str = "x-opt-scheduled-enqueue-time";
pub(super) const SEQUENCE: &str = "x-opt-sequence-number";
pub(crate) const VIA_PARTITION_KEY: &str = "x-opt-via-partition-key";

/// What the broker writes itself. A sender's own values under these names, left over from a message
/// it received and sends on, are dropped at delivery.
pub(crate) const OWNED: [&str; 8] = [
    ENQUEUED_TIME,
    SEQUENCE,
    ENQUEUE_SEQUENCE,
    LOCKED_UNTIL,
    LOCK_TOKEN,
    MESSAGE_STATE,
    DEAD_LETTER_SOURCE,
    SOURCE,
];
