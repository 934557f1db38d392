//! A link as the driver keeps it: what it is for, how far it has come, and what waits for it.
//!
//! A link outlives connections. Between two of them its queue of sends stays, its deliveries under way end in doubt.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;
use vorrang_amqp::connection::{LinkId, OwnAttach, SessionId};
use vorrang_amqp::performative::ReceiverSettleMode;

use super::command::{Arrived, Opened, ReceiverShared, Reply, SendItem, SenderShared, SettleReply};
use super::slab::Slab;
use crate::backoff::Attempts;
use crate::error::Error;

/// Looked up by delivery id, never iterated into an outcome.
pub(super) type ById<V> = hashbrown::HashMap<u32, V, foldhash::fast::FixedState>;

/// One link.
pub(super) struct Link {
    pub(super) generation: u32,
    pub(super) attach: OwnAttach,
    pub(super) audiences: Vec<String>,
    pub(super) recover: bool,
    pub(super) stage: Stage,
    pub(super) attempts: Attempts,
    pub(super) role: Role,
    /// Whoever waits for the first attach.
    pub(super) opening: Option<Reply<Opened>>,
    /// Whoever waits for the detach.
    pub(super) detaching: Option<Reply<()>>,
}

/// How far a link has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Waits for a connection, or for its next attempt.
    Waiting { until: Option<Instant> },
    /// Waits for tokens.
    Claiming,
    /// Asked for.
    Attaching { session: SessionId, link: LinkId },
    /// In use.
    Attached { session: SessionId, link: LinkId },
    /// Ended for good.
    Ended(Error),
}

pub(super) enum Role {
    Sender(SendingLink),
    Receiver(ReceivingLink),
}

/// A link on which we send.
pub(super) struct SendingLink {
    pub(super) shared: Arc<SenderShared>,
    pub(super) queue: VecDeque<SendItem>,
    pub(super) in_flight: Slab<Flying>,
    pub(super) next_order: u64,
    /// Whether the link is on the list of those with something to send.
    pub(super) listed: bool,
}

/// A delivery whose outcome is not known.
pub(super) struct Flying {
    pub(super) item: SendItem,
    /// Its place among the deliveries of the link, so that those sent again keep their order.
    pub(super) order: u64,
}

/// A link on which we receive.
pub(super) struct ReceivingLink {
    pub(super) shared: Arc<ReceiverShared>,
    /// Gone when the caller is, or when nothing will come any more.
    pub(super) arrivals: Option<mpsc::UnboundedSender<Arrived>>,
    pub(super) settling: ById<SettleWaiter>,
    /// Who settles first, as the server answered (we do, if it says nothing): then no confirmation comes.
    pub(super) settle_mode: ReceiverSettleMode,
    /// Counts attachments; deliveries of an earlier one cannot be settled on the link.
    pub(super) epoch: u32,
    /// How many deliveries are kept ready for the caller; zero leaves credit to the caller.
    pub(super) prefetch: u32,
    /// Deliveries the caller has not taken.
    pub(super) buffered: u32,
    /// Deliveries the peer may still send.
    pub(super) granted: u32,
    /// Whether a drain has stopped the flow.
    pub(super) paused: bool,
    pub(super) draining: Vec<Reply<()>>,
    /// Whether the caller is gone and the last drain is under way.
    pub(super) leaving: bool,
    /// Whether the link is to be detached after that.
    pub(super) abandoned: bool,
}

/// Who waits for the outcome of a settlement.
pub(super) enum SettleWaiter {
    One(SettleReply),
    OfMany(u32, mpsc::UnboundedSender<(u32, Result<(), Error>)>),
}

impl SettleWaiter {
    pub(super) fn answer(self, outcome: Result<(), Error>) {
        // Whoever waited may have given up.
        match self {
            SettleWaiter::One(reply) => drop(reply.send(outcome)),
            SettleWaiter::OfMany(index, reply) => drop(reply.send((index, outcome))),
        }
    }
}

impl Link {
    /// The protocol engine's link, if it can be used.
    pub(super) fn attached(&self) -> Option<LinkId> {
        match self.stage {
            Stage::Attached { link, .. } => Some(link),
            _ => None,
        }
    }
}

impl SendingLink {
    pub(super) fn new(shared: Arc<SenderShared>) -> Self {
        SendingLink { shared, queue: VecDeque::new(), in_flight: Slab::new(), next_order: 0, listed: false }
    }
}

impl ReceivingLink {
    pub(super) fn new(
        shared: Arc<ReceiverShared>,
        prefetch: u32,
        arrivals: mpsc::UnboundedSender<Arrived>,
    ) -> Self {
        ReceivingLink {
            shared,
            arrivals: Some(arrivals),
            settling: ById::default(),
            settle_mode: ReceiverSettleMode::Second,
            epoch: 0,
            prefetch,
            buffered: 0,
            granted: 0,
            paused: false,
            draining: Vec::new(),
            leaving: false,
            abandoned: false,
        }
    }

    /// The credit to announce now, if it is worth a frame: all of it when half is used up.
    pub(super) fn top_up(&mut self) -> Option<u32> {
        if self.prefetch == 0 || self.paused {
            return None;
        }
        self.buffered = self.buffered.saturating_sub(self.shared.taken());
        let room = self.prefetch.saturating_sub(self.buffered);
        let worth = room > self.granted && room.saturating_sub(self.granted) >= self.prefetch.div_ceil(2);
        worth.then(|| {
            self.granted = room;
            room
        })
    }
}
