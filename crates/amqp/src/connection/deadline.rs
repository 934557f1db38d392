//! The times that matter to a connection: the end of the handshake, the peer's silence, ours, and the last wait.

use super::event::Closed;
use super::handshake::Phase;
use super::time::Millis;
use super::violation::Violation;
use super::{Connection, wire};

/// What is measured in time.
#[derive(Debug)]
pub(super) struct Clocks {
    now: Millis,
    /// Until when both sides must have opened; none once they have.
    handshake_until: Option<Millis>,
    handshake_ms: u64,
    heard_at: Millis,
    /// How long the peer may be silent.
    silence_ms: Option<u64>,
    wrote_at: Millis,
    /// How long we may be silent.
    heartbeat_ms: Option<u64>,
}

impl Clocks {
    pub(super) fn new(idle_time_out_ms: Option<u32>, handshake_ms: u64, now: Millis) -> Self {
        Self {
            now,
            handshake_until: Some(now.plus(handshake_ms)),
            handshake_ms,
            heard_at: now,
            silence_ms: idle_time_out_ms.filter(|limit| *limit > 0).map(u64::from),
            wrote_at: now,
            heartbeat_ms: None,
        }
    }

    /// The latest time we were told.
    pub(super) fn now(&self) -> Millis {
        self.now
    }

    pub(super) fn advance(&mut self, now: Millis) {
        self.now = self.now.max(now);
    }

    pub(super) fn heard(&mut self) {
        self.heard_at = self.now;
    }

    /// Output was taken. The time may be a little old, which makes the next heartbeat early and never late.
    pub(super) fn wrote(&mut self) {
        self.wrote_at = self.now;
    }

    /// Both sides have opened, and the peer gives us up after this time.
    pub(super) fn opened(&mut self, peer_idle_time_out_ms: Option<u32>, heartbeat_ms_min: u64) {
        self.handshake_until = None;
        self.heartbeat_ms = peer_idle_time_out_ms
            .filter(|limit| *limit > 0)
            .map(|limit| (u64::from(limit) / 2).max(heartbeat_ms_min));
    }

    fn silent_at(&self) -> Option<Millis> {
        Some(self.heard_at.plus(self.silence_ms?))
    }

    fn heartbeat_at(&self) -> Option<Millis> {
        Some(self.wrote_at.plus(self.heartbeat_ms?))
    }
}

impl Connection {
    /// When [`Connection::on_time`] has something to do, if nothing happens before.
    pub fn next_deadline(&self) -> Option<Millis> {
        match self.phase {
            Phase::Finished => None,
            Phase::Closing { until } => Some(until),
            Phase::Open => self.clocks.silent_at().into_iter().chain(self.clocks.heartbeat_at()).min(),
            _ => self.clocks.handshake_until,
        }
    }

    /// Does what is due at `now`.
    pub fn on_time(&mut self, now: Millis) {
        self.clocks.advance(now);
        match self.phase {
            Phase::Finished => {}
            Phase::Closing { until } => {
                if now >= until {
                    self.phase = Phase::Finished;
                    self.report_closed(Closed::Own);
                }
            }
            Phase::Open => {
                if let Some(limit_ms) = self.clocks.silence_ms
                    && self.clocks.silent_at().is_some_and(|silent_at| now >= silent_at)
                {
                    self.fail(Violation::Silent { limit_ms });
                } else if self.clocks.heartbeat_at().is_some_and(|due| now >= due) {
                    // With output waiting the transport is at work or stuck; more bytes help in neither case.
                    if self.outbox.pending() == 0 {
                        wire::put_heartbeat(&mut self.outbox);
                    }
                    self.clocks.wrote();
                }
            }
            _ => {
                if self.clocks.handshake_until.is_some_and(|until| now >= until) {
                    let limit_ms = self.clocks.handshake_ms;
                    self.phase = Phase::Finished;
                    self.report_closed(Closed::Violation(Violation::HandshakeTimeout { limit_ms }));
                }
            }
        }
    }
}
