//! Recorded conversations: the same bytes in, the same bytes out.
//!
//! A trace in `traces/` is text. Lines that begin with `>` are bytes of the client, with `<` bytes of the engine,
//! both in hex, one frame per line; `=` lines are what the layer above sees and does; `#` lines are for the reader.
//! Every answer of the engine stands in the trace, so that a change of a single byte fails this test.
//! `UPDATE_TRACES=1 cargo test -p vorrang-amqp --test connection traces` writes the answers anew; review them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bytes::{Buf, Bytes};
use vorrang_amqp::connection::{
    AttachReply, Connection, Credentials, Event, Limits, LinkEnding, LinkId, Millis, Outgoing, Serial,
    ServerConfig,
};
use vorrang_amqp::frame::{SaslFrame, frame_size};
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Error, Outcome};
use vorrang_amqp::{Frame, FrameBody};

use crate::raw::Raw;
use crate::states::in_short;

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let mut traces: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    traces.sort();
    traces
}

#[test]
fn recorded_clients_get_the_recorded_answers() {
    let update = std::env::var_os("UPDATE_TRACES").is_some();
    let traces = traces();
    assert!(traces.len() >= 5, "{traces:?}");
    for path in traces {
        let recorded = std::fs::read_to_string(&path).unwrap();
        let replayed = Replay::new().run(&recorded, usize::MAX);
        if update {
            std::fs::write(&path, replayed).unwrap();
        } else {
            assert_eq!(replayed, recorded, "{}", path.display());
        }
    }
}

#[test]
fn recorded_clients_get_the_recorded_answers_however_their_bytes_are_cut() {
    for path in traces() {
        let recorded = std::fs::read_to_string(&path).unwrap();
        for piece in [1, 3, 7] {
            assert_eq!(
                Replay::new().run(&recorded, piece),
                recorded,
                "{} in pieces of {piece}",
                path.display()
            );
        }
    }
}

#[test]
fn a_trace_with_one_byte_changed_is_noticed() {
    let path = traces().remove(0);
    let recorded = std::fs::read_to_string(&path).unwrap();
    let line = recorded.lines().rfind(|line| line.starts_with("< ")).unwrap();
    let flipped = format!("{}{}", &line[..line.len() - 1], if line.ends_with('0') { '1' } else { '0' });
    let damaged = recorded.replace(line, &flipped);
    assert_ne!(Replay::new().run(&damaged, usize::MAX), damaged);
}

/// A server and the layer above it, which does what the trace says.
struct Replay {
    raw: Raw,
    links: BTreeMap<String, LinkId>,
    /// The engine's bytes begin with protocol headers and SASL frames.
    sasl: bool,
}

impl Replay {
    fn new() -> Self {
        let mut config = ServerConfig::new("broker");
        config.sasl_optional = true;
        let engine = Connection::server(config, Limits::default(), Millis(0));
        Self { raw: Raw::of(engine), links: BTreeMap::new(), sasl: false }
    }

    /// Plays the trace and returns it with the answers the engine really gives.
    fn run(mut self, trace: &str, piece: usize) -> String {
        let mut played = String::new();
        for line in trace.lines() {
            if line.starts_with("< ") || line.starts_with("#<") {
                continue;
            }
            if !line.starts_with("> ") {
                // Bytes the client wrote in a row are answered together.
                self.answer(&mut played);
            }
            writeln!(played, "{line}").unwrap();
            if let Some(hex) = line.strip_prefix("> ") {
                let bytes = unhex(hex);
                bytes.chunks(piece.min(bytes.len())).for_each(|part| self.raw.write(part));
            } else if let Some(action) = line.strip_prefix("= ") {
                self.act(action);
            }
        }
        self.answer(&mut played);
        assert_eq!(self.raw.engine.next_event(), None, "the trace names every event");
        played
    }

    fn answer(&mut self, played: &mut String) {
        let mut output = self.raw.output();
        while !output.is_empty() {
            let header = output.starts_with(b"AMQP");
            let size = if header { 8 } else { frame_size(&output, u32::MAX).unwrap().unwrap() };
            let bytes = output.copy_to_bytes(size);
            let name = if header {
                self.sasl = bytes[4] == 3;
                "header".to_owned()
            } else if self.sasl {
                match SaslFrame::decode(bytes.clone()).unwrap() {
                    SaslFrame::Mechanisms(_) => "sasl-mechanisms".to_owned(),
                    SaslFrame::Outcome(outcome) => format!("sasl-outcome {:?}", outcome.code),
                    other => panic!("{other:?}"),
                }
            } else {
                describe(&Frame::decode(bytes.clone()).unwrap())
            };
            writeln!(played, "#< {name}\n< {}", hex(&bytes)).unwrap();
        }
    }

    fn act(&mut self, action: &str) {
        let words: Vec<&str> = action.split_whitespace().collect();
        let engine = &mut self.raw.engine;
        match &words[..] {
            ["opened"] => assert!(matches!(engine.next_event(), Some(Event::Opened(_)))),
            ["authenticated"] => engine.authenticated(),
            ["credentials", user, password] => {
                let Some(Event::Credentials(Credentials::Plain(found))) = engine.next_event() else {
                    panic!()
                };
                assert_eq!((found.user.as_str(), found.password.as_str()), (*user, *password));
                engine.accept_credentials().unwrap();
                self.raw.write(b"");
            }
            ["attach", name, rest @ ..] => {
                let Some(Event::Attach(request)) = engine.next_event() else { panic!("{action}") };
                assert!(request.attach.name == **name, "{action}: {:?}", request.attach.name);
                match rest {
                    ["accept", max] => {
                        let reply = AttachReply {
                            source: request.attach.source,
                            target: request.attach.target,
                            max_message_size: Some(max.parse().unwrap()).filter(|max| *max > 0),
                            ..AttachReply::default()
                        };
                        engine.accept_attach(request.link, reply).unwrap();
                        self.links.insert((*name).to_owned(), request.link);
                    }
                    ["refuse", condition, text @ ..] => {
                        let mut error = Error::new("", text.join(" "));
                        error.condition = (*condition).into();
                        engine.refuse_attach(request.link, error).unwrap();
                    }
                    ["wait"] => {
                        self.links.insert((*name).to_owned(), request.link);
                    }
                    _ => panic!("{action}"),
                }
            }
            ["cancelled", name] => {
                let link = self.links[*name];
                assert_eq!(engine.next_event(), Some(Event::AttachCancelled { link }));
            }
            ["grant", name, credit] => engine.grant(self.links[*name], credit.parse().unwrap()).unwrap(),
            ["credit", name, credit, rest @ ..] => {
                let (link, credit) = (self.links[*name], credit.parse().unwrap());
                let drain = matches!(rest, ["drain"]);
                assert_eq!(engine.next_event(), Some(Event::Credit { link, credit, drain }), "{action}");
            }
            ["drained", name] => engine.drained(self.links[*name]).unwrap(),
            ["delivery", name, delivery, rest @ ..] => {
                let Some(Event::Delivery(found)) = engine.next_event() else { panic!("{action}") };
                assert_eq!((found.link, found.delivery), (self.links[*name], id(delivery)), "{action}");
                assert_eq!(found.settled, rest.contains(&"settled"), "{action}");
                if !found.settled {
                    engine.accept(found.link, found.delivery).unwrap();
                }
            }
            ["send", name, tag, payload] => {
                let tag = DeliveryTag::new(&unhex(tag)).unwrap();
                let tail = Bytes::from(unhex(payload));
                let outgoing = Outgoing {
                    tag,
                    message_format: 0,
                    settled: false,
                    state: None,
                    head: b"",
                    tail: &tail,
                    key: 0,
                };
                engine.send(self.links[*name], &outgoing).unwrap();
            }
            ["settled", name, delivery] => {
                let Some(Event::Settlement(found)) = engine.next_event() else { panic!("{action}") };
                assert!(found.settled && found.link == self.links[*name], "{action}");
                assert_eq!(found.deliveries[0].delivery, id(delivery), "{action}");
            }
            ["settlement", name, outcome, first, last, "answer"] => {
                let Some(Event::Settlement(found)) = engine.next_event() else { panic!("{action}") };
                assert!(!found.settled && found.link == self.links[*name]);
                let ids: Vec<Serial> = found.deliveries.iter().map(|delivery| delivery.delivery).collect();
                assert_eq!((ids.first(), ids.last()), (Some(&id(first)), Some(&id(last))), "{action}");
                let answer = match (*outcome, found.state.as_deref()) {
                    ("accepted", Some(DeliveryState::Outcome(Outcome::Accepted))) => DeliveryState::ACCEPTED,
                    // A rejection is answered without its error: an error would mean that settling failed.
                    ("rejected", Some(DeliveryState::Outcome(Outcome::Rejected { error: Some(_) }))) => {
                        Outcome::Rejected { error: None }.into()
                    }
                    ("modified", Some(state @ DeliveryState::Outcome(Outcome::Modified(_)))) => state.clone(),
                    (_, other) => panic!("{action}: {other:?}"),
                };
                for delivery in ids {
                    engine.settle(found.link, delivery, answer.clone()).unwrap();
                }
            }
            ["ended", name, why] => {
                let Some(Event::LinkEnded { link, ending }) = engine.next_event() else { panic!("{action}") };
                assert_eq!(link, self.links[*name], "{action}");
                let found = match ending {
                    LinkEnding::Peer { .. } => "peer",
                    LinkEnding::Own => "own",
                    LinkEnding::Session => "session",
                    LinkEnding::Violation(_) => "violation",
                };
                assert_eq!(found, *why, "{action}");
            }
            ["closed"] => assert!(matches!(engine.next_event(), Some(Event::Closed(_)))),
            ["transport", "closed"] => engine.transport_closed(),
            _ => panic!("unknown action: {action}"),
        }
    }
}

fn id(text: &str) -> Serial {
    Serial::new(text.parse().unwrap())
}

/// A frame in a few words for the reader of a trace.
pub(crate) fn describe(frame: &Frame) -> String {
    let channel = frame.channel;
    let detail = match &frame.body {
        FrameBody::Attach(attach) => {
            let termini =
                if attach.source.is_none() && attach.target.is_none() { ", no termini" } else { "" };
            format!(" {:?} handle {} as {:?}{termini}", attach.name, attach.handle, attach.role)
        }
        FrameBody::Flow(flow) => match &flow.link {
            Some(link) => format!(
                " handle {} count {:?} credit {:?}{}",
                link.handle,
                link.delivery_count,
                link.link_credit,
                if link.drain { " drain" } else { "" }
            ),
            None => " session".to_owned(),
        },
        FrameBody::Transfer(transfer, payload) => {
            format!(
                " handle {} delivery {:?}, {} bytes",
                transfer.handle,
                transfer.delivery_id,
                payload.len()
            )
        }
        FrameBody::Disposition(disposition) => format!(
            " as {:?} {}..={:?}{}",
            disposition.role,
            disposition.first,
            disposition.last,
            if disposition.settled { " settled" } else { "" }
        ),
        FrameBody::Detach(detach) => format!(" handle {}", detach.handle),
        _ => String::new(),
    };
    format!("ch {channel} {}{detail}", in_short(&frame.body))
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    assert_eq!(digits.len() % 2, 0, "{text}");
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
