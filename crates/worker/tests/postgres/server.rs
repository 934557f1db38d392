//! A PostgreSQL server of our own: its data in a temporary folder, reached by a socket in there, so no port is taken.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// PostgreSQL refuses to run as root; then it runs as `nobody`.
const NOBODY: u32 = 65_534;
const SYSTEM: &str = "/usr/lib/postgresql";

pub(crate) struct Server {
    folder: TempDir,
    programs: PathBuf,
    as_nobody: bool,
    running: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let folder = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
        let as_nobody = rustix::process::geteuid().is_root();
        if as_nobody {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut server = Server { folder, programs: programs(), as_nobody, running: None };
        let made = server
            .command("initdb")
            .args(["--auth=trust", "--username=worker", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(server.data())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success(), "initdb ended with {made}");
        server.run();
        server
    }

    /// Ends the server without a word, as a power failure would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            // The whole group: a backend that went on would keep the shared memory.
            let group = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn restart(&mut self) {
        self.kill();
        self.run();
    }

    pub(crate) fn config(&self) -> String {
        format!("host={} user=worker dbname=postgres", self.folder.path().display())
    }

    fn run(&mut self) {
        let mut child = self
            .command("postgres")
            .args(["-c", "listen_addresses=", "-D"])
            .arg(self.data())
            .arg("-k")
            .arg(self.folder.path())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut seen = Vec::new();
        loop {
            let line =
                said.next().unwrap_or_else(|| panic!("PostgreSQL ended:\n{}", seen.join("\n"))).unwrap();
            if line.contains("ready to accept connections") {
                break;
            }
            seen.push(line);
        }
        // What it says later must not fill the pipe.
        std::thread::spawn(move || said.for_each(drop));
        self.running = Some(child);
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path());
        if self.as_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where the server's programs are: Debian keeps them out of the path, by version.
fn programs() -> PathBuf {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    if let Ok(versions) = std::fs::read_dir(SYSTEM) {
        folders.extend(versions.filter_map(|version| Some(version.ok()?.path().join("bin"))));
    }
    let here = |folder: &&PathBuf| has(folder, "initdb") && has(folder, "postgres");
    folders.iter().find(here).cloned().unwrap_or_else(|| {
        panic!("no PostgreSQL server here: install Debian's package `postgresql`, or have `initdb` and `postgres` in PATH")
    })
}

fn has(folder: &Path, program: &str) -> bool {
    folder.join(program).is_file()
}
