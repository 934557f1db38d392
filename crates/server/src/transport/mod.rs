//! One byte stream, however it is carried: plain TCP, TLS, or binary WebSocket messages.
//!
//! Everything above sees `AsyncRead + AsyncWrite` and does not care.

mod websocket;

pub use websocket::WebSocketStream;

use std::fmt;

/// How a connection reached us; shown in logs and listings, never used to decide rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// AMQP on bare TCP.
    Plain,
    /// AMQP on TLS.
    Tls,
    /// AMQP in WebSocket messages.
    WebSocket,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Plain => "plain",
            Transport::Tls => "tls",
            Transport::WebSocket => "websocket",
        })
    }
}
