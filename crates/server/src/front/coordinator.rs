//! Transactions: a link to the coordinator, on which clients declare and discharge them.

use bytes::Bytes;
use vorrang_amqp::connection::{Delivery, LinkId, Serial};
use vorrang_amqp::message::Message;
use vorrang_amqp::performative::{CoordinatorRequest, DeliveryState, Discharge, TransactionId as Named};
use vorrang_broker::api::Operation;
use vorrang_engine::{Reply, TransactionId};

use super::condition::{self, Told, name};
use super::door::{Door, Expecting};
use super::links::Role;
use super::{Answered, Outcome};

/// A transaction's beginning or end that the broker is about to confirm.
#[derive(Debug)]
pub(super) struct Discharging {
    link: LinkId,
    delivery: Serial,
    settled: bool,
}

/// The transaction a delivery or disposition names, raw for the echo and as the broker knows it.
pub(super) fn transaction_of(state: Option<&DeliveryState>) -> Result<Option<(Named, TransactionId)>, Told> {
    match state {
        Some(DeliveryState::Transactional { txn_id, .. }) => match transaction_id(txn_id) {
            Some(id) => Ok(Some((txn_id.clone(), id))),
            None => Err(unknown()),
        },
        _ => Ok(None),
    }
}

fn transaction_id(raw: &Named) -> Option<TransactionId> {
    <[u8; 16]>::try_from(raw.as_bytes()).ok().map(|bytes| TransactionId(u128::from_be_bytes(bytes)))
}

fn unknown() -> Told {
    Told::new(name::UNKNOWN_TRANSACTION, 404, "The transaction id is not one that this connection declared.")
}

impl Door {
    /// A message for the coordinator: declare or discharge.
    pub(super) fn coordinate(&mut self, delivery: &Delivery) {
        let (link, id) = (delivery.link, delivery.delivery);
        let Some(operation) = operation(&delivery.payload) else {
            let text = "the coordinator takes declare and discharge, each as the value of a message";
            return self.reject(link, id, Told::new(name::DECODE_ERROR, 400, text));
        };
        match operation {
            Ok(operation) => {
                if let (Operation::Discharge { transaction, .. }, Some(Role::Coordinator(open))) =
                    (&operation, self.links.role(link))
                {
                    open.remove(transaction);
                }
                let discharging = Discharging { link, delivery: id, settled: delivery.settled };
                self.ask(Expecting::Transaction(discharging), operation);
            }
            Err(told) => self.reject(link, id, told),
        }
    }

    /// The broker has begun or ended a transaction, or refused to.
    pub(super) fn transaction_answered(&mut self, discharging: &Discharging, outcome: Outcome) {
        let Discharging { link, delivery, settled } = *discharging;
        if let Ok(Answered::Reply(Reply::Declared { transaction })) = &outcome {
            match self.links.role(link) {
                Some(Role::Coordinator(open)) => drop(open.insert(*transaction)),
                // AMQP 1.0 4.3: a transaction does not outlive the link it was declared on.
                _ => self.roll_back(*transaction),
            }
        }
        if settled {
            return;
        }
        // Errors mean that the link is gone: nobody waits for the answer.
        let _ = match outcome {
            Ok(Answered::Reply(Reply::Declared { transaction })) => {
                let txn_id = Named::from(transaction.0.to_be_bytes().as_slice());
                self.amqp.settle(link, delivery, DeliveryState::Declared { txn_id })
            }
            Ok(_) => self.amqp.accept(link, delivery),
            Err(refused) => {
                self.reject(link, delivery, condition::told(&refused, ""));
                Ok(())
            }
        };
    }
}

impl Door {
    /// Ends a transaction whose link is gone; nobody waits for the answer.
    pub(super) fn roll_back(&mut self, transaction: TransactionId) {
        self.tell(Operation::Discharge { transaction, rollback: true });
    }
}

/// What the body asks for; none if it is neither declare nor discharge.
fn operation(payload: &Bytes) -> Option<Result<Operation, Told>> {
    let message = Message::parse(payload.clone()).ok()?;
    Some(match CoordinatorRequest::decode(&message.encoded_value()?).ok()? {
        CoordinatorRequest::Declare(_) => Ok(Operation::Declare),
        CoordinatorRequest::Discharge(Discharge { txn_id, fail }) => match transaction_id(&txn_id) {
            Some(transaction) => Ok(Operation::Discharge { transaction, rollback: fail }),
            None => Err(unknown()),
        },
    })
}
