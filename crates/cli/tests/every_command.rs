//! Every command there is, tried against a real broker. A command that is not tried here or in a test named here
//! fails the first test.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that meets the unexpected shall stop, and waits for what others do"
)]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::bench::{Bench, text, vorrang};
use support::pty::Terminal;
use support::until;

/// One story on one broker: the command, what follows it, and a part of what it says.
const STORY: &[(&str, &[&str], &str)] = &[
    ("queue create", &["orders", "--class", "gold=100:10s"], ""),
    ("queue create", &["sessions", "--requires-session"], ""),
    ("queue list", &[], "orders"),
    ("queue show", &["orders"], "gold"),
    ("queue update", &["orders", "--max-delivery-count", "5"], ""),
    ("topic create", &["events"], ""),
    ("topic list", &[], "events"),
    ("topic show", &["events"], "events"),
    ("topic update", &["events", "--user-metadata", "note"], ""),
    ("subscription create", &["events", "high", "--filter", "Priority = 'High'"], ""),
    ("subscription list", &["events"], "high"),
    ("subscription show", &["events", "high"], "high"),
    ("subscription update", &["events", "high", "--max-delivery-count", "5"], ""),
    ("rule create", &["events", "high", "red", "--correlation", "label=red"], ""),
    ("rule list", &["events", "high"], "red"),
    ("rule show", &["events", "high", "red"], "red"),
    ("rule update", &["events", "high", "red", "--filter", "a = 1"], ""),
    ("send", &["orders", "--body", "x", "--class", "gold"], ""),
    ("send", &["sessions", "--body", "x", "--session", "one"], ""),
    ("peek", &["orders"], "gold"),
    ("explain", &["orders", "1"], "next to be delivered"),
    ("reprioritise", &["orders", "--all", "--level", "7"], "1 messages got level 7"),
    ("session list", &["sessions"], "one"),
    ("connection list", &[], "ID"),
    ("pause", &["orders"], ""),
    ("resume", &["orders"], ""),
    ("bench", &["--for", "300ms", "--rate", "200", "--size", "16"], "received and completed"),
    ("targets", &[], "gold"),
    ("top", &["--once"], "gold"),
    ("dlq list", &["orders"], ""),
    ("dlq replay", &["orders", "--all"], "0 messages"),
    ("dlq purge", &["orders", "--all"], "0 messages"),
    ("receive", &["orders", "--wait", "500ms"], "\"text\":\"x\""),
    ("definitions export", &["--file", "definitions.json"], ""),
    ("definitions apply", &["definitions.json", "--dry-run"], "0 created"),
    ("config check", &[], ""),
    ("config show", &[], "amqp_port"),
    ("config schema", &[], "lock_duration"),
    ("doctor", &[], "is ready"),
    ("completion", &["fish"], "reprioritise"),
    ("man", &[], ".SH"),
    ("dev clock", &[], ""),
    ("dev advance", &["1s"], ""),
    ("dev snapshot save", &["one"], ""),
    ("dev snapshot list", &[], "one"),
    ("dev snapshot restore", &["one"], ""),
    ("dev snapshot delete", &["one"], ""),
    ("dev fault busy", &["orders"], ""),
    ("dev fault delay", &["orders", "--by", "1s"], ""),
    ("dev fault list", &[], "orders"),
    ("dev fault clear", &[], ""),
    ("dev fault stall", &["--for", "100ms"], ""),
    ("rule delete", &["events", "high", "red"], ""),
    ("subscription delete", &["events", "high"], ""),
    ("topic delete", &["events"], ""),
    ("queue delete", &["orders"], ""),
    ("dev reset", &["--entities"], ""),
];

/// Commands with a test of their own: its file, and its name.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("serve", include_str!("process.rs"), "fn probes_are_answered_over_http"),
    ("work", include_str!("work.rs"), "fn a_command_handles_messages_until_the_worker_is_asked_to_stop"),
    ("call", include_str!("every_command.rs"), "fn a_call_is_answered_by_a_worker"),
    ("connection close", include_str!("every_command.rs"), "fn a_connection_is_listed_and_closed"),
    (
        "dev drop",
        include_str!("dev.rs"),
        "fn one_link_is_closed_by_its_number_and_links_are_dropped_by_entity",
    ),
    ("demo", include_str!("every_command.rs"), "fn the_demonstration_ends_by_itself"),
];

/// The commands below these words that do something themselves, as the help texts tell them.
fn leaves(words: &[String]) -> Vec<String> {
    let output = vorrang(&[]).args(words).arg("--help").output().unwrap();
    assert!(output.status.success(), "{words:?}");
    let help = text(&output);
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return vec![words.join(" ")] };
    let named = list.lines().take_while(|line| line.starts_with("  "));
    let names =
        named.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .flat_map(|name| leaves(&[words, &[name.to_owned()]].concat()))
        .collect()
}

#[test]
fn no_command_is_left_untried() {
    let all: BTreeSet<String> = leaves(&[]).into_iter().collect();
    assert!(all.contains("queue create") && all.contains("man"), "{all:?}");
    let told = STORY.iter().map(|(command, ..)| (*command).to_owned());
    let elsewhere = ELSEWHERE.iter().map(|(command, ..)| (*command).to_owned());
    let tried: BTreeSet<String> = told.chain(elsewhere).collect();
    let untried: Vec<_> = all.difference(&tried).collect();
    assert!(untried.is_empty(), "no test tries {untried:?}");
    let gone: Vec<_> = tried.difference(&all).collect();
    assert!(gone.is_empty(), "there is no {gone:?}");
    for (command, source, test) in ELSEWHERE {
        assert!(source.contains(test), "the test of {command} is gone");
    }
}

#[test]
fn every_command_does_what_its_name_says() {
    let bench = Bench::start();
    let http = bench.broker.door("http");
    for (command, rest, expected) in STORY {
        let words: Vec<&str> = command.split_whitespace().chain(rest.iter().copied()).collect();
        if *command == "targets" {
            // The broker looks at targets every few seconds.
            until("targets are told", || bench.ok(&words).contains(expected));
            continue;
        }
        // Commands about the machine are not asked of the default ports, which may be somebody else's.
        let mut run = bench.command(&words);
        let output = run.env("VORRANG_HTTP", format!("http://{http}")).output().unwrap();
        let said = text(&output);
        assert!(output.status.success(), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?} does not say {expected:?}: {said}");
        assert!(!said.contains("panicked"), "{words:?}: {said}");
    }
}

#[test]
fn a_connection_is_listed_and_closed() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "q"]);
    let mut receiving = bench.command(&["receive", "q", "--wait", "20s"]);
    let mut receiving = receiving.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut listed = serde_json::Value::Null;
    until("the receiver is listed", || {
        listed = bench.json(&["connection", "list"]);
        listed[0]["links"].as_array().is_some_and(|links| !links.is_empty())
    });
    assert_eq!(listed[0]["links"][0]["entity"], "q", "{listed}");
    assert!(bench.ok(&["connection", "list"]).contains("receiver"));
    let id = listed[0]["id"].as_u64().unwrap();
    let number = id.to_string();
    bench.ok(&["connection", "close", &number]);
    // The client comes back, as another connection.
    until("the connection is gone", || {
        let now = bench.json(&["connection", "list"]);
        now.as_array().unwrap().iter().all(|connection| connection["id"].as_u64() != Some(id))
    });
    assert_eq!(bench.fails(&["connection", "close", &number]).0, 6, "it is closed already");
    receiving.kill().unwrap();
    receiving.wait().unwrap();
}

#[test]
fn a_call_is_answered_by_a_worker() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "pricing"]);
    let mut worker = bench.command(&["work", "--queue", "pricing", "--reply", "--", "tr", "a-z", "A-Z"]);
    let mut worker = worker.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let said = bench.run(&["call", "pricing", "--body", "how much", "--wait", "20s"]);
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert!(said.status.success() && text(&said).contains("HOW MUCH"), "{}", text(&said));
    let left: Vec<String> = bench
        .json(&["queue", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|queue| queue["name"].to_string())
        .collect();
    assert_eq!(left, ["\"pricing\""], "the queue of the reply is gone");
}

#[test]
fn the_live_view_redraws_and_leaves_the_terminal_as_it_found_it() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "first"]);
    for (key, keys) in [("q", &b"q"[..]), ("Ctrl-C", b"\x03"), ("Escape", b"\x1b")] {
        let mut terminal = Terminal::start(bench.command(&["top", "--every", "100ms"]));
        until("it draws", || terminal.drawn().contains("first"));
        assert!(!terminal.is_clean(), "keys come one by one");
        let name = format!("second-{}", key.to_lowercase());
        bench.ok(&["queue", "create", &name]);
        until("it draws again", || terminal.drawn().contains(&name));
        assert!(terminal.drawn().matches("vorrang top").count() >= 2);
        terminal.press(keys);
        assert_eq!(terminal.ended().code(), Some(0), "{key}");
        assert!(terminal.is_clean(), "{key}");
        until("the screen is given back", || terminal.drawn().ends_with("\u{1b}[?1049l"));
        let drawn = terminal.drawn();
        assert!(drawn.contains("\u{1b}[?1049h") && drawn.contains("\u{1b}[?25h"), "{key}: {drawn:?}");
    }
}

#[test]
fn a_view_whose_broker_goes_away_says_so_on_a_clean_terminal() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "q"]);
    let mut terminal = Terminal::start(bench.command(&["top", "--every", "100ms"]));
    until("it draws", || terminal.drawn().contains("vorrang top"));
    bench.broker.kill();
    assert_eq!(terminal.ended().code(), Some(4));
    assert!(terminal.is_clean());
    until("it says why", || terminal.drawn().contains("no broker answers"));
}

#[test]
fn a_list_is_shown_again_and_again_and_ends_with_its_reader() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "first"]);
    let mut watching = bench.command(&["queue", "list", "--watch=100ms"]);
    let mut watching = watching.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("first")));
    bench.ok(&["queue", "create", "second"]);
    assert!(lines.any(|line| line.contains("second")));
    drop(lines);
    let output = watching.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output)), (Some(0), String::new()), "nobody reads any more");

    let mut terminal = Terminal::start(bench.command(&["queue", "list", "--watch=100ms"]));
    until("it is shown again", || terminal.drawn().matches("second").count() >= 2);
    terminal.press(b"\x03");
    assert!(terminal.is_clean());
}

#[test]
fn the_demonstration_ends_by_itself() {
    let output = vorrang(&["demo", "--seconds", "3"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "one low task was set aside and the urgent one ran",
        "pool front with 6 slots",
        "pool back with 2 slots",
        "acme: ",
        "globex: ",
        "low messages were rescued",
        "the poison message is in the dead-letter queue: HandlerFailed (this order cannot be read)",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
    assert!(!said.contains('\x1b'), "a pipe is no terminal:\n{said}");
}

#[test]
fn completion_scripts_are_scripts_of_their_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let script = vorrang(&["completion", shell]).output().unwrap();
        assert!(script.status.success(), "{shell}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        std::fs::write(&file, &script.stdout).unwrap();
        // A shell that is not installed cannot be asked; bash is everywhere.
        match std::process::Command::new(shell).arg("-n").arg(&file).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {}", text(&output)),
            Err(_) => assert_ne!(shell, "bash"),
        }
    }
    let page = vorrang(&["man"]).output().unwrap();
    let page = String::from_utf8(page.stdout).unwrap();
    let commands: BTreeSet<String> =
        leaves(&[]).iter().filter_map(|words| words.split_whitespace().next()).map(str::to_owned).collect();
    for command in commands {
        assert!(page.contains(&format!("vorrang\\-{command}")), "the man page does not know {command}");
    }
}
