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

/// The cargo that started us, so that nested runs use the same toolchain. What it told us about our own package is not passed
/// on: build scripts ask for some of it (that of `ring` does), and everything above them would be built once more whenever
/// a build by hand and one by a chore follow each other.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        if is_of_our_package(&name) {
            command.env_remove(name);
        }
    }
    command.args(arguments).current_dir(root());
    command
}

/// Whether cargo sets this variable for the program it runs, to speak of that program's package.
fn is_of_our_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_cargo_is_told_nothing_about_our_package_and_keeps_its_settings() {
        // Cargo sets it for tests as it does for `cargo run`.
        let ours = "CARGO_PKG_NAME";
        assert!(std::env::var_os(ours).is_some());
        let nested = cargo(&["build"]);
        let removed = |name: &str| nested.get_envs().any(|(known, value)| known == name && value.is_none());
        assert!(removed(ours) && removed("CARGO_MANIFEST_DIR"));
        assert!(!is_of_our_package("CARGO_TARGET_DIR") && !is_of_our_package("CARGO_INCREMENTAL"));
    }
}
