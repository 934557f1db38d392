//! The thread that sends spans.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tracing::{info, warn};
use ureq::Agent;

use super::headers::Headers;
use super::span::{self, Span};
use super::{Collector, Figures, Spans};

/// Spans that wait to be sent; what comes while so many do is dropped.
const QUEUE_MAX: usize = 8_192;
/// Spans in one request.
const BATCH_MAX: usize = 512;
/// How long a batch gathers.
const GATHER: Duration = Duration::from_secs(1);
/// How long the collector has to take a batch.
const REQUEST_MAX: Duration = Duration::from_secs(3);

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The authorities of the collector's certificate are not known.
    #[error(
        "cannot use the file {} of otlp_ca_file: {source}; it is a PEM file with the certificate of an authority",
        path.display()
    )]
    Authorities {
        /// The file in question.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// There is no thread for it.
    #[error("cannot start the thread that sends spans: {0}")]
    Thread(#[source] io::Error),
}

/// What goes through the queue.
#[derive(Debug)]
pub(super) enum Item {
    Span(Box<Span>),
    /// Send what is gathered, and end.
    Stop,
}

/// The thread that sends spans; told to stop, it sends what it has.
#[derive(Debug)]
pub struct Exporter {
    queue: SyncSender<Item>,
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Exporter {
    /// Starts sending to a collector, whether or not one answers there yet.
    pub fn start(collector: &Collector) -> Result<(Arc<Spans>, Exporter), Error> {
        let Collector { endpoint, headers, .. } = collector;
        let tls = collector.trust()?;
        let (queue, items) = sync_channel(QUEUE_MAX);
        let (figures, stopping) = (Arc::new(Figures::default()), Arc::new(AtomicBool::new(false)));
        let config = Agent::config_builder()
            .timeout_global(Some(REQUEST_MAX))
            // What is meant for one collector goes to no other.
            .max_redirects(0)
            .tls_config(tls)
            .build();
        let sending = Sending {
            items,
            agent: Agent::new_with_config(config),
            url: endpoint.traces(),
            headers: headers.clone(),
            figures: Arc::clone(&figures),
            stopping: Arc::clone(&stopping),
            reachable: true,
        };
        let spawned = thread::Builder::new().name("telemetry".to_owned()).spawn(move || sending.run());
        let thread = spawned.map_err(Error::Thread)?;
        info!(%endpoint, "spans of deliveries are sent to a collector");
        if endpoint.is_in_the_clear() && !headers.is_empty() {
            warn!(%endpoint, "the collector's headers cross the network unencrypted; https would protect them");
        }
        Ok((Arc::new(Spans { queue: queue.clone(), figures }), Exporter { queue, stopping, thread }))
    }

    /// Sends what is left, unless the collector does not take it, and ends. Waits for that: at most for two
    /// requests.
    pub fn stop(self) {
        self.stopping.store(true, Ordering::Relaxed);
        // A thread that is gone needs no word, and one that panicked has said so.
        let _ = self.queue.send(Item::Stop);
        let _ = self.thread.join();
    }
}

struct Sending {
    items: Receiver<Item>,
    agent: Agent,
    url: String,
    headers: Headers,
    figures: Arc<Figures>,
    stopping: Arc<AtomicBool>,
    /// Whether the last batch was taken: only changes are worth a line.
    reachable: bool,
}

impl Sending {
    fn run(mut self) {
        while let Ok(Item::Span(first)) = self.items.recv() {
            let mut batch = vec![*first];
            let stopped = self.gather(&mut batch);
            self.send(&batch);
            if stopped {
                return;
            }
        }
    }

    /// Fills a batch until it is full or its time is over; whether that was the last.
    fn gather(&self, batch: &mut Vec<Span>) -> bool {
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH_MAX {
            let left = until.saturating_duration_since(Instant::now());
            match self.items.recv_timeout(left) {
                Ok(Item::Span(span)) => batch.push(*span),
                Ok(Item::Stop) => return true,
                Err(_) => break,
            }
        }
        false
    }

    fn send(&mut self, batch: &[Span]) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        // Once it was told to stop, a collector that does not answer is not waited for again.
        let given_up = self.stopping.load(Ordering::Relaxed) && !self.reachable;
        let taken = if given_up { Err("not tried".to_owned()) } else { self.post(&span::request(batch)) };
        let figure = if taken.is_ok() { &self.figures.exported } else { &self.figures.refused };
        figure.add(count);
        match (&taken, self.reachable) {
            (Err(error), true) => {
                warn!(url = %self.url, error, "the collector takes no spans; they are dropped");
            }
            (Ok(()), false) => info!(url = %self.url, "the collector takes spans again"),
            _ => {}
        }
        self.reachable = taken.is_ok();
    }

    fn post(&self, body: &[u8]) -> Result<(), String> {
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        for (name, value) in self.headers.iter() {
            request = request.header(name, value);
        }
        // What it answers beside its status says nothing that could be done here.
        request.send(body).map(drop).map_err(|error| error.to_string())
    }
}
