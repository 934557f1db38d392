//! Transactions: sends and settlements that happen together or not at all.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::oneshot;
use vorrang_amqp::connection::OwnAttach;
use vorrang_amqp::message::put_value;
use vorrang_amqp::performative::{
    Coordinator as CoordinatorTarget, Declare, DeliveryState, ReceiverSettleMode, Role, SenderSettleMode,
    Source, TargetNode, TransactionId,
};

use crate::client::Client;
use crate::driver::{
    Accepted, Command, Farewell, Hub, LinkKey, OpenLink, OpenRole, SendItem, SenderShared, discharge,
};
use crate::error::Error;
use crate::message::Message;
use crate::received::Received;
use crate::sender::Sender;
use crate::settle::{Abandon, DeadLetter, Settler, Told};

/// The link on which transactions begin and end.
#[derive(Debug, Clone)]
pub(crate) struct Coordinator {
    hub: Hub,
    link: LinkKey,
}

impl Coordinator {
    pub(crate) async fn open(client: &Client) -> Result<Self, Error> {
        let attach = OwnAttach {
            snd_settle_mode: Some(SenderSettleMode::Unsettled),
            rcv_settle_mode: Some(ReceiverSettleMode::First),
            source: Some(Source::at("coordinator")),
            target: Some(TargetNode::Coordinator(CoordinatorTarget::default())),
            ..OwnAttach::new("", Role::Sender)
        };
        let role = OpenRole::Sender { shared: Arc::new(SenderShared::default()) };
        let opened = client
            .open_link(Duration::ZERO, |reply| OpenLink {
                attach,
                audiences: Vec::new(),
                role,
                recover: true,
                reply,
            })
            .await?;
        Ok(Coordinator { hub: client.hub().clone(), link: opened.link })
    }

    async fn send(&self, payload: Bytes) -> Result<Accepted, Error> {
        let (reply, answer) = oneshot::channel();
        let link = self.link;
        let item =
            SendItem { link, payload, message_format: 0, state: None, repeatable: false, room: None, reply };
        self.hub.command(Command::Send(item)).await?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

/// Sends and settlements that happen together or not at all.
///
/// A transaction that is dropped is rolled back, and so is one whose connection breaks. The broker rolls back after
/// two minutes.
///
/// ```no_run
/// # async fn example(client: vorrang_client::Client) -> Result<(), vorrang_client::Error> {
/// let results = client.sender("results").await?;
/// let mut orders = client.receiver("orders").await?;
/// while let Some(order) = orders.recv().await {
///     let transaction = client.transaction().await?;
///     transaction.send(&results, "done").await?;
///     transaction.complete(&orders, &order).await?;
///     transaction.commit().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction {
    coordinator: Coordinator,
    id: TransactionId,
    ended: bool,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended {
            let (coordinator, id) = (self.coordinator.link, self.id.clone());
            self.coordinator.hub.farewell(Farewell::Transaction { coordinator, id });
        }
    }
}

impl Transaction {
    pub(crate) async fn declare(coordinator: &Coordinator) -> Result<Self, Error> {
        let mut payload = Vec::new();
        put_value(&mut payload, &Declare::default());
        match coordinator.send(Bytes::from(payload)).await? {
            Accepted::Declared(id) => Ok(Transaction { coordinator: coordinator.clone(), id, ended: false }),
            Accepted::Plain => Err(Error::Protocol("a transaction without an id".into())),
        }
    }

    /// Sends a message; it becomes visible when the transaction commits.
    pub async fn send(&self, sender: &Sender, message: impl Into<Message>) -> Result<(), Error> {
        let payload = message.into().encode();
        sender.submit_encoded(payload, 0, false, Some(self.state())).await?.await
    }

    /// Schedules messages; they are scheduled when the transaction commits.
    pub async fn schedule<M: Into<Message>>(
        &self,
        sender: &Sender,
        messages: impl IntoIterator<Item = M>,
        at: SystemTime,
    ) -> Result<Vec<i64>, Error> {
        sender.schedule_in(messages.into_iter().map(Into::into), at, Some(self.state())).await
    }

    /// Completes a message when the transaction commits.
    pub async fn complete(&self, settler: impl AsRef<Settler>, received: &Received) -> Result<(), Error> {
        settler.as_ref().settle(received, Told::complete(), Some(&self.id)).await
    }

    /// Abandons a message when the transaction commits.
    pub async fn abandon(
        &self,
        settler: impl AsRef<Settler>,
        received: &Received,
        abandon: Abandon,
    ) -> Result<(), Error> {
        settler.as_ref().settle(received, Told::abandon(&abandon), Some(&self.id)).await
    }

    /// Defers a message when the transaction commits.
    pub async fn defer(&self, settler: impl AsRef<Settler>, received: &Received) -> Result<(), Error> {
        settler.as_ref().settle(received, Told::defer(&[]), Some(&self.id)).await
    }

    /// Dead-letters a message when the transaction commits.
    pub async fn dead_letter(
        &self,
        settler: impl AsRef<Settler>,
        received: &Received,
        letter: DeadLetter,
    ) -> Result<(), Error> {
        settler.as_ref().settle(received, Told::dead_letter(&letter), Some(&self.id)).await
    }

    /// Makes everything happen. [`Error::Ambiguous`] if the connection broke before the answer came.
    pub async fn commit(mut self) -> Result<(), Error> {
        self.end(false).await
    }

    /// Makes nothing happen. Settled messages stay locked as they were.
    pub async fn rollback(mut self) -> Result<(), Error> {
        self.end(true).await
    }

    async fn end(&mut self, fail: bool) -> Result<(), Error> {
        self.ended = true;
        self.coordinator.send(discharge(self.id.clone(), fail)).await.map(|_| ())
    }

    fn state(&self) -> DeliveryState {
        DeliveryState::Transactional { txn_id: self.id.clone(), outcome: None }
    }
}
