//! `cargo xtask fuzz`: every libFuzzer target for a while.
//!
//! The targets only call the check functions of the crates, which the ordinary tests also run
//! over the stored corpora; so a crash found here becomes a test by copying its input there.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::chore::{self, cargo, root};

/// Runs all targets, each for the given number of seconds (60 unless told).
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let seconds: u64 = match options {
        [] => 60,
        ["--seconds", count] => {
            count.parse().with_context(|| format!("--seconds takes a whole number, not '{count}'"))?
        }
        [unknown, ..] => bail!("`cargo xtask fuzz` knows --seconds N, not '{unknown}'"),
    };
    let folder = root().join("fuzz/fuzz_targets");
    let mut targets: Vec<String> = fs::read_dir(&folder)
        .with_context(|| format!("cannot list {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    if cargo(&["fuzz", "--version"]).output().is_ok_and(|output| !output.status.success()) {
        chore::run("install cargo-fuzz", &mut cargo(&["install", "cargo-fuzz", "--locked"]))?;
    }
    for target in targets {
        let limit = format!("-max_total_time={seconds}");
        let mut command = std::process::Command::new("cargo");
        // What is found is kept below the target directory; it starts from the stored inputs.
        let found = root().join("target/fuzz").join(&target);
        fs::create_dir_all(&found).with_context(|| format!("cannot make {}", found.display()))?;
        command.args(["+nightly", "fuzz", "run", &target]).arg(&found).args(stored_inputs(&target));
        command.args(["--", &limit]).current_dir(root());
        chore::run(&format!("fuzz {target}"), command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO"))?;
    }
    Ok(())
}

/// The corpus of a target, which is named after the crate and what it reads: `amqp_frame` starts from
/// `crates/amqp/corpus/frame`.
fn stored_inputs(target: &str) -> Option<PathBuf> {
    let (package, input) = target.split_once('_')?;
    let folder = root().join("crates").join(package).join("corpus").join(input);
    folder.is_dir().then_some(folder)
}
