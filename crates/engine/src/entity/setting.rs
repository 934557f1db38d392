//! One changed property at a time, so that an update says only what it knows.
//!
//! Each protocol knows a part of an entity's properties: the ATOM interface of Service Bus has never
//! heard of our priority settings, and our own commands change one property without reading the rest
//! first. So creation and update carry a list of [`Setting`]s; what is not mentioned keeps its value.

use super::authorization::AuthorizationRule;
use super::name::EntityName;
use super::priority::{Class, Policy, PriorityRule, Rescue, Share};
use super::status::Status;
use crate::level::Level;
use crate::time::Span;
use std::fmt;
use std::sync::Arc;

/// A property with its new value.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is the property of the same name; see the descriptions")]
pub enum Setting {
    LockDuration(Span),
    MaxSizeInMegabytes(u64),
    RequiresDuplicateDetection(bool),
    DuplicateDetectionHistoryTimeWindow(Span),
    RequiresSession(bool),
    DefaultMessageTimeToLive(Span),
    DeadLetteringOnMessageExpiration(bool),
    DeadLetteringOnFilterEvaluationExceptions(bool),
    MaxDeliveryCount(u32),
    EnableBatchedOperations(bool),
    AutoDeleteOnIdle(Span),
    Status(Status),
    ForwardTo(Option<EntityName>),
    ForwardDeadLetteredMessagesTo(Option<EntityName>),
    SupportOrdering(bool),
    UserMetadata(Option<Arc<str>>),
    MaxMessageSizeInKilobytes(u64),
    AuthorizationRules(Vec<AuthorizationRule>),
    FilteringMessagesBeforePublishing(bool),
    Classes(Vec<Class>),
    Policy(Policy),
    Rescue(Rescue),
    PriorityRules(Vec<PriorityRule>),
    DefaultLevel(Level),
    Lift(bool),
    PrefetchShare(Share),
    Paused(bool),
}

/// The properties, without values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is the property of the same name; see the descriptions")]
pub enum Property {
    LockDuration,
    MaxSizeInMegabytes,
    RequiresDuplicateDetection,
    DuplicateDetectionHistoryTimeWindow,
    RequiresSession,
    DefaultMessageTimeToLive,
    DeadLetteringOnMessageExpiration,
    DeadLetteringOnFilterEvaluationExceptions,
    MaxDeliveryCount,
    EnableBatchedOperations,
    AutoDeleteOnIdle,
    Status,
    ForwardTo,
    ForwardDeadLetteredMessagesTo,
    SupportOrdering,
    UserMetadata,
    MaxMessageSizeInKilobytes,
    AuthorizationRules,
    FilteringMessagesBeforePublishing,
    Classes,
    Policy,
    Rescue,
    PriorityRules,
    DefaultLevel,
    Lift,
    PrefetchShare,
    Paused,
}

impl Property {
    /// The name as Service Bus writes it, and ours in the same manner.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Property::LockDuration => "LockDuration",
            Property::MaxSizeInMegabytes => "MaxSizeInMegabytes",
            Property::RequiresDuplicateDetection => "RequiresDuplicateDetection",
            Property::DuplicateDetectionHistoryTimeWindow => "DuplicateDetectionHistoryTimeWindow",
            Property::RequiresSession => "RequiresSession",
            Property::DefaultMessageTimeToLive => "DefaultMessageTimeToLive",
            Property::DeadLetteringOnMessageExpiration => "DeadLetteringOnMessageExpiration",
            Property::DeadLetteringOnFilterEvaluationExceptions => {
                "DeadLetteringOnFilterEvaluationExceptions"
            }
            Property::MaxDeliveryCount => "MaxDeliveryCount",
            Property::EnableBatchedOperations => "EnableBatchedOperations",
            Property::AutoDeleteOnIdle => "AutoDeleteOnIdle",
            Property::Status => "Status",
            Property::ForwardTo => "ForwardTo",
            Property::ForwardDeadLetteredMessagesTo => "ForwardDeadLetteredMessagesTo",
            Property::SupportOrdering => "SupportOrdering",
            Property::UserMetadata => "UserMetadata",
            Property::MaxMessageSizeInKilobytes => "MaxMessageSizeInKilobytes",
            Property::AuthorizationRules => "AuthorizationRules",
            Property::FilteringMessagesBeforePublishing => "FilteringMessagesBeforePublishing",
            Property::Classes => "Classes",
            Property::Policy => "Policy",
            Property::Rescue => "Rescue",
            Property::PriorityRules => "PriorityRules",
            Property::DefaultLevel => "DefaultLevel",
            Property::Lift => "Lift",
            Property::PrefetchShare => "PrefetchShare",
            Property::Paused => "Paused",
        }
    }

    /// Whether the property may change after the entity was created.
    #[must_use]
    pub fn is_changeable(self) -> bool {
        !matches!(
            self,
            Property::RequiresDuplicateDetection | Property::RequiresSession | Property::SupportOrdering
        )
    }
}

impl Setting {
    /// Which property this sets.
    #[must_use]
    pub fn property(&self) -> Property {
        match self {
            Setting::LockDuration(_) => Property::LockDuration,
            Setting::MaxSizeInMegabytes(_) => Property::MaxSizeInMegabytes,
            Setting::RequiresDuplicateDetection(_) => Property::RequiresDuplicateDetection,
            Setting::DuplicateDetectionHistoryTimeWindow(_) => Property::DuplicateDetectionHistoryTimeWindow,
            Setting::RequiresSession(_) => Property::RequiresSession,
            Setting::DefaultMessageTimeToLive(_) => Property::DefaultMessageTimeToLive,
            Setting::DeadLetteringOnMessageExpiration(_) => Property::DeadLetteringOnMessageExpiration,
            Setting::DeadLetteringOnFilterEvaluationExceptions(_) => {
                Property::DeadLetteringOnFilterEvaluationExceptions
            }
            Setting::MaxDeliveryCount(_) => Property::MaxDeliveryCount,
            Setting::EnableBatchedOperations(_) => Property::EnableBatchedOperations,
            Setting::AutoDeleteOnIdle(_) => Property::AutoDeleteOnIdle,
            Setting::Status(_) => Property::Status,
            Setting::ForwardTo(_) => Property::ForwardTo,
            Setting::ForwardDeadLetteredMessagesTo(_) => Property::ForwardDeadLetteredMessagesTo,
            Setting::SupportOrdering(_) => Property::SupportOrdering,
            Setting::UserMetadata(_) => Property::UserMetadata,
            Setting::MaxMessageSizeInKilobytes(_) => Property::MaxMessageSizeInKilobytes,
            Setting::AuthorizationRules(_) => Property::AuthorizationRules,
            Setting::FilteringMessagesBeforePublishing(_) => Property::FilteringMessagesBeforePublishing,
            Setting::Classes(_) => Property::Classes,
            Setting::Policy(_) => Property::Policy,
            Setting::Rescue(_) => Property::Rescue,
            Setting::PriorityRules(_) => Property::PriorityRules,
            Setting::DefaultLevel(_) => Property::DefaultLevel,
            Setting::Lift(_) => Property::Lift,
            Setting::PrefetchShare(_) => Property::PrefetchShare,
            Setting::Paused(_) => Property::Paused,
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing wrong with a description: which property, what it was to be, what it may be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{property} cannot be {value}: allowed is {allowed}")]
pub struct Problem {
    /// The property at fault.
    pub property: Property,
    /// The value that was given, shortened if it is long.
    pub value: String,
    /// What would have been accepted.
    pub allowed: String,
}

impl Problem {
    pub(super) fn new(property: Property, value: impl fmt::Display, allowed: impl fmt::Display) -> Problem {
        Problem { property, value: value.to_string(), allowed: allowed.to_string() }
    }
}
