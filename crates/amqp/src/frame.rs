//! Frames: a size, a type, a channel, a performative and, with a transfer, a payload (AMQP 1.0 2.3).

use bytes::{Buf, Bytes};

use crate::constructor as code;
use crate::decode::{Composite, Reader, quick, usize_of};
use crate::descriptor;
use crate::encode::{Encode, Output, patch_u32, wire_length};
use crate::error::DecodeError;
use crate::performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, SaslChallenge, SaslInit, SaslMechanisms,
    SaslOutcome, SaslResponse, Transfer,
};

/// Bytes of a frame header without extension.
pub const FRAME_HEADER_BYTES: usize = 8;

/// AMQP 1.0 2.3: every peer takes frames of this size before anything is agreed.
pub const FRAME_BYTES_MIN_MAX: u32 = 512;

/// AMQP 1.0 5.3.1: no SASL frame is larger.
pub const SASL_FRAME_BYTES_MAX: u32 = 512;

/// The frame type of AMQP performatives.
pub(crate) const FRAME_TYPE_AMQP: u8 = 0;

/// The frame type of the SASL layer.
pub(crate) const FRAME_TYPE_SASL: u8 = 1;

const OPEN: u8 = descriptor::OPEN.code;
const BEGIN: u8 = descriptor::BEGIN.code;
const ATTACH: u8 = descriptor::ATTACH.code;
const FLOW: u8 = descriptor::FLOW.code;
const TRANSFER: u8 = descriptor::TRANSFER.code;
const DISPOSITION: u8 = descriptor::DISPOSITION.code;
const DETACH: u8 = descriptor::DETACH.code;
const END: u8 = descriptor::END.code;
const CLOSE: u8 = descriptor::CLOSE.code;

const EXPECTED_PERFORMATIVE: &str = "a performative";
const EXPECTED_SASL: &str = "a sasl frame";

/// A frame that keeps a connection from falling idle.
pub const HEARTBEAT: [u8; FRAME_HEADER_BYTES] = [0, 0, 0, 8, 2, 0, 0, 0];

/// An AMQP frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The channel; the session's number at the frame's sender.
    pub channel: u16,
    /// What the frame says.
    pub body: FrameBody,
}

/// What an AMQP frame says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameBody {
    /// Nothing; the peer is alive.
    Heartbeat,
    /// Opens the connection.
    Open(Box<Open>),
    /// Begins a session.
    Begin(Box<Begin>),
    /// Attaches a link.
    Attach(Box<Attach>),
    /// Windows and credit.
    Flow(Flow),
    /// A frame of a delivery and its payload, a slice of the read buffer.
    Transfer(Transfer, Bytes),
    /// The state of deliveries.
    Disposition(Disposition),
    /// Detaches a link.
    Detach(Detach),
    /// Ends a session.
    End(End),
    /// Closes the connection.
    Close(Close),
}

/// A frame of the SASL layer; it has no channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaslFrame {
    /// The server's offer.
    Mechanisms(SaslMechanisms),
    /// The client's choice.
    Init(SaslInit),
    /// A question of the server.
    Challenge(SaslChallenge),
    /// An answer of the client.
    Response(SaslResponse),
    /// The end of the exchange.
    Outcome(SaslOutcome),
}

/// The size of the frame at the start of `buffer`, once its first four bytes are there.
///
/// Call with the limit of the present state; the buffer needs never hold more than that.
#[inline]
pub fn frame_size(buffer: &[u8], frame_bytes_max: u32) -> Result<Option<usize>, DecodeError> {
    let Some(size) = buffer.first_chunk::<4>() else { return Ok(None) };
    let size = u32::from_be_bytes(*size);
    let length = usize_of(size)?;
    if length < FRAME_HEADER_BYTES {
        return Err(DecodeError::FrameTooSmall { size });
    }
    if size > frame_bytes_max {
        return Err(DecodeError::FrameTooLarge { size, limit: frame_bytes_max });
    }
    Ok(Some(length))
}

/// Length of the header of a whole frame, extended header included, and its channel.
#[inline]
fn frame_header(frame: &[u8], expected_type: u8) -> Result<(usize, u16), DecodeError> {
    let Some((&[_, _, _, _, words, found, channel_high, channel_low], _)) =
        frame.split_first_chunk::<FRAME_HEADER_BYTES>()
    else {
        return Err(DecodeError::Truncated { needed: FRAME_HEADER_BYTES, available: frame.len() });
    };
    if found != expected_type {
        return Err(DecodeError::FrameType { expected: expected_type, found });
    }
    let length = usize::from(words).saturating_mul(4);
    if length < FRAME_HEADER_BYTES || length > frame.len() {
        return Err(DecodeError::DataOffset { words, size: frame.len() });
    }
    Ok((length, u16::from_be_bytes([channel_high, channel_low])))
}

/// The transfer in a whole frame, its channel, and where its payload begins; nothing if it is written in an unusual
/// way, which [`Frame::decode`] understands.
///
/// Nearly all frames are transfers; reading them here spares them the way through [`Frame`], which is large because
/// it can be anything.
#[inline]
pub fn plain_transfer(frame: &[u8]) -> Option<(u16, Transfer, usize)> {
    let [
        _,
        _,
        _,
        _,
        2,
        FRAME_TYPE_AMQP,
        high,
        low,
        code::DESCRIBED,
        code::SMALL_ULONG,
        TRANSFER,
        fields @ ..,
    ] = frame
    else {
        return None;
    };
    let (transfer, payload) = quick::transfer(fields)?;
    Some((u16::from_be_bytes([*high, *low]), transfer, frame.len().saturating_sub(payload.len())))
}

impl Frame {
    /// Reads one whole frame: as many bytes as [`frame_size`] said, header included.
    pub fn decode(mut frame: Bytes) -> Result<Self, DecodeError> {
        let (header, channel) = frame_header(&frame, FRAME_TYPE_AMQP)?;
        let body = frame.get(header..).unwrap_or_default();
        if let [code::DESCRIBED, code::SMALL_ULONG, performative, fields @ ..] = body {
            match *performative {
                TRANSFER => {
                    if let Some((transfer, payload)) = quick::transfer(fields) {
                        let read = frame.len().saturating_sub(payload.len());
                        frame.advance(read);
                        return Ok(Self { channel, body: FrameBody::Transfer(transfer, frame) });
                    }
                }
                DISPOSITION => {
                    if let Some(disposition) = quick::disposition(fields) {
                        return Ok(Self { channel, body: FrameBody::Disposition(disposition) });
                    }
                }
                FLOW => {
                    if let Some(flow) = quick::flow(fields) {
                        return Ok(Self { channel, body: FrameBody::Flow(flow) });
                    }
                }
                _ => {}
            }
        }
        Self::decode_carefully(frame)
    }

    /// Reads one whole frame, whatever its encoding. Kept apart, so that the short way needs little stack.
    #[inline(never)]
    pub(crate) fn decode_carefully(mut frame: Bytes) -> Result<Self, DecodeError> {
        let (header, channel) = frame_header(&frame, FRAME_TYPE_AMQP)?;
        frame.advance(header);
        let body = FrameBody::decode(frame)?;
        Ok(Self { channel, body })
    }

    /// Appends the frame.
    pub fn encode<O: Output>(&self, out: &mut O) {
        let start = begin_frame(out, FRAME_TYPE_AMQP, self.channel);
        match &self.body {
            FrameBody::Heartbeat => {}
            FrameBody::Open(open) => open.encode(out),
            FrameBody::Begin(begin) => begin.encode(out),
            FrameBody::Attach(attach) => attach.encode(out),
            FrameBody::Flow(flow) => flow.encode(out),
            FrameBody::Transfer(transfer, payload) => {
                transfer.encode(out);
                out.put(payload);
            }
            FrameBody::Disposition(disposition) => disposition.encode(out),
            FrameBody::Detach(detach) => detach.encode(out),
            FrameBody::End(end) => end.encode(out),
            FrameBody::Close(close) => close.encode(out),
        }
        end_frame(out, start);
    }
}

impl FrameBody {
    /// Reads a frame's body, whatever its encoding.
    fn decode(mut body: Bytes) -> Result<Self, DecodeError> {
        if body.is_empty() {
            return Ok(Self::Heartbeat);
        }
        let mut reader = Reader::new(&body);
        let found = reader.descriptor(EXPECTED_PERFORMATIVE)?;
        let unexpected = DecodeError::UnexpectedDescriptor { expected: EXPECTED_PERFORMATIVE, found };
        let performative = match u8::try_from(found).map_err(|_| unexpected.clone())? {
            TRANSFER => {
                let transfer = reader.fields("transfer", Transfer::read)?;
                let read = body.len().saturating_sub(reader.remaining());
                body.advance(read);
                return Ok(Self::Transfer(transfer, body));
            }
            DISPOSITION => reader.fields("disposition", Disposition::read).map(Self::Disposition),
            FLOW => reader.fields("flow", Flow::read).map(Self::Flow),
            OPEN => reader.fields("open", Open::read).map(|open| Self::Open(Box::new(open))),
            BEGIN => reader.fields("begin", Begin::read).map(|begin| Self::Begin(Box::new(begin))),
            ATTACH => reader.fields("attach", Attach::read).map(|attach| Self::Attach(Box::new(attach))),
            DETACH => reader.fields("detach", Detach::read).map(Self::Detach),
            END => reader.fields("end", End::read).map(Self::End),
            CLOSE => reader.fields("close", Close::read).map(Self::Close),
            _ => Err(unexpected),
        }?;
        reader.finish()?;
        Ok(performative)
    }
}

impl SaslFrame {
    /// Reads one whole SASL frame, header included.
    pub fn decode(mut frame: Bytes) -> Result<Self, DecodeError> {
        let (header, _) = frame_header(&frame, FRAME_TYPE_SASL)?;
        frame.advance(header);
        let mut reader = Reader::new(&frame);
        let found = reader.descriptor(EXPECTED_SASL)?;
        let unexpected = DecodeError::UnexpectedDescriptor { expected: EXPECTED_SASL, found };
        let Ok(code) = u8::try_from(found) else { return Err(unexpected) };
        let body = match code {
            _ if code == descriptor::SASL_MECHANISMS.code => {
                reader.fields("sasl-mechanisms", SaslMechanisms::read).map(Self::Mechanisms)
            }
            _ if code == descriptor::SASL_INIT.code => {
                reader.fields("sasl-init", SaslInit::read).map(Self::Init)
            }
            _ if code == descriptor::SASL_CHALLENGE.code => {
                reader.fields("sasl-challenge", SaslChallenge::read).map(Self::Challenge)
            }
            _ if code == descriptor::SASL_RESPONSE.code => {
                reader.fields("sasl-response", SaslResponse::read).map(Self::Response)
            }
            _ if code == descriptor::SASL_OUTCOME.code => {
                reader.fields("sasl-outcome", SaslOutcome::read).map(Self::Outcome)
            }
            _ => Err(unexpected),
        }?;
        reader.finish()?;
        Ok(body)
    }

    /// Appends the frame.
    pub fn encode<O: Output>(&self, out: &mut O) {
        let start = begin_frame(out, FRAME_TYPE_SASL, 0);
        match self {
            Self::Mechanisms(mechanisms) => mechanisms.encode(out),
            Self::Init(init) => init.encode(out),
            Self::Challenge(challenge) => challenge.encode(out),
            Self::Response(response) => response.encode(out),
            Self::Outcome(outcome) => outcome.encode(out),
        }
        end_frame(out, start);
    }
}

/// Appends a frame header whose size [`end_frame`] fills in.
#[inline]
pub(crate) fn begin_frame<O: Output>(out: &mut O, frame_type: u8, channel: u16) -> usize {
    let start = out.position();
    let [high, low] = channel.to_be_bytes();
    out.put(&[0, 0, 0, 0, 2, frame_type, high, low]);
    start
}

/// Fills in the size of the frame that began at `start`.
#[inline]
pub(crate) fn end_frame<O: Output>(out: &mut O, start: usize) {
    let size = wire_length(out.position().saturating_sub(start));
    patch_u32(out, start, size);
}
