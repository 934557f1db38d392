//! Holds `docs/conformance.md` to the tests: every number has a line, every line names tests that exist, and
//! every numbered test here has its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How many numbers each group of the checklist has.
const GROUPS: [(char, u32); 14] = [
    ('A', 16),
    ('B', 16),
    ('C', 16),
    ('D', 14),
    ('E', 19),
    ('F', 11),
    ('G', 18),
    ('H', 14),
    ('I', 6),
    ('J', 8),
    ('K', 9),
    ('L', 12),
    ('M', 5),
    ('N', 22),
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What is wrong between a table, the names of the tests here, and the files there are.
fn problems(table: &str, tests: &BTreeSet<String>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines: BTreeMap<String, (Vec<String>, String)> = BTreeMap::new();
    let mut found = Vec::new();
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, named, state] = cells[..] else { continue };
        if !number.starts_with(|letter: char| letter.is_ascii_uppercase()) || number.len() > 4 {
            continue;
        }
        let names = named.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        if lines.insert(number.to_owned(), (names, state.to_owned())).is_some() {
            found.push(format!("{number} has two lines"));
        }
    }
    let numbers = GROUPS.iter().flat_map(|(group, count)| (1..=*count).map(move |n| format!("{group}{n}")));
    for number in numbers.chain(["D14a".to_owned()]) {
        let Some((names, state)) = lines.get(&number) else {
            found.push(format!("{number} has no line"));
            continue;
        };
        if names.is_empty() && !state.starts_with("open") {
            found.push(format!("{number} has no test"));
        }
        if !["holds", "deviates: ", "open: "].iter().any(|word| state.starts_with(word)) {
            found.push(format!("{number} is neither held nor explained: {state}"));
        }
        for name in names {
            let known = if name.contains('/') { exists(name) } else { tests.contains(name) };
            if !known {
                found.push(format!("{number} names {name}, which is not there"));
            }
        }
    }
    for test in tests {
        let number = test.split('_').next().unwrap_or_default();
        let is_numbered = number.len() > 1
            && number.starts_with(|letter: char| letter.is_ascii_lowercase())
            && number[1..].starts_with(|digit: char| digit.is_ascii_digit());
        let mut key = number.to_owned();
        key[..1].make_ascii_uppercase();
        if is_numbered && !lines.get(&key).is_some_and(|(names, _)| names.contains(test)) {
            found.push(format!("{test} is in no line of {key}"));
        }
    }
    found
}

/// The names of all tests of this binary.
fn tests() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let mut names = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line == "#[test]" {
                let function = lines.next().unwrap();
                names.extend(
                    function.strip_prefix("fn ").and_then(|rest| rest.split('(').next()).map(str::to_owned),
                );
            }
        }
    }
    names
}

#[test]
fn the_conformance_table_agrees_with_the_tests() {
    let table = std::fs::read_to_string(repository().join("docs/conformance.md")).unwrap();
    let found = problems(&table, &tests(), |path| repository().join(path).exists());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_table_that_does_not_agree_is_found_out() {
    let table = std::fs::read_to_string(repository().join("docs/conformance.md")).unwrap();
    let exists = |path: &str| repository().join(path).exists();
    let without = |line: &str| {
        let kept: Vec<&str> = table.lines().filter(|found| !found.starts_with(line)).collect();
        problems(&kept.join("\n"), &tests(), exists)
    };
    assert!(without("| A3 ").iter().any(|problem| problem == "A3 has no line"));
    let renamed = table.replace("`a5_", "`a5_x_");
    assert!(
        problems(&renamed, &tests(), exists).iter().any(|problem| problem.contains("which is not there"))
    );
    let mut more = tests();
    more.insert("f12_something_new".to_owned());
    assert!(problems(&table, &more, exists).iter().any(|problem| problem.contains("f12_something_new")));
}
