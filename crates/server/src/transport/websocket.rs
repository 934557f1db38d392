//! AMQP over WebSocket: binary messages as one stream of bytes.
//!
//! Message borders mean nothing: a frame may span three messages, and one message may hold three
//! frames. What one flush holds leaves as one message, so that small frames share its overhead.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::ws::{Message, WebSocket};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes may wait for a flush before they are sent as a message of their own.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// A WebSocket that reads and writes like a socket.
#[derive(Debug)]
pub struct WebSocketStream {
    socket: WebSocket,
    unread: Bytes,
    unsent: BytesMut,
}

impl WebSocketStream {
    /// Carries a byte stream in the binary messages of `socket`.
    #[must_use]
    pub fn new(socket: WebSocket) -> Self {
        WebSocketStream { socket, unread: Bytes::new(), unsent: BytesMut::new() }
    }

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

impl AsyncRead for WebSocketStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.unread.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.unread = bytes,
                // Pings are answered by the socket itself.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
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

impl AsyncWrite for WebSocketStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.unsent.len() >= PENDING_BYTES_MAX {
            ready!(self.poll_send_pending(cx))?;
        }
        self.unsent.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
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
