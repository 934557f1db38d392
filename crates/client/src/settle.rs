//! Settling: complete, abandon, defer, dead-letter, suspend, release; and keeping the lock while the work goes on.
//!
//! A message is settled on the link it came on. If that link is gone its lock is not, so the outcome is told to the
//! entity's `$management` instead, which works from any connection.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use vorrang_amqp::performative::{DeliveryState, Error as AmqpError, Modified, Outcome, TransactionId};
use vorrang_amqp::value::{Array, Map, MapBuilder, Value};
use vorrang_amqp::{Text, Uuid};

use crate::driver::{Command, Farewell, Hub, LinkKey, ReceiverShared};
use crate::entity::Source;
use crate::error::Error;
use crate::management::{Arguments, Management};
use crate::received::Received;
use crate::wall;

/// Our annotations on `modified`: how long an abandoned message waits, and that it is only suspended.
const DELAY: &str = "vorrang:delay";
const SUSPEND: &str = "vorrang:suspend";

/// Settles what a receiver received. Cheap to clone, for handlers that run elsewhere; the receiver's link lives as long
/// as one of these does.
#[derive(Debug, Clone)]
pub struct Settler {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    hub: Hub,
    link: LinkKey,
    shared: Arc<ReceiverShared>,
    source: Source,
    management: Management,
    session: Option<String>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.hub.farewell(Farewell::Link { link: self.link });
    }
}

/// How a message is given back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Abandon {
    properties: Vec<(Text, Value)>,
    delay: Option<Duration>,
}

impl Abandon {
    /// Changes an application property of the message.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<Text>, value: impl Into<Value>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// The message comes again only after this time. An extension of Vorrang.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }
}

/// Why a message is put aside for good.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeadLetter {
    reason: Option<Text>,
    description: Option<Text>,
    properties: Vec<(Text, Value)>,
}

impl DeadLetter {
    /// With a reason that programs can tell apart.
    pub fn because(reason: impl Into<Text>) -> Self {
        DeadLetter { reason: Some(reason.into()), ..DeadLetter::default() }
    }

    /// With words for people.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<Text>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Changes an application property of the message.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<Text>, value: impl Into<Value>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }
}

/// An outcome in the two ways it can be told.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    outcome: Outcome,
    /// `disposition-status` and what belongs to it; none if `$management` has no word for it.
    managed: Option<Arguments>,
}

impl Told {
    pub(crate) fn complete() -> Self {
        Told {
            outcome: Outcome::Accepted,
            managed: Some(vec![("disposition-status", Value::from("completed"))]),
        }
    }

    pub(crate) fn release() -> Self {
        Told { outcome: Outcome::Released, managed: None }
    }

    pub(crate) fn abandon(abandon: &Abandon) -> Self {
        let mut changes = map_of(&abandon.properties);
        if let Some(delay) = abandon.delay {
            changes.push_symbol(DELAY, &u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        }
        Told::modified(changes.finish(), false, "abandoned")
    }

    pub(crate) fn suspend(checkpoint: &[(Text, Value)]) -> Self {
        let mut changes = map_of(checkpoint);
        changes.push_symbol(SUSPEND, &true);
        Told::modified(changes.finish(), false, "abandoned")
    }

    pub(crate) fn defer(properties: &[(Text, Value)]) -> Self {
        Told::modified(map_of(properties).finish(), true, "defered")
    }

    fn modified(changes: Map, undeliverable_here: bool, status: &'static str) -> Self {
        let changes = Some(changes).filter(|changes| !changes.is_empty());
        let mut managed = vec![("disposition-status", Value::from(status))];
        managed.extend(changes.clone().map(|changes| ("properties-to-modify", Value::Map(changes))));
        let outcome = Outcome::Modified(Modified {
            delivery_failed: Some(!undeliverable_here),
            undeliverable_here: Some(undeliverable_here),
            message_annotations: changes.map(Box::new),
        });
        Told { outcome, managed: Some(managed) }
    }

    pub(crate) fn dead_letter(letter: &DeadLetter) -> Self {
        let mut managed = vec![("disposition-status", Value::from("suspended"))];
        let mut info = map_of(&letter.properties);
        if let Some(reason) = &letter.reason {
            info.push_symbol("DeadLetterReason", reason);
            managed.push(("deadletter-reason", Value::from(reason.clone())));
        }
        if let Some(description) = &letter.description {
            info.push_symbol("DeadLetterErrorDescription", description);
            managed.push(("deadletter-description", Value::from(description.clone())));
        }
        if !letter.properties.is_empty() {
            managed.push(("properties-to-modify", Value::Map(map_of(&letter.properties).finish())));
        }
        let mut error = AmqpError::new("com.microsoft:dead-letter", "");
        error.description.clone_from(&letter.description);
        error.info = Some(info.finish());
        Told { outcome: Outcome::rejected(error), managed: Some(managed) }
    }
}

fn map_of(entries: &[(Text, Value)]) -> MapBuilder {
    let mut builder = MapBuilder::default();
    for (name, value) in entries {
        builder.push_symbol(name.as_str(), value);
    }
    builder
}

impl Settler {
    pub(crate) fn new(
        hub: Hub,
        link: LinkKey,
        shared: Arc<ReceiverShared>,
        source: Source,
        management: Management,
        session: Option<String>,
    ) -> Self {
        Settler { inner: Arc::new(Inner { hub, link, shared, source, management, session }) }
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    pub(crate) fn link(&self) -> LinkKey {
        self.inner.link
    }

    pub(crate) fn shared(&self) -> &ReceiverShared {
        &self.inner.shared
    }

    pub(crate) fn management(&self) -> &Management {
        &self.inner.management
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.inner.session.as_deref()
    }

    /// What the receiver receives from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.inner.source
    }

    /// The message is done with: it is deleted.
    pub async fn complete(&self, received: &Received) -> Result<(), Error> {
        self.settle(received, Told::complete(), None).await
    }

    /// The message goes back to its place and counts as tried once more.
    pub async fn abandon(&self, received: &Received, abandon: Abandon) -> Result<(), Error> {
        self.settle(received, Told::abandon(&abandon), None).await
    }

    /// The message goes back to its place as if it had never been received.
    pub async fn release(&self, received: &Received) -> Result<(), Error> {
        self.settle(received, Told::release(), None).await
    }

    /// The message is set aside; only [`Receiver::receive_deferred`](crate::Receiver::receive_deferred) finds it.
    pub async fn defer(&self, received: &Received) -> Result<(), Error> {
        self.settle(received, Told::defer(&[]), None).await
    }

    /// The message goes to the dead-letter queue.
    pub async fn dead_letter(&self, received: &Received, letter: DeadLetter) -> Result<(), Error> {
        self.settle(received, Told::dead_letter(&letter), None).await
    }

    /// The message goes back to its place without counting a try, and whoever gets it next finds the checkpoint among
    /// its application properties. An extension of Vorrang.
    pub async fn suspend(
        &self,
        received: &Received,
        checkpoint: impl IntoIterator<Item = (Text, Value)>,
    ) -> Result<(), Error> {
        let checkpoint: Vec<_> = checkpoint.into_iter().collect();
        self.settle(received, Told::suspend(&checkpoint), None).await
    }

    /// Completes many messages in one go; the outcomes are in the order of the messages.
    pub async fn complete_all<'r>(
        &self,
        received: impl IntoIterator<Item = &'r Received>,
    ) -> Vec<Result<(), Error>> {
        let received: Vec<&Received> = received.into_iter().collect();
        let mut outcomes: Vec<Option<Result<(), Error>>> = vec![None; received.len()];
        let deliveries: Vec<_> =
            (0_u32..).zip(&received).filter_map(|(index, one)| Some((index, one.delivery?))).collect();
        let (reply, mut answers) = mpsc::unbounded_channel();
        let state = DeliveryState::ACCEPTED;
        if self.inner.hub.command(Command::SettleAll { deliveries, state, reply }).await.is_ok() {
            while let Some((index, outcome)) = answers.recv().await {
                if let Some(place) = usize::try_from(index).ok().and_then(|index| outcomes.get_mut(index)) {
                    *place = Some(outcome);
                }
            }
        }
        let mut settled = Vec::with_capacity(received.len());
        for (one, outcome) in received.into_iter().zip(outcomes) {
            settled.push(match outcome {
                None if one.delivery.is_some() => Err(Error::Closed),
                None => self.settle_elsewhere(one, &Told::complete()).await,
                Some(Err(lost @ (Error::Ambiguous | Error::Disconnected { .. }))) => {
                    self.after_loss(one, &Told::complete(), lost).await
                }
                Some(outcome) => outcome,
            });
        }
        settled
    }

    /// Keeps the message locked for another lock duration; returns until when.
    pub async fn renew(&self, received: &Received) -> Result<SystemTime, Error> {
        let token = token_of(received)?;
        let arguments = || vec![("lock-tokens", Value::Array(Array::of([token])))];
        let mut lost = None;
        for management in self.candidates(received) {
            match management.call_repeatable("com.microsoft:renew-lock", arguments()).await {
                Ok(answer) => {
                    let until = answer.items("expirations")?.first().and_then(Value::as_timestamp);
                    let missing = || Error::Protocol("the answer names no time".into());
                    return until.and_then(wall::system_time).ok_or_else(missing);
                }
                Err(error @ Error::LockLost(_)) => lost = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(lost.unwrap_or(Error::Closed))
    }

    pub(crate) async fn settle(
        &self,
        received: &Received,
        told: Told,
        transaction: Option<&TransactionId>,
    ) -> Result<(), Error> {
        let Some(delivery) = received.delivery else {
            if transaction.is_some() {
                let text = "only messages received on a link can be settled in a transaction";
                return Err(Error::NotAllowed(text.into()));
            }
            return self.settle_elsewhere(received, &told).await;
        };
        let state = match transaction {
            None => DeliveryState::Outcome(told.outcome.clone()),
            Some(id) => {
                DeliveryState::Transactional { txn_id: id.clone(), outcome: Some(told.outcome.clone()) }
            }
        };
        let outcome = self.inner.hub.ask(|reply| Command::Settle { delivery, state, reply }).await;
        match outcome {
            Err(Error::Ambiguous | Error::Disconnected { .. }) if transaction.is_some() => {
                Err(Error::TransactionEnded("the connection broke, which rolls the transaction back".into()))
            }
            Err(lost @ (Error::Ambiguous | Error::Disconnected { .. })) => {
                self.after_loss(received, &told, lost).await
            }
            other => other,
        }
    }

    /// The link broke: tries the other way.
    async fn after_loss(&self, received: &Received, told: &Told, lost: Error) -> Result<(), Error> {
        if self.inner.session.is_some() || told.managed.is_none() {
            return Err(lost);
        }
        match self.settle_elsewhere(received, told).await {
            // It may have been settled before the link broke.
            Err(Error::LockLost(_)) if lost == Error::Ambiguous => Err(Error::Ambiguous),
            outcome => outcome,
        }
    }

    /// Settles over `$management`.
    async fn settle_elsewhere(&self, received: &Received, told: &Told) -> Result<(), Error> {
        let token = token_of(received)?;
        let Some(managed) = &told.managed else {
            return Err(Error::NotAllowed("only messages received on a link can be released".into()));
        };
        let mut lost = None;
        for management in self.candidates(received) {
            let mut arguments = managed.clone();
            arguments.push(("lock-tokens", Value::Array(Array::of([token]))));
            arguments.extend(self.session().map(|session| ("session-id", Value::from(session))));
            match management.call("com.microsoft:update-disposition", arguments, None).await {
                Err(error @ Error::LockLost(_)) => lost = Some(error),
                outcome => return outcome.map(|_| ()),
            }
        }
        Err(lost.unwrap_or(Error::Closed))
    }

    /// The entities a message may be locked in: the one it says it came from, or all sources in order.
    fn candidates(&self, received: &Received) -> Vec<Management> {
        let management = &self.inner.management;
        match received.source() {
            Some(source) => vec![management.of(&source)],
            None => self.inner.source.paths().map(|path| management.of(path)).collect(),
        }
    }
}

fn token_of(received: &Received) -> Result<Uuid, Error> {
    let text = "the message is not locked: it was peeked, or received and deleted";
    received.lock_token().ok_or_else(|| Error::NotAllowed(text.into()))
}
