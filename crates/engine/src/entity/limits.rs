//! How many entities there may be, and how far their properties may go.
//!
//! The defaults are what Service Bus documents; where its emulator allows more, so do we.

use crate::time::Span;

/// The bounds of everything an administrator can create or set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityLimits {
    /// Queues and topics in the namespace; more are refused.
    pub entities_max: usize,
    /// Subscriptions of one topic; more are refused.
    pub subscriptions_per_topic_max: usize,
    /// SQL, true and false filters over all subscriptions of one topic; more are refused.
    pub sql_filters_per_topic_max: usize,
    /// Correlation filters over all subscriptions of one topic; more are refused.
    pub correlation_filters_per_topic_max: usize,
    /// Shared access rules of one entity.
    pub authorization_rules_max: usize,
    /// Longest time a lock may last without renewal.
    pub lock_duration_max: Span,
    /// Largest quota an entity may have.
    pub size_megabytes_max: u64,
    /// Shortest and longest memory for duplicate detection.
    pub duplicate_window_min: Span,
    /// See [`EntityLimits::duplicate_window_min`].
    pub duplicate_window_max: Span,
    /// Shortest default time to live.
    pub time_to_live_min: Span,
    /// Most attempts before a message is dead-lettered.
    pub delivery_count_max: u32,
    /// Shortest idle time after which an entity may delete itself.
    pub auto_delete_min: Span,
    /// Characters of user metadata.
    pub user_metadata_chars_max: usize,
    /// Largest message an entity may be told to accept.
    pub message_kilobytes_max: u64,
    /// Classes that one entity may define beside the built-in ones.
    pub classes_max: usize,
    /// Priority rules of one entity; each is evaluated for every message that comes in.
    pub priority_rules_max: usize,
}

impl Default for EntityLimits {
    fn default() -> Self {
        EntityLimits {
            entities_max: 10_000,
            subscriptions_per_topic_max: 2_000,
            sql_filters_per_topic_max: 2_000,
            correlation_filters_per_topic_max: 100_000,
            authorization_rules_max: 12,
            lock_duration_max: Span::minutes(5),
            size_megabytes_max: 81_920,
            duplicate_window_min: Span::seconds(5),
            duplicate_window_max: Span::days(7),
            time_to_live_min: Span::seconds(1),
            delivery_count_max: 2_147_483_647,
            auto_delete_min: Span::minutes(5),
            user_metadata_chars_max: 1_024,
            message_kilobytes_max: 102_400,
            classes_max: 32,
            priority_rules_max: 64,
        }
    }
}
