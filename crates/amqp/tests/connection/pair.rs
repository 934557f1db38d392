//! Two engines back to back: whatever is sent arrives once, in order and whole, and both ends agree on its outcome.
//!
//! Bytes travel in pieces of any size, frames and windows are small, credit comes and goes, and messages of up to
//! many frames are sent both ways over several links of one session.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use vorrang_amqp::connection::{
    AttachReply, ClientConfig, Closed, Connection, Event, FrameLimit, Limits, LinkId, Millis, Outgoing,
    OwnAttach, Received, SendError, Serial, ServerConfig,
};
use vorrang_amqp::performative::{
    DeliveryState, DeliveryTag, Modified, Outcome, Role, Source, Target, TargetNode,
};

/// Links: two from client to server, two back.
const LINKS: usize = 4;

#[derive(Debug, Clone, Copy)]
enum Step {
    Send { link: usize, size: usize, settled: bool },
    Grant { link: usize, credit: u32 },
    Drain { link: usize },
    Settle { link: usize, outcome: u8, decide_only: bool },
    Carry { to_server: bool, bytes: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![0usize..40, 400usize..700, 1000usize..6000];
    prop_oneof![
        4 => (0..LINKS, size, any::<bool>()).prop_map(|(link, size, settled)| Step::Send { link, size, settled }),
        2 => (0..LINKS, 0u32..20).prop_map(|(link, credit)| Step::Grant { link, credit }),
        1 => (0..LINKS).prop_map(|link| Step::Drain { link }),
        4 => (0..LINKS, 0u8..4, any::<bool>())
            .prop_map(|(link, outcome, decide_only)| Step::Settle { link, outcome, decide_only }),
        6 => (any::<bool>(), prop_oneof![1usize..30, 100usize..3000])
            .prop_map(|(to_server, bytes)| Step::Carry { to_server, bytes }),
    ]
}

fn outcome(number: u8) -> DeliveryState {
    match number {
        0 => DeliveryState::ACCEPTED,
        1 => DeliveryState::RELEASED,
        2 => Outcome::Rejected { error: None }.into(),
        _ => Outcome::Modified(Modified { delivery_failed: Some(true), ..Modified::default() }).into(),
    }
}

/// The two ends of a link: what each side's application knows.
#[derive(Default)]
struct Story {
    /// What the sending application handed over, and whether settled.
    sent: Vec<(Bytes, bool)>,
    /// What the receiving application got.
    received: Vec<(Bytes, bool)>,
    /// Deliveries the receiver has not decided.
    undecided: VecDeque<(Serial, usize)>,
    /// What the receiver decided, by number of message.
    decided: BTreeMap<usize, DeliveryState>,
    /// What the sender heard, by number of message.
    heard: BTreeMap<usize, DeliveryState>,
    /// What the receiver heard back after deciding without settling.
    confirmed: BTreeMap<usize, DeliveryState>,
    waiting: BTreeMap<u32, usize>,
    drain_asked: bool,
    drained: u32,
}

struct Pair {
    client: Connection,
    server: Connection,
    to_server: BytesMut,
    to_client: BytesMut,
    server_input: BytesMut,
    client_input: BytesMut,
    /// Client's and server's id of each link.
    links: Vec<(LinkId, Option<LinkId>)>,
    stories: Vec<Story>,
    ended: bool,
}

fn client_sends(link: usize) -> bool {
    link < LINKS / 2
}

impl Pair {
    fn new(client_limits: Limits, server_limits: Limits) -> Self {
        let client = Connection::client(ClientConfig::new("client"), client_limits, Millis(0));
        let server = Connection::server(ServerConfig::new("server"), server_limits, Millis(0));
        let mut pair = Self {
            client,
            server,
            to_server: BytesMut::new(),
            to_client: BytesMut::new(),
            server_input: BytesMut::new(),
            client_input: BytesMut::new(),
            links: Vec::new(),
            stories: (0..LINKS).map(|_| Story::default()).collect(),
            ended: false,
        };
        pair.server.authenticated();
        pair.carry_all();
        let session = pair.client.begin().unwrap();
        for link in 0..LINKS {
            let role = if client_sends(link) { Role::Sender } else { Role::Receiver };
            let mut attach = OwnAttach::new(format!("link {link}"), role);
            attach.source = Some(Source::at("source"));
            attach.target = Some(TargetNode::Node(Target::at("target")));
            let id = pair.client.attach(session, attach).unwrap();
            pair.links.push((id, None));
        }
        pair.carry_all();
        assert!(pair.links.iter().all(|(_, server)| server.is_some()));
        pair
    }

    fn sender(&mut self, link: usize) -> (&mut Connection, LinkId) {
        let (client, server) = self.links[link];
        if client_sends(link) { (&mut self.client, client) } else { (&mut self.server, server.unwrap()) }
    }

    fn receiver(&mut self, link: usize) -> (&mut Connection, LinkId) {
        let (client, server) = self.links[link];
        if client_sends(link) { (&mut self.server, server.unwrap()) } else { (&mut self.client, client) }
    }

    fn collect_output(&mut self) {
        let mut chunks = Vec::new();
        self.client.take_output(&mut chunks);
        chunks.drain(..).for_each(|chunk| self.to_server.extend_from_slice(&chunk));
        self.server.take_output(&mut chunks);
        chunks.drain(..).for_each(|chunk| self.to_client.extend_from_slice(&chunk));
    }

    /// Carries up to `bytes` bytes one way; returns whether there were any.
    fn carry(&mut self, to_server: bool, bytes: usize) -> bool {
        self.collect_output();
        let (wire, input, engine) = if to_server {
            (&mut self.to_server, &mut self.server_input, &mut self.server)
        } else {
            (&mut self.to_client, &mut self.client_input, &mut self.client)
        };
        let bytes = bytes.min(wire.len());
        input.extend_from_slice(&wire.split_to(bytes));
        loop {
            let received = engine.receive(input, Millis(0));
            if received == Received::All {
                break;
            }
            let mut chunks = Vec::new();
            engine.take_output(&mut chunks);
            let back = if to_server { &mut self.to_client } else { &mut self.to_server };
            for chunk in &chunks {
                back.extend_from_slice(chunk);
            }
        }
        self.handle_events(to_server);
        bytes > 0
    }

    fn carry_all(&mut self) {
        loop {
            let there = self.carry(true, usize::MAX);
            let back = self.carry(false, usize::MAX);
            if !there && !back {
                break;
            }
        }
    }

    fn handle_events(&mut self, at_server: bool) {
        loop {
            let engine = if at_server { &mut self.server } else { &mut self.client };
            let Some(event) = engine.next_event() else { break };
            match event {
                Event::Attach(request) => {
                    let number = self.links.iter().position(|(_, server)| server.is_none()).unwrap();
                    assert_eq!(request.attach.name, *format!("link {number}"));
                    let (source, target) = (request.attach.source, request.attach.target);
                    let reply = AttachReply { source, target, ..AttachReply::default() };
                    engine.accept_attach(request.link, reply).unwrap();
                    self.links[number].1 = Some(request.link);
                }
                Event::Delivery(delivery) => {
                    let link = self.number(at_server, delivery.link);
                    let story = &mut self.stories[link];
                    let message = story.received.len();
                    story.received.push((delivery.payload, delivery.settled));
                    if !delivery.settled {
                        story.undecided.push_back((delivery.delivery, message));
                    }
                }
                Event::Settlement(settlement) => {
                    let link = self.number(at_server, settlement.link);
                    let we_sent = client_sends(link) != at_server;
                    let state = settlement.state.map(|state| *state).unwrap();
                    for delivery in &settlement.deliveries {
                        if we_sent {
                            let message = usize::try_from(delivery.key).unwrap();
                            let before = self.stories[link].heard.insert(message, state.clone());
                            assert_eq!(before, None, "an outcome is heard once");
                            if !settlement.settled {
                                let (engine, id) = self.sender(link);
                                engine.settle(id, delivery.delivery, state.clone()).unwrap();
                            }
                        } else {
                            let story = &mut self.stories[link];
                            let message = story.waiting.remove(&delivery.delivery.get()).unwrap();
                            assert_eq!(story.confirmed.insert(message, state.clone()), None);
                        }
                    }
                }
                Event::Credit { link, drain: true, .. } => engine.drained(link).unwrap(),
                Event::Drained { link } => {
                    let link = self.number(at_server, link);
                    assert!(std::mem::take(&mut self.stories[link].drain_asked));
                    self.stories[link].drained += 1;
                }
                Event::Closed(Closed::Own | Closed::Peer { error: None }) => self.ended = true,
                Event::Opened(_)
                | Event::Attached { .. }
                | Event::Credit { .. }
                | Event::WindowOpened { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn number(&self, at_server: bool, id: LinkId) -> usize {
        self.links
            .iter()
            .position(|(client, server)| if at_server { *server == Some(id) } else { *client == id })
            .unwrap()
    }

    fn send(&mut self, link: usize, size: usize, settled: bool) -> Result<(), SendError> {
        let message = self.stories[link].sent.len();
        let fill = u8::try_from(message % 251).unwrap();
        let payload: Bytes =
            (0..size).map(|place| fill.wrapping_add(u8::try_from(place % 251).unwrap())).collect();
        let cut = size / 3;
        // The tail as a slice of its own, or behind what is not wanted of it.
        let (tail, from) =
            if message.is_multiple_of(2) { (payload.slice(cut..), 0) } else { (payload.clone(), cut) };
        let outgoing = Outgoing {
            tag: DeliveryTag::from(u64::try_from(message).unwrap()),
            message_format: 0,
            settled,
            state: None,
            head: &payload[..cut],
            tail: &tail,
            key: u128::try_from(message).unwrap(),
        };
        let (engine, id) = self.sender(link);
        engine.send_from(id, &outgoing, from)?;
        self.stories[link].sent.push((payload, settled));
        Ok(())
    }

    fn settle(&mut self, link: usize, number: u8, decide_only: bool) {
        let Some((delivery, message)) = self.stories[link].undecided.pop_front() else { return };
        let state = outcome(number);
        let (engine, id) = self.receiver(link);
        if decide_only {
            engine.decide(id, delivery, state.clone()).unwrap();
            self.stories[link].waiting.insert(delivery.get(), message);
        } else {
            engine.settle(id, delivery, state.clone()).unwrap();
        }
        self.stories[link].decided.insert(message, state);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Send { link, size, settled } => match self.send(link, size, settled) {
                Ok(()) | Err(SendError::NoCredit | SendError::WindowClosed) => {}
                Err(other) => panic!("{other}"),
            },
            Step::Grant { link, credit } => {
                // A new grant takes back a drain that was not answered yet.
                self.stories[link].drain_asked = false;
                let (engine, id) = self.receiver(link);
                engine.grant(id, credit).unwrap();
            }
            Step::Drain { link } => {
                let (engine, id) = self.receiver(link);
                if engine.credit(id).unwrap() > 0 {
                    engine.drain(id).unwrap();
                    self.stories[link].drain_asked = true;
                }
            }
            Step::Settle { link, outcome, decide_only } => self.settle(link, outcome, decide_only),
            Step::Carry { to_server, bytes } => {
                self.carry(to_server, bytes);
            }
        }
    }

    /// Lets everything arrive and be decided, and checks what each end knows.
    fn finish(mut self) {
        self.carry_all();
        for link in 0..LINKS {
            // The windows must open again: one more message passes on every link.
            let (engine, id) = self.receiver(link);
            engine.grant(id, 5).unwrap();
            self.stories[link].drain_asked = false;
            self.carry_all();
            self.send(link, 2000, false).unwrap();
            self.carry_all();
            while !self.stories[link].undecided.is_empty() {
                self.settle(link, 0, false);
            }
            self.carry_all();
        }
        for story in &self.stories {
            assert_eq!(story.sent.len(), story.received.len());
            for (sent, received) in story.sent.iter().zip(&story.received) {
                assert_eq!(sent, received, "whole, in order, once");
            }
            assert_eq!(story.heard, story.decided, "both ends agree");
            assert!(story.waiting.is_empty(), "every decision was confirmed");
            for (message, state) in &story.confirmed {
                assert_eq!(story.decided.get(message), Some(state));
            }
        }
        self.client.close(None).unwrap();
        self.carry_all();
        assert!(self.ended && self.client.is_finished() && self.server.is_finished());
    }
}

fn limits(frame: u32, window: u32, frames_per_receive: u32) -> Limits {
    let mut limits = Limits { incoming_window: window, frames_per_receive, ..Limits::default() };
    limits.authenticated.frame = FrameLimit::new(frame);
    limits.before_authentication.frame = FrameLimit::new(frame);
    limits
}

proptest! {
    #[test]
    fn what_is_sent_arrives_once_in_order_and_both_ends_agree(
        frames in (prop_oneof![Just(512u32), 513u32..5000], prop_oneof![Just(512u32), 513u32..5000]),
        windows in (1u32..12, 1u32..12),
        frames_per_receive in 1u32..8,
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let mut pair = Pair::new(
            limits(frames.0, windows.0, frames_per_receive),
            limits(frames.1, windows.1, frames_per_receive),
        );
        for step in steps {
            pair.take(step);
        }
        pair.finish();
    }
}

#[test]
fn a_message_of_many_frames_waits_for_the_window_and_nothing_overtakes_it() {
    let mut pair = Pair::new(limits(512, 2, 100), limits(512, 2, 100));
    pair.take(Step::Grant { link: 0, credit: 5 });
    pair.carry_all();
    pair.send(0, 5000, false).unwrap();
    assert_eq!(pair.send(0, 1, false), Err(SendError::WindowClosed), "the first is not through yet");
    assert_eq!(pair.send(1, 1, false), Err(SendError::NoCredit), "credit is asked for first");
    pair.carry_all();
    pair.send(0, 1, false).unwrap();
    pair.carry_all();
    assert_eq!(
        pair.stories[0].received.iter().map(|(payload, _)| payload.len()).collect::<Vec<_>>(),
        [5000, 1]
    );
    pair.finish();
}
