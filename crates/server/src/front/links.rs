//! The links of a connection, and what each is for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use vorrang_amqp::Text;
use vorrang_amqp::connection::{LinkId, SessionId};
use vorrang_broker::access::Scope;
use vorrang_broker::api::Link;
use vorrang_broker::shard::Body;
use vorrang_engine::message::Delivery;
use vorrang_engine::{EntityId, Location, LockToken, MailboxId, SessionId as GroupId, TransactionId};

use crate::registry::{ClientLink, LinkKind};

/// What a link is for.
#[derive(Debug)]
pub(super) enum Role {
    /// Asked for; the broker has not answered yet. Holds the receiver number if one was taken.
    Pending(Option<Link>),
    /// A client sends messages to an entity.
    Sender(Box<Sender>),
    /// A client receives messages.
    Receiver(Box<Receiver>),
    /// A client sends requests to a node.
    Requests(Node),
    /// A node's responses go to a client.
    Responses(Box<Responses>),
    /// A client declares and discharges transactions: those it has declared and that are open.
    Coordinator(BTreeSet<TransactionId>),
}

impl Role {
    /// What others are shown: the kind of link, and what it is attached to.
    pub(super) fn shown(&self) -> (LinkKind, &str) {
        match self {
            Role::Pending(_) => (LinkKind::Requests, ""),
            Role::Sender(sender) => (LinkKind::Sender, &sender.path),
            Role::Receiver(receiver) => (LinkKind::Receiver, &receiver.path),
            Role::Requests(node) => (LinkKind::Requests, node.shown()),
            Role::Responses(responses) => (LinkKind::Requests, responses.node.shown()),
            Role::Coordinator(_) => (LinkKind::Coordinator, ""),
        }
    }
}

impl Node {
    fn shown(&self) -> &str {
        match self {
            Node::Cbs => "$cbs",
            Node::Management(managed) => &managed.path,
        }
    }
}

/// A node that answers requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// The node for tokens.
    Cbs,
    /// The `$management` of a mailbox.
    Management(Managed),
}

/// What a `$management` node manages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Managed {
    /// The entity.
    pub(super) entity: EntityId,
    /// The mailbox.
    pub(super) mailbox: MailboxId,
    /// The path without `$management`, as Service Bus spells it.
    pub(super) path: Box<str>,
    /// The largest message or response.
    pub(super) message_bytes_max: u64,
}

/// A link on which a client sends.
#[derive(Debug)]
pub(super) struct Sender {
    /// The entity.
    pub(super) entity: EntityId,
    /// The entity messages pass on their way.
    pub(super) via: Option<EntityId>,
    /// The path, for error texts.
    pub(super) path: Box<str>,
    /// Where the right to send is needed.
    pub(super) scope: Scope,
    /// Deliveries the broker has not answered.
    pub(super) in_flight: u32,
}

/// A link on which a client receives.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The receiver's number at the broker.
    pub(super) number: Link,
    /// The mailboxes, in the order they are served.
    pub(super) mailboxes: Vec<MailboxId>,
    /// The path, for error texts.
    pub(super) path: Box<str>,
    /// Whether messages are removed when they are sent.
    pub(super) settled: bool,
    /// The session that is locked for it.
    pub(super) group: Option<GroupId>,
    /// Deliveries sent so far.
    pub(super) sent: u32,
    /// The mailbox of each unsettled delivery, where there are several mailboxes.
    pub(super) origins: BTreeMap<LockToken, MailboxId>,
    /// What could not be written yet because the peer's window is closed, in order.
    pub(super) held: VecDeque<Held>,
    /// Whether the peer wants its credit used up or given up.
    pub(super) draining: bool,
    /// Where messages were said to lie that could not be read there.
    pub(super) missed: BTreeSet<Location>,
}

impl Receiver {
    /// The path of the entity a message comes from, where there are several: they are joined in `path`.
    pub(super) fn origin(&self, mailbox: MailboxId) -> Option<&str> {
        if self.mailboxes.len() < 2 {
            return None;
        }
        let index = self.mailboxes.iter().position(|one| *one == mailbox)?;
        self.path.split('|').nth(index)
    }
}

/// A message the broker handed out.
#[derive(Debug)]
pub(super) struct Handed {
    /// What the broker knows about it.
    pub(super) delivery: Delivery,
    /// Its bytes, if they were at hand.
    pub(super) body: Option<Body>,
}

/// Something that waits for the peer's window.
#[derive(Debug)]
pub(super) enum Held {
    /// A delivery.
    Delivery(Box<Handed>),
    /// The answer to a drain.
    Drained,
}

/// A link on which responses go out.
#[derive(Debug)]
pub(super) struct Responses {
    /// The node they come from.
    pub(super) node: Node,
    /// The address the client gave as target.
    pub(super) address: Option<Text>,
    /// Responses without credit.
    pub(super) waiting: VecDeque<Bytes>,
}

/// One link.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: LinkId,
    pub(super) session: SessionId,
    pub(super) name: Text,
    pub(super) role: Role,
    /// The link as others see it, once it is attached.
    pub(super) watched: Option<Arc<ClientLink>>,
    /// Counts up, so that the most recent of several can be told.
    pub(super) since: u64,
}

/// All links of a connection, found by their place without a search.
#[derive(Debug, Default)]
pub(super) struct Links {
    places: Vec<Option<Entry>>,
    numbers: BTreeMap<u32, LinkId>,
    attached: u64,
}

impl Links {
    /// Puts a new link in its place.
    pub(super) fn insert(&mut self, id: LinkId, session: SessionId, name: Text, role: Role) {
        let place = usize::try_from(id.place()).unwrap_or(usize::MAX);
        if place >= self.places.len() {
            self.places.resize_with(place.saturating_add(1), || None);
        }
        self.attached = self.attached.wrapping_add(1);
        if let Some(slot) = self.places.get_mut(place) {
            *slot = Some(Entry { id, session, name, role, watched: None, since: self.attached });
        }
    }

    /// The link, if it is still this one.
    pub(super) fn entry(&mut self, id: LinkId) -> Option<&mut Entry> {
        let place = usize::try_from(id.place()).ok()?;
        self.places.get_mut(place)?.as_mut().filter(|entry| entry.id == id)
    }

    /// The link as others see it.
    pub(super) fn watched(&mut self, id: LinkId) -> Option<&ClientLink> {
        self.entry(id).and_then(|entry| entry.watched.as_deref())
    }

    /// What the link is for.
    pub(super) fn role(&mut self, id: LinkId) -> Option<&mut Role> {
        self.entry(id).map(|entry| &mut entry.role)
    }

    /// Forgets a link.
    pub(super) fn remove(&mut self, id: LinkId) -> Option<Entry> {
        let place = usize::try_from(id.place()).ok()?;
        let slot = self.places.get_mut(place)?;
        if slot.as_ref().is_none_or(|entry| entry.id != id) {
            return None;
        }
        slot.take()
    }

    /// Remembers which link a receiver's number means.
    pub(super) fn number(&mut self, number: Link, id: LinkId) {
        self.numbers.insert(number.0, id);
    }

    /// Forgets a receiver's number.
    pub(super) fn forget_number(&mut self, number: Link) {
        self.numbers.remove(&number.0);
    }

    /// The link of a receiver's number.
    pub(super) fn of_number(&self, number: Link) -> Option<LinkId> {
        self.numbers.get(&number.0).copied()
    }

    /// Every link there is.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.places.iter().flatten()
    }
}
