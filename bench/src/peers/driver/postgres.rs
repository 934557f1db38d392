//! A table as a queue: `INSERT`, and `DELETE … FOR UPDATE SKIP LOCKED … RETURNING` in a transaction that is committed
//! when the work is done.
//!
//! Speaks the wire protocol with prepared statements. What waits to be sent at the same time shares a transaction,
//! and with it a sync: the kindest way to use the server that still acknowledges every message.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::peers::peer::{Clients, Delivery, Message, Receiver, Sender, Stamp};
use crate::peers::socket::Socket;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS q (class int NOT NULL, id bigserial, body bytea NOT NULL, PRIMARY KEY (class, id))";
const INSERT: &str = "INSERT INTO q (class, body) VALUES ($1, $2)";
const TAKE: &str = "WITH taken AS (SELECT class, id FROM q ORDER BY class, id FOR UPDATE SKIP LOCKED LIMIT $1) \
                    DELETE FROM q USING taken WHERE q.class = taken.class AND q.id = taken.id RETURNING q.body";
/// How often an idle receiver looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Clients of one server.
#[derive(Debug)]
pub(crate) struct Postgres {
    pub(crate) port: u16,
}

impl Clients for Postgres {
    fn probe(&self) -> Result<()> {
        open(self.port).map(drop)
    }

    fn prepare(&self) -> Result<()> {
        let mut socket = open(self.port)?;
        query(&mut socket.output, TABLE);
        until_ready(&mut socket, &mut |_| Ok(()))
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let socket = open_with(self.port, INSERT)?;
        Ok(Box::new(Inserter { socket, unsynced: 0, batches: VecDeque::new(), answered: 0 }))
    }

    fn receiver(&self, prefetch: u32) -> Result<Box<dyn Receiver>> {
        let socket = open_with(self.port, TAKE)?;
        Ok(Box::new(Taker { socket, prefetch, taken: 0, done: 0, open: false, settled: 0 }))
    }
}

fn open(port: u16) -> Result<Socket> {
    let mut socket = Socket::connect(port)?;
    let mut startup = 196_608_u32.to_be_bytes().to_vec();
    startup.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
    sized(&mut socket.output, &startup);
    until_ready(&mut socket, &mut |_| Ok(()))?;
    Ok(socket)
}

/// A connection with one prepared statement.
fn open_with(port: u16, statement: &str) -> Result<Socket> {
    let mut socket = open(port)?;
    let text = [b"s\0", statement.as_bytes(), b"\0\0\0"].concat();
    message(&mut socket.output, b'P', &text);
    message(&mut socket.output, b'S', &[]);
    until_ready(&mut socket, &mut |_| Ok(()))?;
    Ok(socket)
}

/// Reads until the server is ready for the next query; rows go to `row`.
fn until_ready(socket: &mut Socket, row: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    loop {
        let ready = socket.ask(|input| {
            let Some((kind, payload, bytes)) = parse(input)? else { return Ok(None) };
            match kind {
                b'E' => bail!("{}", complaint(payload)),
                b'R' if payload != [0, 0, 0, 0] => bail!("the server wants a password"),
                b'D' => row(first_column(payload).context("a row without a column")?)?,
                _ => {}
            }
            Ok(Some((kind == b'Z', bytes)))
        })?;
        if ready {
            return Ok(());
        }
    }
}

struct Inserter {
    socket: Socket,
    /// Inserts of the transaction that is being written.
    unsynced: u64,
    /// Inserts of each transaction that was written.
    batches: VecDeque<u64>,
    answered: u64,
}

impl Sender for Inserter {
    fn send(&mut self, message: &Message<'_>) -> Result<bool> {
        execute(&mut self.socket.output, &[&u32::from(message.class).to_be_bytes(), message.body]);
        self.unsynced += 1;
        Ok(true)
    }

    fn acknowledged(&mut self, wait: Duration, seen: &mut dyn FnMut(u64)) -> Result<()> {
        if self.unsynced > 0 {
            message(&mut self.socket.output, b'S', &[]);
            self.batches.push_back(self.unsynced);
            self.unsynced = 0;
        }
        self.socket.flush()?;
        self.socket.fill(wait)?;
        while let Some((kind, payload, bytes)) = parse(self.socket.input())? {
            if kind == b'E' {
                bail!("{}", complaint(payload));
            }
            if kind == b'Z' {
                let batch = self.batches.pop_front().unwrap_or(0);
                (self.answered..self.answered + batch).for_each(&mut *seen);
                self.answered += batch;
            }
            self.socket.consume(bytes);
        }
        Ok(())
    }
}

struct Taker {
    socket: Socket,
    prefetch: u32,
    /// Messages of the open transaction, and how many of them are done.
    taken: u64,
    done: u64,
    open: bool,
    settled: u64,
}

impl Taker {
    fn commit(&mut self, and: &str) -> Result<()> {
        if self.open && self.done == self.taken {
            query(&mut self.socket.output, &format!("COMMIT{and}"));
            self.socket.flush()?;
            until_ready(&mut self.socket, &mut |_| Ok(()))?;
            self.settled += self.taken;
            (self.taken, self.done) = (0, 0);
            self.open = !and.is_empty();
        }
        Ok(())
    }
}

impl Receiver for Taker {
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<()> {
        if self.done < self.taken {
            return Ok(());
        }
        if self.open {
            self.commit("; BEGIN")?;
        } else {
            query(&mut self.socket.output, "BEGIN");
            until_ready(&mut self.socket, &mut |_| Ok(()))?;
            self.open = true;
        }
        execute(&mut self.socket.output, &[&u64::from(self.prefetch).to_be_bytes()]);
        message(&mut self.socket.output, b'S', &[]);
        let mut stamps = Vec::new();
        until_ready(&mut self.socket, &mut |body| {
            stamps.push(Stamp::read(body).context("a row without a stamp")?);
            Ok(())
        })?;
        // RETURNING promises no order.
        stamps.sort_unstable_by_key(|stamp| (stamp.class, stamp.number));
        if stamps.is_empty() {
            thread::sleep(wait.min(LOOK_EVERY));
        }
        for (token, stamp) in (0..).zip(stamps) {
            self.taken += 1;
            take(Delivery { token, stamp });
        }
        Ok(())
    }

    fn settle(&mut self, _token: u64) -> Result<()> {
        self.done += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.commit("")
    }

    fn settled(&self) -> u64 {
        self.settled
    }
}

fn query(output: &mut Vec<u8>, text: &str) {
    message(output, b'Q', &[text.as_bytes(), b"\0"].concat());
}

/// Binds binary parameters to the prepared statement and runs it.
fn execute(output: &mut Vec<u8>, parameters: &[&[u8]]) {
    let count = u16::try_from(parameters.len()).unwrap_or(0).to_be_bytes();
    let mut bind = b"\0s\0\x00\x01\x00\x01".to_vec();
    bind.extend_from_slice(&count);
    for parameter in parameters {
        bind.extend_from_slice(&u32::try_from(parameter.len()).unwrap_or(0).to_be_bytes());
        bind.extend_from_slice(parameter);
    }
    bind.extend_from_slice(&[0, 1, 0, 1]);
    message(output, b'B', &bind);
    message(output, b'E', &[0, 0, 0, 0, 0]);
}

fn message(output: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    output.push(kind);
    sized(output, payload);
}

/// A length that counts itself, and what it counts.
fn sized(output: &mut Vec<u8>, payload: &[u8]) {
    output.extend_from_slice(&u32::try_from(payload.len() + 4).unwrap_or(0).to_be_bytes());
    output.extend_from_slice(payload);
}

/// The first message's kind and payload, and the bytes it takes; none if it is not all there.
fn parse(input: &[u8]) -> Result<Option<(u8, &[u8], usize)>> {
    let Some([kind, length @ ..]) = input.first_chunk::<5>() else { return Ok(None) };
    let end = 1 + usize::try_from(u32::from_be_bytes(*length))?;
    if end < 5 {
        bail!("a message shorter than its head");
    }
    Ok(input.get(5..end).map(|payload| (*kind, payload, end)))
}

fn first_column(row: &[u8]) -> Option<&[u8]> {
    let length = u32::from_be_bytes(*row.get(2..)?.first_chunk()?);
    row.get(6..6 + usize::try_from(length).ok()?)
}

/// The text of an error, which is fields that each end with a zero.
fn complaint(payload: &[u8]) -> String {
    let text = payload.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(b"M"));
    String::from_utf8_lossy(text.unwrap_or(payload)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let mut output = Vec::new();
        query(&mut output, "BEGIN");
        for end in 0..output.len() {
            assert_eq!(parse(&output[..end]).unwrap(), None, "{end} bytes");
        }
        assert_eq!(parse(&output).unwrap(), Some((b'Q', b"BEGIN\0".as_slice(), output.len())));
        assert!(parse(b"Z\0\0\0\x03").is_err());
    }

    #[test]
    fn the_first_column_of_a_row_is_found_and_a_cut_one_is_not() {
        let row = b"\x00\x01\x00\x00\x00\x03abc";
        assert_eq!(first_column(row), Some(b"abc".as_slice()));
        assert_eq!(first_column(&row[..8]), None);
    }

    #[test]
    fn an_error_says_its_message() {
        assert_eq!(complaint(b"SERROR\0Mno such table\0\0"), "no such table");
    }
}
