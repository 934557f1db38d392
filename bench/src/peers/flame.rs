//! Where the broker's CPU time goes, as pictures: `perf record` beside the workloads, one flame graph for each.
//!
//! What is looked at is the profile `profiling`: the code of a release with the lines it came from. Stacks are unwound by what the
//! compiler notes down for panics, so that nothing is compiled in for it.

mod picture;
mod stacks;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use tempfile::TempDir;

use super::document;
use super::install;
use super::machine;
use super::peer::Layout;
use super::results::Results;
use super::server::Vorrang;
use super::workload::flow::{self, Plan};
use super::workload::{Running, Scale};
use super::{chosen, plan};
use crate::broker::beside_us;
use picture::Picture;
use stacks::Stacks;

/// Samples a second of each processor; a prime, so that they keep no rhythm with the broker's own.
const SAMPLES_PER_SECOND: &str = "997";
/// As deep a stack as is kept with a sample.
const UNWIND: &str = "dwarf,16384";
/// Functions that are printed, those with the most samples of their own first.
const PRINTED: usize = 12;

/// What can be told on the command line.
#[derive(Debug, Args)]
pub struct Options {
    /// Only workloads whose name begins with one of these, such as W1 or W3
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// Seconds that are looked at
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// The broker's binary; the one of the profile `profiling` if not given
    #[arg(long)]
    broker: Option<PathBuf>,
    /// Where the document and its pictures are
    #[arg(long, default_value = "docs")]
    docs: PathBuf,
}

/// A picture of the document.
pub(super) struct Flame {
    pub(super) workload: &'static str,
    pub(super) file: &'static str,
    plan: Plan,
}

/// Those that there are.
pub(super) const FLAMES: &[Flame] = &[
    Flame { workload: "W1", file: "flame-w1.svg", plan: plan(4, 0, None) },
    Flame { workload: "W2 4+4", file: "flame-w2-4-4.svg", plan: plan(4, 4, None) },
    Flame { workload: "W3", file: "flame-w3.svg", plan: plan(1, 1, Some(200.0)) },
];

/// Makes the pictures, prints what takes the most, and puts them into the document.
pub fn run(options: &Options) -> Result<()> {
    let present = || Command::new("perf").arg("--version").output().is_ok();
    if !present() {
        install::packages(&["linux-perf"]);
    }
    if !present() {
        bail!("perf is not installed: apt-get install linux-perf");
    }
    let pictures = options.docs.join("performance");
    let results = Results::read(&pictures.join("results.json"))?;
    let binary = options.broker.clone().map_or_else(profiling, Ok)?;
    for flame in
        FLAMES.iter().filter(|flame| chosen(&options.workloads, |name| flame.workload.starts_with(name)))
    {
        let stacks = sample(flame, &binary, Duration::from_secs(options.seconds))?;
        let title = format!(
            "{} at {}: CPU of the broker, {} samples",
            flame.workload,
            machine::commit().as_deref().unwrap_or("an unknown commit"),
            stacks.samples()
        );
        println!("{title}");
        for (function, share) in stacks.most(PRINTED) {
            println!("  {:>5.1} % {function}", share * 100.0);
        }
        fs::write(pictures.join(flame.file), Picture { title: &title, stacks: &stacks }.render())?;
    }
    document::write(&results, &options.docs)
}

/// The broker that was built with its lines: beside the folder this program was built into.
fn profiling() -> Result<PathBuf> {
    let ours = std::env::current_exe()?;
    let path = ours.parent().and_then(Path::parent).map(|target| target.join("profiling").join("vorrang"));
    match path {
        Some(path) if path.exists() => Ok(path),
        _ => {
            // A release has no lines, but its functions have names.
            println!("there is no broker with its lines: cargo build --profile profiling --bin vorrang");
            beside_us("vorrang")
        }
    }
}

/// Looks at the broker while the workload runs.
fn sample(flame: &Flame, binary: &Path, time: Duration) -> Result<Stacks> {
    let folder = TempDir::new()?;
    let data = folder.path().join("samples");
    let scale = Scale { measured: time, ..Scale::WHOLE };
    let peer = Vorrang { binary: Some(binary.to_path_buf()), under: Vec::new() };
    let running = Running::start(&peer, Layout::Plain)?;
    let perf = record(&data, running.daemon.server()?, &scale)?;
    flow::on(&running, flame.plan, &scale)?;
    let output = perf.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "perf record ended with {}: {}; it wants root, or sysctl kernel.perf_event_paranoid=-1",
            output.status,
            said.lines().last().unwrap_or_default()
        );
    }
    // Not needed any more while perf works through what it has gathered.
    drop(running);
    stacks_in(&data)
}

/// Begins when the workload's first seconds are over, and ends with what is measured.
fn record(data: &Path, server: u32, scale: &Scale) -> Result<Child> {
    let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64());
    Command::new("perf")
        .args(["record", "--quiet", "--freq", SAMPLES_PER_SECOND, "--call-graph", UNWIND, "--output"])
        .arg(data)
        .args(["--pid", &server.to_string(), "--delay", &scale.warm_up.as_millis().to_string()])
        .args(["--", "sleep", &seconds(scale.warm_up + scale.measured)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start perf")
}

fn stacks_in(data: &Path) -> Result<Stacks> {
    let output = Command::new("perf")
        .args(["script", "--no-inline", "--fields", "comm,ip,sym", "--input"])
        .arg(data)
        .stderr(Stdio::null())
        .output()?;
    if !output.status.success() {
        bail!("perf script ended with {}", output.status);
    }
    let stacks = Stacks::of_script(&String::from_utf8_lossy(&output.stdout));
    if stacks.samples() == 0 {
        bail!("perf took no samples");
    }
    Ok(stacks)
}
