//! Messages to clients: as far as their credit, their window and their reading go.
//!
//! The broker hands out no more than the credit it was told of, and only so many bytes ahead of what has left here
//! ([`super::passing`]): that bounds what is held because the peer's session window is closed or it does not read.

use bytes::Bytes;
use vorrang_amqp::Uuid;
use vorrang_amqp::connection::{LinkId, Outgoing, SendError, SessionId};
use vorrang_amqp::message::Message;
use vorrang_amqp::performative::DeliveryTag;
use vorrang_broker::api::{Link, Operation, Refused};
use vorrang_broker::shard::Body;
use vorrang_engine::LockToken;
use vorrang_engine::command::Settlement;
use vorrang_engine::message::Delivery;
use vorrang_log::Sweep;

use super::condition;
use super::connection::wall_time;
use super::door::Door;
use super::links::{Handed, Held, Receiver, Role};
use super::message::{Purpose, write_stored};
use super::rpc;

/// Messages of a link that are asked for again because they were moved; with one more it ends, and the client begins anew.
const MISSED_MAX: usize = 1_024;

impl Door {
    /// The client changed its credit.
    pub(super) fn credit(&mut self, link: LinkId, credit: u32, drain: bool) {
        match self.links.role(link) {
            Some(Role::Receiver(receiver)) => {
                receiver.draining = drain;
                let limit = receiver.sent.wrapping_add(credit);
                let operation = Operation::Credit { link: receiver.number, limit, drain };
                if let Some(watched) = self.links.watched(link) {
                    watched.set_credit(credit);
                }
                self.tell(operation);
            }
            Some(Role::Responses(_)) => {
                rpc::flush(&mut self.amqp, &mut self.links, link);
                if drain {
                    // A link that is gone needs no answer.
                    let _ = self.amqp.drained(link);
                }
            }
            _ => {}
        }
    }

    /// The broker hands out a message, with its bytes if they are at hand.
    pub(super) fn deliver(&mut self, number: Link, delivery: &Delivery, body: &mut Option<Body>) {
        self.passing.arrive(delivery);
        let link = self.links.of_number(number);
        let Some((link, Role::Receiver(receiver))) =
            link.and_then(|link| Some((link, self.links.role(link)?)))
        else {
            return self.release(delivery);
        };
        // What is held goes first. Otherwise it is written at once, and only held if that is not possible.
        if receiver.held.is_empty() && self.write(link, delivery, body) {
            return;
        }
        if let Some(Role::Receiver(receiver)) = self.links.role(link) {
            self.passing.hold(delivery);
            let handed = Handed { delivery: delivery.clone(), body: body.take() };
            receiver.held.push_back(Held::Delivery(Box::new(handed)));
        }
    }

    /// The broker has nothing more for a draining receiver.
    pub(super) fn drained(&mut self, number: Link) {
        let Some(link) = self.links.of_number(number) else { return };
        let Some(Role::Receiver(receiver)) = self.links.role(link) else { return };
        receiver.held.push_back(Held::Drained);
        if receiver.held.len() == 1 {
            self.write_held(link);
        }
    }

    /// The broker ended a receiver.
    pub(super) fn detached(&mut self, number: Link, refused: &Refused) {
        let Some(link) = self.links.of_number(number) else { return };
        let path = match self.links.role(link) {
            Some(Role::Receiver(receiver)) => receiver.path.clone(),
            _ => Box::default(),
        };
        self.detach(link, condition::told(refused, &path).error());
    }

    /// A session takes transfers again.
    pub(super) fn window_opened(&mut self, session: SessionId) {
        let waiting: Vec<LinkId> =
            self.links.iter().filter(|entry| entry.session == session).map(|entry| entry.id).collect();
        for link in waiting {
            rpc::flush(&mut self.amqp, &mut self.links, link);
            self.write_held(link);
        }
    }

    /// Gives back the memory of what was read ahead and of the output: it may be long until anything else is wanted.
    pub fn rest(&mut self) {
        self.sweep = Sweep::default();
        self.amqp.rest();
    }

    /// Goes on writing what is held back, after output was taken.
    pub fn resume_output(&mut self) {
        let waiting: Vec<LinkId> = self
            .links
            .iter()
            .filter(|entry| match &entry.role {
                Role::Receiver(receiver) => !receiver.held.is_empty(),
                Role::Responses(responses) => !responses.waiting.is_empty(),
                _ => false,
            })
            .map(|entry| entry.id)
            .collect();
        for link in waiting {
            rpc::flush(&mut self.amqp, &mut self.links, link);
            self.write_held(link);
        }
    }

    /// Writes as much of what is held as the peer takes now.
    fn write_held(&mut self, link: LinkId) {
        loop {
            let Some(Role::Receiver(receiver)) = self.links.role(link) else { return };
            match receiver.held.pop_front() {
                None => return,
                // A link that is gone needs no answer.
                Some(Held::Drained) => drop(self.amqp.drained(link)),
                Some(Held::Delivery(mut handed)) => {
                    self.passing.let_go(&handed.delivery);
                    let Handed { delivery, body } = &mut *handed;
                    if !self.write(link, delivery, body) {
                        if let Some(Role::Receiver(receiver)) = self.links.role(link) {
                            self.passing.hold(&handed.delivery);
                            receiver.held.push_front(Held::Delivery(handed));
                        }
                        return;
                    }
                }
            }
        }
    }

    /// Writes one delivery; false if the peer cannot take it now.
    fn write(&mut self, link: LinkId, delivery: &Delivery, body: &mut Option<Body>) -> bool {
        let (location, size) = (delivery.location, delivery.size);
        let at_hand = body.take();
        let stored = at_hand.is_none();
        let read = || self.shared.broker.payloads().sweep(&mut self.sweep, location, size);
        let Body { bytes, assigned_id } = match at_hand.map_or_else(read, Ok) {
            Ok(body) => body,
            Err(error) => {
                if !self.asks_again(link, delivery) {
                    self.unreadable(link, delivery, &error.to_string());
                }
                return true;
            }
        };
        let Some(Role::Receiver(receiver)) = self.links.role(link) else { return true };
        let purpose = receiver.origin(delivery.mailbox).map_or(Purpose::Deliver, Purpose::DeliverFrom);
        self.head.clear();
        let (encoded, from) = match write_stored(delivery, bytes, assigned_id, purpose, &mut self.head) {
            Ok(written) => written,
            Err(error) => {
                self.unreadable(link, delivery, &error.to_string());
                return true;
            }
        };
        let outgoing = Outgoing {
            tag: tag(delivery),
            message_format: 0,
            settled: receiver.settled,
            state: None,
            head: self.head.as_bytes(),
            tail: &encoded,
            key: delivery.token.map_or(0, |token| token.0),
        };
        match self.amqp.send_from(link, &outgoing, from) {
            Ok(_) => {
                receiver.sent = receiver.sent.wrapping_add(1);
                if let Some(spans) = &self.shared.spans
                    && let Ok(message) = Message::parse_again(encoded)
                {
                    let entity = receiver.origin(delivery.mailbox).unwrap_or(&receiver.path);
                    spans.delivered(entity, delivery, &message, wall_time());
                }
                if let Some(token) = delivery.token.filter(|_| receiver.mailboxes.len() > 1) {
                    receiver.origins.insert(token, delivery.mailbox);
                }
                if let Some(watched) = self.links.watched(link) {
                    watched.passed(1);
                }
            }
            Err(SendError::Gone) => self.release(delivery),
            // The credit was taken back while the message was on its way: so is the message.
            Err(SendError::NoCredit) => {
                receiver.sent = receiver.sent.wrapping_add(1);
                self.release(delivery);
            }
            Err(SendError::WindowClosed | SendError::OutputFull { .. } | SendError::UnsettledFull { .. }) => {
                // One that waits must not keep its neighbours in memory.
                let bytes = if stored { Bytes::copy_from_slice(&encoded) } else { encoded };
                *body = Some(Body { bytes, assigned_id });
                return false;
            }
        }
        true
    }

    /// While the peer did not read, the message may have been moved to another file, and the one it was in be gone. It is
    /// given back, to come again from where it is now. Not if it was said to lie at this place before: it never moves back.
    fn asks_again(&mut self, link: LinkId, delivery: &Delivery) -> bool {
        let Some(Role::Receiver(receiver)) = self.links.role(link) else { return true };
        let is_new = receiver.missed.len() < MISSED_MAX && receiver.missed.insert(delivery.location);
        if delivery.token.is_none() || !is_new {
            return false;
        }
        receiver.sent = receiver.sent.wrapping_add(1);
        let drain = receiver.draining;
        self.release(delivery);
        if let Ok(credit) = self.amqp.credit(link) {
            self.credit(link, credit, drain);
        }
        true
    }

    /// A stored message that cannot be read: the client is told, the message stays where it is and is not held by anyone.
    fn unreadable(&mut self, link: LinkId, delivery: &Delivery, reason: &str) {
        self.release(delivery);
        tracing::error!(sequence = delivery.sequence.0, reason, "a stored message cannot be read");
        let error = vorrang_amqp::performative::Error::new(
            condition::name::INTERNAL_ERROR,
            format!("message {} cannot be read: {reason}", delivery.sequence),
        );
        self.detach(link, error);
    }

    /// Gives back messages that were handed out for a receiver but never written.
    pub(super) fn give_back(&mut self, receiver: &Receiver) {
        for held in &receiver.held {
            if let Held::Delivery(handed) = held {
                self.passing.let_go(&handed.delivery);
                self.release(&handed.delivery);
            }
        }
    }

    fn release(&mut self, delivery: &Delivery) {
        if let Some(token) = delivery.token {
            self.settle_silently(delivery.mailbox, token, Settlement::Release);
        }
    }
}

/// The lock token as .NET lays it out; any unique tag where there is no lock.
fn tag(delivery: &Delivery) -> DeliveryTag {
    let number = delivery.token.unwrap_or(LockToken(u128::from(delivery.sequence.0)));
    DeliveryTag::from(Uuid::from_bytes(number.0.to_be_bytes()).to_dotnet_bytes())
}
