//! HTTP doors: health for probes, and the WebSocket upgrade that carries AMQP.
//!
//! One router serves both the plain and the TLS port. Connections are HTTP/1.1, their heads are
//! read within a deadline, and bodies are bounded where they are read.

pub mod api;
mod health;
mod websocket;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{any, get};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tracing::debug;

use crate::stop::Stop;
use crate::transport::WebSocketStream;

/// Serves one AMQP connection that arrived as a WebSocket.
pub type ServeWebSocket =
    Arc<dyn Fn(WebSocketStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// All routes; `serve_websocket` takes over a connection once it is upgraded.
pub fn router(serve_websocket: ServeWebSocket) -> Router {
    Router::new()
        .route("/health", get(health::emulator))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/$servicebus/websocket", any(websocket::upgrade))
        .route("/$servicebus/websocket/", any(websocket::upgrade))
        .with_state(serve_websocket)
}

/// Serves one HTTP connection until it ends, is upgraded, or the server stops.
pub async fn serve<S>(stream: S, router: Router, head_max: Duration, mut stop: Stop)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_max)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.requested() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "HTTP connection ended early");
    }
}
