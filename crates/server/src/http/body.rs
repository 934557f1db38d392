//! Bodies of requests: bounded in size and in the time they take to arrive.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use tokio::time::timeout;

use super::fault::Fault;
use crate::front::condition::name;

/// How long a body may take to arrive; then the request is refused.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

/// Reads a whole body of at most `bytes_max` bytes, counted while it comes; a larger one is refused, not cut.
pub async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Fault> {
    timeout(ARRIVAL_MAX, collect(body.into_data_stream(), bytes_max)).await.unwrap_or_else(|_| {
        let text = format!("The body did not arrive within {} s.", ARRIVAL_MAX.as_secs());
        Err(Fault::new(StatusCode::REQUEST_TIMEOUT, name::TIMEOUT, text))
    })
}

async fn collect(mut parts: BodyDataStream, bytes_max: usize) -> Result<Bytes, Fault> {
    let mut whole = BytesMut::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| Fault::malformed("The body of the request ended early."))?;
        if whole.len().saturating_add(part.len()) > bytes_max {
            return Err(Fault::too_large(bytes_max));
        }
        whole.extend_from_slice(&part);
    }
    Ok(whole.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit_and_refused_beyond() {
        for (size, expected) in [(0, true), (9, true), (10, true), (11, false)] {
            let parts = futures_util::stream::iter((0..size).map(|_| Ok::<_, std::io::Error>("x")));
            let read = read(Body::from_stream(parts), 10).await;
            assert_eq!(read.is_ok(), expected, "{size}");
            assert!(read.is_err() || read.is_ok_and(|bytes| bytes.len() == size));
        }
        let broken = futures_util::stream::iter([Ok("x"), Err(std::io::Error::other("gone"))]);
        let fault = read(Body::from_stream(broken), 10).await.unwrap_err();
        assert!(fault.text.contains("ended early"));
    }
}
