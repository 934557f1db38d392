//! One session: windows, numbers of its links, and unsettled deliveries both ways.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::numbers::{OwnNumbers, PeerNumbers};
use super::runs::Runs;
use super::serial::Serial;
use super::unsettled::{LinkSlot, Unsettled};
use super::window::Windows;
use crate::performative::Role;
use crate::text::Text;

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) own_channel: u16,
    pub(super) peer_channel: Option<u16>,
    pub(super) state: SessionState,
    /// Whether we began it.
    pub(super) own: bool,
    pub(super) windows: Windows,
    pub(super) peer_handle_max: u32,
    pub(super) handles: PeerNumbers,
    pub(super) own_handles: OwnNumbers,
    /// Links by our role and name. Names are unique per role, so both directions may share one.
    pub(super) names: BTreeMap<(RoleOrder, Text), LinkSlot>,
    pub(super) links: BTreeSet<LinkSlot>,
    /// The id of our next delivery. Counts deliveries, where the window counts frames.
    pub(super) next_delivery: Serial,
    pub(super) sent: Unsettled<u128>,
    pub(super) received: Unsettled<()>,
    pub(super) accepted: PendingAccepts,
    /// Whether the session stands in the connection's list of those with something to say.
    pub(super) listed: bool,
    /// The rest of a delivery that did not fit the peer's window; at most one.
    pub(super) backlog: Option<Backlog>,
    /// Whether a send was refused because of the window, so that its opening is news.
    pub(super) window_awaited: bool,
}

/// How far a session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionState {
    /// We began; the peer has not answered.
    Beginning,
    /// Both have begun.
    Begun,
    /// We ended; everything but the peer's end is dropped.
    Ending,
}

/// Accepted deliveries whose dispositions are written with the next output.
#[derive(Debug, Default)]
pub(super) struct PendingAccepts {
    pub(super) sent_settled: Runs,
    pub(super) received_settled: Runs,
    pub(super) received_unsettled: Runs,
}

/// A delivery of ours that waits for the peer's window in the middle.
#[derive(Debug)]
pub(super) struct Backlog {
    pub(super) link: LinkSlot,
    pub(super) own_handle: u32,
    pub(super) delivery: Serial,
    pub(super) message_format: u32,
    pub(super) settled: bool,
    pub(super) head: Bytes,
    pub(super) tail: Bytes,
}

/// A role that can be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RoleOrder {
    Sender,
    Receiver,
}

impl From<Role> for RoleOrder {
    fn from(role: Role) -> Self {
        match role {
            Role::Sender => Self::Sender,
            Role::Receiver => Self::Receiver,
        }
    }
}

impl Session {
    pub(super) fn new(own_channel: u16, own: bool, incoming_window: u32) -> Self {
        Self {
            own_channel,
            peer_channel: None,
            state: SessionState::Beginning,
            own,
            windows: Windows::new(FIRST_TRANSFER, incoming_window),
            peer_handle_max: u32::MAX,
            handles: PeerNumbers::default(),
            own_handles: OwnNumbers::default(),
            names: BTreeMap::new(),
            links: BTreeSet::new(),
            next_delivery: Serial::default(),
            sent: Unsettled::new(),
            received: Unsettled::new(),
            accepted: PendingAccepts::default(),
            listed: false,
            backlog: None,
            window_awaited: false,
        }
    }
}

/// The service begins its transfer ids at one.
const FIRST_TRANSFER: Serial = Serial::new(1);
