//! A process under measurement: started, watched through `/proc`, killed when the measurement ends.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command};
use std::time::Duration;

use anyhow::{Context, Result};

/// A child process that does not outlive this value.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts `command`, whose output must be piped; the process and its lines.
    pub(crate) fn start(command: &mut Command) -> Result<(Process, Lines<BufReader<ChildStdout>>)> {
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let output = child.stdout.take().context("the process has no output")?;
        Ok((Process(child), BufReader::new(output).lines()))
    }

    /// CPU time it has used so far, user and system.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let behind_name = text.rsplit_once(')').context("unexpected /proc stat")?.1;
        let fields: Vec<&str> = behind_name.split_whitespace().collect();
        let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        // Fields 14 and 15 of the whole line: user and system time in ticks of 10 ms.
        Ok(Duration::from_millis((ticks(11) + ticks(12)) * 10))
    }

    /// Memory it holds, in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1_024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; a measurement's data is thrown away in any case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
