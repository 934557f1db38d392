//! The section of W5: a row for each class, because that is what it is about.

use std::fmt::Write;

use super::{both, takers, troubles, when};
use crate::peers::peer::CLASSES;
use crate::peers::plot::{Axis, Chart};
use crate::peers::results::Results;

pub(super) const WORKLOADS: [(&str, &str); 2] =
    [("W5 prefetch 1", "prefetch 1"), ("W5 prefetch 50", "prefetch 50")];
const NAMES: [&str; 4] = ["top", "second", "third", "lowest"];

const TEXT: &str = "\
Four workers that need 4 ms for a message, so 1,000 a second, and 1,200 a second that come: 10 % in the top class, 30 %, 45 % and 15 % in the lowest. The upper three alone are
102 % of what can be done, so that a strict order never gets to the lowest class. A wait is from the send to the moment a worker *begins* with the message. *Never* are
those still waiting at the end; a class without waits was not served at all. An inversion is a message begun while a more urgent one, acknowledged more than 20 ms before, was still waiting.
Each worker becomes free in a rhythm of its own, one of the four every millisecond, so that it is no matter of chance how long all of them are busy at once.
Workers *wake late* from their 4 ms where the processors are taken, by others on the machine or by the server itself. A *bare sync* is that of 4 KiB that this program writes every
20 ms meanwhile, counted from when it was due: what is durable cannot be there sooner. It, too, waits for others on the machine and for what the server writes. The summary has
the p99 of the top class in such syncs of the same minute, because a shared disk is not the same in the next.

Vorrang gives those that have waited 5 s a tenth of the deliveries (rescue), and lets lower messages fill only 2 % of a prefetch. Rescue is an inversion on purpose: it is counted like any other.
";

pub(super) fn write(text: &mut String, results: &Results) {
    if WORKLOADS.iter().all(|(workload, _)| takers(results, workload).next().is_none()) {
        return;
    }
    let _ = write!(text, "## W5: waits per priority under 120 % load\n\n{TEXT}\n");
    for (workload, name) in WORKLOADS {
        if takers(results, workload).next().is_none() {
            continue;
        }
        let _ = write!(
            text,
            "### {name}\n\n{}\n\n| peer | class | p50 ms | p99 ms | max ms | sent | never |\n|---|---|---:|---:|---:|---:|---:|\n",
            when(results, workload).trim()
        );
        for (peer, synced) in takers(results, workload) {
            for (class, class_name) in (0..CLASSES).zip(NAMES) {
                let value = |what: &str| both(&results.figures(workload, peer, &format!("c{class}_{what}")));
                let shown = if class == 0 { peer } else { "" };
                let note = if class == 0 && !synced { " (not synced)" } else { "" };
                let _ = writeln!(
                    text,
                    "| {shown}{note} | {class_name} | {} | {} | {} | {} | {} |",
                    value("p50_ms"),
                    value("p99_ms"),
                    value("max_ms"),
                    value("sent"),
                    value("never")
                );
            }
        }
        text.push_str("\n| peer | begun | inversions | workers woke late, p99 ms | bare sync, p99 ms |\n|---|---:|---:|---:|---:|\n");
        for (peer, _) in takers(results, workload) {
            let value = |what: &str| both(&results.figures(workload, peer, what));
            let (begun, inversions) = (value("begun"), value("inversions"));
            let (late, disk) = (value("late_p99_ms"), value("disk_p99_ms"));
            let _ = writeln!(text, "| {peer} | {begun} | {inversions} | {late} | {disk} |");
        }
        text.push('\n');
        troubles(text, results, workload);
        let _ = write!(text, "![W5, {name}: p99 of the wait per class](performance/{})\n\n", picture(name));
    }
}

fn picture(name: &str) -> String {
    format!("w5-{}.svg", name.replace(' ', "-"))
}

pub(super) fn plots(results: &Results) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    for (workload, name) in WORKLOADS {
        let groups: Vec<_> = takers(results, workload)
            .map(|(peer, _)| {
                let values = (0..CLASSES).map(|class| {
                    // A class of which nothing was begun has no wait to show.
                    results.mean(workload, peer, &format!("c{class}_p99_ms"))
                });
                (peer.to_owned(), values.collect())
            })
            .collect();
        if groups.is_empty() {
            continue;
        }
        let title = format!("W5, {name}: p99 of the wait in ms, logarithmic; no bar: none was served");
        let chart = Chart { title: &title, axis: Axis::Logarithmic, legend: &NAMES, groups };
        plots.push((picture(name), chart.render()));
    }
    plots
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, facts};
    use super::*;

    #[test]
    fn a_class_has_a_row_and_a_starved_one_has_no_bar() {
        let figures = [("c0_p99_ms", 4.5), ("c3_never", 1_800.0), ("inversions", 7.0), ("disk_p99_ms", 2.5)];
        let results = Results {
            peers: vec![facts("Strict", true)],
            cells: vec![cell("W5 prefetch 1", "Strict", 1, &figures)],
            ..Results::default()
        };
        let mut text = String::new();
        write(&mut text, &results);
        assert!(text.contains("| Strict | top | – | 4.50 |"), "{text}");
        assert!(text.contains("|  | lowest | – | – | – | – | 1,800 |"), "{text}");
        assert!(text.contains("| Strict | – | 7 | – | 2.50 |"), "{text}");
        let plots = plots(&results);
        assert_eq!(plots.len(), 1);
        // Ground, four of the legend, one bar.
        assert_eq!(plots[0].1.matches("<rect").count(), 6);
    }
}
