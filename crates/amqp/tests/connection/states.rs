//! Every performative in every state, and what the engine writes in return.

use std::fmt::Write as _;

use bytes::Bytes;
use vorrang_amqp::connection::Limits;
use vorrang_amqp::frame::{FrameBody, SaslFrame};
use vorrang_amqp::performative::{
    Close, DeliveryState, Detach, Disposition, End, Error, Flow, Open, Role, SaslInit,
};
use vorrang_amqp::protocol_header::Protocol;
use vorrang_amqp::{Symbol, Text};

use crate::raw::{Raw, begin, credit, receiver, sender, transfer};
use crate::smoke::accept_attach;

type State = (&'static str, fn() -> Raw);
type Said = (&'static str, fn() -> FrameBody);

/// States of a server's connection, each with the way into it.
const STATES: [State; 10] = [
    ("await open", || {
        let mut raw = Raw::server(Limits::default());
        raw.write(&Protocol::Sasl.header());
        raw.write_sasl(&SaslFrame::Init(SaslInit {
            mechanism: Symbol::from_static("MSSBCBS"),
            ..SaslInit::default()
        }));
        raw.write(&Protocol::Amqp.header());
        raw.discard_output();
        raw
    }),
    ("open", || Raw::opened(Limits::default())),
    ("begun", || Raw::begun(Limits::default())),
    ("asked", || {
        let mut raw = Raw::begun(Limits::default());
        raw.write_frame(0, sender("s", 0, "q"));
        raw
    }),
    ("receiving", || {
        let mut raw = Raw::begun(Limits::default());
        raw.write_frame(0, sender("s", 0, "q"));
        accept_attach(&mut raw);
        raw.discard_output();
        raw
    }),
    ("sending", || {
        let mut raw = Raw::begun(Limits::default());
        raw.write_frame(0, receiver("r", 0, "q"));
        accept_attach(&mut raw);
        raw.discard_output();
        raw
    }),
    ("we detached", || {
        let mut raw = Raw::begun(Limits::default());
        raw.write_frame(0, sender("s", 0, "q"));
        let link = accept_attach(&mut raw);
        raw.engine.detach(link, true, Some(Error::new("amqp:link:detach-forced", "maintenance"))).unwrap();
        raw.discard_output();
        raw
    }),
    ("we ended", || {
        let mut raw = Raw::begun(Limits::default());
        raw.write_frame(0, transfer(99, 0, b""));
        raw.discard_output();
        raw
    }),
    ("we closed", || {
        let mut raw = Raw::begun(Limits::default());
        raw.engine.close(None).unwrap();
        raw.discard_output();
        raw
    }),
    ("peer closed", || {
        let mut raw = Raw::begun(Limits::default());
        raw.write_frame(0, FrameBody::Close(Close::default()));
        raw.discard_output();
        raw
    }),
];

/// Everything a peer can say, on channel and handle 0.
const FRAMES: [Said; 11] = [
    ("heartbeat", || FrameBody::Heartbeat),
    ("open", || FrameBody::Open(Box::new(Open { container_id: Text::from("again"), ..Open::default() }))),
    ("begin", begin),
    ("attach", || sender("other", 0, "q")),
    ("flow", || credit(0, 0, 10)),
    ("echo", || FrameBody::Flow(Flow { echo: true, ..Flow::default() })),
    ("transfer", || transfer(0, 0, b"payload")),
    ("disposition", || {
        FrameBody::Disposition(Disposition {
            role: Role::Receiver,
            first: 0,
            last: Some(u32::MAX),
            settled: true,
            state: Some(DeliveryState::ACCEPTED),
            batchable: false,
        })
    }),
    ("detach", || FrameBody::Detach(Detach { handle: 0, closed: true, error: None })),
    ("end", || FrameBody::End(End::default())),
    ("close", || FrameBody::Close(Close::default())),
];

/// The answers. `-` is none; the condition of an error follows the frame that carries it.
const TABLE: &str = "
await open: heartbeat -
await open: open open
await open: begin open close=amqp:illegal-state
await open: attach open close=amqp:illegal-state
await open: flow open close=amqp:illegal-state
await open: echo open close=amqp:illegal-state
await open: transfer open close=amqp:illegal-state
await open: disposition open close=amqp:illegal-state
await open: detach open close=amqp:illegal-state
await open: end open close=amqp:illegal-state
await open: close open close
open: heartbeat -
open: open close=amqp:illegal-state
open: begin begin
open: attach close=amqp:connection:framing-error
open: flow close=amqp:connection:framing-error
open: echo close=amqp:connection:framing-error
open: transfer close=amqp:connection:framing-error
open: disposition close=amqp:connection:framing-error
open: detach close=amqp:connection:framing-error
open: end close=amqp:connection:framing-error
open: close close
begun: heartbeat -
begun: open close=amqp:illegal-state
begun: begin close=amqp:connection:framing-error
begun: attach -
begun: flow -
begun: echo flow
begun: transfer end=amqp:session:unattached-handle
begun: disposition -
begun: detach end=amqp:session:unattached-handle
begun: end end
begun: close close
asked: heartbeat -
asked: open close=amqp:illegal-state
asked: begin close=amqp:connection:framing-error
asked: attach end=amqp:session:handle-in-use
asked: flow -
asked: echo flow
asked: transfer end=amqp:session:unattached-handle
asked: disposition -
asked: detach attach detach
asked: end end
asked: close close
receiving: heartbeat -
receiving: open close=amqp:illegal-state
receiving: begin close=amqp:connection:framing-error
receiving: attach end=amqp:session:handle-in-use
receiving: flow -
receiving: echo flow
receiving: transfer -
receiving: disposition -
receiving: detach detach
receiving: end end
receiving: close close
sending: heartbeat -
sending: open close=amqp:illegal-state
sending: begin close=amqp:connection:framing-error
sending: attach end=amqp:session:handle-in-use
sending: flow -
sending: echo flow
sending: transfer detach=amqp:not-allowed
sending: disposition -
sending: detach detach
sending: end end
sending: close close
we detached: heartbeat -
we detached: open close=amqp:illegal-state
we detached: begin close=amqp:connection:framing-error
we detached: attach end=amqp:session:handle-in-use
we detached: flow -
we detached: echo flow
we detached: transfer -
we detached: disposition -
we detached: detach -
we detached: end end
we detached: close close
we ended: heartbeat -
we ended: open close=amqp:illegal-state
we ended: begin close=amqp:connection:framing-error
we ended: attach -
we ended: flow -
we ended: echo -
we ended: transfer -
we ended: disposition -
we ended: detach -
we ended: end -
we ended: close close
we closed: heartbeat -
we closed: open -
we closed: begin -
we closed: attach -
we closed: flow -
we closed: echo -
we closed: transfer -
we closed: disposition -
we closed: detach -
we closed: end -
we closed: close -
peer closed: heartbeat -
peer closed: open -
peer closed: begin -
peer closed: attach -
peer closed: flow -
peer closed: echo -
peer closed: transfer -
peer closed: disposition -
peer closed: detach -
peer closed: end -
peer closed: close -
";

#[test]
fn every_performative_in_every_state_gets_the_expected_answer() {
    let mut found = String::from("\n");
    for (state, enter) in STATES {
        for (name, frame) in FRAMES {
            let mut raw = enter();
            raw.write_frame(0, frame());
            let answers: Vec<String> = raw.bodies().iter().map(in_short).collect();
            let answers = if answers.is_empty() { "-".to_owned() } else { answers.join(" ") };
            writeln!(found, "{state}: {name} {answers}").unwrap();
        }
    }
    assert_eq!(found, TABLE);
}

/// A frame as a word, with the condition it carries.
pub(crate) fn in_short(body: &FrameBody) -> String {
    let (name, error) = match body {
        FrameBody::Heartbeat => ("heartbeat", None),
        FrameBody::Open(_) => ("open", None),
        FrameBody::Begin(_) => ("begin", None),
        FrameBody::Attach(_) => ("attach", None),
        FrameBody::Flow(_) => ("flow", None),
        FrameBody::Transfer(..) => ("transfer", None),
        FrameBody::Disposition(_) => ("disposition", None),
        FrameBody::Detach(detach) => ("detach", detach.error.as_ref()),
        FrameBody::End(end) => ("end", end.error.as_ref()),
        FrameBody::Close(close) => ("close", close.error.as_ref()),
    };
    match error {
        Some(error) => format!("{name}={}", error.condition),
        None => name.to_owned(),
    }
}

#[test]
fn frames_that_are_not_amqp_close_an_open_connection_as_framing_errors() {
    let sasl_init: &[u8] = &[0, 0, 0, 16, 2, 1, 0, 0, 0, 0x53, 0x41, 0xc0, 3, 1, 0xa3, 0];
    let cases: [(&str, &[u8], &str); 7] = [
        ("labelled sasl", sasl_init, "close=amqp:connection:framing-error"),
        ("a type of its own", &[0, 0, 0, 8, 2, 9, 0, 0], "close=amqp:connection:framing-error"),
        ("smaller than its header", &[0, 0, 0, 7, 2, 0, 0, 0], "close=amqp:connection:framing-error"),
        ("size zero", &[0, 0, 0, 0, 2, 0, 0, 0], "close=amqp:connection:framing-error"),
        ("offset inside the header", &[0, 0, 0, 8, 1, 0, 0, 0], "close=amqp:connection:framing-error"),
        ("offset behind the end", &[0, 0, 0, 8, 3, 0, 0, 0], "close=amqp:connection:framing-error"),
        ("no performative", &[0, 0, 0, 12, 2, 0, 0, 0, 0, 0x53, 0x77, 0x45], "close=amqp:decode-error"),
    ];
    for (case, bytes, expected) in cases {
        let mut raw = Raw::opened(Limits::default());
        raw.write(bytes);
        let answers: Vec<String> = raw.bodies().iter().map(in_short).collect();
        assert_eq!(answers, [expected], "{case}");
        assert!(!raw.engine.is_finished(), "{case}: the peer may still answer the close");
        raw.write_frame(0, FrameBody::Close(Close::default()));
        assert!(raw.engine.is_finished(), "{case}");
    }
}

#[test]
fn bytes_that_are_no_protocol_header_are_answered_with_the_one_we_serve() {
    let cases: [(&str, &[u8]); 5] = [
        ("tls inside the connection", &Protocol::Tls.header()),
        ("amqp without sasl", &Protocol::Amqp.header()),
        ("another version", b"AMQP\x00\x00\x09\x01"),
        ("http", b"GET / HTTP/1.1\r\n\r\n"),
        ("not even eight bytes", b"GET"),
    ];
    for (case, bytes) in cases {
        let mut raw = Raw::server(Limits::default());
        raw.write(bytes);
        assert_eq!(raw.output(), Bytes::copy_from_slice(&Protocol::Sasl.header()), "{case}");
        assert!(raw.engine.is_finished(), "{case}");
        raw.write(&Protocol::Sasl.header());
        assert!(raw.output().is_empty(), "{case}: nothing follows");
    }
}
