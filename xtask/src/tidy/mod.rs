//! `cargo xtask tidy`: the rules of the house that a compiler does not check.
//!
//! Each rule is a function from text to findings, so that its tests can plant a violation.

mod dependencies;
mod imports;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::chore::root;

/// A rule broken somewhere: where, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) place: String,
    pub(crate) text: String,
}

/// A file of the project, with its path relative to the root.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Checks every rule and lists all findings at once.
pub(crate) fn run() -> Result<()> {
    println!("==> tidy");
    let sources = rust_sources()?;
    let mut findings = Vec::new();
    for source in &sources {
        findings.extend(sources::check(source));
    }
    for manifest in manifests()? {
        findings.extend(imports::check(&manifest));
    }
    let workspace = read("Cargo.toml")?;
    findings.extend(dependencies::check(&workspace, &read("docs/dependencies.md")?));
    for finding in &findings {
        println!("{}: {}", finding.place, finding.text);
    }
    if !findings.is_empty() {
        bail!("tidy: {} finding(s) in {} files", findings.len(), sources.len());
    }
    println!("    tidy: {} files in order", sources.len());
    Ok(())
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))
}

fn rust_sources() -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    for folder in ["crates", "xtask", "fuzz", "bench", "examples"] {
        walk(&root().join(folder), "rs", &mut paths)?;
    }
    load(paths)
}

fn manifests() -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    walk(&root().join("crates"), "toml", &mut paths)?;
    paths.retain(|path| path.ends_with("Cargo.toml"));
    load(paths)
}

fn load(mut paths: Vec<PathBuf>) -> Result<Vec<Source>> {
    paths.sort();
    let base = root();
    paths
        .into_iter()
        .map(|path| {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.strip_prefix(&base).unwrap_or(&path).to_string_lossy().into_owned();
            Ok(Source { path: name, text })
        })
        .collect()
}

/// All files below `folder` with this extension, leaving out what builds leave behind.
fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "node_modules" | ".venv" | "corpus" | "artifacts") {
                walk(&path, extension, found)?;
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    Ok(())
}
