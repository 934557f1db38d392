//! One section for each workload: a table, a verdict, a plot.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{OURS, both, takers, troubles, waits, when};
use crate::peers::plot::{Axis, Chart, figure};
use crate::peers::results::Results;

/// What a workload's section shows.
pub(super) struct Section {
    pub(super) title: &'static str,
    /// The name in the results.
    pub(super) workload: &'static str,
    text: &'static str,
    columns: &'static [Column],
    /// Why we are not first by a figure, where we are not; a figure that is not here needs no words.
    reasons: &'static [(&'static str, &'static str)],
}

struct Column {
    name: &'static str,
    head: &'static str,
    judged: Judged,
}

/// Whether a figure decides who is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    No,
    MostWins,
    LeastWins,
}

const fn column(name: &'static str, head: &'static str, judged: Judged) -> Column {
    Column { name, head, judged }
}

use Judged::{LeastWins, MostWins, No};

const SHARED_CORES: &str = "on a machine with few cores a rate is that of generator and server together; the CPU per message shows what the server needs";
const ONE_COPY: &str = "a C program without TLS, HTTP or a protocol engine has less to load";

pub(super) const SECTIONS: &[Section] = &[
    Section {
        title: "W1: durable send",
        workload: "W1",
        text: "Four senders, nobody receives. CPU per message counts the server's processes.",
        columns: &[
            column("rate", "messages/s", MostWins),
            column("cpu_us", "CPU µs/message", LeastWins),
            column("per_cpu_second", "messages/CPU-second", MostWins),
            column("ack_p50_ms", "ack p50 ms", No),
            column("ack_p99_ms", "ack p99 ms", No),
        ],
        reasons: &[("rate", SHARED_CORES)],
    },
    Section {
        title: "W2: send, receive, settle, 1+1",
        workload: "W2 1+1",
        text: "One sender and one receiver on one queue; a message counts when its settlement does.",
        columns: FLOW,
        reasons: &[("rate", SHARED_CORES)],
    },
    Section {
        title: "W2: send, receive, settle, 4+4",
        workload: "W2 4+4",
        text: "Four senders and four receivers on one queue.",
        columns: FLOW,
        reasons: &[("rate", SHARED_CORES)],
    },
    Section {
        title: "W3: latency at 200 messages/s",
        workload: "W3",
        text: "One sender, one receiver, every message on its own: what a sync costs, and what is added to it.",
        columns: &[
            column("ack_p50_ms", "ack p50 ms", No),
            column("ack_p99_ms", "ack p99 ms", LeastWins),
            column("received_p50_ms", "received p50 ms", No),
            column("received_p99_ms", "received p99 ms", LeastWins),
            column("received_max_ms", "received max ms", No),
        ],
        reasons: &[
            (
                "ack_p99_ms",
                "every message waits for a sync of its own, and after 5 ms of rest little of a server is in the processor's caches: the less code a message goes through, the sooner it is on its way to the disk (see the notes)",
            ),
            (
                "received_p99_ms",
                "a delivery leaves when its message is synced, so that it is behind where the acknowledgement is",
            ),
        ],
    },
    Section {
        title: "W4: backlog",
        workload: "W4",
        text: "Filled by four senders; memory is taken five seconds later. Then restarted in good order, drained by four receivers. Restart is counted until a receiver has its first message.",
        columns: BACKLOG,
        reasons: BACKLOG_REASONS,
    },
    Section {
        title: "W4: ten times the backlog",
        workload: "W4 deep",
        text: "The same with ten times as many messages (`--full`).",
        columns: BACKLOG,
        reasons: BACKLOG_REASONS,
    },
    Section {
        title: "W6: start and idle memory",
        workload: "W6",
        text: "From the start of the process, on an empty folder, to the first answer in its protocol; memory a second later.",
        columns: &[column("start_ms", "start ms", LeastWins), column("idle_mb", "idle MB", LeastWins)],
        reasons: &[("start_ms", ONE_COPY), ("idle_mb", ONE_COPY)],
    },
    Section {
        title: "W7: many connections",
        workload: "W7",
        text: "Each connection has a receiver that waits. A queue of Vorrang takes 5,000 receivers, as one of Service Bus does, so that its connections are spread over four queues. PostgreSQL has a process for each connection and allows 100 by default; it does not take part. Artemis keeps two buffers of 128 KiB for each, so that its default heap of 2 GB is full before there are 10,000.",
        columns: &[
            column("connections", "connections", No),
            column("connects_per_second", "connects/s", No),
            column("kb_per_connection", "KB/connection", LeastWins),
        ],
        reasons: &[(
            "kb_per_connection",
            "an AMQP 1.0 connection has a session and a link with windows of their own; text protocols keep a line buffer",
        )],
    },
    Section {
        title: "W8: fan-out, 100 subscriptions with expressions",
        workload: "W8 expressions",
        text: "One sender; every message passes the filters of ten of a hundred subscriptions (`LIKE` on one property). Peers without expressions do not take part.",
        columns: FAN_OUT,
        reasons: &[],
    },
    Section {
        title: "W8: fan-out, 10,000 keys",
        workload: "W8 keys",
        text: "One sender; 10,000 correlation filters (bindings of a direct exchange at RabbitMQ) over 1,000 subscriptions, one of which wants the message.",
        columns: FAN_OUT,
        reasons: &[],
    },
];

const BACKLOG: &[Column] = &[
    column("stored", "messages stored", No),
    column("fill_rate", "filled/s", No),
    column("bytes_per_message", "memory B/message", LeastWins),
    column("memory_after_restart_mb", "MB after restart", No),
    column("restart_ms", "restart ms", LeastWins),
    column("drain_rate", "drained/s", MostWins),
];

const BACKLOG_REASONS: &[(&str, &str)] = &[
    (
        "bytes_per_message",
        "the messages that came last are in memory, with buffers of the connections; a table keeps its rows in files and in a buffer of fixed size",
    ),
    ("restart_ms", "a restart reads back the messages that are in memory"),
    ("drain_rate", SHARED_CORES),
];

const FLOW: &[Column] = &[
    column("rate", "messages/s", MostWins),
    column("cpu_us", "CPU µs/message", LeastWins),
    column("per_cpu_second", "messages/CPU-second", MostWins),
    column("ack_p99_ms", "ack p99 ms", No),
    column("received_p99_ms", "received p99 ms", No),
    column("memory_mb", "memory MB", No),
];

/// What of W5 is in the summary.
const WAITS: &[Column] = &[
    column("c0_p99_ms", "top class p99 ms", LeastWins),
    column("c0_p99_syncs", "top class p99, in bare syncs", LeastWins),
];

const FAN_OUT: &[Column] = &[
    column("rate", "sent/s", MostWins),
    column("cpu_us", "CPU µs/message sent", LeastWins),
    column("copies", "copies of each", No),
];

impl Section {
    pub(super) fn write(&self, text: &mut String, results: &Results) {
        if takers(results, self.workload).next().is_none() {
            return;
        }
        let _ = write!(
            text,
            "## {}\n\n{}{}{}\n\n| peer |",
            self.title,
            self.text,
            self.turns(results),
            when(results, self.workload)
        );
        for column in self.columns {
            let _ = write!(text, " {} |", column.head);
        }
        text.push_str("\n|---|");
        self.columns.iter().for_each(|_| text.push_str("---:|"));
        text.push('\n');
        for (peer, synced) in takers(results, self.workload) {
            let _ = write!(text, "| {peer}{} |", if synced { "" } else { " (not synced)" });
            for column in self.columns {
                let _ = write!(text, " {} |", both(&results.figures(self.workload, peer, column.name)));
            }
            text.push('\n');
        }
        text.push('\n');
        for column in self.columns.iter().filter(|column| column.judged != No) {
            if let Some(verdict) = self.verdict(column, results) {
                let _ = writeln!(text, "- {verdict}");
            }
        }
        troubles(text, results, self.workload);
        let _ = write!(text, "\n![{}](performance/{})\n\n", self.title, self.picture());
    }

    /// A sentence about how many turns the figures are medians of, if they are of any.
    fn turns(&self, results: &Results) -> String {
        let mut peers: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (peer, _) in takers(results, self.workload) {
            let turns = results.cells(self.workload, peer).filter(|cell| cell.trouble.is_none());
            if let Some(turns) = turns.map(|cell| cell.turns).max().filter(|turns| *turns > 1) {
                peers.entry(turns).or_default().push(peer);
            }
        }
        let all = peers.len() == 1;
        let parts: Vec<String> = peers
            .into_iter()
            .rev()
            .map(|(turns, peers)| {
                if all { format!("{turns} turns") } else { format!("{turns} turns for {}", peers.join(", ")) }
            })
            .collect();
        if parts.is_empty() { String::new() } else { format!(" Medians of {}.", parts.join("; of ")) }
    }

    /// A sentence about a figure: who is first, and why if it is not us.
    fn verdict(&self, column: &Column, results: &Results) -> Option<String> {
        let Standing { rival, factor, first, level, .. } = Standing::of(self.workload, column, results)?;
        if level {
            return Some(format!(
                "**{}**: level with {rival}; the rounds of one lie among those of the other.",
                column.head
            ));
        }
        if first {
            return Some(format!(
                "**{}**: first, ahead of {rival} by a factor of {}.",
                column.head,
                figure(factor)
            ));
        }
        let reason = self.reasons.iter().find(|(name, _)| *name == column.name);
        let reason = reason.map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
        Some(format!(
            "**{}**: not first; {rival} is ahead by a factor of {}{reason}.",
            column.head,
            figure(factor)
        ))
    }

    fn picture(&self) -> String {
        format!("{}.svg", self.workload.to_lowercase().replace([' ', '+'], "-"))
    }
}

/// Whether two peers cannot be told apart: neither has all its rounds on one side of all those of the other. A single round
/// of each says nothing about that.
fn overlap(left: &[f64], right: &[f64]) -> bool {
    let range = |rounds: &[f64]| {
        let ends = |so_far: Option<(f64, f64)>, value: &f64| {
            let (least, most) = so_far.unwrap_or((*value, *value));
            Some((least.min(*value), most.max(*value)))
        };
        rounds.iter().fold(None, ends).filter(|_| rounds.len() > 1)
    };
    match (range(left), range(right)) {
        (Some((least, most)), Some((other_least, other_most))) => least <= other_most && other_least <= most,
        _ => false,
    }
}

/// How we stand by one figure.
struct Standing<'a> {
    rival: &'a str,
    ours: f64,
    theirs: f64,
    factor: f64,
    first: bool,
    level: bool,
}

impl<'a> Standing<'a> {
    /// We and the best of the others that sync, by the means of the rounds.
    fn of(workload: &'static str, column: &Column, results: &'a Results) -> Option<Standing<'a>> {
        let mean = |peer: &str| results.mean(workload, peer, column.name);
        let ours = mean(OURS)?;
        let better = |left: f64, right: f64| match column.judged {
            MostWins => left > right,
            LeastWins | No => left < right,
        };
        let others = takers(results, workload).filter(|(peer, synced)| *synced && *peer != OURS);
        let mut best: Option<(&str, f64)> = None;
        for (peer, value) in others.filter_map(|(peer, _)| Some((peer, mean(peer)?))) {
            if best.is_none_or(|(_, so_far)| better(value, so_far)) {
                best = Some((peer, value));
            }
        }
        let (rival, theirs) = best?;
        // What is nothing has no factor; a thousand says enough.
        let factor = (ours.max(theirs) / ours.min(theirs).max(1e-9)).min(1_000.0);
        let level = overlap(
            &results.figures(workload, OURS, column.name),
            &results.figures(workload, rival, column.name),
        );
        Some(Standing { rival, ours, theirs, factor, first: !better(theirs, ours), level })
    }

    fn word(&self) -> &'static str {
        match (self.level, self.first) {
            (true, _) => "level",
            (false, true) => "ahead",
            (false, false) => "**behind**",
        }
    }
}

/// One row for every judged figure of every workload.
pub(super) fn summary(text: &mut String, results: &Results) {
    text.push_str(
        "## In short\n\nMeans of the rounds, against the best of the others whose acknowledgement means synced. *Level*: the rounds of one lie among those of the other.\n\n\
         | workload | figure | Vorrang | best other | | factor |\n|---|---|---:|---|---:|---:|\n",
    );
    for section in SECTIONS {
        rows(text, results, section.workload, section.columns);
        if section.title.starts_with("W3") {
            for (workload, _) in waits::WORKLOADS {
                rows(text, results, workload, WAITS);
            }
        }
    }
    text.push('\n');
}

fn rows(text: &mut String, results: &Results, workload: &'static str, columns: &[Column]) {
    for column in columns.iter().filter(|column| column.judged != No) {
        let Some(standing) = Standing::of(workload, column, results) else { continue };
        let _ = writeln!(
            text,
            "| {workload} | {} | {} | {} | {} | {} {} |",
            column.head,
            figure(standing.ours),
            standing.rival,
            figure(standing.theirs),
            standing.word(),
            figure(standing.factor)
        );
    }
}

/// A picture of the first judged figure of every section.
pub(super) fn plots(results: &Results) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    for section in SECTIONS {
        // CPU per message tells more than the rate, where there is one: the generator has no part in it.
        let judged = || section.columns.iter().filter(|column| column.judged != No);
        let Some(column) = judged().find(|column| column.name == "cpu_us").or_else(|| judged().next()) else {
            continue;
        };
        let groups: Vec<_> = takers(results, section.workload)
            .map(|(peer, _)| {
                let values =
                    results.figures(section.workload, peer, column.name).into_iter().map(Some).collect();
                (peer.to_owned(), values)
            })
            .collect();
        if groups.is_empty() {
            continue;
        }
        let title = format!("{}: {}", section.title, column.head);
        let chart = Chart { title: &title, axis: Axis::Linear, legend: &["first run", "second run"], groups };
        plots.push((section.picture(), chart.render()));
    }
    plots
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, facts};
    use super::*;
    use crate::peers::results::Cell;

    fn verdict(ours: f64, other: f64, synced: bool) -> Option<String> {
        let results = Results {
            peers: vec![facts(OURS, true), facts("Other", synced)],
            cells: vec![
                cell("W1", OURS, 1, &[("cpu_us", ours)]),
                cell("W1", "Other", 1, &[("cpu_us", other)]),
            ],
            ..Results::default()
        };
        SECTIONS[0].verdict(&column("cpu_us", "CPU", LeastWins), &results)
    }

    #[test]
    fn whoever_is_ahead_is_named_and_whoever_does_not_sync_does_not_compete() {
        assert_eq!(
            verdict(2.0, 20.0, true).as_deref(),
            Some("**CPU**: first, ahead of Other by a factor of 10.")
        );
        assert_eq!(
            verdict(20.0, 2.0, true).as_deref(),
            Some("**CPU**: not first; Other is ahead by a factor of 10.")
        );
        assert_eq!(verdict(20.0, 2.0, false), None);
    }

    #[test]
    fn peers_whose_rounds_lie_among_each_other_are_level() {
        let cases: [(&[f64], &[f64], bool); 6] = [
            (&[1.0, 3.0], &[2.0, 2.5], true),
            (&[1.0, 2.0], &[2.0, 3.0], true),
            (&[1.0, 2.0], &[2.1, 3.0], false),
            (&[2.1, 3.0], &[1.0, 2.0], false),
            (&[2.0], &[1.0, 3.0], false),
            (&[1.0, 3.0], &[], false),
        ];
        for (left, right, expected) in cases {
            assert_eq!(overlap(left, right), expected, "{left:?} and {right:?}");
        }
        let rounds = |peer: &str, values: [f64; 2]| {
            [cell("W1", peer, 1, &[("cpu_us", values[0])]), cell("W1", peer, 2, &[("cpu_us", values[1])])]
        };
        let results = Results {
            peers: vec![facts(OURS, true), facts("Other", true)],
            cells: [rounds(OURS, [1.0, 4.0]), rounds("Other", [2.0, 2.2])].concat(),
            ..Results::default()
        };
        assert_eq!(
            SECTIONS[0].verdict(&column("cpu_us", "CPU", LeastWins), &results).as_deref(),
            Some("**CPU**: level with Other; the rounds of one lie among those of the other.")
        );
    }

    #[test]
    fn a_section_says_how_many_turns_its_figures_are_medians_of() {
        let section = SECTIONS.iter().find(|section| section.workload == "W1").unwrap();
        let said = |turns: [usize; 3]| {
            let names = [OURS, "Second", "Third"];
            let with =
                |(name, turns): (&&str, usize)| Cell { turns, ..cell("W1", name, 1, &[("rate", 1.0)]) };
            let peers = names.iter().map(|name| facts(name, true)).collect();
            let cells = names.iter().zip(turns).map(with).collect();
            section.turns(&Results { peers, cells, ..Results::default() })
        };
        assert_eq!(said([1, 1, 1]), "");
        assert_eq!(said([3, 3, 3]), " Medians of 3 turns.");
        assert_eq!(said([9, 3, 9]), " Medians of 9 turns for Vorrang, Third; of 3 turns for Second.");
    }

    #[test]
    fn the_summary_has_the_waits_of_the_top_class() {
        let waits = |peer: &str, p99| cell("W5 prefetch 50", peer, 1, &[("c0_p99_ms", p99)]);
        let results = Results {
            peers: vec![facts(OURS, true), facts("Other", true)],
            cells: vec![waits(OURS, 2.0), waits("Other", 200.0)],
            ..Results::default()
        };
        let mut text = String::new();
        summary(&mut text, &results);
        let row = "| W5 prefetch 50 | top class p99 ms | 2 | Other | 200 | ahead 100 |";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn every_section_has_a_picture_of_its_own() {
        let mut names: Vec<String> = SECTIONS.iter().map(Section::picture).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), SECTIONS.len());
    }
}
