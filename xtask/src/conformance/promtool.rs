//! Prometheus' own checker of metrics.
//!
//! Where it is missing, Debian's package is fetched and unpacked, not installed: installed, it would start a server.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::packages;

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
    packages::unpack(PROGRAM, PACKAGE, folder)
        .and_then(|()| found().context("the package does not have it"))
        .with_context(|| format!("the tests need {PROGRAM}: install '{PACKAGE}', or have it in PATH"))
}
