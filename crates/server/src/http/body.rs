//! Bodies of requests: bounded in size and in the time they take to arrive.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use bytes::Bytes;
use tokio::time::timeout;

use super::fault::Fault;
use crate::front::condition::name;

/// How long a body may take to arrive; then the request is refused.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

/// Reads a whole body of at most `bytes_max` bytes; a larger one is refused, not cut.
pub async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Fault> {
    let Ok(read) = timeout(ARRIVAL_MAX, to_bytes(body, bytes_max)).await else {
        let text = format!("The body did not arrive within {} s.", ARRIVAL_MAX.as_secs());
        return Err(Fault::new(StatusCode::REQUEST_TIMEOUT, name::TIMEOUT, text));
    };
    read.map_err(|error| {
        let limited =
            std::error::Error::source(&error).is_some_and(|source| source.to_string().contains("limit"));
        if limited {
            Fault::too_large(bytes_max)
        } else {
            Fault::malformed("The body of the request ended early.")
        }
    })
}
