//! A server's processes: started for a measurement, watched through `/proc` as a whole tree, ended after it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::peer::Clients;

/// How long a server may take to answer: the slow ones start a virtual machine, or replay a large log.
const READY_WAIT: Duration = Duration::from_mins(4);
/// Between two looks whether it answers: short against the fastest start.
const PROBE_PAUSE: Duration = Duration::from_micros(500);
/// How long it may take to end by itself.
const STOP_WAIT: Duration = Duration::from_mins(1);

/// The processes that were started and not ended yet.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// From now on, whoever ends this program with a signal ends its servers, too.
pub(crate) fn end_with_us() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        end(&RUNNING.lock().unwrap_or_else(PoisonError::into_inner));
        // As a shell says it of a program that a signal has ended.
        std::process::exit(130);
    })?;
    Ok(())
}

/// Ends processes and all that descend from them.
fn end(processes: &[u32]) {
    for process in processes.iter().flat_map(|process| tree(*process).unwrap_or_default()) {
        tell(process, Signal::KILL);
    }
}

/// A running server, and what it needs beside it.
#[derive(Debug)]
pub(crate) struct Daemon {
    /// The server first.
    children: Vec<Child>,
    log: PathBuf,
    started: Instant,
    /// Where it listens.
    pub(crate) port: u16,
}

impl Daemon {
    /// Starts a server whose output goes to a log file. `beside` are processes it needs, started before.
    pub(crate) fn start(
        command: &mut Command,
        log: PathBuf,
        port: u16,
        beside: Vec<Child>,
    ) -> Result<Daemon> {
        let output = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let started = Instant::now();
        let server =
            command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let mut children = vec![server];
        children.extend(beside);
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).extend(children.iter().map(Child::id));
        Ok(Daemon { children, log, started, port })
    }

    /// Waits until it answers; how long that took from its start.
    pub(crate) fn ready(&mut self, clients: &dyn Clients) -> Result<Duration> {
        loop {
            let refused = match clients.probe() {
                Ok(()) => return Ok(self.started.elapsed()),
                Err(refused) => refused,
            };
            let ended =
                self.children.first_mut().and_then(|child| child.try_wait().transpose()).transpose()?;
            if let Some(status) = ended {
                bail!("it ended ({status}) before it was ready: {}", self.last_words());
            }
            if self.started.elapsed() > READY_WAIT {
                bail!("it did not answer within {READY_WAIT:?}: {refused}; {}", self.last_words());
            }
            thread::sleep(PROBE_PAUSE);
        }
    }

    /// The server's process, from which the others descend.
    pub(crate) fn server(&self) -> Result<u32> {
        self.children.first().map(Child::id).ok_or_else(|| anyhow!("no process"))
    }

    /// Since it was started.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// CPU time of all its processes that live, user and system.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        self.sum(cpu_of)
    }

    /// Memory of all its processes, in bytes. What they share is divided among them (`Pss`), so that it counts once.
    pub(crate) fn resident(&self) -> Result<u64> {
        self.sum(resident_of)
    }

    fn sum<T: std::iter::Sum>(&self, of: impl Fn(u32) -> Option<T>) -> Result<T> {
        // A process may end between being listed and being read.
        Ok(tree(self.server()?)?.into_iter().filter_map(of).sum())
    }

    /// Asks it to end and waits until it has.
    pub(crate) fn stop(mut self) -> Result<()> {
        let Some(server) = self.children.first_mut() else { return Ok(()) };
        tell(server.id(), Signal::TERM);
        let asked = Instant::now();
        while server.try_wait()?.is_none() {
            if asked.elapsed() > STOP_WAIT {
                bail!("it did not end within {STOP_WAIT:?}");
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let ours: Vec<u32> = self.children.iter().map(Child::id).collect();
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|process| !ours.contains(process));
        for child in &mut self.children {
            // The number of one that has ended may belong to a stranger by now.
            if !matches!(child.try_wait(), Ok(None)) {
                continue;
            }
            let below = tree(child.id()).unwrap_or_default();
            let _ = child.kill();
            let _ = child.wait();
            // Processes that a server does not take with it when it is killed.
            for process in below.into_iter().skip(1) {
                tell(process, Signal::KILL);
            }
        }
    }
}

/// A port nobody listens on.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn tell(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// A process and all that descend from it.
fn tree(root: u32) -> Result<Vec<u32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(text) = fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
        if let Some(parent) = fields(&text).get(1).and_then(|text| text.parse::<u32>().ok()) {
            parents.push((process, parent));
        }
    }
    Ok(descendants(root, &parents))
}

/// The root and everything below it, by pairs of a process and its parent.
fn descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut place = 0;
    while let Some(parent) = found.get(place).copied() {
        found.extend(
            parents.iter().filter(|(child, of)| *of == parent && *child != parent).map(|(child, _)| *child),
        );
        place += 1;
    }
    found
}

/// The fields of a `stat` line behind the name, which may contain anything.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map(|(_, behind)| behind.split_whitespace().collect()).unwrap_or_default()
}

fn cpu_of(process: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields = fields(&text);
    let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<u64>().ok());
    // Fields 14 and 15 of the whole line: user and system time in ticks of 10 ms.
    Some(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}

fn resident_of(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_children_of_children_and_no_strangers() {
        let parents = [(2, 1), (3, 2), (4, 1), (5, 9), (6, 3)];
        assert_eq!(descendants(2, &parents), [2, 3, 6]);
        assert_eq!(descendants(9, &parents), [9, 5]);
        assert_eq!(descendants(7, &parents), [7]);
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        assert_eq!(fields("12 (a) b (c)) S 7 8"), ["S", "7", "8"]);
        assert!(fields("nothing").is_empty());
    }

    /// A shell, and the sleeper it started.
    fn shell(folder: &std::path::Path) -> (Daemon, u32) {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & wait"]);
        let daemon = Daemon::start(&mut command, folder.join("log"), 0, Vec::new()).unwrap();
        let root = daemon.children[0].id();
        let began = Instant::now();
        loop {
            if let Some(child) = tree(root).unwrap().get(1).copied() {
                return (daemon, child);
            }
            assert!(began.elapsed() < Duration::from_secs(10), "the shell started nothing");
            thread::yield_now();
        }
    }

    fn wait_until_it_ended(process: u32) {
        let ended = || {
            let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            matches!(fields(&state).first(), None | Some(&"Z" | &"X"))
        };
        let began = Instant::now();
        while !ended() {
            assert!(began.elapsed() < Duration::from_secs(10), "the sleeper outlived its server");
            thread::yield_now();
        }
    }

    #[test]
    fn the_tree_of_a_shell_counts_what_it_started_and_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (daemon, child) = shell(folder.path());
        assert!(daemon.resident().unwrap() > 0);
        drop(daemon);
        wait_until_it_ended(child);
    }

    #[test]
    fn what_runs_is_known_as_long_as_it_does_and_ends_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let (daemon, child) = shell(folder.path());
        let root = daemon.children[0].id();
        let is_known = || RUNNING.lock().unwrap().contains(&root);
        assert!(is_known());
        end(&[root]);
        wait_until_it_ended(child);
        drop(daemon);
        assert!(!is_known());
    }
}
