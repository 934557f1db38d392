//! Begin and end: sessions on channels.

use super::detach::Expected;
use super::event::{Event, LinkEnding, LinkId, SessionId};
use super::handshake::{Phase, Side};
use super::receive::Fault;
use super::session::{Session, SessionState};
use super::violation::Violation;
use super::{Connection, Gone, wire};
use crate::performative::{Begin, End, Error};

/// The window we claim for our own transfers. We obey the peer's; ours limits nothing.
pub(super) const OUTGOING_WINDOW: u32 = 0x7fff_ffff;

impl Connection {
    /// Begins a session of ours. Links can be attached to it at once; the peer's answer is not waited for.
    pub fn begin(&mut self) -> Result<SessionId, Gone> {
        if !self.may_write_frames() {
            return Err(Gone);
        }
        let slot = self.add_session(true).ok_or(Gone)?;
        self.write_begin(slot, None);
        self.sessions.key(slot).map(SessionId).ok_or(Gone)
    }

    /// Ends a session. Its links end with it; [`Event::SessionEnded`] follows the peer's answer if it was ours.
    pub fn end(&mut self, session: SessionId, error: Option<Error>) -> Result<(), Gone> {
        let slot = self.sessions.resolve(session.0).ok_or(Gone)?;
        let state = self.sessions.get(slot).map(|session| session.state);
        if self.phase != Phase::Open || state == Some(SessionState::Ending) {
            return Err(Gone);
        }
        self.write_end(slot, error.map(Box::new), &LinkEnding::Session);
        Ok(())
    }

    /// The session of a channel of the peer's, unless we have ended it and only wait for the peer's end.
    #[inline]
    pub(super) fn session_of(&self, channel: u16) -> Result<Option<u32>, Fault> {
        let slot = self.channels.get(u32::from(channel)).ok_or(Violation::UnknownChannel { channel })?;
        let ending = self.sessions.get(slot).is_none_or(|session| session.state == SessionState::Ending);
        Ok((!ending).then_some(slot))
    }

    pub(super) fn on_begin(&mut self, channel: u16, begin: &Begin) -> Result<(), Fault> {
        let limit = self.limits.channel_max;
        if channel > limit {
            return Err(Violation::ChannelTooHigh { channel, limit }.into());
        }
        if self.channels.get(u32::from(channel)).is_some() {
            return Err(Violation::ChannelInUse { channel }.into());
        }
        let slot = match begin.remote_channel {
            Some(ours) => self.answered_session(ours).ok_or(Violation::ChannelInUse { channel })?,
            None => self.admit_session()?,
        };
        self.channels.insert(u32::from(channel), slot);
        if let Some(session) = self.sessions.get_mut(slot) {
            session.peer_channel = Some(channel);
            session.peer_handle_max = begin.handle_max.unwrap_or(u32::MAX);
            session.windows.on_begin(begin.next_outgoing_id, begin.incoming_window);
            if session.state == SessionState::Beginning {
                session.state = SessionState::Begun;
            }
        }
        if begin.remote_channel.is_none() {
            self.write_begin(slot, Some(channel));
        }
        Ok(())
    }

    /// A session we began on this channel and the peer has not answered.
    fn answered_session(&self, own_channel: u16) -> Option<u32> {
        let slot = *self.by_own_channel.get(&own_channel)?;
        self.sessions.get(slot).filter(|session| session.peer_channel.is_none()).map(|_| slot)
    }

    fn admit_session(&mut self) -> Result<u32, Violation> {
        self.spend_churn()?;
        let limit = self.stage().sessions_max;
        if self.sessions.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Err(Violation::TooManySessions { limit });
        }
        self.add_session(false).ok_or(Violation::TooManySessions { limit: u32::from(self.peer_channel_max) })
    }

    /// Takes one begin or attach out of the peer's budget.
    pub(super) fn spend_churn(&mut self) -> Result<(), Violation> {
        let now = self.clocks.now();
        if self.churn.take(now) {
            return Ok(());
        }
        let limit = self.stage().churn;
        Err(Violation::Churn { burst: limit.burst, per_second: limit.per_second })
    }

    fn add_session(&mut self, own: bool) -> Option<u32> {
        let own_channel = u16::try_from(self.own_channels.take(u32::from(self.peer_channel_max))?).ok()?;
        let key = self.sessions.insert(Session::new(own_channel, own, self.limits.incoming_window));
        self.by_own_channel.insert(own_channel, key.slot);
        Some(key.slot)
    }

    fn write_begin(&mut self, slot: u32, remote_channel: Option<u16>) {
        let Some(session) = self.sessions.get(slot) else { return };
        let begin = Begin {
            remote_channel,
            next_outgoing_id: session.windows.next_outgoing().get(),
            incoming_window: session.windows.incoming(),
            outgoing_window: OUTGOING_WINDOW,
            handle_max: Some(self.limits.handle_max),
            ..Begin::default()
        };
        wire::put_frame(&mut self.outbox, session.own_channel, &begin);
    }

    pub(super) fn on_end(&mut self, channel: u16, end: End) -> Result<(), Fault> {
        let slot = self.channels.get(u32::from(channel)).ok_or(Violation::UnknownChannel { channel })?;
        let Some(session) = self.sessions.get(slot) else { return Ok(()) };
        let own = session.own;
        let asked_by_us = session.state == SessionState::Ending;
        let id = self.sessions.key(slot).map(SessionId);
        if !asked_by_us {
            self.flush_accepted(slot);
            self.drop_links(slot, &LinkEnding::Session);
            if let Some(session) = self.sessions.get(slot) {
                wire::put_frame(&mut self.outbox, session.own_channel, &End { error: None });
            }
        }
        self.remove_session(slot);
        if let (true, Some(session)) = (own, id) {
            self.events.push_back(Event::SessionEnded { session, error: end.error });
        }
        Ok(())
    }

    /// Ends a session because the peer broke a rule in it.
    pub(super) fn expel_session(&mut self, slot: u32, violation: &Violation) {
        self.write_end(slot, Some(Box::new(violation.to_error())), &LinkEnding::Violation(violation.clone()));
    }

    fn write_end(&mut self, slot: u32, error: Option<Box<Error>>, ending: &LinkEnding) {
        self.flush_accepted(slot);
        self.drop_links(slot, ending);
        if let Some(session) = self.sessions.get_mut(slot) {
            session.state = SessionState::Ending;
            wire::put_frame(&mut self.outbox, session.own_channel, &End { error });
        }
    }

    /// Takes all links of a session out of the tables and reports each.
    fn drop_links(&mut self, slot: u32, ending: &LinkEnding) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        for link in std::mem::take(&mut session.links) {
            let Some(id) = self.links.key(link).map(LinkId) else { continue };
            match self.remove_link(link) {
                Expected::Nothing => {}
                Expected::Cancelled => self.events.push_back(Event::AttachCancelled { link: id }),
                Expected::Ended => {
                    self.events.push_back(Event::LinkEnded { link: id, ending: ending.clone() });
                }
            }
        }
    }

    fn remove_session(&mut self, slot: u32) {
        let Some(session) = self.sessions.remove(slot) else { return };
        if let Some(channel) = session.peer_channel {
            self.channels.remove(u32::from(channel));
        }
        self.by_own_channel.remove(&session.own_channel);
        self.own_channels.give_back(u32::from(session.own_channel));
        if session.listed {
            self.unflushed.retain(|listed| *listed != slot);
        }
    }

    /// Whether frames of ours make sense to the peer: our open is written and our close is not.
    pub(super) fn may_write_frames(&self) -> bool {
        match self.phase {
            Phase::Open | Phase::ClientAmqpHeader => true,
            Phase::AwaitOpen => matches!(self.side, Side::Client(_)),
            _ => false,
        }
    }
}
