//! Runs seeds: `simulate --seeds N [--base B] [--seed S] [--hours H] [--threads T] [--verbose]`.
//!
//! Fresh seeds begin at the time of day unless `--base` is given. A violation is printed with its seed,
//! and `--seed` with `--verbose` shows that run again, event by event. Exits non-zero on a violation.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
#![allow(clippy::disallowed_methods, reason = "fresh seeds come from the clock")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use vorrang_sim::coverage::Coverage;
use vorrang_sim::{Report, Setup, run};

const USAGE: &str = "simulate --seeds N [--base B] [--seed S] [--hours H] [--threads T] [--verbose]";

struct Arguments {
    seeds: u64,
    base: u64,
    hours: f64,
    threads: usize,
    verbose: bool,
}

fn parse() -> Option<Arguments> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let base = now.wrapping_mul(1_000_000);
    let mut parsed = Arguments { seeds: 20, base, hours: 1.0 / 30.0, threads, verbose: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" => parsed.seeds = words.next()?.parse().ok()?,
            "--base" => parsed.base = words.next()?.parse().ok()?,
            "--seed" => (parsed.base, parsed.seeds) = (words.next()?.parse().ok()?, 1),
            "--hours" => parsed.hours = words.next()?.parse().ok()?,
            "--threads" => parsed.threads = words.next()?.parse().ok()?,
            // Lines of two runs at once could not be told apart.
            "--verbose" => (parsed.verbose, parsed.threads) = (true, 1),
            _ => return None,
        }
    }
    Some(parsed)
}

/// What all runs came to.
#[derive(Default)]
struct Total {
    coverage: Coverage,
    acknowledged: u64,
    delivered: u64,
    violations: u64,
}

impl Total {
    fn add(&mut self, seed: u64, hours: f64, report: &Report) {
        self.acknowledged += report.acknowledged;
        self.delivered += report.delivered;
        self.coverage.add(&report.coverage);
        for violation in report.violations.iter().take(5) {
            println!("seed {seed} breaks {}: {}", violation.promise, violation.text);
        }
        if !report.violations.is_empty() {
            self.violations += 1;
            println!("    again: simulate --seed {seed} --hours {hours} --verbose");
        }
    }
}

fn main() -> ExitCode {
    let Some(Arguments { seeds, base, hours, threads, verbose }) = parse() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let length = u64::try_from(std::time::Duration::from_secs_f64(hours * 3_600.0).as_millis()).unwrap_or(0);
    let verbose: Option<fn(&str)> = if verbose { Some(|line| print!("{line}")) } else { None };
    let started = Instant::now();
    // Seeds share nothing: which thread lives through one makes no difference to it.
    let (next, total) = (AtomicU64::new(0), Mutex::new(Total::default()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= seeds {
                        return;
                    }
                    let seed = base.wrapping_add(index);
                    let report = run(Setup { length, verbose, ..Setup::of(seed) });
                    total.lock().unwrap_or_else(PoisonError::into_inner).add(seed, hours, &report);
                }
            });
        }
    });
    let Total { coverage, acknowledged, delivered, violations } =
        total.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{coverage}");
    println!(
        "{seeds} seeds from {base}, {:.1} simulated hours, {acknowledged} messages acknowledged, {delivered} \
         delivered, {violations} seeds with violations, {:.1} s on {threads} threads",
        hours * f64::from(u32::try_from(seeds).unwrap_or(u32::MAX)),
        started.elapsed().as_secs_f64(),
    );
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
