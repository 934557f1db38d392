//! Large messages on their way into the log, a piece at a time.
//!
//! A decision is written whole, and one about a message of many megabytes would hold up everybody until the
//! disk has taken all of it. So the bytes of a large message go into the log before anything is decided about
//! it, a piece in each step beside what others ask for; the decision then only names the places. Whoever
//! sent it waits meanwhile, with all it asks after that. What becomes of the message is decided at the end;
//! pieces that nothing names in the end are as good as not written.

use super::peer::PeerId;
use super::regions::region_of;
use crate::api::{Operation, Request};
use bytes::Bytes;
use std::collections::VecDeque;
use vorrang_engine::{Location, Timestamp};
use vorrang_log::{Part, Region};

/// Bytes of messages that may be on their way; beyond it nothing more is taken from the inbox.
const BYTES_MAX: usize = 128 * 1024 * 1024;

/// A payload that lies in the log already: which one, the list of its records, and the first of them.
#[derive(Debug, Clone)]
pub(super) struct Ahead {
    bytes: Bytes,
    list: Vec<u8>,
    first: Location,
}

impl Ahead {
    /// The list and the first record, if it is of this very payload.
    pub(super) fn of(&self, payload: &Bytes) -> Option<(&[u8], Location)> {
        let same = (self.bytes.as_ptr(), self.bytes.len()) == (payload.as_ptr(), payload.len());
        same.then_some((&*self.list, self.first))
    }
}

/// A request with large messages.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) peer: PeerId,
    pub(super) request: Request,
    /// Until when it is permitted.
    pub(super) until: Timestamp,
    /// Payloads yet to be written, the next one last.
    left: Vec<Bytes>,
    /// How much of the next one is written.
    offset: usize,
    ahead: Vec<Ahead>,
    bytes: usize,
}

/// What is on its way, in the order it came.
#[derive(Debug, Default)]
pub(super) struct Staging {
    waiting: VecDeque<Staged>,
    bytes: usize,
}

/// The payloads of a request that are too large to be written at once.
pub(super) fn large(operation: &Operation, limit: usize) -> Vec<Bytes> {
    match operation {
        // What is part of a transaction is written when that is committed.
        Operation::Send { messages, transaction: None, .. } => {
            let payloads = messages.iter().rev().map(|message| &message.payload);
            payloads.filter(|payload| payload.len() > limit).cloned().collect()
        }
        _ => Vec::new(),
    }
}

impl Staging {
    pub(super) fn push(&mut self, peer: PeerId, request: Request, until: Timestamp, left: Vec<Bytes>) {
        let bytes = left.iter().map(Bytes::len).sum();
        self.bytes = self.bytes.saturating_add(bytes);
        let (offset, ahead) = (0, Vec::new());
        self.waiting.push_back(Staged { peer, request, until, left, offset, ahead, bytes });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    /// Whether a message of this connection is on its way. There are few.
    pub(super) fn holds(&self, peer: PeerId) -> bool {
        self.waiting.iter().any(|staged| staged.peer == peer)
    }

    /// The next piece of at most `max` bytes; none if the first request is complete or there is none.
    pub(super) fn piece(&self, max: usize) -> Option<Bytes> {
        let staged = self.waiting.front()?;
        let payload = staged.left.last()?;
        Some(payload.slice(staged.offset..payload.len().min(staged.offset.saturating_add(max))))
    }

    /// Notes that the next piece was written.
    pub(super) fn wrote(&mut self, piece: &Bytes, location: Location) {
        let Some(staged) = self.waiting.front_mut() else { return };
        let Some(payload) = staged.left.last() else { return };
        if staged.offset == 0 {
            staged.ahead.push(Ahead { bytes: payload.clone(), list: Vec::new(), first: location });
        }
        if let Some(ahead) = staged.ahead.last_mut() {
            let bytes = u32::try_from(piece.len()).expect("a record is far smaller than 4 GiB");
            Part { location: vorrang_log::Location::from_raw(location.0), bytes }.encode(&mut ahead.list);
        }
        staged.offset = staged.offset.saturating_add(piece.len());
        if staged.offset >= payload.len() {
            staged.left.pop();
            staged.offset = 0;
        }
    }

    /// The first request, if all of it is written, and where.
    pub(super) fn complete(&mut self) -> Option<(Staged, Vec<Ahead>)> {
        if !self.waiting.front().is_some_and(|staged| staged.left.is_empty()) {
            return None;
        }
        let mut staged = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(staged.bytes);
        let ahead = std::mem::take(&mut staged.ahead);
        Some((staged, ahead))
    }

    /// A connection is over: nobody waits for its messages.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.waiting.retain(|staged| staged.peer != peer);
        self.bytes = self.waiting.iter().map(|staged| staged.bytes).sum();
    }

    /// The first region that a piece lies in which nothing names yet.
    pub(super) fn first_region(&self) -> Option<Region> {
        let ahead = self.waiting.iter().flat_map(|staged| &staged.ahead);
        ahead.map(|ahead| region_of(ahead.first)).min()
    }
}
