//! W4: a backlog: what each waiting message costs in memory, how long a restart takes, how fast it drains.
//!
//! Restart is counted from the start of the process to the first message a receiver has in hand.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{Figures, Running, count, flow, put};
use crate::peers::peer::{Layout, Peer};

const CLIENTS: u32 = 4;
/// How long the backlog has lain when its memory is taken: what is asked for is the cost of waiting, not of having just
/// been sent.
const REST: Duration = Duration::from_secs(5);
/// How long the first message may take after a restart.
const FIRST_WAIT: Duration = Duration::from_mins(2);

pub(crate) fn run(peer: &dyn Peer, backlog: u64, patience: Duration) -> Result<Figures> {
    let running = Running::start(peer, Layout::Plain)?;
    let idle = running.daemon.resident()?;
    let began = Instant::now();
    let stored = flow::fill(&running, backlog, u64::from(CLIENTS), patience, None)?;
    let filled_in = began.elapsed().as_secs_f64();
    thread::sleep(REST);
    let memory = running.daemon.resident()?.saturating_sub(idle);
    let running = running.restart(peer, Layout::Plain)?;
    let mut receiver = running.clients.receiver(1)?;
    let mut first = None;
    while first.is_none() {
        receiver.poll(Duration::from_millis(1), &mut |_| first = first.or(Some(running.daemon.age())))?;
        if running.daemon.age() > FIRST_WAIT {
            bail!("no message within {FIRST_WAIT:?} after the restart");
        }
    }
    drop(receiver);
    let after = running.daemon.resident()?;
    let (drained, time) = flow::drain(&running, stored.saturating_sub(1), CLIENTS, patience)?;
    let mut figures = Figures::new();
    put(&mut figures, "stored", count(stored));
    put(&mut figures, "fill_rate", count(stored) / filled_in);
    put(&mut figures, "bytes_per_message", count(memory) / count(stored).max(1.0));
    put(&mut figures, "memory_after_restart_mb", count(after) / 1e6);
    put(&mut figures, "restart_ms", first.unwrap_or_default().as_secs_f64() * 1e3);
    put(&mut figures, "drained", count(drained));
    put(&mut figures, "drain_rate", count(drained) / time.as_secs_f64().max(1e-3));
    Ok(figures)
}
