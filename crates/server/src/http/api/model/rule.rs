//! A subscription's rules: which messages it takes, and what it does to its copies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::PropertyValue;

/// A rule in its subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// What it does; the same object is the body of a `PUT` or `PATCH`.
    pub definition: RuleDefinition,
    /// When it was created.
    pub created_at: String,
}

/// What a rule does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleDefinition {
    /// Which messages it takes; absent means every message.
    #[serde(default)]
    pub filter: Filter,
    /// What it changes in its copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<SqlText>,
}

/// Which messages are meant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Filter {
    /// Every message.
    #[default]
    True,
    /// No message.
    False,
    /// Those for which a condition holds.
    Sql(SqlText),
    /// Those whose fields are equal to the ones given.
    Correlation(Correlation),
}

/// A condition or an action in Service Bus SQL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SqlText {
    /// The text, at most 1024 characters.
    #[schema(example = "Priority = 'High' AND amount > 100")]
    pub expression: String,
    /// Values for the `@names` in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, PropertyValue>,
}

/// Fields a message must have, each with just this value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Correlation {
    /// The message's correlation id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The message's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The message's `to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The message's `reply-to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The message's subject, which Service Bus also calls label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The message's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The session that answers shall have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_session_id: Option<String>,
    /// The message's content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Application properties.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, PropertyValue>,
}
