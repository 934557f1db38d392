//! The families about the process, the shard, its log and its connections.

use vorrang_broker::api::Condition;
use vorrang_engine::Timestamp;

use super::super::Site;
use super::text::{Kind, Text, float, seconds};
use crate::transport::Transport;
use crate::watch::Watch;

/// The process.
pub(super) fn process(text: &mut Text, site: &Site) {
    let mut family = text.family("vorrang_build_info", Kind::Gauge, "The version that runs; always 1.");
    family.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let help = "When the process began, in seconds since 1970.";
    text.single("process_start_time_seconds", Kind::Gauge, help, seconds(site.started.0));
}

/// The shard and its log.
pub(super) fn shard(text: &mut Text, site: &Site, condition: &Condition, now: Timestamp) {
    let watch = &site.watch;
    let figures = &watch.disk_figures;
    let micros = |value: u64| float(value) / 1_000_000.0;
    let (buckets, count, sum) = figures.sync_micros.read();
    let mut family =
        text.family("vorrang_log_sync_seconds", Kind::Histogram, "How long making a commit durable took.");
    let buckets = buckets.into_iter().map(|(bound, at_most)| (micros(bound), at_most));
    family.histogram(&[], buckets, count, micros(sum));
    let (buckets, count, sum) = figures.commit_bytes.read();
    let mut family = text.family("vorrang_log_commit_bytes", Kind::Histogram, "How large commits were.");
    let buckets = buckets.into_iter().map(|(bound, at_most)| (float(bound), at_most));
    family.histogram(&[], buckets, count, float(sum));
    let wide = |count: usize| float(u64::try_from(count).unwrap_or(u64::MAX));
    let segment = float(condition.ring.segment_bytes);
    let (inbox, inbox_max) = site.broker.filling();
    let room = if condition.room.is_ok() { 1.0 } else { 0.0 };
    let gauges: [(&'static str, &str, f64); 15] = [
        (
            "vorrang_log_ring_bytes",
            "Bytes of the log's ring in use.",
            wide(condition.ring.used_segments) * segment,
        ),
        (
            "vorrang_log_ring_bytes_max",
            "Bytes the ring may have.",
            wide(condition.ring.ring_segments) * segment,
        ),
        (
            "vorrang_log_extents",
            "Files with messages that were moved out of the ring.",
            wide(condition.extents),
        ),
        (
            "vorrang_log_resting_bytes",
            "Bytes of segments full of waiting messages that stay in place, outside the ring.",
            wide(condition.ring.resting_segments) * segment,
        ),
        (
            "vorrang_snapshot_age_seconds",
            "Time since the last snapshot was begun.",
            seconds(now.since(condition.snapshot_at).0),
        ),
        (
            "vorrang_log_bytes_since_snapshot",
            "Bytes written since then, which a restart would replay.",
            float(condition.bytes_since_snapshot),
        ),
        ("vorrang_log_room", "1 if sends are accepted, 0 if the disk or the ring is too full.", room),
        (
            "vorrang_disk_free_bytes",
            "Free space where the data is; 0 if it cannot be found out.",
            float(watch.disk.free_bytes().unwrap_or_default()),
        ),
        ("vorrang_shard_inbox_requests", "Requests that wait for the shard.", wide(inbox)),
        ("vorrang_shard_inbox_requests_max", "Requests that may wait before clients do.", wide(inbox_max)),
        (
            "vorrang_shard_held_events",
            "Answers and deliveries that wait for the disk.",
            wide(condition.held_events),
        ),
        ("vorrang_locks", "Message locks that are held.", float(u64::from(condition.locks))),
        (
            "vorrang_shard_connections",
            "Connections to the shard: of clients, and of the server's own.",
            wide(condition.connections),
        ),
        ("vorrang_connections_max", "AMQP connections that may be open.", wide(watch.amqp_places.max())),
        ("vorrang_http_connections_max", "HTTP connections that may be open.", wide(watch.http_places.max())),
    ];
    for (name, help, value) in gauges {
        text.single(name, Kind::Gauge, help, value);
    }
    let counters: [(&'static str, &str, u64); 3] = [
        ("vorrang_log_commits_total", "Commits since the data was created.", condition.commits),
        (
            "vorrang_log_background_bytes_total",
            "Bytes written to snapshots and for messages moved out of the ring.",
            figures.other_bytes.read(),
        ),
        ("vorrang_disk_errors_total", "Disk calls that failed.", figures.errors.read()),
    ];
    for (name, help, value) in counters {
        text.single(name, Kind::Counter, help, float(value));
    }
}

/// Who is connected, and who was not let in.
pub(super) fn connections(text: &mut Text, watch: &Watch) {
    let wide = |count: usize| float(u64::try_from(count).unwrap_or(u64::MAX));
    let (bytes_in, bytes_out, links) = watch.registry.traffic();
    let totals = watch.registry.totals();
    text.single(
        "vorrang_connections",
        Kind::Gauge,
        "AMQP connections that are open.",
        wide(watch.registry.len()),
    );
    let help = "HTTP connections that are open.";
    text.single("vorrang_http_connections", Kind::Gauge, help, wide(watch.http_places.taken()));
    let mut family = text.family("vorrang_links", Kind::Gauge, "AMQP links that are attached.");
    for (kind, count) in links {
        family.count(&[("kind", kind.as_str())], count);
    }
    let help = "AMQP connections that were opened.";
    let mut family = text.family("vorrang_connections_opened_total", Kind::Counter, help);
    for transport in [Transport::Plain, Transport::Tls, Transport::WebSocket] {
        family.count(&[("transport", &transport.to_string())], totals.opened(transport).read());
    }
    let help = "Connections and logins that were refused.";
    let mut family = text.family("vorrang_refused_total", Kind::Counter, help);
    let turned_away = watch.amqp_places.turned_away().saturating_add(watch.http_places.turned_away());
    let refused = [
        ("too_many", turned_away),
        ("tls", totals.tls_refused.read()),
        ("login", totals.logins_refused.read()),
        ("token", totals.tokens_refused.read()),
    ];
    for (reason, count) in refused {
        family.count(&[("reason", reason)], count);
    }
    let mut family = text.family("vorrang_network_bytes_total", Kind::Counter, "Bytes of AMQP connections.");
    family.count(&[("direction", "in")], bytes_in);
    family.count(&[("direction", "out")], bytes_out);
}

/// Spans for the collector, if there is one.
pub(super) fn telemetry(text: &mut Text, watch: &Watch) {
    let Some(figures) = watch.spans.as_ref().map(|spans| &spans.figures) else { return };
    let help = "Spans of deliveries that the collector took.";
    text.single("vorrang_spans_exported_total", Kind::Counter, help, float(figures.exported.read()));
    let help = "Spans of deliveries that were dropped.";
    let mut family = text.family("vorrang_spans_dropped_total", Kind::Counter, help);
    family.count(&[("reason", "queue_full")], figures.crowded_out.read());
    family.count(&[("reason", "collector")], figures.refused.read());
}
