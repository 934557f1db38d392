//! The broker under test, as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// A broker that was started for a measurement, and is killed after it.
#[derive(Debug)]
pub(crate) struct Broker {
    child: Child,
    /// Where it listens.
    pub(crate) address: String,
    /// From the start of the process to its ready line.
    pub(crate) started_in: Duration,
    _data: TempDir,
}

impl Broker {
    /// Starts the release binary with these queues, on a data directory below `folder`.
    pub(crate) fn start(binary: Option<&Path>, folder: Option<&Path>, queues: &[String]) -> Result<Broker> {
        let binary = match binary {
            Some(binary) => binary.to_path_buf(),
            None => beside_us("vorrang")?,
        };
        let data = match folder {
            Some(folder) => TempDir::new_in(folder)?,
            None => TempDir::new()?,
        };
        let config = data.path().join("entities.json");
        let listed: Vec<String> = queues.iter().map(|name| format!("{{\"Name\":\"{name}\"}}")).collect();
        let text = format!(
            "{{\"UserConfig\":{{\"Namespaces\":[{{\"Name\":\"bench\",\"Queues\":[{}]}}]}}}}",
            listed.join(",")
        );
        fs::write(&config, text)?;
        let started = Instant::now();
        let mut child = Command::new(&binary)
            .args(["serve", "--dev", "--log", "warn"])
            .args(["--amqp-port", "0", "--amqps-port", "0", "--http-port", "0", "--https-port", "0"])
            .arg("--data-dir")
            .arg(data.path().join("data"))
            .arg("--emulator-config")
            .arg(&config)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let output = child.stdout.take().context("the broker has no output")?;
        let mut address = None;
        let mut ready = false;
        for line in BufReader::new(output).lines() {
            let line = line?;
            if let Some(found) = line.strip_prefix("amqp ") {
                address = Some(found.trim().to_owned());
            }
            if line == "vorrang is ready" {
                ready = true;
                break;
            }
        }
        let started_in = started.elapsed();
        match address.filter(|_| ready) {
            Some(address) => Ok(Broker { child, address, started_in, _data: data }),
            None => bail!("the broker ended before it was ready"),
        }
    }

    /// CPU time the broker has used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let behind_name = text.rsplit_once(')').context("unexpected /proc stat")?.1;
        let fields: Vec<&str> = behind_name.split_whitespace().collect();
        let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        // Fields 14 and 15 of the whole line: user and system time in ticks of 10 ms.
        Ok(Duration::from_millis((ticks(11) + ticks(12)) * 10))
    }

    /// Memory the broker holds, in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1_024)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may have ended by itself; a measurement's data is thrown away in any case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary of that name in the folder this program was built into.
fn beside_us(name: &str) -> Result<PathBuf> {
    let ours = env::current_exe()?;
    let path = ours.with_file_name(name);
    if !path.exists() {
        bail!(
            "{} is missing: build it with `cargo build --release`, or name one with --broker",
            path.display()
        );
    }
    Ok(path)
}
