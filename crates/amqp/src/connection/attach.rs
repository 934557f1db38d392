//! Attach: asking for links, answering, and being answered.

use super::admission::{Admission, Permit};
use super::event::{AttachRequest, Event, LinkId, SessionId};
use super::handshake::Phase;
use super::link::{Direction, Leaving, Link, LinkEntry, LinkState};
use super::receive::Fault;
use super::session::SessionState;
use super::violation::Violation;
use super::{Connection, Gone, wire};
use crate::performative::{
    Attach, Error, ReceiverSettleMode, Role, SenderSettleMode, Source, Symbols, TargetNode,
};
use crate::text::Text;
use crate::value::Map;

/// How the layer above answers an attach. Name, role and settle modes are the peer's own, echoed by the engine.
///
/// A peer takes a link as attached only with both termini set; echo those it sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttachReply {
    /// Where messages come from.
    pub source: Option<Source>,
    /// Where messages go.
    pub target: Option<TargetNode>,
    /// The largest message we take on this link; it also bounds what the engine puts together.
    pub max_message_size: Option<u64>,
    /// Extensions we support.
    pub offered_capabilities: Option<Symbols>,
    /// Link properties.
    pub properties: Option<Map>,
}

/// A link of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnAttach {
    /// Its name, unique per role in the session.
    pub name: Text,
    /// Our role.
    pub role: Role,
    /// How we want deliveries to be settled by the sending end.
    pub snd_settle_mode: Option<SenderSettleMode>,
    /// How we want deliveries to be settled by the receiving end.
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    /// Where messages come from.
    pub source: Option<Source>,
    /// Where messages go.
    pub target: Option<TargetNode>,
    /// The largest message we take.
    pub max_message_size: Option<u64>,
    /// Link properties.
    pub properties: Option<Map>,
}

impl OwnAttach {
    /// A link with a name and a role, all else null.
    pub fn new(name: impl Into<Text>, role: Role) -> Self {
        Self {
            name: name.into(),
            role,
            snd_settle_mode: None,
            rcv_settle_mode: None,
            source: None,
            target: None,
            max_message_size: None,
            properties: None,
        }
    }
}

/// What is told about a link when it is put into the tables.
struct NewLink {
    session: u32,
    name: Text,
    own_role: Role,
    own_handle: u32,
    peer_handle: Option<u32>,
    state: LinkState,
    initial_delivery_count: u32,
    snd_settle_mode: Option<SenderSettleMode>,
    rcv_settle_mode: Option<ReceiverSettleMode>,
    permit: Permit,
}

impl Connection {
    /// Asks for a link. [`Event::Attached`] or [`Event::LinkEnded`] follows.
    pub fn attach(&mut self, session: SessionId, attach: OwnAttach) -> Result<LinkId, Gone> {
        let slot = self.sessions.resolve(session.0).ok_or(Gone)?;
        let may_write = self.may_write_frames();
        let session = self.sessions.get_mut(slot).ok_or(Gone)?;
        let name = (attach.role.into(), attach.name.clone());
        if !may_write || session.state == SessionState::Ending || session.names.contains_key(&name) {
            return Err(Gone);
        }
        let own_handle = session.own_handles.take(session.peer_handle_max).ok_or(Gone)?;
        let request = Attach {
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            source: attach.source,
            target: attach.target,
            initial_delivery_count: (attach.role == Role::Sender).then_some(0),
            max_message_size: attach.max_message_size,
            properties: attach.properties,
            ..Attach::new(attach.name.clone(), own_handle, attach.role)
        };
        wire::put_frame(&mut self.outbox, session.own_channel, &request);
        let link = self.add_link(NewLink {
            session: slot,
            name: attach.name,
            own_role: attach.role,
            own_handle,
            peer_handle: None,
            state: LinkState::Asking,
            initial_delivery_count: 0,
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            permit: Admission::own(),
        });
        self.limit_messages(link, attach.max_message_size);
        self.links.key(link).map(LinkId).ok_or(Gone)
    }

    /// Attaches a link the peer asked for.
    pub fn accept_attach(&mut self, link: LinkId, reply: AttachReply) -> Result<(), Gone> {
        let slot = self.asked(link)?;
        self.limit_messages(slot, reply.max_message_size);
        let Some(LinkEntry::Live(entry)) = self.links.get_mut(slot) else { return Err(Gone) };
        entry.state = LinkState::Attached;
        let mut answer = answer_to(entry);
        answer.source = reply.source;
        answer.target = reply.target;
        answer.max_message_size = reply.max_message_size;
        answer.offered_capabilities = reply.offered_capabilities;
        answer.properties = reply.properties;
        // Python writes its flow right behind the attach; the credit was kept until it can be used.
        if let Direction::Sending(credit) = &entry.flow
            && (credit.available() > 0 || credit.drain())
        {
            self.events.push_back(Event::Credit { link, credit: credit.available(), drain: credit.drain() });
        }
        let session = self.sessions.get(entry.session).ok_or(Gone)?;
        wire::put_frame(&mut self.outbox, session.own_channel, &answer);
        Ok(())
    }

    /// Refuses a link the peer asked for: an attach without termini and a detach with the error, in one output.
    pub fn refuse_attach(&mut self, link: LinkId, error: Error) -> Result<(), Gone> {
        let slot = self.asked(link)?;
        self.write_refusal(slot, Some(Box::new(error)));
        self.leave(slot, false);
        Ok(())
    }

    /// The slot of a link that waits for our answer.
    fn asked(&self, link: LinkId) -> Result<u32, Gone> {
        let slot = self.links.resolve(link.0).ok_or(Gone)?;
        match self.links.get(slot) {
            Some(LinkEntry::Live(entry)) if entry.state == LinkState::Asked && self.phase == Phase::Open => {
                Ok(slot)
            }
            _ => Err(Gone),
        }
    }

    /// Writes an attach without termini and a closing detach for a link that waits for our answer.
    pub(super) fn write_refusal(&mut self, slot: u32, error: Option<Box<Error>>) {
        let Some(LinkEntry::Live(entry)) = self.links.get(slot) else { return };
        let Some(session) = self.sessions.get(entry.session) else { return };
        wire::put_frame(&mut self.outbox, session.own_channel, &answer_to(entry));
        wire::put_frame(
            &mut self.outbox,
            session.own_channel,
            &crate::performative::Detach { handle: entry.own_handle, closed: true, error },
        );
    }

    pub(super) fn on_attach(&mut self, channel: u16, attach: Attach) -> Result<(), Fault> {
        let Some(slot) = self.session_of(channel)? else { return Ok(()) };
        let (handle, limit) = (attach.handle, self.limits.handle_max);
        if handle > limit {
            return Err(Violation::HandleTooHigh { handle, limit }.into());
        }
        let (length, limit) = (attach.name.len(), self.limits.link_name_bytes_max);
        if length > limit {
            return Err(Violation::LinkNameTooLong { length, limit }.into());
        }
        let Some(session) = self.sessions.get(slot) else { return Ok(()) };
        if session.handles.get(handle).is_some() {
            return Err(Fault::Session(slot, Violation::HandleInUse { handle }));
        }
        let own_role = attach.role.opposite();
        let namesake = session.names.get(&(own_role.into(), attach.name.clone())).copied();
        if let Some(namesake) = namesake {
            let unanswered = match self.links.get(namesake) {
                Some(LinkEntry::Live(link)) => link.state == LinkState::Asking,
                Some(LinkEntry::Leaving(_)) => true,
                None => false,
            };
            if unanswered {
                self.on_answer(slot, namesake, attach);
                return Ok(());
            }
            // AMQP 1.0 2.6.1: a second attach of the same name takes the link from the first.
            self.expel_link(namesake, Violation::Stolen);
        }
        self.on_request(slot, attach)
    }

    /// The peer answers an attach of ours.
    fn on_answer(&mut self, session_slot: u32, slot: u32, attach: Attach) {
        let Some(session) = self.sessions.get_mut(session_slot) else { return };
        session.handles.insert(attach.handle, slot);
        match self.links.get_mut(slot) {
            Some(LinkEntry::Leaving(leaving)) => {
                // We changed our mind before the answer came; its detach will follow.
                leaving.peer_handle = Some(attach.handle);
                if let Some((role, name)) = leaving.unanswered.take() {
                    session.names.remove(&(role.into(), name));
                }
            }
            Some(LinkEntry::Live(link)) => {
                link.peer_handle = Some(attach.handle);
                let refused = match link.flow.own_role() {
                    Role::Sender => attach.target.is_none(),
                    Role::Receiver => attach.source.is_none(),
                };
                if refused {
                    link.state = LinkState::Refused;
                    return;
                }
                link.state = LinkState::Attached;
                if let Direction::Receiving(_) = link.flow {
                    link.flow = Direction::new(Role::Receiver, attach.initial_delivery_count.unwrap_or(0));
                }
                if let Some(key) = self.links.key(slot) {
                    self.events.push_back(Event::Attached { link: LinkId(key), answer: Box::new(attach) });
                }
            }
            None => {}
        }
    }

    /// The peer asks for a link.
    fn on_request(&mut self, session_slot: u32, attach: Attach) -> Result<(), Fault> {
        self.spend_churn()?;
        let limit = self.stage().links_max;
        let places = usize::try_from(limit.saturating_mul(2)).unwrap_or(usize::MAX);
        if self.links.len() >= places {
            return Err(Violation::TooManyLinks { limit }.into());
        }
        let Some(session) = self.sessions.get_mut(session_slot) else { return Ok(()) };
        let Some(own_handle) = session.own_handles.take(session.peer_handle_max) else {
            return Err(
                Violation::HandleTooHigh { handle: attach.handle, limit: session.peer_handle_max }.into()
            );
        };
        let permit = match self.admission.admit(&attach) {
            Some(permit) if self.links_live < limit => permit,
            Some(_) => {
                self.turn_away(session_slot, own_handle, &attach, &Violation::TooManyLinks { limit });
                return Ok(());
            }
            None => {
                self.turn_away(session_slot, own_handle, &attach, &Violation::Unauthorized);
                return Ok(());
            }
        };
        let link = self.add_link(NewLink {
            session: session_slot,
            name: attach.name.detached(),
            own_role: attach.role.opposite(),
            own_handle,
            peer_handle: Some(attach.handle),
            state: LinkState::Asked,
            initial_delivery_count: match attach.role {
                Role::Sender => attach.initial_delivery_count.unwrap_or(0),
                Role::Receiver => 0,
            },
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            permit,
        });
        let (Some(link), Some(session)) = (self.links.key(link), self.sessions.key(session_slot)) else {
            return Ok(());
        };
        let request = AttachRequest { link: LinkId(link), session: SessionId(session), attach };
        self.events.push_back(Event::Attach(Box::new(request)));
        Ok(())
    }

    /// Refuses an attach that the layer above does not get to see.
    fn turn_away(&mut self, session_slot: u32, own_handle: u32, attach: &Attach, violation: &Violation) {
        let leaving = Leaving {
            session: session_slot,
            own_handle,
            peer_handle: Some(attach.handle),
            unanswered: None,
            report: false,
        };
        let key = self.links.insert(LinkEntry::Leaving(leaving));
        let Some(session) = self.sessions.get_mut(session_slot) else { return };
        session.handles.insert(attach.handle, key.slot);
        session.links.insert(key.slot);
        let role = attach.role.opposite();
        let mut answer = Attach::new(attach.name.clone(), own_handle, role);
        answer.snd_settle_mode = attach.snd_settle_mode;
        answer.rcv_settle_mode = attach.rcv_settle_mode;
        answer.initial_delivery_count = (role == Role::Sender).then_some(0);
        wire::put_frame(&mut self.outbox, session.own_channel, &answer);
        wire::put_frame(
            &mut self.outbox,
            session.own_channel,
            &crate::performative::Detach {
                handle: own_handle,
                closed: true,
                error: Some(Box::new(violation.to_error())),
            },
        );
    }

    fn add_link(&mut self, new: NewLink) -> u32 {
        let name = (new.own_role.into(), new.name.clone());
        let link = Link {
            session: new.session,
            name: new.name,
            own_handle: new.own_handle,
            peer_handle: new.peer_handle,
            state: new.state,
            flow: Direction::new(new.own_role, new.initial_delivery_count),
            snd_settle_mode: new.snd_settle_mode,
            rcv_settle_mode: new.rcv_settle_mode,
            message_bytes_max: self.stage().message_bytes_max,
            unsettled: 0,
            assembly: None,
            _permit: new.permit,
        };
        let slot = self.links.insert(LinkEntry::Live(Box::new(link))).slot;
        self.links_live = self.links_live.saturating_add(1);
        if let Some(session) = self.sessions.get_mut(new.session) {
            session.names.insert(name, slot);
            session.links.insert(slot);
            if let Some(handle) = new.peer_handle {
                session.handles.insert(handle, slot);
            }
        }
        slot
    }

    /// Bounds the messages of a link by what was announced for it, within the connection's limit.
    fn limit_messages(&mut self, slot: u32, announced: Option<u64>) {
        let limit = self.stage().message_bytes_max;
        if let Some(LinkEntry::Live(link)) = self.links.get_mut(slot) {
            link.message_bytes_max =
                announced.filter(|bytes| *bytes > 0).map_or(limit, |bytes| bytes.min(limit));
        }
    }
}

/// Our side of an attach the peer asked for, without termini.
fn answer_to(link: &Link) -> Attach {
    let role = link.flow.own_role();
    Attach {
        // go-amqp fails unless it finds the modes it asked for.
        snd_settle_mode: link.snd_settle_mode,
        rcv_settle_mode: link.rcv_settle_mode,
        initial_delivery_count: (role == Role::Sender).then_some(0),
        ..Attach::new(link.name.clone(), link.own_handle, role)
    }
}
