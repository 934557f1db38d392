//! What a client is told when something is not done (RFC 9457, `application/problem+json`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not carried out, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Names the kind of problem, for programs: `urn:vorrang:problem:` and a word such as `not-found`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in a few words.
    pub title: String,
    /// The HTTP status, once more.
    pub status: u16,
    /// What exactly is wrong, naming the thing and the bound, and what to do.
    pub detail: String,
    /// Everything wrong with the fields of the body or the query, one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
}

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldProblem {
    /// The field, as a path: `classes[0].targetWait`.
    pub field: String,
    /// What is wrong with it and what is allowed.
    pub detail: String,
}
