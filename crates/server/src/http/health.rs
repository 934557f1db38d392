//! Answers for probes: the emulator's shape, and the usual two.
//!
//! The doors open only when the broker has recovered, so whoever gets an answer may go ahead.

use axum::Json;
use serde_json::{Value, json};

/// `/health`, word for word what test modules written for the emulator look for.
pub(super) async fn emulator() -> Json<Value> {
    Json(json!({ "status": "healthy", "message": "Service is healthy." }))
}

/// `/livez`: the process answers.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// `/readyz`: the broker has recovered and serves.
pub(super) async fn ready() -> &'static str {
    "ok\n"
}
