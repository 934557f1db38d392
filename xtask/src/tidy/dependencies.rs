//! Every dependency is listed, with its reason, in `docs/dependencies.md`.

use super::Finding;

/// Checks that each workspace dependency that is not ours has its row.
pub(super) fn check(workspace: &str, list: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut counts = false;
    for line in workspace.lines() {
        if line.starts_with('[') {
            counts = line == "[workspace.dependencies]";
            continue;
        }
        let Some((name, _)) = line.split_once(['=', '.']).filter(|_| counts) else { continue };
        let name = name.trim();
        if !name.starts_with("vorrang-") && !list.contains(&format!("| `{name}` |")) {
            let text = format!("dependency '{name}' has no row (and reason) in docs/dependencies.md");
            findings.push(Finding { place: "Cargo.toml".to_owned(), text });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let workspace = "[workspace.dependencies]\nvorrang-log = { path = \"x\" }\nbytes = \"1\"\nrand = \"1\"\n[profile.dev]\n";
        let list = "| `bytes` | slices |";
        let found = check(workspace, list);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.contains("'rand'"));
    }
}
