//! `vorrang dev …`: what developers do to a broker that runs with `--dev`.

use clap::{Args, Subcommand};
use vorrang_server::duration;
use vorrang_server::http::api::model::{
    AdvanceRequest, Clock, DropRequest, Dropped, Fault, FaultKind, NewFault, Page, ResetRequest, Snapshot,
    StallRequest,
};

use crate::api::{Api, Json};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Table};
use crate::percent;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the broker's clock, and how far it runs ahead
    Clock,
    /// Set the clock ahead: locks end, messages expire, schedules fall due at once
    Advance {
        /// By how much, such as 30s or PT30S; it never goes back, and is still ahead after a restart
        #[arg(value_parser = span)]
        by: String,
    },
    /// Take every message away, with sessions, locks and what duplicate detection remembers
    Reset {
        /// The entities too; those of the configuration are made anew
        #[arg(long)]
        entities: bool,
    },
    /// Keep the namespace with its messages under a name, and put it back
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Make things go wrong on purpose
    #[command(subcommand)]
    Fault(FaultCommand),
    /// End links or connections at once
    Drop(Drop),
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// List the snapshots there are
    List,
    /// Keep the namespace as it is now, in place of what bore the name before
    Save {
        /// Letters, digits, '.', '-' and '_'
        name: String,
    },
    /// Put it in the place of what is there, all or nothing; clients are disconnected
    Restore {
        /// The snapshot's name
        name: String,
    },
    /// Forget a snapshot
    Delete {
        /// The snapshot's name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FaultCommand {
    /// List what goes wrong now
    List,
    /// Answer sends to an entity with com.microsoft:server-busy
    Busy {
        /// The queue or topic
        entity: String,
        #[command(flatten)]
        bounds: Bounds,
    },
    /// Carry settlements out late, so that locks may end before
    Delay {
        /// The queue or subscription
        entity: String,
        /// How late, such as 5s; at most an hour
        #[arg(long, value_name = "DURATION")]
        by: String,
        #[command(flatten)]
        bounds: Bounds,
    },
    /// Take no request of anybody for a while: more than the broker can take, at once
    Stall {
        /// For how long by the broker's clock, such as 5s; at most a minute
        #[arg(long = "for", value_name = "DURATION")]
        lasts: String,
    },
    /// End a fault, or all of them
    Clear {
        /// Its number; all without it
        id: Option<u64>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Bounds {
    /// So many times; once without this and without --for
    #[arg(long, value_name = "NUMBER")]
    count: Option<u32>,
    /// For so long by the broker's clock, at most a day
    #[arg(long = "for", value_name = "DURATION")]
    lasts: Option<String>,
}

#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Drop {
    /// Links to this queue, topic or subscription
    #[arg(long, required_unless_present = "link")]
    entity: Option<String>,
    /// Links that the client gave this name
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Cut their whole connections without a word, as a network does that fails
    #[arg(long)]
    connection: bool,
}

/// A duration of the command line, to be sent as it was written.
fn span(text: &str) -> Result<String, String> {
    duration::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

pub(crate) fn run(command: Command, api: &Api, format: Format) -> Outcome {
    match command {
        Command::Clock => clock(&api.get("/dev/clock")?, format),
        Command::Advance { by } => clock(&api.post("/dev/clock/advance", &AdvanceRequest { by })?, format),
        Command::Reset { entities } => api.post::<Json>("/dev/reset", &ResetRequest { entities }).map(drop),
        Command::Snapshot(command) => snapshot(command, api, format),
        Command::Fault(command) => fault(command, api, format),
        Command::Drop(which) => {
            let Drop { entity, link, connection } = which;
            let dropped: Dropped = api.post("/dev/drop", &DropRequest { entity, link, connection })?;
            if format == Format::Json {
                return output::json(&dropped);
            }
            output::line(&format!("{} links, {} connections", dropped.links, dropped.connections))?;
            if dropped.links == 0 {
                return Err(Failure::NotFound("nothing is attached there".to_owned()));
            }
            Ok(())
        }
    }
}

fn clock(clock: &Clock, format: Format) -> Outcome {
    if format == Format::Json {
        return output::json(clock);
    }
    output::line(&format!("{} ({} ahead)", clock.now, clock.ahead))
}

fn snapshot(command: SnapshotCommand, api: &Api, format: Format) -> Outcome {
    let path = |name: &str| format!("/dev/snapshots/{}", percent::encode(name));
    let kept: Vec<Snapshot> = match command {
        SnapshotCommand::List => api.get::<Page<Snapshot>>("/dev/snapshots")?.items,
        SnapshotCommand::Save { name } => vec![api.put(&path(&name), &serde_json::json!({}))?],
        SnapshotCommand::Restore { name } => {
            let restore = format!("{}/restore", path(&name));
            return api.post::<Json>(&restore, &serde_json::json!({})).map(drop);
        }
        SnapshotCommand::Delete { name } => return api.delete(&path(&name)),
    };
    if format == Format::Json {
        return output::json(&kept);
    }
    let mut table = Table::new(&["name", "taken", "messages", "bytes"]);
    for one in &kept {
        let (name, taken) = (one.name.as_str().into(), one.taken_at.as_str().into());
        table.row(vec![name, taken, one.messages.into(), one.bytes.into()]);
    }
    table.print()
}

fn fault(command: FaultCommand, api: &Api, format: Format) -> Outcome {
    let faults: Vec<Fault> = match command {
        FaultCommand::List => api.get::<Page<Fault>>("/dev/faults")?.items,
        FaultCommand::Busy { entity, bounds: Bounds { count, lasts } } => {
            let new = NewFault { kind: FaultKind::ServerBusy, entity, delay: None, count, lasts };
            vec![api.post("/dev/faults", &new)?]
        }
        FaultCommand::Delay { entity, by, bounds: Bounds { count, lasts } } => {
            let new = NewFault { kind: FaultKind::DelaySettles, entity, delay: Some(by), count, lasts };
            vec![api.post("/dev/faults", &new)?]
        }
        FaultCommand::Stall { lasts } => {
            return api.post::<Json>("/dev/stall", &StallRequest { lasts }).map(drop);
        }
        FaultCommand::Clear { id: None } => return api.delete("/dev/faults"),
        FaultCommand::Clear { id: Some(id) } => return api.delete(&format!("/dev/faults/{id}")),
    };
    if format == Format::Json {
        return output::json(&faults);
    }
    let mut table = Table::new(&["id", "fault", "entity", "left", "until"]);
    for one in &faults {
        let kind = match (one.kind, &one.delay) {
            (FaultKind::ServerBusy, _) => "sends are answered busy".to_owned(),
            (FaultKind::DelaySettles, delay) => {
                format!("settlements are late by {}", delay.as_deref().unwrap_or_default())
            }
        };
        let left = one.left.map_or_else(String::new, |left| left.to_string());
        let until = one.until.clone().unwrap_or_default();
        table.row(vec![one.id.into(), kind.into(), one.entity.as_str().into(), left.into(), until.into()]);
    }
    table.print()
}
