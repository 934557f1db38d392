//! `vorrang definitions export|apply`: every queue, topic, subscription and rule as one file.

use std::io::Read as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use vorrang_server::http::api::model::{ApplyReport, Definitions, Outcome as Became};
use vorrang_server::http::api::unquoted;

use crate::api::{Api, Json};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Cell, Format, Mood, Table};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print all definitions as JSON; without messages and keys
    Export {
        /// Write to this file instead
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Bring the broker to what a file says; what the file does not mention stays unless told otherwise
    Apply(Apply),
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// A file as `export` writes it; - reads standard input
    file: PathBuf,
    /// Delete what the file does not have, with every message in it
    #[arg(long)]
    prune: bool,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(command: &Command, api: &Api, format: Format) -> Outcome {
    match command {
        Command::Export { file } => {
            let definitions: Json = api.get("/api/definitions")?;
            let Some(path) = file else { return output::json(&definitions) };
            let text =
                serde_json::to_string_pretty(&definitions).map_err(|error| Failure::Other(error.into()))?;
            std::fs::write(path, text + "\n")
                .map_err(|error| Failure::Other(anyhow::anyhow!("cannot write {}: {error}", path.display())))
        }
        Command::Apply(apply) => self::apply(apply, api, format),
    }
}

fn apply(apply: &Apply, api: &Api, format: Format) -> Outcome {
    let name = apply.file.display();
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::Usage(format!("{name} cannot be used: {error}"));
    let mut text = String::new();
    if apply.file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        text = std::fs::read_to_string(&apply.file).map_err(|error| unreadable(&error))?;
    }
    // Read here first: a mistake in the file is told with its line, and nothing is sent.
    let json: Json = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    serde_json::from_str::<Definitions>(&text).map_err(|error| unreadable(&unquoted(&error)))?;
    let path = format!("/api/definitions?prune={}&dryRun={}", apply.prune, apply.dry_run);
    let report: ApplyReport = api.post(&path, &json)?;
    if format == Format::Json {
        output::json(&report)?;
    } else {
        let mut table = Table::new(&["entity", "outcome", "what"]);
        for one in &report.entities {
            let what = one.detail.clone().unwrap_or_else(|| one.changes.join(", "));
            table.row(vec![one.path.as_str().into(), outcome(one.outcome), what.into()]);
        }
        table.print()?;
        let not = if report.dry_run { " (nothing was done)" } else { "" };
        output::line(&format!(
            "{} created, {} changed, {} unchanged, {} deleted, {} not in the file, {} failed{not}",
            report.created,
            report.changed,
            report.unchanged,
            report.deleted,
            report.would_delete,
            report.failed
        ))?;
    }
    match report.failed {
        0 => Ok(()),
        failed => Err(Failure::Refused(format!("{failed} definitions could not be applied"))),
    }
}

fn outcome(outcome: Became) -> Cell {
    match outcome {
        Became::Created => Cell::from("created").in_mood(Mood::Good),
        Became::Changed => Cell::from("changed").in_mood(Mood::Good),
        Became::Unchanged => Cell::from("unchanged"),
        Became::Deleted => Cell::from("deleted").in_mood(Mood::Warning),
        Became::WouldDelete => Cell::from("not in the file"),
        Became::Failed => Cell::from("failed").in_mood(Mood::Bad),
    }
}
