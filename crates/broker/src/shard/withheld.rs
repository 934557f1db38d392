//! Requests that wait until the ring has room again.
//!
//! Messages can come in faster than old ones move from the ring into extents. That is no reason to refuse
//! them: whoever sends them is made to wait, and is slowed down by that. Everybody else goes on, and so do
//! settlements of others, which help. A connection keeps its order: what it asks after a request that
//! waits, waits too.

use super::peer::PeerId;
use crate::api::Request;
use std::collections::{BTreeMap, VecDeque};
use vorrang_engine::{Span, Timestamp};

/// Requests that may wait; beyond it nothing is taken from the inbox, which then fills and holds up
/// everybody.
const REQUESTS_MAX: usize = 16_384;
/// Bytes of messages that may wait, with the same effect.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long the ring may have no room before requests are refused after all: emptying it takes seconds, so
/// something is wrong.
const PATIENCE: Span = Span::seconds(30);
/// How soon to look again whether there is room.
const LOOK_AGAIN: Span = Span(10);

/// What waits, in the order it came.
#[derive(Debug, Default)]
pub(super) struct Withheld {
    requests: VecDeque<(PeerId, Request)>,
    /// How many of them are whose.
    peers: BTreeMap<PeerId, usize>,
    bytes: usize,
    /// Since when the ring has had no room.
    since: Option<Timestamp>,
}

impl Withheld {
    /// Notes whether the ring has room now.
    pub(super) fn look(&mut self, now: Timestamp, has_room: bool) {
        if has_room {
            self.since = None;
        } else {
            self.since.get_or_insert(now);
        }
    }

    /// Whether what needs room should wait for it.
    pub(super) fn is_worth_it(&self, now: Timestamp) -> bool {
        self.since.is_some_and(|since| now.since(since) < PATIENCE)
    }

    /// Whether something of this connection waits.
    pub(super) fn holds(&self, peer: PeerId) -> bool {
        self.peers.contains_key(&peer)
    }

    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= REQUESTS_MAX || self.bytes >= BYTES_MAX
    }

    pub(super) fn push(&mut self, peer: PeerId, request: Request) {
        self.bytes = self.bytes.saturating_add(request.operation.bytes());
        let count = self.peers.entry(peer).or_default();
        *count = count.saturating_add(1);
        self.requests.push_back((peer, request));
    }

    /// The next one, unless its connection has to wait for something else.
    pub(super) fn pop_unless(&mut self, waits: impl Fn(PeerId) -> bool) -> Option<(PeerId, Request)> {
        let (peer, request) = self.requests.pop_front_if(|(peer, _)| !waits(*peer))?;
        self.bytes = self.bytes.saturating_sub(request.operation.bytes());
        if let Some(count) = self.peers.get_mut(&peer) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.peers.remove(&peer);
            }
        }
        Some((peer, request))
    }

    /// A connection is over: nobody waits for what it asked.
    pub(super) fn forget(&mut self, peer: PeerId) {
        if self.peers.remove(&peer).is_some() {
            self.requests.retain(|(other, _)| *other != peer);
            self.bytes = self.requests.iter().map(|(_, request)| request.operation.bytes()).sum();
        }
    }

    /// When to look again, if anything waits: at once if it is not for room.
    pub(super) fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        let pause = if self.is_worth_it(now) { LOOK_AGAIN } else { Span(0) };
        (!self.requests.is_empty()).then(|| now.after(pause))
    }
}
