//! `vorrang dlq list|replay|purge`: dead letters by reason, sent again or thrown away.

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use vorrang_server::http::api::model::{Edit, Groups, PurgeRequest, ReplayRequest, WorkReport};

use crate::api::{Api, entity_path};
use crate::failure::{Failure, Outcome};
use crate::messages::{Which, show};
use crate::output::{self, Format, Table};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List dead letters, grouped by reason
    List {
        #[command(flatten)]
        place: Place,
        /// List the messages themselves instead
        #[arg(long)]
        messages: bool,
        /// Show at most so many messages
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        top: usize,
    },
    /// Send dead letters again: back to where they came from, or elsewhere
    Replay(Replay),
    /// Delete dead letters
    Purge(Purge),
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// A queue, or a subscription as TOPIC/Subscriptions/NAME
    entity: String,
    /// The transfer dead-letter queue: messages that could not be handed on
    #[arg(long)]
    transfer: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    which: Which,
    /// The queue or topic they go to, instead of where they came from
    #[arg(long, value_name = "ENTITY")]
    to: Option<String>,
    /// At most so many in a second
    #[arg(long, value_name = "PER-SECOND")]
    rate: Option<u32>,
    /// How long they live from now on; unless said, as long as their senders gave them, once more
    #[arg(long, value_name = "DURATION")]
    time_to_live: Option<String>,
    /// Only the first so many, such as a canary
    #[arg(long, value_name = "COUNT")]
    max: Option<u64>,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Purge {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    which: Which,
    /// Only the first so many
    #[arg(long, value_name = "COUNT")]
    max: Option<u64>,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

impl Place {
    fn path(&self) -> String {
        let mailbox = if self.transfer { "transferdeadletter" } else { "deadletter" };
        format!("{}/mailboxes/{mailbox}", entity_path(&self.entity))
    }
}

pub(crate) fn run(command: Command, api: &Api, format: Format) -> Outcome {
    match command {
        Command::List { place, messages: true, top } => {
            let page = top.clamp(1, 100);
            show(&api.list(&format!("{}/messages?body=true&top={page}", place.path()), Some(top))?, format)
        }
        Command::List { place, .. } => {
            let groups: Groups = api.get(&format!("{}/groups", place.path()))?;
            list(&groups, format)
        }
        Command::Replay(Replay { place, which, to, rate, time_to_live, max, dry_run }) => {
            let edit = time_to_live.map(|life| Edit { time_to_live: Some(life), ..Edit::default() });
            let request =
                ReplayRequest { select: which.selection(), to, max, rate_per_second: rate, dry_run, edit };
            let verb = if dry_run { "would be sent again" } else { "were sent again" };
            work(api, &format!("{}/replay", place.path()), &request, verb, format)
        }
        Command::Purge(Purge { place, which, max, dry_run }) => {
            let request = PurgeRequest { select: which.selection(), max, dry_run };
            let verb = if dry_run { "would be deleted" } else { "were deleted" };
            work(api, &format!("{}/purge", place.path()), &request, verb, format)
        }
    }
}

fn list(groups: &Groups, format: Format) -> Outcome {
    if format == Format::Json {
        return output::json(groups);
    }
    let mut table = Table::new(&["count", "reason", "description", "oldest", "newest", "examples"]);
    for group in &groups.groups {
        let examples: Vec<String> = group.examples.iter().map(ToString::to_string).collect();
        table.row(vec![
            group.count.into(),
            group.reason.clone().unwrap_or_else(|| "(none)".to_owned()).into(),
            group.description.clone().unwrap_or_default().into(),
            group.oldest_enqueued_at.as_str().into(),
            group.newest_enqueued_at.as_str().into(),
            examples.join(" ").into(),
        ]);
    }
    table.print()?;
    if groups.incomplete {
        output::line(&format!("only the first {} messages were looked at", groups.looked_at))?;
    }
    Ok(())
}

/// Follows long work line by line, with a counter while it runs.
fn work(api: &Api, path: &str, request: &impl serde::Serialize, verb: &str, format: Format) -> Outcome {
    let progress = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} messages, {per_sec} {wide_msg}") {
        progress.set_style(style);
    }
    let mut last = WorkReport::default();
    api.lines(path, request, |report: WorkReport| {
        progress.set_position(report.count);
        last = report;
        Ok(())
    })?;
    progress.finish_and_clear();
    if format == Format::Json {
        output::json(&last)?;
    } else {
        output::line(&format!("{} messages {verb}", last.count))?;
        for failure in &last.failures {
            let detail = output::printable(&failure.detail);
            eprintln!("message {} stays where it was: {detail}", failure.sequence_number);
        }
    }
    if let Some(problem) = &last.problem {
        return Err(Failure::Refused(format!("it ended early: {}", output::printable(&problem.detail))));
    }
    if !last.done {
        return Err(Failure::Unreachable(
            "the broker went away before the work was done; run it again".to_owned(),
        ));
    }
    if last.failed > 0 {
        return Err(Failure::Refused(format!(
            "{} messages could not be handled and stay where they were",
            last.failed
        )));
    }
    Ok(())
}
