//! Everything the driver knows: the connection if there is one, the links, and who waits for what.
//!
//! The desk makes no system calls and never waits. It takes commands and the engine's events, and answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;
use vorrang_amqp::connection::{Closed, Connection, Event, LinkEnding, LinkId, Millis, SessionId};

use super::Setup;
use super::claims::Claims;
use super::command::{Command, Farewell, LinkKey, OpenLink, OpenRole, Opened, Reply};
use super::establish::reason;
use super::link::{Link, ReceivingLink, Role, SendingLink, Stage};
use super::nodes::Nodes;
use super::slab::Slab;
use crate::backoff::Attempts;
use crate::error::{Error, Gravity};

/// Links of one client. One more is refused with [`Error::Limit`]; the broker's own limit is of the same order.
const LINKS_MAX: usize = 4_000;
/// The pause before a link is tried again that could not be asked for.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The state of a driver.
pub(super) struct Desk {
    pub(super) setup: Arc<Setup>,
    pub(super) live: Option<Live>,
    pub(super) links: Slab<Link>,
    generation: u32,
    names: u64,
    /// Senders with something to send.
    pub(super) ready: Vec<u32>,
    /// Senders that wait for room in the window or the output.
    pub(super) blocked: Vec<u32>,
    /// Receivers that got deliveries and may want more.
    pub(super) hungry: Vec<u32>,
    pub(super) nodes: Nodes,
    /// When the next link is to be tried again.
    retry_at: Option<Instant>,
    /// Why there has been no connection for so long that nobody shall wait for one.
    down: Option<Error>,
    closing: Option<Closing>,
}

/// A connection that is open.
pub(super) struct Live {
    pub(super) amqp: Connection,
    /// Whose the engine's links are, by their place.
    owners: Vec<Option<(LinkId, Owner)>>,
    pub(super) claims: Claims,
    /// The session of `$cbs` and `$management`.
    pub(super) node_session: Option<SessionId>,
    /// Why it ended, once it has.
    pub(super) ended: Option<Error>,
}

/// Whose a link of the engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Link(u32),
    Requests(u32),
    Responses(u32),
}

/// The client is to end.
struct Closing {
    replies: Vec<Reply<()>>,
    /// When it ends whatever is under way.
    until: Instant,
    said: bool,
}

impl Live {
    pub(super) fn own(&mut self, link: LinkId, owner: Owner) {
        let place = usize::try_from(link.place()).unwrap_or(usize::MAX);
        if self.owners.len() <= place {
            self.owners.resize(place.saturating_add(1), None);
        }
        if let Some(entry) = self.owners.get_mut(place) {
            *entry = Some((link, owner));
        }
    }

    fn owner(&self, link: LinkId) -> Option<Owner> {
        let place = usize::try_from(link.place()).ok()?;
        let (known, owner) = (*self.owners.get(place)?)?;
        (known == link).then_some(owner)
    }

    pub(super) fn disown(&mut self, link: LinkId) {
        let place = usize::try_from(link.place()).unwrap_or(usize::MAX);
        if let Some(entry) = self.owners.get_mut(place)
            && entry.is_some_and(|(known, _)| known == link)
        {
            *entry = None;
        }
    }
}

impl Desk {
    pub(super) fn new(setup: Arc<Setup>) -> Self {
        Desk {
            nodes: Nodes::new(),
            setup,
            live: None,
            links: Slab::new(),
            generation: 0,
            names: 0,
            ready: Vec::new(),
            blocked: Vec::new(),
            hungry: Vec::new(),
            retry_at: None,
            down: None,
            closing: None,
        }
    }

    /// The engine, if there is a connection.
    pub(super) fn live(&mut self) -> Option<&mut Connection> {
        self.live.as_mut().map(|live| &mut live.amqp)
    }

    /// A connection is open: every link is attached, every request sent.
    pub(super) fn connected(&mut self, amqp: Connection) {
        self.down = None;
        self.live = Some(Live {
            amqp,
            owners: Vec::new(),
            claims: Claims::default(),
            node_session: None,
            ended: None,
        });
        // The coordinator needs no token of its own, but it needs some; it comes after those who ask for theirs.
        let (own, any): (Vec<u32>, Vec<u32>) = self
            .links
            .places()
            .into_iter()
            .partition(|slot| self.links.get(*slot).is_some_and(|link| !link.audiences.is_empty()));
        for slot in own.into_iter().chain(any) {
            self.try_attach(slot);
        }
        self.nodes_connected();
    }

    /// The connection is gone: what was under way ends in doubt, the rest waits for the next one.
    pub(super) fn lost(&mut self, reason: &Error) {
        self.live = None;
        self.ready.clear();
        self.blocked.clear();
        self.hungry.clear();
        for slot in self.links.places() {
            self.interrupt(slot);
            let Some(link) = self.links.get_mut(slot) else { continue };
            if matches!(link.stage, Stage::Ended(_)) {
                continue;
            }
            if let Some(reply) = link.detaching.take() {
                // Whoever waited may have given up.
                let _ = reply.send(Ok(()));
                self.links.remove(slot);
            } else if link.recover || link.opening.is_some() {
                link.stage = Stage::Waiting { until: None };
            } else {
                let text = format!("the session ended with the connection: {reason}");
                self.end_link(slot, Error::SessionLockLost(text.into()));
            }
        }
        self.nodes_lost();
    }

    /// There has been no connection for long: nobody who waits for one shall wait longer.
    pub(super) fn give_up(&mut self, error: &Error) {
        if self.down.is_none() {
            debug!(%error, "operations fail until there is a connection again");
        }
        self.down = Some(error.clone());
        for slot in self.links.places() {
            self.fail_queue(slot, error);
            if self.links.get_mut(slot).is_some_and(|link| link.opening.is_some()) {
                self.end_link(slot, error.clone());
            }
        }
        self.nodes_fail(error);
    }

    /// Trying to connect again is useless.
    pub(super) fn end_all(&mut self, error: &Error) {
        for slot in self.links.places() {
            self.end_link(slot, error.clone());
        }
        self.nodes_fail(error);
    }

    /// The last act.
    pub(super) fn finish(&mut self) {
        self.end_all(&Error::Closed);
        for reply in self.closing.take().into_iter().flat_map(|closing| closing.replies) {
            // Whoever waited may have given up.
            let _ = reply.send(Ok(()));
        }
    }

    /// The error for operations that cannot wait for a connection.
    pub(super) fn refusal(&self) -> Option<Error> {
        if self.closing.is_some() { Some(Error::Closed) } else { self.down.clone() }
    }

    pub(super) fn command(&mut self, command: Command) {
        match command {
            Command::Send(item) => self.send(item),
            Command::Settle { delivery, state, reply } => self.settle_one(delivery, state, reply),
            Command::SettleAll { deliveries, state, reply } => self.settle_all(&deliveries, &state, &reply),
            Command::Credit { link, more } => self.add_credit(link, more),
            Command::Drain { link, reply } => self.drain(link, reply),
            Command::Resume { link } => self.resume(link),
            Command::Open(open) => self.open(*open),
            Command::Detach { link, fetched, reply } => {
                self.receiver_gone(link, &fetched);
                self.detach(link, Some(reply));
            }
            Command::Request(request) => self.request(*request),
            Command::Close { reply } => self.close(Some(reply), super::FAREWELL_MAX),
        }
    }

    pub(super) fn farewell(&mut self, farewell: Farewell) {
        match farewell {
            Farewell::Receiver { link, fetched } => self.receiver_gone(link, &fetched),
            Farewell::Link { link } => self.detach(link, None),
            Farewell::Transaction { coordinator, id } => self.roll_back(coordinator, id),
        }
    }

    /// The link under a key, if it is still that one.
    pub(super) fn link(&mut self, key: LinkKey) -> Option<&mut Link> {
        self.links.get_mut(key.slot).filter(|link| link.generation == key.generation)
    }

    fn open(&mut self, open: OpenLink) {
        let OpenLink { attach, audiences, role, recover, reply } = open;
        let refusal = self.refusal();
        let full = self.links.len() >= LINKS_MAX;
        if let Some(error) = refusal.or(full.then_some(Error::Limit { what: "links", limit: LINKS_MAX })) {
            // Whoever waited may have given up.
            let _ = reply.send(Err(error));
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        let role = match role {
            OpenRole::Sender { shared } => Role::Sender(SendingLink::new(shared)),
            OpenRole::Receiver { shared, prefetch, arrivals } => {
                Role::Receiver(ReceivingLink::new(shared, prefetch, arrivals))
            }
        };
        let slot = self.links.insert(Link {
            generation: self.generation,
            attach,
            audiences,
            recover,
            stage: Stage::Waiting { until: None },
            attempts: Attempts::default(),
            role,
            opening: Some(reply),
            detaching: None,
        });
        self.try_attach(slot);
    }

    /// Attaches a link if there is a connection and a token for it; asks for tokens that are missing.
    pub(super) fn try_attach(&mut self, slot: u32) {
        let Some(audiences) = self.links.get_mut(slot).and_then(|link| {
            matches!(link.stage, Stage::Waiting { .. } | Stage::Claiming).then(|| link.audiences.clone())
        }) else {
            return;
        };
        if self.live.is_none() {
            return;
        }
        let held = if audiences.is_empty() { self.any_claim_held() } else { self.claims_held(&audiences) };
        if !held {
            if let Some(link) = self.links.get_mut(slot) {
                link.stage = Stage::Claiming;
            }
            return;
        }
        self.names = self.names.wrapping_add(1);
        let name = format!("{}:{}", self.setup.container, self.names);
        let (Some(live), Some(link)) = (&mut self.live, self.links.get_mut(slot)) else { return };
        let mut attach = link.attach.clone();
        attach.name = name.into();
        let attached =
            live.amqp.begin().and_then(|session| Ok((session, live.amqp.attach(session, attach)?)));
        match attached {
            Ok((session, id)) => {
                live.own(id, Owner::Link(slot));
                link.stage = Stage::Attaching { session, link: id };
            }
            // The connection is about to end; the next one will do.
            Err(_) => self.retry_later(slot, RETRY_PAUSE),
        }
    }

    fn attached(&mut self, slot: u32, answer: Box<vorrang_amqp::performative::Attach>) {
        let Some(link) = self.links.get_mut(slot) else { return };
        let Stage::Attaching { session, link: id } = link.stage else { return };
        link.stage = Stage::Attached { session, link: id };
        link.attempts.reset();
        let key = LinkKey { slot, generation: link.generation };
        if link.opening.as_ref().is_some_and(Reply::is_closed) {
            // The caller gave up waiting: nobody would ever use what comes on this link.
            self.detach(key, None);
            return;
        }
        let opening = link.opening.take();
        self.role_attached(slot, &answer);
        if let Some(reply) = opening
            && reply.send(Ok(Opened { link: key, answer })).is_err()
        {
            self.detach(key, None);
        }
    }

    fn role_attached(&mut self, slot: u32, answer: &vorrang_amqp::performative::Attach) {
        match self.links.get_mut(slot).map(|link| &link.role) {
            Some(Role::Sender(_)) => self.sender_attached(slot, answer),
            Some(Role::Receiver(_)) => self.receiver_attached(slot, answer),
            None => {}
        }
    }

    /// Detaches a link for its owner.
    pub(super) fn detach(&mut self, key: LinkKey, reply: Option<Reply<()>>) {
        let Some(link) = self.link(key) else {
            // It is gone already. Whoever waited may have given up.
            reply.map(|reply| reply.send(Ok(())));
            return;
        };
        link.recover = false;
        if let Role::Receiver(receiver) = &mut link.role
            && receiver.leaving
            && reply.is_none()
        {
            // What is on its way is given back first; the end of the drain detaches.
            receiver.abandoned = true;
            return;
        }
        let engine_link = match link.stage {
            Stage::Attaching { link, .. } | Stage::Attached { link, .. } => Some(link),
            _ => None,
        };
        let detached = match (&mut self.live, engine_link) {
            (Some(live), Some(id)) => live.amqp.detach(id, true, None).is_ok(),
            _ => false,
        };
        self.interrupt(key.slot);
        if detached {
            if let Some(link) = self.link(key) {
                link.detaching = reply;
                link.opening = None;
            }
        } else {
            self.end_link(key.slot, Error::Closed);
            self.links.remove(key.slot);
            reply.map(|reply| reply.send(Ok(())));
        }
    }

    /// A link ended without our wish.
    pub(super) fn link_lost(&mut self, slot: u32, error: Error) {
        self.interrupt(slot);
        let (retry, closing) = (self.setup.retry, self.closing.is_some());
        let Some(link) = self.links.get_mut(slot) else { return };
        let again = link.recover && link.opening.is_none() && error.gravity() == Gravity::Passing;
        if again && !closing {
            debug!(%error, "link lost, attaching again");
            // The first attempt after a working link is made at once, others after a pause.
            let pause = link.attempts.next_pause(&retry);
            self.retry_later(slot, pause);
        } else if !link.recover && link.opening.is_none() && error.gravity() == Gravity::Passing {
            // Nothing is wrong but that the session has to be accepted again, as when the connection is lost.
            let text = format!("the session ended with its link: {error}");
            self.end_link(slot, Error::SessionLockLost(text.into()));
        } else {
            self.end_link(slot, error);
        }
    }

    fn retry_later(&mut self, slot: u32, pause: Duration) {
        let at = Instant::now() + pause;
        if let Some(link) = self.links.get_mut(slot) {
            link.stage = Stage::Waiting { until: Some(at) };
            self.retry_at = Some(self.retry_at.map_or(at, |earlier| earlier.min(at)));
        }
    }

    /// Ends a link for good: everybody who waits for it is told.
    pub(super) fn end_link(&mut self, slot: u32, error: Error) {
        self.interrupt(slot);
        self.fail_queue(slot, &error);
        let Some(link) = self.links.get_mut(slot) else { return };
        if matches!(link.stage, Stage::Ended(_)) {
            return;
        }
        if let Role::Receiver(receiver) = &mut link.role {
            receiver.end(error.clone());
        }
        link.stage = Stage::Ended(error.clone());
        if let Some(reply) = link.opening.take() {
            // Nobody has a handle of this link. Whoever waited may have given up.
            let _ = reply.send(Err(error));
            self.links.remove(slot);
        }
    }

    /// What was under way on a link ends in doubt.
    fn interrupt(&mut self, slot: u32) {
        match self.links.get_mut(slot).map(|link| &link.role) {
            Some(Role::Sender(_)) => self.interrupt_sender(slot),
            Some(Role::Receiver(_)) => self.interrupt_receiver(slot),
            None => {}
        }
    }

    /// Handles the engine's events, and does what they make possible.
    pub(super) fn settle_down(&mut self) {
        while let Some(event) = self.live.as_mut().and_then(|live| live.amqp.next_event()) {
            self.event(event);
        }
        self.feed_hungry();
        self.send_ready();
        self.close_when_done();
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Delivery(delivery) => match self.owner(delivery.link) {
                Some(Owner::Link(slot)) => self.arrived(slot, delivery),
                Some(Owner::Responses(node)) => self.responded(node, delivery),
                _ => {}
            },
            Event::Settlement(settlement) => match self.owner(settlement.link) {
                Some(Owner::Link(slot)) => self.settled(slot, &settlement),
                Some(Owner::Requests(_)) => self.requests_settled(&settlement),
                _ => {}
            },
            Event::Credit { link, drain, .. } => {
                match self.owner(link) {
                    Some(Owner::Link(slot)) => self.list(slot),
                    Some(Owner::Requests(node)) => self.send_requests(node),
                    _ => {}
                }
                if drain && let Some(live) = &mut self.live {
                    // A link that is gone needs no answer.
                    let _ = live.amqp.drained(link);
                }
            }
            Event::Attached { link, answer } => match self.owner(link) {
                Some(Owner::Link(slot)) => self.attached(slot, answer),
                Some(Owner::Requests(node) | Owner::Responses(node)) => self.node_attached(node, link),
                None => {}
            },
            Event::LinkEnded { link, ending } => self.link_ended(link, ending),
            Event::Drained { link } => {
                if let Some(Owner::Link(slot)) = self.owner(link) {
                    self.drained(slot);
                }
            }
            Event::TooLarge { link, delivery, settled, limit } => {
                self.too_large(link, delivery, settled, limit);
            }
            Event::WindowOpened { .. } => self.unblock(),
            Event::Closed(closed) => self.closed(&closed),
            // A client is asked for nothing, and its sessions end with their links.
            Event::Opened(_)
            | Event::Credentials(_)
            | Event::Attach(_)
            | Event::AttachCancelled { .. }
            | Event::SessionEnded { .. } => {}
        }
    }

    fn owner(&self, link: LinkId) -> Option<Owner> {
        self.live.as_ref()?.owner(link)
    }

    fn link_ended(&mut self, id: LinkId, ending: LinkEnding) {
        let Some(owner) = self.owner(id) else { return };
        if let Some(live) = &mut self.live {
            live.disown(id);
        }
        let error = match ending {
            LinkEnding::Peer { error, .. } => Error::from_amqp(error.as_deref()),
            LinkEnding::Own => Error::Closed,
            LinkEnding::Session => Error::from_condition("amqp:link:detach-forced", "its session ended"),
            LinkEnding::Violation(violation) => {
                Error::from_condition(violation.condition(), &violation.to_string())
            }
        };
        let slot = match owner {
            Owner::Link(slot) => slot,
            Owner::Requests(node) | Owner::Responses(node) => return self.node_ended(node, &error),
        };
        let Some(link) = self.links.get_mut(slot) else { return };
        if let (Stage::Attaching { session, .. } | Stage::Attached { session, .. }, Some(live)) =
            (&link.stage, &mut self.live)
        {
            // Each link has a session of its own. One that is gone needs no end.
            let _ = live.amqp.end(*session, None);
        }
        if error == Error::Closed {
            let reply = link.detaching.take();
            self.end_link(slot, Error::Closed);
            self.links.remove(slot);
            // Whoever waited may have given up.
            reply.map(|reply| reply.send(Ok(())));
        } else {
            self.link_lost(slot, error);
        }
    }

    fn closed(&mut self, closed: &Closed) {
        let error = reason(&self.setup, closed);
        if let Some(live) = &mut self.live {
            live.ended.get_or_insert(error);
        }
    }

    /// Why the connection is over, once it is.
    pub(super) fn ending(&self) -> Option<Error> {
        let live = self.live.as_ref()?;
        let finished = live.amqp.is_finished();
        finished.then(|| live.ended.clone().unwrap_or_else(|| self.unreachable("the connection ended")))
    }

    pub(super) fn unreachable(&self, reason: &str) -> Error {
        self.setup.route.unreachable(&reason)
    }

    pub(super) fn transport_closed(&mut self) {
        if let Some(live) = &mut self.live {
            live.amqp.transport_closed();
        }
        while let Some(event) = self.live.as_mut().and_then(|live| live.amqp.next_event()) {
            self.event(event);
        }
    }

    /// Whether the engine has room for what the peer's next frames may make it say.
    pub(super) fn may_read(&self) -> bool {
        self.live.as_ref().is_some_and(|live| !live.amqp.output_full())
    }

    pub(super) fn output_taken(&mut self) {
        self.unblock();
    }

    /// When something is due though nothing happens.
    pub(super) fn next_deadline(&self, started: Instant) -> Instant {
        let far = Instant::now() + Duration::from_hours(1);
        let protocol = self
            .live
            .as_ref()
            .and_then(|live| live.amqp.next_deadline())
            .map(|at| started + Duration::from_millis(at.0));
        let claims = self.live.as_ref().and_then(|live| live.claims.next_deadline());
        let closing = self.closing.as_ref().map(|closing| closing.until);
        [protocol, claims, closing, self.retry_at].into_iter().flatten().fold(far, Instant::min)
    }

    pub(super) fn on_time(&mut self, now: Millis) {
        if let Some(live) = &mut self.live {
            live.amqp.on_time(now);
        }
        let now = Instant::now();
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_due(now);
        }
        self.claims_on_time(now);
        if self.closing.as_ref().is_some_and(|closing| closing.until <= now && !closing.said) {
            self.say_goodbye();
        }
    }

    /// Attaches links whose pause is over.
    fn retry_due(&mut self, now: Instant) {
        self.retry_at = None;
        for slot in self.links.places() {
            let until = self.links.get(slot).and_then(|link| match link.stage {
                Stage::Waiting { until } => until,
                _ => None,
            });
            match until {
                Some(at) if at <= now => self.try_attach(slot),
                Some(at) => self.retry_at = Some(self.retry_at.map_or(at, |earlier| earlier.min(at))),
                None => {}
            }
        }
    }

    /// Ends the client once what is under way is answered, at the latest after `limit`.
    pub(super) fn close(&mut self, reply: Option<Reply<()>>, limit: Duration) {
        let until = Instant::now() + limit;
        let closing = self.closing.get_or_insert_with(|| Closing { replies: Vec::new(), until, said: false });
        closing.replies.extend(reply);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    fn close_when_done(&mut self) {
        if self.closing.as_ref().is_none_or(|closing| closing.said) {
            return;
        }
        let busy = self.links.iter().any(|link| match &link.role {
            Role::Sender(sender) => !sender.queue.is_empty() || !sender.in_flight.is_empty(),
            Role::Receiver(receiver) => !receiver.settling.is_empty(),
        });
        if !busy {
            self.say_goodbye();
        }
    }

    fn say_goodbye(&mut self) {
        if let Some(closing) = &mut self.closing {
            closing.said = true;
        }
        if let Some(live) = &mut self.live {
            // A connection that is ending already needs no close.
            let _ = live.amqp.close(None);
        }
    }
}
