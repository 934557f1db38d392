//! AMQP 0-9-1 as RabbitMQ speaks it: persistent messages, publisher confirms, acknowledgements by hand.
//!
//! Only the methods a measurement needs, on one channel. What is settled in one go and in the order it came
//! is acknowledged with one frame, as the protocol offers.

mod frame;

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::peers::peer::{Clients, Delivery, FanOut, Layout, Message, Receiver, Sender, Stamp};
use crate::peers::socket::Socket;
use crate::peers::workload::fan_out;
use frame::{Argument, Frame, Method, method, publish};

/// Which kind of queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    Classic,
    Quorum,
}

/// Clients of one server.
#[derive(Debug)]
pub(crate) struct Rabbit {
    pub(crate) port: u16,
    pub(crate) layout: Layout,
    pub(crate) queue: Queue,
}

impl Rabbit {
    fn declare(&self, socket: &mut Socket, name: &str) -> Result<()> {
        let mut arguments = Vec::new();
        match self.queue {
            Queue::Classic => arguments.push(("x-queue-type", Argument::Text("classic"))),
            Queue::Quorum => arguments.push(("x-queue-type", Argument::Text("quorum"))),
        }
        if self.layout == Layout::Priorities && self.queue == Queue::Classic {
            arguments.push(("x-max-priority", Argument::Number(10)));
        }
        frame::queue_declare(&mut socket.output, name, &arguments);
        answer(socket, method::QUEUE_DECLARE_OK)
    }

    /// An exchange that sends a message to the queue that wants its key.
    fn fan_out(&self, socket: &mut Socket, behind: FanOut) -> Result<()> {
        frame::exchange_declare(&mut socket.output, "topic", "direct");
        answer(socket, method::EXCHANGE_DECLARE_OK)?;
        for number in 0..fan_out::count_of(behind) {
            let name = format!("s{number}");
            self.declare(socket, &name)?;
            let keys = fan_out::keys_of(behind, number);
            for key in &keys {
                frame::queue_bind(&mut socket.output, &name, "topic", &format!("k{key}"));
            }
            keys.iter().try_for_each(|_| answer(socket, method::QUEUE_BIND_OK))?;
        }
        Ok(())
    }
}

impl Clients for Rabbit {
    fn probe(&self) -> Result<()> {
        open(self.port).map(drop)
    }

    fn prepare(&self) -> Result<()> {
        let mut socket = open(self.port)?;
        match self.layout {
            Layout::FanOut(behind) => self.fan_out(&mut socket, behind),
            Layout::Plain | Layout::Crowd | Layout::Priorities => self.declare(&mut socket, "q"),
        }
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let mut socket = open(self.port)?;
        frame::confirm_select(&mut socket.output);
        answer(&mut socket, method::CONFIRM_SELECT_OK)?;
        Ok(Box::new(Publisher { socket, next: 1 }))
    }

    fn receiver(&self, prefetch: u32) -> Result<Box<dyn Receiver>> {
        consume(self.port, "q", prefetch)
    }

    fn subscriber(&self, subscription: u32, prefetch: u32) -> Result<Box<dyn Receiver>> {
        consume(self.port, &format!("s{subscription}"), prefetch)
    }
}

fn consume(port: u16, queue: &str, prefetch: u32) -> Result<Box<dyn Receiver>> {
    let mut socket = open(port)?;
    frame::qos(&mut socket.output, u16::try_from(prefetch).unwrap_or(u16::MAX));
    answer(&mut socket, method::QOS_OK)?;
    frame::consume(&mut socket.output, queue);
    answer(&mut socket, method::CONSUME_OK)?;
    Ok(Box::new(Consumer { socket, body: Body::default(), done: Vec::new(), acknowledged: 0, settled: 0 }))
}

/// Connects, logs in as guest and opens channel 1.
fn open(port: u16) -> Result<Socket> {
    let mut socket = Socket::connect(port)?;
    socket.output.extend_from_slice(b"AMQP\x00\x00\x09\x01");
    answer(&mut socket, method::START)?;
    frame::start_ok(&mut socket.output, "guest", "guest");
    answer(&mut socket, method::TUNE)?;
    frame::tune_ok(&mut socket.output);
    frame::connection_open(&mut socket.output);
    answer(&mut socket, method::OPEN_OK)?;
    frame::channel_open(&mut socket.output);
    answer(&mut socket, method::CHANNEL_OPEN_OK)?;
    Ok(socket)
}

/// Waits for one method; a consumer's first deliveries stay in the input.
fn answer(socket: &mut Socket, wanted: Method) -> Result<()> {
    socket.ask(|input| {
        let Some((frame, bytes)) = frame::parse(input)? else { return Ok(None) };
        match frame {
            Frame::Method(found, _) if found == wanted => Ok(Some(((), bytes))),
            Frame::Method(found, text) => bail!("{found:?} instead of {wanted:?}: {}", readable(text)),
            _ => bail!("no method instead of {wanted:?}"),
        }
    })
}

fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|letter| !letter.is_control()).collect()
}

struct Publisher {
    socket: Socket,
    /// The delivery tag of the oldest message of which nothing was heard; tags count from 1.
    next: u64,
}

impl Sender for Publisher {
    fn send(&mut self, message: &Message<'_>) -> Result<bool> {
        publish(&mut self.socket.output, message);
        Ok(true)
    }

    fn acknowledged(&mut self, wait: Duration, seen: &mut dyn FnMut(u64)) -> Result<()> {
        self.socket.flush()?;
        self.socket.fill(wait)?;
        while let Some((frame, bytes)) = frame::parse(self.socket.input())? {
            match frame {
                Frame::Method(method::ACK, arguments) => {
                    let (tag, multiple) = frame::acknowledged(arguments).context("a short confirm")?;
                    let first = if multiple { self.next } else { tag };
                    (first..=tag).for_each(|tag| seen(tag.saturating_sub(1)));
                    if multiple || tag == self.next {
                        self.next = tag + 1;
                    }
                }
                Frame::Method(other, text) => bail!("{other:?}: {}", readable(text)),
                _ => {}
            }
            self.socket.consume(bytes);
        }
        Ok(())
    }
}

/// A delivery whose body is still coming.
#[derive(Debug, Default)]
struct Body {
    tag: u64,
    missing: u64,
    bytes: Vec<u8>,
}

struct Consumer {
    socket: Socket,
    body: Body,
    /// Settled and not yet written.
    done: Vec<u64>,
    /// Every tag up to this one is acknowledged.
    acknowledged: u64,
    settled: u64,
}

impl Consumer {
    fn write_done(&mut self) {
        self.done.sort_unstable();
        let in_order = (self.acknowledged + 1..).zip(&self.done).all(|(expected, tag)| expected == *tag);
        self.settled += u64::try_from(self.done.len()).unwrap_or(0);
        match self.done.last().copied().filter(|_| in_order) {
            Some(last) => {
                frame::ack(&mut self.socket.output, last, true);
                self.acknowledged = last;
            }
            None => self.done.iter().for_each(|tag| frame::ack(&mut self.socket.output, *tag, false)),
        }
        self.done.clear();
    }
}

impl Receiver for Consumer {
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<()> {
        self.flush()?;
        self.socket.fill(wait)?;
        while let Some((frame, bytes)) = frame::parse(self.socket.input())? {
            match frame {
                Frame::Method(method::DELIVER, arguments) => {
                    self.body.tag = frame::delivery_tag(arguments).context("a short delivery")?;
                }
                Frame::Method(other, text) => bail!("{other:?}: {}", readable(text)),
                Frame::Header(size) => {
                    self.body.missing = size;
                    self.body.bytes.clear();
                }
                Frame::Body(part) => {
                    self.body.bytes.extend_from_slice(part);
                    self.body.missing = self.body.missing.saturating_sub(u64::try_from(part.len())?);
                    if self.body.missing == 0 {
                        let stamp = Stamp::read(&self.body.bytes).context("a delivery without a stamp")?;
                        take(Delivery { token: self.body.tag, stamp });
                    }
                }
                Frame::Other => {}
            }
            self.socket.consume(bytes);
        }
        Ok(())
    }

    fn settle(&mut self, token: u64) -> Result<()> {
        self.done.push(token);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.write_done();
        self.socket.flush()
    }

    fn settled(&self) -> u64 {
        self.settled
    }
}
