//! One byte stream, however it is carried: plain TCP, TLS, or binary WebSocket messages.

mod tls;
mod websocket;

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

pub use tls::{TlsClient, TlsOptions};

use crate::error::Error;

/// How to reach the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// AMQP on bare TCP: port 5672. Keys are not shown, but everything else is.
    Tcp,
    /// AMQP on TLS: port 5671.
    Tls,
    /// AMQP in WebSocket messages on TLS: port 443.
    WebSocket,
    /// AMQP in WebSocket messages on bare TCP, as behind a proxy that ends TLS: port 80.
    PlainWebSocket,
}

impl TransportKind {
    /// The port if none is given.
    pub(crate) fn default_port(self) -> u16 {
        match self {
            TransportKind::Tcp => 5672,
            TransportKind::Tls => 5671,
            TransportKind::WebSocket => 443,
            TransportKind::PlainWebSocket => 80,
        }
    }
}

/// Where the broker is, and how to get there.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) kind: TransportKind,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: TlsOptions,
}

/// What every transport is.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A transport, whichever it is.
pub(crate) type BoxedWire = Box<dyn Wire>;

impl Route {
    /// Host and port for people and log lines.
    pub(crate) fn endpoint(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Makes a connection within `limit`.
    pub(crate) async fn connect(&self, limit: Duration) -> Result<BoxedWire, Error> {
        let connecting = async {
            let socket = self.connect_tcp().await?;
            let wire: BoxedWire = match self.kind {
                TransportKind::Tcp => Box::new(socket),
                TransportKind::Tls => Box::new(self.secure(socket).await?),
                TransportKind::PlainWebSocket => {
                    let upgraded = websocket::upgrade(socket, &self.host, "ws").await;
                    Box::new(upgraded.map_err(|error| self.unreachable(&error))?)
                }
                TransportKind::WebSocket => {
                    let upgraded = websocket::upgrade(self.secure(socket).await?, &self.host, "wss").await;
                    Box::new(upgraded.map_err(|error| self.unreachable(&error))?)
                }
            };
            Ok(wire)
        };
        match tokio::time::timeout(limit, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(self.unreachable(&format!("no connection within {limit:?}"))),
        }
    }

    async fn connect_tcp(&self) -> Result<TcpStream, Error> {
        let connect = async {
            let socket = TcpStream::connect((self.host.as_str(), self.port)).await?;
            socket.set_nodelay(true)?;
            io::Result::Ok(socket)
        };
        connect.await.map_err(|error| self.unreachable(&error))
    }

    async fn secure(&self, socket: TcpStream) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Error> {
        let (connector, name) = self.tls.connector(&self.host)?;
        connector.connect(name, socket).await.map_err(|error| self.unreachable(&error))
    }

    pub(crate) fn unreachable(&self, reason: &impl ToString) -> Error {
        Error::Disconnected { endpoint: self.endpoint().into(), reason: reason.to_string().into() }
    }
}
