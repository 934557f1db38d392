//! Sessions of a queue or subscription.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A session that has messages or a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its id.
    pub session_id: String,
}
