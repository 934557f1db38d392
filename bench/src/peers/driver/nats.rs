//! NATS JetStream: publishes with a reply, pull consumers, explicit acknowledgements.
//!
//! One work-queue stream; a class is a subject of it with a consumer of its own, read from the most urgent down.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::peers::peer::{CLASSES, Clients, Delivery, Layout, Message, Receiver, Sender, Stamp};
use crate::peers::socket::{Socket, line, number};

/// How long an unfilled request for messages stays with the server.
const REQUEST_WAIT: Duration = Duration::from_secs(5);

/// Clients of one server.
#[derive(Debug)]
pub(crate) struct Nats {
    pub(crate) port: u16,
    pub(crate) layout: Layout,
}

impl Nats {
    fn classes(&self) -> u8 {
        if self.layout == Layout::Priorities { CLASSES } else { 1 }
    }
}

impl Clients for Nats {
    fn probe(&self) -> Result<()> {
        open(self.port).map(drop)
    }

    fn prepare(&self) -> Result<()> {
        let mut socket = open(self.port)?;
        let stream = r#"{"name":"q","subjects":["q.*"],"retention":"workqueue","storage":"file","num_replicas":1,"discard":"new"}"#;
        request(&mut socket, "$JS.API.STREAM.CREATE.q", stream)?;
        for class in 0..self.classes() {
            let consumer = format!(
                r#"{{"stream_name":"q","config":{{"durable_name":"c{class}","filter_subject":"q.{class}","ack_policy":"explicit","deliver_policy":"all","max_ack_pending":20000,"ack_wait":3600000000000}}}}"#
            );
            request(&mut socket, &format!("$JS.API.CONSUMER.DURABLE.CREATE.q.c{class}"), &consumer)?;
        }
        Ok(())
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let mut socket = open(self.port)?;
        let inbox = format!("_INBOX.{}", unique(&socket));
        socket.output.extend_from_slice(format!("SUB {inbox}.* 1\r\n").as_bytes());
        Ok(Box::new(Publisher { socket, inbox, sent: 0 }))
    }

    fn receiver(&self, prefetch: u32) -> Result<Box<dyn Receiver>> {
        let mut socket = open(self.port)?;
        let inbox = format!("_INBOX.{}", unique(&socket));
        socket.output.extend_from_slice(format!("SUB {inbox} 1\r\n").as_bytes());
        Ok(Box::new(Puller {
            socket,
            inbox,
            classes: self.classes(),
            prefetch,
            held: BTreeMap::new(),
            requested: 0,
            next: 0,
            settled: 0,
        }))
    }
}

/// Something no other connection of this run has: where it is in memory does, while it lives.
fn unique(socket: &Socket) -> String {
    format!("{}{:p}", std::process::id(), socket.output.as_ptr())
}

fn open(port: u16) -> Result<Socket> {
    let mut socket = Socket::connect(port)?;
    socket.output.extend_from_slice(
        b"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1}\r\nPING\r\n",
    );
    while !socket.ask(|input| Ok(parse(input)?.map(|(event, bytes)| (event == Event::Pong, bytes))))? {}
    Ok(socket)
}

/// Asks the server's API, and fails with its answer if that is an error.
fn request(socket: &mut Socket, subject: &str, body: &str) -> Result<()> {
    let inbox = format!("_INBOX.{}", unique(socket));
    let text = format!("SUB {inbox} 9\r\nPUB {subject} {inbox} {}\r\n{body}\r\n", body.len());
    socket.output.extend_from_slice(text.as_bytes());
    let answer = loop {
        let answer = socket.ask(|input| {
            Ok(parse(input)?.map(|(event, bytes)| match event {
                Event::Message(message) => (Some(message.body.to_vec()), bytes),
                _ => (None, bytes),
            }))
        })?;
        if let Some(answer) = answer {
            break answer;
        }
    };
    socket.output.extend_from_slice(b"UNSUB 9\r\n");
    let text = String::from_utf8(answer)?;
    // "name already in use" after a restart is what we want.
    if text.contains("\"error\"") && !text.contains("already in use") {
        bail!("{subject}: {text}");
    }
    Ok(())
}

struct Publisher {
    socket: Socket,
    inbox: String,
    sent: u64,
}

impl Sender for Publisher {
    fn send(&mut self, message: &Message<'_>) -> Result<bool> {
        let head = format!("PUB q.{} {}.{} {}\r\n", message.class, self.inbox, self.sent, message.body.len());
        self.socket.output.extend_from_slice(head.as_bytes());
        self.socket.output.extend_from_slice(message.body);
        self.socket.output.extend_from_slice(b"\r\n");
        self.sent += 1;
        Ok(true)
    }

    fn acknowledged(&mut self, wait: Duration, seen: &mut dyn FnMut(u64)) -> Result<()> {
        self.socket.flush()?;
        self.socket.fill(wait)?;
        while let Some((event, bytes)) = parse(self.socket.input())? {
            let mut ping = false;
            match event {
                Event::Message(message) => {
                    if !message.body.starts_with(b"{\"stream\"") {
                        bail!("a publish was refused: {}", String::from_utf8_lossy(message.body));
                    }
                    let place = message.subject.rsplit(|byte| *byte == b'.').next().and_then(number);
                    seen(place.context("an acknowledgement without a number")?);
                }
                Event::Ping => ping = true,
                Event::Error(text) => bail!("nats says {}", String::from_utf8_lossy(text)),
                Event::Pong | Event::Other => {}
            }
            self.socket.consume(bytes);
            if ping {
                self.socket.output.extend_from_slice(b"PONG\r\n");
            }
        }
        Ok(())
    }
}

struct Puller {
    socket: Socket,
    inbox: String,
    classes: u8,
    prefetch: u32,
    /// Tokens, and the subject that acknowledges each.
    held: BTreeMap<u64, Vec<u8>>,
    /// Messages asked for that have not come.
    requested: u32,
    next: u64,
    settled: u64,
}

impl Puller {
    fn pull(&mut self, class: u8, batch: u32, at_once: bool) {
        let body = if at_once {
            format!("{{\"batch\":{batch},\"no_wait\":true}}")
        } else {
            format!("{{\"batch\":{batch},\"expires\":{}}}", REQUEST_WAIT.as_nanos())
        };
        let head =
            format!("PUB $JS.API.CONSUMER.MSG.NEXT.q.c{class} {} {}\r\n{body}\r\n", self.inbox, body.len());
        self.socket.output.extend_from_slice(head.as_bytes());
        self.requested += batch;
    }

    /// Takes what has arrived; how many messages that were.
    fn arrivals(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<u32> {
        self.socket.flush()?;
        self.socket.fill(wait)?;
        let mut taken = 0;
        while let Some((event, bytes)) = parse(self.socket.input())? {
            let mut ping = false;
            match event {
                Event::Message(Arrival { status: Some(status), .. }) => match status {
                    404 | 408 | 409 => self.requested = 0,
                    status => bail!("nats answers with status {status}"),
                },
                Event::Message(Arrival { reply: Some(reply), body, .. }) => {
                    let stamp = Stamp::read(body).context("a message without a stamp")?;
                    take(Delivery { token: self.next, stamp });
                    let reply = reply.to_vec();
                    self.held.insert(self.next, reply);
                    self.next += 1;
                    taken += 1;
                    self.requested = self.requested.saturating_sub(1);
                }
                Event::Ping => ping = true,
                Event::Error(text) => bail!("nats says {}", String::from_utf8_lossy(text)),
                Event::Message(_) | Event::Pong | Event::Other => {}
            }
            self.socket.consume(bytes);
            if ping {
                self.socket.output.extend_from_slice(b"PONG\r\n");
            }
        }
        Ok(taken)
    }

    /// Asks each class at once, the most urgent first, until one has something.
    fn by_class(&mut self, room: u32, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<()> {
        for class in 0..self.classes {
            self.pull(class, room, true);
            let asked = Instant::now();
            let mut taken = 0;
            while self.requested > 0 && asked.elapsed() < Duration::from_secs(1) {
                taken += self.arrivals(Duration::from_millis(20), take)?;
                if taken > 0 && self.requested > 0 && asked.elapsed() > Duration::from_millis(20) {
                    self.requested = 0;
                }
            }
            if taken > 0 {
                return Ok(());
            }
        }
        std::thread::sleep(wait.min(Duration::from_millis(1)));
        Ok(())
    }
}

impl Receiver for Puller {
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<()> {
        let held = u32::try_from(self.held.len())?;
        let room = self.prefetch.saturating_sub(held + self.requested);
        let wanted = room >= self.prefetch.div_ceil(2);
        if wanted && self.classes > 1 {
            return self.by_class(room, wait, take);
        }
        if wanted {
            self.pull(0, room, false);
        }
        self.arrivals(wait, take).map(drop)
    }

    fn settle(&mut self, token: u64) -> Result<()> {
        let reply = self.held.remove(&token).context("a token that is not held")?;
        self.socket.output.extend_from_slice(b"PUB ");
        self.socket.output.extend_from_slice(&reply);
        self.socket.output.extend_from_slice(b" 4\r\n+ACK\r\n");
        self.settled += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.socket.flush()
    }

    fn settled(&self) -> u64 {
        self.settled
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Arrival<'a> {
    subject: &'a [u8],
    reply: Option<&'a [u8]>,
    /// Of an answer that is not a message.
    status: Option<u64>,
    body: &'a [u8],
}

#[derive(Debug, PartialEq, Eq)]
enum Event<'a> {
    Message(Arrival<'a>),
    Ping,
    Pong,
    Error(&'a [u8]),
    Other,
}

/// The first line with what belongs to it, and the bytes that takes; none if it is not all there.
fn parse(input: &[u8]) -> Result<Option<(Event<'_>, usize)>> {
    let Some((text, head)) = line(input) else { return Ok(None) };
    let words: Vec<&[u8]> = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
    let (subject, reply, headers, total) = match words.as_slice() {
        [b"MSG", subject, _, total] => (*subject, None, None, *total),
        [b"MSG", subject, _, reply, total] => (*subject, Some(*reply), None, *total),
        [b"HMSG", subject, _, headers, total] => (*subject, None, Some(*headers), *total),
        [b"HMSG", subject, _, reply, headers, total] => (*subject, Some(*reply), Some(*headers), *total),
        [b"PING"] => return Ok(Some((Event::Ping, head))),
        [b"PONG"] => return Ok(Some((Event::Pong, head))),
        [b"-ERR", ..] => return Ok(Some((Event::Error(text), head))),
        _ => return Ok(Some((Event::Other, head))),
    };
    let length = |text: &[u8]| anyhow::Ok(usize::try_from(number(text).context("not a length")?)?);
    let end = head + length(total)?;
    let Some(payload) = input.get(head..end).filter(|_| input.len() >= end + 2) else { return Ok(None) };
    let (headers, body) = payload
        .split_at_checked(headers.map(length).transpose()?.unwrap_or(0))
        .context("headers beyond the message")?;
    let first = line(headers).map_or(headers, |(first, _)| first);
    let status = first.strip_prefix(b"NATS/1.0 ").and_then(|rest| number(rest.get(..3)?));
    Ok(Some((Event::Message(Arrival { subject, reply, status, body }), end + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_parsed_when_all_of_them_is_there() {
        let input = b"MSG q.0 1 $JS.ACK.1 5\r\nhello\r\n";
        for end in 0..input.len() {
            assert_eq!(parse(&input[..end]).unwrap(), None, "{end} bytes");
        }
        let arrival = Arrival { subject: b"q.0", reply: Some(b"$JS.ACK.1"), status: None, body: b"hello" };
        assert_eq!(parse(input).unwrap(), Some((Event::Message(arrival), input.len())));
    }

    #[test]
    fn a_status_is_told_from_a_message() {
        let input = b"HMSG _INBOX.1 1 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n";
        let Some((Event::Message(arrival), bytes)) = parse(input).unwrap() else { panic!("not a message") };
        assert_eq!((arrival.status, arrival.body.len(), bytes), (Some(404), 0, input.len()));
        let input = b"HMSG q.0 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n";
        let Some((Event::Message(arrival), _)) = parse(input).unwrap() else { panic!("not a message") };
        assert_eq!((arrival.status, arrival.body), (None, b"hi".as_slice()));
    }

    #[test]
    fn everything_else_has_a_name_or_does_not_matter() {
        assert_eq!(parse(b"PING\r\n").unwrap(), Some((Event::Ping, 6)));
        assert_eq!(parse(b"+OK\r\n").unwrap(), Some((Event::Other, 5)));
        assert!(matches!(parse(b"-ERR 'no'\r\n").unwrap(), Some((Event::Error(_), 11))));
        assert!(parse(b"MSG a 1 x\r\n").is_err());
    }
}
