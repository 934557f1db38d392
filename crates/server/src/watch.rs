//! What is watched beside the broker itself, for all who report it: metrics, the JSON API, probes.

use std::sync::Arc;

use vorrang_log::disk::Disk;

use crate::http::metrics::Scrapes;
use crate::measured_disk::Figures;
use crate::places::Places;
use crate::registry::Registry;
use crate::targets::Board;
use crate::telemetry::Spans;

/// Everything that is watched.
#[derive(Debug)]
pub struct Watch {
    /// Who is connected.
    pub registry: Arc<Registry>,
    /// Who is told of deliveries that belong to a trace.
    pub spans: Option<Arc<Spans>>,
    /// How every class stands against its target.
    pub targets: Arc<Board>,
    /// The disk under the log.
    pub disk: Arc<dyn Disk>,
    /// What it was seen doing.
    pub disk_figures: Arc<Figures>,
    /// Places for AMQP connections, on whatever transport.
    pub amqp_places: Arc<Places>,
    /// Places for HTTP connections.
    pub http_places: Arc<Places>,
    /// The metrics text made last.
    pub scrapes: Scrapes,
    /// Whether anybody may read the metrics, wherever they come from.
    pub metrics_open: bool,
}
