//! Chores of the project, as one command: `cargo xtask test` is everything CI needs.
//!
//! Each chore is a small module; this file only reads the command line and calls one.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks on its terminal")]
#![allow(clippy::disallowed_methods, reason = "chores measure how long they take")]

mod bench;
mod chore;
mod conformance;
mod fuzz;
mod packages;
mod postgres;
mod test;
mod tidy;

use anyhow::{Result, bail};

const HELP: &str = "\
Chores of the Vorrang project.

Usage: cargo xtask <chore> [options]

  test                  format, tidy, lints, all tests, simulation seeds, docs: what CI runs
  tidy                  import directions, banned calls, file sizes, dependency list
  crash [--full]        the crash explorer of the log, with its counts printed
  conformance [--release-binary PATH] [--filter TEXT] [interop|proton|python|javascript|go ...]
                        real AMQP and Service Bus clients against the release binary
  bench NAME [options]  a measurement: filter, engine, fan-out, log, codec, connection, shard, load, disk,
                        amqp, connections, instructions, flame (where the broker's time goes, as pictures),
                        peers (side by side with other brokers; --quick, --full, --debian)
  fuzz [--seconds N] [--target NAME]…
                        every fuzz target, or those named, for N seconds (needs a nightly toolchain and cargo-fuzz)
";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test", options @ ..] => test::run(options),
        ["tidy"] => tidy::run(),
        ["crash", options @ ..] => chore::cargo_example("vorrang-log", "crash_explorer", options),
        ["conformance", options @ ..] => conformance::run(options),
        ["bench", options @ ..] => bench::run(options),
        ["fuzz", options @ ..] => fuzz::run(options),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        [unknown, ..] => bail!("there is no chore '{unknown}'; `cargo xtask help` lists them"),
    }
}
