//! A broker for one suite: the release binary on free ports, in a data directory of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::chore::root;

/// The entities of all suites, in the form the emulator's users have them.
const ENTITIES: &str = "conformance/entities.json";
/// A start takes a fraction of a second; this is for a machine that is busy compiling.
const READY_MAX: Duration = Duration::from_secs(30);
/// How much of the log is shown when the broker does not get ready.
const LOG_TAIL_LINES: usize = 30;
/// What the broker prints when clients can connect.
const READY_LINE: &str = "vorrang is ready";
const DOORS: [&str; 4] = ["amqp", "amqps", "http", "https"];

/// A running broker. Dropping it ends the process and removes its data.
pub(super) struct Broker {
    process: Child,
    binary: PathBuf,
    data: PathBuf,
    ports: Ports,
}

/// The port of each door, as the broker printed them.
type Ports = [u16; DOORS.len()];

impl Broker {
    /// Starts the broker and returns when it says that it is ready.
    pub(super) fn start(binary: &Path, folder: &Path, title: &str) -> Result<Self> {
        let data = folder.join(format!("{title}-data"));
        let log = folder.join(format!("{title}.log"));
        remove_folder(&data)?;
        fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
        let mut command = Command::new(binary);
        command.args(["serve", "--dev", "--host", "127.0.0.1", "--data-dir"]).arg(&data);
        command.arg("--emulator-config").arg(root().join(ENTITIES));
        for door in DOORS {
            command.args([&format!("--{door}-port"), "0"]);
        }
        let log_file = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log_file.try_clone()?);
        let process = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        // From here on an early return drops the broker and with it the process.
        let mut broker = Broker { process, binary: binary.to_path_buf(), data, ports: Ports::default() };
        let output = broker.process.stdout.take().context("the broker's output is piped")?;
        broker.ports = wait_until_ready(output, log_file)
            .with_context(|| format!("the broker did not get ready; its log ends with:\n{}", tail(&log)))?;
        Ok(broker)
    }

    /// Tells a suite where the broker is.
    pub(super) fn introduce_to(&self, command: &mut Command) {
        for (door, port) in DOORS.iter().zip(self.ports) {
            command.env(format!("VORRANG_{}_PORT", door.to_uppercase()), port.to_string());
        }
        let certificate = self.data.join("development-certificate.pem");
        command.env("VORRANG_BINARY", &self.binary);
        command.env("VORRANG_ENTITIES", root().join(ENTITIES));
        command.env("NODE_EXTRA_CA_CERTS", &certificate).env("VORRANG_CERTIFICATE", certificate);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself, which the tests will have reported.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Err(error) = remove_folder(&self.data) {
            eprintln!("{error:#}");
        }
    }
}

/// Reads what the broker prints, into the log, until it has named its doors and said that it is ready.
fn wait_until_ready(output: impl Read + Send + 'static, mut log: File) -> Result<Ports> {
    let (lines, printed) = mpsc::channel();
    // The thread goes on after the start, so that the broker never waits for a reader of its output.
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // A log that cannot be written must not stop the broker; nobody may listen any more either.
            let _ = writeln!(log, "{line}");
            let _ = lines.send(line);
        }
    });
    let give_up_at = Instant::now() + READY_MAX;
    let mut doors = Doors::default();
    loop {
        match printed.recv_timeout(give_up_at.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some(ports) = doors.read(&line) {
                    return Ok(ports);
                }
            }
            Err(RecvTimeoutError::Timeout) => bail!("not ready within {} s", READY_MAX.as_secs()),
            Err(RecvTimeoutError::Disconnected) => bail!("it ended instead"),
        }
    }
}

/// Collects the doors named in the broker's output, one per line: `amqp    127.0.0.1:40123`.
#[derive(Debug, Default)]
struct Doors {
    ports: [Option<u16>; DOORS.len()],
}

impl Doors {
    /// Takes note of one line; the ports, once this line says that the broker is ready and all are known.
    fn read(&mut self, line: &str) -> Option<Ports> {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(address)) = (words.next(), words.next()) {
            for (door, known) in DOORS.iter().zip(&mut self.ports) {
                if *door == name {
                    *known = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
                }
            }
        }
        if line != READY_LINE {
            return None;
        }
        let mut ports = Ports::default();
        for (port, known) in ports.iter_mut().zip(self.ports) {
            *port = known?;
        }
        Some(ports)
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(LOG_TAIL_LINES)..).unwrap_or_default().join("\n")
}

fn remove_folder(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_broker_is_ready_when_it_says_so_and_all_doors_are_known() {
        let mut doors = Doors::default();
        assert_eq!(doors.read("amqp    127.0.0.1:1"), None);
        assert_eq!(doors.read("amqps   [::1]:2"), None);
        assert_eq!(doors.read(READY_LINE), None);
        assert_eq!(doors.read("http    127.0.0.1:3"), None);
        assert_eq!(doors.read("https   127.0.0.1:4 (and AMQP over WebSocket)"), None);
        assert_eq!(doors.read("connect with  Endpoint=sb://127.0.0.1:1;"), None);
        assert_eq!(doors.read(READY_LINE), Some([1, 2, 3, 4]));
    }

    #[test]
    fn a_broker_that_ends_at_once_is_an_error_that_shows_its_log() {
        let folder = std::env::temp_dir().join(format!("vorrang-xtask-{}", std::process::id()));
        let error = Broker::start(Path::new("/bin/false"), &folder, "planted").err().unwrap();
        assert!(format!("{error:#}").contains("it ended instead"), "{error:#}");
        assert!(!folder.join("planted-data").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
