//! Crashes, tears, fails and damages the log, and prints how much was tried.
//!
//! ```text
//! cargo run --release -p vorrang-log --example crash_explorer -- [--full] [--seeds N] [--first SEED] [--only explore|tear|inject|damage]
//! ```
//!
//! Without `--full` this is what the tests run, on other seeds. The first violation is printed
//! with its seed, and the exit code says so.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a command line program that reports how long it took"
)]

use std::process::ExitCode;
use std::time::Instant;
use vorrang_log::crash::{
    DamageCounts, ExploreCounts, InjectCounts, TearCounts, Thoroughness, Violation, damage, explore, inject,
    tear_share,
};
use vorrang_log::disk::{Fault, SimDisk};
use vorrang_log::{Limits, Options};

#[derive(Debug)]
struct Arguments {
    full: bool,
    seeds: u64,
    first: u64,
    only: Option<String>,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments { full: false, seeds: 0, first: 1000, only: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or(format!("{word} needs a number"))?;
            text.parse().map_err(|error| format!("{word} {text}: {error}"))
        };
        match word.as_str() {
            "--full" => parsed.full = true,
            "--seeds" => parsed.seeds = number()?,
            "--first" => parsed.first = number()?,
            "--only" => parsed.only = words.next(),
            other => return Err(format!("unknown argument {other}")),
        }
    }
    if parsed.seeds == 0 {
        parsed.seeds = if parsed.full { 40 } else { 4 };
    }
    Ok(parsed)
}

/// Entries large enough that their last 64 KiB can be torn byte by byte.
fn roomy() -> Options {
    Options {
        segment_bytes: 256 << 10,
        first_segment_bytes: 256 << 10,
        ring_bytes: 2 << 20,
        limits: Limits { batch_bytes: 68 << 10, record_bytes: 2 << 10 },
        ..Options::tiny()
    }
}

fn run(arguments: &Arguments) -> Result<(), Violation> {
    type Part = fn(&Arguments) -> Result<(), Violation>;
    let parts: [(&str, Part); 4] =
        [("explore", explore_all), ("tear", tear_all), ("inject", inject_all), ("damage", damage_all)];
    for (name, part) in parts {
        if arguments.only.as_deref().is_none_or(|only| only == name) {
            let began = Instant::now();
            part(arguments)?;
            println!("  {name} took {:.1} s", began.elapsed().as_secs_f64());
        }
    }
    println!("no violation");
    Ok(())
}

fn seeds(arguments: &Arguments) -> std::ops::Range<u64> {
    arguments.first..arguments.first + arguments.seeds
}

fn explore_all(arguments: &Arguments) -> Result<(), Violation> {
    let how = if arguments.full { Thoroughness::full() } else { Thoroughness::quick() };
    let mut explored = ExploreCounts::default();
    for seed in seeds(arguments) {
        explored += explore(&SimDisk::new(seed), &Options::tiny(), seed, how)?;
    }
    println!("power failures: {explored:?}");
    Ok(())
}

fn tear_all(arguments: &Arguments) -> Result<(), Violation> {
    let (options, last_bytes) = if arguments.full { (roomy(), 64 << 10) } else { (Options::tiny(), 4 << 10) };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (options, seed) = (&options, arguments.first);
    let shares = std::thread::scope(|scope| {
        let share = |first| scope.spawn(move || tear_share(options, seed, last_bytes, (first, threads)));
        let running: Vec<_> = (0..threads).map(share).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<TearCounts, Violation>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().map(join).collect::<Result<Vec<_>, Violation>>()
    })?;
    let mut torn = TearCounts::default();
    for share in shares {
        torn.recoveries += share.recoveries;
        torn.refused += share.refused;
    }
    println!("torn at every byte of the last {last_bytes}: {torn:?}");
    Ok(())
}

fn inject_all(arguments: &Arguments) -> Result<(), Violation> {
    let every = [
        (Fault::Fail, false),
        (Fault::Fail, true),
        (Fault::NoSpace, false),
        (Fault::NoSpace, true),
        (Fault::Short, false),
        (Fault::Short, true),
    ];
    let faults = if arguments.full { every.len() } else { 1 };
    for (fault, lasting) in every.into_iter().take(faults) {
        let mut total = InjectCounts::default();
        for seed in seeds(arguments) {
            let counts = inject(&Options::tiny(), seed, 150, fault, lasting)?;
            total.runs += counts.runs;
            total.stopped += counts.stopped;
            total.recoveries += counts.recoveries;
        }
        println!("{fault:?} at every disk call, lasting {lasting}: {total:?}");
    }
    Ok(())
}

fn damage_all(arguments: &Arguments) -> Result<(), Violation> {
    let (flips, sectors) = if arguments.full { (100_000, 20_000) } else { (1_000, 200) };
    let damaged: DamageCounts = damage(&Options::tiny(), arguments.first, flips, sectors)?;
    println!("damage: {damaged:?}");
    Ok(())
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(violation) => {
            eprintln!("violation: {violation}");
            ExitCode::FAILURE
        }
    }
}
