//! W6: from the start of the process to the first answer in its protocol, and what it holds then.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::{Figures, Running, count, put};
use crate::peers::peer::{Layout, Peer};

/// What a server does after its first answer shall not count as idle.
const SETTLE: Duration = Duration::from_secs(1);

pub(crate) fn run(peer: &dyn Peer) -> Result<Figures> {
    let running = Running::start(peer, Layout::Plain)?;
    thread::sleep(SETTLE);
    let mut figures = Figures::new();
    put(&mut figures, "start_ms", running.started_in.as_secs_f64() * 1e3);
    put(&mut figures, "idle_mb", count(running.daemon.resident()?) / 1e6);
    Ok(figures)
}
