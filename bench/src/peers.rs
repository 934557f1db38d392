//! Side by side with the brokers a user would pick instead: the same workloads on each, in one run.
//!
//! Every peer runs in its recommended durable configuration, on a free port and a temporary folder, and is ended after each
//! cell. Every cell is measured twice and both are shown. A peer that cannot be had, and a cell that fails, are in the
//! document with the reason; the run goes on.

mod ceiling;
mod daemon;
mod debian;
mod document;
mod driver;
pub mod flame;
mod install;
pub mod instructions;
mod machine;
mod peer;
mod plot;
mod rest;
mod results;
mod server;
mod socket;
mod turns;
mod workload;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;

use machine::Machine;
use peer::{Ability, FanOut, Peer};
use rest::Rest;
use results::{Cell, Results, Run};
use workload::{Figures, Scale, backlog, connections, fan_out, flow, start, waits};

/// Turns of W3 and W6, unless told otherwise: a stall of the disk would decide a single one.
const TURNS: u32 = 5;
/// Turns of W1 and W2, likewise: a machine that others share is faster in one minute than in the next.
const FLOW_TURNS: u32 = 3;

/// What can be told on the command line.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line, each for itself")]
pub struct Options {
    /// Short durations everywhere: some minutes instead of hours
    #[arg(long)]
    quick: bool,
    /// A backlog of 10 million messages, too, with the peers that can fill it within a few minutes
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
    /// Turns of W1, W2, W3 and W6 in each round, of which the median counts: more of them say more where the machine is
    /// shared; 5 unless given (W1 and W2: 3)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    turns: Option<u32>,
    /// Seconds before a measurement of rate or latency
    #[arg(long, default_value_t = workload::WARM_UP_SECONDS, value_name = "SECONDS")]
    warm_up: u64,
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
    /// Go on with a run that was cut short: what it measured is not measured again
    #[arg(long, conflicts_with = "keep")]
    resume: bool,
    /// Peers of this release of Debian, such as trixie, in a folder of their own, instead of the machine's (as root)
    #[arg(long, value_name = "RELEASE")]
    debian: Option<debian::Release>,
    /// Where that folder is
    #[arg(long, default_value = "/var/tmp/vorrang-peers", requires = "debian", value_name = "FOLDER")]
    debian_folder: PathBuf,
}

/// Measures everything and writes the document.
pub fn run(options: &Options) -> Result<()> {
    if let Some(release) = options.debian.as_ref().filter(|_| !debian::is_inside()) {
        std::fs::create_dir_all(&options.docs)?;
        let broker = options.broker.as_deref().and_then(std::path::Path::parent);
        let others: Vec<_> = broker.into_iter().chain([options.docs.as_path()]).collect();
        return debian::run_inside(release, &options.debian_folder, &others);
    }
    let path = options.docs.join("performance").join("results.json");
    let results = if options.render { Results::read(&path)? } else { measure(options, &path)? };
    document::write(&results, &options.docs)
}

fn measure(options: &Options, path: &std::path::Path) -> Result<Results> {
    daemon::end_with_us()?;
    std::fs::create_dir_all(path.with_file_name(""))?;
    let scale = scale(options);
    let peers = server::all(options.broker.clone());
    if !options.no_install {
        install::missing(&peers);
    }
    let goes_on = options.keep || options.resume;
    let mut results = if goes_on { Results::read(path)? } else { Results::default() };
    results.scale = words(&scale);
    let began = machine::minute();
    // Who goes on with a run is on the machine it began on.
    let known = results.runs.last().filter(|_| options.resume).map(|run| run.machine.clone());
    let machine = known.map_or_else(|| Machine::measure(&std::env::temp_dir()), Ok)?;
    results.runs.push(Run { command: command(options), began, commit: machine::commit(), machine });
    if !options.resume {
        results.ceiling = (0..options.rounds).map(|_| ceiling::measure()).collect::<Result<_>>()?;
        println!("the generator alone: {:.0?} messages/s", results.ceiling);
    }
    let known = std::mem::take(&mut results.peers);
    results.missing.clear();
    let mut present = Vec::new();
    for peer in &peers {
        match peer.facts() {
            Ok(facts) => {
                results.peers.push(facts);
                present.push(peer.as_ref());
            }
            Err(reason) => results.without(peer.name(), &known, format!("{reason:#}")),
        }
    }
    let present: Vec<&dyn Peer> = present
        .into_iter()
        .filter(|peer| chosen(&options.peers, |name| peer.name().contains(name)))
        .collect();
    let mut rest = Rest::new();
    for round in 1..=options.rounds {
        for workload in WORKLOADS
            .iter()
            .filter(|workload| options.full || workload.name != DEEP)
            .filter(|workload| chosen(&options.workloads, |name| workload.name.starts_with(name)))
        {
            let turns = workload.turns(options);
            let is_done = |peer: &dyn Peer| {
                let turns = usize::try_from(turns).unwrap_or(usize::MAX);
                options.resume && results.has(workload.name, peer.name(), round, turns)
            };
            let takers: Vec<&dyn Peer> = present
                .iter()
                .copied()
                .filter(|peer| workload.needs.is_none_or(|need| peer.can(need)) && !is_done(*peer))
                .collect();
            let mut gathered: BTreeMap<&str, Gathered> = BTreeMap::new();
            for turn in 0..turns {
                for peer in turns::order(&takers, round, turn) {
                    let so_far = gathered.entry(peer.name()).or_default();
                    so_far.take_turn(workload, peer, round, |peer| {
                        if let Some(excuse) = workload.excuse(peer, &results, &scale) {
                            bail!(excuse);
                        }
                        // Here, so that nobody waits for a peer that is not measured any more.
                        if workload.is_about_milliseconds() {
                            rest.wait()?;
                        }
                        (workload.run)(peer, &scale)
                    });
                    results.put(so_far.cell(workload.name, peer.name(), round));
                    results.write(path)?;
                }
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

impl Workload {
    /// How often a peer is measured in each round, in turn with the others.
    fn turns(&self, options: &Options) -> u32 {
        match self.name {
            "W3" | "W6" => options.turns.unwrap_or(TURNS),
            "W1" | "W2 1+1" | "W2 4+4" => options.turns.unwrap_or(FLOW_TURNS),
            _ => 1,
        }
    }

    /// Whether a disk that is still busy with what others wrote would decide it.
    fn is_about_milliseconds(&self) -> bool {
        ["W3", "W5", "W6"].iter().any(|name| self.name.starts_with(name))
    }

    /// Why a peer need not be measured: it is known that the time would not do.
    fn excuse(&self, peer: &dyn Peer, results: &Results, scale: &Scale) -> Option<String> {
        let rate = results.mean("W4", peer.name(), "fill_rate").filter(|_| self.name == DEEP)?;
        let seconds = workload::count(DEEP_TIMES * scale.backlog) / rate.max(1.0);
        let patience = scale.deep_patience().as_secs_f64();
        (seconds > patience).then(|| {
            format!(
                "at the {rate:.0} messages/s of W4, filling takes {seconds:.0} s, and {patience:.0} are given"
            )
        })
    }
}

/// How much deeper than the other backlog the deep one is.
const DEEP_TIMES: u64 = 10;
/// The workload that is run only if everything is.
const DEEP: &str = "W4 deep";

/// In the order of a run: first those that are about milliseconds, because a disk is restless for a while after the others.
const WORKLOADS: &[Workload] = &[
    Workload { name: "W6", needs: None, run: |peer, _| start::run(peer) },
    Workload {
        name: "W3",
        needs: None,
        run: |peer, scale| flow::run(peer, plan(1, 1, Some(200.0)), &scale.of_a_turn()),
    },
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
        name: "W1",
        needs: None,
        run: |peer, scale| flow::run(peer, plan(4, 0, None), &scale.of_a_turn()),
    },
    Workload {
        name: "W2 1+1",
        needs: None,
        run: |peer, scale| flow::run(peer, plan(1, 1, None), &scale.of_a_turn()),
    },
    Workload {
        name: "W2 4+4",
        needs: None,
        run: |peer, scale| flow::run(peer, plan(4, 4, None), &scale.of_a_turn()),
    },
    Workload {
        name: "W4",
        needs: None,
        run: |peer, scale| backlog::run(peer, scale.backlog, scale.backlog_patience),
    },
    Workload {
        name: DEEP,
        needs: None,
        run: |peer, scale| backlog::run(peer, DEEP_TIMES * scale.backlog, scale.deep_patience()),
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

/// What the turns of one peer came to so far.
#[derive(Default)]
struct Gathered {
    turns: Vec<Figures>,
    trouble: Option<String>,
}

impl Gathered {
    /// Measures the peer once more, unless it has failed before.
    fn take_turn(
        &mut self,
        workload: &Workload,
        peer: &dyn Peer,
        round: u32,
        run: impl FnOnce(&dyn Peer) -> Result<Figures>,
    ) {
        if self.trouble.is_some() {
            return;
        }
        let began = Instant::now();
        let said = match run(peer) {
            Ok(figures) => {
                let shown: Vec<String> =
                    figures.iter().map(|(name, value)| format!("{name} {value:.2}")).collect();
                self.turns.push(figures);
                shown.join(", ")
            }
            Err(reason) => self.trouble.insert(format!("{reason:#}")).clone(),
        };
        println!(
            "{:<16} {:<18} round {round}, {:>5.1} s: {said}",
            workload.name,
            peer.name(),
            began.elapsed().as_secs_f64(),
        );
    }

    /// The median of the turns; nothing if one of them failed.
    fn cell(&self, workload: &str, peer: &str, round: u32) -> Cell {
        let figures = if self.trouble.is_none() { turns::median(&self.turns) } else { Figures::new() };
        Cell {
            workload: workload.to_owned(),
            peer: peer.to_owned(),
            round,
            turns: self.turns.len(),
            measured: machine::minute(),
            figures,
            trouble: self.trouble.clone(),
        }
    }
}

fn chosen(names: &[String], matches: impl Fn(&str) -> bool) -> bool {
    names.is_empty() || names.iter().any(|name| matches(name))
}

fn scale(options: &Options) -> Scale {
    let scale = if options.quick { Scale::QUICK } else { Scale::WHOLE };
    Scale { warm_up: Duration::from_secs(options.warm_up), ..scale }
}

fn words(scale: &Scale) -> String {
    format!(
        "{} B bodies, {} messages on the way per sender, prefetch {} per receiver (W5: 1 and 50); {:?} of warm-up, {:?} measured; W1, W2, W3 and W6: the median of several turns of {:?}, taken between those of the others, because a shared machine has bad seconds; W3, W5 and W6 begin when the disk is calm, or after a minute and a half (ten minutes in all); W4: {} messages, at most {:?} to fill and to drain (ten million: {:?}); W5: {:?}; W7: {} connections",
        workload::BODY_BYTES,
        workload::WINDOW,
        workload::WINDOW,
        scale.warm_up,
        scale.measured,
        scale.of_a_turn().measured,
        scale.backlog,
        scale.backlog_patience,
        scale.deep_patience(),
        scale.overload,
        scale.connections
    )
}

fn command(options: &Options) -> String {
    let mut text = "cargo xtask bench peers".to_owned();
    for (given, flag) in [
        (options.quick, " --quick"),
        (options.full, " --full"),
        (options.keep, " --keep"),
        (options.resume, " --resume"),
    ] {
        if given {
            text.push_str(flag);
        }
    }
    if let Some(turns) = options.turns {
        let _ = write!(text, " --turns {turns}");
    }
    if options.warm_up != workload::WARM_UP_SECONDS {
        let _ = write!(text, " --warm-up {}", options.warm_up);
    }
    if let Some(release) = &options.debian {
        text.push_str(" --debian ");
        text.push_str(release.as_str());
    }
    for (flag, names) in [(" --workloads ", &options.workloads), (" --peers ", &options.peers)] {
        if !names.is_empty() {
            text.push_str(flag);
            text.push_str(&names.join(","));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deep_backlog_is_left_out_where_it_would_take_too_long_to_fill() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let scale = scale(&<Line as clap::Parser>::parse_from(["peers"]).options);
        let peers = server::all(None);
        let excuse = |workload: &str, rate: f64| {
            let mut results = Results::default();
            let figures = Figures::from([("fill_rate".to_owned(), rate)]);
            let (workload_of, peer) = ("W4".to_owned(), peers[0].name().to_owned());
            let measured = String::new();
            results.put(Cell {
                workload: workload_of,
                peer,
                round: 1,
                turns: 1,
                measured,
                figures,
                trouble: None,
            });
            let workload = WORKLOADS.iter().find(|known| known.name == workload).unwrap();
            workload.excuse(peers[0].as_ref(), &results, &scale)
        };
        assert_eq!(excuse(DEEP, 100_000.0), None);
        assert_eq!(excuse("W4", 10.0), None);
        let said = excuse(DEEP, 20_000.0).unwrap();
        assert_eq!(said, "at the 20000 messages/s of W4, filling takes 500 s, and 135 are given");
    }

    #[test]
    fn a_peer_that_failed_in_one_turn_has_no_figures_but_a_reason() {
        let figures = Figures::from([("rate".to_owned(), 7.0)]);
        let mut gathered = Gathered { turns: vec![figures.clone()], trouble: None };
        assert_eq!(gathered.cell("W3", "a", 1).figures, figures);
        gathered.trouble = Some("it ended".to_owned());
        let cell = gathered.cell("W3", "a", 1);
        assert!(cell.figures.is_empty());
        assert_eq!(cell.trouble.as_deref(), Some("it ended"));
    }
}
