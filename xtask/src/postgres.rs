//! A PostgreSQL server for the tests that start one; installed where it is missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::chore;

/// Where Debian keeps the server's programs, by version and out of the path.
const SYSTEM: &str = "/usr/lib/postgresql";
/// Debian's package of the server.
const PACKAGE: &str = "postgresql";

/// Sees to it that `initdb` and `postgres` are here.
pub(crate) fn ensure() -> Result<()> {
    if is_here() {
        return Ok(());
    }
    chore::run("look for new packages", &mut privileged("apt-get", &["update", "--quiet"]))?;
    let install = ["install", "--yes", "--quiet", "--no-install-recommends", PACKAGE];
    chore::run("install PostgreSQL", &mut privileged("apt-get", &install))
        .with_context(|| format!("the tests need PostgreSQL: install '{PACKAGE}', or have `initdb` in PATH"))
}

/// As root directly, else by `sudo` without asking for a password.
pub(crate) fn privileged(program: &str, arguments: &[&str]) -> Command {
    let by_sudo = Path::new("/usr/bin/sudo").exists();
    let mut command = Command::new(if by_sudo { "sudo" } else { program });
    if by_sudo {
        command.args(["--non-interactive", program]);
    }
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
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
