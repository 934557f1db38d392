//! Outcomes that clients tell: complete, abandon, release, defer, dead-letter.
//!
//! A disposition may cover many deliveries. They go to the broker as one operation, which is all or
//! none; if one lock is lost, the others are tried again one by one, so that each gets its own answer.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use vorrang_amqp::connection::{LinkId, Serial, Settlement as Told};
use vorrang_amqp::performative::{DeliveryState, Modified, Outcome, TransactionId as Named};
use vorrang_amqp::value::Map;
use vorrang_broker::api::{Operation, Refused};
use vorrang_engine::command::Settlement;
use vorrang_engine::message::{Overlay, PropertyChange, PropertyValue};
use vorrang_engine::{LockToken, MailboxId, Refusal, Span, TransactionId};

use super::condition;
use super::coordinator::transaction_of;
use super::door::{Answering, Door};
use super::links::Role;
use super::run::Run;

/// How long an abandoned message waits before it comes again, in milliseconds: our annotation on `modified`.
const DELAY: &str = "vorrang:delay";
/// Marks an abandon as a suspension: the message goes back to its place without counting a delivery.
const SUSPEND: &str = "vorrang:suspend";

/// Deliveries with the locks they hold.
type Locked = SmallVec<[(Serial, LockToken); 1]>;

/// Deliveries whose settlement is on its way to the disk.
#[derive(Debug)]
pub(super) struct Settling {
    link: Option<LinkId>,
    mailbox: MailboxId,
    deliveries: Locked,
    settlement: Settlement,
    /// The state to echo; none if the client wants no answer.
    echo: Option<DeliveryState>,
    transaction: Option<TransactionId>,
}

impl Door {
    /// A client told the outcome of deliveries.
    pub(super) fn settled(&mut self, told: Told) {
        let Told { link, settled, state, deliveries } = told;
        let Some(Role::Receiver(receiver)) = self.links.role(link) else { return };
        let Some(state) = state else { return };
        let Some(outcome) = state.outcome() else { return };
        let settlement = settlement(outcome);
        let mut by_mailbox: SmallVec<[(MailboxId, Locked); 1]> = SmallVec::new();
        let first = receiver.mailboxes.first().copied();
        let mut deliveries = deliveries.into_iter();
        while let Some(delivery) = deliveries.next() {
            let token = LockToken(delivery.key);
            let Some(mailbox) = receiver.origins.remove(&token).or(first) else { continue };
            if let Some((_, same)) = by_mailbox.iter_mut().find(|(known, _)| *known == mailbox) {
                same.push((delivery.delivery, token));
            } else {
                // Room for all in the first, which nearly always is the only one.
                let more = if by_mailbox.is_empty() { deliveries.len() } else { 0 };
                let mut same = Locked::with_capacity(more.saturating_add(1));
                same.push((delivery.delivery, token));
                by_mailbox.push((mailbox, same));
            }
        }
        let transaction = match transaction_of(Some(&*state)) {
            Ok(transaction) => transaction,
            Err(told) => {
                for (delivery, _) in by_mailbox.into_iter().flat_map(|(_, deliveries)| deliveries) {
                    self.reject(link, delivery, told.clone());
                }
                return;
            }
        };
        for (mailbox, deliveries) in by_mailbox {
            self.settle(Settling {
                link: Some(link),
                mailbox,
                deliveries,
                settlement: settlement.clone(),
                echo: (!settled).then(|| echo(outcome, transaction.as_ref().map(|(raw, _)| raw))),
                transaction: transaction.as_ref().map(|(_, id)| *id),
            });
        }
    }

    /// Settles without anybody to tell.
    pub(super) fn settle_silently(&mut self, mailbox: MailboxId, token: LockToken, settlement: Settlement) {
        let deliveries = smallvec![(Serial::default(), token)];
        self.settle(Settling { link: None, mailbox, deliveries, settlement, echo: None, transaction: None });
    }

    fn settle(&mut self, settling: Settling) {
        let operation = Operation::Settle {
            mailbox: settling.mailbox,
            tokens: settling.deliveries.iter().map(|(_, token)| *token).collect(),
            settlement: settling.settlement.clone(),
            transaction: settling.transaction,
        };
        self.ask_quickly(Answering::Settle(Box::new(settling)), operation);
    }

    /// The broker has settled deliveries, or refused to.
    pub(super) fn settle_answered(&mut self, settling: Settling, outcome: Result<(), Refused>) {
        let one_of_many = settling.deliveries.len() > 1
            && matches!(
                outcome,
                Err(Refused::Impossible(Refusal::LockLost { .. } | Refusal::LockEnlisted { .. }))
            );
        if one_of_many {
            for delivery in settling.deliveries {
                self.settle(Settling {
                    deliveries: smallvec![delivery],
                    settlement: settling.settlement.clone(),
                    echo: settling.echo.clone(),
                    ..settling
                });
            }
            return;
        }
        let (Some(link), Some(echo)) = (settling.link, settling.echo) else { return };
        let refusal = outcome.err().map(|refused| {
            let path = match self.links.role(link) {
                Some(Role::Receiver(receiver)) => receiver.path.clone(),
                _ => Box::default(),
            };
            condition::told(&refused, &path)
        });
        // Errors mean that the link is gone: nobody waits for the answer.
        if refusal.is_none() && echo == DeliveryState::ACCEPTED {
            let mut run = None;
            for (delivery, _) in settling.deliveries {
                if let Some(Run { first, last, .. }) = Run::push(&mut run, link, delivery) {
                    let _ = self.amqp.accept_range(link, first, last);
                }
            }
            if let Some(Run { first, last, .. }) = run {
                let _ = self.amqp.accept_range(link, first, last);
            }
            return;
        }
        for (delivery, _) in settling.deliveries {
            let _ = match &refusal {
                None => self.amqp.settle(link, delivery, echo.clone()),
                Some(told) => {
                    let state = Outcome::rejected(told.clone().error()).into();
                    self.amqp.settle(link, delivery, state)
                }
            };
        }
    }
}

/// What an outcome means in Service Bus: it is the kind that counts, not `delivery-failed`.
fn settlement(outcome: &Outcome) -> Settlement {
    match outcome {
        Outcome::Accepted => Settlement::Complete,
        Outcome::Released => Settlement::Release,
        Outcome::Modified(Modified { undeliverable_here: Some(true), message_annotations, .. }) => {
            Settlement::Defer { changes: changes(message_annotations.as_deref(), &[]) }
        }
        Outcome::Modified(Modified { message_annotations, .. }) => abandon(message_annotations.as_deref()),
        Outcome::Rejected { error } => {
            let info = error.as_ref().and_then(|error| error.info.as_ref());
            let text = |key: &str| Some(Arc::from(info?.value(key)?.as_str()?));
            let described = error.as_ref().and_then(|error| error.description.as_ref());
            Settlement::DeadLetter {
                reason: text(Overlay::REASON),
                description: text(Overlay::DESCRIPTION)
                    .or_else(|| described.map(|text| Arc::from(text.as_str()))),
                changes: changes(info, &[Overlay::REASON, Overlay::DESCRIPTION]),
            }
        }
    }
}

pub(super) fn abandon(annotations: Option<&Map>) -> Settlement {
    let value = |key: &str| annotations.and_then(|map| map.value(key));
    let changes = changes(annotations, &[DELAY, SUSPEND]);
    if value(SUSPEND).and_then(|flag| flag.as_bool()) == Some(true) {
        return Settlement::Suspend { checkpoint: changes };
    }
    Settlement::Abandon { changes, delay: value(DELAY).and_then(|delay| delay.as_u64()).map(Span) }
}

/// Properties to change on a message, each value kept as it is encoded.
pub(super) fn changes(map: Option<&Map>, except: &[&str]) -> Option<Arc<Overlay>> {
    let mut overlay = Overlay::default();
    for (key, value) in map?.encoded_iter() {
        if let Some(key) = key.as_str().filter(|key| !except.contains(key)) {
            let value = PropertyValue::Encoded(Bytes::copy_from_slice(value.as_bytes()));
            overlay.properties.insert(Arc::from(key), PropertyChange::Set(value));
        }
    }
    (!overlay.is_empty()).then(|| Arc::new(overlay))
}

/// The answer to an outcome: the same kind, a rejection without its error.
fn echo(outcome: &Outcome, transaction: Option<&Named>) -> DeliveryState {
    let outcome = match outcome {
        Outcome::Accepted => Outcome::Accepted,
        Outcome::Released => Outcome::Released,
        Outcome::Modified(_) => Outcome::Modified(Modified::default()),
        Outcome::Rejected { .. } => Outcome::Rejected { error: None },
    };
    match transaction {
        None => outcome.into(),
        Some(txn_id) => DeliveryState::Transactional { txn_id: txn_id.clone(), outcome: Some(outcome) },
    }
}
