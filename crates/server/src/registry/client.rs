//! One connection and its links, as others see them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;
use vorrang_engine::Timestamp;

use super::ClientId;
use crate::count::Counter;
use crate::transport::Transport;

/// Characters kept of a name a client gave: enough to recognise it, whatever it sent.
const NAME_CHARS_MAX: usize = 256;

/// One connection.
#[derive(Debug)]
pub struct Client {
    id: ClientId,
    peer: SocketAddr,
    transport: Transport,
    since: Timestamp,
    container: OnceLock<Box<str>>,
    key_name: Mutex<Option<Box<str>>>,
    links: Mutex<BTreeMap<u64, Arc<ClientLink>>>,
    next_link: AtomicU64,
    /// Bytes read from the client.
    pub bytes_in: Counter,
    /// Bytes written to it.
    pub bytes_out: Counter,
    wishes: Mutex<Vec<Wish>>,
    wished: Notify,
}

/// What somebody else wants of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// That it ends in good order, for this reason.
    Close(&'static str),
    /// That it ends without a word, as if the network had failed.
    Cut,
    /// That this link of it ends, for this reason.
    Detach(u64, &'static str),
}

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// The client sends messages.
    Sender,
    /// The client receives messages.
    Receiver,
    /// The client asks a node such as `$management`, or is answered by it.
    Requests,
    /// The client begins and ends transactions.
    Coordinator,
}

impl LinkKind {
    /// Every kind there is.
    pub const ALL: [LinkKind; 4] =
        [LinkKind::Sender, LinkKind::Receiver, LinkKind::Requests, LinkKind::Coordinator];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            LinkKind::Sender => "sender",
            LinkKind::Receiver => "receiver",
            LinkKind::Requests => "requests",
            LinkKind::Coordinator => "coordinator",
        }
    }
}

/// One link.
#[derive(Debug)]
pub struct ClientLink {
    id: u64,
    name: Box<str>,
    kind: LinkKind,
    entity: Box<str>,
    since: Timestamp,
    credit: AtomicU32,
    /// Messages that passed.
    pub deliveries: Counter,
}

/// A connection at one moment.
#[derive(Debug, Clone)]
pub struct View {
    /// Its number.
    pub id: ClientId,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// What carries it.
    pub transport: Transport,
    /// When it began.
    pub since: Timestamp,
    /// The name the client gave itself, cut if it is long.
    pub container: Option<Box<str>>,
    /// The name of the key it proved last.
    pub key_name: Option<Box<str>>,
    /// Bytes read from it.
    pub bytes_in: u64,
    /// Bytes written to it.
    pub bytes_out: u64,
    /// Its links, oldest first.
    pub links: Vec<LinkView>,
}

/// A link at one moment.
#[derive(Debug, Clone)]
pub struct LinkView {
    /// Its number in the connection.
    pub id: u64,
    /// The name the client gave it, cut if it is long.
    pub name: Box<str>,
    /// What it is for.
    pub kind: LinkKind,
    /// The entity, or several in the order they are served, or the node.
    pub entity: Box<str>,
    /// When it was attached.
    pub since: Timestamp,
    /// How many more messages may pass: what the client allowed on a receiver, what it was allowed else.
    pub credit: u32,
    /// How many have passed.
    pub deliveries: u64,
}

impl Client {
    pub(super) fn new(id: ClientId, peer: SocketAddr, transport: Transport, since: Timestamp) -> Client {
        Client {
            id,
            peer,
            transport,
            since,
            container: OnceLock::new(),
            key_name: Mutex::default(),
            links: Mutex::default(),
            next_link: AtomicU64::new(1),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            wishes: Mutex::default(),
            wished: Notify::new(),
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.id
    }

    /// Where it comes from.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The client gave its name.
    pub fn named(&self, container: &str) {
        // A second name in one connection is a violation that ends it.
        let _ = self.container.set(cut(container));
    }

    /// The client proved that it has a key.
    pub fn proved(&self, key_name: &str) {
        *self.key_name.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut(key_name));
    }

    /// A link was attached.
    pub fn attached(&self, name: &str, kind: LinkKind, entity: &str, now: Timestamp) -> Arc<ClientLink> {
        let id = self.next_link.fetch_add(1, Ordering::Relaxed);
        let link = Arc::new(ClientLink {
            id,
            name: cut(name),
            kind,
            entity: cut(entity),
            since: now,
            credit: AtomicU32::new(0),
            deliveries: Counter::default(),
        });
        self.lock().insert(id, Arc::clone(&link));
        link
    }

    /// A link is gone.
    pub fn detached(&self, link: &ClientLink) {
        self.lock().remove(&link.id);
    }

    /// How it is now.
    #[must_use]
    pub fn view(&self) -> View {
        View {
            id: self.id,
            peer: self.peer,
            transport: self.transport,
            since: self.since,
            container: self.container.get().cloned(),
            key_name: self.key_name.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            bytes_in: self.bytes_in.read(),
            bytes_out: self.bytes_out.read(),
            links: self.lock().values().map(|link| link.view()).collect(),
        }
    }

    /// How many links of each kind it has.
    pub(crate) fn count_links(&self, counts: &mut BTreeMap<LinkKind, u64>) {
        for link in self.lock().values() {
            let count = counts.entry(link.kind).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// The link of this number, if it carries messages; others are the protocol's own.
    #[must_use]
    pub fn link(&self, id: u64) -> Option<Arc<ClientLink>> {
        self.lock().get(&id).filter(|link| link.carries_messages()).cloned()
    }

    /// Its links that carry messages.
    #[must_use]
    pub fn links(&self) -> Vec<Arc<ClientLink>> {
        self.lock().values().filter(|link| link.carries_messages()).cloned().collect()
    }

    /// Asks something of the connection. What is asked for already is not asked for twice, so that no more
    /// waits than a wish for each link.
    pub fn ask(&self, wish: Wish) {
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        if !wishes.contains(&wish) {
            wishes.push(wish);
        }
        drop(wishes);
        self.wished.notify_one();
    }

    /// Ends when somebody asked something of the connection.
    pub async fn asked(&self) {
        self.wished.notified().await;
    }

    /// What was asked of it since this was last called.
    pub fn take_wishes(&self) -> Vec<Wish> {
        std::mem::take(&mut *self.wishes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ClientLink>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientLink {
    /// Its number in the connection.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The name the client gave it, cut if it is long.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The entity, or several in the order they are served.
    #[must_use]
    pub fn entity(&self) -> &str {
        &self.entity
    }

    fn carries_messages(&self) -> bool {
        matches!(self.kind, LinkKind::Sender | LinkKind::Receiver)
    }

    /// How many more messages may pass.
    pub fn set_credit(&self, credit: u32) {
        self.credit.store(credit, Ordering::Relaxed);
    }

    /// Messages passed, and used up credit. Only the link's own connection calls this.
    pub fn passed(&self, count: u32) {
        self.deliveries.add(u64::from(count));
        let left = self.credit.load(Ordering::Relaxed).saturating_sub(count);
        self.credit.store(left, Ordering::Relaxed);
    }

    fn view(&self) -> LinkView {
        LinkView {
            id: self.id,
            name: self.name.clone(),
            kind: self.kind,
            entity: self.entity.clone(),
            since: self.since,
            credit: self.credit.load(Ordering::Relaxed),
            deliveries: self.deliveries.read(),
        }
    }
}

fn cut(text: &str) -> Box<str> {
    text.chars().take(NAME_CHARS_MAX).collect::<String>().into_boxed_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_tells_of_links_credit_and_names_and_long_names_are_cut() {
        let peer = SocketAddr::from(([127, 0, 0, 1], 4_000));
        let client = Client::new(ClientId(1), peer, Transport::Plain, Timestamp(5));
        client.named(&"ü".repeat(10_000));
        client.proved("RootManageSharedAccessKey");
        let link = client.attached("one", LinkKind::Receiver, "orders", Timestamp(6));
        let other = client.attached("two", LinkKind::Sender, "orders", Timestamp(7));
        link.set_credit(10);
        link.passed(2);
        other.passed(1);
        let view = client.view();
        assert_eq!(view.container.unwrap().chars().count(), NAME_CHARS_MAX);
        assert_eq!(view.key_name.as_deref(), Some("RootManageSharedAccessKey"));
        let links: Vec<_> = view.links.iter().map(|link| (link.credit, link.deliveries)).collect();
        assert_eq!(links, [(8, 2), (0, 1)]);
        client.detached(&link);
        assert_eq!(client.view().links.len(), 1);
    }

    #[tokio::test]
    async fn what_is_asked_of_a_connection_is_kept_until_it_looks_and_only_once() {
        let peer = SocketAddr::from(([127, 0, 0, 1], 4_000));
        let client = Client::new(ClientId(1), peer, Transport::Plain, Timestamp(5));
        let link = client.attached("one", LinkKind::Receiver, "orders", Timestamp(6));
        let node = client.attached("two", LinkKind::Requests, "$cbs", Timestamp(6));
        for _ in 0..1_000 {
            client.ask(Wish::Detach(link.id(), "why"));
        }
        client.ask(Wish::Close("why"));
        client.asked().await;
        assert_eq!(client.take_wishes(), [Wish::Detach(link.id(), "why"), Wish::Close("why")]);
        assert_eq!(client.take_wishes(), []);
        assert!(client.link(link.id()).is_some() && client.link(node.id()).is_none());
    }
}
