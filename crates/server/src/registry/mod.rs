//! Who is connected: every AMQP connection and its links, for listings, metrics and closing by hand.
//!
//! A connection enters when it is accepted and leaves when its task ends; links come and go with attach and
//! detach. Those moments take a lock. What changes with every message or frame is an atomic that only its
//! own connection writes, so that watching costs the hot path a store and never a wait.

mod client;
mod totals;

pub use client::{Client, ClientLink, LinkKind, LinkView, View, Wish};
pub use totals::Totals;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use vorrang_engine::Timestamp;

use crate::transport::Transport;

/// Changes that a slow listener may lag behind; then it misses the oldest and is told how many.
const CHANGES_MAX: usize = 256;

/// A connection, numbered in the order of arrival. Numbers are not used again while the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A connection came or went.
#[derive(Debug, Clone)]
pub struct Change {
    /// Whether it came.
    pub opened: bool,
    /// Which it is.
    pub client: Arc<Client>,
}

/// Everybody who is connected.
#[derive(Debug)]
pub struct Registry {
    next: AtomicU64,
    clients: Mutex<BTreeMap<ClientId, Arc<Client>>>,
    changes: broadcast::Sender<Change>,
    totals: Totals,
}

impl Default for Registry {
    fn default() -> Self {
        Registry {
            next: AtomicU64::new(1),
            clients: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES_MAX),
            totals: Totals::default(),
        }
    }
}

impl Registry {
    /// A connection enters. It leaves when what this returns is dropped.
    pub fn enter(self: &Arc<Self>, peer: SocketAddr, transport: Transport, now: Timestamp) -> Entered {
        let id = ClientId(self.next.fetch_add(1, Ordering::Relaxed));
        let client = Arc::new(Client::new(id, peer, transport, now));
        self.totals.opened(transport).add(1);
        self.lock().insert(id, Arc::clone(&client));
        self.tell(true, &client);
        Entered { registry: Arc::clone(self), client }
    }

    /// Everybody, in the order of arrival, after one of them; at most `top`.
    #[must_use]
    pub fn list(&self, after: Option<ClientId>, top: usize) -> Vec<Arc<Client>> {
        let from = after.map_or(0, |after| after.0.saturating_add(1));
        self.lock().range(ClientId(from)..).take(top).map(|(_, client)| Arc::clone(client)).collect()
    }

    /// One of them.
    #[must_use]
    pub fn find(&self, id: ClientId) -> Option<Arc<Client>> {
        self.lock().get(&id).cloned()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nobody is connected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Bytes read from and written to connections since the process began, and how many links of each kind
    /// there are now.
    #[must_use]
    pub fn traffic(&self) -> (u64, u64, BTreeMap<LinkKind, u64>) {
        let mut links = LinkKind::ALL.into_iter().map(|kind| (kind, 0)).collect();
        let clients = self.lock();
        let (mut bytes_in, mut bytes_out) = (self.totals.bytes_in.read(), self.totals.bytes_out.read());
        for client in clients.values() {
            bytes_in = bytes_in.saturating_add(client.bytes_in.read());
            bytes_out = bytes_out.saturating_add(client.bytes_out.read());
            client.count_links(&mut links);
        }
        (bytes_in, bytes_out, links)
    }

    /// What was counted since the process began.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Arrivals and departures from now on.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn tell(&self, opened: bool, client: &Arc<Client>) {
        // Nobody may be listening.
        let _ = self.changes.send(Change { opened, client: Arc::clone(client) });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClientId, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place in the registry.
#[derive(Debug)]
pub struct Entered {
    registry: Arc<Registry>,
    client: Arc<Client>,
}

impl Entered {
    /// The connection.
    #[must_use]
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Where refusals are counted.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.registry.totals
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut clients = self.registry.lock();
        clients.remove(&self.client.id());
        // Under the lock, so that whoever adds up both sees its bytes once.
        self.registry.totals.left(&self.client);
        drop(clients);
        self.registry.tell(false, &self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 4_000))
    }

    #[test]
    fn whoever_enters_is_listed_until_it_leaves_and_both_are_told() {
        let registry = Arc::new(Registry::default());
        let mut changes = registry.changes();
        let first = registry.enter(peer(), Transport::Plain, Timestamp(1));
        let second = registry.enter(peer(), Transport::Tls, Timestamp(2));
        let ids = |registry: &Registry, after, top| {
            registry.list(after, top).iter().map(|client| client.id().0).collect::<Vec<_>>()
        };
        assert_eq!(ids(&registry, None, 10), [1, 2]);
        assert_eq!(ids(&registry, None, 1), [1]);
        assert_eq!(ids(&registry, Some(ClientId(1)), 10), [2]);
        drop(first);
        assert_eq!(ids(&registry, None, 10), [2]);
        second.client().bytes_in.add(5);
        second.client().attached("link", LinkKind::Sender, "orders", Timestamp(3));
        let (bytes_in, bytes_out, links) = registry.traffic();
        assert_eq!((bytes_in, bytes_out, links[&LinkKind::Sender], links[&LinkKind::Receiver]), (5, 0, 1, 0));
        drop(second);
        assert!(registry.is_empty());
        assert_eq!(registry.traffic().0, 5, "what has gone still counts");
        let mut told = Vec::new();
        while let Ok(change) = changes.try_recv() {
            told.push((change.client.id().0, change.opened));
        }
        assert_eq!(told, [(1, true), (2, true), (1, false), (2, false)]);
        let opened = |transport| registry.totals().opened(transport).read();
        assert_eq!((opened(Transport::Plain), opened(Transport::Tls)), (1, 1));
    }
}
