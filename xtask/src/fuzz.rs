//! `cargo xtask fuzz`: every libFuzzer target for a while, or those that are named.
//!
//! The targets only call the check functions of the crates, which the ordinary tests also run
//! over the stored corpora; so a crash found here becomes a test by copying its input there.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::chore::{self, cargo, root};

/// Runs the targets, each for the given number of seconds (60 unless told).
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let Wanted { seconds, names } = Wanted::read(options)?;
    let folder = root().join("fuzz/fuzz_targets");
    let mut targets: Vec<String> = fs::read_dir(&folder)
        .with_context(|| format!("cannot list {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    if let Some(unknown) = names.iter().find(|name| !targets.contains(name)) {
        bail!("there is no fuzz target '{unknown}'; there are {}", targets.join(", "));
    }
    targets.retain(|target| names.is_empty() || names.contains(target));
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

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    seconds: u64,
    /// All of them, if none is named.
    names: Vec<String>,
}

impl Wanted {
    fn read(options: &[&str]) -> Result<Wanted> {
        let mut wanted = Wanted { seconds: 60, names: Vec::new() };
        let mut rest = options;
        loop {
            rest = match rest {
                [] => return Ok(wanted),
                ["--seconds", count, rest @ ..] => {
                    let wrong = || format!("--seconds takes a whole number, not '{count}'");
                    wanted.seconds = count.parse().with_context(wrong)?;
                    rest
                }
                ["--target", name, rest @ ..] => {
                    wanted.names.push((*name).to_owned());
                    rest
                }
                [unknown, ..] => {
                    bail!("`cargo xtask fuzz` knows --seconds N and --target NAME, not '{unknown}'")
                }
            };
        }
    }
}

/// The corpus of a target, which is named after the crate and what it reads: `amqp_frame` starts from
/// `crates/amqp/corpus/frame`.
fn stored_inputs(target: &str) -> Option<PathBuf> {
    let (package, input) = target.split_once('_')?;
    let folder = root().join("crates").join(package).join("corpus").join(input);
    folder.is_dir().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_may_be_named_and_what_is_not_understood_is_said() {
        let read = |text: &str| Wanted::read(&text.split_whitespace().collect::<Vec<_>>());
        let wanted = |seconds, names: &[&str]| Wanted {
            seconds,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(read("").unwrap(), wanted(60, &[]));
        assert_eq!(read("--seconds 5").unwrap(), wanted(5, &[]));
        assert_eq!(read("--target a --seconds 5 --target b").unwrap(), wanted(5, &["a", "b"]));
        for wrong in ["--seconds", "--seconds x", "--target", "a", "--targets a"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
