//! What the pools do, live on a terminal or as JSON lines for whoever reads the output.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};
use vorrang_worker::figures::{EntitySnapshot, Snapshot};
use vorrang_worker::pool::Pool;

/// Shows pools.
#[derive(Debug)]
pub(super) struct Status {
    live: bool,
    /// How many lines were drawn last, to draw over them.
    drawn: Mutex<usize>,
}

impl Status {
    pub(super) fn new(json: bool) -> Status {
        Status { live: !json && std::io::stdout().is_terminal(), drawn: Mutex::new(0) }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Shows all pools as they are now.
    pub(super) fn show(&self, pools: &[Pool]) {
        let snapshots: Vec<Snapshot> = pools.iter().map(|pool| pool.figures().snapshot()).collect();
        let mut out = std::io::stdout().lock();
        // A closed output is no reason to stop working.
        if self.live {
            let lines = table(&snapshots);
            let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
            if *drawn > 0 {
                let _ = write!(out, "\x1b[{}A", *drawn);
            }
            for line in &lines {
                let _ = writeln!(out, "\x1b[2K{line}");
            }
            *drawn = lines.len();
        } else {
            for snapshot in &snapshots {
                let _ = writeln!(out, "{}", json_of(snapshot, unix_millis()));
            }
        }
        let _ = out.flush();
    }

    /// Tells something beside the figures.
    pub(super) fn note(&self, text: &str) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        *drawn = 0;
        if self.live {
            eprintln!("{text}");
        } else {
            eprintln!("{}", json!({ "time": unix_millis(), "note": text }));
        }
    }
}

fn unix_millis() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

fn table(pools: &[Snapshot]) -> Vec<String> {
    let mut lines = Vec::new();
    for pool in pools {
        let breaker = if pool.breaker_open { "  paused: unavailable" } else { "" };
        lines.push(format!(
            "{}: {}/{} running, {} set aside ({} in all){breaker}",
            pool.pool, pool.running, pool.slots, pool.set_aside, pool.preempted
        ));
        lines.push(format!(
            "  {:<32} {:>10} {:>8} {:>8} {:>8} {:>10} {:>10}",
            "entity", "completed", "failed", "retried", "dead", "wait", "takes"
        ));
        for entity in &pool.entities {
            lines.push(format!(
                "  {:<32} {:>10} {:>8} {:>8} {:>8} {:>10} {:>10}",
                entity.entity,
                entity.completed,
                entity.failed,
                entity.retried,
                entity.dead_lettered,
                shown(entity.wait_mean),
                shown(entity.service_mean)
            ));
        }
    }
    lines
}

fn shown(duration: Option<Duration>) -> String {
    match duration {
        None => "-".to_owned(),
        Some(duration) if duration >= Duration::from_secs(1) => format!("{:.1} s", duration.as_secs_f64()),
        Some(duration) => format!("{:.1} ms", duration.as_secs_f64() * 1_000.0),
    }
}

fn json_of(pool: &Snapshot, time: u64) -> Json {
    json!({
        "time": time,
        "pool": &*pool.pool,
        "slots": pool.slots,
        "running": pool.running,
        "ready": pool.ready,
        "set_aside": pool.set_aside,
        "preempted": pool.preempted,
        "breaker_open": pool.breaker_open,
        "breaker_opened": pool.breaker_opened,
        "entities": pool.entities.iter().map(entity_json).collect::<Vec<Json>>(),
    })
}

fn entity_json(entity: &EntitySnapshot) -> Json {
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    json!({
        "entity": &*entity.entity,
        "received": entity.received,
        "completed": entity.completed,
        "failed": entity.failed,
        "panicked": entity.panicked,
        "retried": entity.retried,
        "dead_lettered": entity.dead_lettered,
        "suspended": entity.suspended,
        "unavailable": entity.unavailable,
        "given_back": entity.given_back,
        "locks_lost": entity.locks_lost,
        "renewed": entity.renewed,
        "wait_mean_us": entity.wait_mean.map(micros),
        "wait_longest_us": micros(entity.wait_longest),
        "service_mean_us": entity.service_mean.map(micros),
        "service_longest_us": micros(entity.service_longest),
    })
}
