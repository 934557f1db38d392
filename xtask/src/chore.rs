//! Running commands: each prints what it does and fails with what it was doing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The root of the workspace, wherever the chore was started from.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

/// The cargo that started us, so that nested runs use the same toolchain.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs `command` to its end, showing its output; an unsuccessful end is an error that names `what`.
pub(crate) fn run(what: &str, command: &mut Command) -> Result<()> {
    println!("==> {what}");
    let started = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {command:?} for '{what}'"))?;
    if !status.success() {
        bail!("'{what}' failed ({status}): {command:?}");
    }
    println!("    {what}: {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Runs an example program of a workspace package in release mode.
pub(crate) fn cargo_example(package: &str, example: &str, options: &[&str]) -> Result<()> {
    let mut command = cargo(&["run", "--release", "--package", package, "--example", example, "--"]);
    command.args(options);
    run(example, &mut command)
}

/// Builds examples as the tests do, whose run has built them already; where they are. The whole workspace is named because a
/// package alone would want its dependencies with fewer features, and have them built once more.
pub(crate) fn tested_examples(names: &[&str]) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--locked", "--profile", "test", "--workspace"]);
    for name in names {
        build.args(["--example", name]);
    }
    run(&format!("build {}", names.join(", ")), &mut build)?;
    Ok(target_folder().join("debug/examples"))
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
