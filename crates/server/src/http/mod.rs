//! HTTP doors: health for probes, the WebSocket upgrade that carries AMQP, and what asks the broker.
//!
//! One router serves both the plain and the TLS port. Connections are HTTP/1.1, their heads are
//! read within a deadline, and bodies are bounded where they are read ([`body`]).
//!
//! A door is a module with `pub(super) fn routes() -> Router<Arc<Site>>`, merged in [`router`] by one
//! line. Its handlers take `State<Arc<Site>>`, learn who asks from [`sas`], ask the broker through a
//! [`Caller`](crate::caller::Caller) as that principal, and answer what goes wrong with a
//! [`Fault`](fault::Fault).

mod address;
pub mod api;
pub mod atom;
pub mod body;
mod call;
pub mod escape;
pub mod fault;
mod health;
pub mod metrics;
mod namespace;
mod rest;
pub mod sas;
mod spelling;
mod websocket;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header::UPGRADE;
use axum::routing::any;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tower::ServiceExt as _;
use tracing::debug;
use vorrang_broker::shard::Broker;
use vorrang_engine::Timestamp;

use self::spelling::Overheard;
use crate::stop::Stop;
use crate::transport::WebSocketStream;
use crate::watch::Watch;
use crate::workshop::Workshop;

/// Serves one AMQP connection that arrived as a WebSocket.
pub type ServeWebSocket =
    Arc<dyn Fn(WebSocketStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Bytes of a request's head, application properties in headers included; a larger one ends the connection.
const HEAD_BYTES_MAX: usize = 128 * 1024;

/// What all HTTP doors work with.
#[derive(Debug)]
pub struct Site {
    /// Everything behind the doors: its keys, its payloads, connections to it.
    pub broker: Broker,
    /// What the namespace is called where a name is expected.
    pub namespace: String,
    /// When this server started.
    pub started: Timestamp,
    /// What there is in development mode alone.
    pub workshop: Option<Workshop>,
    /// Told when the server stops: long waits must end then.
    pub stop: Stop,
    /// What is watched beside the broker.
    pub watch: Arc<Watch>,
    /// What happens, for those who listen.
    pub feed: api::Feed,
}

/// Where a request comes from and how, among its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The address at the other end.
    pub address: SocketAddr,
    /// Whether the way here is encrypted.
    pub tls: bool,
}

/// All routes. The WebSocket upgrade finds its [`ServeWebSocket`] among the request's extensions.
pub fn router(site: Arc<Site>) -> Router {
    Router::new()
        .merge(health::routes())
        .merge(metrics::routes())
        .route("/$servicebus/websocket", any(websocket::upgrade))
        .route("/$servicebus/websocket/", any(websocket::upgrade))
        // An entity may bear the name of a probe: what is no GET is the entity's.
        .method_not_allowed_fallback(namespace::serve)
        // Doors are merged here, one line each.
        .merge(api::routes())
        .merge(namespace::routes())
        .with_state(site)
}

/// Serves one HTTP connection until it ends, is upgraded, or the server stops.
pub async fn serve<S>(
    stream: S,
    peer: Peer,
    router: Router,
    serve_websocket: ServeWebSocket,
    head_max: Duration,
    mut stop: Stop,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (stream, heard) = Overheard::new(stream);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        let spelling = heard.spelling(&request);
        if request.headers().contains_key(UPGRADE) {
            heard.stop();
        }
        request.extensions_mut().insert(spelling);
        request.extensions_mut().insert(Arc::clone(&serve_websocket));
        request.extensions_mut().insert(peer);
        router.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_max)
        .max_buf_size(HEAD_BYTES_MAX)
        // `Content-Type`, as scripts expect it that do not know that it means the same in lower case.
        .title_case_headers(true)
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
