//! Messages from clients: one delivery is one message or one batch, answered when it is durable.

use bytes::Bytes;
use smallvec::SmallVec;
use vorrang_amqp::connection::{Delivery, LinkId, Serial};
use vorrang_amqp::message::Message;
use vorrang_amqp::performative::{DeliveryState, Outcome, TransactionId};
use vorrang_broker::api::{Acceptance, Operation, Refused, Tag};
use vorrang_engine::message::Incoming;

use super::condition::{self, Told, name};
use super::coordinator::transaction_of;
use super::door::{Answering, Door, Now};
use super::links::{Node, Role};
use super::message::{IncomingError, read_incoming};
use super::pending::Quick;
use super::run::Run;

/// The format of a batch: a message whose data sections are messages.
pub(super) const BATCH_FORMAT: u32 = 0x8001_3700;

/// Deliveries a client may have on the way on one link, acknowledged or not. Also the credit it gets.
pub(super) const CREDIT: u32 = 2_000;

/// A delivery whose messages are on their way to the disk.
#[derive(Debug)]
pub(super) struct Sending {
    link: LinkId,
    delivery: Serial,
    /// Whether the client wants no answer.
    settled: bool,
    /// The transaction it named, for the echo.
    transaction: Option<TransactionId>,
}

impl Door {
    /// A complete delivery arrived.
    pub(super) fn received(&mut self, delivery: Delivery, now: Now) {
        let link = delivery.link;
        match self.links.role(link) {
            Some(Role::Sender(_)) => return self.send(delivery),
            Some(Role::Requests(Node::Cbs)) => self.put_token(&delivery, now),
            Some(Role::Requests(Node::Management(_))) => self.manage(&delivery, now),
            Some(Role::Coordinator(_)) => self.coordinate(&delivery),
            _ => return,
        }
        // Requests are bounded by what may wait for an answer, not by what is on its way to the disk.
        self.top_up(link, CREDIT);
    }

    /// A delivery was larger than the link allows.
    pub(super) fn too_large(&mut self, link: LinkId, delivery: Serial, settled: bool, limit: u64) {
        if !settled {
            let text =
                format!("The received message is larger than the limit of {limit} bytes for this link.");
            self.reject(link, delivery, Told::new(name::MESSAGE_SIZE_EXCEEDED, 403, text));
        }
    }

    /// Refuses a delivery; the link lives on.
    pub(super) fn reject(&mut self, link: LinkId, delivery: Serial, told: Told) {
        // The link may be gone; then nobody waits for the outcome.
        let _ = self.amqp.settle(link, delivery, Outcome::rejected(told.error()).into());
    }

    fn send(&mut self, delivery: Delivery) {
        let Delivery { link, delivery: id, settled, state, payload, message_format, .. } = delivery;
        let transaction = match transaction_of(state.as_deref()) {
            Ok(transaction) => transaction,
            Err(told) => return self.reject(link, id, told),
        };
        let messages = match read_messages(payload, message_format) {
            Ok(messages) => messages,
            Err(_) if settled => return,
            Err(error) => return self.reject(link, id, unreadable(&error)),
        };
        let sending = Sending {
            link,
            delivery: id,
            settled,
            transaction: transaction.as_ref().map(|(raw, _)| raw.clone()),
        };
        let Some(Role::Sender(sender)) = self.links.role(link) else { return };
        if messages.is_empty() {
            return self.send_answered(sending, Ok(()));
        }
        sender.in_flight = sender.in_flight.saturating_add(1);
        let operation = Operation::Send {
            entity: sender.entity,
            via: sender.via,
            transaction: transaction.map(|(_, id)| id),
            messages,
            acceptance: Acceptance::Plain,
        };
        self.ask_quickly(Answering::Send(sending), operation);
    }

    /// The broker has taken the deliveries with these consecutive tags.
    pub(super) fn accepted(&mut self, first: Tag, count: u32) {
        let mut run = None;
        for step in 0..count {
            let Some(Answering::Send(sending)) = self.quick.take(Quick::<Answering>::after(first, step))
            else {
                continue;
            };
            if sending.settled || sending.transaction.is_some() {
                self.send_answered(sending, Ok(()));
            } else if let Some(over) = Run::push(&mut run, sending.link, sending.delivery) {
                self.accept_run(over);
            }
        }
        if let Some(run) = run {
            self.accept_run(run);
        }
    }

    /// Does for all deliveries of a run what [`Door::send_answered`] does for one that was plainly accepted.
    fn accept_run(&mut self, run: Run) {
        let Some(Role::Sender(sender)) = self.links.role(run.link) else { return };
        sender.in_flight = sender.in_flight.saturating_sub(run.count());
        let room = CREDIT.saturating_sub(sender.in_flight);
        // An error means that the link is gone: nobody waits for the outcome.
        let _ = self.amqp.accept_range(run.link, run.first, run.last);
        if let Some(watched) = self.links.watched(run.link) {
            watched.passed(run.count());
        }
        self.top_up(run.link, room);
    }

    /// The broker has taken or refused a delivery.
    pub(super) fn send_answered(&mut self, sending: Sending, outcome: Result<(), Refused>) {
        let Sending { link, delivery, settled, transaction } = sending;
        let Some(Role::Sender(sender)) = self.links.role(link) else { return };
        sender.in_flight = sender.in_flight.saturating_sub(1);
        let room = CREDIT.saturating_sub(sender.in_flight);
        let taken = outcome.is_ok();
        if !settled {
            // Errors mean that the link or the delivery is gone: nobody waits for the outcome.
            let _ = match (outcome, transaction) {
                (Ok(()), None) => self.amqp.accept(link, delivery),
                (Ok(()), Some(txn_id)) => {
                    let state = DeliveryState::Transactional { txn_id, outcome: Some(Outcome::Accepted) };
                    self.amqp.settle(link, delivery, state)
                }
                (Err(refused), _) => {
                    let told = condition::told(&refused, &sender.path);
                    self.amqp.settle(link, delivery, Outcome::rejected(told.error()).into())
                }
            };
        }
        if taken && let Some(watched) = self.links.watched(link) {
            watched.passed(1);
        }
        self.top_up(link, room);
    }

    /// Gives a client new credit when half of it is used, as far as the broker keeps up.
    pub(super) fn top_up(&mut self, link: LinkId, room: u32) {
        let left = self.amqp.credit(link).unwrap_or(u32::MAX);
        if left < CREDIT / 2 && room > left {
            // A link that is gone needs no credit.
            let _ = self.amqp.grant(link, room);
            if let Some(watched) = self.links.watched(link) {
                watched.set_credit(room);
            }
        }
    }
}

/// The messages of a delivery: one, or those of a batch.
fn read_messages(payload: Bytes, format: u32) -> Result<SmallVec<[Incoming; 1]>, IncomingError> {
    if format != BATCH_FORMAT {
        return Ok(SmallVec::from_buf([read_incoming(payload)?]));
    }
    let envelope = Message::parse(payload)?;
    envelope.data().map(read_incoming).collect()
}

pub(super) fn unreadable(error: &IncomingError) -> Told {
    let (condition, text) = match error {
        IncomingError::Decode(_) => (name::DECODE_ERROR, error.to_string()),
        IncomingError::PropertyTooLarge { .. } | IncomingError::PropertiesTooLarge { .. } => {
            (name::NOT_ALLOWED, error.to_string())
        }
    };
    Told::new(condition, 400, text)
}
