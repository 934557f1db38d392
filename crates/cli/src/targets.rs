//! `vorrang targets`: which classes keep the wait they promise.

use clap::Args;
use vorrang_server::http::api::model::{Target, TargetState};

use crate::api::Api;
use crate::failure::Outcome;
use crate::messages::seconds;
use crate::output::{self, Cell, Format, Mood, Table};
use crate::shown::span;
use crate::watch::{self, Watch};

/// The spans of time over which a target is looked at, as the API names them.
const WINDOWS: [&str; 3] = ["PT5M", "PT1H", "P1D"];

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    watch: Watch,
}

pub(crate) fn run(options: &Options, api: &Api, format: Format) -> Outcome {
    watch::run(&options.watch, || {
        let targets: Vec<Target> = api.list("/api/targets", None)?;
        if format == Format::Json {
            return output::json(&targets);
        }
        let mut table = Table::new(&[
            "entity",
            "class",
            "target",
            "state",
            "5 min",
            "1 h",
            "24 h",
            "burn 5 min",
            "1 h",
            "24 h",
            "breach in",
        ]);
        for target in &targets {
            let mut row = vec![
                target.entity.as_str().into(),
                target.class.as_str().into(),
                span(&target.target_wait).into(),
                state(target.state),
            ];
            let windows = WINDOWS.map(|over| target.windows.iter().find(|window| window.over == over));
            let attained =
                windows.map(|window| window?.attainment.map(|part| format!("{:.1} %", part * 100.0)));
            let burnt = windows.map(|window| window?.burn_rate.map(|rate| format!("{rate:.1}")));
            let breach = target.breach_in_seconds.map(seconds);
            let cells = attained.into_iter().chain(burnt).chain([breach]);
            row.extend(cells.map(|text| Cell::from(text.unwrap_or_else(|| "-".to_owned()))));
            table.row(row);
        }
        table.print()
    })
}

/// The state as a word in its colour.
pub(crate) fn state(state: TargetState) -> Cell {
    match state {
        TargetState::Ok => Cell::from("ok").in_mood(Mood::Good),
        TargetState::AtRisk => Cell::from("at risk").in_mood(Mood::Warning),
        TargetState::Breached => Cell::from("breached").in_mood(Mood::Bad),
    }
}
