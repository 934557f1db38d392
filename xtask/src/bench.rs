//! `cargo xtask bench`: the measurements, by name. Figures are printed, never asserted.

use anyhow::{Result, bail};

use crate::chore::{self, cargo};

/// Measurements that live beside what they measure.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("filter", "vorrang-filter", "filter_bench"),
    ("engine", "vorrang-engine", "engine_bench"),
    ("fan-out", "vorrang-engine", "fan_out_bench"),
    ("log", "vorrang-log", "log_bench"),
    ("codec", "vorrang-amqp", "codec_bench"),
    ("connection", "vorrang-amqp", "connection_bench"),
    ("shard", "vorrang-broker", "shard_bench"),
];

/// Runs one measurement in release mode, with the options it takes itself.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["flame", options @ ..] => {
            let build = &["build", "--profile", "profiling", "--bin", "vorrang"];
            chore::run("build the broker with its lines", &mut cargo(build))?;
            generator("flame", options)
        }
        [name @ ("load" | "disk" | "amqp" | "connections" | "peers" | "instructions"), options @ ..] => {
            chore::run("build the broker", &mut cargo(&["build", "--release", "--bin", "vorrang"]))?;
            generator(name, options)
        }
        [name, options @ ..] => match EXAMPLES.iter().find(|(known, ..)| known == name) {
            Some((_, package, example)) => chore::cargo_example(package, example, options),
            None => bail!("there is no measurement '{name}'; there are {}", names()),
        },
        [] => bail!("which measurement? There are {}", names()),
    }
}

/// Runs a measurement of the load generator's.
fn generator(name: &str, options: &[&str]) -> Result<()> {
    let mut command = cargo(&["run", "--release", "--package", "vorrang-bench", "--", name]);
    chore::run(name, command.args(options))
}

fn names() -> String {
    let beside = EXAMPLES.iter().map(|(name, ..)| *name);
    beside
        .chain(["load", "disk", "amqp", "connections", "peers", "instructions", "flame"])
        .collect::<Vec<_>>()
        .join(", ")
}
