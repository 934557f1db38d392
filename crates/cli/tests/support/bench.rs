//! A broker and the commands of the same binary against it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::Broker;

/// A broker and the way to run commands against it.
pub(crate) struct Bench {
    pub(crate) broker: Broker,
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn start() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let broker = Broker::start_with(folder.path(), &["--dev"]);
        Bench { broker, folder }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let http = self.broker.door("http");
        let port = http.rsplit_once(':').unwrap().1.to_owned();
        let text = format!(
            "Endpoint=sb://{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
             UseDevelopmentEmulator=true;HttpPort={port}",
            self.broker.door("amqp")
        );
        let mut command = vorrang(arguments);
        command.env("VORRANG_CONNECTION_STRING", text).current_dir(self.folder.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed, and returns what it said.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same, for an answer in JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let said = self.ok(&[&["--output", "json"], arguments].concat());
        serde_json::from_str(&said).unwrap()
    }

    /// The number a failing command ends with, and what it says.
    pub(crate) fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        (output.status.code().unwrap(), text(&output))
    }

    pub(crate) fn send_lines(&self, entity: &str, lines: &str) -> String {
        let mut child = self
            .command(&["send", entity, "--file", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    }
}

/// The binary without anything of this machine's environment that would change what it does.
pub(crate) fn vorrang(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vorrang"));
    command.args(arguments).env_remove("VORRANG_PROFILE").env_remove("VORRANG_CONNECTION_STRING");
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8([output.stdout.clone(), output.stderr.clone()].concat()).unwrap()
}
