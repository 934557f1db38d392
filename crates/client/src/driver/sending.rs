//! Sends: queued until there is credit, in flight until the outcome is known.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::oneshot;
use vorrang_amqp::connection::{Outgoing, SendError, Settlement};
use vorrang_amqp::message::put_value;
use vorrang_amqp::performative::{Attach, DeliveryState, DeliveryTag, Discharge, Outcome, TransactionId};

use super::command::{Accepted, LinkKey, SendItem};
use super::desk::Desk;
use super::link::{Flying, Role, SendingLink, Stage};
use crate::error::Error;

const BATCH_BYTES: &str = "com.microsoft:max-message-batch-size";

impl Desk {
    /// Queues a delivery.
    pub(super) fn send(&mut self, item: SendItem) {
        let refusal = self.refusal();
        let connected = self.live.is_some();
        let Some(link) = self.link(item.link) else { return answer(item, Err(Error::Closed)) };
        if let Some(error) = refusal {
            return answer(item, Err(error));
        }
        if let Stage::Ended(error) = &link.stage {
            let error = error.clone();
            return answer(item, Err(error));
        }
        if !connected && is_transactional(&item) {
            return answer(item, Err(transaction_lost()));
        }
        let slot = item.link.slot;
        let Role::Sender(sender) = &mut link.role else { return answer(item, Err(Error::Closed)) };
        sender.queue.push_back(item);
        self.list(slot);
    }

    /// Notes that a sender may be able to send.
    pub(super) fn list(&mut self, slot: u32) {
        if let Some(sender) = self.sender(slot)
            && !sender.listed
            && !sender.queue.is_empty()
        {
            sender.listed = true;
            self.ready.push(slot);
        }
    }

    /// There may be room again for those that waited for it.
    pub(super) fn unblock(&mut self) {
        for slot in std::mem::take(&mut self.blocked) {
            self.list(slot);
        }
        self.unblock_nodes();
    }

    /// Sends as much as the broker and the output take.
    pub(super) fn send_ready(&mut self) {
        while let Some(slot) = self.ready.pop() {
            if self.send_queue(slot) {
                self.blocked.push(slot);
            }
        }
    }

    /// Sends from one queue; whether it stopped for want of room.
    fn send_queue(&mut self, slot: u32) -> bool {
        let (Some(live), Some(link)) = (&mut self.live, self.links.get_mut(slot)) else { return false };
        let attached = link.attached();
        let Role::Sender(sender) = &mut link.role else { return false };
        sender.listed = false;
        let Some(id) = attached else { return false };
        while let Some(item) = sender.queue.front() {
            let outgoing = Outgoing {
                tag: DeliveryTag::from(sender.next_order),
                message_format: item.message_format,
                settled: false,
                state: item.state.clone(),
                head: &[],
                tail: &item.payload,
                key: u128::from(sender.in_flight.next_place()),
            };
            match live.amqp.send(id, &outgoing) {
                Ok(_) => {
                    if let Some(item) = sender.queue.pop_front() {
                        sender.in_flight.insert(Flying { item, order: sender.next_order });
                        sender.next_order = sender.next_order.wrapping_add(1);
                    }
                }
                // An event will tell: credit, an outcome, or the link's end.
                Err(SendError::NoCredit | SendError::UnsettledFull { .. } | SendError::Gone) => return false,
                Err(SendError::WindowClosed | SendError::OutputFull { .. }) => return true,
            }
        }
        false
    }

    /// The broker told the outcome of sends.
    pub(super) fn sends_settled(&mut self, slot: u32, settlement: &Settlement) {
        if !settlement.settled
            && let Some(live) = &mut self.live
        {
            let state = settlement.state.as_deref().cloned().unwrap_or(DeliveryState::ACCEPTED);
            for delivery in &settlement.deliveries {
                // A link that is gone needs no settlement.
                let _ = live.amqp.settle(settlement.link, delivery.delivery, state.clone());
            }
        }
        let Some(sender) = self.sender(slot) else { return };
        for delivery in &settlement.deliveries {
            let place = u32::try_from(delivery.key).unwrap_or(u32::MAX);
            if let Some(flying) = sender.in_flight.remove(place) {
                answer(flying.item, outcome(settlement.state.as_deref()));
            }
        }
        self.list(slot);
    }

    pub(super) fn sender_attached(&mut self, slot: u32, attach: &Attach) {
        if let Some(sender) = self.sender(slot) {
            let most = attach.max_message_size.unwrap_or(0);
            sender.shared.message_bytes_max.store(most, Ordering::Relaxed);
            let batch = attach.properties.as_ref().and_then(|map| map.value(BATCH_BYTES));
            let batch = batch.and_then(|bytes| bytes.as_u64()).unwrap_or(most);
            sender.shared.batch_bytes_max.store(batch, Ordering::Relaxed);
        }
        self.list(slot);
    }

    /// What was in flight ends in doubt, or goes back to the front of the queue if sending twice does no harm.
    pub(super) fn interrupt_sender(&mut self, slot: u32) {
        let Some(sender) = self.sender(slot) else { return };
        sender.listed = false;
        let mut again: Vec<Flying> = Vec::new();
        for flying in sender.in_flight.drain() {
            if is_transactional(&flying.item) {
                answer(flying.item, Err(transaction_lost()));
            } else if flying.item.repeatable {
                again.push(flying);
            } else {
                answer(flying.item, Err(Error::Ambiguous));
            }
        }
        again.sort_by_key(|flying| std::cmp::Reverse(flying.order));
        for flying in again {
            sender.queue.push_front(flying.item);
        }
        let (gone, kept) =
            std::mem::take(&mut sender.queue).into_iter().partition::<Vec<_>, _>(is_transactional);
        sender.queue.extend(kept);
        for item in gone {
            answer(item, Err(transaction_lost()));
        }
    }

    /// Nobody shall wait any longer for what was not sent.
    pub(super) fn fail_queue(&mut self, slot: u32, error: &Error) {
        let Some(sender) = self.sender(slot) else { return };
        for item in sender.queue.drain(..) {
            answer(item, Err(error.clone()));
        }
    }

    /// Rolls a transaction back that its owner has forgotten.
    pub(super) fn roll_back(&mut self, coordinator: LinkKey, id: TransactionId) {
        let (reply, _) = oneshot::channel();
        self.send(SendItem {
            link: coordinator,
            payload: discharge(id, true),
            message_format: 0,
            state: None,
            repeatable: false,
            room: None,
            reply,
        });
    }

    fn sender(&mut self, slot: u32) -> Option<&mut SendingLink> {
        match &mut self.links.get_mut(slot)?.role {
            Role::Sender(sender) => Some(sender),
            Role::Receiver(_) => None,
        }
    }
}

/// The message that ends a transaction.
pub(crate) fn discharge(txn_id: TransactionId, fail: bool) -> Bytes {
    let mut out = Vec::new();
    put_value(&mut out, &Discharge { txn_id, fail });
    Bytes::from(out)
}

fn answer(item: SendItem, outcome: Result<Accepted, Error>) {
    let SendItem { room, reply, .. } = item;
    drop(room);
    // Whoever waited may have given up.
    let _ = reply.send(outcome);
}

fn is_transactional(item: &SendItem) -> bool {
    matches!(item.state, Some(DeliveryState::Transactional { .. }))
}

fn transaction_lost() -> Error {
    Error::TransactionEnded("the connection broke, which rolls the transaction back".into())
}

/// What an outcome means to the one who sent.
fn outcome(state: Option<&DeliveryState>) -> Result<Accepted, Error> {
    match state {
        Some(DeliveryState::Declared { txn_id }) => Ok(Accepted::Declared(txn_id.clone())),
        Some(state) => match state.outcome() {
            Some(Outcome::Accepted) => Ok(Accepted::Plain),
            Some(Outcome::Rejected { error }) => Err(Error::from_amqp(error.as_deref())),
            Some(Outcome::Released | Outcome::Modified(_)) => {
                let condition = "amqp:released";
                Err(Error::from_condition(condition, "the broker gave the message back without taking it"))
            }
            None => Err(Error::Ambiguous),
        },
        // Settled without a word: the broker has forgotten the delivery.
        None => Err(Error::Ambiguous),
    }
}
