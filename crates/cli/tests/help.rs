//! The help texts, word for word: they are read by people, so a change to one is a decision.
//!
//! `UPDATE_HELP=1 cargo test -p vorrang --test help` writes them anew.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected shall stop")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The help of a command, such as `queue create`; that of the binary for no words.
fn help(command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_vorrang"))
        .args(command.split_whitespace())
        .arg("--help")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert!(output.status.success(), "vorrang {command} --help");
    String::from_utf8(output.stdout).unwrap()
}

/// This command and all below it, with their help, as that lists them.
fn texts(command: &str) -> Vec<(String, String)> {
    let help = help(command);
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, list)| list);
    let lines = listed.lines().take_while(|line| line.starts_with("  "));
    let names =
        lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let below =
        names.filter(|name| *name != "help").flat_map(|name| texts(format!("{command} {name}").trim()));
    let below: Vec<(String, String)> = below.collect();
    let name = if command.is_empty() { "vorrang".to_owned() } else { command.replace(' ', "-") };
    std::iter::once((name, help)).chain(below).collect()
}

#[test]
fn help_texts_are_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    let update = std::env::var_os("UPDATE_HELP").is_some();
    let texts = texts("");
    assert!(texts.len() > 60, "only {} commands were found", texts.len());
    let (mut differ, mut expected) = (Vec::new(), BTreeSet::new());
    for (name, text) in texts {
        let file = folder.join(format!("{name}.txt"));
        expected.insert(file.clone());
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, text).unwrap();
        } else if std::fs::read_to_string(&file).ok().as_deref() != Some(text.as_str()) {
            differ.push(name);
        }
    }
    let found = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let gone: Vec<_> = found.filter(|file| !expected.contains(file)).collect();
    assert!(gone.is_empty(), "there are no such commands any more: {gone:?}");
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
