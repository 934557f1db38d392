//! Flow: windows of a session and credit of a link, in both directions (AMQP 1.0 2.7.4).
//!
//! Every flow we write carries all session fields, and with a handle all link fields: Python drops a link and rhea
//! computes nonsense when one is null.

use std::collections::VecDeque;

use super::event::{Event, LinkId, SessionId};
use super::handshake::Phase;
use super::link::{Direction, Link, LinkEntry, LinkState};
use super::receive::Fault;
use super::serial::Serial;
use super::session::Session;
use super::sessions::OUTGOING_WINDOW;
use super::{Connection, Gone, wire};
use crate::performative::{Flow, LinkFlow};

impl Connection {
    /// Allows the sender at the other end `credit` deliveries from now on, whatever was allowed before.
    pub fn grant(&mut self, link: LinkId, credit: u32) -> Result<(), Gone> {
        self.grant_with(link, Some(credit), false)
    }

    /// Asks the sender at the other end to use its credit or give it back. [`Event::Drained`] follows.
    pub fn drain(&mut self, link: LinkId) -> Result<(), Gone> {
        self.grant_with(link, None, true)
    }

    fn grant_with(&mut self, id: LinkId, amount: Option<u32>, drain: bool) -> Result<(), Gone> {
        let slot = self.attached(id)?;
        let Some(LinkEntry::Live(link)) = self.links.get_mut(slot) else { return Err(Gone) };
        let Direction::Receiving(credit) = &mut link.flow else { return Err(Gone) };
        credit.grant(amount.unwrap_or(credit.granted()), drain);
        self.write_link_flow(slot, false);
        Ok(())
    }

    /// Credit left on a link: what we may send, or what we have granted and the peer has not used.
    pub fn credit(&self, link: LinkId) -> Result<u32, Gone> {
        let slot = self.links.resolve(link.0).ok_or(Gone)?;
        match self.links.get(slot) {
            Some(LinkEntry::Live(link)) => Ok(match &link.flow {
                Direction::Sending(credit) => credit.available(),
                Direction::Receiving(credit) => credit.granted(),
            }),
            _ => Err(Gone),
        }
    }

    /// Answers a drain, after everything available was sent: the credit that is left is given back.
    ///
    /// The answer is written even if no credit is left; transfers may have crossed the drain. Nothing is written if
    /// the peer took the drain back by a later flow.
    pub fn drained(&mut self, link: LinkId) -> Result<(), Gone> {
        let slot = self.attached(link)?;
        let Some(LinkEntry::Live(link)) = self.links.get_mut(slot) else { return Err(Gone) };
        let Direction::Sending(credit) = &mut link.flow else { return Err(Gone) };
        if credit.drained() {
            self.write_link_flow(slot, true);
        }
        Ok(())
    }

    /// The slot of a link that is attached both ways, on a connection that is open.
    #[inline]
    pub(super) fn attached(&self, link: LinkId) -> Result<u32, Gone> {
        let slot = self.links.resolve(link.0).ok_or(Gone)?;
        match self.links.get(slot) {
            Some(LinkEntry::Live(link)) if link.state == LinkState::Attached && self.phase == Phase::Open => {
                Ok(slot)
            }
            _ => Err(Gone),
        }
    }

    pub(super) fn on_flow(&mut self, channel: u16, flow: &Flow) -> Result<(), Fault> {
        let Some(slot) = self.session_of(channel)? else { return Ok(()) };
        let Some(session) = self.sessions.get_mut(slot) else { return Ok(()) };
        session.windows.on_flow(flow.next_incoming_id, flow.incoming_window, flow.next_outgoing_id);
        let link = flow.link.as_ref().map(|link| (link, session.handles.get(link.handle)));
        self.continue_backlog(slot);
        match link {
            Some((link_flow, Some(link))) => self.on_link_flow(link, link_flow, flow.echo),
            None if flow.echo => self.write_session_flow(slot),
            // A link that is gone: the flow crossed its detach.
            Some((_, None)) | None => {}
        }
        Ok(())
    }

    fn on_link_flow(&mut self, slot: u32, flow: &LinkFlow, echo: bool) {
        let Some(id) = self.links.key(slot).map(LinkId) else { return };
        let Some(LinkEntry::Live(link)) = self.links.get_mut(slot) else { return };
        let attached = link.state == LinkState::Attached;
        let counted_from = flow.delivery_count.map(Serial::new);
        let mut answer = attached && echo;
        match &mut link.flow {
            Direction::Sending(credit) => {
                if let Some(amount) = flow.link_credit {
                    credit.on_flow(counted_from, amount, flow.drain);
                    if attached {
                        let event = Event::Credit { link: id, credit: credit.available(), drain: flow.drain };
                        self.events.push_back(event);
                    }
                    // The answer to a drain is the layer above's, after what it still sends.
                    answer &= !flow.drain;
                }
            }
            Direction::Receiving(credit) => {
                if attached && credit.on_flow(counted_from, flow.drain) {
                    self.events.push_back(Event::Drained { link: id });
                }
            }
        }
        if answer {
            self.write_link_flow(slot, false);
        }
    }

    /// Tells the peer about a session's windows, and opens ours fully.
    pub(super) fn write_session_flow(&mut self, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let flow = session_flow(session);
        wire::put_frame(&mut self.outbox, session.own_channel, &flow);
    }

    /// Tells the peer about a link's credit.
    fn write_link_flow(&mut self, slot: u32, drained: bool) {
        let Some(LinkEntry::Live(link)) = self.links.get(slot) else { return };
        let Some(session) = self.sessions.get_mut(link.session) else { return };
        let mut flow = session_flow(session);
        flow.link = Some(link_flow(link, drained));
        wire::put_frame(&mut self.outbox, session.own_channel, &flow);
    }

    /// Raises [`Event::WindowOpened`] if someone waits for it.
    pub(super) fn announce_window(session: &mut Session, id: SessionId, events: &mut VecDeque<Event>) {
        if session.window_awaited && session.backlog.is_none() && session.windows.outgoing() > 0 {
            session.window_awaited = false;
            events.push_back(Event::WindowOpened { session: id });
        }
    }
}

/// The session part of a flow. It opens our window, since it tells the peer of it anyway.
fn session_flow(session: &mut Session) -> Flow {
    session.windows.reopen();
    Flow {
        next_incoming_id: session.peer_channel.map(|_| session.windows.next_incoming().get()),
        incoming_window: session.windows.incoming(),
        next_outgoing_id: session.windows.next_outgoing().get(),
        outgoing_window: OUTGOING_WINDOW,
        ..Flow::default()
    }
}

fn link_flow(link: &Link, drained: bool) -> LinkFlow {
    let (delivery_count, credit, available, drain) = match &link.flow {
        Direction::Sending(credit) => (credit.delivery_count(), credit.available(), Some(0), drained),
        Direction::Receiving(credit) => (credit.delivery_count(), credit.granted(), None, credit.draining()),
    };
    LinkFlow {
        handle: link.own_handle,
        delivery_count: Some(delivery_count.get()),
        link_credit: Some(credit),
        available,
        drain,
    }
}
