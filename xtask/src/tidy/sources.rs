//! What a source file must not contain, and how long it may grow.

use super::{Finding, Source};

/// Past this many lines a file holds a second idea.
const LINES_MAX: usize = 800;

/// Words that belong to the edges of the broker, and where they are at home.
const AT_HOME: &[(&str, &[&str])] = &[
    ("tokio::", SHELL),
    ("std::net", SHELL),
    ("std::fs", &["server", "client", "worker", "cli", "bench", "xtask", "log/src/disk/real.rs"]),
    ("Instant::now", SHELL),
    ("SystemTime::now", SHELL),
    ("std::thread", &["server", "client", "worker", "cli", "bench", "broker", "log", "xtask"]),
];

/// The crates that touch the world.
const SHELL: &[&str] = &["server", "client", "worker", "cli", "bench", "xtask"];

/// What is unfinished or silenced, wherever it stands.
const UNFINISHED: &[&str] = &["todo!(", "unimplemented!(", "#[ignore", "dbg!("];

/// Paths that exist on one machine only.
const LOCAL_PATHS: &[&str] = &["/work/", "/tmp/brief", "/tmp/target"];

/// Checks one file.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = source.text.lines().count();
    if lines > LINES_MAX {
        let text = format!("{lines} lines, more than {LINES_MAX}: look for the second idea inside");
        findings.push(Finding { place: source.path.clone(), text });
    }
    if source.path.starts_with("xtask/src/tidy") {
        return findings; // the tables above name what they forbid
    }
    let mut in_tests = is_test_file(&source.path);
    for (number, line) in source.text.lines().enumerate() {
        in_tests |= line.trim_start().starts_with("#[cfg(test)]");
        let place = || format!("{}:{}", source.path, number + 1);
        for word in UNFINISHED {
            if line.contains(word) {
                findings.push(Finding {
                    place: place(),
                    text: format!("'{word}' is not for a finished project"),
                });
            }
        }
        for path in LOCAL_PATHS {
            if line.contains(path) {
                findings
                    .push(Finding { place: place(), text: format!("'{path}' exists on one machine only") });
            }
        }
        if in_tests || line.trim_start().starts_with("//") {
            continue;
        }
        for (word, homes) in AT_HOME {
            if line.contains(word) && !homes.iter().any(|home| is_at_home(&source.path, home)) {
                findings.push(Finding {
                    place: place(),
                    text: format!("'{word}' belongs to {}", homes.join(", ")),
                });
            }
        }
    }
    findings
}

fn is_test_file(path: &str) -> bool {
    ["/tests/", "/examples/", "/benches/", "/tests.rs"].iter().any(|part| path.contains(part))
}

fn is_at_home(path: &str, home: &str) -> bool {
    path.starts_with(&format!("{home}/"))
        || path.starts_with(&format!("crates/{home}/"))
        || path.ends_with(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Source { path: path.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn each_rule_catches_a_planted_violation_and_spares_its_neighbour() {
        let cases = [
            ("a clock in the engine", "crates/engine/src/state.rs", "let now = Instant::now();", 1),
            ("a clock in the server", "crates/server/src/main.rs", "let now = Instant::now();", 0),
            ("files in the log's core", "crates/log/src/ring.rs", "use std::fs::File;", 1),
            ("files in the log's one file", "crates/log/src/disk/real.rs", "use std::fs::File;", 0),
            ("a socket in the codec", "crates/amqp/src/lib.rs", "use tokio::net::TcpStream;", 1),
            ("a clock named in a comment", "crates/engine/src/state.rs", "// never Instant::now()", 0),
            (
                "a clock in a test",
                "crates/engine/src/state.rs",
                "#[cfg(test)]\nmod t { fn f() { Instant::now(); } }",
                0,
            ),
            ("something unfinished", "crates/cli/src/main.rs", "fn f() { todo!() }", 1),
            ("a silenced test", "crates/cli/src/main.rs", "#[ignore = \"slow\"]", 1),
            ("a machine's path", "crates/cli/src/main.rs", "let path = \"/work/data\";", 1),
        ];
        for (case, path, text, expected) in cases {
            assert_eq!(findings(path, text), expected, "{case}");
        }
    }

    #[test]
    fn a_file_may_be_long_but_not_too_long() {
        assert_eq!(findings("crates/cli/src/main.rs", &"\n".repeat(LINES_MAX)), 0);
        assert_eq!(findings("crates/cli/src/main.rs", &"\n".repeat(LINES_MAX + 1)), 1);
    }
}
