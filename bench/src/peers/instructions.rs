//! Instructions of the whole server for each message, counted by `valgrind --tool=callgrind`.
//!
//! A measure that other work on the machine cannot touch: it counts what the server's own code does in user space, socket to log
//! and back, and not how long it takes. Two runs of different length are compared, so that start and end do not count.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use tempfile::TempDir;

use super::document;
use super::install;
use super::peer::Layout;
use super::results::Results;
use super::server::Vorrang;
use super::workload::{Running, count, flow};

/// How long each part of a run may take; a program under callgrind is some fifty times slower.
const PATIENCE: Duration = Duration::from_mins(5);

/// What can be told on the command line.
#[derive(Debug, Args)]
pub struct Options {
    /// Messages of the shorter run; the longer one has six times as many
    #[arg(long, default_value_t = 4_000)]
    messages: u64,
    /// The broker's binary; the one built beside this program if not given
    #[arg(long)]
    broker: Option<PathBuf>,
    /// Where the document and the results are
    #[arg(long, default_value = "docs")]
    docs: PathBuf,
    /// Change nothing; fail if a message takes over so many percent more instructions than the document says
    #[arg(long, value_name = "PERCENT")]
    check: Option<u32>,
}

/// What a run does with its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Send,
    SendAndSettle,
}

/// Counts, prints, and puts the figures into the document, or compares them with those that are there.
pub fn run(options: &Options) -> Result<()> {
    let path = options.docs.join("performance").join("results.json");
    let mut results = Results::read(&path)?;
    let present = || Command::new("valgrind").arg("--version").output().is_ok();
    if !present() {
        install::packages(&["valgrind"]);
    }
    if !present() {
        bail!("valgrind is not installed: apt-get install valgrind");
    }
    let recorded = std::mem::take(&mut results.instructions);
    for (name, what) in [("send", Way::Send), ("send, receive, settle", Way::SendAndSettle)] {
        let (short, long) =
            (once(options, what, options.messages)?, once(options, what, options.messages * 6)?);
        let per_message =
            per_message(short, long).context("the longer run has no more messages than the shorter one")?;
        println!("{name}: {per_message:.0} instructions per message");
        if let Some(allowed) = options.check {
            let before = recorded.iter().find(|(of, _)| of == name).map(|(_, count)| *count);
            let before = before.with_context(|| format!("no instructions are recorded for '{name}'"))?;
            let more = percent_more(before, per_message);
            println!("  {more:+.1} % to the {before:.0} that are recorded");
            if more > f64::from(allowed) {
                bail!(
                    "{name}: {per_message:.0} instructions per message, {more:.1} % more than the {before:.0} that are recorded"
                );
            }
        }
        results.instructions.push((name.to_owned(), per_message));
    }
    if options.check.is_some() {
        return Ok(());
    }
    results.write(&path)?;
    document::write(&results, &options.docs)
}

/// Messages and instructions of one run.
fn once(options: &Options, what: Way, messages: u64) -> Result<(u64, u64)> {
    let folder = TempDir::new()?;
    let out = folder.path().join("callgrind");
    let under = vec![
        "valgrind".into(),
        "--tool=callgrind".into(),
        format!("--callgrind-out-file={}", out.display()).into(),
    ];
    let peer = Vorrang { binary: options.broker.clone(), under };
    let running = Running::start(&peer, Layout::Plain)?;
    let sent = flow::fill(&running, messages, 1, PATIENCE, None)?;
    if what == Way::SendAndSettle {
        let (settled, _) = flow::drain(&running, sent, 1, PATIENCE)?;
        if settled < sent {
            bail!("{settled} of {sent} messages were settled within {PATIENCE:?}");
        }
    }
    running.stop()?;
    Ok((sent, total(&out)?))
}

fn per_message(short: (u64, u64), long: (u64, u64)) -> Option<f64> {
    let messages = long.0.checked_sub(short.0).filter(|messages| *messages > 0)?;
    Some(count(long.1.checked_sub(short.1)?) / count(messages))
}

/// How much more `now` is than `before`; negative if it is less.
fn percent_more(before: f64, now: f64) -> f64 {
    (now / before.max(1.0) - 1.0) * 100.0
}

/// The sum in a file that callgrind wrote.
fn total(path: &Path) -> Result<u64> {
    let text =
        fs::read_to_string(path).with_context(|| format!("callgrind wrote nothing to {}", path.display()))?;
    total_of(&text).context("callgrind's file has no sum")
}

fn total_of(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_file_is_found_at_its_end() {
        assert_eq!(total_of("events: Ir\nfn=(1) main\n5 10\ntotals: 4711\n"), Some(4711));
        assert_eq!(total_of("events: Ir\n"), None);
    }

    #[test]
    fn a_regression_is_told_in_percent() {
        for (before, now, more) in [(100.0, 110.0, 10.0), (200.0, 150.0, -25.0), (100.0, 100.0, 0.0)] {
            assert!((percent_more(before, now) - more).abs() < 1e-9, "{before} to {now}");
        }
    }

    #[test]
    fn what_both_runs_do_once_does_not_count() {
        assert_eq!(per_message((100, 1_000_000), (300, 1_400_000)), Some(2_000.0));
        assert_eq!(per_message((100, 1), (100, 2)), None);
    }
}
