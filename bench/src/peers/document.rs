//! `docs/performance.md`, made from the results: tables, plots, and who is first.
//!
//! What people have to say about the figures is a file of its own, `performance/notes.md`, which is put behind the summary.

mod section;
mod waits;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::flame::FLAMES;
use super::plot::figure;
use super::results::{Results, Run};
use section::SECTIONS;

/// As our own broker is called in the tables.
pub(super) const OURS: &str = "Vorrang";

/// Writes the document and its plots.
pub(crate) fn write(results: &Results, docs: &Path) -> Result<()> {
    let pictures = docs.join("performance");
    fs::create_dir_all(&pictures)?;
    for (name, svg) in section::plots(results).into_iter().chain(waits::plots(results)) {
        fs::write(pictures.join(name), svg)?;
    }
    let path = docs.join("performance.md");
    let notes = fs::read_to_string(pictures.join("notes.md")).unwrap_or_default();
    let flames: Vec<_> = FLAMES
        .iter()
        .map(|flame| (flame.workload, flame.file))
        .filter(|(_, file)| pictures.join(file).exists())
        .collect();
    fs::write(&path, text(results, &notes, &flames))?;
    println!("wrote {}", path.display());
    Ok(())
}

/// `flames` are the workloads of which there are flame graphs, and their files.
fn text(results: &Results, notes: &str, flames: &[(&str, &str)]) -> String {
    let mut text = String::new();
    head(&mut text, results);
    section::summary(&mut text, results);
    if !notes.trim().is_empty() {
        let _ = write!(text, "{}\n\n", notes.trim());
    }
    for section in SECTIONS {
        section.write(&mut text, results);
        if section.title.starts_with("W3") {
            waits::write(&mut text, results);
        }
    }
    instructions(&mut text, results);
    time(&mut text, flames);
    peers(&mut text, results);
    text
}

fn head(text: &mut String, results: &Results) {
    let _ = write!(
        text,
        "# Performance, side by side\n\n\
         Every cell was measured twice, and both figures are shown, first / second. \
         Servers ran in their recommended durable configuration, each alone, on an empty folder; CPU is that of the server's whole process tree, \
         memory is proportional (what processes share counts once).\n\n\
         {}\
         **Scale**: {}. **The generator alone**: {} messages/s from one sender into a sink that does nothing.\n\n",
        runs(&results.runs),
        results.scale,
        both(&results.ceiling),
    );
    text.push_str("Generator and server share the cores, so rates are those of both together; CPU per message is the server's alone.\n\n");
}

/// What was run, when, on what.
fn runs(runs: &[Run]) -> String {
    let mut text = "| run | began, UTC | commit | machine | load before | a synced write of 4 KiB, p50 / p99 ms |\n|---|---|---|---|---:|---:|\n".to_owned();
    for Run { command, began, commit, machine } in runs {
        // Nobody noted it for runs of which only the last one told about its machine.
        let (load, sync) = if machine.load.is_empty() {
            ("–", "–".to_owned())
        } else {
            let sync = format!("{} / {}", figure(machine.sync_p50_ms), figure(machine.sync_p99_ms));
            (machine.load.as_str(), sync)
        };
        let _ = writeln!(
            text,
            "| `{command}` | {began} | {} | {} cores ({}), {} GB, Linux {}; packages of {} | {load} | {sync} |",
            commit.as_deref().unwrap_or("–"),
            machine.cores,
            machine.processor,
            machine.memory_gb,
            machine.kernel,
            machine.system,
        );
    }
    text.push_str(
        "\nWhere the load was above 0, others used the cores, too: compare ratios of CPU per message rather than rates. \
         Each section says when it was measured.\n\n",
    );
    text
}

/// When the cells of a workload were measured, as a sentence.
pub(super) fn when(results: &Results, workload: &str) -> String {
    let minutes = || {
        let cells = results.cells.iter().filter(|cell| cell.workload == workload);
        cells.map(|cell| cell.measured.as_str()).filter(|measured| !measured.is_empty())
    };
    match (minutes().min(), minutes().max()) {
        (Some(first), Some(last)) if first != last => format!(" Measured from {first} to {last} UTC."),
        (Some(only), _) => format!(" Measured {only} UTC."),
        _ => String::new(),
    }
}

fn instructions(text: &mut String, results: &Results) {
    if results.instructions.is_empty() {
        return;
    }
    text.push_str(
        "## Instructions per message\n\n\
         `cargo xtask bench instructions`: what the server executes in user space for each message, counted by callgrind. Other work on the machine \
         does not change it, so that it shows a regression that rates would hide.\n\n\
         | path | instructions |\n|---|---:|\n",
    );
    for (name, count) in &results.instructions {
        let _ = writeln!(text, "| {name} | {} |", figure(count.round()));
    }
    text.push('\n');
}

/// Where the time goes.
fn time(text: &mut String, flames: &[(&str, &str)]) {
    if flames.is_empty() {
        return;
    }
    text.push_str(
        "## Where the broker's time goes\n\n\
         `cargo xtask bench flame`: samples of the broker's stacks while a workload runs. A function stands on the one that called it and is as wide \
         as the CPU time it took with all that it called. Opened by itself, a picture tells the whole name of a function and its share where the pointer rests.\n\n",
    );
    for (workload, file) in flames {
        let _ = write!(text, "![{workload}: where the broker's time goes](performance/{file})\n\n");
    }
}

fn peers(text: &mut String, results: &Results) {
    text.push_str("## Who took part, and what an acknowledgement meant\n\n");
    text.push_str(
        "| peer | version | protocol | acknowledged means | settled means |\n|---|---|---|---|---|\n",
    );
    for peer in &results.peers {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            peer.name, peer.version, peer.protocol, peer.acknowledgement, peer.settlement
        );
    }
    text.push('\n');
    for (name, reason) in &results.missing {
        let _ = writeln!(text, "Missing: **{name}**, because {reason}.\n");
    }
    text.push_str("## Configurations\n\n");
    for peer in &results.peers {
        let _ = write!(text, "**{}**\n\n```\n{}\n```\n\n", peer.name, peer.configuration.trim_end());
    }
    while text.ends_with("\n\n") {
        text.pop();
    }
}

/// All rounds of a figure.
pub(super) fn both(values: &[f64]) -> String {
    if values.is_empty() {
        return "–".to_owned();
    }
    values.iter().map(|value| figure(*value)).collect::<Vec<_>>().join(" / ")
}

/// Peers that have cells of a workload, in the order of the run, and whether they sync.
pub(super) fn takers<'a>(results: &'a Results, workload: &'a str) -> impl Iterator<Item = (&'a str, bool)> {
    results
        .peers
        .iter()
        .filter(move |peer| results.cells(workload, &peer.name).next().is_some())
        .map(|peer| (peer.name.as_str(), peer.synced))
}

/// Why cells have no figures.
pub(super) fn troubles(text: &mut String, results: &Results, workload: &str) {
    for cell in results.cells.iter().filter(|cell| cell.workload == workload) {
        if let Some(trouble) = &cell.trouble {
            let _ = writeln!(
                text,
                "- {} (round {}) gave no figures: {}",
                cell.peer,
                cell.round,
                trouble.replace('\n', " ")
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::machine::Machine;
    use crate::peers::peer::Facts;
    use crate::peers::results::Cell;

    pub(super) fn facts(name: &str, synced: bool) -> Facts {
        Facts {
            name: name.into(),
            version: "1".into(),
            protocol: "p".into(),
            acknowledgement: "a".into(),
            settlement: "s".into(),
            synced,
            configuration: "c\n".into(),
        }
    }

    pub(super) fn cell(workload: &str, peer: &str, round: u32, figures: &[(&str, f64)]) -> Cell {
        Cell {
            workload: workload.into(),
            peer: peer.into(),
            round,
            turns: 1,
            measured: format!("2026-01-0{round} 10:00"),
            figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            trouble: None,
        }
    }

    #[test]
    fn the_document_says_what_was_run_when_of_which_commit_and_on_what() {
        let run = |command: &str, commit: Option<&str>| Run {
            command: command.into(),
            began: "2026-01-01 10:00".into(),
            commit: commit.map(str::to_owned),
            machine: Machine { cores: 2, processor: "P".into(), load: "0.1".into(), ..Machine::default() },
        };
        let unknown = Run { machine: Machine::default(), ..run("bench peers --render", None) };
        let text = runs(&[run("bench peers", Some("abc1234")), run("bench peers --keep", None), unknown]);
        assert!(text.contains("\n| `bench peers` | 2026-01-01 10:00 | abc1234 | 2 cores (P), "), "{text}");
        assert!(text.contains("\n| `bench peers --keep` | 2026-01-01 10:00 | – | 2 cores (P), "), "{text}");
        assert!(text.contains(" | 0.1 | 0 / 0 |\n") && text.contains(" | – | – |\n"), "{text}");
    }

    #[test]
    fn the_document_shows_both_rounds_who_is_missing_and_why_a_cell_is_empty() {
        let mut failed = cell("W1", "Other", 2, &[]);
        failed.trouble = Some("it ended".into());
        let results = Results {
            peers: vec![facts(OURS, true), facts("Other", true)],
            missing: vec![("Third".into(), "it is not to be had".into())],
            cells: vec![
                cell("W1", OURS, 1, &[("rate", 30_000.0)]),
                cell("W1", OURS, 2, &[("rate", 32_000.0)]),
                cell("W1", "Other", 1, &[("rate", 10.0)]),
                failed,
            ],
            ..Results::default()
        };
        let text = text(&results, "What a person has to say.\n", &[("W3", "flame.svg")]);
        for expected in [
            "What a person has to say.\n\n## W1",
            " Measured from 2026-01-01 10:00 to 2026-01-02 10:00 UTC.",
            "30,000 / 32,000",
            "](performance/flame.svg)\n\n## Who took part",
            "**Third**, because it is not to be had",
            "Other (round 2) gave no figures: it ended",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }
}
