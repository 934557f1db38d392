//! `cargo xtask test`: everything that must hold before a change lands.

use std::process::Command;

use anyhow::{Result, bail};

use crate::chore::{self, cargo, root};
use crate::{conformance, postgres, tidy};

/// Fresh seeds for the simulator, on every run.
const SEEDS: &str = "200";

/// The real clients whose languages a newcomer is expected to have.
const CLIENTS: [&str; 6] = ["interop", "api", "proton", "python", "javascript", "samples"];

/// Runs all checks, the ones that fail fastest first.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    if let [unknown, ..] = options {
        bail!("`cargo xtask test` knows no option '{unknown}'");
    }
    chore::run("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    tidy::run()?;
    let lints = ["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
    chore::run("lints", &mut cargo(&lints))?;
    postgres::ensure()?;
    chore::run("tests", &mut cargo(&["test", "--workspace", "--locked"]))?;
    let mut docs = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
    chore::run("docs", docs.env("RUSTDOCFLAGS", "--deny warnings"))?;
    let simulate = chore::tested_examples(&["simulate"])?.join("simulate");
    chore::run("simulate", Command::new(simulate).args(["--seeds", SEEDS]).current_dir(root()))?;
    conformance::run(&CLIENTS)
}
