//! Side by side with the brokers a user would pick instead: the same workloads on each, in one run.
//!
//! Every peer runs in its recommended durable configuration, on a free port and a temporary folder, and is ended after each
//! cell. Every cell is measured twice and both are shown. A peer that cannot be had, and a cell that fails, are in the
//! document with the reason; the run goes on.

mod ceiling;
mod daemon;
mod document;
mod driver;
mod install;
pub mod instructions;
mod machine;
mod peer;
mod plot;
mod results;
mod server;
mod socket;
mod workload;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use machine::Machine;
use peer::{Ability, FanOut, Peer};
use results::{Cell, Results};
use workload::{Figures, Scale, backlog, connections, fan_out, flow, start, waits};

/// What can be told on the command line.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line, each for itself")]
pub struct Options {
    /// Short durations everywhere: some minutes instead of hours
    #[arg(long)]
    quick: bool,
    /// A backlog of 10 million messages, too; with slow peers that takes hours
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Only workloads whose name begins with one of these, such as W1 or W5
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// Only peers whose name contains one of these
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Times each cell is measured
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Install nothing; what is missing is missing
    #[arg(long)]
    no_install: bool,
    /// The broker's binary; the one built beside this program if not given
    #[arg(long)]
    broker: Option<PathBuf>,
    /// Where the document, its plots and the results go
    #[arg(long, default_value = "docs")]
    docs: PathBuf,
    /// Measure nothing: make the document anew from the results that are there
    #[arg(long)]
    render: bool,
    /// Keep the cells of earlier results that this run does not measure
    #[arg(long)]
    keep: bool,
}

/// Measures everything and writes the document.
pub fn run(options: &Options) -> Result<()> {
    let path = options.docs.join("performance").join("results.json");
    let results = if options.render { Results::read(&path)? } else { measure(options, &path)? };
    document::write(&results, &options.docs)
}

fn measure(options: &Options, path: &std::path::Path) -> Result<Results> {
    std::fs::create_dir_all(path.with_file_name(""))?;
    let scale = scale(options);
    let peers = server::all(options.broker.clone());
    if !options.no_install {
        install::missing(&peers);
    }
    let mut results = if options.keep { Results::read(path)? } else { Results::default() };
    results.date = machine::today();
    results.command = Some(std::mem::take(&mut results.command))
        .filter(|before| !before.is_empty())
        .map_or_else(|| command(options), |before| format!("{before}`, then `{}", command(options)));
    results.scale = words(&scale);
    results.machine = Machine::measure(&std::env::temp_dir())?;
    results.ceiling = (0..options.rounds).map(|_| ceiling::measure()).collect::<Result<_>>()?;
    println!("the generator alone: {:.0?} messages/s", results.ceiling);
    (results.peers, results.missing) = (Vec::new(), Vec::new());
    let mut present = Vec::new();
    for peer in &peers {
        match peer.facts() {
            Ok(facts) => {
                results.peers.push(facts);
                present.push(peer.as_ref());
            }
            Err(reason) => results.missing.push((peer.name().to_owned(), format!("{reason:#}"))),
        }
    }
    for round in 1..=options.rounds {
        for workload in WORKLOADS
            .iter()
            .filter(|workload| options.full || workload.name != DEEP)
            .filter(|workload| chosen(&options.workloads, |name| workload.name.starts_with(name)))
        {
            for peer in
                present.iter().filter(|peer| chosen(&options.peers, |name| peer.name().contains(name)))
            {
                if workload.needs.is_some_and(|ability| !peer.can(ability)) {
                    continue;
                }
                let cell = cell(workload, *peer, round, &scale);
                let same =
                    |old: &Cell| (&old.workload, &old.peer, old.round) == (&cell.workload, &cell.peer, round);
                results.cells.retain(|old| !same(old));
                results.cells.push(cell);
                results.write(path)?;
            }
        }
    }
    Ok(results)
}

struct Workload {
    name: &'static str,
    needs: Option<Ability>,
    run: fn(&dyn Peer, &Scale) -> Result<Figures>,
}

/// The workload that is run only if everything is.
const DEEP: &str = "W4 deep";

const WORKLOADS: &[Workload] = &[
    Workload { name: "W6", needs: None, run: |peer, _| start::run(peer) },
    Workload { name: "W1", needs: None, run: |peer, scale| flow::run(peer, plan(4, 0, None), scale) },
    Workload { name: "W2 1+1", needs: None, run: |peer, scale| flow::run(peer, plan(1, 1, None), scale) },
    Workload { name: "W2 4+4", needs: None, run: |peer, scale| flow::run(peer, plan(4, 4, None), scale) },
    Workload { name: "W3", needs: None, run: |peer, scale| flow::run(peer, plan(1, 1, Some(200.0)), scale) },
    Workload {
        name: "W5 prefetch 1",
        needs: Some(Ability::Priorities),
        run: |peer, scale| waits::run(peer, 1, scale),
    },
    Workload {
        name: "W5 prefetch 50",
        needs: Some(Ability::Priorities),
        run: |peer, scale| waits::run(peer, 50, scale),
    },
    Workload {
        name: "W4",
        needs: None,
        run: |peer, scale| backlog::run(peer, scale.backlog, scale.backlog_patience),
    },
    Workload {
        name: DEEP,
        needs: None,
        run: |peer, scale| backlog::run(peer, 10 * scale.backlog, 6 * scale.backlog_patience),
    },
    Workload { name: "W7", needs: Some(Ability::Connections), run: connections::run },
    Workload {
        name: "W8 expressions",
        needs: Some(Ability::Expressions),
        run: |peer, scale| fan_out::run(peer, FanOut::Expressions(100), scale),
    },
    Workload {
        name: "W8 keys",
        needs: Some(Ability::Keys),
        run: |peer, scale| fan_out::run(peer, FanOut::Keys(10_000), scale),
    },
];

const fn plan(senders: u32, receivers: u32, rate: Option<f64>) -> flow::Plan {
    flow::Plan { senders, receivers, rate }
}

fn cell(workload: &Workload, peer: &dyn Peer, round: u32, scale: &Scale) -> Cell {
    let began = Instant::now();
    let outcome = (workload.run)(peer, scale);
    let (figures, trouble) = match outcome {
        Ok(figures) => (figures, None),
        Err(reason) => (Figures::new(), Some(format!("{reason:#}"))),
    };
    let shown: Vec<String> = figures.iter().map(|(name, value)| format!("{name} {value:.1}")).collect();
    println!(
        "{:<16} {:<18} round {round}, {:>5.1} s: {}",
        workload.name,
        peer.name(),
        began.elapsed().as_secs_f64(),
        trouble.clone().unwrap_or_else(|| shown.join(", "))
    );
    Cell { workload: workload.name.to_owned(), peer: peer.name().to_owned(), round, figures, trouble }
}

fn chosen(names: &[String], matches: impl Fn(&str) -> bool) -> bool {
    names.is_empty() || names.iter().any(|name| matches(name))
}

fn scale(options: &Options) -> Scale {
    let seconds = Duration::from_secs;
    if options.quick {
        return Scale {
            // The first seconds of a new folder are not like those after them.
            warm_up: seconds(3),
            measured: seconds(3),
            overload: seconds(12),
            backlog: 100_000,
            backlog_patience: seconds(10),
            connections: 1_000,
        };
    }
    Scale {
        warm_up: seconds(3),
        measured: seconds(15),
        overload: seconds(60),
        backlog: 1_000_000,
        backlog_patience: seconds(600),
        connections: 10_000,
    }
}

fn words(scale: &Scale) -> String {
    format!(
        "{} B bodies, {} messages on the way per sender, prefetch {} per receiver (W5: 1 and 50); {:?} of warm-up, {:?} measured; W4: {} messages, at most {:?} to fill and to drain; W5: {:?}; W7: {} connections",
        workload::BODY_BYTES,
        workload::WINDOW,
        workload::WINDOW,
        scale.warm_up,
        scale.measured,
        scale.backlog,
        scale.backlog_patience,
        scale.overload,
        scale.connections
    )
}

fn command(options: &Options) -> String {
    let mut text = "cargo xtask bench peers".to_owned();
    for (given, flag) in [(options.quick, " --quick"), (options.full, " --full"), (options.keep, " --keep")] {
        if given {
            text.push_str(flag);
        }
    }
    for (flag, names) in [(" --workloads ", &options.workloads), (" --peers ", &options.peers)] {
        if !names.is_empty() {
            text.push_str(flag);
            text.push_str(&names.join(","));
        }
    }
    text
}
