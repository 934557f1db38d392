//! What happens, as server-sent events.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that happened. It is the `data` of a server-sent event whose name is the kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// When.
    pub at: String,
    /// The entity it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// The class, target, connection or snapshot it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// How many: messages dead-lettered since the last such event, or events that were missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// More about it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// An entity was created.
    EntityCreated,
    /// An entity or its rules were changed.
    EntityChanged,
    /// An entity was deleted.
    EntityDeleted,
    /// Messages were dead-lettered.
    DeadLettered,
    /// A target is kept, at risk or missed where it was another before.
    TargetChanged,
    /// A client connected.
    ConnectionOpened,
    /// A client is gone.
    ConnectionClosed,
    /// A developer took every message away, and perhaps every entity; those of the configuration are told as they
    /// are made anew.
    NamespaceReset,
    /// A developer put a namespace that was kept in the place of this one.
    NamespaceRestored,
    /// This client did not read fast enough and missed some.
    Missed,
}

impl EventKind {
    /// The name of the server-sent event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::EntityCreated => "entityCreated",
            EventKind::EntityChanged => "entityChanged",
            EventKind::EntityDeleted => "entityDeleted",
            EventKind::DeadLettered => "deadLettered",
            EventKind::TargetChanged => "targetChanged",
            EventKind::ConnectionOpened => "connectionOpened",
            EventKind::ConnectionClosed => "connectionClosed",
            EventKind::NamespaceReset => "namespaceReset",
            EventKind::NamespaceRestored => "namespaceRestored",
            EventKind::Missed => "missed",
        }
    }
}
