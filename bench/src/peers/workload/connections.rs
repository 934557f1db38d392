//! W7: many connections, each with a receiver that waits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::{Figures, Running, Scale, count, put};
use crate::connections::raise_descriptor_limit;
use crate::peers::peer::{Clients, Layout, Peer, Receiver};

/// Threads that connect.
const THREADS: u32 = 8;
/// What a server does with a new connection after its answer.
const SETTLE: Duration = Duration::from_secs(1);

pub(crate) fn run(peer: &dyn Peer, scale: &Scale) -> Result<Figures> {
    // Servers inherit the limit.
    raise_descriptor_limit(u64::from(scale.connections) + 200)?;
    let running = Running::start(peer, Layout::Crowd)?;
    let idle = running.daemon.resident()?;
    let began = Instant::now();
    // A server that is at its end may take long for each connection: who is refused first speaks for all.
    let (made, failed) = (AtomicU32::new(0), AtomicBool::new(false));
    let held = thread::scope(|scope| -> Result<Vec<Box<dyn Receiver>>> {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    (0..scale.connections / THREADS)
                        .take_while(|_| !failed.load(Ordering::Relaxed))
                        .map(|_| {
                            let receiver = waiting(running.clients.as_ref())
                                .inspect_err(|_| failed.store(true, Ordering::Relaxed))
                                .with_context(|| {
                                    format!("after {} connections", made.load(Ordering::Relaxed))
                                })?;
                            made.fetch_add(1, Ordering::Relaxed);
                            Ok(receiver)
                        })
                        .collect::<Result<Vec<_>>>()
                })
            })
            .collect();
        let mut held = Vec::new();
        for thread in threads {
            held.extend(thread.join().map_err(|_| anyhow!("a client panicked"))??);
        }
        Ok(held)
    })?;
    let storm = began.elapsed().as_secs_f64();
    thread::sleep(SETTLE);
    let memory = running.daemon.resident()?.saturating_sub(idle);
    let connections = count(u64::try_from(held.len())?);
    let mut figures = Figures::new();
    put(&mut figures, "connections", connections);
    put(&mut figures, "connects_per_second", connections / storm);
    put(&mut figures, "kb_per_connection", count(memory) / 1e3 / connections.max(1.0));
    Ok(figures)
}

/// A receiver that waits for a message: it has granted credit, or asked for one.
fn waiting(clients: &dyn Clients) -> Result<Box<dyn Receiver>> {
    let mut receiver = clients.receiver(1)?;
    receiver.poll(Duration::from_micros(1), &mut |_| {})?;
    Ok(receiver)
}
