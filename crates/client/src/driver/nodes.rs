//! Requests to nodes that answer: `$cbs`, and the `$management` of entities.
//!
//! Each node has a pair of links, attached when the first request for it comes. Answers find their request by its
//! number, whichever link they come on.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use tracing::debug;
use vorrang_amqp::connection::{Delivery, LinkId, Outgoing, OwnAttach, SendError, Settlement};
use vorrang_amqp::descriptor;
use vorrang_amqp::message::{Message, MessageId, Properties, put_map_section, put_properties, put_value};
use vorrang_amqp::performative::{
    DeliveryState, DeliveryTag, Outcome, ReceiverSettleMode, Role, SenderSettleMode, Source, Target,
    TargetNode,
};
use vorrang_amqp::value::{Map, Value};

use super::command::{NodeRequest, Reply, Response};
use super::desk::{Desk, Owner};
use super::slab::Slab;
use crate::error::Error;

/// The node that takes tokens.
pub(super) const CBS: &str = "$cbs";
/// Requests that wait for an answer; one more is refused with [`Error::Limit`].
const REQUESTS_MAX: usize = 10_000;
/// Nodes of one client; a request for one more is refused with [`Error::Limit`].
const NODES_MAX: usize = 1_000;
/// Answers a node may send before it hears from us again.
const CREDIT: u32 = 100;

/// All nodes and the requests to them.
pub(super) struct Nodes {
    all: Slab<Node>,
    by_address: BTreeMap<String, u32>,
    requests: BTreeMap<u64, Pending>,
    next: u64,
    /// Whether requests wait for room in the output or the window.
    blocked: bool,
}

struct Node {
    address: String,
    audiences: Vec<String>,
    reply_to: String,
    stage: NodeStage,
    waiting: VecDeque<Waiting>,
}

enum NodeStage {
    /// Waits for a connection.
    Idle,
    /// Waits for tokens.
    Claiming,
    /// Waits for both links.
    Attaching { requests: LinkId, responses: LinkId, attached: u8 },
    /// In use.
    Attached { requests: LinkId, responses: LinkId },
}

/// A request that was not sent yet.
struct Waiting {
    number: u64,
    payload: Bytes,
    state: Option<DeliveryState>,
}

/// A request without an answer.
struct Pending {
    node: u32,
    sent: bool,
    asker: Asker,
}

/// Who asked.
pub(super) enum Asker {
    Caller(Reply<Response>),
    Claim { entity: String },
}

impl Nodes {
    pub(super) fn new() -> Self {
        Nodes {
            all: Slab::new(),
            by_address: BTreeMap::new(),
            requests: BTreeMap::new(),
            next: 1,
            blocked: false,
        }
    }
}

impl Desk {
    /// Asks a node on behalf of a caller.
    pub(super) fn request(&mut self, request: NodeRequest) {
        let NodeRequest { node, audiences, application_properties, body, state, reply } = request;
        if let Some(error) = self.refusal() {
            // Whoever waited may have given up.
            let _ = reply.send(Err(error));
            return;
        }
        self.ask_node(
            &node,
            audiences,
            &application_properties,
            &Value::Map(body),
            state,
            Asker::Caller(reply),
        );
    }

    pub(super) fn ask_node(
        &mut self,
        address: &str,
        audiences: Vec<String>,
        application_properties: &Map,
        body: &Value,
        state: Option<DeliveryState>,
        asker: Asker,
    ) {
        let limit = Error::Limit { what: "requests without an answer", limit: REQUESTS_MAX };
        if self.nodes.requests.len() >= REQUESTS_MAX {
            self.forget_abandoned();
            if self.nodes.requests.len() >= REQUESTS_MAX {
                return self.answer_asker(asker, Err(limit));
            }
        }
        let Some(place) = self.node_at(address, audiences) else {
            let limit = Error::Limit { what: "entities with requests", limit: NODES_MAX };
            return self.answer_asker(asker, Err(limit));
        };
        let number = self.nodes.next;
        self.nodes.next = number.wrapping_add(1);
        let Some(node) = self.nodes.all.get_mut(place) else { return };
        let payload = encode(number, &node.reply_to, application_properties, body);
        node.waiting.push_back(Waiting { number, payload, state });
        self.nodes.requests.insert(number, Pending { node: place, sent: false, asker });
        match node.stage {
            NodeStage::Idle => self.try_attach_node(place),
            NodeStage::Attached { .. } => self.send_requests(place),
            NodeStage::Claiming | NodeStage::Attaching { .. } => {}
        }
    }

    /// Callers that gave up leave their requests behind; nobody needs the answers.
    fn forget_abandoned(&mut self) {
        self.nodes
            .requests
            .retain(|_, pending| !matches!(&pending.asker, Asker::Caller(reply) if reply.is_closed()));
    }

    fn node_at(&mut self, address: &str, audiences: Vec<String>) -> Option<u32> {
        if let Some(place) = self.nodes.by_address.get(address) {
            return Some(*place);
        }
        if self.nodes.all.len() >= NODES_MAX {
            return None;
        }
        let reply_to = format!("{}:answers:{}", self.setup.container, self.nodes.all.next_place());
        let place = self.nodes.all.insert(Node {
            address: address.to_owned(),
            audiences,
            reply_to,
            stage: NodeStage::Idle,
            waiting: VecDeque::new(),
        });
        self.nodes.by_address.insert(address.to_owned(), place);
        Some(place)
    }

    /// Attaches a node's links if there is a connection and a token.
    pub(super) fn try_attach_node(&mut self, place: u32) {
        let Some(node) = self.nodes.all.get_mut(place) else { return };
        if !matches!(node.stage, NodeStage::Idle | NodeStage::Claiming) || self.live.is_none() {
            return;
        }
        let audiences = node.audiences.clone();
        let held = self.claims_held(&audiences);
        let (Some(live), Some(node)) = (&mut self.live, self.nodes.all.get_mut(place)) else { return };
        if !held {
            node.stage = NodeStage::Claiming;
            return;
        }
        let session = match live.node_session {
            Some(session) => session,
            None => match live.amqp.begin() {
                Ok(session) => *live.node_session.insert(session),
                // The connection is about to end; its end tells everybody.
                Err(_) => return,
            },
        };
        let (requests, responses) = pair(&node.address, &node.reply_to);
        let attached = live
            .amqp
            .attach(session, responses)
            .and_then(|responses| Ok((live.amqp.attach(session, requests)?, responses)));
        if let Ok((requests, responses)) = attached {
            live.own(requests, Owner::Requests(place));
            live.own(responses, Owner::Responses(place));
            node.stage = NodeStage::Attaching { requests, responses, attached: 0 };
        }
    }

    pub(super) fn node_attached(&mut self, place: u32, link: LinkId) {
        let (Some(live), Some(node)) = (&mut self.live, self.nodes.all.get_mut(place)) else { return };
        let NodeStage::Attaching { requests, responses, attached } = &mut node.stage else { return };
        if link == *responses {
            // A link that is gone needs no credit.
            let _ = live.amqp.grant(link, CREDIT);
        }
        *attached = attached.saturating_add(1);
        if *attached == 2 {
            node.stage = NodeStage::Attached { requests: *requests, responses: *responses };
            self.send_requests(place);
        }
    }

    /// Sends what waits, as far as credit goes.
    pub(super) fn send_requests(&mut self, place: u32) {
        let (Some(live), Some(node)) = (&mut self.live, self.nodes.all.get_mut(place)) else { return };
        let NodeStage::Attached { requests, .. } = node.stage else { return };
        while let Some(waiting) = node.waiting.front() {
            let outgoing = Outgoing {
                tag: DeliveryTag::from(waiting.number),
                message_format: 0,
                settled: false,
                state: waiting.state.clone(),
                head: &[],
                tail: &waiting.payload,
                key: u128::from(waiting.number),
            };
            match live.amqp.send(requests, &outgoing) {
                Ok(_) => {
                    if let Some(pending) = self.nodes.requests.get_mut(&waiting.number) {
                        pending.sent = true;
                    }
                    node.waiting.pop_front();
                }
                // Credit or the link's end follows.
                Err(SendError::NoCredit | SendError::Gone) => return,
                Err(
                    SendError::WindowClosed | SendError::OutputFull { .. } | SendError::UnsettledFull { .. },
                ) => {
                    self.nodes.blocked = true;
                    return;
                }
            }
        }
    }

    /// Requests that waited for room in the output or the window.
    pub(super) fn unblock_nodes(&mut self) {
        if !std::mem::take(&mut self.nodes.blocked) {
            return;
        }
        for place in self.nodes.all.places() {
            if self.nodes.all.get(place).is_some_and(|node| !node.waiting.is_empty()) {
                self.send_requests(place);
            }
        }
    }

    /// The broker told the outcome of request transfers: a refused one will get no answer.
    pub(super) fn requests_settled(&mut self, settlement: &Settlement) {
        let Some(Outcome::Rejected { error }) = settlement.state.as_deref().and_then(DeliveryState::outcome)
        else {
            return;
        };
        let error = Error::from_amqp(error.as_deref());
        for delivery in &settlement.deliveries {
            let number = u64::try_from(delivery.key).unwrap_or(0);
            if let Some(pending) = self.nodes.requests.remove(&number) {
                self.answer_asker(pending.asker, Err(error.clone()));
            }
        }
    }

    /// A node answered.
    pub(super) fn responded(&mut self, place: u32, delivery: Delivery) {
        if let (Some(live), Some(node)) = (&mut self.live, self.nodes.all.get(place)) {
            // Links that are gone need neither outcome nor credit.
            if !delivery.settled {
                let _ = live.amqp.accept(delivery.link, delivery.delivery);
            }
            if let NodeStage::Attached { responses, .. } = node.stage
                && live.amqp.credit(responses).unwrap_or(CREDIT) < CREDIT / 2
            {
                let _ = live.amqp.grant(responses, CREDIT);
            }
        }
        let Some((number, answer)) = read_response(delivery.payload) else {
            debug!("an answer could not be read");
            return;
        };
        if let Some(pending) = self.nodes.requests.remove(&number) {
            self.answer_asker(pending.asker, answer);
        }
    }

    fn answer_asker(&mut self, asker: Asker, answer: Result<Response, Error>) {
        match asker {
            // Whoever waited may have given up.
            Asker::Caller(reply) => drop(reply.send(answer)),
            Asker::Claim { entity } => self.claim_answered(&entity, answer.map(|_| ())),
        }
    }

    pub(super) fn nodes_connected(&mut self) {
        for place in self.nodes.all.places() {
            if self.nodes.all.get(place).is_some_and(|node| !node.waiting.is_empty()) {
                self.try_attach_node(place);
            }
        }
    }

    /// The connection is gone: what was sent ends in doubt, the rest waits. Tokens are asked for anew.
    pub(super) fn nodes_lost(&mut self) {
        let numbers: Vec<u64> = self
            .nodes
            .requests
            .iter()
            .filter(|(_, pending)| pending.sent || matches!(pending.asker, Asker::Claim { .. }))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            if let Some(Pending { asker: Asker::Caller(reply), .. }) = self.nodes.requests.remove(&number) {
                // Whoever waited may have given up.
                let _ = reply.send(Err(Error::Ambiguous));
            }
        }
        let requests = &self.nodes.requests;
        for place in self.nodes.all.places() {
            if let Some(node) = self.nodes.all.get_mut(place) {
                node.stage = NodeStage::Idle;
                node.waiting.retain(|waiting| requests.contains_key(&waiting.number));
            }
        }
    }

    /// Nobody shall wait any longer.
    pub(super) fn nodes_fail(&mut self, error: &Error) {
        for (_, pending) in std::mem::take(&mut self.nodes.requests) {
            if let Asker::Caller(reply) = pending.asker {
                // Whoever waited may have given up.
                let _ = reply.send(Err(error.clone()));
            }
        }
        for place in self.nodes.all.places() {
            if let Some(node) = self.nodes.all.get_mut(place) {
                node.waiting.clear();
            }
        }
    }

    /// A link of a node ended, or its token was refused: its requests are answered with the reason.
    pub(super) fn node_ended(&mut self, place: u32, error: &Error) {
        let Some(node) = self.nodes.all.remove(place) else { return };
        self.nodes.by_address.remove(&node.address);
        if let NodeStage::Attaching { requests, responses, .. } | NodeStage::Attached { requests, responses } =
            node.stage
            && let Some(live) = &mut self.live
        {
            for link in [requests, responses] {
                live.disown(link);
                // One of them is gone already.
                let _ = live.amqp.detach(link, true, None);
            }
        }
        let numbers: Vec<u64> = self
            .nodes
            .requests
            .iter()
            .filter(|(_, pending)| pending.node == place)
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            if let Some(pending) = self.nodes.requests.remove(&number) {
                let answer =
                    if pending.sent && error.is_transient() { Error::Ambiguous } else { error.clone() };
                self.answer_asker(pending.asker, Err(answer));
            }
        }
    }

    /// Goes on with nodes that waited for a token.
    pub(super) fn nodes_claimed(&mut self) {
        for place in self.nodes.all.places() {
            if self.nodes.all.get(place).is_some_and(|node| matches!(node.stage, NodeStage::Claiming)) {
                self.try_attach_node(place);
            }
        }
    }

    /// Ends nodes whose token was refused.
    pub(super) fn nodes_unclaimed(&mut self, entity: &str, error: &Error) {
        for place in self.nodes.all.places() {
            let refused = self.nodes.all.get(place).is_some_and(|node| {
                matches!(node.stage, NodeStage::Claiming)
                    && node.audiences.iter().any(|known| known == entity)
            });
            if refused {
                self.node_ended(place, error);
            }
        }
    }
}

/// The two links of a node.
fn pair(address: &str, reply_to: &str) -> (OwnAttach, OwnAttach) {
    let requests = OwnAttach {
        snd_settle_mode: Some(SenderSettleMode::Mixed),
        rcv_settle_mode: Some(ReceiverSettleMode::First),
        source: Some(Source::at(reply_to)),
        target: Some(TargetNode::Node(Target::at(address))),
        ..OwnAttach::new(format!("{reply_to}:requests"), Role::Sender)
    };
    let responses = OwnAttach {
        snd_settle_mode: Some(SenderSettleMode::Settled),
        rcv_settle_mode: Some(ReceiverSettleMode::First),
        source: Some(Source::at(address)),
        target: Some(TargetNode::Node(Target::at(reply_to))),
        ..OwnAttach::new(reply_to, Role::Receiver)
    };
    (requests, responses)
}

fn encode(number: u64, reply_to: &str, application_properties: &Map, body: &Value) -> Bytes {
    let properties = Properties {
        message_id: Some(MessageId::Ulong(number)),
        reply_to: Some(reply_to.into()),
        ..Properties::default()
    };
    let mut out = Vec::new();
    put_properties(&mut out, &properties);
    put_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, |map| {
        map.keep_except(application_properties, &[]);
    });
    put_value(&mut out, body);
    Bytes::from(out)
}

/// The number of the request an answer is for, and what it says. Names differ between `$cbs` and `$management`.
fn read_response(payload: Bytes) -> Option<(u64, Result<Response, Error>)> {
    let message = Message::parse(payload).ok()?;
    let number = match message.properties().ok()??.correlation_id? {
        MessageId::Ulong(number) => number,
        MessageId::String(text) => text.as_str().parse().ok()?,
        MessageId::Uuid(_) | MessageId::Binary(_) => return None,
    };
    let told = message.application_properties().unwrap_or_default();
    let told = |names: [&str; 2]| names.iter().find_map(|name| told.value(name));
    let status = told(["statusCode", "status-code"]).and_then(|status| status.as_i32());
    let Some(status) = status else {
        return Some((number, Err(Error::Protocol("an answer without a status".into()))));
    };
    if (200..300).contains(&status) {
        let body = message.value().ok().flatten();
        let body = body.as_ref().and_then(Value::as_map).cloned().unwrap_or_default();
        return Some((number, Ok(Response { status, body })));
    }
    let condition = told(["errorCondition", "error-condition"]);
    let condition = condition.as_ref().and_then(Value::as_str).unwrap_or(match status {
        401 => "amqp:unauthorized-access",
        404 => "amqp:not-found",
        410 => "com.microsoft:message-lock-lost",
        503 => "com.microsoft:server-busy",
        _ => "amqp:internal-error",
    });
    let text = told(["statusDescription", "status-description"]);
    let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
    Some((number, Err(Error::from_condition(condition, text))))
}
