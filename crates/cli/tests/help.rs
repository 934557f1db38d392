//! The help texts, word for word: they are read by people, so a change to one is a decision.
//!
//! `UPDATE_HELP=1 cargo test -p vorrang --test help` writes them anew.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected shall stop")]

use std::path::Path;
use std::process::Command;

const COMMANDS: &[&str] = &[
    "",
    "serve",
    "queue",
    "queue create",
    "queue list",
    "queue show",
    "queue update",
    "queue delete",
    "topic create",
    "subscription create",
    "subscription update",
    "rule create",
    "send",
    "receive",
    "call",
    "peek",
    "explain",
    "reprioritise",
    "dlq",
    "dlq list",
    "dlq replay",
    "dlq purge",
    "session list",
    "connection",
    "connection close",
    "pause",
    "definitions export",
    "definitions apply",
    "targets",
    "top",
    "dev",
    "dev advance",
    "dev reset",
    "dev snapshot",
    "dev fault",
    "dev fault delay",
    "dev drop",
    "config",
    "config show",
    "doctor",
    "completion",
];

#[test]
fn help_texts_are_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    let update = std::env::var_os("UPDATE_HELP").is_some();
    let mut differ = Vec::new();
    for command in COMMANDS {
        let output = Command::new(env!("CARGO_BIN_EXE_vorrang"))
            .args(command.split_whitespace())
            .arg("--help")
            .env("COLUMNS", "100")
            .output()
            .unwrap();
        assert!(output.status.success(), "vorrang {command} --help");
        let name = if command.is_empty() { "vorrang".to_owned() } else { command.replace(' ', "-") };
        let file = folder.join(format!("{name}.txt"));
        let text = String::from_utf8(output.stdout).unwrap();
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, text).unwrap();
        } else if std::fs::read_to_string(&file).ok().as_deref() != Some(text.as_str()) {
            differ.push(name);
        }
    }
    assert!(differ.is_empty(), "changed: {}; look at them, then run with UPDATE_HELP=1", differ.join(", "));
}

#[test]
fn no_help_text_shows_a_value_of_the_environment() {
    for command in ["serve", "doctor", "queue list"] {
        let output = Command::new(env!("CARGO_BIN_EXE_vorrang"))
            .args(command.split_whitespace())
            .arg("--help")
            .env("VORRANG_CONNECTION_STRING", "planted-secret")
            .env("VORRANG_TLS_KEY", "planted-secret")
            .output()
            .unwrap();
        assert!(!String::from_utf8(output.stdout).unwrap().contains("planted-secret"), "{command}");
    }
}
