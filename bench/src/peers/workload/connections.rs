//! W7: many connections, each with a receiver that waits.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::{Figures, Running, Scale, count, put};
use crate::connections::raise_descriptor_limit;
use crate::peers::peer::{Layout, Peer, Receiver};

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
    let held = thread::scope(|scope| -> Result<Vec<Box<dyn Receiver>>> {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    (0..scale.connections / THREADS)
                        .map(|_| {
                            let mut receiver = running.clients.receiver(1)?;
                            // Grants credit or asks for a message, as a receiver that waits has done.
                            receiver.poll(Duration::from_micros(1), &mut |_| {})?;
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
