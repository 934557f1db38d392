//! Every command against a real broker: what it does, what it says, and the number it ends with.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected shall stop")]

mod support;

use serde_json::Value;
use support::bench::{Bench, text, vorrang};
use support::{Broker, until};

#[test]
fn entities_are_created_listed_shown_updated_and_deleted() {
    let bench = Bench::start();
    bench.ok(&[
        "queue",
        "create",
        "orders",
        "--max-delivery-count",
        "3",
        "--lock-duration",
        "30s",
        "--requires-session",
        "--requires-duplicate-detection",
    ]);
    let shown = bench.json(&["queue", "show", "orders"]);
    let properties = &shown["properties"];
    assert_eq!(properties["lockDuration"], "PT30S");
    assert_eq!(properties["maxDeliveryCount"], 3);
    assert!(properties["requiresSession"] == true && properties["requiresDuplicateDetection"] == true);
    let update = [
        "queue",
        "update",
        "orders",
        "--lock-duration",
        "PT1M",
        "--policy",
        "aged:10s",
        "--class",
        "gold=8:10s",
    ];
    bench.ok(&[
        &update[..],
        &["--priority-rule", "gold=Tier = 'paying'", "--rescue-after", "1m", "--rescue-share", "0.2"],
    ]
    .concat());
    let properties = bench.json(&["queue", "show", "orders"])["properties"].clone();
    assert_eq!(properties["classes"][0]["targetWait"], "PT10S");
    assert_eq!((&properties["policy"], &properties["agedStep"]), (&"aged".into(), &"PT10S".into()));
    assert_eq!(properties["maxDeliveryCount"], 3, "what is not mentioned stays");
    assert!(bench.ok(&["queue", "list"]).contains("orders"));
    bench.ok(&["queue", "create", "orders", "--if-missing"]);
    bench.ok(&["topic", "create", "events"]);
    bench.ok(&["subscription", "create", "events", "high", "--filter", "Priority = 'High'"]);
    assert!(bench.ok(&["rule", "list", "events", "high"]).contains("Priority = 'High'"));
    bench.ok(&[
        "rule",
        "create",
        "events",
        "high",
        "red",
        "--correlation",
        "label=red",
        "--correlation",
        "property:shop=7",
    ]);
    bench.ok(&["rule", "update", "events", "high", "red", "--filter", "a = 1", "--action", "SET b = 2"]);
    assert_eq!(
        bench.json(&["rule", "show", "events", "high", "red"])["definition"]["action"]["expression"],
        "SET b = 2"
    );
    bench.ok(&["rule", "delete", "events", "high", "red"]);
    bench.ok(&["subscription", "update", "events", "high", "--max-delivery-count", "5"]);
    assert_eq!(bench.json(&["subscription", "show", "events", "high"])["properties"]["maxDeliveryCount"], 5);
    assert_eq!(bench.json(&["subscription", "list", "events"]).as_array().unwrap().len(), 1);
    bench.ok(&["topic", "update", "events", "--user-metadata", "a note"]);
    assert_eq!(bench.json(&["topic", "show", "events"])["properties"]["userMetadata"], "a note");
    bench.ok(&["topic", "list"]);
    bench.ok(&["subscription", "delete", "events", "high"]);
    bench.ok(&["topic", "delete", "events"]);
    bench.ok(&["queue", "delete", "orders"]);
    bench.ok(&["queue", "delete", "orders", "--if-exists"]);
}

#[test]
fn messages_are_sent_peeked_explained_moved_up_received_and_sent_again() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "q"]);
    let lines = "{\"body\":{\"text\":\"later\"},\"level\":1}\n{\"body\":{\"json\":{\"n\":1}},\"messageId\":\"m\",\"level\":4}\n";
    assert!(bench.send_lines("q", lines).contains("2 messages sent"));
    bench.ok(&[
        "send",
        "q",
        "--body",
        "first",
        "--class",
        "urgent",
        "--property",
        "shop=7",
        "--subject",
        "s",
    ]);
    let peeked = bench.ok(&["peek", "q", "--output", "json"]);
    assert_eq!(peeked.lines().count(), 3, "{peeked}");
    let sequence =
        serde_json::from_str::<Value>(peeked.lines().next().unwrap()).unwrap()["sequenceNumber"].to_string();
    assert!(bench.ok(&["explain", "q", &sequence]).contains("ahead at level"));
    assert!(
        bench
            .ok(&["reprioritise", "q", "--sequence", &sequence, "--level", "200"])
            .contains("1 messages got level 200")
    );
    bench.ok(&["pause", "q"]);
    assert!(bench.ok(&["queue", "list"]).contains("paused"));
    bench.ok(&["resume", "q"]);
    bench.ok(&["top", "--once"]);
    let file = bench.folder.path().join("out.jsonl").display().to_string();
    assert!(bench.ok(&["receive", "q", "--file", &file, "--wait", "300ms"]).contains("3 messages received"));
    let received = std::fs::read_to_string(&file).unwrap();
    let bodies: Vec<Value> =
        received.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].clone()).collect();
    assert_eq!(bodies[0]["text"], "later", "it was moved up: {received}");
    assert_eq!(bodies[1]["text"], "first", "{received}");
    assert_eq!(bodies[2]["json"]["n"], 1, "{received}");
    assert!(
        bench.ok(&["send", "q", "--file", &file]).contains("3 messages sent"),
        "what was received can be sent"
    );
    assert_eq!(bench.ok(&["receive", "q", "--max", "2", "--wait", "300ms"]).lines().count(), 2);
    assert_eq!(bench.json(&["queue", "show", "q"])["runtime"]["activeMessageCount"], 1);
}

#[test]
fn sessions_dead_letters_connections_and_definitions_are_worked_with() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "s", "--requires-session"]);
    bench.ok(&["send", "s", "--body", "x", "--session", "one"]);
    assert!(bench.ok(&["session", "list", "s"]).contains("one"));
    assert!(
        bench.ok(&["receive", "s", "--next-session", "--wait", "500ms"]).contains("\"sessionId\":\"one\"")
    );
    let dead = ["--default-message-time-to-live", "1s", "--dead-lettering-on-message-expiration"];
    bench.ok(&[&["queue", "create", "d"], &dead[..]].concat());
    bench.ok(&["send", "d", "--body", "x"]);
    support::until("the message is dead", || bench.ok(&["dlq", "list", "d"]).contains("TTLExpired"));
    assert!(bench.ok(&["dlq", "list", "d", "--messages"]).contains("active"));
    assert!(
        bench.ok(&["dlq", "replay", "d", "--all", "--dry-run"]).contains("1 messages would be sent again")
    );
    bench.ok(&["queue", "create", "e"]);
    let again = ["dlq", "replay", "d", "--all", "--to", "e", "--time-to-live", "48h"];
    assert!(bench.ok(&again).contains("1 messages were sent again"));
    let peeked: Value = serde_json::from_str(&bench.ok(&["peek", "e", "--output", "json"])).unwrap();
    let day = |property: &str| peeked[property].as_str().and_then(|time| time.get(..10)).unwrap().to_owned();
    assert!(day("expiresAt") > day("enqueuedAt"), "it lives for two days, and not for a second: {peeked}");
    assert!(bench.ok(&["dlq", "purge", "d", "--all"]).contains("0 messages were deleted"));
    let file = bench.folder.path().join("definitions.json").display().to_string();
    bench.ok(&["definitions", "export", "--file", &file]);
    bench.ok(&["queue", "delete", "e"]);
    assert!(bench.ok(&["definitions", "apply", &file, "--dry-run"]).contains("1 created"));
    assert!(bench.ok(&["definitions", "apply", &file]).contains("1 created"));
    assert!(bench.ok(&["definitions", "apply", &file]).contains("0 created"), "twice changes nothing");
    bench.ok(&["queue", "create", "extra"]);
    assert!(bench.ok(&["definitions", "apply", &file]).contains("1 not in the file"));
    bench.ok(&["queue", "show", "extra"]);
    assert!(bench.ok(&["definitions", "apply", &file, "--prune"]).contains("1 deleted"));
    assert_eq!(bench.fails(&["queue", "show", "extra"]).0, 6);
}

#[test]
fn what_goes_wrong_is_one_sentence_with_the_remedy_and_a_number_of_its_own() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "q"]);
    let nobody = [
        "--connection-string",
        "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=hunter2;HttpPort=1;UseDevelopmentEmulator=true",
    ];
    let amqp = bench.broker.door("amqp");
    let port = bench.broker.door("http").rsplit_once(':').unwrap().1.to_owned();
    let wrong = format!(
        "Endpoint=sb://{amqp};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=hunter2;HttpPort={port};UseDevelopmentEmulator=true"
    );
    bench.ok(&["topic", "create", "t"]);
    let key = bench.folder.path().join("key");
    std::fs::write(&key, "a-key-of-q").unwrap();
    bench.ok(&["queue", "update", "q", "--authorization-rule", &format!("own=Listen:{}", key.display())]);
    let entity = wrong.replace("RootManageSharedAccessKey", "own").replace("hunter2", "a-key-of-q");
    let tls = wrong.replace(";UseDevelopmentEmulator=true", "");
    let lines = bench.folder.path().join("lines").display().to_string();
    std::fs::write(&lines, "{\"body\":\"hello\"}\n").unwrap();
    let cases: Vec<(&str, Vec<&str>, i32, &str)> = vec![
        ("an unknown flag", vec!["queue", "create", "x", "--lock-duraton", "30s"], 2, "--lock-duration"),
        (
            "a wrong value",
            vec!["queue", "create", "x", "--lock-duration", "soon"],
            2,
            "allowed is a duration",
        ),
        ("nothing to change", vec!["queue", "update", "q"], 2, "name a property"),
        ("no broker", [&["queue", "list"], &nobody[..]].concat(), 4, "vorrang serve --dev"),
        (
            "a refused key",
            vec!["queue", "list", "--connection-string", &wrong],
            5,
            "check the connection string",
        ),
        (
            "a refused key over AMQP",
            vec!["send", "q", "--body", "x", "--connection-string", &wrong],
            5,
            "check the connection string",
        ),
        ("a missing queue", vec!["queue", "show", "absent"], 6, "absent"),
        ("a missing queue to send to", vec!["send", "absent", "--body", "x"], 6, "queue list"),
        ("a name that is taken", vec!["queue", "create", "q"], 7, "exists already; change it with `update`"),
        ("a missing message", vec!["explain", "q", "7"], 6, "`vorrang peek q` shows what there is"),
        (
            "TLS to a plain port",
            vec!["send", "q", "--body", "x", "--connection-string", &tls],
            4,
            "UseDevelopmentEmulator",
        ),
        (
            "a file with a line that is none",
            vec!["send", "q", "--file", &lines],
            2,
            "such as {\"body\":{\"text\":",
        ),
        ("a value out of bounds", vec!["queue", "create", "x", "--lock-duration", "1h"], 7, "300 s"),
        (
            "half a connection string",
            vec!["queue", "list", "--connection-string", "Endpoint=sb://h"],
            2,
            "SharedAccessKeyName",
        ),
        ("a topic to receive from", vec!["receive", "t"], 7, "name one as TOPIC/Subscriptions/NAME"),
        (
            "a missing topic",
            vec!["subscription", "create", "nope", "s"],
            6,
            "`vorrang topic create nope` makes it",
        ),
        ("a missing snapshot", vec!["dev", "snapshot", "restore", "nope"], 6, "`vorrang dev snapshot list`"),
        ("a missing connection", vec!["connection", "close", "999"], 6, "`vorrang connection list`"),
        ("a time that is none", vec!["dev", "advance", "soon"], 2, "write it like 30s"),
        (
            "a key of one entity for all",
            vec!["queue", "list", "--connection-string", &entity],
            5,
            "the whole namespace",
        ),
        ("a missing profile", vec!["queue", "list", "--profile", "nope"], 2, "profiles.toml"),
    ];
    for (case, arguments, number, remedy) in cases {
        let (code, said) = bench.fails(&arguments);
        assert_eq!(code, number, "{case}: {said}");
        assert!(said.contains(remedy), "{case}: {said}");
        assert!(!said.contains("hunter2"), "{case}: {said}");
        let twice = said.lines().filter(|line| line.contains(remedy)).count() > 1;
        assert!(!twice || number == 2, "{case} is said twice: {said}");
    }
}

#[test]
fn the_key_of_an_entity_opens_that_entity_when_the_connection_string_names_it() {
    let bench = Bench::start();
    let key = bench.folder.path().join("key");
    std::fs::write(&key, "a-key-of-one").unwrap();
    let rule = format!("own=Send,Listen,Manage:{}", key.display());
    bench.ok(&["queue", "create", "one/in", "--authorization-rule", &rule]);
    bench.ok(&["queue", "create", "other"]);
    let port = bench.broker.door("http").rsplit_once(':').unwrap().1.to_owned();
    let string = format!(
        "Endpoint=sb://{};SharedAccessKeyName=own;SharedAccessKey=a-key-of-one;HttpPort={port};\
         UseDevelopmentEmulator=true;EntityPath=one/in",
        bench.broker.door("amqp")
    );
    let with = ["--connection-string", string.as_str()];
    bench.ok(&[&["send", "one/in", "--body", "hello"], &with[..]].concat());
    assert!(bench.ok(&[&["peek", "one/in"], &with[..]].concat()).contains("hello"));
    assert!(bench.ok(&[&["queue", "show", "one/in"], &with[..]].concat()).contains("own=Send,Listen,Manage"));
    for other in [&["queue", "show", "other"][..], &["peek", "other"], &["queue", "list"]] {
        let (code, said) = bench.fails(&[other, &with[..]].concat());
        assert!(code == 5 && !said.contains("a-key-of-one"), "{other:?} {code}: {said}");
    }
}

#[test]
fn properties_are_shown_as_the_flags_take_them_and_targets_over_each_window() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "q", "--lock-duration", "PT45S", "--class", "gold=8:10s"]);
    let shown = bench.ok(&["queue", "show", "q"]);
    for (name, value) in [("lockDuration", "45s"), ("classes", "gold=8:10s"), ("autoDeleteOnIdle", "forever")]
    {
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with(&format!(" {value}")), "{line}");
    }
    let mut told = String::new();
    until("the target is told", || {
        told = bench.ok(&["targets"]);
        told.contains("gold")
    });
    assert!(told.starts_with("ENTITY  CLASS  TARGET  STATE  5 MIN  1 H  24 H  BURN 5 MIN"), "{told}");
    assert!(told.contains(" 10s "), "{told}");
}

#[test]
fn nasty_names_go_through_and_do_not_reach_the_terminal_as_they_are() {
    let bench = Bench::start();
    for name in ["a/b/c", "orders~1", "-dash.", "größe", "日本", "a'b", "a;b", "%2e%2e", "a b"] {
        let created = bench.run(&["queue", "create", "--", name]);
        let code = created.status.code().unwrap();
        if code == 0 {
            assert_eq!(bench.json(&["queue", "show", "--", name])["name"], name);
            bench.ok(&["send", "--body", "x", "--", name]);
            assert_eq!(bench.ok(&["receive", "--wait", "300ms", "--", name]).lines().count(), 1, "{name}");
            bench.ok(&["queue", "delete", "--", name]);
        } else {
            assert!(code == 7 || code == 6, "{name}: {}", text(&created));
        }
    }
    for name in ["", "a?b", "a\nb", "\u{1b}[31mred", "../../etc/passwd", "$management", "a\\b", "x\u{202e}y"]
    {
        let (code, said) = bench.fails(&["queue", "show", "--", name]);
        assert!(code == 6 || code == 7 || code == 4, "{name:?} {code}: {said}");
        assert!(!said.contains('\u{1b}') && !said.contains('\u{202e}'), "{said:?}");
    }
    bench.ok(&["queue", "create", "q"]);
    bench.ok(&["send", "q", "--body", "\u{1b}[2Jgone", "--subject", "a\nb"]);
    assert!(!bench.ok(&["peek", "q"]).contains('\u{1b}'));
}

#[test]
fn profiles_name_brokers_and_the_doctor_asks_the_one_that_runs() {
    let bench = Bench::start();
    let config = bench.folder.path().join("config");
    std::fs::create_dir_all(config.join("vorrang")).unwrap();
    let profile = format!(
        "default = \"here\"\n[profile.here]\nhttp = \"{}\"\nconnection_string = \"Endpoint=sb://{};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true\"\n",
        bench.broker.door("http"),
        bench.broker.door("amqp")
    );
    std::fs::write(config.join("vorrang/profiles.toml"), profile).unwrap();
    let run = |arguments: &[&str]| {
        vorrang(arguments).env("XDG_CONFIG_HOME", &config).current_dir(bench.folder.path()).output().unwrap()
    };
    assert!(run(&["queue", "list"]).status.success());
    assert!(run(&["queue", "list", "--profile", "here"]).status.success());
    let output = run(&["doctor", "--data-dir", "data"]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for part in ["in use by a broker", "disk speed", "clock", "port AMQP", "is ready", "version"] {
        assert!(said.contains(part), "{part} not in\n{said}");
    }
    assert!(!said.contains("SAS_KEY_VALUE"), "{said}");
    // What it looks at is what `serve` would use; a clock that was set ahead is not taken for a wrong one.
    run(&["dev", "advance", "2h"]);
    let file = bench.folder.path().join("vorrang.toml");
    let amqp = bench.broker.door("amqp").rsplit_once(':').unwrap().1.to_owned();
    std::fs::write(&file, format!("data_dir = \"data\"\namqp_port = {amqp}\n")).unwrap();
    let output = run(&["doctor"]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for part in ["data is in use by a broker", &format!(":{amqp} cannot be had"), "2h it was set ahead"] {
        assert!(said.contains(part), "{part} not in\n{said}");
    }
    // Without a connection, the broker that is asked is the configured one; its key is not known, which is no fault.
    let own = tempfile::tempdir().unwrap();
    let broker = Broker::start_with(own.path(), &[]);
    let ports = ["amqp", "http"].map(|door| broker.door(door).rsplit_once(':').unwrap().1.to_owned());
    let variables = [("VORRANG_AMQP_PORT", &ports[0]), ("VORRANG_HTTP_PORT", &ports[1])];
    let output = vorrang(&["doctor"]).envs(variables).current_dir(own.path()).output().unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!(":{} is ready", ports[1])) && said.contains("not tried"), "{said}");
    std::fs::write(&file, "amqp_port = 70000\n").unwrap();
    let output = run(&["doctor"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(8), "{said}");
    assert!(said.contains("amqp_port cannot be 70000") && said.contains("look at: configuration"), "{said}");
}

#[test]
fn a_request_without_a_worker_is_told_so_and_leaves_nothing_behind() {
    let bench = Bench::start();
    bench.ok(&["queue", "create", "work"]);
    let (code, said) = bench.fails(&["call", "work", "--body", "ping", "--wait", "100ms"]);
    assert!(code == 7 && said.contains("no reply"), "{code}: {said}");
    assert_eq!(bench.json(&["queue", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn completion_and_man_page_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = vorrang(&["completion", shell]).output().unwrap();
        assert!(output.status.success() && text(&output).contains("reprioritise"), "{shell}");
    }
    let output = vorrang(&["man"]).output().unwrap();
    assert!(output.status.success() && text(&output).contains(".SH"));
}
