//! A real broker process for a test, on a folder of its own and on free ports; and its clients, honest and not.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop, and says what it measured by the clock"
)]

pub(crate) mod bench;
pub(crate) mod honest;
pub(crate) mod pty;
pub(crate) mod raw;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A running broker; killed when dropped.
pub(crate) struct Broker {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Everything it printed up to the ready line.
    pub(crate) announced: Vec<String>,
}

impl Broker {
    /// Starts the binary in development mode with these queues; its data is in `folder`.
    pub(crate) fn start(folder: &Path, queues: &[&str]) -> Broker {
        Broker::launch(serve_queues(folder, folder, queues))
    }

    /// Starts the binary with these arguments; its data is in `folder`.
    pub(crate) fn start_with(folder: &Path, arguments: &[&str]) -> Broker {
        let mut command = serve(folder);
        command.args(arguments);
        Broker::launch(command)
    }

    /// Starts a broker with this command, and waits until it is ready.
    pub(crate) fn launch(mut command: Command) -> Broker {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut announced = Vec::new();
        while announced.last().is_none_or(|line| line != "vorrang is ready") {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "the broker ended before it was ready");
            announced.push(line.trim_end().to_owned());
        }
        Broker { child, output, announced }
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where a door is, by the word in front of its line.
    pub(crate) fn door(&self, name: &str) -> String {
        let line = self.announced.iter().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    /// Bytes of memory it holds.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Sockets it holds open.
    pub(crate) fn sockets(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
        let is_socket = |path: std::path::PathBuf| path.to_string_lossy().starts_with("socket:");
        // One that is closed meanwhile is none.
        open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .filter(|path| is_socket(path.clone()))
            .count()
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop, and returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let id = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `vorrang serve` in development mode with these queues, named in a file in `folder`, and its data in
/// `data`.
pub(crate) fn serve_queues(folder: &Path, data: &Path, queues: &[&str]) -> Command {
    // A short lock, so that messages held by a broker that was killed come again soon.
    serve_queues_locking(folder, data, queues, "PT5S")
}

/// The same with locks of this length.
pub(crate) fn serve_queues_locking(folder: &Path, data: &Path, queues: &[&str], lock: &str) -> Command {
    let config = folder.join("entities.json");
    let properties = format!("\"Properties\":{{\"LockDuration\":\"{lock}\"}}");
    let listed: Vec<String> =
        queues.iter().map(|name| format!("{{\"Name\":\"{name}\",{properties}}}")).collect();
    let listed = listed.join(",");
    let text = format!("{{\"UserConfig\":{{\"Namespaces\":[{{\"Name\":\"t\",\"Queues\":[{listed}]}}]}}}}");
    std::fs::write(&config, text).unwrap();
    let mut command = serve(data);
    command.arg("--dev").arg("--emulator-config").arg(&config);
    command
}

/// `vorrang serve` on free ports with its data in `folder`.
pub(crate) fn serve(folder: &Path) -> Command {
    serve_logging(folder, "error")
}

/// The same with a log of this level.
pub(crate) fn serve_logging(folder: &Path, level: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vorrang"));
    command.args(["serve", "--log", level, "--data-dir"]).arg(folder.join("data"));
    command.args(["--amqp-port", "0", "--amqps-port", "0", "--http-port", "0", "--https-port", "0"]);
    command
}

/// Waits until something holds, looking again and again; stops the test when it never does.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let came = (0..200).any(|_| {
        let holds = holds();
        if !holds {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        holds
    });
    assert!(came, "it never came to be that {what}");
}
