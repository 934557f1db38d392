//! The server under measurement: the engine's server role in the same kind of shell the broker has.

use std::io::{IoSlice, Write};

use anyhow::{Context, Result};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use vorrang_amqp::connection::{
    AttachReply, Connection, Event, Limits, LinkId, Millis, Outgoing, Received, ServerConfig,
};
use vorrang_amqp::performative::DeliveryTag;

use super::Direction;

/// Credit a sink keeps open for its sender.
const CREDIT: u32 = 4_000;
/// What one read takes at most, as in the broker.
const READ_BYTES: usize = 256 * 1024;
/// Pieces of output handed to the system at once, as in the broker.
const PIECES_MAX: usize = 64;

/// Listens, prints the address, serves one connection and ends with it.
pub(super) fn run(direction: Direction, size: usize, single: bool) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let served = tokio::spawn(async move { Server::new(stream, direction, size, single).run().await });
        served.await.context("the server panicked")?
    })
}

struct Server {
    stream: TcpStream,
    engine: Connection,
    direction: Direction,
    single: bool,
    link: Option<LinkId>,
    body: Bytes,
    number: u64,
    output: Vec<Bytes>,
}

impl Server {
    fn new(stream: TcpStream, direction: Direction, size: usize, single: bool) -> Server {
        let mut config = ServerConfig::new("sink");
        config.sasl_optional = true;
        let mut engine = Connection::server(config, Limits::default(), Millis(0));
        engine.authenticated();
        let body = Bytes::from(vec![7; size]);
        Server { stream, engine, direction, single, link: None, body, number: 0, output: Vec::new() }
    }

    async fn run(mut self) -> Result<()> {
        let mut input = BytesMut::new();
        loop {
            input.reserve(READ_BYTES);
            if self.stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
            loop {
                let received = self.engine.receive(&mut input, Millis(0));
                self.handle()?;
                if received != Received::Paused {
                    break;
                }
            }
            self.write().await?;
        }
    }

    fn handle(&mut self) -> Result<()> {
        while let Some(event) = self.engine.next_event() {
            match event {
                Event::Delivery(delivery) => {
                    self.engine.accept(delivery.link, delivery.delivery)?;
                    if self.single {
                        self.engine.take_output(&mut self.output);
                    }
                }
                Event::Settlement(settlement) => {
                    for settled in &settlement.deliveries {
                        self.engine.accept(settlement.link, settled.delivery)?;
                    }
                }
                Event::Credentials(_) => self.engine.accept_credentials()?,
                Event::Attach(request) => {
                    let (source, target) = (request.attach.source, request.attach.target);
                    let reply = AttachReply { source, target, ..AttachReply::default() };
                    self.engine.accept_attach(request.link, reply)?;
                    self.link = Some(request.link);
                }
                _ => {}
            }
        }
        match (self.direction, self.link) {
            (Direction::Ingest, Some(link)) if self.engine.credit(link)? < CREDIT / 2 => {
                self.engine.grant(link, CREDIT)?;
            }
            (Direction::Delivery, Some(link)) => self.deliver(link),
            _ => {}
        }
        Ok(())
    }

    /// Sends until credit, window or room for output is used up.
    fn deliver(&mut self, link: LinkId) {
        loop {
            let outgoing = Outgoing {
                // A lock token of sixteen bytes, as the broker sends them.
                tag: DeliveryTag::from(u128::from(self.number).to_be_bytes()),
                message_format: 0,
                settled: false,
                state: None,
                head: &[0, 0x53, 0x70, 0x45],
                tail: &self.body,
                key: u128::from(self.number),
            };
            if self.engine.send(link, &outgoing).is_err() {
                return;
            }
            self.number += 1;
        }
    }

    async fn write(&mut self) -> Result<()> {
        self.engine.take_output(&mut self.output);
        let mut first = 0;
        while let Some(waiting) = self.output.get(first..).filter(|waiting| !waiting.is_empty()) {
            let mut slices = [IoSlice::new(&[]); PIECES_MAX];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(waiting) {
                *slice = IoSlice::new(piece);
                count += 1;
            }
            let mut written = self.stream.write_vectored(slices.get(..count).unwrap_or_default()).await?;
            while let Some(piece) = self.output.get_mut(first).filter(|_| written > 0) {
                let taken = written.min(piece.len());
                piece.advance(taken);
                written -= taken;
                if piece.is_empty() {
                    first += 1;
                }
            }
        }
        self.output.clear();
        Ok(())
    }
}
