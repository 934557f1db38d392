//! From the first byte to `open`, and from `close` to the end.

use bytes::Bytes;

use super::config::{ClientConfig, Login, ServerConfig};
use super::event::{Closed, Event};
use super::limits::FrameLimit;
use super::time::Millis;
use super::violation::Violation;
use super::{Connection, Gone, wire};
use crate::performative::{Close, Error, Open};
use crate::protocol_header::{PROTOCOL_HEADER_BYTES, Protocol};

/// Which end of the connection we are.
#[derive(Debug)]
pub(super) enum Side {
    Server(ServerConfig),
    Client(ClientConfig),
}

/// What the connection waits for.
///
/// The phases before [`Phase::Open`] hold no sessions, so nothing but the handshake can happen in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Server: the peer's first header.
    ServerHeader,
    /// Server: the peer's choice of a mechanism.
    ServerInit,
    /// Server: the decision of the layer above about the peer's credentials.
    ServerDeciding,
    /// Server: the header of the AMQP layer, after SASL.
    ServerAmqpHeader,
    /// Client: the server's first header.
    ClientHeader,
    /// Client: the server's mechanisms.
    ClientMechanisms,
    /// Client: the outcome of SASL.
    ClientOutcome,
    /// Client: the header of the AMQP layer, after SASL. Ours and our open are written.
    ClientAmqpHeader,
    /// The peer's open.
    AwaitOpen,
    /// Both have opened.
    Open,
    /// Our close is written; everything but the peer's close is dropped.
    Closing {
        /// When we stop waiting for it.
        until: Millis,
    },
    /// Nothing more.
    Finished,
}

impl Side {
    pub(super) fn idle_time_out_ms(&self) -> Option<u32> {
        match self {
            Self::Server(config) => config.idle_time_out_ms,
            Self::Client(config) => config.idle_time_out_ms,
        }
    }

    fn open(&self, frame: FrameLimit, channel_max: u16) -> Open {
        let (container_id, hostname, properties) = match self {
            Self::Server(config) => (&config.container_id, None, &config.properties),
            Self::Client(config) => (&config.container_id, config.hostname.clone(), &config.properties),
        };
        Open {
            container_id: container_id.clone(),
            hostname,
            max_frame_size: Some(frame.bytes()),
            channel_max: Some(channel_max),
            idle_time_out: self.idle_time_out_ms(),
            properties: properties.clone(),
            ..Open::default()
        }
    }
}

impl Connection {
    /// Writes a client's first bytes.
    pub(super) fn greet(&mut self) {
        let Side::Client(config) = &self.side else { return };
        if config.login == Login::WithoutSasl {
            self.phase = Phase::ClientAmqpHeader;
            wire::put_header(&mut self.outbox, Protocol::Amqp);
            self.write_open();
        } else {
            wire::put_header(&mut self.outbox, Protocol::Sasl);
        }
    }

    /// Takes a protocol header in a phase that waits for one.
    pub(super) fn on_header(&mut self, header: [u8; PROTOCOL_HEADER_BYTES]) {
        let protocol = Protocol::parse(header).ok();
        match (self.phase, protocol) {
            (Phase::ServerHeader, Some(Protocol::Sasl)) => {
                wire::put_header(&mut self.outbox, Protocol::Sasl);
                self.offer_mechanisms();
            }
            (Phase::ServerHeader, Some(Protocol::Amqp)) if self.sasl_optional() => {
                wire::put_header(&mut self.outbox, Protocol::Amqp);
                self.phase = Phase::AwaitOpen;
            }
            (Phase::ServerAmqpHeader, Some(Protocol::Amqp)) => {
                wire::put_header(&mut self.outbox, Protocol::Amqp);
                self.phase = Phase::AwaitOpen;
            }
            (Phase::ClientHeader, Some(Protocol::Sasl)) => self.phase = Phase::ClientMechanisms,
            (Phase::ClientAmqpHeader, Some(Protocol::Amqp)) => self.phase = Phase::AwaitOpen,
            _ => {
                // AMQP 1.0 2.2: answer a header we do not serve with one we do, and close.
                match self.phase {
                    Phase::ServerHeader => wire::put_header(&mut self.outbox, Protocol::Sasl),
                    Phase::ServerAmqpHeader => wire::put_header(&mut self.outbox, Protocol::Amqp),
                    _ => {}
                }
                self.fail(Violation::ProtocolHeader);
            }
        }
    }

    fn sasl_optional(&self) -> bool {
        matches!(&self.side, Side::Server(config) if config.sasl_optional)
    }

    /// Writes our open.
    pub(super) fn write_open(&mut self) {
        let open = self.side.open(self.limits.authenticated.frame, self.limits.channel_max);
        wire::put_frame(&mut self.outbox, 0, &open);
    }

    /// Takes the peer's open.
    pub(super) fn on_open(&mut self, open: Box<Open>) {
        if self.phase != Phase::AwaitOpen {
            self.fail(Violation::OutOfPlace { frame: "open", state: "on an open connection" });
            return;
        }
        if matches!(self.side, Side::Server(_)) {
            self.write_open();
        }
        // A peer without a limit gets frames of the size we read ourselves.
        let own = self.limits.authenticated.frame;
        self.peer_frame = open.max_frame_size.map_or(own, |bytes| FrameLimit::new(bytes).min(own));
        self.peer_channel_max = open.channel_max.unwrap_or(u16::MAX);
        self.clocks.opened(open.idle_time_out, self.limits.heartbeat_ms_min);
        self.phase = Phase::Open;
        self.events.push_back(Event::Opened(open));
    }

    /// Takes the peer's close.
    pub(super) fn on_close(&mut self, close: Close) {
        let closed = if matches!(self.phase, Phase::Closing { .. }) {
            Closed::Own
        } else {
            if self.phase == Phase::AwaitOpen && matches!(self.side, Side::Server(_)) {
                self.write_open();
            }
            self.flush_all_accepted();
            wire::put_frame(&mut self.outbox, 0, &Close { error: None });
            Closed::Peer { error: close.error }
        };
        self.phase = Phase::Finished;
        self.inbox = Bytes::new();
        self.report_closed(closed);
    }

    /// Closes the connection, with an error if it was not asked for.
    ///
    /// [`Event::Closed`] follows when the peer has answered or did not in time.
    pub fn close(&mut self, error: Option<Error>) -> Result<(), Gone> {
        match self.phase {
            Phase::Closing { .. } | Phase::Finished => Err(Gone),
            Phase::Open => {
                self.write_close(error.map(Box::new));
                Ok(())
            }
            _ => {
                self.phase = Phase::Finished;
                self.report_closed(Closed::Own);
                Ok(())
            }
        }
    }

    /// The transport ended; nothing can be read or written any more.
    pub fn transport_closed(&mut self) {
        self.phase = Phase::Finished;
        self.inbox = Bytes::new();
        self.report_closed(Closed::Transport);
    }

    /// Closes the connection because the peer broke a rule.
    pub(super) fn fail(&mut self, violation: Violation) {
        match self.phase {
            Phase::Open => self.write_close(Some(Box::new(violation.to_error()))),
            Phase::AwaitOpen => {
                // A close is only understood after an open.
                if matches!(self.side, Side::Server(_)) {
                    self.write_open();
                }
                self.write_close(Some(Box::new(violation.to_error())));
            }
            // Before the AMQP layer there is no frame to say it with.
            _ => self.phase = Phase::Finished,
        }
        self.inbox = Bytes::new();
        self.report_closed(Closed::Violation(violation));
    }

    fn write_close(&mut self, error: Option<Box<Error>>) {
        self.flush_all_accepted();
        wire::put_frame(&mut self.outbox, 0, &Close { error });
        self.phase = Phase::Closing { until: self.clocks.now().plus(self.limits.close_ms) };
    }
}
