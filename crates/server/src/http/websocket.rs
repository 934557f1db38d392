//! The upgrade at `/$servicebus/websocket`: both subprotocol names the SDKs use are accepted and echoed.

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::response::Response;

use super::ServeWebSocket;
use crate::transport::WebSocketStream;

/// The names under which clients offer AMQP over WebSocket.
const SUBPROTOCOLS: [&str; 2] = ["AMQPWSB10", "amqp"];

/// One WebSocket message may be as large as one read of the AMQP engine's input; frames are limited there.
const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Switches to WebSocket and hands the stream over.
pub(super) async fn upgrade(
    Extension(serve): Extension<ServeWebSocket>,
    upgrade: WebSocketUpgrade,
) -> Response {
    upgrade
        .protocols(SUBPROTOCOLS)
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| async move { serve(WebSocketStream::new(socket)).await })
}
