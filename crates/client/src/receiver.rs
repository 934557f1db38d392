//! Receiving from queues and subscriptions.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tracing::warn;
use vorrang_amqp::Text;
use vorrang_amqp::connection::OwnAttach;
use vorrang_amqp::performative::{
    DeliveryState, Error as AmqpError, Outcome, ReceiverSettleMode, Role, SenderSettleMode,
    Source as Terminus, Target, TargetNode,
};
use vorrang_amqp::value::{Array, MapBuilder, Value};
use vorrang_amqp::{Symbol, Uuid};

use crate::client::Client;
use crate::driver::{Arrived, Command, DeliveryRef, Farewell, OpenLink, OpenRole, Opened, ReceiverShared};
use crate::entity::{Source, SubQueue};
use crate::error::Error;
use crate::received::Received;
use crate::settle::{Abandon, DeadLetter, Settler};

const MIN_LEVEL: &str = "vorrang:min-level";
const SELECTOR: &str = "apache.org:selector-filter:string";
/// Messages asked for in one peek or one receive by number; the broker may return fewer.
const COUNT_MAX: u32 = 10_000;
/// Credit one receiver may give; more than a broker has ever a use for.
const CREDIT_MAX: u32 = 100_000;

/// Whether received messages stay until they are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReceiveMode {
    /// A received message is locked, and deleted when it is completed.
    #[default]
    PeekLock,
    /// A message is deleted when it is sent to us; if we fail, it is lost.
    ReceiveAndDelete,
}

/// Who decides how many messages the broker may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Credit {
    /// As many as a call to receive asks for. Nothing is held that nobody waits for.
    #[default]
    OnDemand,
    /// So many are kept ready; what the caller takes is fetched again. Fast, but held messages are locked, and a more
    /// important one that comes later waits behind them.
    Prefetch(u32),
    /// Only what [`Receiver::add_credit`] allows: one message per free slot, say.
    Manual,
}

/// How a receiver receives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceiverOptions {
    /// Whether received messages stay until they are settled.
    pub mode: ReceiveMode,
    /// Who decides how many messages the broker may send.
    pub credit: Credit,
    /// Only messages of this level or higher: an express receiver. An extension of Vorrang.
    pub min_level: Option<u8>,
    /// Only messages that match, in Service Bus SQL. An extension of Vorrang.
    pub selector: Option<String>,
    /// A sub-queue instead of the source itself.
    pub sub_queue: Option<SubQueue>,
}

impl ReceiverOptions {
    /// With so many messages kept ready.
    #[must_use]
    pub fn with_prefetch(mut self, count: u32) -> Self {
        self.credit = Credit::Prefetch(count);
        self
    }

    fn prefetch(&self) -> u32 {
        match self.credit {
            Credit::Prefetch(count) => count.clamp(1, CREDIT_MAX),
            Credit::OnDemand | Credit::Manual => 0,
        }
    }
}

/// Receives messages. When it is dropped, messages that were fetched and not handed out go back to the broker.
#[derive(Debug)]
pub struct Receiver {
    settler: Settler,
    arrivals: mpsc::UnboundedReceiver<Arrived>,
    credit: Credit,
    prefetch: u32,
    /// Credit that was asked for and has not come back as messages.
    asked: u32,
    /// Where the next peek begins.
    peek_from: i64,
}

/// What a receiver's link is attached with beside its options.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) session_filter: Option<Value>,
    pub(crate) wait: Option<Duration>,
}

impl AsRef<Settler> for Receiver {
    fn as_ref(&self) -> &Settler {
        &self.settler
    }
}

impl AsRef<Settler> for Settler {
    fn as_ref(&self) -> &Settler {
        self
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let fetched = self.take_fetched();
        self.settler.hub().farewell(Farewell::Receiver { link: self.settler.link(), fetched });
    }
}

impl Receiver {
    pub(crate) async fn open(
        client: &Client,
        source: Source,
        options: ReceiverOptions,
    ) -> Result<Self, Error> {
        let (receiver, _) = Receiver::open_with(client, source, options, Extras::default()).await?;
        Ok(receiver)
    }

    pub(crate) async fn open_with(
        client: &Client,
        source: Source,
        options: ReceiverOptions,
        extras: Extras,
    ) -> Result<(Self, Opened), Error> {
        let source = match options.sub_queue {
            Some(sub_queue) => source.sub_queue(sub_queue),
            None => source,
        };
        let shared = Arc::new(ReceiverShared::default());
        let (to, arrivals) = mpsc::unbounded_channel();
        let attach = attach(&source, &options, &extras);
        let role =
            OpenRole::Receiver { shared: Arc::clone(&shared), prefetch: options.prefetch(), arrivals: to };
        let audiences: Vec<String> = source.paths().map(str::to_owned).collect();
        let recover = extras.session_filter.is_none();
        let wait = extras.wait.unwrap_or_default();
        let opened =
            client.open_link(wait, |reply| OpenLink { attach, audiences, role, recover, reply }).await?;
        let session = extras.session_filter.is_some().then(|| session_of(&opened)).flatten();
        let management = client.management(source.first());
        let settler = Settler::new(client.hub().clone(), opened.link, shared, source, management, session);
        let receiver = Receiver {
            settler,
            arrivals,
            credit: options.credit,
            prefetch: options.prefetch(),
            asked: 0,
            peek_from: 0,
        };
        Ok((receiver, opened))
    }

    /// Settles messages from elsewhere, such as tasks that handle them.
    #[must_use]
    pub fn settler(&self) -> Settler {
        self.settler.clone()
    }

    /// What this receiver receives from.
    #[must_use]
    pub fn source(&self) -> &Source {
        self.settler.source()
    }

    /// Why no more messages come, once [`Receiver::recv`] has returned none.
    #[must_use]
    pub fn ending(&self) -> Option<&Error> {
        self.settler.shared().ending()
    }

    /// The next message; waits for one as long as it takes. None when the receiver has ended; see
    /// [`Receiver::ending`].
    ///
    /// Safe to cancel: a message that came meanwhile is returned by the next call.
    pub async fn recv(&mut self) -> Option<Received> {
        loop {
            if let Ok(arrived) = self.arrivals.try_recv() {
                if let Some(received) = self.taken(arrived) {
                    return Some(received);
                }
                continue;
            }
            if self.credit == Credit::OnDemand && self.asked == 0 {
                self.add_credit(1).await.ok()?;
            }
            let arrived = self.arrivals.recv().await?;
            if let Some(received) = self.taken(arrived) {
                return Some(received);
            }
        }
    }

    /// The next message, if one is here already.
    pub fn try_recv(&mut self) -> Option<Received> {
        while let Ok(arrived) = self.arrivals.try_recv() {
            if let Some(received) = self.taken(arrived) {
                return Some(received);
            }
        }
        None
    }

    /// Up to `max` messages: waits up to `wait` for the first, then takes what there is. Empty if none came.
    ///
    /// With [`Credit::OnDemand`] nothing is left on its way afterwards.
    pub async fn recv_batch(&mut self, max: u32, wait: Duration) -> Result<Vec<Received>, Error> {
        let max = max.min(CREDIT_MAX);
        let mut batch = Vec::new();
        if max == 0 {
            return Ok(batch);
        }
        self.take_into(&mut batch, max);
        if self.credit == Credit::OnDemand && self.asked < left(max, &batch) {
            self.add_credit(left(max, &batch).saturating_sub(self.asked)).await?;
        }
        let until = Instant::now() + wait;
        while batch.is_empty() {
            match timeout_at(until, self.arrivals.recv()).await {
                Ok(Some(arrived)) => batch.extend(self.taken(arrived)),
                Ok(None) => return Err(self.ending().cloned().unwrap_or(Error::Closed)),
                Err(_) => break,
            }
        }
        self.take_into(&mut batch, max);
        if self.credit == Credit::OnDemand && self.asked > 0 {
            self.drain().await?;
            self.take_into(&mut batch, max);
        }
        Ok(batch)
    }

    /// The next message, or none if none comes in time.
    pub async fn recv_timeout(&mut self, wait: Duration) -> Result<Option<Received>, Error> {
        Ok(self.recv_batch(1, wait).await?.into_iter().next())
    }

    /// Allows the broker to send so many messages more. With [`Credit::Manual`] this is the only way to get any.
    pub async fn add_credit(&mut self, more: u32) -> Result<(), Error> {
        let more = more.min(CREDIT_MAX.saturating_sub(self.asked));
        if more > 0 {
            self.settler.hub().command(Command::Credit { link: self.settler.link(), more }).await?;
            self.asked = self.asked.saturating_add(more);
        }
        Ok(())
    }

    /// Takes back credit the broker has not used. When this returns, everything it has sent is here, and nothing more
    /// comes until credit is added, or, with [`Credit::Prefetch`], until [`Receiver::resume`].
    pub async fn drain(&mut self) -> Result<(), Error> {
        let link = self.settler.link();
        self.settler.hub().ask(|reply| Command::Drain { link, reply }).await?;
        self.asked = 0;
        Ok(())
    }

    /// Goes on after a drain with [`Credit::Prefetch`].
    pub async fn resume(&mut self) -> Result<(), Error> {
        self.settler.hub().command(Command::Resume { link: self.settler.link() }).await
    }

    /// The message is done with: it is deleted.
    pub async fn complete(&self, received: &Received) -> Result<(), Error> {
        self.settler.complete(received).await
    }

    /// Completes many messages in one go; the outcomes are in the order of the messages.
    pub async fn complete_all<'r>(
        &self,
        received: impl IntoIterator<Item = &'r Received>,
    ) -> Vec<Result<(), Error>> {
        self.settler.complete_all(received).await
    }

    /// The message goes back to its place and counts as tried once more.
    pub async fn abandon(&self, received: &Received, abandon: Abandon) -> Result<(), Error> {
        self.settler.abandon(received, abandon).await
    }

    /// The message goes back to its place as if it had never been received.
    pub async fn release(&self, received: &Received) -> Result<(), Error> {
        self.settler.release(received).await
    }

    /// The message is set aside; only [`Receiver::receive_deferred`] finds it.
    pub async fn defer(&self, received: &Received) -> Result<(), Error> {
        self.settler.defer(received).await
    }

    /// The message goes to the dead-letter queue.
    pub async fn dead_letter(&self, received: &Received, letter: DeadLetter) -> Result<(), Error> {
        self.settler.dead_letter(received, letter).await
    }

    /// The message goes back to its place without counting a try, with a checkpoint for whoever gets it next. An
    /// extension of Vorrang.
    pub async fn suspend(
        &self,
        received: &Received,
        checkpoint: impl IntoIterator<Item = (Text, Value)>,
    ) -> Result<(), Error> {
        self.settler.suspend(received, checkpoint).await
    }

    /// Keeps the message locked for another lock duration; returns until when.
    pub async fn renew(&self, received: &Received) -> Result<SystemTime, Error> {
        self.settler.renew(received).await
    }

    /// Receives deferred messages by their sequence numbers: all of them or none.
    pub async fn receive_deferred(&self, sequence_numbers: &[i64]) -> Result<Vec<Received>, Error> {
        if sequence_numbers.is_empty() {
            return Ok(Vec::new());
        }
        let numbers = Value::Array(Array::of(sequence_numbers.iter().copied()));
        let mut arguments = vec![("sequence-numbers", numbers), ("receiver-settle-mode", Value::from(1_u32))];
        arguments.extend(self.settler.session().map(|session| ("session-id", Value::from(session))));
        // Asked for once: if the answer is lost, the messages stay locked until their locks end.
        let answer = self
            .settler
            .management()
            .call("com.microsoft:receive-by-sequence-number", arguments, None)
            .await?;
        messages(&answer.items("messages")?)
    }

    /// Looks at up to `count` messages without receiving them, going on where the last peek ended.
    pub async fn peek(&mut self, count: u32) -> Result<Vec<Received>, Error> {
        let peeked = self.peek_from(self.peek_from, count).await?;
        if let Some(last) = peeked.last().and_then(Received::sequence_number) {
            self.peek_from = last.saturating_add(1);
        }
        Ok(peeked)
    }

    /// Looks at up to `count` messages from a sequence number on.
    pub async fn peek_from(&self, sequence_number: i64, count: u32) -> Result<Vec<Received>, Error> {
        let count = i32::try_from(count.min(COUNT_MAX)).unwrap_or(i32::MAX);
        let mut arguments = vec![
            ("from-sequence-number", Value::from(sequence_number)),
            ("message-count", Value::from(count)),
        ];
        arguments.extend(self.settler.session().map(|session| ("session-id", Value::from(session))));
        let answer =
            self.settler.management().call_repeatable("com.microsoft:peek-message", arguments).await?;
        messages(&answer.items("messages")?)
    }

    /// Gives back what was fetched and not handed out, and detaches. Dropping does the same without waiting.
    pub async fn close(mut self) -> Result<(), Error> {
        self.drain().await?;
        let (hub, link) = (self.settler.hub().clone(), self.settler.link());
        let fetched = self.take_fetched();
        hub.ask(|reply| Command::Detach { link, fetched, reply }).await
    }

    fn take_fetched(&mut self) -> Vec<DeliveryRef> {
        let mut fetched = Vec::new();
        while let Ok(arrived) = self.arrivals.try_recv() {
            if !arrived.settled {
                fetched.push(arrived.delivery);
            }
        }
        fetched
    }

    fn take_into(&mut self, batch: &mut Vec<Received>, max: u32) {
        while left(max, batch) > 0
            && let Some(received) = self.try_recv()
        {
            batch.push(received);
        }
    }

    /// Counts a delivery as taken and reads it. One that cannot be read is rejected: it would come again for ever.
    fn taken(&mut self, arrived: Arrived) -> Option<Received> {
        self.asked = self.asked.saturating_sub(1);
        if self.prefetch > 0 && self.settler.shared().take(self.prefetch.div_ceil(2)) {
            self.settler.hub().attend(self.settler.link());
        }
        let (delivery, settled) = (arrived.delivery, arrived.settled);
        match Received::from_arrived(arrived) {
            Ok(received) => Some(received),
            Err(error) => {
                warn!(%error, "a delivery is no message and is rejected");
                if !settled {
                    self.reject(delivery, &error);
                }
                None
            }
        }
    }

    fn reject(&self, delivery: DeliveryRef, error: &Error) {
        let hub = self.settler.hub().clone();
        let state = Outcome::rejected(AmqpError::new("amqp:decode-error", error.to_string()));
        let state = DeliveryState::Outcome(state);
        // Rare enough for a task of its own; nobody waits for the outcome.
        tokio::spawn(async move {
            let _ = hub.ask(|reply| Command::Settle { delivery, state, reply }).await;
        });
    }
}

fn left(max: u32, batch: &[Received]) -> u32 {
    max.saturating_sub(u32::try_from(batch.len()).unwrap_or(u32::MAX))
}

fn attach(source: &Source, options: &ReceiverOptions, extras: &Extras) -> OwnAttach {
    let address = source.to_string();
    let mut filter = MapBuilder::default();
    if let Some(session) = &extras.session_filter {
        filter.push_symbol(crate::session::SESSION_FILTER, session);
    }
    if let Some(level) = options.min_level {
        filter.push_symbol(MIN_LEVEL, &Value::described(Symbol::from(MIN_LEVEL), level));
    }
    if let Some(selector) = &options.selector {
        let described = Value::described(Symbol::from(SELECTOR), selector.as_str());
        filter.push_symbol(SELECTOR, &described);
    }
    let filter = Some(filter.finish()).filter(|filter| !filter.is_empty());
    let mut properties = MapBuilder::default();
    if let Some(wait) = extras.wait {
        let milliseconds = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        properties.push_symbol("com.microsoft:timeout", &milliseconds);
    }
    let (sending, receiving) = match options.mode {
        ReceiveMode::PeekLock => (SenderSettleMode::Unsettled, ReceiverSettleMode::Second),
        ReceiveMode::ReceiveAndDelete => (SenderSettleMode::Settled, ReceiverSettleMode::First),
    };
    OwnAttach {
        snd_settle_mode: Some(sending),
        rcv_settle_mode: Some(receiving),
        source: Some(Terminus { filter, ..Terminus::at(address.as_str()) }),
        target: Some(TargetNode::Node(Target::at(address))),
        properties: Some(properties.finish()).filter(|properties| !properties.is_empty()),
        ..OwnAttach::new("", Role::Receiver)
    }
}

/// The session the broker has locked for us.
fn session_of(opened: &Opened) -> Option<String> {
    let filter = opened.answer.source.as_ref()?.filter.as_ref()?;
    let value = filter.value(crate::session::SESSION_FILTER)?;
    value.undescribed().as_str().map(str::to_owned)
}

/// Messages in an answer of `$management`.
fn messages(items: &[Value]) -> Result<Vec<Received>, Error> {
    let read = |item: &Value| {
        let entry = item.as_map().ok_or_else(|| Error::Protocol("a message that is no map".into()))?;
        let encoded = entry.value("message").and_then(|message| message.as_binary().cloned());
        let encoded = encoded.ok_or_else(|| Error::Protocol("a message without bytes".into()))?;
        let token: Option<Uuid> = entry.value("lock-token").and_then(|token| token.as_uuid());
        Received::read(encoded, token, None)
    };
    items.iter().map(read).collect()
}
