//! Detach: links that end, by either side.

use super::event::{Event, LinkEnding, LinkId, SessionId};
use super::handshake::Phase;
use super::link::{Leaving, LinkEntry, LinkState};
use super::receive::Fault;
use super::violation::Violation;
use super::{Connection, Gone, wire};
use crate::performative::{Detach, Error, Role};

/// What the layer above still expects to hear of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Nothing,
    Cancelled,
    Ended,
}

impl Connection {
    /// Detaches a link of either side. [`Event::LinkEnded`] follows when the peer has answered; until then what
    /// still arrives on the link is dropped.
    ///
    /// A link that the peer asked for and that was not answered is refused instead, without an event.
    pub fn detach(&mut self, link: LinkId, closed: bool, error: Option<Error>) -> Result<(), Gone> {
        let slot = self.links.resolve(link.0).ok_or(Gone)?;
        let Some(LinkEntry::Live(entry)) = self.links.get(slot) else { return Err(Gone) };
        if !self.may_write_frames() || matches!(entry.state, LinkState::Departing { .. }) {
            return Err(Gone);
        }
        if entry.state == LinkState::Asked {
            self.write_refusal(slot, error.map(Box::new));
            self.leave(slot, false);
            return Ok(());
        }
        self.write_detach(slot, closed, error.map(Box::new));
        self.leave(slot, true);
        Ok(())
    }

    /// Detaches a link because the peer broke a rule on it.
    pub(super) fn expel_link(&mut self, slot: u32, violation: Violation) {
        let Some(key) = self.links.key(slot) else { return };
        let Some(LinkEntry::Live(entry)) = self.links.get(slot) else { return };
        let link = LinkId(key);
        if entry.state == LinkState::Asked {
            self.write_refusal(slot, Some(Box::new(violation.to_error())));
            self.events.push_back(Event::AttachCancelled { link });
        } else {
            self.write_detach(slot, true, Some(Box::new(violation.to_error())));
            self.events.push_back(Event::LinkEnded { link, ending: LinkEnding::Violation(violation) });
        }
        self.leave(slot, false);
    }

    pub(super) fn on_detach(&mut self, channel: u16, detach: Detach) -> Result<(), Fault> {
        let Some(session_slot) = self.session_of(channel)? else { return Ok(()) };
        let handle = detach.handle;
        let slot = self.sessions.get(session_slot).and_then(|session| session.handles.get(handle));
        let Some(slot) = slot else {
            return Err(Fault::Session(session_slot, Violation::UnattachedHandle { handle }));
        };
        let id = self.links.key(slot).map(LinkId);
        if self.waits_for_answers(slot, detach.closed) {
            let ending = LinkEnding::Peer { closed: detach.closed, error: detach.error };
            self.events.extend(id.map(|link| Event::LinkEnded { link, ending }));
            return Ok(());
        }
        let ended = match self.links.get(slot) {
            Some(LinkEntry::Leaving(leaving)) => leaving.report.then_some(LinkEnding::Own),
            Some(LinkEntry::Live(link)) if link.state == LinkState::Asked => {
                self.write_refusal(slot, None);
                if let Some(link) = id {
                    self.events.push_back(Event::AttachCancelled { link });
                }
                None
            }
            Some(LinkEntry::Live(link)) if matches!(link.state, LinkState::Departing { .. }) => {
                return Err(Fault::Session(session_slot, Violation::UnattachedHandle { handle }));
            }
            Some(LinkEntry::Live(_)) => {
                self.write_detach(slot, detach.closed, None);
                Some(LinkEnding::Peer { closed: detach.closed, error: detach.error })
            }
            None => None,
        };
        self.remove_link(slot);
        if let (Some(ending), Some(link)) = (ended, id) {
            self.events.push_back(Event::LinkEnded { link, ending });
        }
        Ok(())
    }

    /// Keeps a link that the peer detaches until the outcomes it told for our deliveries are answered, because
    /// clients wait for the answers and give them up with the link. Whether there are any.
    fn waits_for_answers(&mut self, slot: u32, closed: bool) -> bool {
        let Some(LinkEntry::Live(link)) = self.links.get_mut(slot) else { return false };
        if link.state != LinkState::Attached || link.flow.own_role() != Role::Sender {
            return false;
        }
        let Some(session) = self.sessions.get_mut(link.session) else { return false };
        let owed = session.sent.keep_decided(slot);
        link.unsettled = u32::try_from(owed).unwrap_or(u32::MAX);
        if owed > 0 {
            link.state = LinkState::Departing { closed };
        }
        owed > 0
    }

    /// Answers the detach of a link once nothing is owed to the peer on it any more.
    pub(super) fn depart(&mut self, slot: u32) {
        if let Some(LinkEntry::Live(link)) = self.links.get(slot)
            && let LinkState::Departing { closed } = link.state
            && link.unsettled == 0
        {
            self.write_detach(slot, closed, None);
            self.remove_link(slot);
        }
    }

    /// Writes a detach; outcomes of the link's deliveries go before it.
    fn write_detach(&mut self, slot: u32, closed: bool, error: Option<Box<Error>>) {
        let Some(LinkEntry::Live(link)) = self.links.get(slot) else { return };
        let (session, handle) = (link.session, link.own_handle);
        self.flush_accepted(session);
        let Some(session) = self.sessions.get(session) else { return };
        wire::put_frame(&mut self.outbox, session.own_channel, &Detach { handle, closed, error });
    }

    /// Forgets a link whose detach is written, all but its handles, which the peer still uses.
    pub(super) fn leave(&mut self, slot: u32, report: bool) {
        self.forget_deliveries(slot);
        let Some(entry) = self.links.get_mut(slot) else { return };
        let LinkEntry::Live(link) = entry else { return };
        let unanswered = (link.state == LinkState::Asking).then(|| (link.flow.own_role(), link.name.clone()));
        let name = (link.flow.own_role().into(), link.name.clone());
        let leaving = Leaving {
            session: link.session,
            own_handle: link.own_handle,
            peer_handle: link.peer_handle,
            unanswered,
            report,
        };
        if leaving.unanswered.is_none()
            && let Some(session) = self.sessions.get_mut(link.session)
        {
            session.names.remove(&name);
        }
        *entry = LinkEntry::Leaving(leaving);
        self.links_live = self.links_live.saturating_sub(1);
    }

    /// Takes a link out of all tables. Returns what the layer above still expects to hear of it.
    pub(super) fn remove_link(&mut self, slot: u32) -> Expected {
        self.forget_deliveries(slot);
        let Some(entry) = self.links.remove(slot) else { return Expected::Nothing };
        let (session, own_handle, peer_handle, name, expected) = match entry {
            LinkEntry::Live(link) => {
                self.links_live = self.links_live.saturating_sub(1);
                let expected = match link.state {
                    LinkState::Asked => Expected::Cancelled,
                    // The layer above has heard of its end already.
                    LinkState::Departing { .. } => Expected::Nothing,
                    _ => Expected::Ended,
                };
                let name = (link.flow.own_role(), link.name);
                (link.session, link.own_handle, link.peer_handle, Some(name), expected)
            }
            LinkEntry::Leaving(leaving) => {
                let expected = if leaving.report { Expected::Ended } else { Expected::Nothing };
                (leaving.session, leaving.own_handle, leaving.peer_handle, leaving.unanswered, expected)
            }
        };
        if let Some(session) = self.sessions.get_mut(session) {
            session.links.remove(&slot);
            session.own_handles.give_back(own_handle);
            if let Some(handle) = peer_handle {
                session.handles.remove(handle);
            }
            if let Some((role, name)) = name {
                session.names.remove(&(role.into(), name));
            }
        }
        expected
    }

    /// Forgets what a link has unsettled, unfinished or unsent.
    fn forget_deliveries(&mut self, slot: u32) {
        let Some(LinkEntry::Live(link)) = self.links.get_mut(slot) else { return };
        if let Some(assembly) = link.assembly.take() {
            let bytes = u64::try_from(assembly.payload.len()).unwrap_or(u64::MAX);
            self.assembly_bytes = self.assembly_bytes.saturating_sub(bytes);
        }
        let Some(session_id) = self.sessions.key(link.session).map(SessionId) else { return };
        let Some(session) = self.sessions.get_mut(link.session) else { return };
        if session.backlog.as_ref().is_some_and(|backlog| backlog.link == slot) {
            session.backlog = None;
            Self::announce_window(session, session_id, &mut self.events);
        }
        if link.unsettled > 0 {
            link.unsettled = 0;
            match link.flow.own_role() {
                Role::Sender => session.sent.forget_link(slot),
                Role::Receiver => session.received.forget_link(slot),
            }
        }
    }

    /// Whether the link is attached, both ways.
    pub fn is_attached(&self, link: LinkId) -> bool {
        let entry = self.links.resolve(link.0).and_then(|slot| self.links.get(slot));
        matches!(entry, Some(LinkEntry::Live(link)) if link.state == LinkState::Attached && self.phase == Phase::Open)
    }
}
