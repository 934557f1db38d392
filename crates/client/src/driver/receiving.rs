//! Deliveries: handed to the caller as far as credit goes, settled as the caller says.

use tokio::sync::mpsc;
use tracing::warn;
use vorrang_amqp::connection::{Delivery, LinkId, Serial, Settlement};
use vorrang_amqp::performative::{Attach, DeliveryState, Error as AmqpError, Outcome, ReceiverSettleMode};

use super::command::{Arrived, DeliveryRef, LinkKey, Reply, SettleReply};
use super::desk::Desk;
use super::link::{ReceivingLink, Role, SettleWaiter, Stage};
use crate::error::Error;

impl Desk {
    /// A delivery arrived.
    pub(super) fn arrived(&mut self, slot: u32, delivery: Delivery) {
        let Some(link) = self.links.get_mut(slot) else { return };
        let generation = link.generation;
        let Role::Receiver(receiver) = &mut link.role else { return };
        receiver.granted = receiver.granted.saturating_sub(1);
        receiver.buffered = receiver.buffered.saturating_add(1);
        if receiver.prefetch > 0
            && receiver.granted <= receiver.prefetch / 2
            && self.hungry.last() != Some(&slot)
        {
            self.hungry.push(slot);
        }
        let arrived = Arrived {
            delivery: DeliveryRef {
                link: LinkKey { slot, generation },
                epoch: receiver.epoch,
                id: delivery.delivery.get(),
            },
            tag: delivery.tag,
            settled: delivery.settled,
            payload: delivery.payload,
        };
        let taken = receiver.arrivals.as_ref().is_some_and(|to| to.send(arrived).is_ok());
        // Nobody is there to take it: somebody else may have it at once.
        if !taken
            && !delivery.settled
            && let Some(live) = &mut self.live
        {
            let _ = live.amqp.settle(delivery.link, delivery.delivery, DeliveryState::RELEASED);
        }
    }

    /// Gives receivers more credit as far as the caller has taken what came.
    pub(super) fn feed_hungry(&mut self) {
        while let Some(slot) = self.hungry.pop() {
            self.top_up(slot);
        }
    }

    /// The caller has taken deliveries.
    pub(super) fn attend(&mut self, key: LinkKey) {
        if self.link(key).is_some() {
            self.top_up(key.slot);
        }
    }

    fn top_up(&mut self, slot: u32) {
        let (Some(live), Some(link)) = (&mut self.live, self.links.get_mut(slot)) else { return };
        let attached = link.attached();
        if let (Some(id), Role::Receiver(receiver)) = (attached, &mut link.role)
            && let Some(credit) = receiver.top_up()
        {
            // A link that is gone needs no credit.
            let _ = live.amqp.grant(id, credit);
        }
    }

    pub(super) fn receiver_attached(&mut self, slot: u32, answer: &Attach) {
        if let (Some(live), Some(link)) = (&mut self.live, self.links.get_mut(slot)) {
            let attached = link.attached();
            if let (Some(id), Role::Receiver(receiver)) = (attached, &mut link.role) {
                receiver.epoch = receiver.epoch.wrapping_add(1);
                receiver.settle_mode = answer.rcv_settle_mode.unwrap_or(ReceiverSettleMode::First);
                if receiver.prefetch > 0 {
                    receiver.granted = 0;
                } else if receiver.granted > 0 {
                    // What the caller had asked for on the connection before.
                    let _ = live.amqp.grant(id, receiver.granted);
                }
            }
        }
        self.top_up(slot);
    }

    pub(super) fn add_credit(&mut self, key: LinkKey, more: u32) {
        let Some(link) = self.link(key) else { return };
        let attached = link.attached();
        let Role::Receiver(receiver) = &mut link.role else { return };
        receiver.granted = receiver.granted.saturating_add(more);
        let credit = receiver.granted;
        if let (Some(live), Some(id)) = (&mut self.live, attached) {
            // A link that is gone needs no credit; what was asked for is granted when it is attached again.
            let _ = live.amqp.grant(id, credit);
        }
    }

    pub(super) fn drain(&mut self, key: LinkKey, reply: Reply<()>) {
        let Some(link) = self.link(key) else {
            // Whoever waited may have given up.
            let _ = reply.send(Err(Error::Closed));
            return;
        };
        let attached = link.attached();
        let Role::Receiver(receiver) = &mut link.role else { return };
        receiver.paused = true;
        receiver.draining.push(reply);
        let asked = match (&mut self.live, attached) {
            (Some(live), Some(id)) => live.amqp.drain(id).is_ok(),
            _ => false,
        };
        if !asked {
            self.drained(key.slot);
        }
    }

    /// Nothing more comes on this link until it gets new credit.
    pub(super) fn drained(&mut self, slot: u32) {
        let Some(receiver) = self.receiver(slot) else { return };
        receiver.granted = 0;
        let abandoned = receiver.abandoned;
        receiver.leaving = false;
        for reply in receiver.draining.drain(..) {
            // Whoever waited may have given up.
            let _ = reply.send(Ok(()));
        }
        if abandoned && let Some(link) = self.links.get(slot) {
            let key = LinkKey { slot, generation: link.generation };
            self.detach(key, None);
        }
    }

    pub(super) fn resume(&mut self, key: LinkKey) {
        if let Some(link) = self.link(key)
            && let Role::Receiver(receiver) = &mut link.role
        {
            receiver.paused = false;
            self.top_up(key.slot);
        }
    }

    /// A receiver was dropped: what it had fetched and not handed out goes back.
    pub(super) fn receiver_gone(&mut self, key: LinkKey, fetched: &[DeliveryRef]) {
        let found = self.links.get_mut(key.slot).filter(|link| link.generation == key.generation);
        let Some(link) = found else { return };
        let attached = link.attached();
        let Role::Receiver(receiver) = &mut link.role else { return };
        receiver.paused = true;
        receiver.arrivals = None;
        let (Some(live), Some(id)) = (&mut self.live, attached) else { return };
        // Deliveries may be on their way, and would stay locked if the link went before them. A link that is gone has
        // none.
        receiver.leaving = receiver.granted > 0 && live.amqp.drain(id).is_ok();
        for delivery in fetched.iter().filter(|delivery| delivery.epoch == receiver.epoch) {
            let _ = live.amqp.settle(id, Serial::new(delivery.id), DeliveryState::RELEASED);
        }
    }

    pub(super) fn settle_one(&mut self, delivery: DeliveryRef, state: DeliveryState, reply: SettleReply) {
        if let Err((error, waiter)) = self.decide(delivery, state, SettleWaiter::One(reply)) {
            waiter.answer(Err(error));
        }
    }

    pub(super) fn settle_all(
        &mut self,
        deliveries: &[(u32, DeliveryRef)],
        state: &DeliveryState,
        reply: &mpsc::UnboundedSender<(u32, Result<(), Error>)>,
    ) {
        for (index, delivery) in deliveries {
            let waiter = SettleWaiter::OfMany(*index, reply.clone());
            if let Err((error, waiter)) = self.decide(*delivery, state.clone(), waiter) {
                waiter.answer(Err(error));
            }
        }
    }

    /// Tells the broker an outcome, if the delivery's link is still the one it came on.
    fn decide(
        &mut self,
        delivery: DeliveryRef,
        state: DeliveryState,
        waiter: SettleWaiter,
    ) -> Result<(), (Error, SettleWaiter)> {
        let refusal = self.refusal();
        let Some(link) = self.link(delivery.link) else { return Err((Error::Closed, waiter)) };
        if let Stage::Ended(error @ Error::SessionLockLost(_)) = &link.stage {
            return Err((error.clone(), waiter));
        }
        let attached = link.attached();
        let Role::Receiver(receiver) = &mut link.role else { return Err((Error::Closed, waiter)) };
        if let Some(error) = refusal {
            return Err((error, waiter));
        }
        let same = receiver.epoch == delivery.epoch;
        let Some(id) = attached.filter(|_| same) else {
            return Err((self.unreachable("the link the message came on is gone"), waiter));
        };
        let settles_first = receiver.settle_mode == ReceiverSettleMode::First;
        receiver.settling.insert(delivery.id, waiter);
        let Some(live) = &mut self.live else { return Ok(()) };
        let number = Serial::new(delivery.id);
        let told = if settles_first {
            live.amqp.settle(id, number, state)
        } else {
            live.amqp.decide(id, number, state)
        };
        if (told.is_err() || settles_first)
            && let Some(receiver) = self.receiver(delivery.link.slot)
            && let Some(waiter) = receiver.settling.remove(&delivery.id)
        {
            if told.is_err() {
                // Settled before, maybe in a transaction that was rolled back: the broker knows whether it is still locked.
                return Err((self.unreachable("the delivery was settled on its link before"), waiter));
            }
            // No confirmation will come; it is done when it is said.
            waiter.answer(Ok(()));
        }
        Ok(())
    }

    /// The broker answered settlements or sends.
    pub(super) fn settled(&mut self, slot: u32, settlement: &Settlement) {
        let Some(receiver) = self.receiver(slot) else { return self.sends_settled(slot, settlement) };
        for delivery in &settlement.deliveries {
            if let Some(waiter) = receiver.settling.remove(&delivery.delivery.get()) {
                waiter.answer(result(settlement.state.as_deref()));
            }
        }
    }

    /// A delivery larger than we take: it is refused, so that it does not come again and again.
    pub(super) fn too_large(&mut self, link: LinkId, delivery: Serial, settled: bool, limit: u64) {
        warn!(limit, "a delivery was larger than the limit and is rejected");
        if let Some(live) = &mut self.live
            && !settled
        {
            let text = format!("the client takes messages of up to {limit} bytes");
            let error = AmqpError::new("amqp:link:message-size-exceeded", text);
            // A link that is gone needs no outcome.
            let _ = live.amqp.settle(link, delivery, Outcome::rejected(error).into());
        }
    }

    /// Settlements under way end in doubt; drains are over.
    pub(super) fn interrupt_receiver(&mut self, slot: u32) {
        let Some(receiver) = self.receiver(slot) else { return };
        for (_, waiter) in receiver.settling.drain() {
            waiter.answer(Err(Error::Ambiguous));
        }
        if !receiver.draining.is_empty() || receiver.leaving {
            self.drained(slot);
        }
    }

    fn receiver(&mut self, slot: u32) -> Option<&mut ReceivingLink> {
        match &mut self.links.get_mut(slot)?.role {
            Role::Receiver(receiver) => Some(receiver),
            Role::Sender(_) => None,
        }
    }
}

impl ReceivingLink {
    /// Ends for good: the caller gets what came before, and then the reason.
    pub(super) fn end(&mut self, error: Error) {
        self.shared.end(error);
        self.arrivals = None;
    }
}

/// What the broker's answer to a settlement means.
fn result(state: Option<&DeliveryState>) -> Result<(), Error> {
    match state.and_then(DeliveryState::outcome) {
        Some(Outcome::Rejected { error: Some(error) }) => Err(Error::from_amqp(Some(error))),
        _ => Ok(()),
    }
}
