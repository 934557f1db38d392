//! A blocking socket with an input and an output, beneath every driver but AMQP 1.0's.
//!
//! Drivers write many commands into the output and flush once, and parse as many answers as one read brought:
//! system calls are what would make the generator the slower side.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

const READ_BYTES: usize = 256 * 1024;
/// How long a handshake or a request may take.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// A connection to a server on this machine.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    input: Vec<u8>,
    /// Input before this place is parsed.
    parsed: usize,
    scratch: Box<[u8]>,
    /// What the next flush writes.
    pub(crate) output: Vec<u8>,
    patience: Duration,
}

impl Socket {
    pub(crate) fn connect(port: u16) -> Result<Socket> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .with_context(|| format!("cannot connect to port {port}"))?;
        stream.set_nodelay(true)?;
        Ok(Socket {
            stream,
            input: Vec::new(),
            parsed: 0,
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            output: Vec::new(),
            patience: Duration::ZERO,
        })
    }

    /// Writes the output.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if !self.output.is_empty() {
            self.stream.write_all(&self.output)?;
            self.output.clear();
        }
        Ok(())
    }

    /// What has arrived and is not parsed.
    pub(crate) fn input(&self) -> &[u8] {
        self.input.get(self.parsed..).unwrap_or_default()
    }

    /// Marks so many bytes of the input as parsed.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.parsed = (self.parsed + bytes).min(self.input.len());
    }

    /// Reads once, waiting at most so long; false if nothing came.
    pub(crate) fn fill(&mut self, wait: Duration) -> Result<bool> {
        // A timeout is rounded up to the system's tick, of some milliseconds; no time at all would be for ever.
        let at_once = wait.is_zero();
        if at_once {
            self.stream.set_nonblocking(true)?;
        } else if wait != self.patience {
            self.stream.set_read_timeout(Some(wait))?;
            self.patience = wait;
        }
        let read = self.stream.read(&mut self.scratch);
        if at_once {
            self.stream.set_nonblocking(false)?;
        }
        let read = match read {
            Ok(0) => bail!("the server closed the connection"),
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        self.input.drain(..self.parsed);
        self.parsed = 0;
        self.input.extend_from_slice(self.scratch.get(..read).unwrap_or_default());
        Ok(true)
    }

    /// Flushes, and reads until `parse` finds what it wants; it says how many bytes that took.
    pub(crate) fn ask<T>(&mut self, mut parse: impl FnMut(&[u8]) -> Result<Option<(T, usize)>>) -> Result<T> {
        self.flush()?;
        let began = Instant::now();
        loop {
            if let Some((found, bytes)) = parse(self.input())? {
                self.consume(bytes);
                return Ok(found);
            }
            if began.elapsed() > ANSWER_WAIT {
                bail!("no answer within {ANSWER_WAIT:?}");
            }
            self.fill(ANSWER_WAIT)?;
        }
    }
}

/// The first line of `input` without its end, and how many bytes it takes with it.
pub(crate) fn line(input: &[u8]) -> Option<(&[u8], usize)> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let text = input.get(..end)?;
    Some((text.strip_suffix(b"\r").unwrap_or(text), end + 1))
}

/// Text as a number.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_either_ending_and_not_before() {
        let cases = [
            ("", None),
            ("abc", None),
            ("abc\nd", Some(("abc", 4))),
            ("abc\r\nd", Some(("abc", 5))),
            ("\n", Some(("", 1))),
        ];
        for (input, expected) in cases {
            let expected = expected.map(|(text, bytes): (&str, usize)| (text.as_bytes(), bytes));
            assert_eq!(line(input.as_bytes()), expected, "{input:?}");
        }
    }

    #[test]
    fn a_number_is_digits_and_nothing_else() {
        assert_eq!(number(b"42"), Some(42));
        assert_eq!(number(b""), None);
        assert_eq!(number(b"-1"), None);
        assert_eq!(number(b"4x"), None);
    }
}
