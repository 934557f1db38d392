//! AMQP 1.0 on our own protocol engine: unsettled sends, credit, settlements that the server confirms where it can.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use vorrang_amqp::connection::{Event, LinkId, Outgoing, SendError, Serial};
use vorrang_amqp::message::{Header, MessageId, Properties, put_data, put_header, put_properties};
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, ReceiverSettleMode, Role};

use crate::peers::peer::{Clients, Delivery, Layout, Message, Receiver, Sender, Stamp};
use crate::wire::{Account, Wire};

/// Clients of a broker that speaks AMQP 1.0.
pub(crate) struct Amqp {
    pub(crate) port: u16,
    pub(crate) layout: Layout,
    pub(crate) account: Account,
    /// What receivers ask for; a broker may answer with less, or refuse it.
    pub(crate) settle_mode: ReceiverSettleMode,
    /// What the broker calls a queue.
    pub(crate) queue: fn(&str) -> String,
    /// Over how many queues a crowd is spread.
    pub(crate) crowd_queues: u32,
    /// What the broker calls the queue of a subscription.
    pub(crate) subscription: fn(u32) -> String,
    /// How many receivers there have been.
    pub(crate) receivers: AtomicU32,
}

impl Amqp {
    /// Clients of a broker with one queue for a crowd, which calls queues by their names, takes the emulator's key and may confirm
    /// settlements.
    pub(crate) fn new(port: u16, layout: Layout, subscription: fn(u32) -> String) -> Amqp {
        Amqp {
            port,
            layout,
            account: Account::EMULATOR,
            settle_mode: ReceiverSettleMode::Second,
            queue: str::to_owned,
            crowd_queues: 1,
            subscription,
            receivers: AtomicU32::new(0),
        }
    }

    fn wire(&self) -> Result<Wire> {
        Wire::connect_as(self.account, &format!("127.0.0.1:{}", self.port))
    }

    fn receive(&self, address: &str, prefetch: u32) -> Result<AmqpReceiver> {
        AmqpReceiver::attach(self.wire()?, address, self.settle_mode, prefetch)
    }
}

impl Clients for Amqp {
    fn probe(&self) -> Result<()> {
        self.wire().map(drop)
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let address = if matches!(self.layout, Layout::FanOut(_)) { "t" } else { "q" };
        Ok(Box::new(AmqpSender::attach(self.wire()?, &(self.queue)(address))?))
    }

    fn receiver(&self, prefetch: u32) -> Result<Box<dyn Receiver>> {
        let address = match self.layout {
            Layout::Crowd if self.crowd_queues > 1 => {
                format!("q{}", self.receivers.fetch_add(1, Ordering::Relaxed) % self.crowd_queues)
            }
            _ => "q".to_owned(),
        };
        Ok(Box::new(self.receive(&(self.queue)(&address), prefetch)?))
    }

    fn subscriber(&self, subscription: u32, prefetch: u32) -> Result<Box<dyn Receiver>> {
        Ok(Box::new(self.receive(&(self.subscription)(subscription), prefetch)?))
    }
}

/// What a class is in the header's priority: AMQP's is higher for the more urgent.
const PRIORITIES: [u8; 4] = [9, 6, 4, 1];

/// Credit is renewed for every message up to this prefetch.
const EXACT_PREFETCH_MAX: u32 = 100;

/// A connection with one sending link.
pub(crate) struct AmqpSender {
    wire: Wire,
    link: LinkId,
    sent: u64,
    /// The delivery number of message 0; those after it follow.
    first: Option<u32>,
    payload: Vec<u8>,
    patience: Duration,
}

impl AmqpSender {
    pub(crate) fn attach(mut wire: Wire, address: &str) -> Result<AmqpSender> {
        let link = wire.attach(address, Role::Sender)?;
        Ok(AmqpSender { wire, link, sent: 0, first: None, payload: Vec::new(), patience: Duration::ZERO })
    }
}

impl Sender for AmqpSender {
    fn send(&mut self, message: &Message<'_>) -> Result<bool> {
        self.payload.clear();
        let priority = PRIORITIES.get(usize::from(message.class)).copied();
        put_header(&mut self.payload, &Header { durable: Some(true), priority, ..Header::default() });
        let correlation_id = message.key.map(|key| MessageId::String(format!("k{key}").as_str().into()));
        let properties = Properties {
            message_id: Some(MessageId::Ulong(self.sent)),
            correlation_id,
            ..Properties::default()
        };
        put_properties(&mut self.payload, &properties);
        put_data(&mut self.payload, message.body);
        let tail = Bytes::copy_from_slice(&self.payload);
        let outgoing = Outgoing {
            tag: DeliveryTag::from(self.sent),
            message_format: 0,
            settled: false,
            state: None,
            head: &[],
            tail: &tail,
            key: 0,
        };
        match self.wire.amqp.send(self.link, &outgoing) {
            Ok(delivery) => {
                self.first.get_or_insert(delivery.get());
                self.sent += 1;
                Ok(true)
            }
            Err(SendError::Gone) => bail!("the sender's link is gone"),
            Err(_) => Ok(false),
        }
    }

    fn acknowledged(&mut self, wait: Duration, seen: &mut dyn FnMut(u64)) -> Result<()> {
        self.wire.flush()?;
        wait_for(&mut self.wire, &mut self.patience, wait)?;
        while let Some(event) = self.wire.amqp.next_event() {
            let Event::Settlement(settlement) = ended(event)? else { continue };
            if settlement.state.as_deref() != Some(&DeliveryState::ACCEPTED) {
                bail!("a send was not accepted: {:?}", settlement.state);
            }
            for settled in &settlement.deliveries {
                seen(u64::from(settled.delivery.get().wrapping_sub(self.first.unwrap_or(0))));
            }
        }
        self.wire.flush()
    }
}

/// A connection with one receiving link.
pub(crate) struct AmqpReceiver {
    wire: Wire,
    link: LinkId,
    /// Whether the server settles what we decide, or we do (AMQP 1.0 2.8.3).
    confirmed: bool,
    prefetch: u32,
    held: u32,
    settled: u64,
    patience: Duration,
}

impl AmqpReceiver {
    fn attach(
        mut wire: Wire,
        address: &str,
        settle_mode: ReceiverSettleMode,
        prefetch: u32,
    ) -> Result<AmqpReceiver> {
        let (link, answer) = wire.attach_with(address, Role::Receiver, Some(settle_mode))?;
        let confirmed = answer.rcv_settle_mode == Some(ReceiverSettleMode::Second);
        Ok(AmqpReceiver { wire, link, confirmed, prefetch, held: 0, settled: 0, patience: Duration::ZERO })
    }
}

impl Receiver for AmqpReceiver {
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Delivery)) -> Result<()> {
        let room = self.prefetch.saturating_sub(self.held);
        let credit = self.wire.amqp.credit(self.link)?;
        // Large windows are opened by halves, small ones at once: the broker counts what is left of them.
        if credit < room && (credit < room.div_ceil(2) || self.prefetch <= EXACT_PREFETCH_MAX) {
            self.wire.amqp.grant(self.link, room)?;
        }
        self.wire.flush()?;
        wait_for(&mut self.wire, &mut self.patience, wait)?;
        while let Some(event) = self.wire.amqp.next_event() {
            match ended(event)? {
                Event::Delivery(delivery) => {
                    self.held += 1;
                    let token = u64::from(delivery.delivery.get());
                    let Some(stamp) = stamp_of(&delivery.payload) else {
                        bail!("a delivery without a stamp")
                    };
                    take(Delivery { token, stamp });
                }
                Event::Settlement(settlement) => {
                    if settlement.state.as_deref() != Some(&DeliveryState::ACCEPTED) {
                        bail!("a settlement was refused: {:?}", settlement.state);
                    }
                    self.settled += u64::try_from(settlement.deliveries.len())?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn settle(&mut self, token: u64) -> Result<()> {
        self.held = self.held.saturating_sub(1);
        let delivery = Serial::new(u32::try_from(token)?);
        if self.confirmed {
            return Ok(self.wire.amqp.decide(self.link, delivery, DeliveryState::ACCEPTED)?);
        }
        self.settled += 1;
        Ok(self.wire.amqp.accept(self.link, delivery)?)
    }

    fn flush(&mut self) -> Result<()> {
        self.wire.flush()
    }

    fn settled(&self) -> u64 {
        self.settled
    }
}

fn wait_for(wire: &mut Wire, patience: &mut Duration, wait: Duration) -> Result<()> {
    if wait.is_zero() {
        return wire.read_now().map(drop);
    }
    if *patience != wait {
        wire.patience(wait)?;
        *patience = wait;
    }
    wire.read().map(drop)
}

/// Passes events on, except those after which there are none.
fn ended(event: Event) -> Result<Event> {
    match event {
        Event::Closed(closed) => bail!("connection closed: {closed:?}"),
        Event::LinkEnded { ending, .. } => bail!("link ended: {ending:?}"),
        event => Ok(event),
    }
}

fn stamp_of(payload: &Bytes) -> Option<Stamp> {
    let message = vorrang_amqp::Message::parse(payload.clone()).ok()?;
    Stamp::read(&message.data().next()?)
}
