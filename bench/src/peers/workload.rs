//! The workloads: each runs on any peer and gives figures by name.

pub(crate) mod backlog;
pub(crate) mod connections;
pub(crate) mod fan_out;
pub(crate) mod flow;
pub(crate) mod start;
pub(crate) mod waits;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

use super::daemon::Daemon;
use super::peer::{Clients, Layout, Peer};

/// What was measured, by name; the names are what tables and plots ask for.
pub(crate) type Figures = BTreeMap<String, f64>;

/// How long and how much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Seconds before a measurement.
    pub(crate) warm_up: Duration,
    /// Seconds of a measurement of rate or latency.
    pub(crate) measured: Duration,
    /// Seconds of overload in the workload of waits.
    pub(crate) overload: Duration,
    /// Messages of the backlog.
    pub(crate) backlog: u64,
    /// How long filling the backlog, or draining it, may take; what is done by then counts.
    pub(crate) backlog_patience: Duration,
    /// Connections at once.
    pub(crate) connections: u32,
}

/// The first seconds of a new folder are not like those after them.
pub(crate) const WARM_UP_SECONDS: u64 = 3;

impl Scale {
    /// That of the document.
    pub(crate) const WHOLE: Scale = Scale {
        warm_up: Duration::from_secs(WARM_UP_SECONDS),
        measured: Duration::from_secs(15),
        overload: Duration::from_mins(1),
        backlog: 1_000_000,
        // Long enough for a million at 22,000 a second; of slower peers what they store by then counts.
        backlog_patience: Duration::from_secs(45),
        connections: 10_000,
    };

    /// Short durations everywhere.
    pub(crate) const QUICK: Scale = Scale {
        warm_up: Duration::from_secs(WARM_UP_SECONDS),
        measured: Duration::from_secs(3),
        overload: Duration::from_secs(12),
        backlog: 100_000,
        backlog_patience: Duration::from_secs(10),
        connections: 1_000,
    };

    /// How long filling or draining ten times the backlog may take.
    pub(crate) fn deep_patience(&self) -> Duration {
        3 * self.backlog_patience
    }

    /// The same for one of several turns: shorter, but long enough for a thousand messages one by one.
    pub(crate) fn of_a_turn(&self) -> Scale {
        Scale { measured: self.measured / 3, ..*self }
    }
}

/// Bytes of a body.
pub(crate) const BODY_BYTES: usize = 1_024;
/// Sends of one client on the way, and deliveries it holds.
pub(crate) const WINDOW: u32 = 500;

/// A server that answers and has its queues.
pub(crate) struct Running {
    pub(crate) daemon: Daemon,
    pub(crate) clients: Box<dyn Clients>,
    pub(crate) started_in: Duration,
    folder: TempDir,
}

impl Running {
    /// Starts a peer on an empty folder.
    pub(crate) fn start(peer: &dyn Peer, layout: Layout) -> Result<Running> {
        Running::start_in(peer, layout, TempDir::new()?)
    }

    fn start_in(peer: &dyn Peer, layout: Layout, folder: TempDir) -> Result<Running> {
        let mut daemon = peer.start(folder.path(), layout)?;
        let clients = peer.clients(daemon.port, layout);
        let started_in = daemon.ready(clients.as_ref())?;
        clients.prepare()?;
        Ok(Running { daemon, clients, started_in, folder })
    }

    /// Ends it in good order.
    pub(crate) fn stop(self) -> Result<()> {
        drop(self.clients);
        self.daemon.stop()
    }

    /// Ends it in good order and starts it again on what it left.
    pub(crate) fn restart(self, peer: &dyn Peer, layout: Layout) -> Result<Running> {
        let Running { daemon, clients, folder, .. } = self;
        drop(clients);
        daemon.stop()?;
        Running::start_in(peer, layout, folder)
    }
}

/// A count as a figure.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn count(number: u64) -> f64 {
    number as f64
}

pub(crate) fn put(figures: &mut Figures, name: &str, value: f64) {
    figures.insert(name.to_owned(), value);
}
