//! Messages as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::PropertyValue;

/// The places of a queue or subscription where messages lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mailbox {
    /// Where messages wait to be received.
    Main,
    /// Where messages go that could not be processed.
    DeadLetter,
    /// Where messages go that could not be handed on.
    TransferDeadLetter,
}

/// A message's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum MessageState {
    /// Waiting to be received, or locked by somebody.
    Active,
    /// Put aside; received by its sequence number alone.
    Deferred,
    /// Not visible to receivers before its time.
    Scheduled,
}

/// A message that is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its number in the entity.
    pub sequence_number: u64,
    /// The number it was first given, where forwarding or a topic gave it another since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueued_sequence_number: Option<u64>,
    /// Its state.
    pub state: MessageState,
    /// Its precedence; higher first.
    pub level: u8,
    /// The class of that level, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// How many earlier deliveries failed.
    pub delivery_count: u32,
    /// When it became part of the entity.
    pub enqueued_at: String,
    /// When it will become visible, if it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<String>,
    /// When it will have outlived its time, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Its size as stored.
    pub size_in_bytes: u64,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What it answers or belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its subject, which Service Bus also calls label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What its body is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Where it is to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Where answers go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The session that answers shall have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to_session_id: Option<String>,
    /// Why it was dead-lettered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_reason: Option<String>,
    /// More about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_error_description: Option<String>,
    /// The path of the entity it was dead-lettered from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_source: Option<String>,
    /// Application properties.
    pub properties: BTreeMap<String, PropertyValue>,
    /// The body; absent in lists unless asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<MessageBody>,
}

/// A message's body: JSON where it is said to be JSON and is, text where it is UTF-8, else base64.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum MessageBody {
    /// JSON; the content type is `application/json` or ends in `+json`.
    #[schema(value_type = Object)]
    Json(serde_json::Value),
    /// UTF-8.
    Text(String),
    /// Bytes.
    Base64(String),
    /// An AMQP value that is neither text nor bytes, shown as well as JSON can; cannot be sent.
    #[schema(value_type = Object)]
    Value(serde_json::Value),
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NewMessage {
    /// The body; absent means empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<MessageBody>,
    /// Its id; one is made if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What it answers or belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What its body is; `application/json` if absent and the body is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Where it is to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Where answers go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The session that answers shall have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_session_id: Option<String>,
    /// How long it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<String>,
    /// When it becomes visible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<String>,
    /// Its precedence; the entity decides if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Application properties; `Priority` may name a class.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, PropertyValue>,
}

/// Messages were stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// Their numbers, in the order they were sent; 0 for a duplicate that was dropped.
    pub sequence_numbers: Vec<u64>,
}
