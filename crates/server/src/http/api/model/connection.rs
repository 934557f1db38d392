//! Who is connected, and what they have open.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Its number, unique in the life of the process.
    pub id: u64,
    /// Where it comes from.
    pub peer: String,
    /// What carries it: `plain`, `tls` or `webSocket`.
    pub transport: String,
    /// The name the client gave itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// When it began.
    pub connected_at: String,
    /// Its links.
    pub links: Vec<Link>,
}

/// One link of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Its number in the connection.
    pub id: u64,
    /// The name the client gave it.
    pub name: String,
    /// Whether messages go in or out.
    pub role: LinkRole,
    /// The entity it is attached to.
    pub entity: String,
    /// What the client allows to be sent to it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u64>,
    /// Messages that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<u64>,
}

/// Whether messages go in or out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum LinkRole {
    /// The client sends.
    Sender,
    /// The client receives.
    Receiver,
}
