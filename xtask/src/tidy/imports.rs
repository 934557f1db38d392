//! Who may import whom. A crate earns its place by what it must *not* know.

use super::{Finding, Source};

/// Each crate and those of ours it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("amqp", &[]),
    ("filter", &[]),
    ("log", &[]),
    ("memory", &[]),
    ("engine", &["filter"]),
    ("broker", &["engine", "filter", "log", "memory"]),
    ("server", &["amqp", "broker", "engine", "filter", "log"]),
    ("client", &["amqp"]),
    ("worker", &["amqp", "client"]),
    ("sim", &["amqp", "broker", "engine", "filter", "log"]),
    ("bench", &["amqp", "client"]),
    ("cli", &["amqp", "broker", "client", "engine", "filter", "log", "memory", "server", "worker"]),
];

/// Checks one crate's manifest against the table.
pub(super) fn check(manifest: &Source) -> Vec<Finding> {
    let Some(name) = manifest.path.strip_prefix("crates/").and_then(|rest| rest.split('/').next()) else {
        return Vec::new();
    };
    let finding = |text: String| Finding { place: manifest.path.clone(), text };
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![finding(format!("crate '{name}' is not in the table of import directions"))];
    };
    our_dependencies(&manifest.text)
        .into_iter()
        .filter(|dependency| dependency != name && !allowed.contains(&dependency.as_str()))
        .map(|dependency| finding(format!("'{name}' must not know '{dependency}'")))
        .collect()
}

/// The `vorrang-…` packages a manifest depends on outside of its tests.
fn our_dependencies(manifest: &str) -> Vec<String> {
    let mut ours = Vec::new();
    let mut counts = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            counts = line.contains("dependencies") && !line.contains("dev-dependencies");
        } else if counts && let Some(rest) = line.strip_prefix("vorrang-") {
            let end = rest.find(['.', ' ', '=']).unwrap_or(rest.len());
            ours.extend(rest.get(..end).map(str::to_owned));
        }
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_crate_may_depend_only_on_what_it_may_know() {
        let cases = [
            (
                "engine knows filter",
                "crates/engine/Cargo.toml",
                "[dependencies]\nvorrang-filter.workspace = true",
                0,
            ),
            (
                "engine must not know log",
                "crates/engine/Cargo.toml",
                "[dependencies]\nvorrang-log = { path = \"\" }",
                1,
            ),
            (
                "amqp knows nobody",
                "crates/amqp/Cargo.toml",
                "[dependencies]\nvorrang-filter.workspace = true",
                1,
            ),
            (
                "tests may look around",
                "crates/amqp/Cargo.toml",
                "[dev-dependencies]\nvorrang-log.workspace = true",
                0,
            ),
            ("an unknown crate is named", "crates/utils/Cargo.toml", "[dependencies]", 1),
        ];
        for (case, path, text, findings) in cases {
            assert_eq!(check(&manifest(path, text)).len(), findings, "{case}");
        }
    }
}
