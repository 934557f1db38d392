//! What developers do to a real broker from the command line: links closed, the clock set ahead, the namespace kept and
//! put back (also when the broker is killed meanwhile), faults.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected shall stop"
)]

mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use support::{Broker, serve};
use vorrang_amqp::connection::{Event, LinkEnding, Outgoing};
use vorrang_amqp::message::put_data;
use vorrang_amqp::performative::{DeliveryState, DeliveryTag, Role};
use vorrang_bench::wire::Wire;

/// Runs a command against a broker.
fn run(broker: &Broker, arguments: &[&str]) -> Output {
    command(broker, arguments).output().unwrap()
}

fn command(broker: &Broker, arguments: &[&str]) -> Command {
    let port = broker.door("http").rsplit_once(':').unwrap().1.to_owned();
    let text = format!(
        "Endpoint=sb://{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
         UseDevelopmentEmulator=true;HttpPort={port}",
        broker.door("amqp")
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_vorrang"));
    command.args(arguments).env_remove("VORRANG_PROFILE").env("VORRANG_CONNECTION_STRING", text);
    command
}

/// Runs a command that must succeed, and returns what it said.
fn ok(broker: &Broker, arguments: &[&str]) -> String {
    let output = run(broker, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(broker: &Broker, arguments: &[&str]) -> Value {
    serde_json::from_str(&ok(broker, &[&["--output", "json"], arguments].concat())).unwrap()
}

/// The number a failing command ends with, and what it says.
fn fails(broker: &Broker, arguments: &[&str]) -> (i32, String) {
    let output = run(broker, arguments);
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn start(folder: &Path) -> Broker {
    Broker::start_with(folder, &["--dev"])
}

fn active(broker: &Broker, queue: &str) -> u64 {
    json(broker, &["queue", "show", queue])["runtime"]["activeMessageCount"].as_u64().unwrap()
}

/// Waits until the server ends a link, and returns its condition.
fn link_ended(wire: &mut Wire) -> String {
    loop {
        while let Some(event) = wire.amqp.next_event() {
            if let Event::LinkEnded { ending: LinkEnding::Peer { error, .. }, .. } = event {
                return error.map(|error| error.condition.as_str().to_owned()).unwrap_or_default();
            }
        }
        assert!(wire.read().unwrap(), "the connection ended");
    }
}

#[test]
fn one_link_is_closed_by_its_number_and_links_are_dropped_by_entity() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path());
    ok(&broker, &["queue", "create", "q"]);
    let mut wire = Wire::connect(&broker.door("amqp")).unwrap();
    wire.patience(Duration::from_secs(30)).unwrap();
    wire.attach("q", Role::Receiver).unwrap();
    let listed = json(&broker, &["connection", "list"]);
    let (id, link) = (listed[0]["id"].to_string(), listed[0]["links"][0]["id"].to_string());
    ok(&broker, &["connection", "close", &id, "--link", &link]);
    assert_eq!(link_ended(&mut wire), "amqp:link:detach-forced");
    let (code, said) = fails(&broker, &["connection", "close", &id, "--link", &link]);
    assert_eq!((code, said.contains("has no link")), (6, true), "{said}");
    wire.attach("q", Role::Receiver).unwrap();
    assert!(ok(&broker, &["dev", "drop", "--entity", "q"]).contains("1 links, 0 connections"));
    assert_eq!(link_ended(&mut wire), "amqp:link:detach-forced");
    assert_eq!(fails(&broker, &["dev", "drop", "--entity", "q"]).0, 6);
    assert_eq!(fails(&broker, &["dev", "drop"]).0, 2);
}

#[test]
fn the_clock_is_ahead_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path());
    let dead = ["--default-message-time-to-live", "1h", "--dead-lettering-on-message-expiration"];
    ok(&broker, &[&["queue", "create", "q"], &dead[..]].concat());
    ok(&broker, &["send", "q", "--body", "x"]);
    assert_eq!(json(&broker, &["dev", "advance", "59m"])["ahead"], "PT59M");
    assert_eq!(active(&broker, "q"), 1);
    assert_eq!(json(&broker, &["dev", "advance", "PT1M"])["ahead"], "PT1H");
    assert_eq!(active(&broker, "q"), 0);
    assert!(ok(&broker, &["dlq", "list", "q"]).contains("TTLExpired"));
    let before = json(&broker, &["dev", "clock"])["now"].as_str().unwrap().to_owned();
    broker.kill();
    let broker = start(folder.path());
    let clock = json(&broker, &["dev", "clock"]);
    assert_eq!(clock["ahead"], "PT1H");
    assert!(clock["now"].as_str().unwrap() >= before.as_str(), "{clock} after {before}");
    assert_eq!(fails(&broker, &["dev", "advance", "40000d"]).0, 7);
    // What was sent by the broker's time is old enough to be thrown away.
    assert!(ok(&broker, &["dlq", "purge", "q", "--all"]).contains("1 messages were deleted"));
}

#[test]
fn a_namespace_is_kept_put_back_listed_and_forgotten_and_a_reset_is_a_clean_start() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path());
    ok(&broker, &["queue", "create", "q"]);
    for body in ["a", "b"] {
        ok(&broker, &["send", "q", "--body", body]);
    }
    assert!(ok(&broker, &["dev", "snapshot", "save", "two"]).contains("two"));
    ok(&broker, &["dev", "reset"]);
    assert_eq!(active(&broker, "q"), 0);
    ok(&broker, &["dev", "snapshot", "restore", "two"]);
    assert_eq!(active(&broker, "q"), 2);
    ok(&broker, &["dev", "reset", "--entities"]);
    assert_eq!(fails(&broker, &["queue", "show", "q"]).0, 6);
    // A restart keeps what was done last, and the snapshots.
    broker.kill();
    let broker = start(folder.path());
    assert_eq!(fails(&broker, &["queue", "show", "q"]).0, 6);
    assert_eq!(json(&broker, &["dev", "snapshot", "list"])[0]["messages"], 2);
    ok(&broker, &["dev", "snapshot", "restore", "two"]);
    assert_eq!(ok(&broker, &["receive", "q", "--max", "2", "--wait", "2s"]).lines().count(), 2);
    ok(&broker, &["dev", "snapshot", "delete", "two"]);
    let (code, said) = fails(&broker, &["dev", "snapshot", "restore", "two"]);
    assert_eq!((code, said.contains("there is no snapshot 'two'")), (6, true), "{said}");
    assert_eq!(fails(&broker, &["dev", "snapshot", "save", "../elsewhere"]).0, 7);
}

#[test]
fn a_kill_while_a_namespace_is_put_back_leaves_the_old_or_the_new() {
    const KEPT: u64 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let mut broker = start(folder.path());
    ok(&broker, &["queue", "create", "q"]);
    let lines: Vec<String> =
        (0..KEPT).map(|number| format!("{{\"body\":{{\"text\":\"{number}\"}}}}")).collect();
    std::fs::write(folder.path().join("lines"), lines.join("\n")).unwrap();
    let file = folder.path().join("lines").display().to_string();
    ok(&broker, &["send", "q", "--file", &file]);
    ok(&broker, &["dev", "snapshot", "save", "many"]);
    for round in 0..5_u64 {
        ok(&broker, &["dev", "reset"]);
        ok(&broker, &["send", "q", "--body", "old"]);
        let mut restoring = command(&broker, &["dev", "snapshot", "restore", "many"]);
        let mut restoring = restoring.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // At another moment each time; whatever has happened by then must hold.
        std::thread::sleep(Duration::from_millis(round * 30));
        broker.kill();
        restoring.wait().unwrap();
        broker = start(folder.path());
        let found = active(&broker, "q");
        assert!(found == 1 || found == KEPT, "round {round}: {found} messages");
    }
}

#[test]
fn faults_are_made_listed_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path());
    ok(&broker, &["queue", "create", "q"]);
    let fault = json(&broker, &["dev", "fault", "busy", "q", "--for", "1h"]);
    assert_eq!(fault[0]["kind"], "serverBusy");
    ok(&broker, &["dev", "fault", "delay", "q", "--by", "5s", "--count", "3"]);
    let listed = ok(&broker, &["dev", "fault", "list"]);
    assert!(listed.contains("answered busy") && listed.contains("late by PT5S"), "{listed}");
    ok(&broker, &["dev", "fault", "clear", &fault[0]["id"].to_string()]);
    ok(&broker, &["send", "q", "--body", "x"]);
    ok(&broker, &["dev", "fault", "clear"]);
    assert_eq!(json(&broker, &["dev", "fault", "list"]).as_array().unwrap().len(), 0);
    assert_eq!(fails(&broker, &["dev", "fault", "clear", "7"]).0, 6);
    assert_eq!(fails(&broker, &["dev", "fault", "busy", "nowhere"]).0, 6);
    assert_eq!(fails(&broker, &["dev", "fault", "delay", "q", "--by", "2h"]).0, 7);
}

#[test]
fn a_sender_that_is_told_busy_tries_again_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path());
    ok(&broker, &["queue", "create", "q"]);
    ok(&broker, &["dev", "fault", "busy", "q", "--count", "2"]);
    ok(&broker, &["send", "q", "--body", "x"]);
    assert_eq!(active(&broker, "q"), 1);
    assert_eq!(
        json(&broker, &["dev", "fault", "list"]).as_array().unwrap().len(),
        0,
        "it was told busy twice"
    );
}

#[test]
fn a_broker_in_production_says_how_to_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::launch(serve(folder.path()));
    let key = broker.announced.iter().find_map(|line| line.split_once("SharedAccessKey=")).unwrap().1;
    let key = key.split(';').next().unwrap();
    let port = broker.door("http").rsplit_once(':').unwrap().1.to_owned();
    let text = format!(
        "Endpoint=sb://{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey={key};\
         UseDevelopmentEmulator=true;HttpPort={port}",
        broker.door("amqp")
    );
    let output = command(&broker, &["dev", "clock"]).env("VORRANG_CONNECTION_STRING", text).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.contains("--dev")), (Some(6), true), "{said}");
}

/// A message whose content does not matter.
fn message(number: u64, tail: &Bytes) -> Outgoing<'_> {
    let tag = DeliveryTag::from(number);
    Outgoing { tag, message_format: 0, settled: false, state: None, head: &[], tail, key: 0 }
}

#[test]
fn more_than_the_broker_takes_is_held_back_by_credit_told_busy_over_http_and_not_lost() {
    const SENDERS: usize = 12;
    /// What one sender may have on the way.
    const CREDIT: usize = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path());
    ok(&broker, &["queue", "create", "q"]);
    let mut payload = Vec::new();
    put_data(&mut payload, b"x");
    let payload = Bytes::from(payload);
    let mut senders = Vec::new();
    for _ in 0..SENDERS {
        let mut wire = Wire::connect(&broker.door("amqp")).unwrap();
        let link = wire.attach("q", Role::Sender).unwrap();
        wire.patience(Duration::from_mins(1)).unwrap();
        while wire.amqp.credit(link).unwrap() == 0 {
            wire.read().unwrap();
        }
        senders.push((wire, link));
    }
    ok(&broker, &["dev", "fault", "stall", "--for", "10s"]);
    for (wire, link) in &mut senders {
        let mut number = 0;
        while wire.amqp.send(*link, &message(number, &payload)).is_ok() {
            number += 1;
        }
        assert_eq!(usize::try_from(number).unwrap(), CREDIT, "no more than the credit goes out");
        wire.flush().unwrap();
    }
    // One after the other while the line fills: who comes when it is full is told so, and in time.
    let asked: Vec<_> = (0..12)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(250));
            let mut asking = command(&broker, &["queue", "show", "q"]);
            asking.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let said: Vec<String> = asked
        .into_iter()
        .map(|asking| String::from_utf8_lossy(&asking.wait_with_output().unwrap().stderr).into_owned())
        .collect();
    assert!(said.iter().any(|said| said.contains("is busy")), "{said:?}");
    for (wire, _) in &mut senders {
        let mut accepted = 0;
        while accepted < CREDIT {
            wire.flush().unwrap();
            assert!(wire.read().unwrap(), "after {accepted} answers nothing came");
            while let Some(event) = wire.amqp.next_event() {
                if let Event::Settlement(settlement) = event {
                    assert_eq!(settlement.state.as_deref(), Some(&DeliveryState::ACCEPTED));
                    accepted += settlement.deliveries.len();
                }
            }
        }
    }
    assert_eq!(active(&broker, "q"), u64::try_from(SENDERS * CREDIT).unwrap());
}
