//! One of many: a connection on an asynchronous socket with one link.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use vorrang_amqp::connection::{
    ClientConfig, Connection, Event, Limits, LinkId, Login, Millis, Outgoing, OwnAttach, Received,
};
use vorrang_amqp::message::put_data;
use vorrang_amqp::performative::{
    DeliveryState, DeliveryTag, ReceiverSettleMode, Role, SenderSettleMode, Source, Target, TargetNode,
};
use vorrang_amqp::sasl_plain::PlainCredentials;

use super::Counters;

/// Messages a receiver takes ahead.
const CREDIT: u32 = 20;
/// A message's body.
const BODY_BYTES: usize = 256;

/// One connection.
pub(super) struct Peer {
    socket: TcpStream,
    amqp: Connection,
    input: BytesMut,
    chunks: Vec<Bytes>,
    started: Instant,
}

impl Peer {
    /// Connects with the emulator's key as user and password.
    pub(super) async fn connect(address: &str) -> Result<Peer> {
        let socket =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        socket.set_nodelay(true)?;
        let login = Login::Plain(PlainCredentials {
            authorization_identity: "".into(),
            user: "RootManageSharedAccessKey".into(),
            password: "SAS_KEY_VALUE".into(),
        });
        let config = ClientConfig { login, ..ClientConfig::new("vorrang-bench") };
        let amqp = Connection::client(config, Limits::default(), Millis(0));
        let mut peer =
            Peer { socket, amqp, input: BytesMut::new(), chunks: Vec::new(), started: Instant::now() };
        peer.until(|event| matches!(event, Event::Opened(_))).await?;
        Ok(peer)
    }

    /// Attaches a link on a session of its own.
    pub(super) async fn attach(&mut self, queue: &str, role: Role) -> Result<LinkId> {
        let session = self.amqp.begin().context("cannot begin a session")?;
        let attach = OwnAttach {
            snd_settle_mode: Some(SenderSettleMode::Unsettled),
            rcv_settle_mode: (role == Role::Receiver).then_some(ReceiverSettleMode::Second),
            source: Some(Source::at(queue)),
            target: Some(TargetNode::Node(Target::at(queue))),
            ..OwnAttach::new(queue, role)
        };
        let link = self.amqp.attach(session, attach).context("cannot attach")?;
        self.until(|event| matches!(event, Event::Attached { .. })).await?;
        Ok(link)
    }

    /// Sends one message for each order, until there are no more and all are answered or the connection breaks.
    pub(super) async fn send_all(
        mut self,
        link: LinkId,
        mut orders: mpsc::Receiver<()>,
        counters: &Counters,
    ) -> Result<()> {
        let mut payload = Vec::new();
        put_data(&mut payload, &[7; BODY_BYTES]);
        let tail = Bytes::from(payload);
        let (mut number, mut owed, mut open) = (0_u64, 0_u32, true);
        while open || owed > 0 {
            let sendable = open && self.amqp.credit(link).unwrap_or(0) > 0;
            tokio::select! {
                order = orders.recv(), if sendable => {
                    open = order.is_some();
                    if open {
                        let tag = DeliveryTag::from(number);
                        let outgoing =
                            Outgoing { tag, message_format: 0, settled: false, state: None, head: &[], tail: &tail, key: 0 };
                        self.amqp.send(link, &outgoing).context("cannot send")?;
                        number += 1;
                        owed += 1;
                        counters.sent.fetch_add(1, Ordering::Relaxed);
                    }
                }
                read = self.socket.read_buf(&mut self.input) => self.received(read?)?,
            }
            while let Some(event) = self.amqp.next_event() {
                match event {
                    Event::Settlement(settlement) => {
                        if settlement.state.as_deref() != Some(&DeliveryState::ACCEPTED) {
                            bail!("a message was refused: {:?}", settlement.state);
                        }
                        let settled = u32::try_from(settlement.deliveries.len())?;
                        owed = owed.saturating_sub(settled);
                        counters.accepted.fetch_add(u64::from(settled), Ordering::Relaxed);
                    }
                    Event::Closed(closed) => bail!("connection closed: {closed:?}"),
                    _ => {}
                }
            }
            self.flush().await?;
        }
        // Stays connected until the measurement is over.
        loop {
            let read = self.socket.read_buf(&mut self.input).await?;
            self.received(read)?;
            self.flush().await?;
        }
    }

    /// Completes every message that comes.
    pub(super) async fn receive_all(mut self, link: LinkId, counters: &Counters) -> Result<()> {
        loop {
            if self.amqp.credit(link).unwrap_or(CREDIT) < CREDIT / 2 {
                self.amqp.grant(link, CREDIT).context("the link is gone")?;
            }
            self.flush().await?;
            let read = self.socket.read_buf(&mut self.input).await?;
            self.received(read)?;
            while let Some(event) = self.amqp.next_event() {
                match event {
                    Event::Delivery(delivery) => {
                        self.amqp
                            .decide(delivery.link, delivery.delivery, DeliveryState::ACCEPTED)
                            .context("the link is gone")?;
                    }
                    Event::Settlement(settlement) => {
                        let settled = u64::try_from(settlement.deliveries.len())?;
                        counters.completed.fetch_add(settled, Ordering::Relaxed);
                    }
                    Event::Closed(closed) => bail!("connection closed: {closed:?}"),
                    _ => {}
                }
            }
        }
    }

    /// Goes on until something happens.
    async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<()> {
        loop {
            self.flush().await?;
            while let Some(event) = self.amqp.next_event() {
                match &event {
                    event if wanted(event) => return Ok(()),
                    Event::Closed(closed) => bail!("connection closed: {closed:?}"),
                    Event::LinkEnded { ending, .. } => bail!("the link was refused: {ending:?}"),
                    _ => {}
                }
            }
            let read = self.socket.read_buf(&mut self.input).await?;
            self.received(read)?;
        }
    }

    fn received(&mut self, read: usize) -> Result<()> {
        if read == 0 {
            bail!("the broker closed the connection");
        }
        let now = Millis(u64::try_from(self.started.elapsed().as_millis())?);
        while self.amqp.receive(&mut self.input, now) == Received::Paused {}
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        self.amqp.take_output(&mut self.chunks);
        for chunk in self.chunks.drain(..) {
            self.socket.write_all(&chunk).await?;
        }
        Ok(())
    }
}
