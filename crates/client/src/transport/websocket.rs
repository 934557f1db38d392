//! AMQP over WebSocket: binary messages as one stream of bytes.
//!
//! Message borders mean nothing: a frame may span three messages, and one message may hold three frames. What one
//! flush holds leaves as one message.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The name under which Service Bus knows AMQP over WebSocket.
const SUBPROTOCOL: HeaderValue = HeaderValue::from_static("AMQPWSB10");
const PATH: &str = "/$servicebus/websocket";
/// The largest message we read; the broker's are as large as one of its writes. A larger one ends the connection.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many bytes may wait for a flush before they are sent as a message of their own.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// Asks the server at the other end of `stream` to switch to WebSocket.
pub(super) async fn upgrade<S>(stream: S, host: &str, scheme: &str) -> Result<WebSocketWire<S>, SocketError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut request = format!("{scheme}://{host}{PATH}").into_client_request()?;
    request.headers_mut().insert("Sec-WebSocket-Protocol", SUBPROTOCOL);
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let (socket, _) = client_async_with_config(request, stream, Some(config)).await?;
    Ok(WebSocketWire { socket, unread: Bytes::new(), unsent: BytesMut::new() })
}

/// A WebSocket that reads and writes like a socket.
pub(super) struct WebSocketWire<S> {
    socket: WebSocketStream<S>,
    unread: Bytes,
    unsent: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocketWire<S> {
    /// Hands everything that waits to the socket, as one message.
    fn poll_send_pending(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unsent.is_empty() {
            ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(io::Error::other)?;
            let message = Message::Binary(self.unsent.split().freeze());
            Pin::new(&mut self.socket).start_send(message).map_err(io::Error::other)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WebSocketWire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.unread.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.unread = bytes,
                // Pings are answered by the socket itself.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Text(_))) => {
                    let text = "AMQP travels in binary WebSocket messages, not in text";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
            }
        }
        let count = self.unread.len().min(buffer.remaining());
        buffer.put_slice(self.unread.get(..count).unwrap_or_default());
        self.unread.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WebSocketWire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.unsent.len() >= PENDING_BYTES_MAX {
            ready!(self.poll_send_pending(cx))?;
        }
        let count = bytes.len().min(PENDING_BYTES_MAX.saturating_sub(self.unsent.len()));
        self.unsent.extend_from_slice(bytes.get(..count).unwrap_or_default());
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send_pending(cx))?;
        Pin::new(&mut self.socket).poll_flush(cx).map_err(io::Error::other)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send_pending(cx))?;
        Pin::new(&mut self.socket).poll_close(cx).map_err(io::Error::other)
    }
}
