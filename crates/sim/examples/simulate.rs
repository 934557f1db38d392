//! Runs seeds: `simulate --seeds N [--base B] [--seed S] [--hours H] [--verbose]`.
//!
//! Fresh seeds begin at the time of day unless `--base` is given. A violation is printed with its seed,
//! and `--seed` with `--verbose` shows that run again, event by event. Exits non-zero on a violation.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
#![allow(clippy::disallowed_methods, reason = "fresh seeds come from the clock")]

use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use vorrang_sim::coverage::Coverage;
use vorrang_sim::{Setup, run};

const USAGE: &str = "simulate --seeds N [--base B] [--seed S] [--hours H] [--verbose]";

struct Arguments {
    seeds: u64,
    base: u64,
    hours: f64,
    verbose: bool,
}

fn parse() -> Option<Arguments> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut parsed =
        Arguments { seeds: 20, base: now.wrapping_mul(1_000_000), hours: 1.0 / 30.0, verbose: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" => parsed.seeds = words.next()?.parse().ok()?,
            "--base" => parsed.base = words.next()?.parse().ok()?,
            "--seed" => (parsed.base, parsed.seeds) = (words.next()?.parse().ok()?, 1),
            "--hours" => parsed.hours = words.next()?.parse().ok()?,
            "--verbose" => parsed.verbose = true,
            _ => return None,
        }
    }
    Some(parsed)
}

fn main() -> ExitCode {
    let Some(Arguments { seeds, base, hours, verbose }) = parse() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let length = u64::try_from(std::time::Duration::from_secs_f64(hours * 3_600.0).as_millis()).unwrap_or(0);
    let verbose: Option<fn(&str)> = if verbose { Some(|line| print!("{line}")) } else { None };
    let (started, mut coverage) = (Instant::now(), Coverage::default());
    let (mut acknowledged, mut delivered, mut violations) = (0, 0, 0);
    for seed in (base..).take(usize::try_from(seeds).unwrap_or(usize::MAX)) {
        let report = run(Setup { length, verbose, ..Setup::of(seed) });
        acknowledged += report.acknowledged;
        delivered += report.delivered;
        coverage.add(&report.coverage);
        for violation in report.violations.iter().take(5) {
            println!("seed {seed} breaks {}: {}", violation.promise, violation.text);
        }
        if !report.violations.is_empty() {
            violations += 1;
            println!("    again: simulate --seed {seed} --hours {hours} --verbose");
        }
    }
    println!("{coverage}");
    println!(
        "{seeds} seeds from {base}, {:.1} simulated hours, {acknowledged} messages acknowledged, {delivered} \
         delivered, {violations} seeds with violations, {:.1} s",
        hours * f64::from(u32::try_from(seeds).unwrap_or(u32::MAX)),
        started.elapsed().as_secs_f64(),
    );
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
