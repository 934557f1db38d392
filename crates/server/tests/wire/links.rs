//! Links of a [`Client`]: attached, used and settled in the usual way, on session 0.

use bytes::Bytes;
use vorrang_amqp::connection::Millis;
use vorrang_amqp::message::Message;
use vorrang_amqp::performative::{
    Attach, DeliveryState, DeliveryTag, Detach, Disposition, Error, Flow, LinkFlow, Modified, Outcome,
    ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode, Transfer,
};
use vorrang_amqp::value::{Map, MapBuilder, Value};
use vorrang_amqp::{Frame, FrameBody, Text, Uuid};

use crate::client::Client;

/// A complete delivery from the server.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Its first frame.
    pub(crate) transfer: Transfer,
    pub(crate) message: Message,
    /// The size of each frame's payload.
    pub(crate) pieces: Vec<usize>,
}

impl Delivery {
    pub(crate) fn id(&self) -> u32 {
        self.transfer.delivery_id.unwrap()
    }

    /// The lock token, as `$management` takes it.
    pub(crate) fn token(&self) -> Uuid {
        let tag = self.transfer.delivery_tag.unwrap();
        Uuid::from_dotnet_bytes(tag.as_bytes().try_into().expect("a tag of 16 bytes"))
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<Value> {
        self.message.message_annotations().and_then(|map| map.value(key))
    }

    pub(crate) fn application(&self, key: &str) -> Option<Value> {
        self.message.application_properties().and_then(|map| map.value(key))
    }

    pub(crate) fn sequence(&self) -> i64 {
        self.annotation("x-opt-sequence-number").unwrap().as_i64().unwrap()
    }

    pub(crate) fn count(&self) -> u32 {
        self.message.header().unwrap().expect("every delivery has a header").delivery_count
    }

    pub(crate) fn body(&self) -> String {
        crate::message::body(&self.message)
    }
}

/// A sender's attach as most clients write it.
pub(crate) fn sender(handle: u32, address: &str) -> Attach {
    Attach {
        snd_settle_mode: Some(SenderSettleMode::Unsettled),
        rcv_settle_mode: Some(ReceiverSettleMode::First),
        source: Some(Source::at("client")),
        target: Some(TargetNode::Node(Target::at(address))),
        initial_delivery_count: Some(0),
        ..Attach::new(Text::from(format!("link-{handle}")), handle, Role::Sender)
    }
}

/// A peek-lock receiver's attach as most clients write it.
pub(crate) fn receiver(handle: u32, address: &str) -> Attach {
    Attach {
        snd_settle_mode: Some(SenderSettleMode::Unsettled),
        rcv_settle_mode: Some(ReceiverSettleMode::Second),
        source: Some(Source::at(address)),
        target: Some(TargetNode::Node(Target::at("client"))),
        ..Attach::new(Text::from(format!("link-{handle}")), handle, Role::Receiver)
    }
}

/// A receiver that takes messages away at once.
pub(crate) fn deleting_receiver(handle: u32, address: &str) -> Attach {
    Attach {
        snd_settle_mode: Some(SenderSettleMode::Settled),
        rcv_settle_mode: Some(ReceiverSettleMode::First),
        ..receiver(handle, address)
    }
}

/// A receiver with this filter.
pub(crate) fn filtered(mut attach: Attach, filter: Map) -> Attach {
    if let Some(source) = &mut attach.source {
        source.filter = Some(filter);
    }
    attach
}

/// A receiver of a session: a named one, or the next.
pub(crate) fn session_receiver(handle: u32, address: &str, session: Option<&str>) -> Attach {
    let mut filter = MapBuilder::default();
    filter.push_symbol("com.microsoft:session-filter", &session.map(Text::from));
    filtered(receiver(handle, address), filter.finish())
}

/// The same with a limit on how long to wait.
pub(crate) fn waiting(mut attach: Attach, wait: Millis) -> Attach {
    let mut properties = MapBuilder::default();
    properties.push_symbol("com.microsoft:timeout", &u32::try_from(wait.0).unwrap());
    attach.properties = Some(properties.finish());
    attach
}

pub(crate) fn abandoned() -> DeliveryState {
    Outcome::Modified(Modified::default()).into()
}

pub(crate) fn deferred() -> DeliveryState {
    Outcome::Modified(Modified { undeliverable_here: Some(true), ..Modified::default() }).into()
}

pub(crate) fn rejected() -> DeliveryState {
    Outcome::Rejected { error: None }.into()
}

/// The error of a refusal.
pub(crate) fn error_of(state: &DeliveryState) -> &Error {
    match state {
        DeliveryState::Outcome(Outcome::Rejected { error: Some(error) }) => error,
        other => panic!("a rejection with its reason was due, not {other:?}"),
    }
}

impl Client {
    /// Asks for a link and waits for the answer.
    pub(crate) fn attach(&mut self, attach: Attach) -> Attach {
        let (name, role) = (attach.name.clone(), attach.role);
        self.send(0, FrameBody::Attach(Box::new(attach)));
        self.attached(&name, role)
    }

    /// The answer to an attach that was sent.
    pub(crate) fn attached(&mut self, name: &Text, role: Role) -> Attach {
        self.wait("attach", |frame| match &frame.body {
            FrameBody::Attach(reply) if reply.name == *name && reply.role != role => Some((**reply).clone()),
            _ => None,
        })
    }

    /// A sender that may send.
    pub(crate) fn sender(&mut self, handle: u32, address: &str) -> Attach {
        let reply = self.attach(sender(handle, address));
        assert!(reply.target.is_some(), "refused: {:?}", self.next());
        assert!(self.granted(handle) > 0);
        reply
    }

    /// A peek-lock receiver without credit.
    pub(crate) fn receiver(&mut self, handle: u32, address: &str) -> Attach {
        let reply = self.attach(receiver(handle, address));
        assert!(reply.source.is_some(), "refused: {:?}", self.next());
        reply
    }

    /// Credit that the server grants on a handle.
    pub(crate) fn granted(&mut self, handle: u32) -> u32 {
        self.wait("credit", |frame| match &frame.body {
            FrameBody::Flow(Flow { link: Some(link), .. }) if link.handle == handle => link.link_credit,
            _ => None,
        })
    }

    /// Asks for a link that must be refused in the way of Service Bus: an attach without its terminus and
    /// a detach right behind it. Returns the reason.
    pub(crate) fn refused(&mut self, attach: Attach) -> Error {
        let handle = attach.handle;
        let role = attach.role;
        let reply = self.attach(attach);
        match role {
            Role::Sender => assert_eq!(reply.target, None, "a refused sender has no target"),
            Role::Receiver => assert_eq!(reply.source, None, "a refused receiver has no source"),
        }
        let error = self.detached(handle);
        self.send(0, FrameBody::Detach(Detach { handle, closed: true, error: None }));
        error
    }

    /// Waits for the server to end a link, and returns the reason.
    pub(crate) fn detached(&mut self, handle: u32) -> Error {
        let detach = self.detach_frame(handle);
        assert!(detach.closed, "the server closes links");
        *detach.error.expect("the server says why it ends a link")
    }

    /// Waits for a detach.
    pub(crate) fn detach_frame(&mut self, handle: u32) -> Detach {
        self.wait("detach", |frame| match &frame.body {
            FrameBody::Detach(detach) if detach.handle == handle => Some(detach.clone()),
            _ => None,
        })
    }

    /// Closes a link and waits for the answer.
    pub(crate) fn detach(&mut self, handle: u32) {
        self.send(0, FrameBody::Detach(Detach { handle, closed: true, error: None }));
        let detach = self.detach_frame(handle);
        assert_eq!((detach.closed, detach.error), (true, None));
    }

    /// The first frame of a delivery.
    pub(crate) fn transfer_head(&mut self, handle: u32) -> Transfer {
        let session = self.sessions.get_mut(&0).unwrap();
        let id = session.next_outgoing;
        session.next_outgoing = id.wrapping_add(1);
        Transfer {
            handle,
            delivery_id: Some(id),
            delivery_tag: Some(DeliveryTag::from(u64::from(id))),
            message_format: Some(0),
            settled: Some(false),
            more: false,
            rcv_settle_mode: None,
            state: None,
            resume: false,
            aborted: false,
            batchable: false,
        }
    }

    /// Sends one message; returns its delivery id.
    pub(crate) fn transfer(&mut self, handle: u32, payload: impl Into<Bytes>) -> u32 {
        let head = self.transfer_head(handle);
        let id = head.delivery_id.unwrap();
        self.send(0, FrameBody::Transfer(head, payload.into()));
        id
    }

    /// The outcome of a delivery that was sent.
    pub(crate) fn outcome(&mut self, delivery: u32) -> DeliveryState {
        // A range may answer several; what is left of it stays to be found.
        for place in 0..self.pending.len() {
            if let Some(state) = covers(&self.pending[place], Role::Receiver, delivery) {
                return state;
            }
        }
        loop {
            let frame = self.read().expect("a disposition, not the end");
            let state = covers(&frame, Role::Receiver, delivery);
            self.pending.push_back(frame);
            if let Some(state) = state {
                return state;
            }
        }
    }

    /// Sends one message and waits until it is accepted.
    pub(crate) fn post(&mut self, handle: u32, payload: impl Into<Bytes>) {
        let id = self.transfer(handle, payload);
        assert_eq!(self.outcome(id), DeliveryState::ACCEPTED);
    }

    /// Sends a message that must be rejected.
    pub(crate) fn post_refused(&mut self, handle: u32, payload: impl Into<Bytes>) -> Error {
        let id = self.transfer(handle, payload);
        error_of(&self.outcome(id)).clone()
    }

    /// Writes a flow for a link.
    pub(crate) fn flow(&mut self, link: LinkFlow) {
        let flow = self.session_flow(0);
        self.send(0, FrameBody::Flow(Flow { link: Some(link), ..flow }));
    }

    /// The state of a session as a flow.
    pub(crate) fn session_flow(&self, channel: u16) -> Flow {
        let session = &self.sessions[&channel];
        Flow {
            next_incoming_id: Some(session.next_incoming),
            incoming_window: 100_000,
            next_outgoing_id: session.next_outgoing,
            outgoing_window: 100_000,
            link: None,
            echo: false,
            properties: None,
        }
    }

    /// The link part of a flow with so much credit.
    pub(crate) fn link_flow(&self, handle: u32, credit: u32) -> LinkFlow {
        let received = self.sessions[&0].received.get(&handle).copied().unwrap_or(0);
        LinkFlow {
            handle,
            delivery_count: Some(received),
            link_credit: Some(credit),
            available: None,
            drain: false,
        }
    }

    /// Gives a receiver so much credit.
    pub(crate) fn credit(&mut self, handle: u32, credit: u32) {
        let link = self.link_flow(handle, credit);
        self.flow(link);
    }

    /// Asks for what is there and to give the rest of the credit back.
    pub(crate) fn drain(&mut self, handle: u32, credit: u32) {
        let link = LinkFlow { drain: true, ..self.link_flow(handle, credit) };
        self.flow(link);
    }

    /// The next delivery on a handle, whole.
    pub(crate) fn delivery(&mut self, handle: u32) -> Delivery {
        let mut first: Option<Transfer> = None;
        let (mut payload, mut pieces) = (Vec::new(), Vec::new());
        loop {
            let (transfer, piece) = self.wait("transfer", |frame| match &frame.body {
                FrameBody::Transfer(transfer, piece) if transfer.handle == handle => {
                    Some((transfer.clone(), piece.clone()))
                }
                _ => None,
            });
            payload.extend_from_slice(&piece);
            pieces.push(piece.len());
            let more = transfer.more;
            let transfer = first.get_or_insert(transfer).clone();
            if !more {
                let message = Message::parse(payload.into()).unwrap();
                return Delivery { transfer, message, pieces };
            }
        }
    }

    /// Gives one credit and takes one delivery.
    pub(crate) fn receive(&mut self, handle: u32) -> Delivery {
        self.credit(handle, 1);
        self.delivery(handle)
    }

    /// Tells an outcome without waiting for an answer.
    pub(crate) fn tell(&mut self, first: u32, last: Option<u32>, settled: bool, state: DeliveryState) {
        let disposition =
            Disposition { role: Role::Receiver, first, last, settled, state: Some(state), batchable: false };
        self.send(0, FrameBody::Disposition(disposition));
    }

    /// Tells the outcome of a delivery and waits for the answer, which must be settled.
    pub(crate) fn settle(&mut self, delivery: u32, state: DeliveryState) -> DeliveryState {
        self.tell(delivery, None, false, state);
        self.settled(delivery)
    }

    /// The server's answer to an outcome.
    pub(crate) fn settled(&mut self, delivery: u32) -> DeliveryState {
        for place in 0..self.pending.len() {
            if let Some(state) = covers(&self.pending[place], Role::Sender, delivery) {
                return state;
            }
        }
        loop {
            let frame = self.read().expect("a disposition, not the end");
            let state = covers(&frame, Role::Sender, delivery);
            self.pending.push_back(frame);
            if let Some(state) = state {
                return state;
            }
        }
    }

    /// Completes a delivery.
    pub(crate) fn complete(&mut self, delivery: &Delivery) {
        assert_eq!(self.settle(delivery.id(), DeliveryState::ACCEPTED), DeliveryState::ACCEPTED);
    }

    /// Drains a receiver and returns how many messages came: all that were available to it.
    pub(crate) fn drained(&mut self, handle: u32) -> Vec<Delivery> {
        self.drain(handle, 1_000);
        let mut count = 0;
        let mut frames = Vec::new();
        loop {
            let frame = self.wait("the end of a drain", |frame| match &frame.body {
                FrameBody::Transfer(transfer, _) if transfer.handle == handle => Some(frame.clone()),
                FrameBody::Flow(Flow { link: Some(link), .. }) if link.handle == handle && link.drain => {
                    Some(frame.clone())
                }
                _ => None,
            });
            match &frame.body {
                FrameBody::Transfer(transfer, _) => {
                    count += u32::from(!transfer.more);
                    frames.push(frame);
                }
                FrameBody::Flow(flow) => {
                    let link = flow.link.as_ref().unwrap();
                    assert_eq!(link.link_credit, Some(0));
                    let received = self.sessions.get_mut(&0).unwrap().received.get_mut(&handle).unwrap();
                    assert_eq!(link.delivery_count, Some(received.wrapping_add(1_000 - count)));
                    *received = link.delivery_count.unwrap();
                    break;
                }
                _ => {}
            }
        }
        for frame in frames.into_iter().rev() {
            self.pending.push_front(frame);
        }
        (0..count).map(|_| self.delivery(handle)).collect()
    }
}

/// The settled state a disposition gives a delivery.
fn covers(frame: &Frame, role: Role, delivery: u32) -> Option<DeliveryState> {
    match &frame.body {
        FrameBody::Disposition(disposition) if disposition.role == role => {
            let last = disposition.last.unwrap_or(disposition.first);
            let length = last.wrapping_sub(disposition.first);
            let here = delivery.wrapping_sub(disposition.first) <= length;
            if here {
                assert!(disposition.settled, "the server settles what it answers");
            }
            here.then(|| disposition.state.clone().expect("an outcome has a state"))
        }
        _ => None,
    }
}
