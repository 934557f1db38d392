//! One link: a direction, credit, and the delivery that is being put together.

use bytes::BytesMut;

use super::admission::Permit;
use super::credit::{ReceiveCredit, SendCredit};
use super::serial::Serial;
use crate::performative::{DeliveryState, DeliveryTag, ReceiverSettleMode, Role, SenderSettleMode};
use crate::text::Text;

/// What a place in the link table holds.
#[derive(Debug)]
pub(super) enum LinkEntry {
    /// A link.
    Live(Box<Link>),
    /// The rest of a link whose detach we have sent and whose peer has not answered yet. Its handle stays taken
    /// and everything that arrives on it is dropped.
    Leaving(Leaving),
}

/// A link that waits for the peer's detach.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) session: u32,
    pub(super) own_handle: u32,
    pub(super) peer_handle: Option<u32>,
    /// Set while the peer may still answer our attach, to recognise the answer.
    pub(super) unanswered: Option<(Role, Text)>,
    /// Whether the layer above waits to hear that the link is gone.
    pub(super) report: bool,
}

/// A link that is attached or about to be.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) session: u32,
    pub(super) name: Text,
    pub(super) own_handle: u32,
    pub(super) peer_handle: Option<u32>,
    pub(super) state: LinkState,
    pub(super) flow: Direction,
    pub(super) snd_settle_mode: Option<SenderSettleMode>,
    pub(super) rcv_settle_mode: Option<ReceiverSettleMode>,
    pub(super) message_bytes_max: u64,
    /// Unsettled deliveries of this link in its session's set.
    pub(super) unsettled: u32,
    pub(super) assembly: Option<Box<Assembly>>,
    /// Why it may exist; held, never asked again.
    pub(super) _permit: Permit,
}

/// How far a link has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkState {
    /// The peer asked; the layer above has not answered.
    Asked,
    /// We asked; the peer has not answered.
    Asking,
    /// Both have attached.
    Attached,
    /// The peer answered without a terminus: it refuses, and its detach follows.
    Refused,
    /// The peer has detached, but waits for answers to outcomes it told before; our detach follows the last.
    Departing {
        /// Whether the peer closed the link.
        closed: bool,
    },
}

/// Which way messages go, with the credit for it.
#[derive(Debug)]
pub(super) enum Direction {
    Sending(SendCredit),
    Receiving(ReceiveCredit),
}

impl Direction {
    pub(super) fn new(own_role: Role, initial_delivery_count: u32) -> Self {
        let initial = Serial::new(initial_delivery_count);
        match own_role {
            Role::Sender => Self::Sending(SendCredit::new(initial)),
            Role::Receiver => Self::Receiving(ReceiveCredit::new(initial)),
        }
    }

    pub(super) fn own_role(&self) -> Role {
        match self {
            Self::Sending(_) => Role::Sender,
            Self::Receiving(_) => Role::Receiver,
        }
    }
}

/// A delivery of which more frames follow.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) delivery: Serial,
    pub(super) tag: DeliveryTag,
    pub(super) message_format: u32,
    pub(super) settled: bool,
    /// Whether the delivery stands in the session's unsettled set.
    pub(super) tracked: bool,
    pub(super) state: Option<DeliveryState>,
    pub(super) payload: BytesMut,
    /// Set once the message is larger than allowed; what follows is dropped.
    pub(super) too_large: bool,
}
