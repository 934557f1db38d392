//! Configuration as an operator meets it: files, variables and flags given to the real binary.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected shall stop")]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::Broker;

const SECRET: &str = "planted-secret-4711";

/// Runs the binary in `folder` with these variables and arguments.
fn vorrang(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vorrang"));
    command.current_dir(folder).args(arguments).envs(variables.iter().copied());
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    let all = [output.stdout.clone(), output.stderr.clone()].concat();
    String::from_utf8(all).unwrap()
}

fn write(folder: &Path, text: &str) {
    std::fs::write(folder.join("vorrang.toml"), text).unwrap();
}

#[test]
fn every_mistake_from_every_place_is_reported_at_once() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &format!("amqp_port = 70000\n[[queue]]\nname = \"a\"\nlock_duraton = \"{SECRET}\"\n"),
    );
    let emulator =
        r#"{"UserConfig":{"Namespaces":[{"Queues":[{"Name":"q","Properties":{"MaxDeliveryCount":0}}]}]}}"#;
    std::fs::write(folder.path().join("Config.json"), emulator).unwrap();
    let variables = [
        ("VORRANG_LOG_FORMAT", "xml"),
        ("VORRANG_MAX_CONNECTIONS", ""),
        ("VORRANG_EMULATOR_CONFIG", "Config.json"),
    ];
    let output = vorrang(folder.path(), &variables, &["config", "check", "--handshake-timeout", "soon"]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    for part in [
        "the configuration has 5 mistakes",
        "Config.json: $.UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: cannot be 0",
        "vorrang.toml:1: amqp_port cannot be 70000",
        "vorrang.toml:4: queue[0].lock_duraton is not a key here; did you mean lock_duration?",
        "variable VORRANG_LOG_FORMAT: log_format cannot be \"xml\": allowed is text, json",
        "flag --handshake-timeout: handshake_timeout cannot be \"soon\"",
    ] {
        assert!(text.contains(part), "{part} not in\n{text}");
    }
    assert!(!text.contains(SECRET), "{text}");
    let serve = vorrang(folder.path(), &[], &["serve"]);
    assert_eq!(serve.status.code(), Some(3), "the broker does not start with it either");
}

#[test]
fn the_configuration_in_force_is_shown_with_its_sources_and_without_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = format!("[[key]]\nname = \"k\"\nrights = [\"Send\"]\nprimary_key = \"{SECRET}\"\n");
    write(folder.path(), &format!("http_port = 1\namqp_port = 2\n{keys}"));
    let variables = [("VORRANG_HTTP_PORT", "3")];
    for format in ["table", "json"] {
        let arguments = ["config", "show", "--output", format, "--amqps-port", "4", "--dev"];
        let output = vorrang(folder.path(), &variables, &arguments);
        let text = text(&output);
        assert!(output.status.success() && !text.contains(SECRET), "{text}");
        for part in ["variable VORRANG_HTTP_PORT", "flag --amqps-port", "vorrang.toml:2", "default"] {
            assert!(text.contains(part), "{part} not in\n{text}");
        }
    }
    let shown = vorrang(folder.path(), &[], &["config", "show", "--output", "json", "--host", "::1"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let settings = &shown["settings"];
    assert_eq!((&settings["amqp_port"]["value"], &settings["host"]["value"]), (&2.into(), &"::1".into()));
    assert!(settings["tls_key"]["value"].is_null() && shown["definitions"].is_object(), "{shown}");
    let schema = vorrang(folder.path(), &[], &["config", "schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert!(schema["properties"]["queue"]["items"]["properties"]["class"].is_object());
}

#[test]
fn entities_of_the_file_are_there_after_every_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broker.toml");
    let text = |lock: &str| {
        format!(
            "dev = true\n[[queue]]\nname = \"orders\"\nlock_duration = \"{lock}\"\nforward_dead_lettered_messages_to = \"later\"\n\
             class = [ {{ name = \"gold\", level = 8, target_wait = \"10s\" }} ]\n\
             [[queue]]\nname = \"later\"\n[[topic]]\nname = \"events\"\n[[topic.subscription]]\nname = \"high\"\n\
             rule = [ {{ name = \"r\", filter = \"Priority = 'High'\" }} ]\n"
        )
    };
    // Twice the same, then another lock duration: each start succeeds.
    for lock in ["30s", "30s", "1m"] {
        std::fs::write(&file, text(lock)).unwrap();
        let broker = Broker::start_with(folder.path(), &["--config", file.to_str().unwrap()]);
        assert_eq!(broker.stop(), Some(0));
    }
    // What the engine alone can refuse is told with the file.
    std::fs::write(&file, "[[queue]]\nname = \"a\"\nforward_to = \"nowhere\"\n").unwrap();
    let output = support::serve(folder.path()).arg("--config").arg(&file).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("broker.toml") && text.contains("'nowhere'"), "{text}");
}
