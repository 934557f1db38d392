//! The broker under test, as a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Result, bail};
use tempfile::TempDir;

use crate::process::Process;

/// A broker that was started for a measurement, and is killed after it.
#[derive(Debug)]
pub(crate) struct Broker {
    process: Process,
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
        let mut command = Command::new(&binary);
        command
            .args(["serve", "--dev", "--log", "warn"])
            .args(["--amqp-port", "0", "--amqps-port", "0", "--http-port", "0", "--https-port", "0"])
            .arg("--data-dir")
            .arg(data.path().join("data"))
            .arg("--emulator-config")
            .arg(&config)
            .stdout(Stdio::piped());
        let (process, lines) = Process::start(&mut command)?;
        let mut address = None;
        let mut ready = false;
        for line in lines {
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
            Some(address) => Ok(Broker { process, address, started_in, _data: data }),
            None => bail!("the broker ended before it was ready"),
        }
    }

    /// CPU time the broker has used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        self.process.cpu()
    }

    /// Memory the broker holds, in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        self.process.resident()
    }
}

/// The binary of that name in the folder this program was built into.
pub(crate) fn beside_us(name: &str) -> Result<PathBuf> {
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
