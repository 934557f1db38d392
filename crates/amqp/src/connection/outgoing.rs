//! Transfers out: credit, window, and cutting messages into frames.

use bytes::Bytes;

use super::event::{LinkId, SessionId};
use super::handshake::Phase;
use super::link::{Direction, LinkEntry, LinkState};
use super::outbox::Outbox;
use super::serial::Serial;
use super::session::{Backlog, SessionState};
use super::transfer_head::TransferHead;
use super::window::Windows;
use super::{Connection, FrameLimit};
use crate::encode::Encode;
use crate::encode::patch_u32;
use crate::frame::{FRAME_TYPE_AMQP, begin_frame};
use crate::performative::{DeliveryState, DeliveryTag, Transfer};

/// A delivery to send.
#[derive(Debug, Clone)]
pub struct Outgoing<'a> {
    /// Its name on the link; with Service Bus, the lock token.
    pub tag: DeliveryTag,
    /// What the payload is.
    pub message_format: u32,
    /// Whether we forget it at once; then no outcome comes back.
    pub settled: bool,
    /// Its state at our end, such as the transaction it belongs to.
    pub state: Option<DeliveryState>,
    /// The first part of the payload: sections that were made for this delivery.
    pub head: &'a [u8],
    /// The rest of the payload: sections as they were stored. Not copied if large.
    pub tail: &'a Bytes,
    /// The caller's own name for the delivery, handed back with its outcome.
    pub key: u128,
}

/// Why a delivery was not sent. Nothing was written for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The link is gone, not attached, or one we receive on.
    #[error("link is gone or cannot send")]
    Gone,
    /// The receiver has given no credit.
    #[error("link has no credit")]
    NoCredit,
    /// The peer's session window is closed; [`super::Event::WindowOpened`] will tell when it opens.
    #[error("session window is closed")]
    WindowClosed,
    /// Too many deliveries wait for their outcome.
    #[error("session has {limit} unsettled deliveries, the most allowed")]
    UnsettledFull {
        /// The most allowed.
        limit: u32,
    },
    /// The peer does not read what we have written; take output first.
    #[error("output holds {limit} bytes, the most allowed")]
    OutputFull {
        /// The most allowed.
        limit: usize,
    },
}

impl Connection {
    /// Sends a delivery and returns its id.
    ///
    /// If the peer's window closes in the middle of it, the rest is kept and follows when the window opens; until
    /// then further sends on the session are refused.
    #[inline]
    pub fn send(&mut self, link: LinkId, outgoing: &Outgoing<'_>) -> Result<Serial, SendError> {
        self.send_from(link, outgoing, 0)
    }

    /// Sends a delivery of whose tail only what begins at `from` is wanted. The same as to send it with a slice of the
    /// tail, without making one: the memory of a stored message is shared with others, and counting on it costs more than
    /// most of what happens here.
    #[inline]
    pub fn send_from(
        &mut self,
        link: LinkId,
        outgoing: &Outgoing<'_>,
        from: usize,
    ) -> Result<Serial, SendError> {
        let from = from.min(outgoing.tail.len());
        let limit = self.limits.output_bytes_max;
        if self.outbox.pending() >= limit {
            return Err(SendError::OutputFull { limit });
        }
        let limit = self.stage().unsettled_max;
        let slot = link.0.slot;
        let Some(LinkEntry::Live(link)) = self.links.find_mut(link.0) else { return Err(SendError::Gone) };
        let Direction::Sending(credit) = &mut link.flow else { return Err(SendError::Gone) };
        let Some(session) = self.sessions.get_mut(link.session) else { return Err(SendError::Gone) };
        if link.state != LinkState::Attached
            || session.state != SessionState::Begun
            || self.phase != Phase::Open
        {
            return Err(SendError::Gone);
        }
        if credit.available() == 0 {
            return Err(SendError::NoCredit);
        }
        if session.backlog.is_some() || session.windows.outgoing() == 0 {
            session.window_awaited = true;
            return Err(SendError::WindowClosed);
        }
        let delivery = session.next_delivery;
        if !outgoing.settled {
            let full = session.sent.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
            if full || session.sent.push(delivery, slot, outgoing.key).is_err() {
                return Err(SendError::UnsettledFull { limit });
            }
            link.unsettled = link.unsettled.saturating_add(1);
        }
        credit.take();
        session.next_delivery = delivery.next();
        let head = TransferHead {
            channel: session.own_channel,
            handle: link.own_handle,
            delivery: delivery.get(),
            tag: outgoing.tag,
            message_format: outgoing.message_format,
            settled: outgoing.settled,
        };
        let payload = outgoing.head.len().saturating_add(outgoing.tail.len()).saturating_sub(from);
        let limit = usize::try_from(self.peer_frame.bytes()).unwrap_or(usize::MAX);
        if outgoing.state.is_none() && head.length().saturating_add(payload) <= limit {
            session.windows.take_outgoing();
            head.write(self.outbox.buffer(), payload);
            self.outbox.put(outgoing.head);
            self.outbox.put_payload(outgoing.tail, from, outgoing.tail.len());
            return Ok(delivery);
        }
        let tail = outgoing.tail.slice(from..);
        let transfer = Transfer {
            handle: link.own_handle,
            delivery_id: Some(delivery.get()),
            delivery_tag: Some(outgoing.tag),
            message_format: Some(outgoing.message_format),
            settled: Some(outgoing.settled),
            state: outgoing.state.clone(),
            ..Transfer::default()
        };
        let frames = Frames { channel: session.own_channel, limit: self.peer_frame };
        let written = frames.write(&mut self.outbox, &mut session.windows, transfer, outgoing.head, &tail);
        if let Some((head, tail_from)) = written {
            session.backlog = Some(Backlog {
                link: slot,
                own_handle: link.own_handle,
                delivery,
                message_format: outgoing.message_format,
                settled: outgoing.settled,
                head: Bytes::copy_from_slice(outgoing.head.get(head..).unwrap_or_default()),
                tail: tail.slice(tail_from..),
            });
        }
        Ok(delivery)
    }

    /// Writes as much of a waiting delivery as the peer's window takes now.
    pub(super) fn continue_backlog(&mut self, session_slot: u32) {
        let Some(id) = self.sessions.key(session_slot).map(SessionId) else { return };
        let Some(session) = self.sessions.get_mut(session_slot) else { return };
        if let Some(mut backlog) = session.backlog.take() {
            let transfer = Transfer {
                handle: backlog.own_handle,
                delivery_id: Some(backlog.delivery.get()),
                message_format: Some(backlog.message_format),
                settled: Some(backlog.settled),
                ..Transfer::default()
            };
            let frames = Frames { channel: session.own_channel, limit: self.peer_frame };
            let rest =
                frames.write(&mut self.outbox, &mut session.windows, transfer, &backlog.head, &backlog.tail);
            if let Some((head, tail)) = rest {
                backlog.head = backlog.head.slice(head..);
                backlog.tail = backlog.tail.slice(tail..);
                session.backlog = Some(backlog);
            }
        }
        Self::announce_window(session, id, &mut self.events);
    }

    /// Transfer frames the peer's session takes now; zero if the link is gone.
    pub fn window(&self, link: LinkId) -> u32 {
        let slot = self.links.resolve(link.0);
        match slot.and_then(|slot| self.links.get(slot)) {
            Some(LinkEntry::Live(link)) => self
                .sessions
                .get(link.session)
                .map_or(0, |session| if session.backlog.is_some() { 0 } else { session.windows.outgoing() }),
            _ => 0,
        }
    }
}

/// Where the frames of a delivery go, and how large they may be.
struct Frames {
    channel: u16,
    limit: FrameLimit,
}

impl Frames {
    /// Writes the payload in as many frames as it needs and the window takes. Returns where in head and tail the
    /// rest begins, if there is one.
    #[inline]
    fn write(
        &self,
        outbox: &mut Outbox,
        windows: &mut Windows,
        mut transfer: Transfer,
        head: &[u8],
        tail: &Bytes,
    ) -> Option<(usize, usize)> {
        let total = head.len().saturating_add(tail.len());
        let limit = usize::try_from(self.limit.bytes()).unwrap_or(usize::MAX);
        let mut from = 0usize;
        loop {
            if !windows.take_outgoing() {
                return Some((from.min(head.len()), from.saturating_sub(head.len())));
            }
            let buffer = outbox.buffer();
            let start = begin_frame(buffer, FRAME_TYPE_AMQP, self.channel);
            transfer.encode(buffer);
            let mut room = limit.saturating_sub(buffer.len().saturating_sub(start));
            let left = total.saturating_sub(from);
            if left > room {
                // Written again, since a frame with `more` may be larger and is rare.
                buffer.truncate(start);
                transfer.more = true;
                let _ = begin_frame(buffer, FRAME_TYPE_AMQP, self.channel);
                transfer.encode(buffer);
                transfer.more = false;
                // A frame of 512 bytes always has room behind a transfer; one byte at least, so that the loop ends.
                room = limit.saturating_sub(buffer.len().saturating_sub(start)).max(1);
            }
            let part = left.min(room);
            let to = from.saturating_add(part);
            let size = buffer.len().saturating_sub(start).saturating_add(part);
            patch_u32(buffer, start, u32::try_from(size).unwrap_or(u32::MAX));
            put_part(outbox, head, tail, from, to);
            if to >= total {
                return None;
            }
            from = to;
            transfer.delivery_tag = None;
            transfer.state = None;
        }
    }
}

/// Appends the bytes `from..to` of head and tail taken as one.
#[inline]
fn put_part(outbox: &mut Outbox, head: &[u8], tail: &Bytes, from: usize, to: usize) {
    if let Some(part) = head.get(from..to.min(head.len())) {
        outbox.put(part);
    }
    let tail_from = from.saturating_sub(head.len());
    let tail_to = to.saturating_sub(head.len());
    if tail_to > tail_from {
        outbox.put_payload(tail, tail_from, tail_to);
    }
}
