//! A peer made of frames: writes what a test says and reads what the engine answers.

use bytes::{Bytes, BytesMut};
use vorrang_amqp::connection::{Connection, Event, Limits, Millis, Received, ServerConfig};
use vorrang_amqp::frame::{Frame, FrameBody, SaslFrame, frame_size};
use vorrang_amqp::performative::{
    Attach, Begin, Flow, LinkFlow, Open, Role, SaslInit, Source, Target, TargetNode, Transfer,
};
use vorrang_amqp::protocol_header::Protocol;
use vorrang_amqp::{Symbol, Text};

/// The engine under test and the bytes between it and the test.
pub(crate) struct Raw {
    pub(crate) engine: Connection,
    pub(crate) now: Millis,
    input: BytesMut,
    output: BytesMut,
}

impl Raw {
    /// A server with the given limits that has seen nothing yet.
    pub(crate) fn server(limits: Limits) -> Self {
        Self::of(Connection::server(ServerConfig::new("broker"), limits, Millis(0)))
    }

    pub(crate) fn of(engine: Connection) -> Self {
        Self { engine, now: Millis(0), input: BytesMut::new(), output: BytesMut::new() }
    }

    /// A server whose peer has passed SASL as nobody and opened.
    pub(crate) fn opened(limits: Limits) -> Self {
        let mut raw = Self::server(limits);
        raw.write(&Protocol::Sasl.header());
        raw.write_sasl(&SaslFrame::Init(SaslInit {
            mechanism: Symbol::from_static("ANONYMOUS"),
            initial_response: None,
            hostname: None,
        }));
        raw.write(&Protocol::Amqp.header());
        raw.write_frame(
            0,
            FrameBody::Open(Box::new(Open { container_id: Text::from("peer"), ..Open::default() })),
        );
        assert!(matches!(raw.engine.next_event(), Some(Event::Opened(_))));
        raw.discard_output();
        raw
    }

    /// The same, authenticated, with a session on channel 0.
    pub(crate) fn begun(limits: Limits) -> Self {
        let mut raw = Self::opened(limits);
        raw.engine.authenticated();
        raw.write_frame(0, begin());
        raw.discard_output();
        raw
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while self.engine.receive(&mut self.input, self.now) == Received::Paused {
            self.pull();
        }
        self.pull();
    }

    pub(crate) fn write_frame(&mut self, channel: u16, body: FrameBody) {
        let mut bytes = Vec::new();
        Frame { channel, body }.encode(&mut bytes);
        self.write(&bytes);
    }

    pub(crate) fn write_sasl(&mut self, frame: &SaslFrame) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.write(&bytes);
    }

    fn pull(&mut self) {
        let mut chunks = Vec::new();
        self.engine.take_output(&mut chunks);
        for chunk in &chunks {
            self.output.extend_from_slice(chunk);
        }
    }

    pub(crate) fn discard_output(&mut self) {
        self.pull();
        self.output.clear();
    }

    /// All bytes the engine has written.
    pub(crate) fn output(&mut self) -> Bytes {
        self.pull();
        self.output.split().freeze()
    }

    /// All AMQP frames the engine has written.
    pub(crate) fn frames(&mut self) -> Vec<Frame> {
        let mut output = self.output();
        let mut frames = Vec::new();
        while let Some(size) = frame_size(&output, u32::MAX).unwrap() {
            frames.push(Frame::decode(output.split_to(size)).unwrap());
        }
        assert!(output.is_empty());
        frames
    }

    /// The bodies of all AMQP frames the engine has written.
    pub(crate) fn bodies(&mut self) -> Vec<FrameBody> {
        self.frames().into_iter().map(|frame| frame.body).collect()
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.engine.next_event()).collect()
    }
}

pub(crate) fn begin() -> FrameBody {
    FrameBody::Begin(Box::new(Begin { incoming_window: 2048, outgoing_window: 2048, ..Begin::default() }))
}

/// An attach of a peer that sends to `address`.
pub(crate) fn sender(name: &str, handle: u32, address: &str) -> FrameBody {
    let mut attach = Attach::new(Text::from(name), handle, Role::Sender);
    attach.source = Some(Source::at("here"));
    attach.target = Some(TargetNode::Node(Target::at(address)));
    attach.initial_delivery_count = Some(0);
    FrameBody::Attach(Box::new(attach))
}

/// An attach of a peer that receives from `address`.
pub(crate) fn receiver(name: &str, handle: u32, address: &str) -> FrameBody {
    let mut attach = Attach::new(Text::from(name), handle, Role::Receiver);
    attach.source = Some(Source::at(address));
    attach.target = Some(TargetNode::Node(Target::at("here")));
    FrameBody::Attach(Box::new(attach))
}

pub(crate) fn transfer(handle: u32, delivery: u32, payload: &'static [u8]) -> FrameBody {
    let transfer = Transfer {
        handle,
        delivery_id: Some(delivery),
        delivery_tag: Some(u64::from(delivery).into()),
        ..Transfer::default()
    };
    FrameBody::Transfer(transfer, Bytes::from_static(payload))
}

pub(crate) fn credit(handle: u32, delivery_count: u32, credit: u32) -> FrameBody {
    FrameBody::Flow(Flow {
        next_incoming_id: Some(1),
        incoming_window: 2048,
        outgoing_window: 2048,
        link: Some(LinkFlow {
            handle,
            delivery_count: Some(delivery_count),
            link_credit: Some(credit),
            ..LinkFlow::default()
        }),
        ..Flow::default()
    })
}
