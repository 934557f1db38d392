//! A planted key never shows: not in logs, errors, metrics, probes, nor in what the other commands print.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop"
)]

mod support;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use support::Broker;
use support::bench::Bench;

/// The key: parts of it must not show either.
const PLANTED: &str = "PLANTEDsecretPLANTEDsecretPLANTEDsecret0000=";
const TRACE: &str = "PLANTEDsecret";
/// The descriptor of `sasl-outcome`.
const OUTCOME: [u8; 3] = [0x00, 0x53, 0x44];

fn http(broker: &Broker, head: &str) -> String {
    let mut socket = TcpStream::connect(broker.door("http")).unwrap();
    write!(socket, "{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// Says something to the AMQP door, and reads what comes back until it closes or says how a login ended.
fn amqp(broker: &Broker, said: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(broker.door("amqp")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.write_all(said).unwrap();
    let (mut answer, mut piece) = (Vec::new(), [0; 4_096]);
    while !answer.windows(3).any(|bytes| bytes == OUTCOME) {
        match socket.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend(piece.iter().take(read)),
        }
    }
    answer
}

/// A SASL header and `sasl-init` with PLAIN and this name and key.
fn login(user: &str, key: &str) -> Vec<u8> {
    let response = format!("\0{user}\0{key}");
    let mut fields = vec![0xa3, 5];
    fields.extend_from_slice(b"PLAIN");
    fields.extend_from_slice(&[0xa0, u8::try_from(response.len()).unwrap()]);
    fields.extend_from_slice(response.as_bytes());
    fields.push(0x40);
    let mut body = vec![0x00, 0x53, 0x41, 0xc0, u8::try_from(fields.len() + 1).unwrap(), 3];
    body.extend_from_slice(&fields);
    let mut said = b"AMQP\x03\x01\x00\x00".to_vec();
    said.extend_from_slice(&u32::try_from(body.len() + 8).unwrap().to_be_bytes());
    said.extend_from_slice(&[2, 1, 0, 0]);
    said.extend_from_slice(&body);
    said
}

#[test]
fn a_planted_key_never_shows() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("root-key"), PLANTED).unwrap();
    let logged = folder.path().join("log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vorrang"));
    command.args(["serve", "--log", "trace", "--log-format", "json", "--data-dir"]).arg(&data);
    command.args(["--amqp-port", "0", "--amqps-port", "0", "--http-port", "0", "--https-port", "0"]);
    command.stderr(File::create(&logged).unwrap());
    let broker = Broker::launch(command);
    let announced = broker.announced.join("\n");
    assert!(announced.contains(PLANTED), "the one place where the operator is told: {announced}");

    let mut shown = Vec::new();
    let heads = [
        "GET /readyz?verbose HTTP/1.1".to_owned(),
        "GET /health HTTP/1.1".to_owned(),
        format!("GET /api/entities HTTP/1.1\r\nAuthorization: Bearer {PLANTED}"),
        format!("GET /api/entities HTTP/1.1\r\nAuthorization: SharedAccessSignature {PLANTED}"),
        format!(
            "GET /api/entities HTTP/1.1\r\nAuthorization: SharedAccessSignature sr=sb%3a%2f%2fx&sig={PLANTED}&se=1&skn=x"
        ),
        format!("PUT /orders HTTP/1.1\r\nServiceBusAuthorization: {PLANTED}"),
        format!("{PLANTED} / HTTP/9.9"),
    ];
    for head in heads {
        shown.extend_from_slice(http(&broker, &head).as_bytes());
    }
    let right = amqp(&broker, &login("RootManageSharedAccessKey", PLANTED));
    assert!(right.windows(3).any(|bytes| bytes == OUTCOME), "the login was understood: {right:?}");
    shown.extend(right);
    for said in [
        login("RootManageSharedAccessKey", &format!("{PLANTED}!")),
        login(PLANTED, "wrong"),
        PLANTED.as_bytes().to_vec(),
        [b"AMQP\x00\x01\x00\x00".as_slice(), PLANTED.as_bytes()].concat(),
    ] {
        shown.extend(amqp(&broker, &said));
    }
    let metrics = http(&broker, "GET /metrics HTTP/1.1");
    assert!(metrics.contains("vorrang_refused_total{reason=\"login\"} 2"), "{metrics}");
    shown.extend_from_slice(metrics.as_bytes());
    assert_eq!(broker.stop(), Some(0));

    let doctor =
        Command::new(env!("CARGO_BIN_EXE_vorrang")).args(["doctor", "--data-dir"]).arg(&data).output();
    let doctor = doctor.unwrap();
    let show = Command::new(env!("CARGO_BIN_EXE_vorrang"))
        .args(["config", "show", "--data-dir"])
        .arg(&data)
        .output();
    let show = show.unwrap();
    let log = fs::read(&logged).unwrap();
    assert!(log.len() > 500, "something was logged");
    let places = [
        ("answers", shown),
        ("the log", log),
        ("doctor", [doctor.stdout, doctor.stderr].concat()),
        ("config show", [show.stdout, show.stderr].concat()),
    ];
    for (place, bytes) in places {
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().find(|line| line.contains(TRACE));
        assert_eq!(line, None, "{place} shows the key");
    }
}

/// Runs a command and returns everything it says.
fn said(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    [output.stdout, output.stderr].concat()
}

#[test]
fn a_key_of_an_entity_does_not_come_back_from_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let logged = folder.path().join("log");
    let mut command = support::serve_logging(folder.path(), "trace");
    command.arg("--dev").stderr(File::create(&logged).unwrap());
    let bench = Bench { broker: Broker::launch(command), folder };
    let definitions = bench.folder.path().join("definitions.json");
    let rule = format!("[{{\"keyName\":\"shop\",\"rights\":[\"Send\"],\"primaryKey\":\"{PLANTED}\"}}]");
    fs::write(&definitions, format!("{{\"queues\":{{\"q\":{{\"authorizationRules\":{rule}}}}}}}")).unwrap();
    let file = definitions.display().to_string();
    bench.ok(&["definitions", "apply", &file]);
    assert!(bench.ok(&["queue", "show", "q", "--output", "json"]).contains("shop"));
    let mut shown = Vec::new();
    let commands: &[&[&str]] = &[
        &["queue", "show", "q"],
        &["queue", "show", "q", "--output", "json"],
        &["definitions", "export"],
        &["definitions", "apply", &file],
        &["top", "--once"],
        &["doctor", "--data-dir", "data"],
    ];
    for arguments in commands {
        shown.extend(said(&mut bench.command(arguments)));
    }
    // Keys where none belong: in the wrong member, in a file of another kind, in a connection string and an address.
    for wrong in [
        format!("{{\"queues\":{{\"q\":{{\"authorizationRules\":\"{PLANTED}\"}}}}}}"),
        format!("{{\"queues\":\"{PLANTED}\"}}"),
        format!("{{\"queues\":{{\"q\":{{\"maxDeliveryCount\":\"{PLANTED}\"}}}}}}"),
    ] {
        fs::write(&definitions, wrong).unwrap();
        let output = bench.run(&["definitions", "apply", &file]);
        assert!(!output.status.success());
        shown.extend([output.stdout, output.stderr].concat());
    }
    let config = bench.folder.path().join("wrong.toml");
    fs::write(
        &config,
        format!("[[key]]\nname = \"k\"\nrights = [\"Send\"]\nprimary_key = [\"{PLANTED}\"]\n"),
    )
    .unwrap();
    let config = config.display().to_string();
    let address = format!("http://user:{PLANTED}@localhost:4318");
    let string = format!("Endpoint=sb://h;SharedAccessKeyName=n;SharedAccessKey={PLANTED};HttpPort=x");
    let wrong: &[&[&str]] = &[
        &["config", "check", "--config", &config],
        &["config", "show", "--otlp-endpoint", &address],
        &["config", "show", "--otlp-headers", &format!("not a name={PLANTED}")],
        &["doctor", "--config", &config, "--otlp-headers", PLANTED.trim_end_matches('=')],
        &["serve", "--otlp-headers", PLANTED.trim_end_matches('='), "--amqp-port", "x"],
        &["queue", "list", "--connection-string", &string],
        &["send", "q", "--body", "x", "--connection-string", &string],
    ];
    for arguments in wrong {
        let output = bench.run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        shown.extend([output.stdout, output.stderr].concat());
    }
    let headers = format!("authorization=Bearer%20{PLANTED}");
    for format in ["table", "json"] {
        let output = bench.run(&["config", "show", "--output", format, "--otlp-headers", &headers]);
        assert!(
            output.status.success() && String::from_utf8_lossy(&output.stdout).contains("***"),
            "{format}"
        );
        shown.extend([output.stdout, output.stderr].concat());
    }
    shown.extend_from_slice(http(&bench.broker, "GET /metrics HTTP/1.1").as_bytes());
    assert_eq!(bench.broker.stop(), Some(0));
    for (place, bytes) in [("answers", shown), ("the log", fs::read(&logged).unwrap())] {
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().find(|line| line.contains(TRACE));
        assert_eq!(line, None, "{place} shows the key");
    }
}
