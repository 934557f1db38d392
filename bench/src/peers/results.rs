//! What a run found, as a file: the document is made of it and of nothing else.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::machine::Machine;
use super::peer::Facts;
use super::workload::Figures;

/// Everything that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    /// What was run, the first first; more than one where later runs have measured something anew.
    pub(crate) runs: Vec<Run>,
    /// Durations and sizes, in words.
    pub(crate) scale: String,
    pub(crate) peers: Vec<Facts>,
    /// Names and reasons.
    pub(crate) missing: Vec<(String, String)>,
    /// The generator against a sink that does nothing, in messages a second.
    pub(crate) ceiling: Vec<f64>,
    pub(crate) cells: Vec<Cell>,
    /// Instructions of our server for each message, by what is done with it.
    #[serde(default)]
    pub(crate) instructions: Vec<(String, f64)>,
}

/// One start of this program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) command: String,
    /// UTC, to the minute.
    pub(crate) began: String,
    /// The commit that our server was built from, as far as that is known.
    pub(crate) commit: Option<String>,
    pub(crate) machine: Machine,
}

/// One workload on one peer, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) workload: String,
    pub(crate) peer: String,
    pub(crate) round: u32,
    /// The turns that the figures are the median of.
    #[serde(default)]
    pub(crate) turns: usize,
    /// When that was done: UTC, to the minute.
    pub(crate) measured: String,
    pub(crate) figures: Figures,
    /// Why there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
}

impl Results {
    /// Puts a cell in the place of the one that was there; cells of a peer are in the order of the rounds.
    pub(crate) fn put(&mut self, cell: Cell) {
        let same =
            |old: &Cell| (&old.workload, &old.peer, old.round) == (&cell.workload, &cell.peer, cell.round);
        self.cells.retain(|old| !same(old));
        self.cells.push(cell);
        self.cells.sort_by_key(|cell| cell.round);
    }

    /// Notes that a peer cannot be had, and why. What an earlier run measured of it stays, and what was known of it then.
    pub(crate) fn without(&mut self, peer: &str, known: &[Facts], reason: String) {
        let measured = self.cells.iter().any(|cell| cell.peer == peer);
        match known.iter().find(|facts| facts.name == peer).filter(|_| measured) {
            Some(facts) => self.peers.push(facts.clone()),
            None => self.missing.push((peer.to_owned(), reason)),
        }
    }

    /// Whether a cell is there that needs no more turns: it had them all, or failed.
    pub(crate) fn has(&self, workload: &str, peer: &str, round: u32, turns: usize) -> bool {
        let done = |cell: &Cell| cell.round == round && (cell.turns >= turns || cell.trouble.is_some());
        self.cells(workload, peer).any(done)
    }

    /// Cells of a workload on a peer, in the order of the rounds.
    pub(crate) fn cells<'a>(&'a self, workload: &'a str, peer: &'a str) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(move |cell| cell.workload == workload && cell.peer == peer)
    }

    /// A figure of every round that has it.
    pub(crate) fn figures(&self, workload: &str, peer: &str, name: &str) -> Vec<f64> {
        self.cells(workload, peer).filter_map(|cell| cell.figures.get(name).copied()).collect()
    }

    /// The mean over the rounds.
    pub(crate) fn mean(&self, workload: &str, peer: &str, name: &str) -> Option<f64> {
        let all = self.figures(workload, peer, name);
        let rounds = u32::try_from(all.len()).ok().filter(|rounds| *rounds > 0)?;
        Some(all.iter().sum::<f64>() / f64::from(rounds))
    }

    pub(crate) fn read(path: &Path) -> Result<Results> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is not a result of this program", path.display()))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(peer: &str, round: u32, rate: Option<f64>) -> Cell {
        let figures = rate.map(|rate| ("rate".to_owned(), rate)).into_iter().collect();
        let measured = "2026-01-01 00:00".to_owned();
        Cell { workload: "W1".into(), peer: peer.into(), round, turns: 1, measured, figures, trouble: None }
    }

    #[test]
    fn a_cell_is_there_when_it_had_all_its_turns_or_failed() {
        let failed = Cell { trouble: Some("it ended".into()), ..cell("b", 1, None) };
        let results = Results { cells: vec![cell("a", 1, Some(10.0)), failed], ..Results::default() };
        let has = |peer, round, turns| results.has("W1", peer, round, turns);
        assert!(has("a", 1, 1) && has("b", 1, 3));
        assert!(!has("a", 1, 2) && !has("a", 2, 1) && !has("c", 1, 1));
        assert!(!results.has("W2", "a", 1, 1));
    }

    #[test]
    fn a_peer_that_is_gone_stays_with_what_was_measured_of_it() {
        let facts = |name: &str| Facts {
            name: name.into(),
            version: "1".into(),
            protocol: "p".into(),
            acknowledgement: "a".into(),
            settlement: "s".into(),
            synced: true,
            configuration: "c".into(),
        };
        let mut results = Results { cells: vec![cell("a", 1, Some(10.0))], ..Results::default() };
        for name in ["a", "b"] {
            results.without(name, &[facts("a"), facts("b")], "it is gone".into());
        }
        assert_eq!(results.peers, [facts("a")]);
        assert_eq!(results.missing, [("b".to_owned(), "it is gone".to_owned())]);
    }

    #[test]
    fn a_mean_counts_the_rounds_that_have_the_figure() {
        let cells = vec![cell("a", 1, Some(10.0)), cell("a", 2, Some(20.0)), cell("b", 1, None)];
        let results = Results { cells, ..Results::default() };
        assert_eq!(results.mean("W1", "a", "rate"), Some(15.0));
        assert_eq!(results.mean("W1", "b", "rate"), None);
        assert_eq!(results.mean("W2", "a", "rate"), None);
        assert_eq!(results.figures("W1", "a", "rate"), [10.0, 20.0]);
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        let results =
            Results { cells: vec![cell("a", 1, Some(0.1))], ceiling: vec![1e6], ..Results::default() };
        results.write(&path).unwrap();
        assert_eq!(Results::read(&path).unwrap(), results);
    }
}
