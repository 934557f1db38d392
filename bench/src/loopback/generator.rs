//! The other side of the measured server: frames encoded before, written and counted.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use bytes::{Bytes, BytesMut};
use vorrang_amqp::Text;
use vorrang_amqp::frame::{Frame, FrameBody, frame_size};
use vorrang_amqp::performative::{
    Attach, Begin, DeliveryState, Disposition, Flow, LinkFlow, Open, Role, Source, Target, TargetNode,
    Transfer,
};
use vorrang_amqp::protocol_header::Protocol;

use super::Direction;

/// Messages written at once.
const BATCH: u32 = 400;
/// Messages on the way, and the credit a receiving generator keeps open.
const WINDOW: u32 = 2_000;
/// A delivery number that takes five bytes on the wire, found and replaced in the encoded frame.
const PLACE: u32 = 0x7f6e_5d4c;
const FRAME_BYTES_MAX: u32 = 1 << 20;

/// Connects, and attaches one link; both halves of the socket.
pub(super) fn connect(address: &str, direction: Direction) -> Result<(TcpStream, TcpStream)> {
    let mut socket = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    socket.set_nodelay(true)?;
    let role = match direction {
        Direction::Ingest => Role::Sender,
        Direction::Delivery => Role::Receiver,
    };
    let mut attach = Attach::new(Text::from("link"), 0, role);
    attach.source = Some(Source::at("q"));
    attach.target = Some(TargetNode::Node(Target::at("q")));
    attach.initial_delivery_count = (role == Role::Sender).then_some(0);
    let begin = Begin { incoming_window: 5_000, outgoing_window: 5_000, ..Begin::default() };
    let mut bytes = Protocol::Amqp.header().to_vec();
    for body in [
        FrameBody::Open(Box::new(Open { container_id: Text::from("generator"), ..Open::default() })),
        FrameBody::Begin(Box::new(begin)),
        FrameBody::Attach(Box::new(attach)),
    ] {
        Frame { channel: 0, body }.encode(&mut bytes);
    }
    socket.write_all(&bytes)?;
    let mut header = [0; 8];
    socket.read_exact(&mut header)?;
    let other = socket.try_clone()?;
    Ok((socket, other))
}

/// Sends so many messages; how long it took until the last was accepted.
pub(super) fn send(
    mut reading: TcpStream,
    mut writing: TcpStream,
    size: usize,
    messages: u32,
) -> Result<Duration> {
    let (mut batch, places) = encode_batch(size)?;
    let accepted = AtomicU32::new(0);
    let started = Instant::now();
    thread::scope(|scope| {
        let counted = scope.spawn(|| count_accepted(&mut reading, &accepted, messages));
        let mut sent = 0;
        while sent < messages {
            if counted.is_finished() {
                break;
            }
            if sent + BATCH > accepted.load(Ordering::Acquire) + WINDOW {
                thread::sleep(Duration::from_micros(50));
                continue;
            }
            for (place, number) in places.iter().zip(sent..) {
                if let Some(bytes) = batch.get_mut(*place..*place + 4) {
                    bytes.copy_from_slice(&number.to_be_bytes());
                }
            }
            writing.write_all(&batch)?;
            sent += BATCH;
        }
        counted.join().map_err(|_| anyhow!("the counting thread panicked"))?
    })?;
    Ok(started.elapsed())
}

/// Receives and accepts so many messages; how long it took.
pub(super) fn receive(
    reading: &mut TcpStream,
    mut writing: TcpStream,
    messages: u32,
    single: bool,
) -> Result<Duration> {
    let mut answers = Vec::new();
    flow(0).encode(&mut answers);
    writing.write_all(&answers)?;
    let mut frames = Frames::default();
    let (mut received, mut credited) = (0_u32, 0_u32);
    let started = Instant::now();
    while received < messages {
        let first = received;
        frames.read(reading)?;
        while let Some(frame) = frames.next()? {
            // Counting needs no decoding: the performative's code is its third byte.
            if frame.get(10) == Some(&0x14) {
                received += 1;
            }
        }
        if first == received {
            continue;
        }
        answers.clear();
        let step = if single { 1 } else { received - first };
        let mut next = first;
        while next < received {
            let disposition = Disposition {
                role: Role::Receiver,
                first: next,
                last: Some(next + step - 1),
                settled: false,
                state: Some(DeliveryState::ACCEPTED),
                batchable: false,
            };
            Frame { channel: 0, body: FrameBody::Disposition(disposition) }.encode(&mut answers);
            next += step;
        }
        if received - credited >= WINDOW / 4 {
            credited = received;
            flow(received).encode(&mut answers);
        }
        writing.write_all(&answers)?;
    }
    Ok(started.elapsed())
}

/// A batch of transfers, and where each one's delivery number is.
fn encode_batch(size: usize) -> Result<(Vec<u8>, Vec<usize>)> {
    let (mut batch, mut places) = (Vec::new(), Vec::new());
    for tag in 0..u64::from(BATCH) {
        let start = batch.len();
        let transfer = Transfer {
            handle: 0,
            delivery_id: Some(PLACE),
            delivery_tag: Some(tag.into()),
            message_format: Some(0),
            ..Transfer::default()
        };
        Frame { channel: 0, body: FrameBody::Transfer(transfer, Bytes::from(vec![7; size])) }
            .encode(&mut batch);
        let frame = batch.get(start..).unwrap_or_default();
        let place = frame.windows(4).position(|bytes| bytes == PLACE.to_be_bytes());
        places.push(start + place.context("no delivery number in the frame")?);
    }
    Ok((batch, places))
}

fn count_accepted(reading: &mut TcpStream, accepted: &AtomicU32, messages: u32) -> Result<()> {
    let mut frames = Frames::default();
    while accepted.load(Ordering::Relaxed) < messages {
        frames.read(reading)?;
        while let Some(frame) = frames.next()? {
            match Frame::decode(frame)?.body {
                FrameBody::Disposition(disposition) => {
                    let last = disposition.last.unwrap_or(disposition.first);
                    accepted.fetch_add(last - disposition.first + 1, Ordering::Release);
                }
                FrameBody::Detach(_) | FrameBody::End(_) | FrameBody::Close(_) => {
                    bail!("the server ended the link")
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// A receiver's flow that opens window and credit.
fn flow(seen: u32) -> Frame {
    Frame {
        channel: 0,
        body: FrameBody::Flow(Flow {
            next_incoming_id: Some(seen),
            incoming_window: 5_000,
            outgoing_window: 5_000,
            link: Some(LinkFlow {
                handle: 0,
                delivery_count: Some(seen),
                link_credit: Some(WINDOW),
                ..LinkFlow::default()
            }),
            ..Flow::default()
        }),
    }
}

/// Bytes from the socket, frame by frame.
#[derive(Default)]
struct Frames {
    input: BytesMut,
    scratch: Vec<u8>,
}

impl Frames {
    fn read(&mut self, socket: &mut TcpStream) -> Result<()> {
        self.scratch.resize(128 * 1024, 0);
        let read = socket.read(&mut self.scratch)?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        self.input.extend_from_slice(self.scratch.get(..read).unwrap_or_default());
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(size) = frame_size(&self.input, FRAME_BYTES_MAX)? else { return Ok(None) };
        if self.input.len() < size {
            return Ok(None);
        }
        Ok(Some(self.input.split_to(size).freeze()))
    }
}
