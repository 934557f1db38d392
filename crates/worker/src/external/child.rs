//! A child process that leads a process group: it is stopped, continued and ended with all its descendants.

use std::process::Stdio;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use crate::gate::{Gate, Hook};

/// The process group of a child that has not been waited for, so its number is nobody else's.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
}

impl Group {
    /// Starts `command` as the leader of a new group, with all three streams piped.
    pub(super) fn spawn(command: &mut Command) -> std::io::Result<(Child, Arc<Group>)> {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok((child, Arc::new(Group { leader })))
    }

    /// A hook that stops and continues the group together with the task's gate.
    fn hook(self: &Arc<Self>) -> Hook {
        let group = Arc::clone(self);
        Box::new(move |shut| group.signal(if shut { Signal::STOP } else { Signal::CONT }))
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // A group that is gone has nothing to stop.
            let _ = kill_process_group(leader, signal);
        }
    }
}

/// Ends the group when the task that owns it is dropped, finished or not, and takes the hook off the gate.
#[derive(Debug)]
pub(super) struct Leash<'g> {
    pub(super) group: Arc<Group>,
    gate: &'g Gate,
    kills: bool,
}

impl<'g> Leash<'g> {
    /// Stops and continues the group with `gate`, and ends it with the leash.
    pub(super) fn new(group: &Arc<Group>, gate: &'g Gate) -> Leash<'g> {
        gate.set_hook(Some(group.hook()));
        Leash { group: Arc::clone(group), gate, kills: true }
    }

    /// Lets the group live on.
    pub(super) fn release(mut self) {
        self.kills = false;
    }
}

impl Drop for Leash<'_> {
    fn drop(&mut self) {
        self.gate.set_hook(None);
        if self.kills {
            self.group.signal(Signal::KILL);
        }
    }
}

/// Reads a stream to its end and keeps its last `max` bytes.
pub(super) async fn tail(mut stream: impl AsyncRead + Unpin, max: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; 4_096];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        kept.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let surplus = kept.len().saturating_sub(max);
        if surplus > max {
            kept.drain(..surplus);
        }
    }
    let surplus = kept.len().saturating_sub(max);
    kept.drain(..surplus);
    kept
}

/// Reads a stream to its end and keeps its first `max` bytes.
pub(super) async fn head(mut stream: impl AsyncRead + Unpin, max: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; 4_096];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        let room = max.saturating_sub(kept.len());
        kept.extend_from_slice(chunk.get(..count.min(room)).unwrap_or_default());
    }
    kept
}
