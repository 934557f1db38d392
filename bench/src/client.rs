//! Senders and receivers, each on a thread with a connection of its own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use vorrang_amqp::connection::{Event, Outgoing, SendError};
use vorrang_amqp::message::{MessageId, Properties, put_data, put_properties};
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Role};

use crate::histogram::Histogram;
use crate::wire::Wire;

/// What all clients of a run share.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) address: String,
    pub(crate) started: Instant,
    /// Senders stop sending.
    pub(crate) stop_sending: AtomicBool,
    /// Receivers stop when everything sent was received.
    pub(crate) senders_done: AtomicBool,
    /// Latencies count from here to the stop.
    pub(crate) measuring: AtomicBool,
    pub(crate) accepted: AtomicU64,
    pub(crate) completed: AtomicU64,
}

impl Run {
    /// Messages that were accepted and not yet completed.
    fn backlog(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed).saturating_sub(self.completed.load(Ordering::Relaxed))
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// How a sender sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending {
    pub(crate) body_bytes: usize,
    /// Deliveries on the way at once.
    pub(crate) window: usize,
    /// Messages per second; none for as fast as it goes.
    pub(crate) rate: Option<f64>,
    /// Messages in the broker above which no more are sent.
    pub(crate) backlog: u64,
}

/// Sends until told to stop; latencies from send to accepted.
pub(crate) fn send(run: &Run, queue: &str, sending: Sending) -> Result<Histogram> {
    let mut wire = Wire::connect(&run.address)?;
    let link = wire.attach(queue, Role::Sender)?;
    let mut histogram = Histogram::new();
    let mut in_flight: VecDeque<(u32, Instant)> = VecDeque::new();
    let mut number = 0_u64;
    let body = vec![b'x'; sending.body_bytes.max(16)];
    let began = Instant::now();
    let mut payload = Vec::new();
    loop {
        let stopping = run.stop_sending.load(Ordering::Relaxed);
        if stopping && in_flight.is_empty() {
            return Ok(histogram);
        }
        let due = sending.rate.map(|rate| due_by_now(began, rate));
        let waits = run.backlog() > sending.backlog;
        while !stopping && !waits && in_flight.len() < sending.window && due.is_none_or(|due| number < due) {
            payload.clear();
            encode(&mut payload, number, run.micros(), &body);
            let tail = Bytes::copy_from_slice(&payload);
            let outgoing = Outgoing {
                tag: DeliveryTag::from(number),
                message_format: 0,
                settled: false,
                state: None,
                head: &[],
                tail: &tail,
                key: 0,
            };
            match wire.amqp.send(link, &outgoing) {
                Ok(delivery) => in_flight.push_back((delivery.get(), Instant::now())),
                Err(SendError::Gone) => bail!("the sender's link is gone"),
                Err(_) => break,
            }
            number += 1;
        }
        wire.flush()?;
        match sending.rate {
            _ if in_flight.is_empty() => thread::sleep(Duration::from_micros(200)),
            Some(_) => {
                wire.patience(Duration::from_millis(1))?;
                wire.read()?;
            }
            None => {
                wire.read()?;
            }
        }
        while let Some(event) = wire.amqp.next_event() {
            let settlement = match event {
                Event::Settlement(settlement) => settlement,
                Event::Closed(closed) => bail!("connection closed: {closed:?}"),
                Event::LinkEnded { ending, .. } => bail!("link ended: {ending:?}"),
                _ => continue,
            };
            if settlement.state.as_deref() != Some(&DeliveryState::ACCEPTED) {
                bail!("a send was not accepted: {:?}", settlement.state);
            }
            let measuring = run.measuring.load(Ordering::Relaxed);
            for settled in &settlement.deliveries {
                if let Some(place) = in_flight.iter().position(|(id, _)| *id == settled.delivery.get())
                    && let Some((_, sent)) = in_flight.remove(place)
                    && measuring
                {
                    histogram.record(sent.elapsed());
                }
            }
            run.accepted.fetch_add(u64::try_from(settlement.deliveries.len())?, Ordering::Relaxed);
        }
    }
}

/// Receives and completes until everything is through; latencies from send to receive.
pub(crate) fn receive(run: &Run, queue: &str, credit: u32) -> Result<Histogram> {
    let mut wire = Wire::connect(&run.address)?;
    let link = wire.attach(queue, Role::Receiver)?;
    wire.patience(Duration::from_millis(50))?;
    wire.amqp.grant(link, credit)?;
    wire.flush()?;
    let mut histogram = Histogram::new();
    loop {
        wire.read()?;
        let mut completed = 0;
        while let Some(event) = wire.amqp.next_event() {
            match event {
                Event::Delivery(delivery) => {
                    if run.measuring.load(Ordering::Relaxed)
                        && let Some(sent) = sent_at(&delivery.payload)
                    {
                        histogram.record(Duration::from_micros(run.micros().saturating_sub(sent)));
                    }
                    wire.amqp.decide(delivery.link, delivery.delivery, DeliveryState::ACCEPTED)?;
                }
                Event::Settlement(settlement) => {
                    if settlement.state.as_deref() != Some(&DeliveryState::ACCEPTED) {
                        bail!("a completion was refused: {:?}", settlement.state);
                    }
                    completed += u64::try_from(settlement.deliveries.len())?;
                }
                Event::Closed(closed) => bail!("connection closed: {closed:?}"),
                Event::LinkEnded { ending, .. } => bail!("link ended: {ending:?}"),
                _ => {}
            }
        }
        if wire.amqp.credit(link)? < credit / 2 {
            wire.amqp.grant(link, credit)?;
        }
        wire.flush()?;
        let all = run.completed.fetch_add(completed, Ordering::Relaxed) + completed;
        if run.senders_done.load(Ordering::Relaxed) && all >= run.accepted.load(Ordering::Relaxed) {
            return Ok(histogram);
        }
    }
}

fn due_by_now(began: Instant, rate: f64) -> u64 {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count that fits"
    )]
    let due = (began.elapsed().as_secs_f64() * rate) as u64;
    due
}

/// A message whose body begins with the time it was sent.
fn encode(payload: &mut Vec<u8>, number: u64, sent_micros: u64, body: &[u8]) {
    let properties = Properties { message_id: Some(MessageId::Ulong(number)), ..Properties::default() };
    put_properties(payload, &properties);
    let start = payload.len();
    put_data(payload, body);
    let head = payload.len() - body.len();
    debug_assert!(head > start);
    if let Some(place) = payload.get_mut(head..head + 8) {
        place.copy_from_slice(&sent_micros.to_be_bytes());
    }
}

/// The time in a body that [`encode`] wrote, found from the end: the body is the last section.
fn sent_at(payload: &Bytes) -> Option<u64> {
    let message = vorrang_amqp::Message::parse(payload.clone()).ok()?;
    let body = message.data().next()?;
    body.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))
}
