//! The binary as an operator meets it: starts, refusals, stops.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop"
)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use support::{Broker, serve};

fn vorrang(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_vorrang")).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_second_broker_on_the_same_data_is_refused_and_the_first_lives_on() {
    let folder = tempfile::tempdir().unwrap();
    let first = Broker::start(folder.path(), &["q"]);
    let second = serve(folder.path()).arg("--dev").output().unwrap();
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success());
    assert_eq!(text.matches("another process is using this data directory; stop it").count(), 1, "{text}");
    assert_eq!(first.stop(), Some(0), "a stop that was asked for is a success");
}

#[test]
fn probes_are_answered_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::start(folder.path(), &[]);
    for (path, expected) in [("/health", "Service is healthy."), ("/livez", "ok"), ("/readyz", "ok")] {
        let mut socket = TcpStream::connect(broker.door("http")).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(expected), "{path}: {answer}");
    }
}

#[test]
fn without_development_mode_a_key_is_generated_and_printed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("root-key"), "a key of our own\n").unwrap();
    let mut child = serve(folder.path()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut text = String::new();
    let mut buffer = [0; 512];
    while !text.contains("vorrang is ready") {
        let read = output.read(&mut buffer).unwrap();
        assert!(read > 0, "ended early: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(text.contains("SharedAccessKey=a key of our own;"), "{text}");
}

#[test]
fn a_certificate_that_cannot_be_kept_ends_a_start_before_it_is_called_ready() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("data/development-key.pem");
    std::fs::create_dir_all(&in_the_way).unwrap();
    let mut command = serve(folder.path());
    command.arg("--dev").stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut announced = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let ready = announced.any(|line| line == "vorrang is ready");
    if ready {
        child.kill().unwrap();
    }
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    assert!(!ready && !ended.status.success() && text.contains("development-key.pem"), "{text}");
}

#[test]
fn what_cannot_start_says_why_and_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, r#"{ "UserConfig": { "Namespaces": [ { "Queues": [ { "Name": "a?b" } ] } ] } }"#)
        .unwrap();
    let broken = broken.display().to_string();
    let free = ["--amqps-port", "0", "--http-port", "0", "--https-port", "0"];
    let cases: [(&str, Vec<&str>, &str); 4] = [
        (
            "a taken port",
            [&["serve", "--dev", "--data-dir", &data, "--amqp-port", &port], &free[..]].concat(),
            "another program has it",
        ),
        (
            "a public development broker",
            vec!["serve", "--dev", "--host", "0.0.0.0", "--data-dir", &data],
            "loopback only",
        ),
        (
            "a wrong file",
            [
                &["serve", "--dev", "--data-dir", &data, "--amqp-port", "0", "--emulator-config", &broken],
                &free[..],
            ]
            .concat(),
            "Queues[0]",
        ),
        ("an unknown flag", vec!["serve", "--colour", "red"], "--colour"),
    ];
    for (case, arguments, expected) in cases {
        let (success, text) = vorrang(&arguments);
        assert!(!success && text.contains(expected), "{case}: {text}");
    }
}

#[test]
fn the_doctor_finds_a_sound_directory_sound_and_names_damage() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Broker::start(folder.path(), &["q"]).stop(), Some(0));
    let data = folder.path().join("data");
    let arguments = ["doctor", "--data-dir", &data.display().to_string()];
    let (success, text) = vorrang(&arguments);
    assert!(success && text.contains("is sound"), "{text}");
    let segment = data.join("segment-00000001");
    let mut bytes = std::fs::read(&segment).unwrap();
    // In the header of the first entry, which lies behind the segment's own block.
    bytes[4_096 + 20] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let (success, text) = vorrang(&arguments);
    assert!(!success && text.contains("segment-00000001"), "{text}");
    let (success, text) = vorrang(&["doctor", "--data-dir", "/nonexistent"]);
    assert!(!success && text.contains("no data directory"), "{text}");
}
