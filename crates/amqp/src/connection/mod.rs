//! Connections, sessions, links and credit as one state machine over the codec's types.
//!
//! A [`Connection`] takes bytes and time and yields bytes, [`Event`]s and a deadline. It opens no socket, reads no
//! clock and calls nothing back. A shell around it does, for each wake-up:
//!
//! 1. read a large buffer and pass it to [`Connection::receive`];
//! 2. handle every event from [`Connection::next_event`], calling methods of the connection as it likes;
//! 3. write what [`Connection::take_output`] yields, with one vectored write;
//! 4. sleep until there is something to read, something to say, or [`Connection::next_deadline`] has come, and tell
//!    it to [`Connection::on_time`].
//!
//! What must stay true:
//!
//! - **A peer that is not authenticated reaches the open addresses and nothing else**: a link needs a permit, and
//!   `admission` is the only place that makes one.
//! - **Everything a peer can grow has a limit** in [`Limits`], and what happens there is written beside it.
//! - **Every call ends.** A peer's numbers never bound a loop, size an allocation or index a table unchecked.
//! - **One output per batch.** Replies gather until the shell takes them, and accepted deliveries become ranges.
//! - **Nothing follows our detach, end or close** on that handle, channel or connection.

mod admission;
mod attach;
mod churn;
mod config;
mod credit;
mod deadline;
mod detach;
mod disposition;
mod event;
mod flow;
pub mod fuzzing;
mod handshake;
mod incoming;
mod limits;
mod link;
mod numbers;
mod outbox;
mod outgoing;
mod receive;
mod runs;
mod sasl;
mod serial;
mod session;
mod sessions;
mod slots;
mod time;
mod transfer_head;
mod unsettled;
mod violation;
mod window;
mod wire;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

pub use attach::{AttachReply, OwnAttach};
pub use config::{ClientConfig, Login, Mechanism, ServerConfig};
pub use event::{
    AttachRequest, Closed, Credentials, Delivery, Event, LinkEnding, LinkId, SessionId, SettledDelivery,
    Settlement,
};
pub use limits::{ChurnLimit, FrameLimit, Limits, StageLimits};
pub use outgoing::{Outgoing, SendError};
pub use receive::Received;
pub use serial::Serial;
pub use time::Millis;
pub use violation::{Scope, Violation};

use admission::Admission;
use churn::Churn;
use deadline::Clocks;
use handshake::{Phase, Side};
use link::LinkEntry;
use numbers::{OwnNumbers, PeerNumbers};
use outbox::Outbox;
use session::Session;
use slots::Slots;

/// A session, link or delivery that the call names is gone, or not in a state for it.
///
/// Peers detach, end and close whenever they like, so this is no mistake of the caller: it has, or will get, the
/// event that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("link, session or delivery is gone or not in a state for this")]
pub struct Gone;

/// One AMQP connection.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    phase: Phase,
    limits: Limits,
    admission: Admission,
    churn: Churn,
    clocks: Clocks,
    /// The largest frame the peer takes from us.
    peer_frame: FrameLimit,
    peer_channel_max: u16,
    /// Complete frames that were taken from the input and not handled yet.
    inbox: Bytes,
    outbox: Outbox,
    events: VecDeque<Event>,
    closed_reported: bool,
    sessions: Slots<Session>,
    /// The peer's channels.
    channels: PeerNumbers,
    own_channels: OwnNumbers,
    /// Sessions by our channel, to find the one a begin answers.
    by_own_channel: BTreeMap<u16, u32>,
    links: Slots<LinkEntry>,
    /// Links that are not leaving.
    links_live: u32,
    /// Bytes in unfinished messages.
    assembly_bytes: u64,
    /// Sessions with something to say at the next output: accepted deliveries, or a window to open.
    unflushed: Vec<u32>,
}

impl Connection {
    /// The serving side of a connection that was accepted at `now`.
    pub fn server(config: ServerConfig, limits: Limits, now: Millis) -> Self {
        let addresses = config.open_addresses.clone();
        Self::new(
            Side::Server(config),
            Phase::ServerHeader,
            Admission::Unauthenticated { addresses },
            limits,
            now,
        )
    }

    /// The connecting side of a connection that was made at `now`. Its first bytes wait to be taken.
    pub fn client(config: ClientConfig, limits: Limits, now: Millis) -> Self {
        let mut connection =
            Self::new(Side::Client(config), Phase::ClientHeader, Admission::Authenticated, limits, now);
        connection.greet();
        connection
    }

    fn new(side: Side, phase: Phase, admission: Admission, limits: Limits, now: Millis) -> Self {
        let stage = limits.stage(admission.is_authenticated());
        Self {
            churn: Churn::new(stage.churn, now),
            clocks: Clocks::new(side.idle_time_out_ms(), limits.handshake_ms, now),
            side,
            phase,
            admission,
            peer_frame: FrameLimit::MIN,
            peer_channel_max: u16::MAX,
            inbox: Bytes::new(),
            outbox: Outbox::default(),
            events: VecDeque::new(),
            closed_reported: false,
            sessions: Slots::new(),
            channels: PeerNumbers::default(),
            own_channels: OwnNumbers::default(),
            by_own_channel: BTreeMap::new(),
            links: Slots::new(),
            links_live: 0,
            assembly_bytes: 0,
            unflushed: Vec::new(),
            limits,
        }
    }

    /// The oldest event that was not taken yet.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Moves everything that waits to be written to the end of `chunks`.
    ///
    /// Accepted deliveries become dispositions here, so the ranges span all that was settled since the last call.
    pub fn take_output(&mut self, chunks: &mut Vec<Bytes>) {
        self.flush_all_accepted();
        if self.outbox.pending() > 0 {
            self.clocks.wrote();
            self.outbox.take(chunks);
        }
    }

    /// Nothing is to be done for now: gives up memory that is only needed while there is.
    pub fn rest(&mut self) {
        self.outbox.rest();
    }

    /// Bytes that wait to be written.
    #[inline]
    pub fn output_pending(&self) -> usize {
        self.outbox.pending()
    }

    /// Whether [`Connection::send`] and the peer have to wait for output to be taken.
    #[inline]
    pub fn output_full(&self) -> bool {
        self.outbox.pending() >= self.limits.output_bytes_max
    }

    /// Whether there is nothing left to do but to write the last output and close the transport.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished)
    }

    /// Whether the peer has proven who it is.
    pub fn is_authenticated(&self) -> bool {
        self.admission.is_authenticated()
    }

    /// The peer has proven who it is: from now on it may attach anything, within the wider limits.
    pub fn authenticated(&mut self) {
        if !self.admission.is_authenticated() {
            self.admission = Admission::Authenticated;
            self.churn = Churn::new(self.limits.authenticated.churn, self.clocks.now());
        }
    }

    /// The limits in force.
    fn stage(&self) -> &StageLimits {
        self.limits.stage(self.admission.is_authenticated())
    }

    fn report_closed(&mut self, closed: Closed) {
        if !self.closed_reported {
            self.closed_reported = true;
            self.events.push_back(Event::Closed(closed));
        }
    }
}
