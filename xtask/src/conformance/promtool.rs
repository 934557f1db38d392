//! Prometheus' own checker of metrics.
//!
//! Where it is missing, Debian's package is fetched and unpacked, not installed: installed, it would start a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::chore;
use crate::postgres::privileged;

const PROGRAM: &str = "promtool";
/// Debian's package that has it.
const PACKAGE: &str = "prometheus";

/// The checker: the one in the path, or the one unpacked into `folder`.
pub(super) fn ensure(folder: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let unpacked = folder.join("usr/bin");
    let found = || {
        let mut folders = std::env::split_paths(&path).chain([unpacked.clone()]);
        folders.find_map(|folder| Some(folder.join(PROGRAM)).filter(|program| program.is_file()))
    };
    if let Some(program) = found() {
        return Ok(program);
    }
    fetch(folder)
        .and_then(|()| found().context("the package does not have it"))
        .with_context(|| format!("the tests need {PROGRAM}: install '{PACKAGE}', or have it in PATH"))
}

fn fetch(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    chore::run("look for new packages", &mut privileged("apt-get", &["update", "--quiet"]))?;
    let mut download = Command::new("apt-get");
    chore::run("fetch promtool", download.args(["download", "--quiet", PACKAGE]).current_dir(folder))?;
    for file in fs::read_dir(folder)? {
        let package = file?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            let mut unpack = Command::new("dpkg-deb");
            chore::run("unpack promtool", unpack.arg("--extract").arg(&package).arg(folder))?;
            fs::remove_file(&package)?;
        }
    }
    Ok(())
}
