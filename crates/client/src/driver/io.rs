//! The socket of one connection: reading and writing side by side.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::Instant;
use vorrang_amqp::connection::{Connection, Millis, Received};

use crate::transport::BoxedWire;

/// What an idle connection reads at a time; it doubles while reads fill it and shrinks when they do not.
const READ_BYTES_MIN: usize = 4 * 1024;
const READ_BYTES_MAX: usize = 256 * 1024;
/// Pieces of output handed to the system at once.
const PIECES_MAX: usize = 64;

/// A transport with what was read and not handled, and what is to be written.
pub(crate) struct Io {
    reader: ReadHalf<BoxedWire>,
    writer: WriteHalf<BoxedWire>,
    input: BytesMut,
    read_bytes: usize,
    output: VecDeque<Bytes>,
    chunks: Vec<Bytes>,
    /// Whether what was written may still lie in a buffer of the transport.
    unflushed: bool,
    /// Whether frames may be left in the input.
    paused: bool,
    started: Instant,
}

/// What happened on the socket.
pub(super) enum Woken {
    Read(usize),
    Wrote,
}

impl Io {
    pub(super) fn new(wire: BoxedWire) -> Self {
        let (reader, writer) = tokio::io::split(wire);
        Io {
            reader,
            writer,
            input: BytesMut::new(),
            read_bytes: READ_BYTES_MIN,
            output: VecDeque::new(),
            chunks: Vec::new(),
            unflushed: false,
            paused: false,
            started: Instant::now(),
        }
    }

    /// When the engine's clock began.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// The engine's time.
    pub(super) fn millis(&self) -> Millis {
        Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Takes what the engine wants written, once everything before is.
    pub(super) fn take_output(&mut self, amqp: &mut Connection) {
        if self.output.is_empty() {
            amqp.take_output(&mut self.chunks);
            self.output.extend(self.chunks.drain(..));
        }
    }

    pub(super) fn has_output(&self) -> bool {
        !self.output.is_empty() || self.unflushed
    }

    /// Waits until something was read or written.
    pub(super) async fn wait(&mut self, may_read: bool) -> io::Result<Woken> {
        if self.paused && may_read {
            return Ok(Woken::Read(self.input.len().max(1)));
        }
        if may_read && self.input.capacity().saturating_sub(self.input.len()) < self.read_bytes {
            self.input.reserve(self.read_bytes);
        }
        let writes = self.has_output();
        let Io { reader, writer, input, output, unflushed, .. } = self;
        tokio::select! {
            read = reader.read_buf(input), if may_read => read.map(Woken::Read),
            wrote = write_some(writer, output, unflushed), if writes => wrote.map(|()| Woken::Wrote),
            else => std::future::pending().await,
        }
    }

    /// Handles what was read.
    pub(super) fn handle_input(&mut self, amqp: &mut Connection) {
        let filled = self.input.len();
        if filled >= self.read_bytes {
            self.read_bytes = self.read_bytes.saturating_mul(2).min(READ_BYTES_MAX);
        } else if filled < self.read_bytes / 8 {
            self.read_bytes = (self.read_bytes / 2).max(READ_BYTES_MIN);
        }
        let now = self.millis();
        self.paused = amqp.receive(&mut self.input, now) == Received::Paused;
        if self.input.is_empty() && self.read_bytes == READ_BYTES_MIN {
            // An idle connection keeps no buffer; the next read makes a small one.
            self.input = BytesMut::new();
        }
    }

    /// Writes everything and reads once; for the handshake, where nothing else goes on.
    pub(super) async fn exchange(&mut self, amqp: &mut Connection) -> io::Result<()> {
        self.take_output(amqp);
        while self.has_output() {
            write_some(&mut self.writer, &mut self.output, &mut self.unflushed).await?;
        }
        self.input.reserve(READ_BYTES_MIN);
        if self.reader.read_buf(&mut self.input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.handle_input(amqp);
        Ok(())
    }

    /// Says good-bye to the transport; a peer that does not answer is not waited for.
    pub(super) async fn shut_down(&mut self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.writer.shutdown()).await;
    }
}

/// Writes a piece of the output, or flushes when all is written.
async fn write_some(
    writer: &mut WriteHalf<BoxedWire>,
    output: &mut VecDeque<Bytes>,
    unflushed: &mut bool,
) -> io::Result<()> {
    if output.is_empty() {
        writer.flush().await?;
        *unflushed = false;
        return Ok(());
    }
    let mut slices = [IoSlice::new(&[]); PIECES_MAX];
    let mut count = 0_usize;
    for (slice, piece) in slices.iter_mut().zip(output.iter()) {
        *slice = IoSlice::new(piece);
        count = count.saturating_add(1);
    }
    let mut written = writer.write_vectored(slices.get(..count).unwrap_or_default()).await?;
    if written == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    *unflushed = true;
    while let Some(piece) = output.front_mut().filter(|_| written > 0) {
        let taken = written.min(piece.len());
        piece.advance(taken);
        written = written.saturating_sub(taken);
        if piece.is_empty() {
            output.pop_front();
        }
    }
    Ok(())
}
