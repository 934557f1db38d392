//! Bytes in: cutting frames from the input, and passing each to what it concerns.

use bytes::{Buf, Bytes, BytesMut};

use super::handshake::Phase;
use super::limits::FrameLimit;
use super::time::Millis;
use super::violation::Violation;
use super::{Connection, Event};
use crate::error::DecodeError;
use crate::frame::{Frame, FrameBody, SASL_FRAME_BYTES_MAX, SaslFrame, frame_size, plain_transfer};
use crate::protocol_header::PROTOCOL_HEADER_BYTES;

/// What is left after [`Connection::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// No complete frame: read more.
    All,
    /// Complete frames may be left: take events and output, then call again before reading more.
    Paused,
}

/// A broken rule and the place it was broken in.
#[derive(Debug)]
pub(super) enum Fault {
    Link(u32, Violation),
    Session(u32, Violation),
    Connection(Violation),
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        Self::Connection(violation)
    }
}

/// What one call of `receive` may still do.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) frames_left: u32,
    pub(super) settlements_left: u32,
}

impl Connection {
    /// Handles the complete frames in `input` and leaves the rest there.
    ///
    /// Payloads of deliveries are slices of the input's memory, so `input` should be read into in large pieces.
    pub fn receive(&mut self, input: &mut BytesMut, now: Millis) -> Received {
        self.clocks.advance(now);
        if !input.is_empty() {
            self.clocks.heard();
        }
        let mut work = Work {
            frames_left: self.limits.frames_per_receive,
            settlements_left: self.limits.settlements_per_receive,
        };
        loop {
            let progressed = match self.phase {
                Phase::ServerHeader
                | Phase::ServerAmqpHeader
                | Phase::ClientHeader
                | Phase::ClientAmqpHeader => self.take_header(input),
                Phase::ServerInit | Phase::ClientMechanisms | Phase::ClientOutcome => self.take_sasl(input),
                Phase::ServerDeciding => return Received::All,
                Phase::AwaitOpen => self.take_first(input),
                Phase::Open | Phase::Closing { .. } => {
                    if work.frames_left == 0 && !(self.inbox.is_empty() && input.is_empty()) {
                        return Received::Paused;
                    }
                    if !self.take_frames(input) {
                        return Received::All;
                    }
                    if self.handle_inbox(&mut work) == Received::Paused {
                        return Received::Paused;
                    }
                    true
                }
                Phase::Finished => {
                    input.clear();
                    return Received::All;
                }
            };
            if !progressed {
                return Received::All;
            }
        }
    }

    fn take_header(&mut self, input: &mut BytesMut) -> bool {
        let Some(header) = input.first_chunk::<PROTOCOL_HEADER_BYTES>().copied() else {
            // What cannot become a header is answered at once and not waited for.
            let wrong = !b"AMQP".starts_with(input.get(..input.len().min(4)).unwrap_or_default());
            if wrong {
                self.on_header([0; PROTOCOL_HEADER_BYTES]);
            }
            return wrong;
        };
        input.advance(PROTOCOL_HEADER_BYTES);
        self.on_header(header);
        true
    }

    fn take_sasl(&mut self, input: &mut BytesMut) -> bool {
        let frame = match cut_frames(input, FrameLimit::MIN, 1) {
            Ok(Some(frame)) => frame,
            Ok(None) => return false,
            Err(problem) => {
                self.fail(problem.into());
                return true;
            }
        };
        debug_assert_eq!(FrameLimit::MIN.bytes(), SASL_FRAME_BYTES_MAX);
        match SaslFrame::decode(frame) {
            Ok(frame) => self.on_sasl(frame),
            Err(problem) => self.fail(problem.into()),
        }
        true
    }

    /// Takes the first frame of the AMQP layer alone, since what it says bears on how the next are read.
    fn take_first(&mut self, input: &mut BytesMut) -> bool {
        let frame = match cut_frames(input, self.stage().frame, 1) {
            Ok(Some(frame)) => frame,
            Ok(None) => return false,
            Err(problem) => {
                self.fail(problem.into());
                return true;
            }
        };
        match Frame::decode(frame).map(|frame| frame.body) {
            Ok(FrameBody::Open(open)) => self.on_open(open),
            Ok(FrameBody::Close(close)) => self.on_close(close),
            Ok(FrameBody::Heartbeat) => {}
            Ok(other) => self.fail(Violation::OutOfPlace { frame: name(&other), state: "before open" }),
            Err(problem) => self.fail(problem.into()),
        }
        true
    }

    /// Moves complete frames from the input to the inbox; `false` when there is none.
    fn take_frames(&mut self, input: &mut BytesMut) -> bool {
        if !self.inbox.is_empty() {
            return true;
        }
        match cut_frames(input, self.stage().frame, self.limits.frames_per_receive) {
            Ok(Some(frames)) => {
                self.inbox = frames;
                true
            }
            Ok(None) => false,
            Err(problem) => {
                if matches!(self.phase, Phase::Closing { .. }) {
                    // We said goodbye already and cannot find the peer's in this.
                    self.phase = Phase::Finished;
                } else {
                    self.fail(problem.into());
                }
                input.clear();
                true
            }
        }
    }

    fn handle_inbox(&mut self, work: &mut Work) -> Received {
        while !self.inbox.is_empty() {
            if self.output_full() || work.frames_left == 0 || work.settlements_left == 0 {
                return Received::Paused;
            }
            work.frames_left = work.frames_left.saturating_sub(1);
            // The size was checked when the frame was cut; anything else ends the loop instead of spinning in it.
            let size = match frame_size(&self.inbox, u32::MAX) {
                Ok(Some(size)) => size.min(self.inbox.len()),
                _ => self.inbox.len(),
            };
            let open = self.phase == Phase::Open;
            let quick = self.inbox.get(..size).filter(|_| open).and_then(plain_transfer);
            let handled = match quick {
                Some((channel, mut transfer, payload)) => {
                    let mut frame = self.inbox.split_to(size);
                    frame.advance(payload);
                    self.on_transfer(channel, &mut transfer, frame)
                }
                None => match Frame::decode(self.inbox.split_to(size)) {
                    Ok(frame) => self.handle(frame, work),
                    Err(problem) => Err(Fault::Connection(problem.into())),
                },
            };
            if let Err(fault) = handled {
                self.punish(fault);
            }
        }
        Received::All
    }

    #[inline]
    fn handle(&mut self, frame: Frame, work: &mut Work) -> Result<(), Fault> {
        let channel = frame.channel;
        if self.phase != Phase::Open {
            if let FrameBody::Close(close) = frame.body {
                self.on_close(close);
            }
            return Ok(());
        }
        match frame.body {
            FrameBody::Transfer(mut transfer, payload) => self.on_transfer(channel, &mut transfer, payload),
            FrameBody::Disposition(disposition) => self.on_disposition(channel, disposition, work),
            FrameBody::Flow(flow) => self.on_flow(channel, &flow),
            FrameBody::Heartbeat => Ok(()),
            FrameBody::Begin(begin) => self.on_begin(channel, &begin),
            FrameBody::Attach(attach) => self.on_attach(channel, *attach),
            FrameBody::Detach(detach) => self.on_detach(channel, detach),
            FrameBody::End(end) => self.on_end(channel, end),
            FrameBody::Open(open) => {
                self.on_open(open);
                Ok(())
            }
            FrameBody::Close(close) => {
                self.on_close(close);
                Ok(())
            }
        }
    }

    /// Closes what a fault concerns.
    fn punish(&mut self, fault: Fault) {
        match fault {
            Fault::Link(link, violation) => self.expel_link(link, violation),
            Fault::Session(session, violation) => self.expel_session(session, &violation),
            Fault::Connection(violation) => self.fail(violation),
        }
    }

    /// Events that were not taken yet.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.events.iter()
    }
}

/// Cuts up to `count` complete frames from the input, without copying.
///
/// A frame that is not acceptable is only reported when it stands first, so what came before it is handled.
fn cut_frames(input: &mut BytesMut, limit: FrameLimit, count: u32) -> Result<Option<Bytes>, DecodeError> {
    let mut end = 0usize;
    for _ in 0..count {
        let rest = input.get(end..).unwrap_or_default();
        match frame_size(rest, limit.bytes()) {
            Ok(Some(size)) if size <= rest.len() => end = end.saturating_add(size),
            Err(problem) if end == 0 => return Err(problem),
            Ok(_) | Err(_) => break,
        }
    }
    if end == 0 {
        return Ok(None);
    }
    Ok(Some(input.split_to(end).freeze()))
}

fn name(body: &FrameBody) -> &'static str {
    match body {
        FrameBody::Heartbeat => "heartbeat",
        FrameBody::Open(_) => "open",
        FrameBody::Begin(_) => "begin",
        FrameBody::Attach(_) => "attach",
        FrameBody::Flow(_) => "flow",
        FrameBody::Transfer(..) => "transfer",
        FrameBody::Disposition(_) => "disposition",
        FrameBody::Detach(_) => "detach",
        FrameBody::End(_) => "end",
        FrameBody::Close(_) => "close",
    }
}
