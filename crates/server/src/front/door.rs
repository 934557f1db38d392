//! One client's connection, without its socket: AMQP events in, requests out, answers back.
//!
//! The shell (see [`super::connection`]) reads and writes bytes and moves requests and answers; every
//! decision about what a client may see or has to be told is made here, on plain values, so that it
//! can be tested without a network.

use std::sync::Arc;
use std::time::Duration;

use tracing::debug;
use vorrang_amqp::connection::{
    Connection, Credentials, Event as Amqp, Limits, LinkEnding, LinkId, Millis, ServerConfig, SessionId,
};
use vorrang_amqp::encode::Sheet;
use vorrang_amqp::performative::Error;
use vorrang_broker::access::{Action, Principal, authorise};
use vorrang_broker::api::{Event, Link, Operation, Request, Tag};
use vorrang_broker::shard::Broker;
use vorrang_engine::Timestamp;
use vorrang_log::Sweep;

use super::attach::{Plan, Ready};
use super::condition;
use super::coordinator::Discharging;
use super::links::{Entry, Links, Role};
use super::management::Waiting;
use super::order::Order;
use super::passing::Passing;
use super::pending::{Quick, Slow};
use super::sending::Sending;
use super::settling::Settling;
use crate::registry::{Entered, Registry};
use crate::telemetry::Spans;

/// Requests of one connection that may wait for an answer; while more do, nothing is read from it.
const WAITING_MAX: usize = 20_000;

/// What all connections share.
#[derive(Debug)]
pub struct Shared {
    /// Our name in `open`.
    pub container: String,
    /// Bounds of a connection.
    pub limits: Limits,
    /// How long a client may be silent.
    pub silence_max: Duration,
    /// Everything behind the front.
    pub broker: Broker,
    /// Who is connected.
    pub registry: Arc<Registry>,
    /// Who is told of deliveries that belong to a trace.
    pub spans: Option<Arc<Spans>>,
}

/// The time, on both clocks the front needs.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// A clock that never goes back, for the protocol's own time-outs.
    pub steady: Millis,
    /// Wall time, for tokens.
    pub wall: Timestamp,
}

/// One client's connection.
pub struct Door {
    pub(super) shared: Arc<Shared>,
    /// The connection's place among all others.
    pub(super) entered: Entered,
    pub(super) amqp: Connection,
    pub(super) links: Links,
    pub(super) quick: Quick<Answering>,
    pub(super) slow: Slow<Expecting>,
    /// Attaches that are not answered yet.
    pub(super) order: Order<SessionId, LinkId, Ready>,
    pub(super) requests: Vec<Request>,
    pub(super) principal: Arc<Principal>,
    /// Scratch for the sections written in front of deliveries.
    pub(super) head: Sheet,
    /// Where the deliveries that are read from the disk have come to.
    pub(super) sweep: Sweep,
    pub(super) passing: Passing,
    next_number: u32,
    principal_changed: bool,
    claims_due: Option<Timestamp>,
}

/// What a quick answer is for.
#[derive(Debug)]
pub(super) enum Answering {
    /// A delivery a client sent.
    Send(Sending),
    /// Deliveries a client settled.
    Settle(Box<Settling>),
}

/// What a slow answer is for.
#[derive(Debug)]
pub(super) enum Expecting {
    /// A link to attach.
    Attach(Box<Plan>),
    /// A request to a `$management` node.
    Management(Box<Waiting>),
    /// A transaction to begin or end.
    Transaction(Discharging),
}

impl Door {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(shared: Arc<Shared>, entered: Entered, now: Now) -> Door {
        let config = ServerConfig {
            idle_time_out_ms: u32::try_from(shared.silence_max.as_millis()).ok(),
            ..ServerConfig::new(shared.container.as_str())
        };
        let amqp = Connection::server(config, shared.limits.clone(), now.steady);
        Door {
            shared,
            entered,
            amqp,
            links: Links::default(),
            quick: Quick::new(),
            slow: Slow::new(),
            order: Order::new(),
            requests: Vec::new(),
            principal: Arc::new(Principal::anonymous()),
            head: Sheet::default(),
            sweep: Sweep::default(),
            passing: Passing::default(),
            next_number: 0,
            principal_changed: false,
            claims_due: None,
        }
    }

    /// The protocol engine, for the shell to feed and to drain.
    pub fn amqp(&mut self) -> &mut Connection {
        &mut self.amqp
    }

    /// Handles everything the protocol engine has to tell.
    pub fn pump(&mut self, now: Now) {
        // Nearly every event becomes a request.
        self.requests.reserve(self.amqp.events().len());
        while let Some(event) = self.amqp.next_event() {
            self.on_amqp(event, now);
        }
    }

    /// Tells the broker what has left, when that is worth telling.
    pub fn tell_taken(&mut self) {
        if let Some(weight) = self.passing.news() {
            self.tell(Operation::Taken { weight });
        }
    }

    /// Requests for the broker, in order.
    pub fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    /// Whether there are any.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// The client's rights, if they changed since this was last asked.
    pub fn take_principal(&mut self) -> Option<Arc<Principal>> {
        std::mem::take(&mut self.principal_changed).then(|| Arc::clone(&self.principal))
    }

    /// Whether so much waits for the broker that the client has to wait too.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        self.quick.len() + self.slow.len() >= WAITING_MAX
    }

    /// Handles what the broker has to tell, and leaves nothing of use there. Nearly all of it are messages: these are read
    /// where they lie.
    pub fn on_broker(&mut self, event: &mut Event) {
        if let Event::Deliver { link, delivery, body } = event {
            self.deliver(*link, delivery, body);
        } else {
            self.hear(std::mem::replace(event, Event::KeysChanged));
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Accepted { first, count } => self.accepted(first, count),
            Event::Reply { tag, reply } => self.answered(tag, Ok(super::Answered::Reply(reply))),
            Event::Answer { tag, answer } => self.answered(tag, Ok(super::Answered::Answer(answer))),
            Event::Refused { tag, refused } => self.answered(tag, Err(refused)),
            Event::Deliver { link, delivery, mut body } => self.deliver(link, &delivery, &mut body),
            Event::Drained { link } => self.drained(link),
            Event::Detached { link, refused } => self.detached(link, &refused),
            Event::KeysChanged => self.keys_changed(),
            // No AMQP link watches the namespace.
            Event::News { .. } => {}
            Event::Stopped { reason } => {
                self.close(&reason);
                // Nobody is left to be told that the links are gone.
                self.requests.clear();
            }
        }
    }

    /// Ends every link and closes the connection, because the broker stops or somebody wants it; clients make new
    /// ones on these conditions.
    pub fn close(&mut self, reason: &str) {
        let links: Vec<LinkId> = self.links.iter().map(|entry| entry.id).collect();
        for link in links {
            self.force(link, reason);
        }
        // A connection that is closing already needs no second reason.
        let _ = self.amqp.close(Some(Error::new("amqp:connection:forced", reason)));
    }

    /// Ends a link because somebody wants it ended, by the number others know it by; clients make a new one on
    /// this condition.
    pub fn force_detach(&mut self, number: u64, reason: &str) {
        let is_it = |entry: &&Entry| entry.watched.as_ref().is_some_and(|watched| watched.id() == number);
        // The client may have detached it meanwhile.
        let Some(link) = self.links.iter().find(is_it).map(|entry| entry.id) else { return };
        self.force(link, reason);
    }

    fn force(&mut self, link: LinkId, reason: &str) {
        let Some(entry) = self.links.entry(link) else { return };
        let text = format!("The link '{}' is force detached: {reason}.", entry.name);
        self.detach(link, Error::new(condition::name::DETACH_FORCED, text));
    }

    /// When to [check the claims](Door::check_claims) again.
    #[must_use]
    pub fn claims_due(&self) -> Option<Timestamp> {
        self.claims_due
    }

    /// Ends sending links whose right has run out.
    ///
    /// Receivers are ended by the broker, which knows them; a sender is only known here, and without
    /// this it would keep its link and have every message refused.
    pub fn check_claims(&mut self, now: Now) {
        let mut ended = Vec::new();
        let mut next = Timestamp::NEVER;
        for entry in self.links.iter() {
            let Role::Sender(sender) = &entry.role else { continue };
            match authorise(&self.principal, Action::Send, &sender.scope, now.wall) {
                Ok(until) => next = next.min(until),
                Err(denied) => ended.push((entry.id, condition::told(&denied.into(), ""))),
            }
        }
        for (link, told) in ended {
            self.detach(link, told.error());
        }
        self.claims_due = (next < Timestamp::NEVER).then_some(next);
    }

    /// Keys changed that this client's rights rested on.
    fn keys_changed(&mut self) {
        // The broker has drawn the same conclusion; a token that came meanwhile is looked at there again.
        if let Some(left) = self.shared.broker.keys().left_of(&self.principal) {
            self.principal = Arc::new(left);
            self.claims_changed();
        }
    }

    /// Something changed that a claim may end: look at the next opportunity.
    pub(super) fn claims_changed(&mut self) {
        self.claims_due = Some(Timestamp::default());
    }

    /// Whether answers are still owed to the client for what it sent or settled.
    #[must_use]
    pub fn owes_answers(&self) -> bool {
        self.quick.len() > 0
    }

    /// Asks the broker something quick.
    #[inline]
    pub(super) fn ask_quickly(&mut self, answering: Answering, operation: Operation) {
        let tag = self.quick.push(answering);
        self.requests.push(Request { tag, operation });
    }

    /// Asks the broker something that may take its time.
    pub(super) fn ask(&mut self, expecting: Expecting, operation: Operation) {
        let tag = self.slow.push(expecting);
        self.requests.push(Request { tag, operation });
    }

    /// Tells the broker something that has no answer.
    pub(super) fn tell(&mut self, operation: Operation) {
        self.requests.push(Request { tag: Tag(u32::MAX), operation });
    }

    /// A number for a new receiver.
    pub(super) fn take_number(&mut self) -> Link {
        let number = Link(self.next_number);
        self.next_number = self.next_number.wrapping_add(1);
        number
    }

    /// The client has proven something new about itself.
    pub(super) fn now_is(&mut self, principal: Principal) {
        self.principal = Arc::new(principal);
        self.principal_changed = true;
        self.claims_changed();
    }

    /// Ends a link from our side.
    pub(super) fn detach(&mut self, link: LinkId, error: Error) {
        if self.order.holds(link) {
            // The client has not heard of it yet, and now hears that it is over.
            self.answer_refused(link, error);
            return self.clean_up(link);
        }
        // A link the client has just detached itself is gone already.
        let _ = self.amqp.detach(link, true, Some(error));
        self.forget(link);
    }

    fn on_amqp(&mut self, event: Amqp, now: Now) {
        match event {
            Amqp::Credentials(credentials) => self.log_in(&credentials),
            Amqp::Opened(open) => {
                debug!(container = ?open.container_id, "connection opened");
                self.entered.client().named(open.container_id.as_str());
            }
            Amqp::Attach(request) => self.attach(*request),
            Amqp::AttachCancelled { link } => self.forget(link),
            Amqp::LinkEnded { link, ending } => {
                if let LinkEnding::Violation(violation) = &ending {
                    debug!(%violation, "link ended by a violation");
                }
                self.forget(link);
            }
            Amqp::Delivery(delivery) => self.received(delivery, now),
            Amqp::TooLarge { link, delivery, settled, limit } => {
                self.too_large(link, delivery, settled, limit);
            }
            Amqp::Credit { link, credit, drain } => self.credit(link, credit, drain),
            Amqp::Settlement(settlement) => self.settled(settlement),
            Amqp::WindowOpened { session } => self.window_opened(session),
            Amqp::Closed(closed) => debug!(?closed, "connection closed"),
            // Both happen on links and sessions that we begin, and we begin none.
            Amqp::Attached { .. } | Amqp::Drained { .. } | Amqp::SessionEnded { .. } => {}
        }
    }

    /// SASL PLAIN: a key's name and the key itself.
    fn log_in(&mut self, credentials: &Credentials) {
        let granted = match credentials {
            Credentials::Plain(plain) => {
                self.shared.broker.keys().log_in(plain.user.as_str(), plain.password.as_str()).ok()
            }
            // The transport proves no identity: TLS asks clients for no certificate.
            Credentials::External { .. } => None,
        };
        // The peer may have gone meanwhile; then there is nobody to answer.
        let _ = if let Some(grants) = granted {
            if let Credentials::Plain(plain) = credentials {
                self.entered.client().proved(plain.user.as_str());
            }
            self.now_is(Principal::with_grants(grants));
            self.amqp.accept_credentials()
        } else {
            self.entered.totals().logins_refused.add(1);
            self.amqp.refuse_credentials()
        };
    }

    fn answered(&mut self, tag: Tag, outcome: super::Outcome) {
        if Quick::<Answering>::owns(tag) {
            match self.quick.take(tag) {
                Some(Answering::Send(sending)) => self.send_answered(sending, outcome.map(drop)),
                Some(Answering::Settle(settling)) => self.settle_answered(*settling, outcome.map(drop)),
                None => {}
            }
            return;
        }
        match self.slow.take(tag) {
            Some(Expecting::Attach(plan)) => self.attach_answered(*plan, outcome),
            Some(Expecting::Management(waiting)) => self.management_answered(*waiting, outcome),
            Some(Expecting::Transaction(discharging)) => self.transaction_answered(&discharging, outcome),
            None => {}
        }
    }

    /// A link is gone.
    fn forget(&mut self, link: LinkId) {
        self.step_out_of_order(link);
        self.clean_up(link);
    }

    /// Gives back what a link held.
    fn clean_up(&mut self, link: LinkId) {
        let Some(entry) = self.links.remove(link) else { return };
        if let Some(watched) = &entry.watched {
            self.entered.client().detached(watched);
        }
        let number = match entry.role {
            Role::Pending(number) => number,
            Role::Receiver(receiver) => {
                self.give_back(&receiver);
                Some(receiver.number)
            }
            Role::Coordinator(open) => {
                for transaction in open {
                    self.roll_back(transaction);
                }
                None
            }
            _ => None,
        };
        if let Some(number) = number {
            self.links.forget_number(number);
            self.tell(Operation::Detach { link: number });
        }
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("links", &self.links).finish_non_exhaustive()
    }
}
