//! A span for every delivery of a message that belongs to a trace, told to an OpenTelemetry collector.
//!
//! Off unless an endpoint is configured. A delivery hands its span to a bounded queue and never waits: when
//! the queue is full, or the collector does not take a batch, spans are dropped and counted. One thread sends
//! them, in batches, because its work is to wait for somebody else's server.

mod context;
mod endpoint;
mod exporter;
mod headers;
mod span;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use ureq::tls::TlsConfig;
use vorrang_amqp::message::{Message, MessageId};
use vorrang_engine::{Delivery, Timestamp};

pub use endpoint::Endpoint;
pub use exporter::{Error, Exporter};
pub use headers::Headers;

use crate::count::Counter;
use context::Context;
use exporter::Item;
use span::Span;

/// Characters of a message's id that are told; Service Bus allows no more.
const MESSAGE_ID_CHARS_MAX: usize = 128;

/// The collector, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The only authorities its certificate may be of; without it, the public ones.
    pub ca_file: Option<PathBuf>,
    /// What it is told with every request.
    pub headers: Headers,
}

impl Collector {
    /// Whether the files it names can be used.
    pub fn check(&self) -> Result<(), Error> {
        self.trust().map(drop)
    }

    /// Whose certificates it may have.
    fn trust(&self) -> Result<TlsConfig, Error> {
        let file = self.ca_file.as_deref();
        trust::trust(file).map_err(|source| {
            // Without a file there is nothing that could be wrong with one.
            let path = file.unwrap_or(Path::new("")).to_path_buf();
            Error::Authorities { path, source }
        })
    }
}

/// Takes spans, without ever waiting.
#[derive(Debug)]
pub struct Spans {
    queue: SyncSender<Item>,
    /// What became of them.
    pub figures: Arc<Figures>,
}

/// What became of spans.
#[derive(Debug, Default)]
pub struct Figures {
    /// Those the collector took.
    pub exported: Counter,
    /// Those for which there was no room in the queue.
    pub crowded_out: Counter,
    /// Those the collector did not take.
    pub refused: Counter,
}

impl Spans {
    /// Tells of a delivery, if the message belongs to a trace.
    pub fn delivered(&self, entity: &str, delivery: &Delivery, message: &Message, now: Timestamp) {
        let Some(context) = Context::of(message) else { return };
        let Ok(id) = getrandom::u64() else { return };
        let message_id = match message.properties().ok().flatten().and_then(|found| found.message_id) {
            Some(MessageId::String(id)) if id.as_str().len() <= MESSAGE_ID_CHARS_MAX => {
                Some(Box::from(id.as_str()))
            }
            _ => None,
        };
        let span = Span {
            context,
            // Nothing but zeros would mean that there is no span.
            id: id.max(1),
            entity: entity.into(),
            message_id,
            sequence: delivery.sequence.0,
            level: delivery.level.0,
            earlier_deliveries: delivery.deliveries,
            enqueued: delivery.enqueued,
            delivered: now,
        };
        if self.queue.try_send(Item::Span(Box::new(span))).is_err() {
            self.figures.crowded_out.add(1);
        }
    }
}
