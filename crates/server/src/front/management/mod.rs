//! `$management`: operations on an entity as requests and responses.
//!
//! A request is a message that names an operation and brings its arguments as a map; its response is a
//! message with a status and, where there is one, a result. Nothing here waits: a request becomes one
//! question to the broker ([`plan`]), and the response goes out when that is answered. Whatever is
//! wrong with a request is said in its response; the link lives on.

mod arguments;
mod browse;
mod deferred;
mod locks;
mod plan;
mod request;
mod response;
mod rule_description;
mod rules;
mod schedule;
mod sessions;
#[cfg(test)]
mod tests;

use tracing::debug;
use vorrang_amqp::Text;
use vorrang_amqp::connection::{Delivery, SessionId as AmqpSession};
use vorrang_amqp::message::MessageId;
use vorrang_amqp::performative::{DeliveryState, Outcome as DeliveryOutcome};
use vorrang_broker::api::Link;
use vorrang_engine::command::Settlement;
use vorrang_engine::{MailboxId, SessionId};

use self::plan::{Context, Plan, Reaction, Reading, plan};
use self::request::Request;
use super::Outcome;
use super::condition::{Told, name};
use super::coordinator::transaction_of;
use super::door::{Door, Expecting, Now};
use super::links::{Links, Managed, Node, Role};
use super::rpc;

/// A request whose answer the broker has not given yet.
#[derive(Debug)]
pub(super) struct Waiting {
    asker: Asker,
    reading: Reading,
}

/// Who asked, and how the response finds back.
#[derive(Debug)]
struct Asker {
    managed: Managed,
    session: AmqpSession,
    reply_to: Option<Text>,
    correlation: Option<MessageId>,
}

impl Door {
    /// A request to a `$management` node.
    pub(super) fn manage(&mut self, delivery: &Delivery, now: Now) {
        let Some(entry) = self.links.entry(delivery.link) else { return };
        let Role::Requests(Node::Management(managed)) = &entry.role else { return };
        let (managed, session) = (managed.clone(), entry.session);
        let request = match Request::read(delivery.payload.clone()) {
            Ok(request) => request,
            // Nobody to respond to can be read from it, but a sender that waits for the outcome learns.
            Err(_) if delivery.settled => return,
            Err(error) => {
                let told =
                    Told::new(name::DECODE_ERROR, 400, format!("the request cannot be decoded: {error}"));
                return self.reject(delivery.link, delivery.delivery, told);
            }
        };
        debug!(entity = %managed.path, operation = ?request.operation, tracking = ?request.tracking, "request");
        let planned = match transaction_of(delivery.state.as_deref()) {
            Ok(transaction) => {
                self.take(delivery);
                let link_name = request.link_name.as_ref();
                let context = Context {
                    managed: &managed,
                    transaction: transaction.map(|(_, id)| id),
                    now: now.wall,
                    holder: &|session| holder(&self.links, managed.mailbox, link_name, session),
                };
                plan(&request, &context)
            }
            Err(told) => {
                if !delivery.settled {
                    self.reject(delivery.link, delivery.delivery, told.clone());
                }
                Err(told)
            }
        };
        let Request { reply_to, correlation, .. } = request;
        let asker = Asker { managed, session, reply_to, correlation };
        match planned {
            Ok(Plan { operation, reading }) => {
                self.ask(Expecting::Management(Box::new(Waiting { asker, reading })), operation);
            }
            Err(told) => self.react(asker, told.into()),
        }
    }

    /// The broker has answered or refused a request.
    pub(super) fn management_answered(&mut self, waiting: Waiting, outcome: Outcome) {
        let Waiting { asker, reading } = waiting;
        let reaction = match outcome {
            Ok(answered) => {
                let payloads = self.shared.broker.payloads();
                reading.react(answered, &|delivery| {
                    payloads.read(delivery.location, delivery.size).map_err(|error| error.to_string())
                })
            }
            Err(refused) => reading.refused(&refused, &asker.managed.path).into(),
        };
        self.react(asker, reaction);
    }

    /// Responds, and gives back what was taken in vain.
    fn react(&mut self, asker: Asker, reaction: Reaction) {
        let Asker { managed, session, reply_to, correlation } = asker;
        for token in reaction.give_back {
            self.settle_silently(managed.mailbox, token, Settlement::Release);
        }
        let node = Node::Management(managed);
        // A client that has closed its response link does not wait for the response.
        let Some(link) = rpc::route(&self.links, &node, reply_to.as_ref(), session) else { return };
        rpc::respond(&mut self.amqp, &mut self.links, link, reaction.response.encode(correlation));
    }

    /// Takes over a request: what comes of it is told in the response.
    fn take(&mut self, delivery: &Delivery) {
        if delivery.settled {
            return;
        }
        // A link that is gone waits for no outcome.
        let _ = match delivery.state.as_deref() {
            Some(DeliveryState::Transactional { txn_id, .. }) => {
                let outcome = Some(DeliveryOutcome::Accepted);
                let state = DeliveryState::Transactional { txn_id: txn_id.clone(), outcome };
                self.amqp.settle(delivery.link, delivery.delivery, state)
            }
            _ => self.amqp.accept(delivery.link, delivery.delivery),
        };
    }
}

/// The receiver of this connection that holds a session: by the session's name, preferring the link the
/// client speaks of, or by that link alone. A link that is gone counts for nothing.
fn holder(
    links: &Links,
    mailbox: MailboxId,
    link_name: Option<&Text>,
    session: Option<&SessionId>,
) -> Option<Link> {
    let holders = links.iter().filter_map(|entry| match &entry.role {
        Role::Receiver(receiver) if receiver.mailboxes.contains(&mailbox) => {
            let is_named = link_name == Some(&entry.name);
            let group = receiver.group.as_ref()?;
            let is_meant = session.map_or(is_named, |session| session == group);
            is_meant.then_some((is_named, entry.since, receiver.number))
        }
        _ => None,
    });
    holders.max_by_key(|(is_named, since, _)| (*is_named, *since)).map(|(_, _, number)| number)
}
