//! What handles ask of the driver, and what the driver hands to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use vorrang_amqp::connection::OwnAttach;
use vorrang_amqp::performative::{Attach, DeliveryState, DeliveryTag, TransactionId};
use vorrang_amqp::value::Map;

use crate::error::Error;

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A link of the driver. Never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkKey {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// One delivery, for settling it on the link it came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeliveryRef {
    pub(crate) link: LinkKey,
    /// Which attachment of the link it came on: after a reconnection the link is the same, the delivery is not.
    pub(crate) epoch: u32,
    pub(crate) id: u32,
}

/// A delivery on its way to the caller.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) delivery: DeliveryRef,
    pub(crate) tag: DeliveryTag,
    pub(crate) settled: bool,
    pub(crate) payload: Bytes,
}

/// A request of a handle.
#[derive(Debug)]
pub(crate) enum Command {
    /// Attach a link, and again whenever it is lost.
    Open(Box<OpenLink>),
    /// Send a delivery.
    Send(SendItem),
    /// Tell the outcome of a delivery.
    Settle { delivery: DeliveryRef, state: DeliveryState, reply: SettleReply },
    /// Tell the same outcome of many.
    SettleAll {
        deliveries: Vec<(u32, DeliveryRef)>,
        state: DeliveryState,
        reply: mpsc::UnboundedSender<(u32, Result<(), Error>)>,
    },
    /// Allow a receiver's link more deliveries.
    Credit { link: LinkKey, more: u32 },
    /// Take unused credit back.
    Drain { link: LinkKey, reply: Reply<()> },
    /// Go on after a drain.
    Resume { link: LinkKey },
    /// Give back deliveries the caller never saw, and detach a link.
    Detach { link: LinkKey, fetched: Vec<DeliveryRef>, reply: Reply<()> },
    /// Ask a node that answers.
    Request(Box<NodeRequest>),
    /// End the connection.
    Close { reply: Reply<()> },
}

/// What a handle leaves behind when it is dropped. Each handle sends a bounded number of these.
#[derive(Debug)]
pub(crate) enum Farewell {
    /// A receiver is gone: stop its credit and release what it had fetched.
    Receiver { link: LinkKey, fetched: Vec<DeliveryRef> },
    /// Nobody uses the link any more.
    Link { link: LinkKey },
    /// A transaction was neither committed nor rolled back.
    Transaction { coordinator: LinkKey, id: TransactionId },
}

/// A link to attach.
#[derive(Debug)]
pub(crate) struct OpenLink {
    pub(crate) attach: OwnAttach,
    /// The entities that need a token before.
    pub(crate) audiences: Vec<String>,
    pub(crate) role: OpenRole,
    /// Whether to attach again after it was lost.
    pub(crate) recover: bool,
    pub(crate) reply: Reply<Opened>,
}

/// What the link is for.
#[derive(Debug)]
pub(crate) enum OpenRole {
    Sender { shared: Arc<SenderShared> },
    Receiver { shared: Arc<ReceiverShared>, prefetch: u32, arrivals: mpsc::UnboundedSender<Arrived> },
}

/// A link is attached for the first time.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) link: LinkKey,
    pub(crate) answer: Box<Attach>,
}

/// A delivery to send.
#[derive(Debug)]
pub(crate) struct SendItem {
    pub(crate) link: LinkKey,
    pub(crate) payload: Bytes,
    pub(crate) message_format: u32,
    pub(crate) state: Option<DeliveryState>,
    /// Whether sending it twice does no harm.
    pub(crate) repeatable: bool,
    /// Its share of the sender's bound, given back with the outcome.
    pub(crate) room: Option<OwnedSemaphorePermit>,
    pub(crate) reply: Reply<Accepted>,
}

/// How a send succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Accepted {
    Plain,
    Declared(TransactionId),
}

/// Where the outcome of a settlement goes.
pub(crate) type SettleReply = oneshot::Sender<Result<(), Error>>;

/// A request to `$cbs` or to a `$management` node.
#[derive(Debug)]
pub(crate) struct NodeRequest {
    /// The node's address.
    pub(crate) node: String,
    pub(crate) audiences: Vec<String>,
    /// The encoded request but for its properties, which name the answer's way.
    pub(crate) application_properties: Map,
    pub(crate) body: Map,
    pub(crate) state: Option<DeliveryState>,
    pub(crate) reply: Reply<Response>,
}

/// The answer of a node.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: i32,
    pub(crate) body: Map,
}

/// What a sender's handles and the driver share.
#[derive(Debug, Default)]
pub(crate) struct SenderShared {
    /// The largest message the link takes; zero for no limit.
    pub(crate) message_bytes_max: AtomicU64,
    /// The largest batch the link takes.
    pub(crate) batch_bytes_max: AtomicU64,
}

/// What a receiver's handles and the driver share.
#[derive(Debug, Default)]
pub(crate) struct ReceiverShared {
    /// Deliveries the caller has taken since the driver last looked.
    taken: AtomicU32,
    /// Whether the driver was told to look.
    called: AtomicBool,
    /// Why the link ended for good.
    ending: std::sync::OnceLock<Error>,
}

impl ReceiverShared {
    /// The caller took a delivery; whether the driver should be told now.
    pub(crate) fn take(&self, threshold: u32) -> bool {
        let taken = self.taken.fetch_add(1, Ordering::AcqRel).saturating_add(1);
        taken >= threshold && !self.called.swap(true, Ordering::AcqRel)
    }

    /// The driver looks how many were taken.
    pub(super) fn taken(&self) -> u32 {
        self.called.store(false, Ordering::Release);
        self.taken.swap(0, Ordering::AcqRel)
    }

    pub(super) fn end(&self, error: Error) {
        // The first reason is the one that counts.
        let _ = self.ending.set(error);
    }

    /// Why the link ended for good.
    pub(crate) fn ending(&self) -> Option<&Error> {
        self.ending.get()
    }
}
