//! What the engine tells the layer above.
//!
//! Every link the layer above has heard of ends with exactly one of [`Event::AttachCancelled`],
//! [`Event::LinkEnded`] or the connection's [`Event::Closed`].

use bytes::Bytes;
use smallvec::SmallVec;

use super::serial::Serial;
use super::slots::Key;
use super::violation::Violation;
use crate::performative::{Attach, DeliveryState, DeliveryTag, Error, Open};
use crate::sasl_plain::PlainCredentials;
use crate::text::Text;

/// A session of a connection. Never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(super) Key);

/// A link of a connection. Never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(super) Key);

impl LinkId {
    /// The link's place in a table: small, and unique among the links that live. For the caller's own tables,
    /// which then must check that they mean the same link.
    pub fn place(self) -> u32 {
        self.0.slot
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A peer wants to be known. Answer with [`super::Connection::accept_credentials`] or
    /// [`super::Connection::refuse_credentials`]; nothing more is read before.
    Credentials(Credentials),
    /// Both sides have opened.
    Opened(Box<Open>),
    /// The peer wants a link. Answer, now or later, with [`super::Connection::accept_attach`] or
    /// [`super::Connection::refuse_attach`].
    Attach(Box<AttachRequest>),
    /// The peer gave up a link that was not answered yet.
    AttachCancelled {
        /// The link, which is gone.
        link: LinkId,
    },
    /// The peer answered an attach of ours.
    Attached {
        /// The link.
        link: LinkId,
        /// The peer's answer.
        answer: Box<Attach>,
    },
    /// A complete delivery.
    Delivery(Delivery),
    /// A delivery that was larger than allowed, and dropped. If it is unsettled it wants an outcome.
    TooLarge {
        /// The link.
        link: LinkId,
        /// The delivery.
        delivery: Serial,
        /// Whether the peer has settled it.
        settled: bool,
        /// The bytes that were allowed.
        limit: u64,
    },
    /// The receiver at the other end changed our credit.
    Credit {
        /// The link.
        link: LinkId,
        /// Deliveries we may send.
        credit: u32,
        /// Whether it wants them now: send what there is, then call [`super::Connection::drained`].
        drain: bool,
    },
    /// The sender at the other end has used up or given back all credit, as we asked by a drain.
    Drained {
        /// The link.
        link: LinkId,
    },
    /// The peer told the outcome of deliveries, or settled them.
    Settlement(Settlement),
    /// A session takes transfers again after [`super::SendError::WindowClosed`].
    WindowOpened {
        /// The session.
        session: SessionId,
    },
    /// A link is gone. Outcomes that were reported unsettled before can still be answered, and should be: the
    /// peer's detach is answered after the last of them.
    LinkEnded {
        /// The link.
        link: LinkId,
        /// Why.
        ending: LinkEnding,
    },
    /// A session we began is gone; its links ended before.
    SessionEnded {
        /// The session.
        session: SessionId,
        /// What the peer said, if it ended it.
        error: Option<Box<Error>>,
    },
    /// The connection is gone, and with it all its sessions and links. The last event.
    Closed(Closed),
}

/// Who a peer says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// `PLAIN`: a name and a password.
    Plain(PlainCredentials),
    /// `EXTERNAL`: whoever the transport says it is.
    External {
        /// The identity it wants to act as; empty for its own.
        acting_as: Text,
    },
}

/// A link the peer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachRequest {
    /// The link, for the answer.
    pub link: LinkId,
    /// Its session.
    pub session: SessionId,
    /// All the peer said. Texts and maps in it are slices of the read buffer.
    pub attach: Attach,
}

/// A complete delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The link it came on.
    pub link: LinkId,
    /// Its id, for settling.
    pub delivery: Serial,
    /// The sender's name for it.
    pub tag: DeliveryTag,
    /// What the payload is.
    pub message_format: u32,
    /// Whether the sender has settled it; then no outcome is wanted.
    pub settled: bool,
    /// The state the sender gave it; a transaction names itself here.
    pub state: Option<Box<DeliveryState>>,
    /// The encoded message. A slice of the read buffer if it came in one frame.
    pub payload: Bytes,
}

/// An outcome the peer told for deliveries of one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The link.
    pub link: LinkId,
    /// Whether the peer has settled them. If not, it waits for [`super::Connection::settle`].
    pub settled: bool,
    /// The outcome; none if the peer settled without saying how.
    pub state: Option<Box<DeliveryState>>,
    /// The deliveries, in the order of their ids.
    pub deliveries: SmallVec<[SettledDelivery; 1]>,
}

/// One delivery in a [`Settlement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledDelivery {
    /// Its id.
    pub delivery: Serial,
    /// What the caller named it in [`super::Outgoing::key`]; zero for deliveries that were received.
    pub key: u128,
}

/// Why a link is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEnding {
    /// The peer detached it.
    Peer {
        /// Whether it closed the link or only went away; links are not resumed, so both end it.
        closed: bool,
        /// What it said.
        error: Option<Box<Error>>,
    },
    /// We detached it, and the peer has agreed.
    Own,
    /// Its session ended.
    Session,
    /// The peer broke a rule, on this link or in its session.
    Violation(Violation),
}

/// Why a connection is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// The peer closed it.
    Peer {
        /// What it said.
        error: Option<Box<Error>>,
    },
    /// We closed it, and the peer has agreed or did not in time.
    Own,
    /// The peer broke a rule.
    Violation(Violation),
    /// The transport ended without a word.
    Transport,
}
