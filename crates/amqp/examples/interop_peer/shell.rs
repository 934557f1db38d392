//! The shell around the engine: one blocking socket, read when there is nothing left to do.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use vorrang_amqp::connection::{Connection, Event, Millis, Received};

use crate::Result;

const READ_BYTES: usize = 64 * 1024;

/// A connection on its socket.
pub(crate) struct Shell {
    pub(crate) connection: Connection,
    socket: TcpStream,
    input: BytesMut,
    started: Instant,
}

impl Shell {
    /// Puts an engine made at time zero on a socket.
    pub(crate) fn new(connection: Connection, socket: TcpStream) -> Self {
        Self { connection, socket, input: BytesMut::new(), started: Instant::now() }
    }

    /// The next event, after writing and reading as much as it takes; none once the connection is over.
    pub(crate) fn next_event(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.connection.next_event() {
                return Ok(Some(event));
            }
            self.flush()?;
            if self.connection.is_finished() {
                return Ok(None);
            }
            let now = self.now();
            if self.connection.receive(&mut self.input, now) == Received::All && self.is_quiet() {
                self.read()?;
            }
        }
    }

    /// Writes everything the engine has to say.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let mut chunks: Vec<Bytes> = Vec::new();
        self.connection.take_output(&mut chunks);
        for chunk in chunks {
            self.socket.write_all(&chunk)?;
        }
        Ok(())
    }

    /// Whether the engine waits for the peer, and for nothing else.
    fn is_quiet(&self) -> bool {
        self.connection.output_pending() == 0
            && self.connection.events().next().is_none()
            && !self.connection.is_finished()
    }

    /// Reads once, or until the engine's next deadline.
    fn read(&mut self) -> Result<()> {
        let wait = self.connection.next_deadline().map(|deadline| {
            // A socket takes no time-out of zero.
            Duration::from_millis(deadline.since(self.now()).max(1))
        });
        self.socket.set_read_timeout(wait)?;
        let mut buffer = vec![0; READ_BYTES];
        match self.socket.read(&mut buffer) {
            Ok(0) => self.connection.transport_closed(),
            Ok(length) => self.input.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(error) if is_time_out(&error) => self.connection.on_time(self.now()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.connection.transport_closed(),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn now(&self) -> Millis {
        Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

fn is_time_out(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
