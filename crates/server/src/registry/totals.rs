//! What was counted about connections since the process began.

use super::client::Client;
use crate::count::Counter;
use crate::transport::Transport;

/// Connections that came and those that were refused, by why.
#[derive(Debug, Default)]
pub struct Totals {
    plain: Counter,
    tls: Counter,
    websocket: Counter,
    /// TLS handshakes that failed or took too long.
    pub tls_refused: Counter,
    /// SASL PLAIN logins with a wrong name or key.
    pub logins_refused: Counter,
    /// Tokens refused by `$cbs`.
    pub tokens_refused: Counter,
    /// Bytes read from connections that are gone.
    pub(super) bytes_in: Counter,
    /// Bytes written to them.
    pub(super) bytes_out: Counter,
}

impl Totals {
    /// A connection is gone; its bytes stay.
    pub(super) fn left(&self, client: &Client) {
        self.bytes_in.add(client.bytes_in.read());
        self.bytes_out.add(client.bytes_out.read());
    }

    /// Connections that came this way.
    #[must_use]
    pub fn opened(&self, transport: Transport) -> &Counter {
        match transport {
            Transport::Plain => &self.plain,
            Transport::Tls => &self.tls,
            Transport::WebSocket => &self.websocket,
        }
    }
}
