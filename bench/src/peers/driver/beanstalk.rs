//! beanstalkd's text protocol. Answers come in the order of the commands, so that what an answer means is in a queue.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::peers::peer::{Clients, Delivery, Message, Receiver, Sender, Stamp};
use crate::peers::socket::{Socket, line, number};

/// Seconds a job may be held; longer than any measurement.
const TIME_TO_RUN: u32 = 3_600;

/// Clients of one server.
#[derive(Debug)]
pub(crate) struct Beanstalk {
    pub(crate) port: u16,
}

impl Clients for Beanstalk {
    fn probe(&self) -> Result<()> {
        let mut socket = Socket::connect(self.port)?;
        socket.output.extend_from_slice(b"list-tube-used\r\n");
        socket.ask(|input| Ok(line(input).map(|(_, bytes)| ((), bytes))))
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        Ok(Box::new(Putter { socket: Socket::connect(self.port)?, answered: 0 }))
    }

    fn receiver(&self, prefetch: u32) -> Result<Box<dyn Receiver>> {
        Ok(Box::new(self.reserver(prefetch)?))
    }
}

impl Beanstalk {
    fn reserver(&self, prefetch: u32) -> Result<Reserver> {
        Ok(Reserver {
            socket: Socket::connect(self.port)?,
            prefetch,
            held: 0,
            owed: VecDeque::new(),
            asked: 0,
            dry: false,
            expected: 1,
            found: 0,
            settled: 0,
        })
    }
}

struct Putter {
    socket: Socket,
    answered: u64,
}

impl Sender for Putter {
    fn send(&mut self, message: &Message<'_>) -> Result<bool> {
        put(&mut self.socket.output, message);
        Ok(true)
    }

    fn acknowledged(&mut self, wait: Duration, seen: &mut dyn FnMut(u64)) -> Result<()> {
        self.socket.flush()?;
        self.socket.fill(wait)?;
        while let Some((text, bytes)) = line(self.socket.input()) {
            if !text.starts_with(b"INSERTED ") {
                bail!("a put was refused: {}", String::from_utf8_lossy(text));
            }
            self.socket.consume(bytes);
            seen(self.answered);
            self.answered += 1;
        }
        Ok(())
    }
}

fn put(output: &mut Vec<u8>, message: &Message<'_>) {
    let head = format!("put {} 0 {TIME_TO_RUN} {}\r\n", message.class, message.body.len());
    output.extend_from_slice(head.as_bytes());
    output.extend_from_slice(message.body);
    output.extend_from_slice(b"\r\n");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    Job,
    Deletion,
}

struct Reserver {
    socket: Socket,
    prefetch: u32,
    held: u32,
    /// What the next answers answer.
    owed: VecDeque<Owed>,
    /// Reservations that are not answered.
    asked: u32,
    /// The last reservation found nothing; asking again at once would be a busy wait.
    dry: bool,
    /// How many jobs the next reservations ask for: as many as there were lately, and twice as many if there may have been more.
    /// Hundreds of answers that there is nothing would keep the server from what it is asked meanwhile.
    expected: u32,
    /// Jobs that came of the reservations that are out.
    found: u32,
    settled: u64,
}

impl Reserver {
    fn reserve(&mut self, seconds: u32) {
        self.socket.output.extend_from_slice(format!("reserve-with-timeout {seconds}\r\n").as_bytes());
        self.owed.push_back(Owed::Job);
        self.asked += 1;
    }

    fn ask(&mut self) {
        let room = self.prefetch.saturating_sub(self.held);
        if self.asked > 0 || room < self.prefetch.div_ceil(2) {
            return;
        }
        let count = room.min(self.expected);
        self.found = 0;
        // The server waits for a job only when we hold none; a wait would keep it from reading our deletions.
        if self.held == 0 {
            self.reserve(1);
        } else if self.dry {
            return;
        } else {
            self.reserve(0);
        }
        (1..count).for_each(|_| self.reserve(0));
    }

    fn job_came(&mut self) {
        self.held += 1;
        self.asked -= 1;
        self.found += 1;
        self.dry = false;
        // All of them found one, so that there may be more.
        if self.asked == 0 && self.found >= self.expected {
            self.expected = self.expected.saturating_mul(2).min(self.prefetch);
        }
    }

    fn none_came(&mut self) {
        self.asked -= 1;
        self.dry = true;
        self.expected = self.found.max(1);
    }
}

impl Receiver for Reserver {
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<()> {
        self.ask();
        self.socket.flush()?;
        self.socket.fill(wait)?;
        while let Some(owed) = self.owed.front().copied() {
            let Some((answer, bytes)) = parse(self.socket.input())? else { break };
            match (owed, answer) {
                (Owed::Job, Answer::Reserved { token, stamp }) => {
                    self.job_came();
                    take(Delivery { token, stamp });
                }
                (Owed::Job, Answer::TimedOut) => self.none_came(),
                (Owed::Deletion, Answer::Deleted) => self.settled += 1,
                (owed, answer) => bail!("{answer:?} for {owed:?}"),
            }
            self.socket.consume(bytes);
            self.owed.pop_front();
        }
        Ok(())
    }

    fn settle(&mut self, token: u64) -> Result<()> {
        self.socket.output.extend_from_slice(format!("delete {token}\r\n").as_bytes());
        self.owed.push_back(Owed::Deletion);
        self.held = self.held.saturating_sub(1);
        self.dry = false;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.socket.flush()
    }

    fn settled(&self) -> u64 {
        self.settled
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Reserved { token: u64, stamp: Stamp },
    TimedOut,
    Deleted,
}

fn parse(input: &[u8]) -> Result<Option<(Answer, usize)>> {
    let Some((text, head)) = line(input) else { return Ok(None) };
    let mut words = text.split(|byte| *byte == b' ');
    match words.next() {
        Some(b"RESERVED") => {
            let token = words.next().and_then(number).context("a job without a number")?;
            let size = words.next().and_then(number).context("a job without a size")?;
            let end = head + usize::try_from(size)?;
            let Some(body) = input.get(head..end).filter(|_| input.len() >= end + 2) else { return Ok(None) };
            let stamp = Stamp::read(body).context("a job without a stamp")?;
            Ok(Some((Answer::Reserved { token, stamp }, end + 2)))
        }
        Some(b"TIMED_OUT") => Ok(Some((Answer::TimedOut, head))),
        Some(b"DELETED") => Ok(Some((Answer::Deleted, head))),
        _ => bail!("beanstalkd says {}", String::from_utf8_lossy(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn a_put_carries_class_and_length() {
        let mut output = Vec::new();
        put(&mut output, &Message { body: b"abc", class: 2, key: None });
        assert_eq!(output, b"put 2 0 3600 3\r\nabc\r\n");
    }

    #[test]
    fn as_many_jobs_are_asked_for_as_there_were_lately() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let clients = Beanstalk { port: server.local_addr().unwrap().port() };
        let mut reserver = clients.reserver(10).unwrap();
        // So many jobs are in the queue when it asks, and that is how many it asks for.
        for (waiting, expected) in [(1, 1), (0, 2), (1, 1), (5, 2), (5, 4), (5, 8), (0, 5), (9, 1)] {
            reserver.ask();
            assert_eq!(reserver.asked, expected, "{waiting} wait");
            for place in 0..reserver.asked {
                if place < waiting { reserver.job_came() } else { reserver.none_came() }
            }
            reserver.held = 0;
        }
    }

    #[test]
    fn a_job_is_taken_when_all_of_it_is_there() {
        let stamp = Stamp { sent_micros: 5, number: 6, class: 1 };
        let mut body = [b'y'; 20];
        stamp.write(&mut body);
        let mut input = b"RESERVED 77 20\r\n".to_vec();
        input.extend_from_slice(&body);
        input.extend_from_slice(b"\r\n");
        for end in 0..input.len() {
            assert_eq!(parse(&input[..end]).unwrap(), None, "{end} bytes");
        }
        let all = input.len();
        input.extend_from_slice(b"TIMED_OUT\r\n");
        assert_eq!(parse(&input).unwrap(), Some((Answer::Reserved { token: 77, stamp }, all)));
        assert_eq!(parse(&input[all..]).unwrap(), Some((Answer::TimedOut, 11)));
        assert!(parse(b"OUT_OF_MEMORY\r\n").is_err());
    }
}
