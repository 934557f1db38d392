//! A PostgreSQL server for the tests that start one; installed where it is missing.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::packages;

/// Where Debian keeps the server's programs, by version and out of the path.
const SYSTEM: &str = "/usr/lib/postgresql";
/// Debian's package of the server.
const PACKAGE: &str = "postgresql";

/// Sees to it that `initdb` and `postgres` are here.
pub(crate) fn ensure() -> Result<()> {
    if is_here() {
        return Ok(());
    }
    packages::install("PostgreSQL", PACKAGE)
        .with_context(|| format!("the tests need PostgreSQL: install '{PACKAGE}', or have `initdb` in PATH"))
}

fn is_here() -> bool {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    if let Ok(versions) = std::fs::read_dir(SYSTEM) {
        folders.extend(versions.filter_map(|version| Some(version.ok()?.path().join("bin"))));
    }
    let has = |folder: &PathBuf| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file());
    folders.iter().any(has)
}
