//! The properties under `sys.`.

/// A broker-known property of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are Service Bus's own")]
pub enum SystemProperty {
    ContentType,
    CorrelationId,
    DeadLetterSource,
    DeliveryCount,
    EnqueuedSequenceNumber,
    EnqueuedTimeUtc,
    ExpiresAtUtc,
    ForcePersistence,
    /// AMQP's subject; SQL may also spell it `sys.Subject`.
    Label,
    LockToken,
    LockedUntilUtc,
    MessageId,
    PartitionKey,
    /// The message's level, 0 to 255. Not known to Service Bus.
    Priority,
    ReplyTo,
    ReplyToSessionId,
    ScheduledEnqueueTimeUtc,
    SequenceNumber,
    SessionId,
    Size,
    State,
    TimeToLive,
    To,
    ViaPartitionKey,
}

/// Every property with its name. Order: by name.
const NAMES: [(SystemProperty, &str); 24] = [
    (SystemProperty::ContentType, "ContentType"),
    (SystemProperty::CorrelationId, "CorrelationId"),
    (SystemProperty::DeadLetterSource, "DeadLetterSource"),
    (SystemProperty::DeliveryCount, "DeliveryCount"),
    (SystemProperty::EnqueuedSequenceNumber, "EnqueuedSequenceNumber"),
    (SystemProperty::EnqueuedTimeUtc, "EnqueuedTimeUtc"),
    (SystemProperty::ExpiresAtUtc, "ExpiresAtUtc"),
    (SystemProperty::ForcePersistence, "ForcePersistence"),
    (SystemProperty::Label, "Label"),
    (SystemProperty::LockToken, "LockToken"),
    (SystemProperty::LockedUntilUtc, "LockedUntilUtc"),
    (SystemProperty::MessageId, "MessageId"),
    (SystemProperty::PartitionKey, "PartitionKey"),
    (SystemProperty::Priority, "Priority"),
    (SystemProperty::ReplyTo, "ReplyTo"),
    (SystemProperty::ReplyToSessionId, "ReplyToSessionId"),
    (SystemProperty::ScheduledEnqueueTimeUtc, "ScheduledEnqueueTimeUtc"),
    (SystemProperty::SequenceNumber, "SequenceNumber"),
    (SystemProperty::SessionId, "SessionId"),
    (SystemProperty::Size, "Size"),
    (SystemProperty::State, "State"),
    (SystemProperty::TimeToLive, "TimeToLive"),
    (SystemProperty::To, "To"),
    (SystemProperty::ViaPartitionKey, "ViaPartitionKey"),
];

impl SystemProperty {
    /// Every property, in the order of names.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(property, _)| property)
    }

    /// The property called `name` in any case; `Subject` is another name of `Label`.
    pub fn parse(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("Subject") {
            return Some(Self::Label);
        }
        NAMES.into_iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(property, _)| property)
    }

    /// The property's name, without `sys.`.
    pub fn name(self) -> &'static str {
        NAMES.into_iter().find(|(property, _)| *property == self).map_or("", |(_, name)| name)
    }

    /// Whether a rule's action may set or remove it.
    pub fn settable(self) -> bool {
        matches!(
            self,
            Self::ContentType
                | Self::CorrelationId
                | Self::Label
                | Self::MessageId
                | Self::PartitionKey
                | Self::Priority
                | Self::ReplyTo
                | Self::ReplyToSessionId
                | Self::ScheduledEnqueueTimeUtc
                | Self::SessionId
                | Self::TimeToLive
                | Self::To
                | Self::ViaPartitionKey
        )
    }

    /// Whether a correlation filter has a field for it.
    pub fn correlates(self) -> bool {
        matches!(
            self,
            Self::ContentType
                | Self::CorrelationId
                | Self::Label
                | Self::MessageId
                | Self::ReplyTo
                | Self::ReplyToSessionId
                | Self::SessionId
                | Self::To
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_in_any_case() {
        for property in SystemProperty::all() {
            assert_eq!(SystemProperty::parse(property.name()), Some(property));
            assert_eq!(SystemProperty::parse(&property.name().to_uppercase()), Some(property));
        }
        assert_eq!(SystemProperty::parse("subject"), Some(SystemProperty::Label));
        for unknown in ["", "Labe", "Labels", "Body", "sys.Label"] {
            assert_eq!(SystemProperty::parse(unknown), None, "{unknown}");
        }
        assert_eq!(SystemProperty::all().filter(|property| property.settable()).count(), 13);
        assert_eq!(SystemProperty::all().filter(|property| property.correlates()).count(), 8);
    }
}
