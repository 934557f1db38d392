//! STOMP 1.2 as ActiveMQ Classic speaks it: persistent sends with receipts, individual acknowledgements.
//!
//! Debian's package is built without the AMQP transport. A receipt for an acknowledgement is asked for once per batch:
//! a connection's frames are handled in order, so the last one vouches for all before it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::peers::peer::{Clients, Delivery, Layout, Message, Receiver, Sender, Stamp};
use crate::peers::socket::{Socket, line, number};
use crate::peers::workload::fan_out;

/// JMS priorities of the classes: the more urgent, the higher.
const PRIORITIES: [u8; 4] = [9, 6, 4, 1];

/// Clients of one server.
#[derive(Debug)]
pub(crate) struct Stomp {
    pub(crate) port: u16,
    pub(crate) layout: Layout,
}

impl Clients for Stomp {
    fn probe(&self) -> Result<()> {
        open(self.port, None).map(drop)
    }

    fn prepare(&self) -> Result<()> {
        let Layout::FanOut(behind) = self.layout else { return Ok(()) };
        // A durable subscription is made by its first subscriber, and stays.
        (0..fan_out::count_of(behind)).try_for_each(|number| self.subscriber(number, 1).map(drop))
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let place = if matches!(self.layout, Layout::FanOut(_)) { "/topic/t" } else { "/queue/q" };
        Ok(Box::new(Producer { socket: open(self.port, None)?, place, sent: 0 }))
    }

    fn receiver(&self, prefetch: u32) -> Result<Box<dyn Receiver>> {
        let mut socket = open(self.port, None)?;
        let head = format!(
            "SUBSCRIBE\nid:0\ndestination:/queue/q\nack:client-individual\nactivemq.prefetchSize:{prefetch}\n\n\0"
        );
        socket.output.extend_from_slice(head.as_bytes());
        socket.flush()?;
        Ok(Box::new(Subscriber::new(socket)))
    }

    fn subscriber(&self, subscription: u32, prefetch: u32) -> Result<Box<dyn Receiver>> {
        if !matches!(self.layout, Layout::FanOut(_)) {
            return self.receiver(prefetch);
        }
        let selector = fan_out::expression(subscription, "k");
        let name = format!("s{subscription}");
        let mut socket = open(self.port, Some(&name))?;
        let head = format!(
            "SUBSCRIBE\nid:0\ndestination:/topic/t\nack:client-individual\nactivemq.prefetchSize:{prefetch}\n\
             activemq.subscriptionName:{name}\nselector:{selector}\nreceipt:r\n\n\0"
        );
        socket.output.extend_from_slice(head.as_bytes());
        socket.ask(|input| Ok(parse(input)?.map(|(_, bytes)| ((), bytes))))?;
        Ok(Box::new(Subscriber::new(socket)))
    }
}

fn open(port: u16, client: Option<&str>) -> Result<Socket> {
    let mut socket = Socket::connect(port)?;
    let client = client.map(|client| format!("client-id:{client}\n")).unwrap_or_default();
    socket.output.extend_from_slice(
        format!("CONNECT\naccept-version:1.2\nhost:localhost\n{client}heart-beat:0,0\n\n\0").as_bytes(),
    );
    socket.ask(|input| match parse(input)? {
        None => Ok(None),
        Some((frame, bytes)) if frame.command == b"CONNECTED" => Ok(Some(((), bytes))),
        Some((frame, _)) => bail!("{}", frame.complaint()),
    })?;
    Ok(socket)
}

struct Producer {
    socket: Socket,
    place: &'static str,
    sent: u64,
}

impl Sender for Producer {
    fn send(&mut self, message: &Message<'_>) -> Result<bool> {
        send(&mut self.socket.output, self.place, message, self.sent);
        self.sent += 1;
        Ok(true)
    }

    fn acknowledged(&mut self, wait: Duration, seen: &mut dyn FnMut(u64)) -> Result<()> {
        self.socket.flush()?;
        self.socket.fill(wait)?;
        while let Some((frame, bytes)) = parse(self.socket.input())? {
            if frame.command != b"RECEIPT" {
                bail!("{}", frame.complaint());
            }
            seen(frame.header(b"receipt-id").and_then(number).context("a receipt without a number")?);
            self.socket.consume(bytes);
        }
        Ok(())
    }
}

fn send(output: &mut Vec<u8>, place: &str, message: &Message<'_>, receipt: u64) {
    let priority = PRIORITIES.get(usize::from(message.class)).copied().unwrap_or(4);
    let key = message.key.map(|key| format!("k:k{key}\n")).unwrap_or_default();
    let head = format!(
        "SEND\ndestination:{place}\npersistent:true\npriority:{priority}\n{key}receipt:{receipt}\ncontent-length:{}\n\n",
        message.body.len()
    );
    output.extend_from_slice(head.as_bytes());
    output.extend_from_slice(message.body);
    output.push(0);
}

struct Subscriber {
    socket: Socket,
    /// Tokens, and what the server calls the delivery.
    held: BTreeMap<u64, Vec<u8>>,
    next: u64,
    /// Acknowledgements since the last receipt was asked for.
    unasked: u64,
    /// How many acknowledgements each awaited receipt stands for.
    receipts: VecDeque<u64>,
    settled: u64,
}

impl Subscriber {
    fn new(socket: Socket) -> Subscriber {
        Subscriber {
            socket,
            held: BTreeMap::new(),
            next: 0,
            unasked: 0,
            receipts: VecDeque::new(),
            settled: 0,
        }
    }
}

impl Receiver for Subscriber {
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<()> {
        self.flush()?;
        self.socket.fill(wait)?;
        while let Some((frame, bytes)) = parse(self.socket.input())? {
            match frame.command {
                b"MESSAGE" => {
                    let id = frame.header(b"ack").context("a message without an ack header")?.to_vec();
                    let stamp = Stamp::read(frame.body).context("a message without a stamp")?;
                    take(Delivery { token: self.next, stamp });
                    self.held.insert(self.next, id);
                    self.next += 1;
                }
                b"RECEIPT" => self.settled += self.receipts.pop_front().unwrap_or(0),
                _ => bail!("{}", frame.complaint()),
            }
            self.socket.consume(bytes);
        }
        Ok(())
    }

    fn settle(&mut self, token: u64) -> Result<()> {
        let id = self.held.remove(&token).context("a token that is not held")?;
        // The frame's end is left out until it is known whether it asks for a receipt.
        if self.unasked > 0 {
            self.socket.output.extend_from_slice(b"\n\0");
        }
        self.socket.output.extend_from_slice(b"ACK\nid:");
        self.socket.output.extend_from_slice(&id);
        self.socket.output.push(b'\n');
        self.unasked += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.unasked > 0 {
            self.socket.output.extend_from_slice(b"receipt:a\n\n\0");
            self.receipts.push_back(self.unasked);
            self.unasked = 0;
        }
        self.socket.flush()
    }

    fn settled(&self) -> u64 {
        self.settled
    }
}

#[derive(Debug)]
struct Frame<'a> {
    command: &'a [u8],
    headers: &'a [u8],
    body: &'a [u8],
}

impl Frame<'_> {
    fn header(&self, name: &[u8]) -> Option<&[u8]> {
        header(self.headers, name)
    }

    fn complaint(&self) -> String {
        let text = [self.command, b" ", self.headers, b" ", self.body].concat();
        String::from_utf8_lossy(&text).replace('\n', " ").chars().take(300).collect()
    }
}

/// The first header of that name; if there are several, the first counts.
fn header<'a>(headers: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    headers.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name)?.strip_prefix(b":"))
}

/// The first frame, and the bytes it takes; none if it is not all there.
fn parse(input: &[u8]) -> Result<Option<(Frame<'_>, usize)>> {
    // Line ends between frames are allowed.
    let skipped = input.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
    let rest = input.get(skipped..).unwrap_or_default();
    let Some((command, mut place)) = line(rest) else { return Ok(None) };
    let first = place;
    loop {
        let Some((text, bytes)) = line(rest.get(place..).unwrap_or_default()) else { return Ok(None) };
        place += bytes;
        if text.is_empty() {
            break;
        }
    }
    let headers = rest.get(first..place.saturating_sub(1)).unwrap_or_default();
    let length = match header(headers, b"content-length").and_then(number) {
        Some(length) => usize::try_from(length)?,
        None => match rest.get(place..).and_then(|body| body.iter().position(|byte| *byte == 0)) {
            Some(length) => length,
            None => return Ok(None),
        },
    };
    let end = place + length;
    match (rest.get(place..end), rest.get(end)) {
        (Some(body), Some(0)) => Ok(Some((Frame { command, headers, body }, skipped + end + 1))),
        (Some(_), Some(_)) => bail!("a frame longer than it says"),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written_zeros_in_the_body_included() {
        let mut output = b"\n".to_vec();
        send(&mut output, "/queue/q", &Message { body: b"a\0b", class: 0, key: Some(5) }, 17);
        for end in 0..output.len() {
            assert!(parse(&output[..end]).unwrap().is_none(), "{end} bytes");
        }
        let (frame, bytes) = parse(&output).unwrap().unwrap();
        assert_eq!(
            (frame.command, frame.body, bytes),
            (b"SEND".as_slice(), b"a\0b".as_slice(), output.len())
        );
        assert_eq!(frame.header(b"priority"), Some(b"9".as_slice()));
        assert_eq!(frame.header(b"receipt"), Some(b"17".as_slice()));
        assert_eq!(frame.header(b"k"), Some(b"k5".as_slice()));
        assert_eq!(frame.header(b"rece"), None);
    }

    #[test]
    fn a_frame_without_a_length_ends_at_its_zero() {
        let (frame, bytes) = parse(b"RECEIPT\nreceipt-id:3\n\n\0MESS").unwrap().unwrap();
        assert_eq!((frame.header(b"receipt-id"), frame.body.len(), bytes), (Some(b"3".as_slice()), 0, 23));
        assert!(parse(b"MESSAGE\ncontent-length:1\n\nabc\0").is_err());
    }
}
