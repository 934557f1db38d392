//! `vorrang work` as a user runs it: the real binary, a real broker, real commands and signals.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop"
)]

mod support;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use support::Broker;
use support::pty::Terminal;
use vorrang_client::admin::{Admin, QueueProperties};
use vorrang_client::{Client, Message, Source, SubQueue};

const PATIENCE: Duration = Duration::from_secs(30);

fn connection_string(broker: &Broker) -> String {
    let door = broker.door("amqp");
    let port = door.rsplit(':').next().unwrap();
    format!(
        "Endpoint=sb://localhost:{port};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;\
         UseDevelopmentEmulator=true"
    )
}

fn command(broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vorrang"));
    command.arg("work").args(arguments).env("VORRANG_CONNECTION_STRING", connection_string(broker));
    command
}

fn work(broker: &Broker, arguments: &[&str]) -> Child {
    command(broker, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Asks a worker to stop, and returns its exit code and what it wrote.
fn stop(child: Child) -> (Option<i32>, String) {
    let id = i32::try_from(child.id()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_handles_messages_until_the_worker_is_asked_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::start(folder.path(), &["orders"]);
    let client = Client::connect(&connection_string(&broker)).await.unwrap();
    let sender = client.sender("orders").await.unwrap();
    sender.send_all((0..10).map(|number| Message::text(format!("order {number}")))).await.unwrap();
    sender.send(Message::text("bad")).await.unwrap();
    let (handled, script) = (folder.path().join("handled"), folder.path().join("handle.sh"));
    let text =
        format!("read -r body\n[ \"$body\" = bad ] && exit 65\necho \"$body\" >> {}\n", handled.display());
    std::fs::write(&script, text).unwrap();
    let script = script.display().to_string();
    let child =
        work(&broker, &["--queue", "orders", "--concurrency", "3", "--interval", "1", "--", "sh", &script]);
    until("ten are handled", || lines(&handled) == 10).await;
    let dead = Source::from("orders").sub_queue(SubQueue::DeadLetter);
    let mut letters = client.receiver(dead).await.unwrap();
    let letter = letters.recv_timeout(PATIENCE).await.unwrap().expect("a dead letter");
    assert_eq!(letter.dead_letter_reason().as_deref(), Some("exit code 65"));
    let (code, output) = stop(child);
    assert_eq!(code, Some(0));
    let last: serde_json::Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(last["pool"], "orders");
    assert_eq!(last["entities"][0]["completed"], 10, "{last}");
    assert_eq!(last["entities"][0]["dead_lettered"], 1, "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_two_pools_works_and_a_stop_lets_running_commands_finish() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::start(folder.path(), &["high", "low", "lines"]);
    let client = Client::connect(&connection_string(&broker)).await.unwrap();
    let (begun, done) = (folder.path().join("begun"), folder.path().join("done"));
    let slow = format!("echo x >> {}; sleep 1; cat >> {}", begun.display(), done.display());
    let answer = r#"while read -r line; do echo '{"outcome":"complete"}'; done"#;
    let file = folder.path().join("work.toml");
    let text = format!(
        "[[pool]]\nname = 'ordered'\nqueues = ['high', 'low']\nsize = 1\ncommand = ['sh', '-c', '''{slow}''']\n\
         [[pool]]\nqueues = ['lines']\nsize = '1..4'\nstdin = 'jsonl'\ncommand = ['sh', '-c', '''{answer}''']\n"
    );
    std::fs::write(&file, text).unwrap();
    client.sender("low").await.unwrap().send(Message::text("l\n")).await.unwrap();
    client.sender("high").await.unwrap().send(Message::text("h\n")).await.unwrap();
    let sender = client.sender("lines").await.unwrap();
    sender.send_all((0..50).map(|number| Message::text(number.to_string()))).await.unwrap();
    let child = work(&broker, &["--config", &file.display().to_string()]);
    until("the second command runs", || lines(&begun) == 2).await;
    let (code, output) = stop(child);
    assert_eq!(code, Some(0));
    assert_eq!(
        std::fs::read_to_string(&done).unwrap(),
        "h\nl\n",
        "the higher first, and the last one finished"
    );
    let last: Vec<serde_json::Value> =
        output.lines().rev().take(2).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(last.first().unwrap()["entities"][0]["completed"], 50, "{last:?}");
    assert_eq!(last.last().unwrap()["entities"][1]["completed"], 1, "{last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_keeps_its_sessions_state_and_exit_codes_mean_what_flags_say() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::start(folder.path(), &[]);
    let text = connection_string(&broker);
    let client = Client::connect(&text).await.unwrap();
    let admin = Admin::new(&text).unwrap().with_endpoint(&format!("http://{}", broker.door("http"))).unwrap();
    admin.create_queue(&QueueProperties::new("counted").with_sessions()).await.unwrap();
    let sender = client.sender("counted").await.unwrap();
    let messages = (0..6).map(|number| {
        Message::text(format!("{number}\n")).with_session(if number % 2 == 0 { "even" } else { "odd" })
    });
    sender.send_all(messages).await.unwrap();
    sender.send(Message::text("bad\n").with_session("odd")).await.unwrap();
    let script = "read -r body; [ $body = bad ] && exit 4
        count=$(cat $VORRANG_SESSION_STATE); echo $VORRANG_SESSION_ID $(( ${count##* } + 1 )) > $VORRANG_SESSION_STATE; exit 3";
    let flags = ["--queue", "counted", "--sessions", "--session-idle-ms", "50", "--concurrency", "2"];
    let codes =
        ["--exit-complete", "3", "--exit-dead-letter", "4", "--interval", "1", "--", "sh", "-c", script];
    let child = work(&broker, &[&flags[..], &codes[..]].concat());
    let dead = Source::from("counted").sub_queue(SubQueue::DeadLetter);
    let letter = client.receiver(dead).await.unwrap().recv_timeout(PATIENCE).await.unwrap();
    assert_eq!(letter.unwrap().dead_letter_reason().as_deref(), Some("exit code 4"));
    let begin = Instant::now();
    while admin.queue("counted").await.unwrap().runtime().active > 0 {
        assert!(begin.elapsed() < PATIENCE, "the messages are not handled");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (code, output) = stop(child);
    assert_eq!(code, Some(0));
    let last: serde_json::Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["entities"][0]["completed"], &last["entities"][0]["failed"]),
        (&6.into(), &0.into()),
        "{last}"
    );
    for session in ["even", "odd"] {
        let held = client.accept_session("counted", Some(session), PATIENCE).await.unwrap();
        let state = held.state().await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&state), format!("{session} 3\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_handles_messages_and_a_terminal_shows_the_pool_live() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::start(folder.path(), &["posted"]);
    let client = Client::connect(&connection_string(&broker)).await.unwrap();
    let sender = client.sender("posted").await.unwrap();
    sender.send_all((0..5).map(|number| Message::text(number.to_string()))).await.unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/handle", listener.local_addr().unwrap());
    // Answers each request on a connection of its own; ends with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut seen) = (stream.unwrap(), [0; 8_192]);
            let count = stream.read(&mut seen).unwrap();
            assert!(seen[..count].starts_with(b"POST /handle HTTP/1.1\r\n"));
            stream.write_all(b"HTTP/1.1 204 Done\r\nconnection: close\r\n\r\n").unwrap();
        }
    });
    let mut terminal =
        Terminal::start(command(&broker, &["--queue", "posted", "--http", &url, "--concurrency", "1..3"]));
    until("five are shown as completed", || {
        let drawn = terminal.drawn();
        let last = drawn.rsplit("  posted ").next().unwrap_or_default();
        last.split_whitespace().next() == Some("5")
    })
    .await;
    assert!(
        terminal.drawn().contains("running") && terminal.drawn().contains("\x1b[3A"),
        "{}",
        terminal.drawn()
    );
    kill_process(Pid::from_raw(i32::try_from(terminal.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(terminal.ended().success());
    assert!(terminal.drawn().contains("stopping") && terminal.is_clean(), "{}", terminal.drawn());
}

#[test]
fn mistakes_are_told_before_anything_is_connected() {
    let output = Command::new(env!("CARGO_BIN_EXE_vorrang"))
        .args(["work", "--queue", "q", "--concurrency", "lots"])
        .env("VORRANG_CONNECTION_STRING", "Endpoint=sb://localhost:1;SharedAccessKeyName=a;SharedAccessKey=b")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(text.contains("'lots' is not a size") && text.contains("nothing handles the messages"), "{text}");
}
