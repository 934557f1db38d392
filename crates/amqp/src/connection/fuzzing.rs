//! Feeds any bytes to an engine and checks what must hold whatever they are.
//!
//! The same function serves libFuzzer, property tests and the replay of the corpus. The first byte of the input
//! says how far the conversation has come before the rest is played, and into which pieces the rest is cut.
//!
//! What is checked:
//!
//! - every call ends, and no peer makes the engine hold more sessions, links, bytes or output than its limits say;
//! - before authentication nothing reaches the layer above but SASL, the open, and links to the open addresses;
//! - all the engine writes is a sequence of well-formed frames that the peer's frame limit allows;
//! - how the bytes are cut changes neither an event nor a byte of the answer.

use bytes::{Buf, Bytes, BytesMut};

use super::{
    AttachReply, Closed, Connection, Credentials, Delivery, Event, Limits, LinkId, Millis, Outgoing,
    Received, ServerConfig,
};
use crate::encode::Encode;
use crate::frame::{FRAME_TYPE_AMQP, Frame, SaslFrame, begin_frame, end_frame, frame_size};
use crate::performative::{Begin, DeliveryTag, Open, Role, SaslInit, TargetNode};
use crate::protocol_header::Protocol;
use crate::text::{Symbol, Text};

/// The peer's frame limit in a conversation that begins with ours.
const PEER_FRAME: u32 = 1024;

const READABLE: &str = "all the engine writes can be read";

/// Plays `input` and panics if something does not hold.
pub fn check(input: &[u8]) {
    let Some((mode, bytes)) = input.split_first() else { return };
    let whole = play(*mode, bytes, usize::MAX);
    let piece = usize::from(mode >> 4).saturating_add(1);
    let cut = play(*mode, bytes, piece);
    // Not `assert_eq`: what differs can be long, and the input tells it all.
    assert!(whole.events == cut.events, "events depend on how the bytes are cut into pieces of {piece}");
    assert!(whole.output == cut.output, "answers depend on how the bytes are cut into pieces of {piece}");
}

/// What a conversation led to.
#[derive(Debug, Default)]
struct Played {
    events: Vec<Event>,
    output: Vec<u8>,
}

/// Limits small enough that a few bytes reach them. One frame per call, so that the layer above acts after the same
/// frame however the bytes were cut.
fn limits() -> Limits {
    let mut limits = Limits {
        frames_per_receive: 1,
        channel_max: 15,
        handle_max: 15,
        incoming_window: 8,
        credit_overrun_max: 4,
        output_bytes_max: 4096,
        ..Limits::default()
    };
    limits.before_authentication.sessions_max = 4;
    limits.before_authentication.links_max = 4;
    limits.before_authentication.message_bytes_max = 512;
    limits.before_authentication.assembly_bytes_max = 1024;
    limits.authenticated.sessions_max = 8;
    limits.authenticated.links_max = 8;
    limits.authenticated.message_bytes_max = 2048;
    limits.authenticated.assembly_bytes_max = 4096;
    limits.authenticated.unsettled_max = 16;
    limits
}

fn play(mode: u8, bytes: &[u8], piece: usize) -> Played {
    let mut config = ServerConfig::new("fuzzed");
    config.sasl_optional = mode & 8 != 0;
    let engine = Connection::server(config, limits(), Millis(0));
    let mut game = Game { engine, input: BytesMut::new(), played: Played::default() };
    let opened = mode & 1 != 0;
    if opened {
        game.feed(&opening());
    }
    if mode & 2 != 0 {
        game.engine.authenticated();
    }
    if opened && mode & 4 != 0 {
        game.feed(&beginning());
    }
    for part in bytes.chunks(piece.min(bytes.len()).max(1)) {
        game.feed(part);
    }
    for hour in 1..=3 {
        game.engine.on_time(Millis(hour * 3_600_000));
        game.take_output();
    }
    game.engine.transport_closed();
    game.handle_events();
    assert!(
        matches!(game.played.events.last(), Some(Event::Closed(_))),
        "a connection ends with one last event"
    );
    check_output(&game.played.output, if opened { PEER_FRAME } else { u32::MAX });
    game.played
}

/// An engine with a layer above that does the obvious at every event.
struct Game {
    engine: Connection,
    input: BytesMut,
    played: Played,
}

impl Game {
    fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        // Every call handles a frame or takes output, so there are no more calls than bytes.
        let calls_max = self.input.len().saturating_add(self.engine.inbox.len()).saturating_add(8);
        for call in 0..=calls_max {
            assert!(call < calls_max, "the engine does not come to an end");
            let received = self.engine.receive(&mut self.input, Millis(0));
            // What waits behind credentials is read once they are decided.
            let asked = self.engine.events.iter().any(|event| matches!(event, Event::Credentials(_)));
            self.handle_events();
            self.check_limits();
            self.take_output();
            if received == Received::All && !asked {
                break;
            }
        }
    }

    fn take_output(&mut self) {
        let mut chunks = Vec::new();
        self.engine.take_output(&mut chunks);
        for chunk in chunks {
            self.played.output.extend_from_slice(&chunk);
        }
    }

    fn check_limits(&self) {
        let (engine, limits) = (&self.engine, limits());
        let stage = limits.stage(engine.is_authenticated());
        assert!(engine.sessions.len() <= usize::try_from(stage.sessions_max).unwrap_or(usize::MAX));
        assert!(engine.links_live <= stage.links_max, "live links");
        let places = usize::try_from(stage.links_max.saturating_mul(2)).unwrap_or(usize::MAX);
        assert!(engine.links.len() <= places, "links with those on their way out");
        assert!(engine.assembly_bytes <= stage.assembly_bytes_max, "unfinished messages");
        // One answer more than the limit, and no answer but an attach is longer than a frame.
        let slack = 2 * 4096;
        assert!(engine.output_pending() <= limits.output_bytes_max.saturating_add(slack), "output");
        assert!(engine.events.is_empty(), "events were taken");
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.engine.next_event() {
            if !self.engine.is_authenticated() {
                check_stranger(&event);
            }
            self.act(&event);
            self.played.events.push(event);
        }
    }

    /// Errors are of no interest here: the peer may have taken away what the event was about.
    fn act(&mut self, event: &Event) {
        let engine = &mut self.engine;
        let _ = match event {
            Event::Credentials(Credentials::Plain(credentials)) if credentials.user == "good" => {
                engine.accept_credentials()
            }
            Event::Credentials(_) => engine.refuse_credentials(),
            Event::Attach(request) => {
                let reply = AttachReply {
                    source: request.attach.source.clone(),
                    target: request.attach.target.clone(),
                    max_message_size: Some(1024),
                    ..AttachReply::default()
                };
                let accepted = engine.accept_attach(request.link, reply);
                if request.attach.role == Role::Sender {
                    accepted.and_then(|()| engine.grant(request.link, 5))
                } else {
                    accepted
                }
            }
            Event::Delivery(Delivery { link, delivery, settled: false, .. })
            | Event::TooLarge { link, delivery, settled: false, .. } => engine.accept(*link, *delivery),
            Event::Credit { link, credit, drain } => {
                send(engine, *link, (*credit).min(3));
                if *drain { engine.drained(*link) } else { Ok(()) }
            }
            Event::Settlement(settlement) if !settlement.settled => {
                for delivery in &settlement.deliveries {
                    let _ = engine.accept(settlement.link, delivery.delivery);
                }
                Ok(())
            }
            _ => Ok(()),
        };
    }
}

/// Sends messages larger than a frame of the peer's.
fn send(engine: &mut Connection, link: LinkId, count: u32) {
    let tail = Bytes::from_static(&[0x2a; 1500]);
    for number in 0..count {
        let outgoing = Outgoing {
            tag: DeliveryTag::from(u64::from(number)),
            message_format: 0,
            settled: number % 2 == 0,
            state: None,
            head: b"head",
            tail: &tail,
            key: 0,
        };
        if engine.send(link, &outgoing).is_err() {
            return;
        }
    }
}

/// What a stranger can cause: the open, its links to `$cbs`, and the end.
fn check_stranger(event: &Event) {
    if let Event::Attach(request) = event {
        let address = match (request.attach.role, &request.attach.source, &request.attach.target) {
            (Role::Sender, _, Some(TargetNode::Node(target))) => target.address.clone(),
            (Role::Receiver, Some(source), _) => source.address.clone(),
            _ => None,
        };
        let open = address.is_some_and(|address| address.as_bytes().eq_ignore_ascii_case(b"$cbs"));
        assert!(open, "a stranger attached something else than $cbs: {:?}", request.attach);
    }
    if let Event::Closed(Closed::Violation(violation)) = event {
        assert!(!violation.to_string().is_empty());
    }
}

/// All output is protocol headers, then frames within the peer's limit.
fn check_output(output: &[u8], peer_frame: u32) {
    let mut output = Bytes::copy_from_slice(output);
    let mut sasl = false;
    while !output.is_empty() {
        if output.starts_with(b"AMQP") {
            sasl = output.get(4) == Some(&3);
            output.advance(8);
            continue;
        }
        let size = frame_size(&output, u32::MAX).expect(READABLE).expect(READABLE);
        let frame = output.split_to(size);
        if sasl {
            SaslFrame::decode(frame).expect(READABLE);
        } else {
            let transfer = frame.get(10) == Some(&crate::descriptor::TRANSFER.code);
            assert!(
                !transfer || size <= usize::try_from(peer_frame).unwrap_or(usize::MAX),
                "a frame of {size} bytes"
            );
            Frame::decode(frame).expect(READABLE);
        }
    }
}

/// A peer that has passed SASL as nobody and opened.
fn opening() -> Vec<u8> {
    let mut bytes = Protocol::Sasl.header().to_vec();
    let init = SaslInit { mechanism: Symbol::from_static("ANONYMOUS"), ..SaslInit::default() };
    SaslFrame::Init(init).encode(&mut bytes);
    bytes.extend_from_slice(&Protocol::Amqp.header());
    let open =
        Open { container_id: Text::from_static("peer"), max_frame_size: Some(PEER_FRAME), ..Open::default() };
    put(&mut bytes, &open);
    bytes
}

/// A session on channel 0.
fn beginning() -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, &Begin { incoming_window: 10, outgoing_window: 10, ..Begin::default() });
    bytes
}

fn put(bytes: &mut Vec<u8>, performative: &impl Encode) {
    let start = begin_frame(bytes, FRAME_TYPE_AMQP, 0);
    performative.encode(bytes);
    end_frame(bytes, start);
}

#[cfg(test)]
mod tests {
    use super::super::{AttachRequest, SessionId};
    use super::*;
    use crate::performative::{Attach, Target, Transfer};

    #[test]
    #[should_panic(expected = "something else than $cbs")]
    fn a_stranger_with_a_link_to_a_queue_is_noticed() {
        let mut slots = super::super::slots::Slots::new();
        let key = slots.insert(());
        let mut attach = Attach::new(Text::from_static("link"), 0, Role::Sender);
        attach.target = Some(TargetNode::Node(Target::at("orders")));
        check_stranger(&Event::Attach(Box::new(AttachRequest {
            link: LinkId(key),
            session: SessionId(key),
            attach,
        })));
    }

    #[test]
    #[should_panic(expected = "can be read")]
    fn output_that_is_no_frame_is_noticed() {
        check_output(&[0, 0, 0, 9, 2, 0, 0, 0, 0xff], PEER_FRAME);
    }

    #[test]
    #[should_panic(expected = "a frame of")]
    fn a_transfer_above_the_peers_limit_is_noticed() {
        let mut bytes = Vec::new();
        let start = begin_frame(&mut bytes, FRAME_TYPE_AMQP, 0);
        Transfer::default().encode(&mut bytes);
        bytes.extend_from_slice(&[0; 2000]);
        end_frame(&mut bytes, start);
        check_output(&bytes, PEER_FRAME);
    }
}
